//! What the cluster replicates: an embedder's own state machine, or a ledger of our own.

use bytes::Bytes;
use quorate_core::NodeId;
use quorate_driver::{CommittedBatch, Leadership, StateMachine};

use crate::random::Digest;

/// A state machine and the commands that clients give it.
pub trait Workload: Clone + Send + Sync + 'static {
    /// The state machine, made anew at every start of a node.
    type Machine: StateMachine;

    /// A state machine that has applied nothing.
    fn machine(&self, node: NodeId) -> Self::Machine;

    /// The n-th command, of about this size. No two of a run may be equal, or none could be told from a double,
    /// and none is empty.
    fn command(&self, n: u64, size: usize) -> Bytes;

    /// A digest of its state: equal where the same was applied. It is compared at the end of a run.
    fn digest(&self, machine: &Self::Machine) -> u64;
}

/// The workload of our own scenarios: a ledger of everything that was applied.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ledger;

/// The state of a [`Ledger`].
#[derive(Clone, Copy, Debug, Default)]
pub struct LedgerMachine {
    digest: Digest,
}

impl StateMachine for LedgerMachine {
    fn apply(&mut self, batch: &CommittedBatch) {
        for (offset, value) in batch.records() {
            self.digest.add(u64::try_from(offset.0).unwrap_or(0));
            self.digest.add_bytes(value);
        }
    }

    fn leader_changed(&mut self, _: &Leadership) {}
}

impl Workload for Ledger {
    type Machine = LedgerMachine;

    fn machine(&self, _: NodeId) -> LedgerMachine {
        LedgerMachine::default()
    }

    fn command(&self, n: u64, size: usize) -> Bytes {
        let mut command = format!("p{n} ").into_bytes();
        command.resize(command.len() + size, b'.');
        Bytes::from(command)
    }

    fn digest(&self, machine: &LedgerMachine) -> u64 {
        machine.digest.value()
    }
}
