//! Answers to Fetch whose batches are on disk alone: read on a thread of their own.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use quorate_core::message::{LogRange, Response};
use quorate_network::Reply;
use quorate_storage::LogReader;
use quorate_storage::fs::FileSystem;
use tokio::sync::mpsc as async_mpsc;

/// An answer and the range that it needs.
pub(crate) struct ColdAnswer {
    pub(crate) range: LogRange,
    pub(crate) response: Response<LogRange>,
    pub(crate) reply: Reply,
    pub(crate) is_observer: bool,
    /// The batches, once read; none if they cannot be.
    pub(crate) records: Option<Vec<Bytes>>,
    /// How long the reading took.
    pub(crate) took: Duration,
}

/// So many answers may wait for the disk.
const MAX_WAITING: usize = 1024;

/// The queue to the thread, which ends when it is dropped, and the answers from it.
pub(crate) fn start<F: FileSystem>(
    reader: LogReader<F>,
) -> std::io::Result<(mpsc::SyncSender<ColdAnswer>, async_mpsc::Receiver<ColdAnswer>)> {
    let (queue, jobs) = mpsc::sync_channel::<ColdAnswer>(MAX_WAITING);
    let (done, answers) = async_mpsc::channel(MAX_WAITING);
    thread::Builder::new().name("quorate-read".to_owned()).spawn(move || {
        let mut complained = None;
        while let Ok(mut job) = jobs.recv() {
            let began = Instant::now();
            let LogRange { from, to, max_bytes, .. } = job.range;
            let max_bytes = usize::try_from(max_bytes).unwrap_or(usize::MAX);
            match reader.read(from, to, max_bytes) {
                Ok(records) => job.records = Some(records),
                // A fetcher asks again and again; the operator needs to read it once.
                Err(error) if complained != Some(from) => {
                    complained = Some(from);
                    tracing::error!(
                        %error, %from,
                        "a Fetch cannot be answered: this part of the log is damaged; make another voter the leader, then \
                         format this directory anew"
                    );
                }
                Err(_) => {}
            }
            job.took = began.elapsed();
            if done.blocking_send(job).is_err() {
                return;
            }
        }
    })?;
    Ok((queue, answers))
}
