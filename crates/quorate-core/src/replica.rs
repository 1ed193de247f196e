//! The replica and its step: one arm an input, the table of contents.

use alloc::collections::BTreeMap;
use alloc::string::String;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::time::Duration;

use crate::chance::Chance;
use crate::config::{Config, Recovered};
use crate::ids::{Epoch, Instant, NodeId, Offset, ReplicaKey};
use crate::io::{
    CorrelationId, ElectionState, Event, Input, IntegrityFault, Output, StorageTrouble, Timeout,
    Write,
};
use crate::log::Log;
use crate::message::{ElectionRound, ErrorCode, Request, Response, Unreachable};
use crate::outbox::{Outbox, Turn};
use crate::role::{Role, Unattached};
use crate::voters::{BOOTSTRAP_OFFSET, VoterHistory, VoterSet};

/// One replica of the quorum.
///
/// Its hash is the state of the protocol, for an explorer: it leaves out instants, chance, the numbers of writes
/// and requests as such, and what is only told to people. Replicas that are equal but for these act alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    pub(crate) config: Config,
    pub(crate) epoch: Epoch,
    pub(crate) voted: Option<ReplicaKey>,
    pub(crate) role: Role,
    pub(crate) log: Log,
    pub(crate) voters: VoterHistory,
    /// As the protocol counts it: unknown to a new leader and after resignation.
    pub(crate) high_watermark: Option<Offset>,
    /// The largest high watermark that this replica ever knew: nothing below it may be truncated.
    pub(crate) committed: Offset,
    pub(crate) outbox: Outbox,
    pub(crate) chance: Chance,
    pub(crate) integrity_fault: Option<IntegrityFault>,
    pub(crate) last_round: Option<ElectionRound>,
    pub(crate) unreachable: BTreeMap<NodeId, (Unreachable, Instant)>,
    pub(crate) leaderless_since: Option<Instant>,
    /// What the quorum-state file holds once all writes are done.
    persisted: Option<ElectionState>,
    announced_leader: Option<(Epoch, Option<NodeId>)>,
    storage_failed: bool,
    pub(crate) shutdown: Shutdown,
    /// Not before, since answers have raised the epoch.
    pub(crate) may_fetch_at: Option<Instant>,
}

/// What a time of the configuration is at the least.
const SHORTEST_TIME: Duration = Duration::from_millis(1);

/// How far a shutdown has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Shutdown {
    NotWanted,
    Wanted { deadline: Instant },
    Complete,
}

/// Why a replica cannot start on what storage found.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum StartError {
    /// The configuration names neither static voters nor bootstrap servers.
    NoPeers,
    /// The configuration has only bootstrap servers, but the directory belongs to a static quorum.
    StaticDirectory,
    /// The configuration's static voters do not have this node.
    NotAStaticVoter(NodeId),
    /// kraft.version in the log is beyond what this implementation knows.
    UnknownKRaftVersion(i16),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::NoPeers => f.write_str(
                "nobody to talk to: set controller.quorum.bootstrap.servers, or controller.quorum.voters for a static quorum",
            ),
            StartError::StaticDirectory => f.write_str(
                "the directory belongs to a static quorum (kraft.version 0, no voters in its log), but \
                 controller.quorum.voters is not set: set it as it was, or format an empty directory with voters",
            ),
            StartError::NotAStaticVoter(node) => {
                write!(f, "node.id {node} is not in controller.quorum.voters: add it, or correct node.id")
            }
            StartError::UnknownKRaftVersion(version) => {
                write!(f, "the log is at kraft.version {version}, this version knows 0 to 1: use a newer one")
            }
        }
    }
}

impl core::error::Error for StartError {}

