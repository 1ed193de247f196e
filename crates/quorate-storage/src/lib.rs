//! Kafka's metadata log directory: segments, quorum-state, group commit.
//!
//! # Write barriers
//!
//! Writes are numbered by the core, done in order and reported by number: `Durable { through }` says
//! that all writes up to that one are on stable media. One thread does them; it is the only place that
//! decides what is synced when. After a crash any part of unsynced writes may survive, so order between
//! writes exists only where a sync stands between them:
//!
//! | Write | What it does, in order | Before `Durable` passes it | Before a later write touches a file |
//! |---|---|---|---|
//! | `Append` | write at the end of the active segment | the segment's data is synced; one sync serves all appends queued in a row (group commit) | nothing: appends are merged |
//! | `Append` while they are many | as `Append`, but make the file longer first, by zeros, when they do not fit into it | as `Append` | nothing |
//! | `Append` that rolls | cut zeros off the old segment, sync it; create the new one with its index files; sync the directory; then as `Append` | the old segment, the new one, and the new one's directory entry are synced | the old segment and the directory are synced |
//! | `ElectionState` | write `quorum-state.tmp`, sync it, rename it over `quorum-state`, sync the directory | all of it | **barrier**: all of it, and every append before it is synced first |
//! | `Truncate` | rewrite `leader-epoch-checkpoint` if it names an epoch that goes; unlink later segments, newest first, sync the directory; cut the segment, sync it | all of it | **barrier**: all of it, and every append before it is synced first |
//! | `InstallSnapshot` (with the snapshots) | sync the file, rename, sync the directory; then reset the log and unlink | all of it | **barrier** |
//!
//! Why barriers: an append of epoch 5 that survives without its election state lets a node win epoch 5 twice;
//! an overwrite that survives without its truncation leaves a log that no leader ever had.
//!
//! `leader-epoch-checkpoint` is never on the path of a commit or an election: it may lag behind the log
//! (recovery adds what is missing), and never runs ahead of it.
//!
//! Zeros behind the last batch of the newest segment are room for more, in a log that was not closed. They are no batch: a
//! crash may keep them or not. They are cut off, durably, before there is a newer segment: Kafka cuts a log at zeros and drops
//! the segments behind them.
//!
//! What a directory holds when it is opened may be in the page cache alone, left there by a process that
//! was killed, or one whose sync failed: it is synced, dropped from the cache and read anew before anything is made
//! of it. What recovery cuts is cut durably.
//!
//! An error from a write or a sync closes the store for good. It is never tried again: a second sync may
//! succeed although the data of the first are gone.

#![forbid(unsafe_code)]

pub mod checkpoint;
mod commit;
mod epoch_checkpoint;
mod error;
pub mod fs;
mod log;
mod log_files;
#[cfg(any(test, feature = "testing"))]
pub mod mem_fs;
pub mod meta_properties;
mod partition_metadata;
#[cfg(any(test, feature = "power-cut"))]
pub mod power_cut;
pub mod quorum_state;
#[cfg(any(test, feature = "testing", feature = "power-cut"))]
mod random;
mod reader;
mod real_fs;
mod recovery;
mod scan;
mod segment;
mod small_file;
mod store;
mod tail;
mod thread;
pub mod verify;

pub use commit::{Committer, EncodedBatch, StoreWrite};
pub use error::StorageError;
pub use fs::{File, FileSystem, OpenHow};
pub use log::RollLimits;
pub use log_files::{BatchFile, FoundBatch, LogFiles, Unsound, read_log};
pub use reader::LogReader;
pub use real_fs::{RealFile, RealFs, RealLock};
pub use recovery::Note;
pub use scan::LogBatch;
pub use store::{LOG_DIR, Opened, Options, Store};
pub use tail::{Tail, TailRead};
pub use thread::{StoreEvent, Submitter, start};

#[cfg(test)]
mod tests;
