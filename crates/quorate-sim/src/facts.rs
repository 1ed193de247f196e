//! What is true of the cluster, kept beside it: what every disk holds, what every node has asked for, what is
//! committed. Checkers compare with this, never with what a replica says of itself.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use quorate_core::config::Recovered;
use quorate_core::io::{CorrelationId, ElectionState, Event, Message, WriteId};
use quorate_core::message::{ControlRecord, ReplicaDescription, Request};
use quorate_core::voters::VoterSet;
use quorate_core::{Epoch, Instant, NodeId, Offset, ReplicaKey};
use quorate_driver::{CommittedBatch, Outcome};
use quorate_rpc::records;
use quorate_storage::{EncodedBatch, StoreWrite};
use quorate_wire::batch::BatchHeader;

use crate::clock::Micros;
use crate::disk::SimFs;
use crate::random::Digest;

/// A batch in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) base: Offset,
    pub(crate) end: Offset,
    pub(crate) epoch: Epoch,
    /// A digest of this batch and all before it: equal chains are equal logs.
    pub(crate) chain: u64,
    pub(crate) bytes: Bytes,
}

/// The content of a directory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Image {
    pub(crate) election: Option<ElectionState>,
    pub(crate) log: Vec<Entry>,
    /// The voter sets in the log, each with the number of its batch.
    voters: Vec<(usize, VoterSet)>,
}

impl Image {
    pub(crate) fn end(&self) -> Offset {
        self.log.last().map_or(Offset::ZERO, |entry| entry.end)
    }

    pub(crate) fn last_epoch(&self) -> Epoch {
        self.log.last().map_or(Epoch(0), |entry| entry.epoch)
    }

    pub(crate) fn election_epoch(&self) -> Epoch {
        self.election.as_ref().map_or(Epoch(0), |state| state.epoch)
    }

    /// How many batches lie below this offset.
    pub(crate) fn count_below(&self, offset: Offset) -> usize {
        self.log.partition_point(|entry| entry.end <= offset)
    }

    /// Whether this log has the first `count` batches of another.
    pub(crate) fn has_prefix(&self, other: &[Entry], count: usize) -> bool {
        match count.checked_sub(1) {
            None => true,
            Some(last) => match (self.log.get(last), other.get(last)) {
                (Some(mine), Some(theirs)) => mine.chain == theirs.chain,
                _ => false,
            },
        }
    }

    /// A directory with this election state and an empty log.
    pub(crate) fn of(election: Option<ElectionState>) -> Image {
        Image { election, ..Image::default() }
    }

    /// The batch as it would stand at the end of this log.
    pub(crate) fn next(&self, batch: &EncodedBatch) -> Entry {
        let before = self.log.last().map_or(0, |entry| entry.chain);
        Entry {
            base: batch.base,
            end: batch.end,
            epoch: batch.epoch,
            chain: Digest::chain(before, &batch.bytes),
            bytes: batch.bytes.clone(),
        }
    }

    pub(crate) fn apply(&mut self, write: &StoreWrite) {
        match write {
            StoreWrite::ElectionState(state) => self.election = Some(as_stored(state)),
            StoreWrite::Truncate { to } => {
                let keep = self.count_below(*to);
                self.log.truncate(keep);
                self.voters.retain(|(at, _)| *at < keep);
            }
            StoreWrite::Append(batch) => {
                if let Some(voters) = voters_in(&batch.bytes) {
                    self.voters.push((self.log.len(), voters));
                }
                let entry = self.next(batch);
                self.log.push(entry);
            }
        }
    }

    /// The largest epoch not above the asked one and where it ends, by the naive definition.
    pub(crate) fn end_of_epoch(&self, asked: Epoch) -> Option<(Epoch, Offset)> {
        let last = self.log.iter().rev().find(|entry| entry.epoch <= asked)?;
        Some((last.epoch, last.end))
    }

    /// Each epoch with its first offset.
    pub(crate) fn epochs(&self) -> Vec<(Epoch, Offset)> {
        let mut epochs: Vec<(Epoch, Offset)> = Vec::new();
        for entry in &self.log {
            if epochs.last().is_none_or(|(epoch, _)| *epoch != entry.epoch) {
                epochs.push((entry.epoch, entry.base));
            }
        }
        epochs
    }
}

/// The voter set that a batch brings.
fn voters_in(bytes: &Bytes) -> Option<VoterSet> {
    if !BatchHeader::parse(bytes).is_ok_and(|header| header.is_control()) {
        return None;
    }
    let batches = records::check(bytes.clone()).batches;
    let control = batches.into_iter().flat_map(|batch| batch.control);
    let sets = control.filter_map(|(_, record)| match record {
        ControlRecord::Voters(set) => Some(set),
        _ => None,
    });
    sets.last()
}

/// What the file keeps of an election state: version 0 has no directory, and lists voters for information.
pub(crate) fn as_stored(state: &ElectionState) -> ElectionState {
    let mut stored = ElectionState { voters: Vec::new(), ..state.clone() };
    if !state.kraft_version.is_reconfigurable() {
        stored.voted = state.voted.map(|voted| ReplicaKey::new(voted.id, None));
    }
    stored
}

