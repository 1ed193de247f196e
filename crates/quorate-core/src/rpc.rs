//! One file an RPC: when it is sent, how it is answered, what is done with the answer. Here: what they share.

mod begin_quorum_epoch;
mod describe;
mod end_quorum_epoch;
mod fetch;
mod fetch_snapshot;
mod vote;

use alloc::format;
use core::time::Duration;

use crate::ids::{Endpoints, Epoch, Instant, NodeId, Offset, ReplicaKey};
use crate::io::{CorrelationId, Destination};
use crate::message::{CurrentLeader, ErrorCode, Received, Response, Unreachable, Via};
use crate::outbox::{Answered, RequestKind, Turn};
use crate::replica::Replica;
use crate::role::Role;

/// What an answer to Fetch may bring: epoch, leader, log end, generation and high watermark.
type Progress = (Epoch, Option<NodeId>, Offset, u64, Option<Offset>);

/// What the common handling of an answer leaves to the RPC's own.
enum Handled {
    /// The answer is dealt with; the peer may be asked again at once.
    Done,
    /// The answer helps nobody: ask the peer again after a backoff.
    BackOff,
    /// Go on with the error and payload.
    GoOn,
}

impl Replica {
    /// Sends what the role wants to be sent.
    pub(crate) fn act(&mut self, turn: &mut Turn<'_>) {
        if !self.takes_part() && !matches!(self.role, Role::Resigned(_)) {
            return;
        }
        match &self.role {
            Role::Prospective(_) | Role::Candidate(_) => self.send_votes(turn),
            Role::Leader(_) => self.send_begin_quorum_epochs(turn),
            Role::Resigned(_) => self.send_end_quorum_epochs(turn),
            Role::Follower(_) | Role::Unattached(_)
                if self.may_fetch_at.is_none_or(|at| at <= turn.now) =>
            {
                self.send_fetch(turn)
            }
            Role::Follower(_) | Role::Unattached(_) => {}
        }
    }

    /// A peer answered, or never will.
    pub(crate) fn on_response(
        &mut self,
        turn: &mut Turn<'_>,
        id: CorrelationId,
        response: Result<Response<Received>, Unreachable>,
    ) {
        // An answer to a request of an earlier role, or one that timed out, means nothing any more.
        let Some(Answered { by: from, kind, sent }) = self.outbox.take(id) else {
            return;
        };
        let before = self.progress();
        let may_be_held = !matches!(&self.role, Role::Follower(role) if !role.lets_fetch_wait());
        let handled = match response {
            // With a broken disk nothing can be taken over; that it was heard ends a resignation's retries.
            Ok(_) if self.storage_failed() => {
                if let Role::Resigned(role) = &mut self.role {
                    role.unacknowledged.remove(&from);
                }
                return;
            }
            Ok(response) => {
                self.unreachable.remove(&from);
                match (kind, response) {
                    (_, Response::TopLevel(error)) => {
                        return self.on_unreachable(turn, from, kind, Unreachable::TopLevel(error));
                    }
                    (RequestKind::Vote, Response::Vote(response)) => {
                        self.on_vote_response(turn, from, response)
                    }
                    (RequestKind::BeginQuorumEpoch, Response::BeginQuorumEpoch(response)) => {
                        self.on_begin_quorum_epoch_response(turn, from, &response)
                    }
                    (RequestKind::EndQuorumEpoch, Response::EndQuorumEpoch(response)) => {
                        self.on_end_quorum_epoch_response(turn, from, &response)
                    }
                    (RequestKind::Fetch, Response::Fetch(response)) => {
                        self.on_fetch_response(turn, from, response)
                    }
                    _ => return self.on_unreachable(turn, from, kind, Unreachable::Malformed),
                }
            }
            Err(unreachable) => return self.on_unreachable(turn, from, kind, unreachable),
        };
        // A leader holds a Fetch, if it may, until it has something to say, or leads no more.
        let is_prompt = kind != RequestKind::Fetch || !may_be_held || self.brought_news(&before);
        if let Some(sent) = sent
            && is_prompt
        {
            self.outbox.note_answer_time(turn.now.since(sent));
        }
        if self.epoch > before.0 {
            self.pace_epochs(turn.now);
        }
        if matches!(handled, Handled::BackOff) {
            // The search for a leader is paced: servers that know none have no better answer soon.
            let is_search = kind == RequestKind::Fetch && self.leader() != Some(from);
            let search_pace =
                if is_search { self.config.election_timeout / 10 } else { Duration::ZERO };
            self.outbox.back_off(from, turn.now + self.config.retry_backoff.max(search_pace));
        } else if kind == RequestKind::Fetch {
            let may_ask_at = sent.map_or(turn.now, |sent| sent + self.config.retry_backoff);
            let is_idle = may_ask_at > turn.now && self.progress() == before;
            self.pace_fetches(from, may_ask_at, is_idle);
        }
    }

