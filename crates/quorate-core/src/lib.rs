//! KRaft as a state machine: no I/O, no clock, no threads.
//!
//! A `Replica` is a value. It is told what happened and when, and says what it wants done: see
//! [`io`] for the whole boundary. The same inputs give the same outputs.
//!
//! Sources: KIP-595 (the protocol), KIP-853 (voters in the log), KIP-996 (pre-vote), KIP-1166 (the
//! high watermark in Fetch).

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod config;
pub mod ids;
pub mod io;
pub mod message;
pub mod voters;

pub use ids::{
    DirectoryId, Endpoint, Endpoints, Epoch, Instant, ListenerName, NodeId, Offset, OffsetAndEpoch,
    ReplicaKey,
};