impl Hash for Replica {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Replica {
            config,
            epoch,
            voted,
            role,
            log,
            voters,
            high_watermark,
            committed,
            outbox,
            chance,
            integrity_fault,
            last_round: _,
            unreachable: _,
            leaderless_since: _,
            persisted,
            announced_leader,
            storage_failed,
            shutdown,
            may_fetch_at: _,
        } = self;
        // The configuration never changes: it is enough to say whose it is.
        (config.node, epoch, voted, role, log, voters).hash(state);
        (high_watermark, committed, outbox, chance, integrity_fault).hash(state);
        (persisted, announced_leader, storage_failed, shutdown).hash(state);
    }
}

impl Replica {
    /// A replica on what storage found, started: its first writes and messages are in `output`.
    ///
    /// # Errors
    /// If configuration and directory do not fit together; see [`StartError`].
    pub fn start(
        mut config: Config,
        recovered: Recovered,
        now: Instant,
        output: &mut Output,
    ) -> Result<Replica, StartError> {
        // Kafka's keys may be zero, and such a timer would be due for ever.
        for time in [
            &mut config.election_timeout,
            &mut config.fetch_timeout,
            &mut config.request_timeout,
            &mut config.retry_backoff,
        ] {
            *time = (*time).max(SHORTEST_TIME);
        }
        if config.static_voters.is_empty() && config.bootstrap_servers.is_empty() {
            return Err(StartError::NoPeers);
        }
        let is_used = recovered.log_end > recovered.log_start || !recovered.bootstrap.is_empty();
        let mut voters = VoterHistory::new(config.static_voters.clone());
        let bootstrap = recovered.bootstrap.into_iter().map(|record| (BOOTSTRAP_OFFSET, record));
        for (offset, record) in bootstrap.chain(recovered.control) {
            match record {
                crate::message::ControlRecord::KRaftVersion(version) => {
                    if version > crate::message::KRaftVersion::SUPPORTED.1 || version.0 < 0 {
                        return Err(StartError::UnknownKRaftVersion(version.0));
                    }
                    voters.add_kraft_version(offset, version);
                }
                crate::message::ControlRecord::Voters(set) => voters.add_voters(offset, set),
                _ => {}
            }
        }
        if is_used && voters.voters().is_empty() && !voters.kraft_version().is_reconfigurable() {
            return Err(StartError::StaticDirectory);
        }
        if voters.voters_offset().is_none()
            && !config.static_voters.is_empty()
            && config.static_voters.find(config.node).is_none()
        {
            return Err(StartError::NotAStaticVoter(config.node));
        }
        let mut replica = Replica {
            chance: Chance::new(config.seed),
            epoch: Epoch(0),
            voted: None,
            role: Role::Unattached(Unattached { leader: None, election_deadline: None }),
            log: Log::new(recovered.log_start, recovered.log_end, recovered.epochs),
            voters,
            high_watermark: None,
            committed: Offset::ZERO,
            outbox: Outbox::default(),
            integrity_fault: None,
            last_round: None,
            unreachable: BTreeMap::new(),
            leaderless_since: None,
            persisted: recovered.election.clone(),
            announced_leader: None,
            storage_failed: false,
            shutdown: Shutdown::NotWanted,
            may_fetch_at: None,
            config,
        };
        let mut turn = Turn { now, output, election_write: None };
        replica.resume(&mut turn, recovered.election);
        replica.persist_election(&mut turn);
        replica.finish(&mut turn, false);
        Ok(replica)
    }

    /// Whether configured static voters are ignored because the log has a voter set.
    pub fn ignores_static_voters(&self) -> bool {
        self.voters.ignores_static_voters()
    }

    /// This replica's id.
    pub fn id(&self) -> NodeId {
        self.config.node
    }

    /// The log end.
    pub fn log_end(&self) -> Offset {
        self.log.end()
    }

    /// All below is on stable media.
    pub fn durable_end(&self) -> Offset {
        self.log.durable_end()
    }

