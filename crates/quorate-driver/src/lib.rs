//! What a driver does between core, RPCs and storage: no runtime, no threads, no sockets.
//!
//! `quorate-node` runs it on tokio and real disks, the simulator on virtual time: both drive a replica through
//! the same code.

#![forbid(unsafe_code)]

mod directory;
mod log;
mod outcome;
mod proposals;
mod state_machine;

pub use directory::{Directory, OpenError, random_directory_id};
pub use log::{Filled, Log, unreadable};
pub use outcome::{NotAppended, Outcome};
pub use proposals::Proposals;
pub use state_machine::{CommittedBatch, LeaderToken, Leadership, StateMachine};
