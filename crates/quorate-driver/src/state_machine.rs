//! What a quorum replicates, and what it is told.

use quorate_core::{Epoch, NodeId, Offset};
use quorate_wire::batch::Batch;

/// What a quorum replicates. Called on one thread, in order, with committed records alone.
pub trait StateMachine: Send + 'static {
    /// Applies a batch of data records. Called once for each batch, in the order of the log; batches of control
    /// records are left out, so offsets have gaps.
    fn apply(&mut self, batch: &CommittedBatch);

    /// The epoch or its leader changed. When this node leads, every record of older epochs has been applied,
    /// and the [token](Leadership::token) lets it append.
    fn leader_changed(&mut self, leadership: &Leadership);
}

/// Who leads, as listeners see it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Leadership {
    /// The epoch.
    pub epoch: Epoch,
    /// Its leader, once known.
    pub leader: Option<NodeId>,
    /// The right to append in this epoch, if this node leads.
    pub token: Option<LeaderToken>,
}

/// A committed batch of data records.
#[derive(Clone, Debug)]
pub struct CommittedBatch(Batch);

impl CommittedBatch {
    /// For the driver: a batch of data records, committed and checked before it was appended. Batches of control
    /// records are not for state machines.
    pub fn new(batch: Batch) -> Option<CommittedBatch> {
        (!batch.is_control()).then_some(CommittedBatch(batch))
    }

    /// The offset of the first record.
    pub fn base_offset(&self) -> Offset {
        Offset(self.0.base_offset())
    }

    /// The offset after the last record.
    pub fn end_offset(&self) -> Offset {
        Offset(self.0.end_offset())
    }

    /// The epoch of the leader that appended it.
    pub fn epoch(&self) -> Epoch {
        Epoch(self.0.leader_epoch())
    }

    /// When the leader made it, in milliseconds since 1970.
    pub fn timestamp(&self) -> i64 {
        self.0.base_timestamp()
    }

    /// The records' offsets and values.
    pub fn records(&self) -> impl Iterator<Item = (Offset, &[u8])> {
        // Whatever is in the log was checked before it was appended.
        let records = self.0.records().into_iter().flatten();
        records
            .map_while(Result::ok)
            .map(|record| (Offset(record.offset), record.value.unwrap_or_default()))
    }
}

/// The right to append in one epoch. It is worth nothing in any other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderToken {
    epoch: Epoch,
}

impl LeaderToken {
    /// For the driver of a replica that leads this epoch.
    pub fn new(epoch: Epoch) -> LeaderToken {
        LeaderToken { epoch }
    }

    /// The epoch that it is for.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }
}
