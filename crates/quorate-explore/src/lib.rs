//! The shipping core explored exhaustively, by a breadth-first search of its own.
//!
//! The states are real [`Replica`](quorate_core::Replica)s with their disks and the messages in flight; from each
//! state everything is tried that may happen: any message arrives, in any order, late or never; a pending write
//! becomes durable; a timeout passes; a leader is given a record; a replica crashes, keeps any part of its
//! unsynced writes that the write barriers allow, and restarts on it. After each event the rules of
//! protocol reference 8.1 are checked, over what is persisted and over all of history. The search ends when
//! there is no new state, so within its [`Bound`] nothing is left out but what is listed here:
//!
//! - **Most things are prompt.** In bounds with a number of delays, messages arrive and writes are durable at
//!   once, in a fixed order, but for so many that are put off: a message held back arrives at any later moment
//!   or never, and the writes of a slow disk are durable one by one at any later moment. Records are proposed and
//!   timeouts pass when nothing happens by itself; a crash comes at any moment.
//! - **States are found by their hash**, 128 bits of it. What a replica leaves out of its hash (instants, chance,
//!   numbers that only name things, what is told to people) decides nothing but time, and time is free here.
//! - **Time is each replica's own.** A clock stands still until the next deadline of its replica, or the next
//!   timeout of its role, is let pass; when that is, relative to everything else, is free. Which of a replica's
//!   own deadlines comes first follows from the configured durations and one draw of its chance.
//! - **Requests do not run out of time by themselves**: a call is lost, and the asker hears of it, at any moment
//!   and as often as the bound has losses. A message that is never delivered is lost in silence, without bound.
//! - **Nobody asks twice at once**, so the late messages are requests of earlier roles. How many of them are in
//!   flight is bounded. Their answers are dropped: each time a request is forgotten, it is tried that its answer
//!   changes nothing.
//! - **A crash and the restart are one event.** While it is down a replica does nothing, which the other
//!   replicas cannot tell from one that is up and silent.
//! - **Durable writes are reported one by one.** Group commit reports several at once, and then what happens
//!   between does not.
//!
//! What a node makes of an event depends on the node and the event alone: each such pair is worked out once, by
//! the core, and states are lists of numbers.

#![forbid(unsafe_code)]

mod batches;
mod bound;
mod cluster;
mod disk;
mod intern;
mod node;
mod rules;
mod search;
mod state;
mod story;
mod world;

pub use bound::{BOUNDS, Bound};
pub use search::{Figures, Violation, explore};
