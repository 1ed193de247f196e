//! Unattached: an epoch whose leader is unknown, or known by id but not by endpoint.

use crate::ids::{Instant, NodeId};

/// Looks for a leader at the bootstrap servers; a voter campaigns when its time is over.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Unattached {
    /// The leader, where its endpoints are not known.
    pub(crate) leader: Option<NodeId>,
    /// When to campaign; never for observers.
    pub(crate) election_deadline: Option<Instant>,
}