    /// An answer has raised the epoch, which forgets every backoff: whoever is told so again and again asks once in a
    /// retry backoff.
    fn pace_epochs(&mut self, now: Instant) {
        let backoff = self.config.retry_backoff;
        self.may_fetch_at = Some(match self.may_fetch_at {
            Some(last) if now.since(last) < backoff => last + backoff,
            _ => now,
        });
    }

    fn progress(&self) -> Progress {
        (self.epoch, self.leader(), self.log.end(), self.log.generation(), self.high_watermark)
    }

    /// Whether an answer brought something of the leader that was known before it.
    fn brought_news(&self, before: &Progress) -> bool {
        let now = self.progress();
        (now.0, now.1) == (before.0, before.1) && now != *before
    }

    /// A leader holds a Fetch until there is something to say. One that says nothing again and again is asked once in
    /// a retry backoff.
    ///
    /// Differs from Kafka, which asks thousands of times a second.
    fn pace_fetches(&mut self, from: NodeId, may_ask_at: Instant, is_idle: bool) {
        let Role::Follower(role) = &mut self.role else {
            return;
        };
        if role.leader != from {
            return;
        }
        let was_idle = core::mem::replace(&mut role.was_idle, is_idle);
        // Once may be chance: a leader that has just learnt something, or has no more room for parked Fetches.
        if was_idle && is_idle {
            self.outbox.pause(from, may_ask_at);
        }
    }

    /// The answering node's view, as every answer shows it.
    fn current_leader(&self, via: &Via) -> CurrentLeader {
        let leader = self.leader();
        let endpoint = leader.and_then(|leader| {
            let known = match &self.role {
                Role::Leader(_) | Role::Resigned(_) => self.config.endpoints.get(&via.0),
                Role::Follower(role) => role.endpoints.get(&via.0),
                Role::Prospective(role) => role.endpoints.get(&via.0),
                Role::Unattached(_) | Role::Candidate(_) => None,
            };
            // What is learnt from answers is known under the default listener alone.
            known.or_else(|| self.voters.voters().endpoint(leader, &via.0)).cloned()
        });
        // Differs from Kafka: a Java replica stops at a leader for whom neither the answer nor its own voter set has an
        // endpoint, so nobody is told of one that only hearsay knows.
        let is_voter = |leader: &NodeId| self.voters.voters().find(*leader).is_some();
        let leader = leader.filter(|leader| endpoint.is_some() || is_voter(leader));
        CurrentLeader { epoch: self.epoch, leader, endpoint }
    }

    /// Checks of Vote, BeginQuorumEpoch and EndQuorumEpoch that do not depend on the role: a refusal for the
    /// partition, or for the whole request.
    fn check_epoch_and_sender(&self, sender: NodeId, epoch: Epoch) -> Result<(), Refusal> {
        if epoch < self.epoch {
            return Err(Refusal::Partition(ErrorCode::FENCED_LEADER_EPOCH));
        }
        if !sender.is_replica() {
            return Err(Refusal::Partition(ErrorCode::INVALID_REQUEST));
        }
        // Differs from Kafka: our own id in another's mouth, or an epoch near the end of int32, stops a Java
        // replica or its whole quorum. Nothing of such a request is taken over.
        if sender == self.config.node {
            return Err(Refusal::Odd(format!("a request in the name of this node, epoch {epoch}")));
        }
        if !self.epoch.may_jump_to(epoch) {
            let ours = self.epoch;
            let what = format!("epoch {epoch} does not come from elections, ours is {ours}");
            return Err(Refusal::Odd(what));
        }
        Ok(())
    }

    /// Whether this replica is the one that the sender means (KIP-853).
    fn is_addressed(&self, voter: Option<ReplicaKey>) -> bool {
        voter.is_none_or(|voter| {
            voter.id == self.config.node
                && voter.directory.is_none_or(|directory| directory == self.config.directory)
        })
    }

    /// A leader made itself known by a request: follow it if that is news.
    fn learn_leader(
        &mut self,
        turn: &mut Turn<'_>,
        epoch: Epoch,
        leader: NodeId,
        endpoints: &Endpoints,
        reason: &'static str,
    ) -> Result<(), Refusal> {
        if epoch == self.epoch
            && let Some(known) = self.leader()
            && known != leader
        {
            return Err(Refusal::Odd(format!(
                "epoch {epoch} has the leader {known}, not {leader}: the first counts"
            )));
        }
        let endpoints = if endpoints.contains_key(&self.config.default_listener) {
            endpoints.clone()
        } else {
            self.known_endpoints(leader)
        };
        self.maybe_follow(turn, epoch, Some(leader), endpoints, reason);
        Ok(())
    }

