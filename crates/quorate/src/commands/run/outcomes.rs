//! The fate of each record of the workload, one line each on stdout.
//!
//! One thread writes, from a bounded queue: whoever reads slowly slows the workload down, and a line that
//! was written is in the pipe. A record counts as acknowledged once its line was read.

use std::io::{self, BufWriter, Write};
use std::thread::{self, JoinHandle};

use tokio::sync::mpsc::{self, Receiver, Sender};

use super::workload::RecordId;

/// Lines that may wait to be written.
const QUEUE: usize = 4096;

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// `ack ID OFFSET EPOCH`: it is committed.
    Ack { offset: i64, epoch: i32 },
    /// `notappended ID REASON`: it is not in the log and never will be.
    NotAppended { reason: &'static str },
    /// `unknown ID OFFSET EPOCH`: it may still be committed, at this place and once, or never.
    Unknown { offset: i64, epoch: i32 },
}

/// The writing thread.
#[derive(Debug)]
pub(crate) struct Outcomes {
    lines: Sender<(RecordId, Outcome)>,
    thread: JoinHandle<()>,
}

impl Outcomes {
    /// Starts the thread.
    pub(crate) fn start(out: impl Write + Send + 'static) -> io::Result<Outcomes> {
        let (lines, queue) = mpsc::channel(QUEUE);
        let thread = thread::Builder::new()
            .name("outcomes".to_owned())
            .spawn(move || write_all(queue, BufWriter::new(out)))?;
        Ok(Outcomes { lines, thread })
    }

    /// Where lines go in. Sending fails once nobody reads stdout any more.
    pub(crate) fn sender(&self) -> Sender<(RecordId, Outcome)> {
        self.lines.clone()
    }

    /// Waits until all lines are written. All other senders must be gone.
    pub(crate) fn finish(self) {
        drop(self.lines);
        // It never panics; and there is nobody to tell.
        let _ = self.thread.join();
    }
}

fn write_all(mut queue: Receiver<(RecordId, Outcome)>, mut out: impl Write) {
    while let Some(first) = queue.blocking_recv() {
        let mut next = Some(first);
        while let Some((id, outcome)) = next {
            let written = match outcome {
                Outcome::Ack { offset, epoch } => writeln!(out, "ack {id} {offset} {epoch}"),
                Outcome::NotAppended { reason } => writeln!(out, "notappended {id} {reason}"),
                Outcome::Unknown { offset, epoch } => {
                    writeln!(out, "unknown {id} {offset} {epoch}")
                }
            };
            if written.is_err() {
                return;
            }
            next = queue.try_recv().ok();
        }
        if out.flush().is_err() {
            return;
        }
    }
}
