//! Fetch, the fetcher's side: whom to ask, and what to do with the answer (KIP-595).

use alloc::format;
use alloc::vec::Vec;
use core::time::Duration;

use super::super::Handled;
use crate::ids::{NodeId, Offset, OffsetAndEpoch};
use crate::io::{Batch, Content, Destination, Event, IntegrityFault, Write};
use crate::message::{
    ErrorCode, FetchOutcome, FetchRequest, FetchResponse, FetcherHighWatermark, Received, Request,
};
use crate::outbox::Turn;
use crate::replica::Replica;
use crate::role::Role;

impl Replica {
    /// Fetches from the leader; from a bootstrap server while there is none, or while it does not answer
    /// (protocol reference 2.9).
    pub(in crate::rpc) fn send_fetch(&mut self, turn: &mut Turn<'_>) {
        if self.is_shutting_down() || self.outbox.is_fetching() {
            return;
        }
        let to = match &self.role {
            Role::Follower(role) if !self.outbox.is_backing_off(role.leader) => {
                if !self.outbox.is_ready(role.leader) {
                    return;
                }
                let endpoint = role
                    .endpoints
                    .get(&self.config.default_listener)
                    .or_else(|| role.endpoints.values().next());
                endpoint.map(|endpoint| Destination { id: role.leader, endpoint: endpoint.clone() })
            }
            Role::Follower(_) | Role::Unattached(_) => self.bootstrap_server(),
            _ => return,
        };
        let Some(to) = to else { return };
        let max_wait = match &self.role {
            Role::Follower(role) if !role.lets_fetch_wait() => Duration::ZERO,
            _ => self.config.fetch_max_wait,
        };
        let request = FetchRequest {
            replica: self.config.key(),
            epoch: self.epoch,
            offset: self.log.end(),
            last_fetched_epoch: self.log.last_epoch(),
            max_wait_ms: i32::try_from(max_wait.as_millis()).unwrap_or(i32::MAX),
            max_bytes: i32::try_from(self.config.fetch_max_bytes).unwrap_or(i32::MAX),
            high_watermark: self
                .high_watermark
                .map_or(FetcherHighWatermark::Unknown, FetcherHighWatermark::Known),
        };
        // One Fetch is out at a time: one to a server that is silent too must leave time to ask the leader again.
        let timeout = match &self.role {
            Role::Follower(role) if role.leader != to.id => {
                self.config.request_timeout.min(self.config.fetch_timeout / 2)
            }
            _ => self.config.request_timeout,
        };
        self.outbox.request(turn, to, Request::Fetch(request), timeout);
    }

    /// A random server that may know the leader, if no answer is awaited from anyone.
    fn bootstrap_server(&mut self) -> Option<Destination> {
        if self.outbox.is_awaiting() {
            return None;
        }
        let listener = &self.config.default_listener;
        let mine = self.config.endpoints.get(listener);
        let servers: Vec<Destination> = if self.config.bootstrap_servers.is_empty() {
            let voters = self.config.static_voters.ids().filter(|id| *id != self.config.node);
            voters
                .filter_map(|id| {
                    let endpoint = self.config.static_voters.endpoint(id, listener)?.clone();
                    Some(Destination { id, endpoint })
                })
                .collect()
        } else {
            let ids = (2..).map(|n: i32| NodeId(-n));
            ids.zip(&self.config.bootstrap_servers)
                .filter(|(_, endpoint)| Some(*endpoint) != mine)
                .map(|(id, endpoint)| Destination { id, endpoint: endpoint.clone() })
                .collect()
        };
        if servers.is_empty() {
            return None;
        }
        let first = self.chance.below(servers.len());
        let (before, from) = servers.split_at(first);
        from.iter().chain(before).find(|server| self.outbox.is_ready(server.id)).cloned()
    }

    pub(in crate::rpc) fn on_fetch_response(
        &mut self,
        turn: &mut Turn<'_>,
        from: NodeId,
        response: FetchResponse<Received>,
    ) -> Handled {
        match self.check_response(turn, from, response.error, &response.current) {
            Handled::GoOn => {}
            handled => return handled,
        }
        let Role::Follower(role) = &self.role else {
            return Handled::BackOff;
        };
        // Records come from the leader of our own epoch, or not at all.
        if response.error != ErrorCode::NONE || response.current.leader != Some(role.leader) {
            return Handled::BackOff;
        }
        let handled = match response.outcome {
            FetchOutcome::Diverging(diverging) => self.truncate_to(turn, from, diverging),
            FetchOutcome::Snapshot(id) => {
                self.odd(
                    turn,
                    Some(from),
                    format!("our log ends before its own starts; snapshot {id} would be needed"),
                );
                Handled::BackOff
            }
            FetchOutcome::Records(received) => {
                let handled = self.append_received(turn, from, received);
                self.learn_high_watermark(turn, from, response.high_watermark);
                handled
            }
        };
        let fetch_deadline = turn.now + self.config.fetch_timeout;
        if let (Handled::Done, Role::Follower(role)) = (&handled, &mut self.role) {
            role.on_fetched(fetch_deadline);
        }
        handled
    }

