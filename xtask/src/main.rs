//! Quorate's own tools: what CI runs, its writing twin, and the checks on real processes.
//!
//! Every check prints its steps with the time that each took, ends with one line, `PASS name: figures`
//! or `FAIL name: reason`, and exits with 0 or 1 to match.

mod bench;
mod ci;
mod dirs;
mod explore;
mod fix;
mod fuzz;
mod idle;
mod interop;
mod kafka;
mod kill_loop;
mod planted;
mod scratch;
mod sim;
mod step;
mod usage;
mod vectors;

use std::process::ExitCode;

use clap::Parser;

/// Quorate's own tools.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Check {
    /// What CI runs: formatting, file lengths, licences, duplicate dependencies, clippy, tests, docs.
    Ci(ci::Options),
    /// Formats the tree and applies clippy's suggestions.
    Fix,
    /// The codec against golden vectors: bytes written by Kafka.
    Vectors(vectors::Options),
    /// Directories written by Kafka: opened, read and described.
    Dirs(dirs::Options),
    /// Kills voters of a real quorum under load, and checks that it keeps its promises.
    KillLoop(kill_loop::Options),
    /// What a node of an idle quorum costs: processor, wake-ups, memory.
    Idle(idle::Options),
    /// Apache Kafka beside us: brings releases, runs their controllers, brokers and tools.
    Kafka(kafka::Options),
    /// One quorum with Apache Kafka: Quorate follows, Quorate leads.
    Interop(interop::Options),
    /// Becomes a command that dies with the process that started it.
    #[command(hide = true)]
    DieWith(interop::process::DieWith),
    /// Seeded clusters on a simulated clock, network and disk, checked after every event.
    Sim(sim::Options),
    /// Benchmarks, beside a model of the limit and beside other systems.
    Bench(bench::Options),
    /// Faults planted in a copy of the tree, which the simulator has to find.
    Planted(planted::Options),
    /// Decoders, log directories and the core under bytes that coverage chooses.
    Fuzz(fuzz::Options),
    /// The core explored exhaustively: every order of events within a bound.
    Explore(explore::Options),
}

fn main() -> ExitCode {
    let (name, result) = match Check::parse() {
        Check::Ci(options) => ("ci".to_owned(), ci::run(&options)),
        Check::Fix => ("fix".to_owned(), fix::run()),
        Check::Vectors(options) => ("vectors".to_owned(), vectors::run(&options)),
        Check::Dirs(options) => ("dirs".to_owned(), dirs::run(&options)),
        Check::KillLoop(options) => (options.name(), kill_loop::run(&options)),
        Check::Idle(options) => ("idle".to_owned(), idle::run(&options)),
        Check::Interop(options) => (options.name(), interop::run(&options)),
        Check::DieWith(options) => ("die-with".to_owned(), interop::process::die_with(&options)),
        Check::Kafka(options) => ("kafka".to_owned(), kafka::run(&options)),
        Check::Bench(options) => (options.name(), bench::run(&options)),
        Check::Planted(options) => ("planted".to_owned(), planted::run(&options)),
        Check::Fuzz(options) => ("fuzz".to_owned(), fuzz::run(&options)),
        // It says itself how it ended.
        Check::Sim(options) => return sim::run(&options),
        Check::Explore(options) => return explore::run(&options),
    };
    match result {
        Ok(figures) => {
            println!("PASS {name}: {figures}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("FAIL {name}: {error:#}");
            ExitCode::FAILURE
        }
    }
}
