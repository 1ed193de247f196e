//! Proposals: accumulate, cut, append.
//!
//! All records of a proposal stand in one batch, so that they commit or vanish together; several proposals may
//! share it. The linger is an upper bound: an open batch is cut when no append of this node is unflushed, when
//! a voter's Fetch is parked, at the size limit, or when the linger has passed. The cut itself happens at a
//! [`Tick`](crate::io::Input::Tick) that is due at once, so that all proposals which the driver had at hand share a batch.

use alloc::vec;
use alloc::vec::Vec;

use bytes::Bytes;

use crate::ids::{Epoch, Instant, NodeId, Offset};
use crate::io::{Batch, Content, Event, NotAppended, ProposalId, Write};
use crate::message::ControlRecord;
use crate::outbox::Turn;
use crate::replica::Replica;
use crate::role::Role;
use crate::voters::{BOOTSTRAP_OFFSET, Voter};

/// The batch that a leader is filling.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct OpenBatch {
    records: Vec<Bytes>,
    /// Which proposals the records belong to, and how many of them each has.
    pub(crate) proposals: Vec<(ProposalId, usize)>,
    records_len: usize,
    opened: Option<Instant>,
}

/// Room for so many records and proposals is kept from one batch to the next, at the most.
const KEPT_ROOM: usize = 1024;

/// The length of a record batch's header (record batch v2).
const BATCH_HEADER_LEN: usize = 61;

fn varint_len(value: usize) -> usize {
    // ZigZag doubles a number that is not negative.
    let bits = usize::BITS - (value << 1).leading_zeros();
    usize::try_from(bits.div_ceil(7)).unwrap_or(usize::MAX).max(1)
}

/// What a data record takes in a batch: attributes, timestamp delta, offset delta, no key, value, no headers.
fn record_len(offset_delta: usize, value_len: usize) -> usize {
    let body = 1 + 1 + varint_len(offset_delta) + 1 + varint_len(value_len) + value_len + 1;
    varint_len(body) + body
}

/// What a control record takes in a batch, by the encodings of storage reference section 6.
fn control_record_len(offset_delta: usize, record: &ControlRecord) -> usize {
    // Compact lengths are one larger, and not zigzag.
    let compact = |len: usize| varint_len((len + 1).div_ceil(2));
    let value_len = match record {
        ControlRecord::LeaderChange { voters, granting, .. } => {
            2 + 4
                + compact(voters.len())
                + 5 * voters.len()
                + compact(granting.len())
                + 5 * granting.len()
                + 1
        }
        ControlRecord::KRaftVersion(_) => 2 + 2 + 1,
        ControlRecord::Voters(voters) => {
            let voter_len = |voter: &Voter| {
                let endpoints: usize = voter
                    .endpoints
                    .iter()
                    .map(|(name, endpoint)| {
                        let (name, host) = (name.as_str().len(), endpoint.host.len());
                        compact(name) + name + compact(host) + host + 2 + 1
                    })
                    .sum();
                4 + 16 + compact(voter.endpoints.len()) + endpoints + 2 + 2 + 1 + 1
            };
            2 + compact(voters.len())
                + voters.iter().map(|(_, voter)| voter_len(voter)).sum::<usize>()
                + 1
        }
        ControlRecord::SnapshotHeader { .. } => 2 + 8 + 1,
        ControlRecord::SnapshotFooter => 2 + 1,
    };
    // The key is a version and a type, two bytes each.
    let body = 1 + 1 + varint_len(offset_delta) + 1 + 4 + varint_len(value_len) + value_len + 1;
    varint_len(body) + body
}

impl OpenBatch {
    fn len_with(&self, records: &[Bytes]) -> usize {
        let added: usize = records
            .iter()
            .enumerate()
            .map(|(i, value)| record_len(self.records.len() + i, value.len()))
            .sum();
        BATCH_HEADER_LEN + self.records_len + added
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }
}

impl Replica {
    /// Takes a proposal of the local state machine, or says why not.
    pub(crate) fn on_propose(
        &mut self,
        turn: &mut Turn<'_>,
        id: ProposalId,
        epoch: Epoch,
        records: Vec<Bytes>,
    ) {
        let refused = match &self.role {
            Role::Leader(leader) if epoch == self.epoch => {
                let bytes = OpenBatch::default().len_with(&records);
                let waiting = leader.uncommitted_bytes() + leader.open.records_len;
                if records.is_empty() || records.iter().any(Bytes::is_empty) {
                    Some(NotAppended::Empty)
                } else if bytes > self.config.max_batch_bytes {
                    Some(NotAppended::TooLarge { bytes, limit: self.config.max_batch_bytes })
                } else if waiting > 0 && waiting + bytes > self.config.max_uncommitted_bytes {
                    Some(NotAppended::QueueFull)
                } else {
                    None
                }
            }
            _ => Some(NotAppended::NotLeader { epoch: self.epoch, leader: self.other_leader() }),
        };
        if let Some(reason) = refused {
            turn.output.events.push(Event::NotAppended { id, reason });
            return;
        }
        if let Role::Leader(leader) = &self.role
            && !leader.open.is_empty()
            && leader.open.len_with(&records) > self.config.max_batch_bytes
        {
            self.cut_open_batch(turn);
        }
        if let Role::Leader(leader) = &mut self.role {
            let open = &mut leader.open;
            open.opened.get_or_insert(turn.now);
            open.records_len = open.len_with(&records) - BATCH_HEADER_LEN;
            open.proposals.push((id, records.len()));
            open.records.extend(records);
        }
    }