    /// Moves to a higher epoch, or to the leader of this one if it was not known, or not so well.
    fn maybe_follow(
        &mut self,
        turn: &mut Turn<'_>,
        epoch: Epoch,
        leader: Option<NodeId>,
        endpoints: Endpoints,
        reason: &'static str,
    ) -> bool {
        let stored = match &self.role {
            Role::Unattached(_) | Role::Candidate(_) => Some(0),
            Role::Prospective(role) => Some(role.endpoints.len()),
            Role::Follower(role) => Some(role.endpoints.len()),
            Role::Leader(_) | Role::Resigned(_) => None,
        };
        match leader {
            Some(leader) if !endpoints.is_empty() => {
                let is_news =
                    epoch > self.epoch || stored.is_some_and(|stored| endpoints.len() > stored);
                if is_news {
                    self.become_follower(turn, epoch, leader, endpoints, reason);
                }
                is_news
            }
            leader => {
                let is_news = epoch > self.epoch;
                if is_news {
                    self.become_unattached(turn, epoch, leader, reason);
                }
                is_news
            }
        }
    }

    /// What an answer's error, epoch and leader mean to any replica (protocol reference 3.0).
    ///
    /// Differs from Kafka, which stops at contradictions and at INVALID_REQUEST, and asks again at once when an
    /// answer brings nothing new: here all of these are followed by a backoff.
    fn check_response(
        &mut self,
        turn: &mut Turn<'_>,
        from: NodeId,
        error: ErrorCode,
        current: &CurrentLeader,
    ) -> Handled {
        if current.epoch < self.epoch || error == ErrorCode::UNKNOWN_LEADER_EPOCH {
            return Handled::BackOff;
        }
        if !self.epoch.may_jump_to(current.epoch) {
            self.odd(turn, Some(from), format!("an answer of epoch {}", current.epoch));
            return Handled::BackOff;
        }
        let is_mine = current.leader == Some(self.config.node);
        let contradicts = current.epoch == self.epoch
            && current.leader.is_some()
            && self.leader().is_some()
            && self.leader() != current.leader;
        if contradicts || (is_mine && !matches!(self.role, Role::Leader(_) | Role::Resigned(_))) {
            let (epoch, leader) = (current.epoch, current.leader);
            self.odd(
                turn,
                Some(from),
                format!("names {leader:?} as leader of epoch {epoch}, we know {:?}", self.leader()),
            );
            return Handled::BackOff;
        }
        if is_mine && current.epoch > self.epoch {
            self.odd(turn, Some(from), format!("says that we lead epoch {}", current.epoch));
            return Handled::BackOff;
        }
        // Differs from Kafka: a candidate does not follow on hearsay. Who really leads its epoch announces itself at once, and
        // goes on doing so; a voter that lies, or errs, could else end every election.
        let is_hearsay = matches!(self.role, Role::Candidate(_))
            && current.epoch == self.epoch
            && current.leader.is_some();
        if is_hearsay {
            return if error == ErrorCode::NONE { Handled::GoOn } else { Handled::BackOff };
        }
        let must_move = current.epoch > self.epoch
            || error == ErrorCode::FENCED_LEADER_EPOCH
            || error == ErrorCode::NOT_LEADER_OR_FOLLOWER;
        if must_move {
            let endpoints = self.endpoints_of(current);
            let moved = self.maybe_follow(
                turn,
                current.epoch,
                current.leader,
                endpoints,
                "learnt from an answer",
            );
            return if moved { Handled::Done } else { Handled::BackOff };
        }
        let is_leaderless = matches!(self.role, Role::Unattached(_) | Role::Candidate(_))
            || matches!(&self.role, Role::Prospective(role) if role.leader.is_none());
        if current.leader.is_some() && is_leaderless {
            let endpoints = self.endpoints_of(current);
            self.maybe_follow(
                turn,
                current.epoch,
                current.leader,
                endpoints,
                "learnt from an answer",
            );
            return if error == ErrorCode::NONE { Handled::GoOn } else { Handled::Done };
        }
        if error == ErrorCode::BROKER_NOT_AVAILABLE || error == ErrorCode::INVALID_VOTER_KEY {
            return Handled::BackOff;
        }
        if error == ErrorCode::INVALID_REQUEST {
            self.odd(turn, Some(from), "calls our request invalid".into());
            return Handled::BackOff;
        }
        Handled::GoOn
    }

    /// Where the leader listens that an answer names, as far as the answer or the voter set tells.
    fn endpoints_of(&self, current: &CurrentLeader) -> Endpoints {
        match (current.leader, &current.endpoint) {
            (Some(_), Some(endpoint)) => {
                Endpoints::from([(self.config.default_listener.clone(), endpoint.clone())])
            }
            (Some(leader), None) => self.known_endpoints(leader),
            (None, _) => Endpoints::new(),
        }
    }

    /// A voter as a destination, under the default listener.
    fn voter_destination(&self, id: NodeId) -> Option<Destination> {
        let endpoint = self.voters.voters().endpoint(id, &self.config.default_listener)?;
        Some(Destination { id, endpoint: endpoint.clone() })
    }
}

/// A request that is not served.
enum Refusal {
    /// An ordinary error for the partition.
    Partition(ErrorCode),
    /// Something that no correct peer sends: the whole request is refused, and a line is logged.
    Odd(alloc::string::String),
}
