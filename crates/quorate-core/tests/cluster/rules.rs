//! What Raft promises, checked on what replicas ask for and on what their disks hold.

use quorate_core::io::{Content, ElectionState, Event, Message, ProposalId, Write};
use quorate_core::message::{ReceivedBatch, Request, Response};
use quorate_core::{Epoch, Offset};

use super::World;

impl World {
    /// A write reaches stable media.
    pub(super) fn persist(&mut self, node: usize, write: Write) {
        let me = self.nodes[node].config.node;
        if let Write::ElectionState(ElectionState { epoch, leader: Some(leader), .. }) = &write
            && *leader == me
        {
            let first = *self.leaders.entry(*epoch).or_insert(node);
            assert_eq!(first, node, "epoch {epoch} has two leaders");
        }
        let durable = &mut self.nodes[node].durable;
        let before = durable.last_epoch();
        let is_append = matches!(write, Write::Append(_));
        durable.apply(write);
        if is_append && let Some(batch) = durable.log.last().cloned() {
            self.check_content(&batch, before);
        }
    }

    /// One offset and epoch is one byte string after one history, for ever (log matching).
    pub(super) fn check_content(&mut self, batch: &ReceivedBatch, before: Epoch) {
        let seen = (batch.bytes.clone(), before);
        let at = (batch.base, batch.epoch);
        let first = self.content.entry(at).or_insert_with(|| seen.clone());
        assert_eq!(*first, seen, "two histories at {}@{}", batch.base, batch.epoch);
    }

    pub(super) fn check_write(&mut self, node: usize, write: &Write) {
        let state = &self.nodes[node];
        match write {
            Write::Append(batch) => {
                if let Content::Control(records) = &batch.content {
                    let offsets = (0..).map(|i| batch.base.plus(i));
                    let records = offsets.zip(records.iter().cloned()).collect();
                    self.control.insert((batch.base, batch.epoch), records);
                }
            }
            Write::Truncate { to } => {
                assert!(*to >= state.high_watermark, "n{node}: committed records are cut at {to}");
            }
            Write::ElectionState(new) => {
                let last = state.pending.iter().rev().find_map(|(_, write)| match write {
                    Write::ElectionState(old) => Some(old),
                    _ => None,
                });
                if let Some(old) = last.or(state.durable.election.as_ref()) {
                    assert!(new.epoch >= old.epoch, "n{node}: epoch goes back");
                    let same_epoch = new.epoch == old.epoch;
                    assert!(
                        !same_epoch || old.leader.is_none() || old.leader == new.leader,
                        "n{node}: two leaders in one epoch"
                    );
                    let keeps = old.voted.is_none() || new.voted == old.voted;
                    let won = new.leader == Some(state.config.node);
                    assert!(!same_epoch || keeps || won, "n{node}: the vote of an epoch changes");
                    assert_ne!(new, old, "n{node}: an election state is written without need");
                }
            }
        }
    }

    pub(super) fn on_event(&mut self, node: usize, event: Event) {
        match event {
            Event::Role { role, epoch, .. } => {
                self.nodes[node].fetch_in_flight = None;
                self.nodes[node].leads = (role == "leader").then_some(epoch);
                if role == "leader" {
                    assert!(
                        !self.leaders.contains_key(&epoch),
                        "epoch {epoch} is led again by n{node}"
                    );
                    for (base, epoch) in &self.committed {
                        let has = self.nodes[node].view.log.iter();
                        let mut has = has.map(|batch| (batch.base, batch.epoch));
                        assert!(
                            has.any(|at| at == (*base, *epoch)),
                            "n{node} leads without {base}@{epoch}"
                        );
                    }
                }
            }
            Event::HighWatermark(end) => {
                let state = &mut self.nodes[node];
                assert!(end > state.high_watermark, "n{node}: the high watermark goes back");
                state.high_watermark = end;
                assert!(end <= state.view.end(), "n{node}: the high watermark is beyond the log");
                let last = state.view.batch_before(end).map(|batch| batch.epoch);
                assert!(
                    state.leads.is_none() || state.leads == last,
                    "n{node}: a leader commits by a record of an older epoch (Raft 5.4.2)"
                );
                self.check_committed(node, end);
            }
            Event::NotAppended { id, .. } => {
                self.not_appended.insert(id);
            }
            Event::Truncated { generation, .. } => self.nodes[node].generation = generation,
            Event::ShutDown => self.nodes[node].shut_down = true,
            Event::IntegrityFault(fault) => panic!("n{node}: {fault}"),
            _ => {}
        }
    }

