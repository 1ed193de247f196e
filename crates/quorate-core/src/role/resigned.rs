//! Resigned: led this epoch, and nobody will lead the rest of it.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::ids::{Instant, NodeId, ReplicaKey};

/// Sends EndQuorumEpoch to every voter until each has answered, or its time is over.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Resigned {
    /// Who should succeed, best first; empty after a restart.
    pub(crate) preferred: Vec<ReplicaKey>,
    pub(crate) unacknowledged: BTreeSet<NodeId>,
    pub(crate) election_deadline: Instant,
}
