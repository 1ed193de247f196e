//! The commit thread: group commit off the driver's thread.
//!
//! Appends that pile up during one sync share the next. Whoever submits never waits.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use quorate_core::io::WriteId;

use crate::commit::{Committer, StoreWrite};
use crate::error::StorageError;
use crate::fs::FileSystem;
use crate::reader::LogReader;
use crate::store::Store;

/// What the commit thread reports.
#[derive(Clone, Debug)]
pub enum StoreEvent {
    /// Every write up to and including this one is on stable media.
    Durable(WriteId),
    /// A write or a sync failed. That is final: nothing more is written or reported.
    Failed(StorageError),
}

/// Hands writes to the commit thread. Dropping it stops the thread as [`close`](Submitter::close) does,
/// without waiting.
#[derive(Debug)]
pub struct Submitter {
    lane: Arc<Lane>,
    thread: Option<JoinHandle<Result<(), StorageError>>>,
}

/// How many bytes may wait. The core bounds what it asks for far below this, so more is a bug.
const MAX_QUEUED_BYTES: usize = 2 << 30;

/// How long the disk must be idle before index files and the epoch checkpoint are written.
const TIDY_AFTER: Duration = Duration::from_secs(1);

/// Starts the commit thread of a store. `on_event` is called on that thread and should return soon.
///
/// # Errors
///
/// The operating system has no thread to give.
pub fn start<F: FileSystem>(
    store: Store<F>,
    on_event: impl Fn(StoreEvent) + Send + 'static,
) -> Result<(Submitter, LogReader<F>), StorageError> {
    let reader = store.reader();
    let lane = Arc::new(Lane::default());
    let dir = store.dir().to_owned();
    let thread = thread::Builder::new()
        .name("quorate-commit".to_owned())
        .spawn({
            let lane = lane.clone();
            move || commit(store, &lane, on_event)
        })
        .map_err(StorageError::io("start the commit thread for", &dir))?;
    Ok((Submitter { lane, thread: Some(thread) }, reader))
}

impl Submitter {
    /// Queues writes, after all earlier ones. Returns at once.
    pub fn submit(&self, writes: Vec<(WriteId, StoreWrite)>) {
        if writes.is_empty() {
            return;
        }
        let mut queue = self.lane.lock();
        if queue.failed {
            return;
        }
        queue.bytes += writes.iter().map(|(_, write)| write.bytes()).sum::<usize>();
        assert!(queue.bytes <= MAX_QUEUED_BYTES, "the core bounds what waits for the disk");
        queue.writes.extend(writes);
        drop(queue);
        self.lane.changed.notify_one();
    }

    /// How many bytes are submitted and not durable yet, about.
    pub fn queued_bytes(&self) -> usize {
        self.lane.lock().bytes
    }

    /// Does all writes that were submitted, leaves the directory in order, removes the lock and ends the
    /// thread. Blocks; the events of the last writes come first.
    ///
    /// # Errors
    ///
    /// The error that closed the store, if one did.
    pub fn close(mut self) -> Result<(), StorageError> {
        self.lane.stop();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Ok(()),
        }
    }
}

impl Drop for Submitter {
    fn drop(&mut self) {
        self.lane.stop();
    }
}

/// What the driver's thread and the commit thread share.
#[derive(Debug, Default)]
struct Lane {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    writes: Vec<(WriteId, StoreWrite)>,
    bytes: usize,
    stopping: bool,
    failed: bool,
}

impl Lane {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop(&self) {
        self.lock().stopping = true;
        self.changed.notify_one();
    }

    /// Waits for writes, or for the time to tidy up.
    fn next(&self, untidy: bool) -> Next {
        let mut queue = self.lock();
        loop {
            if !queue.writes.is_empty() {
                return Next::Writes(std::mem::take(&mut queue.writes));
            }
            if queue.stopping {
                return Next::Stop;
            }
            if !untidy {
                queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let (after, timeout) = self
                .changed
                .wait_timeout(queue, TIDY_AFTER)
                .unwrap_or_else(PoisonError::into_inner);
            queue = after;
            if timeout.timed_out() && queue.writes.is_empty() && !queue.stopping {
                return Next::Tidy;
            }
        }
    }

    /// So many bytes are done; takes what waits.
    fn take_more(&self, done: usize) -> Vec<(WriteId, StoreWrite)> {
        let mut queue = self.lock();
        queue.bytes -= done;
        std::mem::take(&mut queue.writes)
    }

    /// From now on nothing is queued.
    fn fail(&self) {
        let mut queue = self.lock();
        queue.failed = true;
        queue.bytes = 0;
        queue.writes = Vec::new();
    }
}

enum Next {
    Writes(Vec<(WriteId, StoreWrite)>),
    Tidy,
    Stop,
}

fn commit<F: FileSystem>(
    mut store: Store<F>,
    lane: &Lane,
    on_event: impl Fn(StoreEvent),
) -> Result<(), StorageError> {
    let result = commit_until_stopped(store.committer(), lane, &on_event);
    match result {
        Ok(()) => store.close(),
        Err(error) => {
            lane.fail();
            tracing::error!(%error, "the store is closed: a write or a sync failed");
            on_event(StoreEvent::Failed(error.clone()));
            Err(error)
        }
    }
}

fn commit_until_stopped<F: FileSystem>(
    committer: &mut Committer<F>,
    lane: &Lane,
    on_event: &impl Fn(StoreEvent),
) -> Result<(), StorageError> {
    let mut queue = VecDeque::new();
    let mut sizes = VecDeque::new();
    loop {
        let mut writes = match lane.next(committer.is_untidy()) {
            Next::Writes(writes) => writes,
            Next::Tidy => {
                committer.tidy()?;
                continue;
            }
            Next::Stop => return Ok(()),
        };
        while !writes.is_empty() || !queue.is_empty() {
            sizes.extend(writes.iter().map(|(_, write)| write.bytes()));
            queue.extend(writes);
            let through = committer.run(&mut queue)?;
            let done = sizes.len() - queue.len();
            // What came in meanwhile may share the next sync with what is left.
            writes = lane.take_more(sizes.drain(..done).sum());
            on_event(StoreEvent::Durable(through));
        }
    }
}