    /// What is committed never changes, and a majority has it on stable media.
    pub(super) fn check_committed(&mut self, node: usize, end: Offset) {
        let batches = self.nodes[node].view.log.iter().filter(|batch| batch.base < end);
        let mine: Vec<(Offset, Epoch)> = batches.map(|batch| (batch.base, batch.epoch)).collect();
        let common = mine.len().min(self.committed.len());
        assert_eq!(mine[..common], self.committed[..common], "n{node}: committed records differ");
        if mine.len() > common {
            for at in &mine[common..] {
                let text = String::from_utf8_lossy(&self.content[at].0).into_owned();
                for id in
                    text.split(' ').filter_map(|word| word.strip_prefix('p')?.split('.').next())
                {
                    let id = ProposalId(id.parse().unwrap());
                    assert!(!self.not_appended.contains(&id), "{id:?} commits, but was refused");
                }
            }
            let last =
                self.nodes[node].view.batch_before(end).map(|batch| (batch.base, batch.epoch));
            let holders = self.nodes.iter().filter(|other| {
                other.durable.batch_before(end).map(|batch| (batch.base, batch.epoch)) == last
            });
            let holders = holders.count();
            assert!(holders > self.nodes.len() / 2, "{end} is committed on {holders} disks");
            self.committed = mine;
            self.committed_end = end;
        }
    }

    /// What leaves promises only what is on stable media.
    pub(super) fn check_promise(&mut self, node: usize, message: &Message) {
        let state = &self.nodes[node];
        let me = state.config.node;
        let (epoch, leader, voted) = match &state.durable.election {
            Some(state) => (state.epoch, state.leader, state.voted),
            None => (Epoch(0), None, None),
        };
        match message {
            Message::Request { request: Request::Vote(vote), .. } => {
                assert_eq!(
                    epoch, vote.epoch,
                    "n{node}: a vote request before its epoch is durable"
                );
                assert!(
                    vote.pre_vote || voted.is_some_and(|voted| voted.id == me),
                    "n{node}: own vote"
                );
            }
            Message::Request { request: Request::BeginQuorumEpoch(begin), .. } => {
                assert_eq!((epoch, leader), (begin.epoch, Some(me)), "n{node}: leads too early");
            }
            Message::Request { id, request: Request::Fetch(fetch), .. } => {
                assert_eq!(epoch, fetch.epoch, "n{node}: a Fetch before its epoch is durable");
                let durable = (state.durable.end(), state.durable.last_epoch());
                assert_eq!(
                    durable,
                    (fetch.offset, fetch.last_fetched_epoch),
                    "n{node}: a Fetch acknowledges"
                );
                let flying = state.fetch_in_flight;
                // One to a bootstrap server is given up sooner.
                let timeout = state.config.request_timeout.min(state.config.fetch_timeout / 2);
                assert!(
                    flying.is_none_or(|(_, since)| self.now >= since + timeout),
                    "n{node}: a second Fetch in flight"
                );
                self.nodes[node].fetch_in_flight = Some((*id, self.now));
            }
            Message::Response { id, response } => {
                let told = match response {
                    Response::Vote(vote) if vote.granted => {
                        let asker = self.askers[&(node, state.boot, *id)].3;
                        // Absent for a pre-vote.
                        assert!(
                            asker.is_none() || voted == asker || epoch > vote.current.epoch,
                            "n{node}: a vote is given before it is durable"
                        );
                        vote.current.epoch
                    }
                    Response::Vote(vote) => vote.current.epoch,
                    Response::Fetch(fetch) => fetch.current.epoch,
                    Response::BeginQuorumEpoch(answer) | Response::EndQuorumEpoch(answer) => {
                        answer.current.epoch
                    }
                    _ => Epoch(0),
                };
                assert!(epoch >= told, "n{node}: tells of an epoch that is not durable");
            }
            Message::Request { .. } => {}
        }
    }
}