/// What is true of a node.
#[derive(Clone, Debug)]
pub(crate) struct NodeFacts {
    pub(crate) id: NodeId,
    pub(crate) key: ReplicaKey,
    /// Its own clock.
    pub(crate) local: Micros,
    /// Its voters before any VotersRecord.
    pub(crate) first_voters: VoterSet,
    pub(crate) is_up: bool,
    /// Its disk is gone for good.
    pub(crate) is_lost: bool,
    /// What is on stable media, as far as storage has said so.
    pub(crate) durable: Image,
    /// What its process sees.
    pub(crate) view: Image,
    /// What was asked for and is not reported as durable.
    pub(crate) pending: VecDeque<(WriteId, StoreWrite)>,
    pub(crate) role: &'static str,
    pub(crate) role_epoch: Epoch,
    pub(crate) high_watermark: Offset,
    pub(crate) described: Option<ReplicaDescription>,
}

impl NodeFacts {
    pub(crate) fn is_leader(&self) -> bool {
        self.is_up && self.role == "leader"
    }

    /// The voter set that counts for what its process sees.
    pub(crate) fn voters(&self) -> &VoterSet {
        self.view.voters.last().map_or(&self.first_voters, |(_, set)| set)
    }
}

/// What is true of the cluster.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) now: Micros,
    pub(crate) nodes: Vec<NodeFacts>,
    /// What is committed, and the epoch of the leader that committed it.
    pub(crate) committed: Vec<(Entry, Epoch)>,
    /// Disks that are gone, by the key that they had.
    pub(crate) graves: BTreeMap<ReplicaKey, Image>,
    /// The end of what clients know to be committed.
    pub(crate) acknowledged: Offset,
    /// After how long a Fetch may be given up.
    pub(crate) fetch_patience: Micros,
}

impl Facts {
    /// What is or was durable on the disk of a voter; none if its disk never was there.
    pub(crate) fn disk_of(&self, voter: &ReplicaKey) -> Option<&Image> {
        let alive = self.nodes.iter().find(|node| node.key.is_named_by(voter));
        alive.map(|node| &node.durable).or_else(|| self.graves.get(voter))
    }

    pub(crate) fn committed_end(&self) -> Offset {
        self.committed.last().map_or(Offset::ZERO, |(entry, _)| entry.end)
    }

    /// Who leads the newest epoch.
    pub(crate) fn leader(&self) -> Option<usize> {
        let leading = self.nodes.iter().enumerate().filter(|(_, node)| node.is_leader());
        leading.max_by_key(|(_, node)| node.role_epoch).map(|(index, _)| index)
    }

    /// Takes over what was seen, after the checkers have.
    pub(crate) fn take(&mut self, seen: &Seen<'_>) {
        match seen {
            Seen::Started { node, found, description, .. } => {
                let facts = &mut self.nodes[*node];
                facts.durable = (*found).clone();
                facts.view = (*found).clone();
                facts.pending.clear();
                facts.is_up = true;
                facts.role = description.role;
                facts.role_epoch = description.epoch;
                facts.high_watermark = Offset::ZERO;
                facts.described = None;
            }
            Seen::Submitted { node, id, write } => {
                let facts = &mut self.nodes[*node];
                facts.view.apply(write);
                facts.pending.push_back((*id, (*write).clone()));
            }
            Seen::Persisted { node, write } => {
                let facts = &mut self.nodes[*node];
                facts.durable.apply(write);
                facts.pending.pop_front();
            }
            Seen::Event { node, event } => match event {
                Event::Role { role, epoch, .. } => {
                    self.nodes[*node].role = role;
                    self.nodes[*node].role_epoch = *epoch;
                }
                Event::HighWatermark(high_watermark) => {
                    let facts = &mut self.nodes[*node];
                    facts.high_watermark = *high_watermark;
                    let below = facts.view.count_below(*high_watermark);
                    let epoch = facts.role_epoch;
                    let news = facts.view.log.get(self.committed.len()..below).unwrap_or(&[]);
                    self.committed.extend(news.iter().map(|entry| (entry.clone(), epoch)));
                }
                _ => {}
            },
            Seen::Woke { node, description, .. } => {
                self.nodes[*node].described = Some((*description).clone());
            }
            Seen::Crashed { node } => {
                self.nodes[*node].is_up = false;
                self.nodes[*node].role = "down";
            }
            Seen::Outcome { outcome: Outcome::Committed { offset, .. }, .. } => {
                self.acknowledged = self.acknowledged.max(offset.plus(1));
            }
            _ => {}
        }
    }
}

/// Something that happened.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seen<'a> {
    /// A process started on what storage recovered. The facts still are those of before.
    Started {
        node: usize,
        recovered: &'a Recovered,
        found: &'a Image,
        description: &'a ReplicaDescription,
    },
    /// A replica asked for a write.
    Submitted { node: usize, id: WriteId, write: &'a StoreWrite },
    /// Storage has done it.
    Persisted { node: usize, write: &'a StoreWrite },
    /// A replica tells its listeners.
    Event { node: usize, event: &'a Event },
    /// A replica sends; an answer comes with what was asked.
    Sent { node: usize, message: &'a Message, asked: Option<&'a Request> },
    /// A request of a replica has come to its end.
    Ended { node: usize, id: CorrelationId },
    /// A process has taken its inputs and done what they asked for.
    Woke {
        node: usize,
        description: &'a ReplicaDescription,
        now: Instant,
        deadline: Option<(Instant, quorate_core::io::Timeout)>,
        inputs: usize,
        messages: usize,
    },
    /// A process is gone.
    Crashed { node: usize },
    /// A client proposes to a node.
    Proposed { proposal: u64, values: &'a [Bytes] },
    /// A client learns what became of it, from this node. The disks are there to be looked at: none where the
    /// medium itself has gone wrong, or is gone.
    Outcome { node: usize, proposal: u64, outcome: &'a Outcome, disks: &'a [Option<SimFs>] },
    /// A state machine gets a batch.
    Applied { node: usize, batch: &'a CommittedBatch },
}
