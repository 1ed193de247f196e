//! Candidate: has voted for itself in a new epoch and asks for votes.

use super::Tally;
use crate::ids::Instant;

/// Asks for votes until it leads, or until its time is over: a lost election is waited out, so that
/// losers do not collide again (KAFKA-18345).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Candidate {
    pub(crate) tally: Tally,
    pub(crate) election_deadline: Instant,
}
