//! What appends the workload's records while this node leads: record by record, or measured.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use quorate_core::{Epoch, NodeId};
use quorate_node::{Handle, LeaderToken, NotAppended, Outcome as Fate, Pending};
use tokio::sync::mpsc::Sender;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{error, info};

use super::internal;
use super::measure::{self, Mark, Report};
use super::outcomes::{Outcome, Outcomes};
use super::workload::{Measure, RecordId, Records, Workload};
use crate::commands::format;
use crate::failure::Failure;
use crate::features::METADATA_VERSION;
use crate::uuid;

/// How long the last lines may take to be read, once the node has stopped.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// How far a workload may fall behind its rate before it gives up catching up.
const CATCH_UP: Duration = Duration::from_millis(500);

/// A workload under way.
pub(super) struct Work {
    task: JoinHandle<()>,
    /// Unless it is measured.
    outcomes: Option<Outcomes>,
}

/// The record that a log must have before any other of a state machine.
pub(super) struct FirstRecord {
    /// Of `metadata.version`.
    pub(super) level: i16,
    /// Whether it is committed.
    pub(super) is_there: Arc<AtomicBool>,
}

/// Starts a workload; its outcomes go to stdout.
pub(super) fn start(
    workload: Workload,
    node: NodeId,
    handle: Handle,
    metadata_version: FirstRecord,
) -> Result<Work, Failure> {
    let start = u32::from_be_bytes(uuid::random_bytes()?);
    let mut records = Records::new(node.0, start, workload.size);
    let (told, outcomes) = match workload.measure {
        Some(measure) => {
            let record = records.make();
            let (_, value) =
                record.map_err(|error| internal(format!("a record does not encode: {error}")))?;
            // Clones of static bytes count no references: all that is measured is what an append costs.
            (Told::Measured { measure, value: Bytes::from_static(value.to_vec().leak()) }, None)
        }
        None => {
            let outcomes = Outcomes::start(io::stdout())
                .map_err(|error| internal(format!("cannot start a thread: {error}")))?;
            (Told::Lines { records, lines: outcomes.sender() }, Some(outcomes))
        }
    };
    let driver = Driver { workload, handle, metadata_version, told };
    let task = tokio::spawn(async move {
        let end = driver.run().await;
        info!(reason = end.0, "the workload has ended");
    });
    Ok(Work { task, outcomes })
}

impl Work {
    /// Waits until the fate of every record is written, unless nobody reads. The node has stopped.
    pub(super) async fn finish(self) {
        let abort = self.task.abort_handle();
        match timeout(LAST_WORDS, self.task).await {
            Ok(_) => {
                if let Some(outcomes) = self.outcomes {
                    outcomes.finish();
                }
            }
            Err(_) => abort.abort(),
        }
    }
}

struct Driver {
    workload: Workload,
    handle: Handle,
    metadata_version: FirstRecord,
    told: Told,
}

/// How the workload is told.
enum Told {
    /// The outcome of each record, a line each.
    Lines { records: Records, lines: Sender<(RecordId, Outcome)> },
    /// One line for all.
    Measured { measure: Measure, value: Bytes },
}

