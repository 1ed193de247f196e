//! Machines, and processes that start on them.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use quorate_core::Replica;
use quorate_core::io::{ElectionState, Output, WriteId};
use quorate_core::message::{ControlRecord, KRaftVersion};
use quorate_core::voters::VoterSet;
use quorate_core::{Epoch, Offset};
use quorate_driver::{Directory, Log, Proposals};
use quorate_rpc::records::control_out;
use quorate_rpc::server::ServerContext;
use quorate_storage::{EncodedBatch, Store, StoreWrite, read_log};
use quorate_wire::batch::{encode_control, encode_data};

use super::{Draw, Happening, World};
use crate::checkers::PRELOADED;
use crate::clock::{Clock, SECOND, instant};
use crate::counters::Count;
use crate::disk::SimFs;
use crate::facts::{Image, NodeFacts, Seen, as_stored};
use crate::machine::{self, CLUSTER, Machine, Process, directory_id, log_dir, node_id};
use crate::plan::Plan;
use crate::script::Recording;
use crate::workload::Workload;

/// The machines of a plan, with their disks formatted, and what is true of them.
pub(super) fn machines<M>(plan: &Plan) -> (Vec<Machine<M>>, Vec<NodeFacts>) {
    let voters = machine::voters(plan);
    let mut machines = Vec::new();
    let mut facts = Vec::new();
    for index in 0..plan.nodes() {
        let directory = directory_id(index, 0);
        let is_voter = index < plan.voters;
        let first = if is_voter { voters.clone() } else { VoterSet::default() };
        let disk = machine::formatted(plan, index, directory, &first);
        let image = match plan.logs.get(index) {
            Some(log) if !log.is_empty() => preload(plan, index, &disk, log),
            _ => Image::default(),
        };
        let machine = Machine {
            disk,
            clock: Clock::new(plan.clock_rates.get(index).copied().unwrap_or(1_000_000)),
            generation: plan.generations[index],
            directory,
            boot: 0,
            process: None,
            paused_until: 0,
            stuck_until: 0,
            refuses_until: 0,
            doom: None,
            is_rotten: false,
            is_lost: false,
            is_starting: false,
        };
        facts.push(NodeFacts {
            id: node_id(index),
            key: machine.key(index),
            local: 0,
            first_voters: first,
            is_up: false,
            is_lost: false,
            durable: image.clone(),
            view: image,
            pending: VecDeque::new(),
            role: "down",
            role_epoch: Epoch(0),
            high_watermark: Offset::ZERO,
            described: None,
        });
        machines.push(machine);
    }
    (machines, facts)
}

/// Gives a directory a past: epochs, each with its leader's record and this many others.
fn preload(plan: &Plan, index: usize, disk: &SimFs, log: &[(i32, Option<usize>)]) -> Image {
    let mut opened = Store::open(disk.clone(), machine::options(plan, index)).expect("a good disk");
    let mut queue = VecDeque::new();
    let mut image = Image::default();
    let mut base = Offset::ZERO;
    let level = KRaftVersion(i16::from(plan.is_dynamic));
    for (epoch, records) in log {
        let change = ControlRecord::LeaderChange {
            leader: node_id(0),
            voters: (0..plan.voters).map(node_id).collect(),
            granting: Vec::new(),
        };
        let state = ElectionState {
            epoch: Epoch(*epoch),
            leader: None,
            voted: None,
            kraft_version: level,
            voters: Vec::new(),
        };
        queue.push_back(StoreWrite::ElectionState(state));
        let Some(records) = records else { continue };
        let opening = encode_control(base.0, *epoch, 0, &[control_out(&change)]).expect("no names");
        let mut batches = vec![(1, opening)];
        for i in 0..*records {
            let at = base.plus(1 + i);
            let value = [PRELOADED, format!("{at}@{epoch}").as_bytes()].concat();
            batches.push((1, encode_data(at.0, *epoch, 0, &[Bytes::from(value)])));
        }
        for (count, bytes) in batches {
            let end = base.plus(count);
            let epoch = Epoch(*epoch);
            queue.push_back(StoreWrite::Append(EncodedBatch {
                base,
                end,
                epoch,
                max_timestamp: 0,
                bytes,
            }));
            base = end;
        }
    }
    let mut writes: VecDeque<(WriteId, StoreWrite)> = (1..).map(WriteId).zip(queue).collect();
    for (_, write) in &writes {
        image.apply(write);
    }
    while !writes.is_empty() {
        opened.store.committer().run(&mut writes).expect("a good disk");
    }
    opened.store.close().expect("a good disk");
    image
}