    /// Whether anything waits for this replica's own writes. A leader whose followers have yet to acknowledge what it appended
    /// need not be stepped with [`Durable`](crate::io::Input::Durable) before the next input.
    pub fn waits_for_disk(&mut self) -> bool {
        let (durable_end, log_end) = (self.log.durable_end(), self.log.end());
        match &mut self.role {
            Role::Leader(leader)
                if leader.open.is_empty()
                    && !self.outbox.holds_messages()
                    && self.committed <= durable_end =>
            {
                let voters = self.voters.voters();
                leader.held_by_majority(voters, log_end)
                    != leader.held_by_majority(voters, durable_end)
            }
            _ => true,
        }
    }

    /// Whether the answer to this request still counts: that to a request of an earlier role does not.
    pub fn awaits(&self, id: CorrelationId) -> bool {
        self.outbox.awaits(id)
    }

    /// The voter set that counts now.
    pub fn voters(&self) -> &VoterSet {
        self.voters.voters()
    }

    /// The level of kraft.version that counts now.
    pub fn kraft_version(&self) -> crate::message::KRaftVersion {
        self.voters.kraft_version()
    }

    /// Takes one input at `now`, which never goes back, and adds to `output` what is to be done about it.
    pub fn step(&mut self, now: Instant, input: Input, output: &mut Output) {
        let mut turn = Turn { now, output, election_write: None };
        let turn = &mut turn;
        let is_tick = matches!(input, Input::Tick);
        match input {
            Input::Request { id, via, request } => match request {
                Request::DescribeReplica => self.on_describe_replica(turn, id),
                Request::DescribeQuorum => self.on_describe_quorum(turn, id),
                _ if self.storage_failed => {
                    let response = Response::TopLevel(ErrorCode::BROKER_NOT_AVAILABLE);
                    self.outbox.answer_tool(turn, id, response);
                }
                Request::Vote(request) => self.on_vote_request(turn, id, &via, request),
                Request::BeginQuorumEpoch(request) => {
                    self.on_begin_quorum_epoch(turn, id, &via, request)
                }
                Request::EndQuorumEpoch(request) => {
                    self.on_end_quorum_epoch(turn, id, &via, request)
                }
                Request::Fetch(request) => self.on_fetch_request(turn, id, via, request),
                Request::FetchSnapshot(request) => self.on_fetch_snapshot(turn, id, &via, &request),
            },
            Input::Response { id, response } => self.on_response(turn, id, response),
            Input::Propose { id, epoch, records } => self.on_propose(turn, id, epoch, records),
            Input::Resign { epoch } => self.on_resign(turn, epoch),
            Input::Durable { through } => self.on_durable(turn, through),
            Input::Storage(StorageTrouble::Failed) => self.on_storage_failed(turn),
            Input::Shutdown => self.on_shutdown(turn),
            Input::Tick => {}
        }
        self.finish(turn, is_tick);
    }

    /// What every step ends with: timers that are due, what the role wants to send, the leader for listeners,
    /// and the next deadline.
    fn finish(&mut self, turn: &mut Turn<'_>, is_tick: bool) {
        self.expire(turn, is_tick);
        self.act(turn);
        self.check_shutdown(turn);
        self.announce_leader(turn);
        turn.output.deadline = self.deadline(turn.now);
        debug_assert!(
            turn.output.deadline.is_none_or(|(at, why)| at > turn.now || why == Timeout::Linger),
            "a timer that is due must be acted on: {:?} as {}",
            turn.output.deadline,
            self.role.name()
        );
    }

    fn on_durable(&mut self, turn: &mut Turn<'_>, through: crate::io::WriteId) {
        // A leader that does not wait for its disk hears of it late.
        let is_prompt = !matches!(self.role, Role::Leader(_));
        self.outbox.on_durable(turn, through, is_prompt);
        self.log.on_durable(through);
        self.advance_high_watermark(turn);
    }

    fn on_storage_failed(&mut self, turn: &mut Turn<'_>) {
        if matches!(self.role, Role::Leader(_)) {
            self.become_resigned(turn, "storage failed");
        }
        self.storage_failed = true;
    }