/// Why the workload is over.
struct End(&'static str);

impl Driver {
    async fn run(mut self) -> End {
        let mut leadership = self.handle.leadership();
        let mut done = None;
        loop {
            // The token of an epoch that was lost may still be shown for a moment.
            let wanted = |epoch: Epoch| done.is_none_or(|lost| epoch > lost);
            let found = leadership
                .wait_for(|now| now.token.as_ref().is_some_and(|token| wanted(token.epoch())))
                .await;
            let Some(token) = found.ok().and_then(|now| now.token.clone()) else {
                return End("the node has stopped");
            };
            done = Some(token.epoch());
            if let Err(end) = self.lead(&token).await {
                return end;
            }
        }
    }

    /// Appends until this epoch is lost, or all is measured.
    async fn lead(&mut self, token: &LeaderToken) -> Result<(), End> {
        if !self.write_metadata_version(token).await? {
            return Ok(());
        }
        let Driver { workload, handle, told, .. } = self;
        match told {
            Told::Lines { records, lines } => {
                append_and_tell(workload, handle, token, records, lines).await
            }
            Told::Measured { measure, value } => {
                measure_and_print(*workload, *measure, handle.clone(), token.clone(), value.clone())
                    .await
            }
        }
    }

    /// A Java node must find metadata.version before any other record: appends it unless the log has it. False
    /// if this epoch is lost.
    async fn write_metadata_version(&self, token: &LeaderToken) -> Result<bool, End> {
        let FirstRecord { level, is_there } = &self.metadata_version;
        while !is_there.load(Ordering::Acquire) {
            let value = format::feature_level(METADATA_VERSION, *level);
            let Ok(value) = value else { return Err(End("a record does not encode")) };
            match self.handle.append(token, vec![value]).await {
                Fate::Committed { .. } => is_there.store(true, Ordering::Release),
                Fate::NotAppended(NotAppended::QueueFull) => sleep(Duration::from_millis(5)).await,
                Fate::NotAppended(_) | Fate::OutcomeUnknown { .. } => return Ok(false),
            }
        }
        Ok(true)
    }
}

/// Appends, and tells the outcome of each record, until this epoch is lost.
async fn append_and_tell(
    workload: &Workload,
    handle: &Handle,
    token: &LeaderToken,
    records: &mut Records,
    lines: &Sender<(RecordId, Outcome)>,
) -> Result<(), End> {
    let mut in_flight: VecDeque<(RecordId, Pending)> = VecDeque::new();
    let mut due = Instant::now();
    let mut leads = true;
    while leads || !in_flight.is_empty() {
        while leads && in_flight.len() < workload.in_flight && due <= Instant::now() {
            let (id, value) = records.make().map_err(|error| {
                error!(%error, "a record does not encode");
                End("a record does not encode")
            })?;
            in_flight.push_back((id, handle.append(token, vec![value])));
            due = after(due, workload.rate);
        }
        let room = leads && in_flight.len() < workload.in_flight;
        // Outcomes come in the order of the appends: the first one is the next.
        let fate = match in_flight.front_mut() {
            None => {
                sleep_until(due).await;
                continue;
            }
            Some((id, pending)) => tokio::select! {
                fate = pending => (*id, fate),
                () = sleep_until(due), if room => continue,
            },
        };
        in_flight.pop_front();
        let (id, fate) = fate;
        let full = matches!(fate, Fate::NotAppended(NotAppended::QueueFull));
        leads &= full || matches!(fate, Fate::Committed { .. });
        lines.send((id, line(&fate))).await.map_err(|_| End("nobody reads stdout"))?;
        if full {
            sleep(Duration::from_millis(5)).await;
        }
    }
    Ok(())
}

/// When the record after the one that was due at this time is due.
fn after(due: Instant, rate: u32) -> Instant {
    match rate {
        0 => due,
        rate => {
            let now = Instant::now();
            let late = now.saturating_duration_since(due) > CATCH_UP;
            (if late { now } else { due }) + Duration::from_secs(1) / rate
        }
    }
}

/// Measures once, on a thread of its own: it waits for an outcome or the next record's time, to the microsecond.
async fn measure_and_print(
    workload: Workload,
    measure: Measure,
    handle: Handle,
    token: LeaderToken,
    value: Bytes,
) -> Result<(), End> {
    let (done, report) = oneshot::channel();
    let thread = thread::Builder::new().name("workload".to_owned()).spawn(move || {
        let append = |records| handle.append(&token, records);
        let groups = || handle.durable_groups();
        let report = measure::run(&workload, &measure, &value, append, groups, |mark| {
            // Whoever does not read it sees in the report how long the window was.
            let _ = print(match mark {
                Mark::Begins => "begins",
                Mark::Ends => "ends",
            });
        });
        let _ = done.send(report);
    });
    thread.map_err(|_| End("cannot start a thread"))?;
    let report: Report = report.await.map_err(|_| End("the thread that measures is gone"))?;
    let json = serde_json::to_string(&report).map_err(|_| End("the report is no JSON"))?;
    print(&json).map_err(|_| End("nobody reads stdout"))?;
    Err(End("it was measured"))
}

fn print(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

fn line(fate: &Fate) -> Outcome {
    match fate {
        Fate::Committed { offset, epoch } => Outcome::Ack { offset: offset.0, epoch: epoch.0 },
        Fate::OutcomeUnknown { offset, epoch } => {
            Outcome::Unknown { offset: offset.0, epoch: epoch.0 }
        }
        Fate::NotAppended(reason) => Outcome::NotAppended {
            reason: match reason {
                NotAppended::NotLeader { .. } => "not-leader",
                NotAppended::QueueFull => "queue-full",
                NotAppended::TooLarge { .. } => "too-large",
                NotAppended::Empty => "empty",
                NotAppended::Stopped => "stopped",
            },
        },
    }
}
