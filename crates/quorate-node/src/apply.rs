//! The state machine's thread: committed batches in order, and who leads, each once.
//!
//! The driver hands over batches that it has in memory and never waits; when the state machine falls behind,
//! the batches are read from disk here.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use bytes::Bytes;
use quorate_core::Offset;
use quorate_driver::{CommittedBatch, Leadership, StateMachine};
use quorate_storage::fs::FileSystem;
use quorate_storage::{LogReader, StorageError, Tail, TailRead};
use quorate_wire::batch::batches;
use tokio::sync::watch;

/// So many bytes of batches wait in memory; what is beyond is read from disk when its turn comes.
const MAX_WAITING_BYTES: usize = 16 << 20;

/// So many bytes are read from disk at once.
const READ_BYTES: usize = 1 << 20;

/// The driver's end.
pub(crate) struct Applier {
    shared: Arc<Shared>,
    /// Up to where batches were handed over, or left to be read from disk.
    handed: Offset,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Bytes>,
    /// The base of the first waiting batch.
    waiting_from: Offset,
    waiting_bytes: usize,
    committed: Offset,
    /// All below is committed, and can be read from disk.
    readable: Offset,
    /// Where the thread was when it last looked.
    position: Offset,
    /// Each with the high watermark at that time.
    leaders: VecDeque<(Offset, Leadership)>,
    stopping: bool,
    failed: Option<StorageError>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether the thread would find something to do: nobody is woken for less.
    fn has_next(&self) -> bool {
        self.stopping
            || self.leaders.front().is_some_and(|(at, _)| *at <= self.position)
            || !self.waiting.is_empty()
            || self.position < self.readable
    }
}

impl Applier {
    /// Starts the thread. The state machine begins at the start of the log.
    pub(crate) fn start<F: FileSystem>(
        state_machine: impl StateMachine,
        reader: LogReader<F>,
        log_start: Offset,
        leadership: watch::Sender<Leadership>,
    ) -> std::io::Result<Applier> {
        let shared = Arc::new(Shared::default());
        let thread = thread::Builder::new().name("quorate-apply".to_owned()).spawn({
            let shared = shared.clone();
            move || run(&shared, state_machine, &reader, log_start, &leadership)
        })?;
        Ok(Applier { shared, handed: log_start, thread: Some(thread) })
    }

    /// The high watermark or the durable end moved.
    pub(crate) fn advance(&mut self, tail: &Tail, committed: Offset, durable_end: Offset) {
        let mut state = self.shared.lock();
        state.committed = committed;
        state.readable = committed.min(durable_end);
        if self.handed < committed && state.waiting_bytes < MAX_WAITING_BYTES {
            let room = MAX_WAITING_BYTES - state.waiting_bytes;
            match tail.read(self.handed, committed, room) {
                TailRead::Hot(batches) => {
                    if state.waiting.is_empty() {
                        state.waiting_from = self.handed;
                    }
                    for batch in batches {
                        self.handed = end_of(&batch).unwrap_or(self.handed);
                        state.waiting_bytes += batch.len();
                        state.waiting.push_back(batch);
                    }
                }
                // Left to the disk. What waits already comes first.
                TailRead::Cold if state.waiting.is_empty() => self.handed = state.readable,
                TailRead::Cold | TailRead::Nothing => {}
            }
        }
        let has_next = state.has_next();
        drop(state);
        if has_next {
            self.shared.changed.notify_one();
        }
    }

    /// Who leads from this point of the log on.
    pub(crate) fn leader_changed(&self, leadership: Leadership) {
        let mut state = self.shared.lock();
        let at = state.committed;
        state.leaders.push_back((at, leadership));
        drop(state);
        self.shared.changed.notify_one();
    }

    /// The disk error that stopped the state machine, if one did.
    pub(crate) fn failure(&self) -> Option<StorageError> {
        self.shared.lock().failed.clone()
    }

    /// Ends the thread after the batch that it is at.
    pub(crate) fn stop(mut self) {
        self.shared.lock().stopping = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take()
            && let Err(panic) = thread.join()
        {
            std::panic::resume_unwind(panic);
        }
    }

