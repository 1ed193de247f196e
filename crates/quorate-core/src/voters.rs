//! Voter sets and their history by offset (KIP-853; protocol reference 6.1 to 6.3).
//!
//! The latest entry counts for every decision, committed or not; truncation takes it back.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt;

use crate::ids::{DirectoryId, Endpoints, ListenerName, NodeId, Offset, ReplicaKey};
use crate::message::KRaftVersion;

/// Who votes. At most one entry for each id.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct VoterSet(BTreeMap<NodeId, Voter>);

/// What a voter set says of one voter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Voter {
    /// Its directory; absent for static voters, and then any directory will do.
    pub directory: Option<DirectoryId>,
    /// Where it listens.
    pub endpoints: Endpoints,
    /// The levels of kraft.version that it supports, both inclusive.
    pub kraft_versions: (KRaftVersion, KRaftVersion),
}

impl VoterSet {
    /// A set of these voters; none if an id comes twice.
    pub fn new(voters: impl IntoIterator<Item = (NodeId, Voter)>) -> Option<VoterSet> {
        let mut set = BTreeMap::new();
        for (id, voter) in voters {
            if set.insert(id, voter).is_some() {
                return None;
            }
        }
        Some(VoterSet(set))
    }

    /// How many voters there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The smallest number of voters that is more than half.
    pub fn majority(&self) -> usize {
        self.0.len() / 2 + 1
    }

    /// The voters by id.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, &Voter)> {
        self.0.iter().map(|(id, voter)| (*id, voter))
    }

    /// The voters' ids.
    pub fn ids(&self) -> impl Iterator<Item = NodeId> {
        self.0.keys().copied()
    }

    /// The voter of this id, whatever its directory.
    pub fn find(&self, id: NodeId) -> Option<&Voter> {
        self.0.get(&id)
    }

    /// Whether this replica is a voter: its id is in the set, and its directory too unless the set names
    /// none.
    pub fn contains(&self, replica: &ReplicaKey) -> bool {
        self.key(replica.id).is_some_and(|stored| replica.is_named_by(&stored))
    }

    /// The full key of the voter of this id.
    pub fn key(&self, id: NodeId) -> Option<ReplicaKey> {
        self.0.get(&id).map(|voter| ReplicaKey::new(id, voter.directory))
    }

    /// Whether this replica is the only voter.
    pub fn is_only(&self, replica: &ReplicaKey) -> bool {
        self.0.len() == 1 && self.contains(replica)
    }

    /// The set with the entry of a voter that is in it replaced.
    pub fn with_updated(&self, id: NodeId, voter: Voter) -> VoterSet {
        let mut set = self.clone();
        if let Some(entry) = set.0.get_mut(&id) {
            *entry = voter;
        }
        set
    }

    /// Where a voter listens under this listener.
    pub fn endpoint(&self, id: NodeId, listener: &ListenerName) -> Option<&crate::ids::Endpoint> {
        self.0.get(&id).and_then(|voter| voter.endpoints.get(listener))
    }
}

impl fmt::Display for VoterSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, (id, voter)) in self.iter().enumerate() {
            let separator = if i == 0 { "" } else { ", " };
            write!(f, "{separator}{}", ReplicaKey::new(id, voter.directory))?;
        }
        f.write_str("]")
    }
}

/// Where the voter set and kraft.version come from: control records by offset, or static voters.
///
/// Records of the 0-0 checkpoint stand at offset -1.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct VoterHistory {
    static_voters: VoterSet,
    voters: Vec<(Offset, VoterSet)>,
    kraft_versions: Vec<(Offset, KRaftVersion)>,
}

/// The offset at which the records of the 0-0 checkpoint count.
pub(crate) const BOOTSTRAP_OFFSET: Offset = Offset(-1);

impl VoterHistory {
    pub(crate) fn new(static_voters: VoterSet) -> VoterHistory {
        VoterHistory { static_voters, voters: Vec::new(), kraft_versions: Vec::new() }
    }

    pub(crate) fn voters(&self) -> &VoterSet {
        self.voters.last().map_or(&self.static_voters, |(_, set)| set)
    }

    /// The offset of the record that the voter set comes from; absent for static voters.
    pub(crate) fn voters_offset(&self) -> Option<Offset> {
        self.voters.last().map(|(offset, _)| *offset)
    }

    pub(crate) fn kraft_version(&self) -> KRaftVersion {
        self.kraft_versions.last().map_or(KRaftVersion(0), |(_, version)| *version)
    }

    /// Whether a VotersRecord makes configured static voters meaningless.
    pub(crate) fn ignores_static_voters(&self) -> bool {
        !self.voters.is_empty() && !self.static_voters.is_empty()
    }

    pub(crate) fn add_voters(&mut self, offset: Offset, set: VoterSet) {
        self.voters.push((offset, set));
    }

    pub(crate) fn add_kraft_version(&mut self, offset: Offset, version: KRaftVersion) {
        self.kraft_versions.push((offset, version));
    }

    /// Forgets what stands at or above the new log end.
    pub(crate) fn truncate(&mut self, to: Offset) {
        self.voters.retain(|(offset, _)| *offset < to);
        self.kraft_versions.retain(|(offset, _)| *offset < to);
    }
}
