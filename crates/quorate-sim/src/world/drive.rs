//! A process at work: the loop of the node's driver, on virtual time.

use quorate_core::io::{Event, Input, Message, Output, RequestId, StorageTrouble, Timeout};
use quorate_core::message::Via;
use quorate_core::message::{LogRange, Response};
use quorate_core::{Instant, Offset};
use quorate_driver::{
    CommittedBatch, Filled, LeaderToken, Leadership, Outcome, StateMachine, unreadable,
};
use quorate_rpc::server::{Decoded, decode_request};
use quorate_storage::TailRead;
use quorate_wire::batch::batches;

use super::{Draw, Happening, World};
use crate::clock::{Micros, SECOND, instant};
use crate::counters::Count;
use crate::facts::Seen;
use crate::history::RoleChange;
use crate::machine::{Inbound, Process, Reply, listener};
use crate::trace::{self, What};
use crate::workload::Workload;

/// How long a node whose disk failed goes on telling others.
const LAST_WORDS: Micros = SECOND;

/// How long answers may take to leave after a shutdown is complete.
const FAREWELL: Micros = 50_000;

impl<W: Workload> World<'_, W> {
    /// Something came in: the process will look at it soon. For a write that it does not wait for it may not be woken.
    pub(super) fn receive(&mut self, node: usize, inbound: Inbound) {
        let events = self.events;
        let mut random = self.draw(Draw::Wake, node, events);
        let machine = &mut self.machines[node];
        let boot = machine.boot;
        let Some(process) = &mut machine.process else { return };
        let is_withheld = matches!(inbound, Inbound::Durable(_))
            && !process.replica.waits_for_disk()
            && random.percent(50);
        process.inbox.push_back(inbound);
        if !process.is_woken && !is_withheld {
            process.is_woken = true;
            let (from, to) = self.plan.wake;
            self.after(random.within(from, to), Happening::Wake { node, boot });
        }
    }

    fn local(&self, node: usize, started: Micros) -> Instant {
        instant(self.machines[node].clock.local(self.now), started)
    }

    pub(super) fn on_timer(&mut self, node: usize, timer: u64) {
        let Some(process) = &mut self.machines[node].process else { return };
        if process.timer == timer {
            process.timer_at = None;
            self.wake(node);
        }
    }

    /// Steps whatever has come in, a tick if one is due, and does what that asks for.
    pub(super) fn wake(&mut self, node: usize) {
        let paused_until = self.machines[node].paused_until;
        let boot = self.machines[node].boot;
        if paused_until > self.now {
            return self.at(paused_until, Happening::Wake { node, boot });
        }
        let Some(mut process) = self.machines[node].process.take() else { return };
        process.is_woken = false;
        let now = self.local(node, process.started);
        self.facts.nodes[node].local = self.machines[node].clock.local(self.now);
        let mut inputs = 0;
        while let Some(inbound) = process.inbox.pop_front() {
            inputs += 1;
            self.take_in(node, &mut process, inbound, now);
        }
        while let Some((at, why)) = process.output.deadline
            && at <= now
        {
            self.step(node, &mut process, Input::Tick, now);
            if why != Timeout::Linger {
                break;
            }
        }
        self.flush(node, &mut process, now, inputs);
        self.set_timer(node, &mut process, now);
        if !self.machines[node].is_lost {
            self.machines[node].process = Some(process);
        }
    }

    fn set_timer(&mut self, node: usize, process: &mut Process<W::Machine>, now: Instant) {
        let Some((deadline, _)) = process.output.deadline else { return };
        let since = u64::try_from(deadline.since_start().as_micros()).unwrap_or(u64::MAX);
        let boot = self.machines[node].boot;
        let at = if deadline <= now {
            self.now + 1
        } else {
            self.machines[node].clock.when(process.started.saturating_add(since))
        };
        if process.timer_at != Some(at) {
            process.timer += 1;
            process.timer_at = Some(at);
            let timer = process.timer;
            self.at(at, Happening::Timer { node, boot, timer });
        }
    }

    fn take_in(
        &mut self,
        node: usize,
        process: &mut Process<W::Machine>,
        inbound: Inbound,
        now: Instant,
    ) {
        let input = match inbound {
            Inbound::Request { frame, from } => {
                match decode_request(frame.clone(), &process.context) {
                    Ok(Decoded::Request(request, format)) => {
                        process.last_request += 1;
                        let id = RequestId(process.last_request);
                        self.digest.add_bytes(&frame);
                        self.trace.tell(self.now, node, || What::Hears {
                            from: from.node,
                            text: trace::request(&request),
                        });
                        let reply = Reply { to: from, format, request: request.clone() };
                        process.replies.insert(id, reply);
                        Input::Request { id, via: Via(listener()), request }
                    }
                    Ok(Decoded::Answer(_)) => {
                        return self.fail("codec", format!("n{} answers without state", node + 1));
                    }
                    Err(error) => return self.fail("codec", error.to_string()),
                }
            }
            Inbound::Answer { id, response } => {
                self.observe(&Seen::Ended { node, id });
                Input::Response { id, response }
            }
            Inbound::Durable(through) => {
                if through <= process.durable {
                    return;
                }
                process.durable = through;
                process.log.on_durable(through);
                Input::Durable { through }
            }
            Inbound::StoreFailed => {
                let boot = self.machines[node].boot;
                if !process.is_stopping {
                    process.is_stopping = true;
                    self.after(LAST_WORDS, Happening::Exit { node, boot, in_order: false });
                }
                Input::Storage(StorageTrouble::Failed)
            }
            Inbound::Propose { proposal, token, values } => {
                let id = process.proposals.add(proposal);
                Input::Propose { id, epoch: token.epoch(), records: values }
            }
            Inbound::Resign(epoch) => Input::Resign { epoch },
            Inbound::Shutdown => Input::Shutdown,
            Inbound::Cold { range, response, reply, records } => {
                let Some(records) = records else {
                    return self.respond(node, process, &reply, &unreadable(response), Vec::new());
                };
                let before = records.len();
                let (response, records) = process.log.fill_cold(range, response, records);
                if records.len() < before {
                    self.count(Count::MovedOn);
                }
                return self.respond(node, process, &reply, &response, records);
            }
        };
        self.step(node, process, input, now);
    }

    fn step(&mut self, node: usize, process: &mut Process<W::Machine>, input: Input, now: Instant) {
        self.stepped = node;
        if self.trace.is_on
            && let Some(recording) = self.trace.recordings.get_mut(&node)
        {
            recording.begin_step(now, &input);
        }
        let is_due = process.output.deadline.is_some_and(|(at, _)| at <= now);
        let is_waited_for =
            !matches!(input, Input::Durable { .. }) || is_due || process.replica.waits_for_disk();
        let outputs = |output: &Output| (output.messages.len(), output.events.len());
        let before = outputs(&process.output);
        process.replica.step(now, input, &mut process.output);
        if !is_waited_for && outputs(&process.output) != before {
            let what = format!("n{} waited for its disk and did not say so", node + 1);
            self.fail("liveness", what);
        }
        self.record_output(node, process, now);
        self.look(node, process);
    }

    pub(super) fn record_output(
        &mut self,
        node: usize,
        process: &Process<W::Machine>,
        now: Instant,
    ) {
        let recording = self.trace.recordings.get_mut(&node);
        if let Some(step) = recording.and_then(|recording| recording.steps.last_mut()) {
            step.writes.clone_from(&process.output.writes);
            step.events.clone_from(&process.output.events);
            step.messages.clone_from(&process.output.messages);
            step.leader = process.replica.describe(now).leader;
        }
    }

    /// Shows the checkers what a step asks for; it is done when all inputs are stepped.
    pub(super) fn look(&mut self, node: usize, process: &mut Process<W::Machine>) {
        let wall = self.machines[node].clock.wall_ms(self.now);
        for (id, write) in std::mem::take(&mut process.output.writes) {
            let write = process.log.submit(id, write, wall);
            self.trace.tell(self.now, node, || What::Write(trace::write(id.0, &write)));
            self.observe(&Seen::Submitted { node, id, write: &write });
            if !process.store_failed {
                process.waiting.push((id, write));
            }
        }
        for event in std::mem::take(&mut process.output.events) {
            if let Event::Role { role, .. } = &event
                && let Some(count) = Count::of_move(self.facts.nodes[node].role, role)
            {
                self.count(count);
            }
            self.trace.tell(self.now, node, || What::Event(trace::event(&event)));
            self.observe(&Seen::Event { node, event: &event });
            process.events.push(event);
        }
        for message in std::mem::take(&mut process.output.messages) {
            let asked = match &message {
                Message::Request { .. } => None,
                Message::Response { id, .. } => process.replies.get(id).map(|reply| &reply.request),
            };
            self.observe(&Seen::Sent { node, message: &message, asked });
            process.messages.push(message);
        }
    }

    fn flush(
        &mut self,
        node: usize,
        process: &mut Process<W::Machine>,
        now: Instant,
        inputs: usize,
    ) {
        self.look(node, process);
        let wrote = !process.waiting.is_empty();
        process.context.kraft_version = process.replica.kraft_version();
        self.begin_commit(node, process);
        let messages = std::mem::take(&mut process.messages);
        let sent = messages.len();
        for message in messages {
            self.send(node, process, message);
        }
        let events = std::mem::take(&mut process.events);
        for event in events {
            self.notify(node, process, event);
        }
        self.apply(node, process);
        let description = process.replica.describe(now);
        self.digest.add(self.now);
        self.digest.add(u64::try_from(description.log_end.offset.0).unwrap_or(0));
        self.digest.add(u64::try_from(description.epoch.0).unwrap_or(0));
        self.watch_own_epoch(node);
        self.observe(&Seen::Woke {
            node,
            description: &description,
            now,
            deadline: process.output.deadline,
            inputs: inputs + usize::from(wrote),
            messages: sent,
        });
    }

    fn send(&mut self, node: usize, process: &mut Process<W::Machine>, message: Message) {
        match message {
            Message::Request { to, id, request } => self.ask(node, &to, id, &request),
            Message::Response { id, response } => {
                if let Some(reply) = process.replies.remove(&id) {
                    self.fill(node, process, reply, response);
                }
            }
        }
    }

    fn fill(
        &mut self,
        node: usize,
        process: &mut Process<W::Machine>,
        reply: Reply,
        response: Response<LogRange>,
    ) {
        match process.log.fill(response) {
            Filled::Ready(response, records) => {
                self.respond(node, process, &reply, &response, records)
            }
            Filled::Cold(range, response) => {
                self.count(Count::ColdRead);
                let boot = self.machines[node].boot;
                let (from, to) =
                    if self.quiet.is_some() { (50, 1000) } else { self.plan.disk.read };
                let wait = self.draw(Draw::Sync, node, self.events).within(from, to);
                self.after(wait, Happening::Cold { node, boot, range, response, reply });
            }
        }
    }

    /// The reader thread reads; the driver hears of it.
    pub(super) fn on_cold(
        &mut self,
        node: usize,
        range: LogRange,
        response: Response<LogRange>,
        reply: Reply,
    ) {
        let Some(process) = &self.machines[node].process else { return };
        let max_bytes = usize::try_from(range.max_bytes).unwrap_or(usize::MAX);
        match process.reader.read(range.from, range.to, max_bytes) {
            Ok(records) => {
                let records = Some(records);
                self.receive(node, Inbound::Cold { range, response, reply, records });
            }
            Err(error) if self.meets_rot(node) => {
                self.trace.tell(self.now, node, || What::Disk(error.to_string()));
                self.receive(node, Inbound::Cold { range, response, reply, records: None });
            }
            Err(error) => self.fail("cold-read", error.to_string()),
        }
    }

    /// A read met what it should not; whether that is damage that we did.
    fn meets_rot(&mut self, node: usize) -> bool {
        let is_rotten = self.machines[node].is_rotten;
        if is_rotten {
            self.count(Count::RotRead);
        }
        is_rotten
    }

    fn notify(&mut self, node: usize, process: &mut Process<W::Machine>, event: Event) {
        match event {
            Event::HighWatermark(high_watermark) => {
                process.committed = high_watermark;
                self.history.high_watermarks.push((self.now, node, high_watermark));
                for (proposal, outcome) in process.proposals.on_committed(high_watermark) {
                    self.tell_client(node, proposal, &outcome);
                }
            }
            Event::Leader { epoch, leader } => {
                let is_me = leader == Some(process.replica.id());
                if !is_me {
                    for (proposal, outcome) in process.proposals.on_leadership_lost() {
                        self.tell_client(node, proposal, &outcome);
                    }
                }
                let token = is_me.then(|| LeaderToken::new(epoch));
                let leadership = Leadership { epoch, leader, token };
                process.leaders.push_back((process.committed, leadership));
            }
            Event::Appended { id, base, end, epoch } => {
                process.proposals.on_appended(id, base, end, epoch);
            }
            Event::NotAppended { id, reason } => {
                let ended = process.proposals.on_not_appended(id, reason.into());
                if let Some((proposal, outcome)) = ended {
                    self.tell_client(node, proposal, &outcome);
                }
            }
            Event::Role { role, epoch, reason } => self.on_role(node, role, epoch, reason),
            Event::Truncated { to, .. } => {
                self.history.truncations.push((self.now, node, to));
                self.count(Count::Truncation);
            }
            Event::Round(round) => {
                if !round.pre_vote && round.won == Some(false) {
                    self.count(Count::VoteLost);
                }
            }
            Event::ShutDown => {
                if !process.is_stopping {
                    process.is_stopping = true;
                    let boot = self.machines[node].boot;
                    self.after(FAREWELL, Happening::Exit { node, boot, in_order: true });
                }
            }
            Event::Refused { peer, what } => self.on_refused(node, peer, &what),
            Event::IntegrityFault(_) => {}
        }
    }

    fn on_refused(&mut self, node: usize, peer: Option<quorate_core::NodeId>, what: &str) {
        // Replicas of ours never send what is refused as odd; but a wiped node's id stands for two, and the network makes
        // things late.
        let excused = self.lost_voters() > 0
            || what.starts_with("its high watermark")
            || what.contains("an old Fetch came late");
        if !excused {
            self.fail("nothing-odd", format!("n{} refuses what {peer:?} sent: {what}", node + 1));
        }
    }

    fn on_role(
        &mut self,
        node: usize,
        role: &'static str,
        epoch: quorate_core::Epoch,
        reason: &'static str,
    ) {
        self.history.roles.push(RoleChange { at: self.now, node, role, epoch, reason });
        let path = match reason {
            "no majority fetches" => Count::CheckQuorum,
            "a voter has no pre-vote" => Count::NoPreVote,
            "lost the pre-vote" | "pre-vote timeout" | "the leader lives" => Count::PreVoteLost,
            "its oldest write is stuck" => Count::StuckResignation,
            "storage failed" => Count::DiskResignation,
            "its state machine resigned" => Count::StateMachineResigns,
            "shutting down" => Count::HandOver,
            _ => return,
        };
        self.count(path);
    }

    /// Gives the state machine what is committed, and who leads.
    fn apply(&mut self, node: usize, process: &mut Process<W::Machine>) {
        loop {
            while let Some((_, leadership)) =
                process.leaders.pop_front_if(|(at, _)| *at <= process.applied)
            {
                process.state_machine.leader_changed(&leadership);
                if let Some(token) = process.token.take() {
                    process.old_token = Some(token);
                }
                process.token = leadership.token;
            }
            if process.applied >= process.committed || process.apply_failed {
                return;
            }
            let found = match process.log.tail().read(process.applied, process.committed, 64 << 10)
            {
                TailRead::Hot(found) => found,
                TailRead::Nothing => return,
                TailRead::Cold => {
                    let readable = process.committed.min(process.replica.durable_end());
                    match process.reader.read(process.applied, readable, 64 << 10) {
                        Ok(found) if found.is_empty() => return,
                        Ok(found) => found,
                        Err(error) if self.meets_rot(node) => {
                            // A node whose state machine has stopped ends.
                            self.trace.tell(self.now, node, || What::Disk(error.to_string()));
                            process.apply_failed = true;
                            let boot = self.machines[node].boot;
                            self.after(20, Happening::Exit { node, boot, in_order: false });
                            return;
                        }
                        Err(error) => return self.fail("cold-read", error.to_string()),
                    }
                }
            };
            for bytes in found {
                for batch in batches(bytes) {
                    let batch = match batch {
                        Ok(batch) => batch,
                        Err(error) => return self.fail("cold-read", error.to_string()),
                    };
                    process.applied = process.applied.max(Offset(batch.end_offset()));
                    if let Some(batch) = CommittedBatch::new(batch) {
                        self.observe(&Seen::Applied { node, batch: &batch });
                        process.state_machine.apply(&batch);
                    }
                }
            }
        }
    }

    /// Whether the rule of the own epoch is what keeps something from being committed.
    fn watch_own_epoch(&mut self, node: usize) {
        let facts = &self.facts.nodes[node];
        if !facts.is_leader() {
            return;
        }
        let committed = self.facts.committed.len();
        let own = facts.view.log.partition_point(|entry| entry.epoch < facts.role_epoch);
        if own <= committed
            || facts.high_watermark.0 > 0 && facts.view.count_below(facts.high_watermark) > own
        {
            return;
        }
        let voters = facts.voters();
        let holders = voters.ids().filter_map(|id| voters.key(id)).filter(|key| {
            self.facts.disk_of(key).is_some_and(|disk| disk.has_prefix(&facts.view.log, own))
        });
        if holders.count() >= voters.majority() {
            self.count(Count::OwnEpochHolds);
        }
    }

    pub(super) fn tell_client(&mut self, node: usize, proposal: u64, outcome: &Outcome) {
        let disks: Vec<_> = self
            .machines
            .iter()
            .map(|machine| (!machine.is_rotten && !machine.is_lost).then(|| machine.disk.clone()))
            .collect();
        self.observe(&Seen::Outcome { node, proposal, outcome, disks: &disks });
        self.note(node, || format!("proposal {proposal} ends: {outcome:?}"));
        self.count(match outcome {
            Outcome::Committed { .. } => Count::OutcomeCommitted,
            Outcome::NotAppended(quorate_driver::NotAppended::QueueFull) => Count::QueueFull,
            Outcome::NotAppended(_) => Count::OutcomeNotAppended,
            Outcome::OutcomeUnknown { .. } => Count::OutcomeUnknown,
        });
        self.on_outcome(node, proposal, outcome);
    }

    /// A process that was about to stop ends, and somebody starts it again.
    pub(super) fn exit(&mut self, node: usize, in_order: bool) {
        let Some(process) = &mut self.machines[node].process else { return };
        let down = process.down;
        for (proposal, outcome) in process.proposals.on_stopped() {
            self.tell_client(node, proposal, &outcome);
        }
        self.note(node, || "stops".to_owned());
        if in_order {
            self.close_store(node);
        }
        self.end_process(node, false, None);
        self.start_in(node, down);
    }
}