    /// Whether the state machine is gone although nobody stopped it.
    pub(crate) fn is_gone(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

fn end_of(batch: &Bytes) -> Option<Offset> {
    quorate_wire::batch::BatchHeader::parse(batch).ok().map(|header| Offset(header.end_offset()))
}

enum Next {
    Batches(Vec<Bytes>),
    FromDisk(Offset),
    Leader(Leadership),
    Stop,
}

fn run<F: FileSystem>(
    shared: &Shared,
    mut state_machine: impl StateMachine,
    reader: &LogReader<F>,
    log_start: Offset,
    leadership: &watch::Sender<Leadership>,
) {
    let mut position = log_start;
    loop {
        match next(shared, position) {
            Next::Batches(batches) => {
                for batch in batches {
                    position = apply(&mut state_machine, batch, position);
                }
            }
            Next::FromDisk(to) => match reader.read(position, to, READ_BYTES) {
                Ok(found) if found.is_empty() => {
                    // Committed records do not vanish; a segment may just have been rolled.
                    thread::sleep(std::time::Duration::from_millis(1));
                }
                Ok(found) => {
                    for batch in found {
                        position = apply(&mut state_machine, batch, position);
                    }
                }
                Err(error) => {
                    tracing::error!(%error, "the state machine stops: a committed batch cannot be read");
                    shared.lock().failed = Some(error);
                    return;
                }
            },
            Next::Leader(change) => {
                state_machine.leader_changed(&change);
                leadership.send_replace(change);
            }
            Next::Stop => return,
        }
    }
}

fn next(shared: &Shared, position: Offset) -> Next {
    let mut state = shared.lock();
    state.position = position;
    loop {
        if state.stopping {
            return Next::Stop;
        }
        if let Some((at, _)) = state.leaders.front()
            && *at <= position
            && let Some((_, leadership)) = state.leaders.pop_front()
        {
            return Next::Leader(leadership);
        }
        if state.waiting.is_empty() || position < state.waiting_from {
            let to = if state.waiting.is_empty() { state.readable } else { state.waiting_from };
            if position < to {
                return Next::FromDisk(to);
            }
        } else {
            state.waiting_bytes = 0;
            return Next::Batches(state.waiting.drain(..).collect());
        }
        state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
}

/// Applies one encoded batch, unless it was applied before; returns the next position.
fn apply(state_machine: &mut impl StateMachine, bytes: Bytes, position: Offset) -> Offset {
    for batch in batches(bytes) {
        let Ok(batch) = batch else { break };
        let end = Offset(batch.end_offset());
        if end <= position {
            continue;
        }
        if let Some(batch) = CommittedBatch::new(batch) {
            state_machine.apply(&batch);
        }
        return end;
    }
    position
}

#[cfg(test)]
mod tests {
    use quorate_core::Epoch;
    use quorate_core::io::WriteId;
    use quorate_storage::EncodedBatch;
    use quorate_wire::batch::encode_data;

    use super::*;

    /// A batch of one record of a mebibyte.
    fn batch(offset: i64) -> EncodedBatch {
        EncodedBatch {
            base: Offset(offset),
            end: Offset(offset + 1),
            epoch: Epoch(1),
            max_timestamp: 0,
            bytes: encode_data(offset, 1, 0, &[Bytes::from(vec![1; 1 << 20])]),
        }
    }

    #[test]
    fn what_waits_in_memory_has_a_bound_and_goes_on_where_it_ended() {
        let mut tail = Tail::new(Offset(0), 64 << 20);
        let mut applier = Applier { shared: Arc::default(), handed: Offset(0), thread: None };
        let mut applied = 0;
        for offset in 0..40 {
            tail.append(WriteId(1), batch(offset));
            applier.advance(&tail, Offset(offset + 1), Offset(offset + 1));
            let waiting = applier.shared.lock().waiting_bytes;
            assert!(waiting <= MAX_WAITING_BYTES + batch(0).bytes.len(), "{waiting}");
            if offset == 19 {
                assert!(applier.handed < Offset(20), "a slow state machine was given all");
            }
            // The state machine wakes now and then, and takes all that waits.
            if offset % 20 == 19 || offset == 39 {
                while let Next::Batches(batches) = next_or_disk(&applier, Offset(applied)) {
                    for batch in batches {
                        assert_eq!(
                            end_of(&batch),
                            Some(Offset(applied + 1)),
                            "in order, each once"
                        );
                        applied += 1;
                    }
                    applier.advance(&tail, Offset(offset + 1), Offset(offset + 1));
                }
            }
        }
        assert_eq!(applied, 40);
    }

    /// What the thread would do next; reading from disk to where it stands if there is nothing.
    fn next_or_disk(applier: &Applier, position: Offset) -> Next {
        let has_all = applier.shared.lock().readable == position;
        if has_all { Next::FromDisk(position) } else { next(&applier.shared, position) }
    }
}