    fn on_resign(&mut self, turn: &mut Turn<'_>, epoch: Epoch) {
        if matches!(self.role, Role::Leader(_)) && epoch == self.epoch {
            self.become_resigned(turn, "its state machine resigned");
        }
    }

    /// Asks for the election state to be written if epoch, leader or vote changed; at most once a step.
    pub(crate) fn persist_election(&mut self, turn: &mut Turn<'_>) {
        let state = ElectionState {
            epoch: self.epoch,
            leader: self.role.leader(self.config.node),
            voted: self.voted,
            kraft_version: self.voters.kraft_version(),
            voters: self.voters.voters().ids().collect(),
        };
        let same = self.persisted.as_ref().is_some_and(|old| {
            (old.epoch, old.leader, old.voted, old.kraft_version)
                == (state.epoch, state.leader, state.voted, state.kraft_version)
        });
        if same {
            return;
        }
        self.persisted = Some(state.clone());
        let write = Write::ElectionState(state);
        match turn.election_write {
            Some(place) => {
                assert!(
                    place + 1 == turn.output.writes.len(),
                    "the election state precedes the step's appends"
                );
                turn.output.writes[place].1 = write;
            }
            None => {
                turn.election_write = Some(turn.output.writes.len());
                self.outbox.write(turn, write);
            }
        }
    }

    /// Tells listeners who leads. This node itself counts from the moment on at which its first record is
    /// committed, so that its state machine has seen every record of older epochs.
    fn announce_leader(&mut self, turn: &mut Turn<'_>) {
        let leader = match &self.role {
            Role::Leader(_) => self.high_watermark.map(|_| self.config.node),
            _ => self.other_leader(),
        };
        let now = Some((self.epoch, leader));
        if self.announced_leader != now {
            self.announced_leader = now;
            turn.output.events.push(Event::Leader { epoch: self.epoch, leader });
        }
    }

    /// Keeps account of how long there has been no leader to follow.
    pub(crate) fn note_leader(&mut self, now: Instant) {
        self.leaderless_since = match &self.role {
            Role::Leader(_) | Role::Follower(_) => None,
            _ => self.leaderless_since.or(Some(now)),
        };
    }

    pub(crate) fn is_voter(&self) -> bool {
        self.voters.voters().contains(&self.config.key())
    }

    pub(crate) fn is_only_voter(&self) -> bool {
        self.voters.voters().is_only(&self.config.key())
    }

    pub(crate) fn leader(&self) -> Option<NodeId> {
        self.role.leader(self.config.node)
    }

    /// The leader, unless it is or was this replica itself.
    pub(crate) fn other_leader(&self) -> Option<NodeId> {
        self.leader().filter(|leader| *leader != self.config.node)
    }

    /// Whether this replica takes part: it does not once committed data may be lost, or its disk is broken.
    pub(crate) fn takes_part(&self) -> bool {
        self.integrity_fault.is_none() && !self.storage_failed
    }

    /// Whether the store is closed: nothing more is written, so role and epoch stay as they are.
    pub(crate) fn storage_failed(&self) -> bool {
        self.storage_failed
    }

    /// Whether a voter may campaign now: not with a disk on which a write has been stuck.
    pub(crate) fn can_campaign(&self, now: Instant) -> bool {
        self.config.campaigns
            && self.takes_part()
            && self.is_voter()
            && self.epoch.next().is_some()
            && self.stuck_deadline().is_none_or(|at| at > now)
    }

    /// When the oldest unfinished write will have taken too long.
    pub(crate) fn stuck_deadline(&self) -> Option<Instant> {
        self.outbox.oldest_unfinished().map(|since| since + self.config.check_quorum_timeout())
    }

    pub(crate) fn odd(&self, turn: &mut Turn<'_>, peer: Option<NodeId>, what: String) {
        turn.output.events.push(Event::Refused { peer, what });
    }
}
