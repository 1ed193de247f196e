//! `quorate-explore [--bound NAME]`: explores the core within a bound.

use std::process::ExitCode;

use clap::Parser;
use quorate_explore::{BOUNDS, Bound, Figures, explore};

/// Explores the core exhaustively within a bound.
#[derive(Parser)]
struct Options {
    /// One of ci, large, two-voters, observer.
    #[arg(long, default_value = "ci")]
    bound: String,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let Some(bound) = Bound::named(&options.bound) else {
        let names: Vec<&str> = BOUNDS.iter().map(|bound| bound.name).collect();
        println!("FAIL explore: no bound {}, there are {}", options.bound, names.join(", "));
        return ExitCode::FAILURE;
    };
    println!("explore: {bound:?}");
    let result = explore(*bound, |figures| {
        println!(
            "explore: depth {} with {} states, {} of a replica, {} transitions, {:.1} s",
            figures.depth,
            figures.states,
            figures.nodes,
            figures.transitions,
            figures.time.as_secs_f64()
        );
    });
    let figures = match &result {
        Ok(figures) => *figures,
        Err(violation) => violation.figures,
    };
    let line = format!(
        "bound={} states={} transitions={} depth={} seconds={:.0}",
        bound.name,
        figures.states,
        figures.transitions,
        figures.depth,
        figures.time.as_secs_f64()
    );
    match result {
        Ok(_) => {
            let Figures { elections, committed, outside, .. } = figures;
            println!(
                "explore: up to {elections} elections and {committed} committed batches on a path"
            );
            println!("explore: {outside} transitions lead outside the bound");
            println!("PASS explore: {line}");
            ExitCode::SUCCESS
        }
        Err(violation) => {
            for line in &violation.story {
                println!("{line}");
            }
            println!("FAIL explore: {}; {line}", violation.rule);
            ExitCode::FAILURE
        }
    }
}
