//! Seeded clusters on a simulated clock, network and disk, checked after every event.
//!
//! The core, the codec and the storage code that ship run on virtual time: one event after another, no threads,
//! no real clock, and one seed that decides everything. A run has a [`Plan`](plan::Plan), drawn beforehand, so
//! that a failure can be cut down to a short story.
//!
//! # How it hangs together
//!
//! `world.rs` is the event loop. A [`Plan`](plan::Plan) holds the cluster, its rates and its schedule of
//! [`Action`](plan::Action)s; `world/drive.rs` is the node's driver loop over `quorate-driver`,
//! `world/storage.rs` its commit thread, `world/network.rs` the wire. `facts.rs` keeps what is true beside the
//! replicas (what each disk holds, what is committed), and every checker compares what it sees with that.
//!
//! - A **fault**: a variant of [`Action`](plan::Action), an arm in `world/faults.rs`, a
//!   [`Count`](counters::Count) so that it shows how often it came, a line in `scenarios/default.rs`.
//! - A **checker**: a file in `checkers/` that implements `Checker` over `Seen`, and a line in
//!   `checkers.rs`. It gets the facts of just before the event.
//! - A **scenario**: a file in `scenarios/` with a plan and what is expected of the run's
//!   [`History`](history::History), and a line in `scenarios.rs`.
//!
//! # Your own state machine
//!
//! Implement [`Workload`](workload::Workload) and run seeds with it. `examples/bank.rs` is a whole program to copy.
//!
//! ```
//! use bytes::Bytes;
//! use quorate_core::NodeId;
//! use quorate_driver::{CommittedBatch, Leadership, StateMachine};
//! use quorate_sim::{runner, runner::Options, scenarios, workload::Workload};
//!
//! #[derive(Clone)]
//! struct Counting;
//!
//! struct Counter(u64);
//!
//! impl StateMachine for Counter {
//!     fn apply(&mut self, batch: &CommittedBatch) {
//!         self.0 += batch.records().count() as u64;
//!     }
//!     fn leader_changed(&mut self, _: &Leadership) {}
//! }
//!
//! impl Workload for Counting {
//!     type Machine = Counter;
//!     fn machine(&self, _: NodeId) -> Counter {
//!         Counter(0)
//!     }
//!     fn command(&self, n: u64, _size: usize) -> Bytes {
//!         Bytes::from(format!("add one, for the {n}th time"))
//!     }
//!     fn digest(&self, machine: &Counter) -> u64 {
//!         machine.0
//!     }
//! }
//!
//! # fn main() -> anyhow::Result<()> {
//! let scenario = scenarios::find("slow-start").expect("it is there");
//! let (statistics, failed) = runner::run_seeds(scenario, 0..3, Options::with_jobs(2), &Counting)?;
//! assert_eq!(failed, None);
//! assert_eq!(statistics.runs, 3);
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

pub mod checkers;
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
pub mod script;
mod shrink;
pub mod statistics;
pub mod story;
mod trace;
pub mod workload;
mod world;

pub use disk::DiskOperation;
pub use world::Failure;
