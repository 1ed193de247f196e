//! Leader: appends, counts who holds what, and proves to itself that a majority still follows.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use crate::append::OpenBatch;
use crate::ids::{Instant, NodeId, Offset, ReplicaKey};
use crate::io::RequestId;
use crate::message::{FetchRequest, ReplicaProgress, Via};
use crate::quorum;
use crate::voters::VoterSet;

/// Observers that have not fetched for so long are forgotten.
const OBSERVER_SESSION: Duration = Duration::from_secs(300);

/// So many observers are remembered at the most.
const MAX_OBSERVERS: usize = 4096;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Leader {
    /// The offset of this epoch's first record. The high watermark is known once it lies above (Raft §5.4.2).
    pub(crate) epoch_start: Offset,
    me: ReplicaKey,
    voters: BTreeMap<NodeId, Progress>,
    observers: BTreeMap<ReplicaKey, Progress>,
    /// Voters other than this one that were heard from since the last majority, ascending.
    heard: Vec<NodeId>,
    pub(crate) check_quorum_deadline: Instant,
    pub(crate) begin_quorum_deadline: Instant,
    pub(crate) parked: VecDeque<Parked>,
    pub(crate) open: OpenBatch,
    /// The ends of this epoch's batches that are not committed, with their lengths.
    uncommitted: VecDeque<(Offset, usize)>,
    uncommitted_bytes: usize,
    /// Where the voters' ends are sorted; empty but for its memory.
    ends: Vec<Option<Offset>>,
}

/// How far a replica has come.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
struct Progress {
    end: Option<Offset>,
    last_fetch: Option<Instant>,
    last_caught_up: Option<Instant>,
    leader_end_at_fetch: Offset,
}

/// A Fetch that waits for news.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Parked {
    pub(crate) id: RequestId,
    pub(crate) via: Via,
    pub(crate) request: FetchRequest,
    pub(crate) until: Instant,
}

impl Leader {
    pub(crate) fn new(
        now: Instant,
        epoch_start: Offset,
        me: ReplicaKey,
        voters: &VoterSet,
        check_quorum_timeout: Duration,
    ) -> Leader {
        Leader {
            epoch_start,
            me,
            voters: voters.ids().map(|id| (id, Progress::default())).collect(),
            observers: BTreeMap::new(),
            heard: Vec::new(),
            check_quorum_deadline: now + check_quorum_timeout,
            begin_quorum_deadline: now,
            parked: VecDeque::new(),
            open: OpenBatch::default(),
            uncommitted: VecDeque::new(),
            uncommitted_bytes: 0,
            ends: Vec::new(),
        }
    }

    /// Notes a Fetch of another replica, which acknowledges all below its offset.
    /// Returns what a voter had acknowledged before, if it now acknowledges less.
    pub(crate) fn on_fetch(
        &mut self,
        now: Instant,
        replica: ReplicaKey,
        offset: Offset,
        log_end: Offset,
        voters: &VoterSet,
    ) -> Option<Offset> {
        let is_voter = voters.contains(&replica);
        let progress = if is_voter {
            self.voters.entry(replica.id).or_default()
        } else {
            if self.observers.len() >= MAX_OBSERVERS && !self.observers.contains_key(&replica) {
                let idlest = self.observers.iter().min_by_key(|(_, progress)| progress.last_fetch);
                if let Some(idlest) = idlest.map(|(key, _)| *key) {
                    self.observers.remove(&idlest);
                }
            }
            self.observers.entry(replica).or_default()
        };
        if offset >= log_end {
            progress.last_caught_up = Some(now);
        } else if progress.leader_end_at_fetch > Offset::ZERO
            && offset >= progress.leader_end_at_fetch
        {
            progress.last_caught_up = progress.last_fetch;
        }
        progress.leader_end_at_fetch = log_end;
        progress.last_fetch = Some(now);
        let before = progress.end.replace(offset);
        before.filter(|before| is_voter && *before > offset)
    }

    /// Notes that a voter is alive; a majority of them restarts the check-quorum timer (KIP-595).
    pub(crate) fn on_heard(&mut self, replica: ReplicaKey, voters: &VoterSet, deadline: Instant) {
        if replica.id == self.me.id || !voters.contains(&replica) {
            return;
        }
        if let Err(place) = self.heard.binary_search(&replica.id) {
            self.heard.insert(place, replica.id);
        }
        let others = voters.majority() - usize::from(voters.contains(&self.me));
        if self.heard.len() >= others {
            self.heard.clear();
            self.check_quorum_deadline = deadline;
        }
    }

