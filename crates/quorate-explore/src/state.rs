//! A state of the whole: every replica with its disk, the messages in flight, what history must be remembered
//! for the rules, and how much of the bound is used up.

use std::hash::Hasher;

use crate::intern::{Fingerprint, Twice};

/// So many nodes at the most.
pub(crate) const MAX_NODES: usize = 4;

/// A state, by the numbers of its parts.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) nodes: [u32; MAX_NODES],
    pub(crate) history: u32,
    pub(crate) spent: Spent,
    /// One bit a node: its disk is slow, until it has nothing to write.
    pub(crate) slow_disks: u8,
    /// Items by number, ascending; one may be there twice.
    pub(crate) bag: Vec<u32>,
}

/// How much of the bound is used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Spent {
    pub(crate) timeouts: u8,
    pub(crate) proposals: u8,
    pub(crate) crashes: u8,
    pub(crate) losses: u8,
    pub(crate) delays: u8,
}

/// A call in one of its three stages. What is held back may arrive at any later moment or never.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Item {
    /// A request in flight. One that is late counts no more for its asker; nobody hears of its answer.
    Request { from: u8, slot: i32, to: u8, request: u32, is_late: bool, is_held: bool },
    /// The peer has the request and has not answered; it knows the call by asker and tag.
    Waiting { from: u8, slot: i32, to: u8, tag: u8, is_late: bool },
    /// An answer in flight, which its asker awaits.
    Answer { from: u8, to: u8, slot: i32, answer: u32, is_held: bool },
}

/// What may happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// A request or answer in flight arrives.
    Deliver(u32),
    /// What would arrive now is held back.
    HoldBack(u32),
    /// A call is lost in one of its stages, and the asker hears of it.
    Lose { asker: u8, slot: i8 },
    /// The oldest pending write of a node is durable, and it hears of it.
    Durable(u8),
    /// What would be durable now is not: the node's disk is slow for a while.
    SlowDown(u8),
    /// A node's clock moves to a deadline that is no timeout of its role.
    Tick(u8),
    /// A timeout of a node's role passes.
    Timeout(u8),
    /// A leader is given a record.
    Propose(u8),
    /// A node crashes, keeps one of the directories that are possible then, and restarts.
    Crash { node: u8, way: u8 },
}

impl State {
    /// What tells this state from others.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        let Spent { timeouts, proposals, crashes, losses, delays } = self.spent;
        let spent = [timeouts, proposals, crashes, losses, delays, self.slow_disks, 0, 0];
        let [a, b, c, d] = self.nodes.map(u64::from);
        let mut hash = Twice::default();
        hash.write_u64(a << 32 | b);
        hash.write_u64(c << 32 | d);
        hash.write_u64(u64::from_le_bytes(spent));
        hash.write_u32(self.history);
        self.bag.iter().for_each(|number| hash.write_u32(*number));
        hash.fingerprint()
    }

    pub(crate) fn add(&mut self, item: u32) {
        let place = self.bag.partition_point(|other| *other < item);
        self.bag.insert(place, item);
    }

    /// Takes one of these items out; whether there was one.
    pub(crate) fn remove(&mut self, item: u32) -> bool {
        let place = self.bag.binary_search(&item);
        if let Ok(place) = place {
            self.bag.remove(place);
        }
        place.is_ok()
    }
}
