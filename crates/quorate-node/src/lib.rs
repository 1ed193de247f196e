//! A replica on real sockets and disks, and the library's API.
//!
//! An embedder brings a [`StateMachine`] and gets a replicated log under it:
//!
//! ```no_run
//! use bytes::Bytes;
//! use quorate_node::{CommittedBatch, Directory, Leadership, Node, NodeConfig, Outcome, StateMachine};
//! use quorate_storage::RealFs;
//!
//! struct Count(usize);
//!
//! impl StateMachine for Count {
//!     fn apply(&mut self, batch: &CommittedBatch) {
//!         self.0 += batch.records().count();
//!     }
//!     fn leader_changed(&mut self, _: &Leadership) {}
//! }
//!
//! # async fn example(options: quorate_storage::Options) -> Result<(), Box<dyn std::error::Error>> {
//! let directory = Directory::open(RealFs, options)?;
//! let config = NodeConfig::new(directory.id(), 1, "CONTROLLER", "127.0.0.1", 9093);
//! let node = Node::start(directory, config, Count(0))?;
//! let mut leadership = node.handle().leadership();
//! let token = leadership.wait_for(|now| now.token.is_some()).await?.token.clone().expect("just seen");
//! match node.handle().append(&token, vec![Bytes::from_static(b"a record")]).await {
//!     Outcome::Committed { offset, .. } => println!("committed at {offset}"),
//!     Outcome::NotAppended(reason) => println!("not appended, try again: {reason}"),
//!     Outcome::OutcomeUnknown { offset, epoch } => println!("{offset}@{epoch} may still commit, once"),
//! }
//! node.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! A node has a few threads of its own: the *driver* (tokio's current-thread runtime with the
//! replica and all sockets), the *commit* thread of `quorate-storage`, one for cold reads, and one on which
//! the state machine applies. Only this crate reads a clock.

#![forbid(unsafe_code)]

mod apply;
mod cold;
mod config;
mod driver;
mod handle;
mod node;
mod observers;

pub use config::NodeConfig;
pub use handle::{Handle, Pending};
pub use node::{Node, StartError, StopReason};
pub use quorate_driver::{
    CommittedBatch, Directory, LeaderToken, Leadership, NotAppended, OpenError, Outcome,
    StateMachine, random_directory_id,
};