impl<W: Workload> World<'_, W> {
    /// Starts a process on what its disk has.
    pub(super) fn start(&mut self, node: usize) {
        let machine = &mut self.machines[node];
        machine.is_starting = false;
        if machine.process.is_some() || machine.is_lost {
            return;
        }
        if machine.is_rotten {
            // What a start finds must be told by that start.
            machine.disk.heal();
        }
        machine.boot += 1;
        let boot = machine.boot;
        let opened = Directory::open(machine.disk.clone(), machine::options(self.plan, node));
        let failures = self.count_disk_failures(node);
        let machine = &self.machines[node];
        let directory = match opened {
            Ok(directory) => directory,
            Err(_) if failures > 0 => {
                // Its disk is still full, or not well. Somebody tries again.
                self.reboot_if_aborted(node);
                return self.start_in(node, SECOND);
            }
            Err(error) if machine.is_rotten => {
                self.note(node, || format!("does not start: {error}"));
                return self.lose(node);
            }
            Err(error) => {
                let what = format!("n{} does not start: {error}", node_id(node));
                return self.fail("recovery", what);
            }
        };
        let lost_bytes = directory.notes().iter().any(|note| note.bytes_lost > 0);
        for note in directory.notes() {
            self.trace
                .tell(self.now, node, || crate::trace::What::Disk(format!("recovery: {note}")));
        }
        let id = directory.id();
        let (recovered, store) = directory.into_parts();
        let mut found = Image::of(recovered.election.as_ref().map(as_stored));
        let disk = self.machines[node].disk.inner.clone();
        match read_log(&disk, &log_dir()) {
            Err(error) => return self.fail("recovery", error.to_string()),
            Ok(batches) => {
                for batch in batches {
                    let batch = match batch {
                        Ok(found) => found.batch,
                        Err(error) => return self.fail("recovery", error.to_string()),
                    };
                    found.apply(&StoreWrite::Append(EncodedBatch {
                        base: batch.base(),
                        end: batch.end(),
                        epoch: batch.epoch(),
                        max_timestamp: 0,
                        bytes: batch.bytes().clone(),
                    }));
                }
            }
        }
        let before = &self.facts.nodes[node];
        let survived = found.log.len() > before.durable.log.len() && !before.pending.is_empty();
        let has_all = found.has_prefix(&before.durable.log, before.durable.log.len());
        if self.machines[node].is_rotten {
            self.machines[node].is_rotten = false;
            if !has_all {
                // Damage was seen, and what was promised is gone: no operator lets it vote again. Or it was not
                // seen: the checksum of a batch covers neither its offset nor its epoch, and not every wrong
                // epoch contradicts what stands around it.
                let seen = if lost_bytes { "seen" } else { "not seen" };
                self.note(node, || format!("its disk is damaged, which was {seen}: it stays out"));
                drop(store);
                return self.lose(node);
            }
        }
        if lost_bytes {
            self.count(Count::TailCut);
        }
        if survived {
            self.count(Count::TailSurvived);
        }
        if boot > 1 {
            self.count(Count::Restart);
        }
        let epoch = found.election_epoch();
        if let Some(state) = &found.election {
            if state.leader == Some(node_id(node)) {
                self.count(Count::RestartAsLeader);
            } else if state.voted.is_some() {
                self.count(Count::RestartAsVoter);
            }
        }
        let seed = self.draw(Draw::Replica, node, boot).number();
        let config = machine::config(self.plan, node, id, seed);
        let context = ServerContext {
            cluster_id: CLUSTER.to_owned(),
            kraft_version: KRaftVersion(0),
            listeners: config.endpoints.clone(),
        };
        self.stepped = node;
        if self.trace.is_on {
            self.trace.recordings.insert(node, Recording::of_start(&config, &recovered));
        }
        let mut output = Output::default();
        let start = Replica::start(config, recovered.clone(), instant(0, 0), &mut output);
        let replica = match start {
            Ok(replica) => replica,
            Err(error) => {
                let what = format!("n{} does not start: {error}", node_id(node));
                return self.fail("recovery", what);
            }
        };
        let local = self.machines[node].clock.local(self.now);
        let description = replica.describe(instant(0, 0));
        self.facts.nodes[node].local = local;
        self.note(node, || {
            format!(
                "replica {} starts: {} epoch={epoch} end={}@{}",
                node_id(node),
                description.role,
                found.end(),
                found.last_epoch()
            )
        });
        self.observe(&Seen::Started {
            node,
            recovered: &recovered,
            found: &found,
            description: &description,
        });
        self.history.starts.push((self.now, node));
        let reader = store.reader();
        let mut process = Process {
            replica,
            output,
            messages: Vec::new(),
            events: Vec::new(),
            log: Log::new(recovered.log_end, self.plan.disk.tail_bytes),
            store,
            reader,
            context,
            started: local,
            inbox: VecDeque::new(),
            is_woken: false,
            timer: 0,
            timer_at: None,
            replies: BTreeMap::new(),
            last_request: 0,
            proposals: Proposals::default(),
            committed: Offset::ZERO,
            durable: WriteId(0),
            waiting: Vec::new(),
            queue: VecDeque::new(),
            is_committing: false,
            store_failed: false,
            state_machine: self.workload.machine(node_id(node)),
            applied: recovered.log_start,
            leaders: VecDeque::new(),
            token: None,
            old_token: None,
            is_stopping: false,
            apply_failed: false,
            down: SECOND,
        };
        self.record_output(node, &process, instant(0, 0));
        self.look(node, &mut process);
        self.machines[node].process = Some(process);
        self.wake(node);
    }

    pub(super) fn start_in(&mut self, node: usize, wait: u64) {
        let machine = &mut self.machines[node];
        if machine.is_lost || machine.is_starting {
            return;
        }
        machine.is_starting = true;
        self.after(wait, Happening::Start { node });
    }

    /// A disk is gone for good.
    pub(super) fn lose(&mut self, node: usize) {
        self.machines[node].is_lost = true;
        self.facts.nodes[node].is_lost = true;
    }
}