    /// The logs part below our end: cuts ours (protocol reference 4.6).
    fn truncate_to(
        &mut self,
        turn: &mut Turn<'_>,
        from: NodeId,
        diverging: OffsetAndEpoch,
    ) -> Handled {
        let target = self.truncation_target(diverging);
        if diverging.offset.0 < 0 || diverging.epoch.0 < 0 || target >= self.log.end() {
            self.odd(
                turn,
                Some(from),
                format!(
                    "diverging at {diverging}, which cuts nothing of {}",
                    self.log.end_and_epoch()
                ),
            );
            return Handled::BackOff;
        }
        // The leader has nothing of our epochs from its offset on: what we hold there is committed, and not there.
        let parts_at = target.min(diverging.offset);
        if parts_at < self.committed || target < self.log.start() {
            self.latch_integrity_fault(turn, diverging);
            return Handled::BackOff;
        }
        self.outbox.write(turn, Write::Truncate { to: target });
        self.log.truncate(target);
        self.voters.truncate(target);
        let event = Event::Truncated { to: target, generation: self.log.generation() };
        turn.output.events.push(event);
        Handled::Done
    }

    /// Where our log would have to end, were it to follow one that ends an epoch there. The edge refuses an answer for
    /// which that is inside a batch: logs of one history part between batches.
    pub fn truncation_target(&self, diverging: OffsetAndEpoch) -> Offset {
        let ours = self.log.end_of_epoch(diverging.epoch);
        if diverging.epoch.0 == 0 {
            diverging.offset.min(self.log.end())
        } else if ours.epoch == diverging.epoch {
            ours.offset.min(diverging.offset)
        } else {
            ours.offset
        }
    }

    fn latch_integrity_fault(&mut self, turn: &mut Turn<'_>, diverging: OffsetAndEpoch) {
        let Role::Follower(role) = &self.role else {
            return;
        };
        let fault = IntegrityFault {
            leader: role.leader,
            epoch: self.epoch,
            diverging,
            high_watermark: self.committed,
            log_end: self.log.end_and_epoch(),
        };
        self.integrity_fault = Some(fault.clone());
        turn.output.events.push(Event::IntegrityFault(fault));
    }

    /// Appends the batches up to the first that does not fit: what is left is fetched again.
    fn append_received(
        &mut self,
        turn: &mut Turn<'_>,
        from: NodeId,
        received: Received,
    ) -> Handled {
        let is_empty = received.batches.is_empty() && received.rejected.is_none();
        let log_end = self.log.end();
        let mut rejected = received.rejected;
        for batch in received.batches {
            // A former leader may serve data of a newer epoch in a slow answer (KAFKA-18723).
            if batch.epoch > self.epoch {
                break;
            }
            let fits = batch.base == self.log.end()
                && batch.end > batch.base
                && batch.epoch.0 > 0
                && batch.epoch >= self.log.last_epoch();
            if !fits {
                let (base, end, epoch) = (batch.base, batch.end, batch.epoch);
                rejected = Some(format!(
                    "batch {base}..{end} of epoch {epoch} after {}",
                    self.log.end_and_epoch()
                ));
                break;
            }
            let write = self.outbox.write(
                turn,
                Write::Append(Batch {
                    base: batch.base,
                    end: batch.end,
                    epoch: batch.epoch,
                    encoded_len: batch.bytes.len(),
                    content: Content::Encoded(batch.bytes),
                }),
            );
            self.log.append(write, batch.epoch, batch.base, batch.end);
            for (offset, record) in batch.control {
                self.read_control(offset, record);
            }
        }
        if let Some(what) = rejected {
            self.odd(turn, Some(from), what);
        }
        // Differs from Kafka, which asks again at once for what it could not use.
        if is_empty || self.log.end() > log_end { Handled::Done } else { Handled::BackOff }
    }

    /// A follower's high watermark is its leader's, as far as its own log goes.
    fn learn_high_watermark(&mut self, turn: &mut Turn<'_>, from: NodeId, theirs: Option<Offset>) {
        let Some(theirs) = theirs.filter(|offset| offset.0 >= 0) else {
            return;
        };
        match self.high_watermark {
            Some(ours) if theirs < ours => {
                self.odd(
                    turn,
                    Some(from),
                    format!("its high watermark {theirs} is below ours, {ours}, which we keep"),
                );
            }
            ours => {
                let known = theirs.min(self.log.end());
                if ours.is_none_or(|ours| known > ours) {
                    self.set_high_watermark(turn, known);
                }
            }
        }
    }
}