    /// The largest offset that a majority holds, this leader's own part counted up to where it is durable.
    pub(crate) fn held_by_majority(
        &mut self,
        voters: &VoterSet,
        durable_end: Offset,
    ) -> Option<Offset> {
        let progress = &self.voters;
        self.ends.extend(voters.ids().map(|id| {
            if id == self.me.id && voters.contains(&self.me) {
                Some(durable_end)
            } else {
                progress.get(&id).and_then(|progress| progress.end)
            }
        }));
        let held = quorum::held_by_majority(&mut self.ends);
        self.ends.clear();
        held
    }

    /// Voters that have not fetched of late, to whom the leader announces itself.
    pub(crate) fn silent_voters(
        &self,
        now: Instant,
        silence: Duration,
    ) -> impl Iterator<Item = NodeId> {
        let me = self.me.id;
        self.voters
            .iter()
            .filter(move |(id, progress)| {
                **id != me && progress.last_fetch.is_none_or(|at| now.since(at) >= silence)
            })
            .map(|(id, _)| *id)
    }

    /// The other voters, those that have come furthest first.
    pub(crate) fn successors(&self, me: NodeId, voters: &VoterSet) -> Vec<ReplicaKey> {
        let mut successors: Vec<(Option<Offset>, ReplicaKey)> = voters
            .ids()
            .filter(|id| *id != me)
            .filter_map(|id| {
                let end = self.voters.get(&id).and_then(|progress| progress.end);
                voters.key(id).map(|key| (end, key))
            })
            .collect();
        successors.sort_by(|(a, a_key), (b, b_key)| b.cmp(a).then(a_key.cmp(b_key)));
        successors.into_iter().map(|(_, key)| key).collect()
    }

    /// Another voter set counts from here on: progress is kept, whichever side a replica is on now.
    pub(crate) fn on_voters(&mut self, voters: &VoterSet) {
        let mut progress: BTreeMap<NodeId, Progress> = BTreeMap::new();
        for id in voters.ids() {
            let known = self.voters.remove(&id);
            let observed = voters.key(id).and_then(|key| self.observers.remove(&key));
            progress.insert(id, known.or(observed).unwrap_or_default());
        }
        for (id, left) in core::mem::replace(&mut self.voters, progress) {
            self.observers.insert(ReplicaKey::new(id, None), left);
        }
    }

    pub(crate) fn on_appended(&mut self, end: Offset, bytes: usize) {
        self.uncommitted.push_back((end, bytes));
        self.uncommitted_bytes += bytes;
    }

    pub(crate) fn on_committed(&mut self, high_watermark: Offset) {
        while let Some((end, bytes)) = self.uncommitted.front().copied() {
            if end > high_watermark {
                break;
            }
            self.uncommitted_bytes -= bytes;
            self.uncommitted.pop_front();
        }
    }

    pub(crate) fn uncommitted_bytes(&self) -> usize {
        self.uncommitted_bytes
    }

    /// Whether a voter waits for records.
    pub(crate) fn has_parked_voter(&self, voters: &VoterSet) -> bool {
        self.parked.iter().any(|parked| voters.contains(&parked.request.replica))
    }

    /// Voters and observers with their progress; forgets observers that are long gone.
    pub(crate) fn describe(
        &mut self,
        now: Instant,
        voters: &VoterSet,
        log_end: Offset,
    ) -> (Vec<ReplicaProgress>, Vec<ReplicaProgress>) {
        self.observers.retain(|_, progress| {
            progress.last_fetch.is_some_and(|at| now.since(at) < OBSERVER_SESSION)
        });
        let me = self.me;
        let line = |key: ReplicaKey, progress: &Progress| {
            let own = key.id == me.id;
            ReplicaProgress {
                key,
                log_end: if own { Some(log_end) } else { progress.end },
                last_fetch: if own { Some(Duration::ZERO) } else { age(now, progress.last_fetch) },
                last_caught_up: if own {
                    Some(Duration::ZERO)
                } else {
                    age(now, progress.last_caught_up)
                },
            }
        };
        let default = Progress::default();
        let voter_lines = voters
            .ids()
            .filter_map(|id| voters.key(id))
            .map(|key| line(key, self.voters.get(&key.id).unwrap_or(&default)))
            .collect();
        let mut observer_lines: Vec<ReplicaProgress> =
            self.observers.iter().map(|(key, progress)| line(*key, progress)).collect();
        if !voters.contains(&me) {
            observer_lines.push(line(me, &default));
        }
        (voter_lines, observer_lines)
    }
}

fn age(now: Instant, at: Option<Instant>) -> Option<Duration> {
    at.map(|at| now.since(at))
}
