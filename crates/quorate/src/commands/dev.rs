//! `quorate dev`: a quorum of three real processes on this machine, to look at and to hurt.
//!
//! The children are `quorate run`, each with a directory and a configuration of its own. They end with this
//! process, however it ends.

mod cluster;
mod screen;
mod snapshot;

use std::io::{self, IsTerminal as _, Write};
use std::path::PathBuf;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, MissedTickBehavior, interval};

use self::cluster::Cluster;
use self::screen::{Key, Screen};
use self::snapshot::{Observer, Snapshot};
use crate::failure::{Exit, Failure};
use crate::say;

/// Runs three voters on this machine, with a steady trickle of records, and shows what they do.
///
/// On a terminal: a live table; the keys 1, 2 and 3 kill that node with SIGKILL, or start it again; q quits.
/// Elsewhere: a line a second, and one at each change of leader.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  quorate dev
  quorate dev --dir ./quorum            keep the directory, and go on from it the next time
  quorate dev --json | jq .leaderId

While it runs, any node can be asked: quorate quorum describe --bootstrap-controller HOST:PORT,
with an address from the first line.

Exit codes: 0 ended by q, SIGINT or SIGTERM; 1 the directory or the nodes could not be set up.")]
pub(crate) struct Args {
    /// Where the nodes live; made if it is not there, and kept [default: a new directory, removed at the end].
    #[arg(long)]
    dir: Option<PathBuf>,
    /// One JSON object a line, whatever stdout is.
    #[arg(long)]
    json: bool,
}

/// How often the nodes are asked.
const POLL: Duration = Duration::from_millis(200);
/// How often a line is printed where stdout is no terminal.
const LINE: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let temporary = match &args.dir {
        Some(_) => None,
        None => {
            Some(tempfile::Builder::new().prefix("quorate-dev-").tempdir().map_err(|error| {
                Failure::new(format!("cannot make a temporary directory: {error}"))
                    .next("give a directory with --dir")
            })?)
        }
    };
    let dir = match (&args.dir, &temporary) {
        (Some(dir), _) => dir.clone(),
        (None, Some(temporary)) => temporary.path().to_owned(),
        (None, None) => return Err(Failure::new("no directory").exit(Exit::Internal)),
    };
    let mut cluster = Cluster::prepare(&dir)?;
    let first = cluster.first_line();
    if args.json {
        say(out, &first.json)?;
    } else {
        say(out, &first.text)?;
    }
    // The children die with the thread that starts them: all of this happens on the main thread.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        Failure::new(format!("cannot start the runtime: {error}")).exit(Exit::Internal)
    })?;
    let shown = runtime.block_on(show(args, &mut cluster, out));
    cluster.stop();
    drop(temporary);
    shown
}

async fn show(args: &Args, cluster: &mut Cluster, out: &mut dyn Write) -> Result<(), Failure> {
    let internal = |error: io::Error| {
        Failure::new(format!("cannot catch signals: {error}")).exit(Exit::Internal)
    };
    let mut terminate = signal(SignalKind::terminate()).map_err(internal)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(internal)?;
    let mut hang_up = signal(SignalKind::hangup()).map_err(internal)?;
    cluster.start_all()?;
    let live = io::stdout().is_terminal() && io::stdin().is_terminal() && !args.json;
    let mut screen = if live { Some(Screen::open()?) } else { None };
    let mut observer = Observer::new(cluster);
    let mut ticks = interval(POLL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut printed: Option<(Instant, Option<(i32, i32)>)> = None;
    loop {
        let stop = tokio::select! {
            _ = ticks.tick() => false,
            _ = terminate.recv() => true,
            _ = interrupt.recv() => true,
            _ = hang_up.recv() => true,
        };
        if stop {
            return Ok(());
        }
        let snapshot = observer.look(cluster).await;
        match &mut screen {
            Some(screen) => {
                screen.draw(cluster, &snapshot)?;
                match screen.key()? {
                    Some(Key::Quit) => return Ok(()),
                    Some(Key::Node(index)) => cluster.toggle(index)?,
                    None => {}
                }
            }
            None => {
                let leader = snapshot.leader;
                let due =
                    printed.is_none_or(|(when, shown)| when.elapsed() >= LINE || shown != leader);
                if due {
                    print(args, &snapshot, printed.and_then(|(_, shown)| shown), out)?;
                    printed = Some((Instant::now(), leader));
                }
            }
        }
    }
}

fn print(
    args: &Args,
    snapshot: &Snapshot,
    shown: Option<(i32, i32)>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    if args.json {
        return say(out, &serde_json::to_string(&snapshot.json()).unwrap_or_default());
    }
    if let Some((leader, epoch)) = snapshot.leader
        && shown != snapshot.leader
    {
        let after = snapshot.last_leaderless.as_secs_f64();
        say(out, &format!("leader node={leader} epoch={epoch} leaderless={after:.1}s"))?;
    }
    say(out, &snapshot.line())
}
