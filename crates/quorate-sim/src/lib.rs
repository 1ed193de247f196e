//! Seeded clusters on a simulated clock, network and disk, checked after every event.
//!
//! The core, the codec and the storage code that ship run on virtual time: one event after another, no threads,
//! no real clock, and one seed that decides everything. A run has a [`Plan`](plan::Plan), drawn beforehand, so
//! that a failure can be cut down to a short story.

#![forbid(unsafe_code)]

mod checkers;
pub mod clock;
pub mod counters;
mod disk;
mod facts;
pub mod history;
mod machine;
pub mod plan;
pub mod random;
pub mod run;
pub mod runner;
pub mod scenarios;
mod shrink;
pub mod statistics;
pub mod story;
mod trace;
pub mod workload;
mod world;

pub use disk::DiskOperation;
pub use world::Failure;
