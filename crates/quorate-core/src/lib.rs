//! KRaft as a state machine: no I/O, no clock, no threads.
//!
//! A [`Replica`] is a value. It is told what happened and when, and says what it wants done: see
//! [`io`] for the whole boundary. The same inputs give the same outputs.
//!
//! Sources: KIP-595 (the protocol), KIP-853 (voters in the log), KIP-996 (pre-vote), KIP-1166 (the
//! high watermark in Fetch).

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod append;
mod chance;
pub mod config;
mod hints;
pub mod ids;
pub mod io;
mod log;
pub mod message;
mod outbox;
mod quorum;
mod replica;
mod role;
mod rpc;
mod start;
mod timeout;
pub mod voters;

pub use ids::{
    DirectoryId, Endpoint, Endpoints, Epoch, Instant, ListenerName, NodeId, Offset, OffsetAndEpoch,
    ReplicaKey,
};
pub use replica::{Replica, StartError};