    /// When the open batch is to be cut, if there is one.
    pub(crate) fn linger_deadline(&self, now: Instant) -> Option<Instant> {
        let Role::Leader(leader) = &self.role else {
            return None;
        };
        let opened = leader.open.opened?;
        let cut_now =
            !self.log.has_unflushed_appends() || leader.has_parked_voter(self.voters.voters());
        Some(if cut_now { now } else { opened + self.config.linger })
    }

    /// Appends the open batch.
    pub(crate) fn cut_open_batch(&mut self, turn: &mut Turn<'_>) {
        let Role::Leader(leader) = &mut self.role else {
            return;
        };
        if leader.open.is_empty() {
            return;
        }
        // The records go to the driver. The next batch will be about as large.
        let room = leader.open.records.len().min(KEPT_ROOM);
        let next = OpenBatch { records: Vec::with_capacity(room), ..OpenBatch::default() };
        let mut open = core::mem::replace(&mut leader.open, next);
        let encoded_len = BATCH_HEADER_LEN + open.records_len;
        let (base, end) =
            self.append_own(turn, open.records.len(), encoded_len, Content::Data(open.records));
        let mut next = base;
        for (id, count) in open.proposals.drain(..) {
            let proposal_end = next.plus(count);
            let event = Event::Appended { id, base: next, end: proposal_end, epoch: self.epoch };
            turn.output.events.push(event);
            next = proposal_end;
        }
        assert!(next == end, "every record belongs to a proposal");
        if let Role::Leader(leader) = &mut self.role {
            open.proposals.shrink_to(KEPT_ROOM);
            leader.open.proposals = open.proposals;
        }
        self.on_log_grown(turn);
    }

    /// The first batch of an epoch: the leader change and, where the log does not say it yet, who votes
    /// (KIP-595, KIP-853).
    pub(crate) fn append_start_of_epoch(&mut self, turn: &mut Turn<'_>, granting: Vec<NodeId>) {
        let voters = self.voters.voters().clone();
        let mut records = vec![ControlRecord::LeaderChange {
            leader: self.config.node,
            voters: voters.ids().collect(),
            granting,
        }];
        let mine = Voter {
            directory: Some(self.config.directory),
            endpoints: self.config.endpoints.clone(),
            kraft_versions: crate::message::KRaftVersion::SUPPORTED,
        };
        let is_new = self.voters.voters_offset() == Some(BOOTSTRAP_OFFSET);
        if self.voters.kraft_version().is_reconfigurable()
            && (is_new || voters.find(self.config.node).is_some_and(|stored| *stored != mine))
        {
            records.push(ControlRecord::KRaftVersion(self.voters.kraft_version()));
            records.push(ControlRecord::Voters(voters.with_updated(self.config.node, mine)));
        }
        self.append_control(turn, records);
    }

    /// Appends control records in a batch of their own; they count from now on.
    fn append_control(&mut self, turn: &mut Turn<'_>, records: Vec<ControlRecord>) {
        let encoded_len = BATCH_HEADER_LEN
            + records
                .iter()
                .enumerate()
                .map(|(i, record)| control_record_len(i, record))
                .sum::<usize>();
        let (base, _) =
            self.append_own(turn, records.len(), encoded_len, Content::Control(records.clone()));
        for (i, record) in records.into_iter().enumerate() {
            self.read_control(base.plus(i), record);
        }
        self.on_log_grown(turn);
    }

    fn append_own(
        &mut self,
        turn: &mut Turn<'_>,
        count: usize,
        encoded_len: usize,
        content: Content,
    ) -> (Offset, Offset) {
        let (base, end) = (self.log.end(), self.log.end().plus(count));
        let batch = Batch { base, end, epoch: self.epoch, encoded_len, content };
        let write = self.outbox.write(turn, Write::Append(batch));
        self.log.append(write, self.epoch, base, end);
        if let Role::Leader(leader) = &mut self.role {
            leader.on_appended(end, encoded_len);
        }
        (base, end)
    }

    /// A control record is in the log: voters and kraft.version count at once, committed or not (KIP-853).
    pub(crate) fn read_control(&mut self, offset: Offset, record: ControlRecord) {
        match record {
            ControlRecord::KRaftVersion(version) => self.voters.add_kraft_version(offset, version),
            ControlRecord::Voters(set) => {
                self.voters.add_voters(offset, set);
                if let Role::Leader(leader) = &mut self.role {
                    leader.on_voters(self.voters.voters());
                }
            }
            ControlRecord::LeaderChange { .. }
            | ControlRecord::SnapshotHeader { .. }
            | ControlRecord::SnapshotFooter => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_those_of_the_worked_encodings() {
        // Storage reference 17.5: a NoOpRecord of 4 bytes takes 72 bytes as a batch.
        assert_eq!(BATCH_HEADER_LEN + record_len(0, 4), 72);
        // 17.3: a LeaderChange of one voter takes 91.
        let change = ControlRecord::LeaderChange {
            leader: NodeId(1),
            voters: vec![NodeId(1)],
            granting: vec![NodeId(1)],
        };
        assert_eq!(BATCH_HEADER_LEN + control_record_len(0, &change), 91);
        assert_eq!(
            [varint_len(0), varint_len(63), varint_len(64), varint_len(8191), varint_len(8192)],
            [1, 1, 2, 2, 3]
        );
    }
}
