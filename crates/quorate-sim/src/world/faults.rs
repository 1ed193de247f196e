//! Disturbances, as the schedule has them.

use std::collections::VecDeque;
use std::path::PathBuf;

use quorate_core::voters::VoterSet;
use quorate_core::{Epoch, Offset};
use quorate_storage::mem_fs::MemFs;
use quorate_storage::read_log;

use super::{Draw, Happening, World};
use crate::clock::Micros;
use crate::counters::Count;
use crate::facts::Image;
use crate::machine::{self, Doom, Inbound, directory_id, log_dir};
use crate::plan::{Action, Target};
use crate::random::Random;
use crate::workload::Workload;

impl<W: Workload> World<'_, W> {
    fn find(&mut self, target: Target) -> Option<usize> {
        let leader = self.facts.leader();
        let node = match target {
            Target::Node(index) => (index < self.machines.len()).then_some(index),
            Target::Leader => leader,
            Target::Other(n) => {
                let others: Vec<usize> =
                    (0..self.plan.voters).filter(|index| Some(*index) != leader).collect();
                others.get(n.checked_rem(others.len())?).copied()
            }
        }?;
        self.history.hits.push((self.now, node));
        Some(node)
    }

    pub(super) fn act(&mut self, action: Action) {
        match action {
            Action::Propose { pick, records, size } => {
                self.propose(pick, records, size);
            }
            Action::Cut { from, to, both, lasts } => {
                if let (Some(from), Some(to)) = (self.find(from), self.find(to)) {
                    self.cut(from, to, lasts);
                    if both {
                        self.cut(to, from, lasts);
                    }
                    self.count(if both { Count::Partition } else { Count::OneWay });
                    if self.machines.len() > 2 {
                        self.count(Count::Partial);
                    }
                    self.note(from, || format!("the link to n{} is cut, both={both}", to + 1));
                }
            }
            Action::Slow { from, to, by, lasts } => {
                if let (Some(from), Some(to)) = (self.find(from), self.find(to)) {
                    let until = self.now + lasts;
                    let link = self.links.of(from, to);
                    link.slow_until = until;
                    link.slow_by = by;
                    self.count(Count::SlowLink);
                    self.note(from, || format!("the link to n{} is slow by {by} us", to + 1));
                }
            }
            Action::RefuseOne { who, from, lasts } => {
                if let (Some(who), Some(from)) = (self.find(who), self.find(from)) {
                    self.links.of(from, who).refused_until = self.now + lasts;
                    self.reset(from, who);
                    self.note(who, || format!("accepts no connections of n{}", from + 1));
                }
            }
            Action::Split { sides, one_way, lasts } => {
                let side = |node: usize| sides >> (node % 64) & 1;
                for from in 0..self.machines.len() {
                    for to in 0..self.machines.len() {
                        let is_cut = side(from) != side(to) && (!one_way || side(from) == 0);
                        if is_cut {
                            self.cut(from, to, lasts);
                        }
                    }
                }
                self.count(if one_way { Count::OneWay } else { Count::Partition });
                self.note(0, || format!("the network is split, sides={sides:b} one_way={one_way}"));
            }
            Action::Blackout { down } => {
                self.count(Count::Blackout);
                self.note(0, || "the power fails everywhere".to_owned());
                for node in 0..self.machines.len() {
                    if self.machines[node].process.is_some() {
                        self.end_process(node, true, None);
                        let more = self.draw(Draw::Start, node, self.events).below(down);
                        self.start_in(node, down + more);
                    }
                }
            }
            Action::Isolate { who, .. }
            | Action::Refuse { who, .. }
            | Action::Crash { who, .. }
            | Action::Pause { who, .. }
            | Action::Reset { who }
            | Action::StickDisk { who, .. }
            | Action::FailDisk { who, .. }
            | Action::FillDisk { who, .. }
            | Action::Rot { who, .. }
            | Action::Wipe { who, .. }
            | Action::JumpClock { who, .. }
            | Action::SetWall { who, .. }
            | Action::Resign { who }
            | Action::Shutdown { who, .. }
            | Action::RepeatFetch { who } => {
                if let Some(node) = self.find(who) {
                    self.hit(node, action);
                }
            }
        }
    }

    fn hit(&mut self, node: usize, action: Action) {
        match action {
            Action::Isolate { sends, hears, observers, lasts, .. } => {
                let others = if observers { self.machines.len() } else { self.plan.voters };
                for other in (0..others).filter(|other| *other != node) {
                    if !sends {
                        self.cut(node, other, lasts);
                    }
                    if !hears {
                        self.cut(other, node, lasts);
                    }
                }
                self.count(if sends == hears { Count::Partition } else { Count::OneWay });
                self.note(node, || format!("is cut off, sends={sends} hears={hears}"));
            }
            Action::Crash { power, mid_write, down, .. }
                if self.machines[node].process.is_some() =>
            {
                let process = self.machines[node].process.as_ref();
                let is_idle = process.is_some_and(|process| {
                    !process.store_failed && process.queue.is_empty() && process.waiting.is_empty()
                });
                match mid_write {
                    Some(operations) if is_idle && self.quiet.is_none() => {
                        self.machines[node].doom = Some(Doom { power, operations, down });
                    }
                    _ => self.crash(node, power, mid_write, down),
                }
            }
            Action::Refuse { lasts, .. } => {
                self.machines[node].refuses_until = self.now + lasts;
                for other in (0..self.machines.len()).filter(|other| *other != node) {
                    self.reset(other, node);
                }
                self.note(node, || format!("accepts no connections for {lasts} us"));
            }
            Action::Pause { lasts, .. } => {
                let until = self.now + lasts;
                self.machines[node].paused_until = until;
                self.count(Count::Paused);
                self.note(node, || format!("stands still for {lasts} us"));
            }
            Action::Reset { .. } => {
                for other in (0..self.machines.len()).filter(|other| *other != node) {
                    self.reset(node, other);
                    self.reset(other, node);
                }
                self.note(node, || "has its connections reset".to_owned());
            }
            Action::StickDisk { lasts, .. } => {
                self.machines[node].stuck_until = self.now + lasts;
                self.note(node, || format!("its disk is stuck for {lasts} us"));
            }
            Action::FailDisk { operation, after, .. } => {
                self.machines[node].disk.arm(operation, after);
                self.note(node, || format!("{operation:?} will fail, after {after} more"));
            }
            Action::FillDisk { lasts, .. } => {
                self.machines[node].disk.fill(true);
                self.note(node, || format!("its disk is full for {lasts} us"));
                self.after(lasts, Happening::Unfill { node });
            }
            Action::Rot { live, down, .. } => self.rot(node, live, down),
            Action::Wipe { even_static, down, .. } if self.plan.is_dynamic || even_static => {
                self.wipe(node, down)
            }
            Action::JumpClock { by, .. } => {
                let now = self.now;
                self.machines[node].clock.jump(now, by);
                self.count(Count::ClockJump);
                self.note(node, || format!("its clock jumps by {by} us"));
                let boot = self.machines[node].boot;
                self.after(1, Happening::Wake { node, boot });
            }
            Action::SetWall { by_ms, .. } => {
                self.machines[node].clock.set_wall(by_ms);
                self.count(Count::WallSet);
                self.note(node, || format!("its wall clock is set by {by_ms} ms"));
            }
            Action::Resign { .. } => {
                let process = self.machines[node].process.as_ref();
                if let Some(token) = process.and_then(|process| process.token.clone()) {
                    self.note(node, || "its state machine resigns".to_owned());
                    self.receive(node, Inbound::Resign(token.epoch()));
                }
            }
            Action::Shutdown { down, .. } => {
                if let Some(process) = &mut self.machines[node].process {
                    process.down = down;
                    self.count(Count::ShutDown);
                    self.note(node, || "is asked to stop".to_owned());
                    self.receive(node, Inbound::Shutdown);
                }
            }
            Action::RepeatFetch { .. } => {
                if let Some((to, frame, from)) = self.last_fetch.get(&node).cloned() {
                    self.count(Count::RepeatedFetch);
                    self.note(node, || "a copy of its last Fetch arrives late".to_owned());
                    self.after(1000, Happening::Request { to, frame, from });
                }
            }
            _ => {}
        }
    }

    fn cut(&mut self, from: usize, to: usize, lasts: Micros) {
        let until = self.now + lasts;
        self.links.of(from, to).cut_until = until;
    }

    /// Whether one more voter may be lost for good.
    fn can_lose(&self, node: usize) -> bool {
        let machine = &self.machines[node];
        let is_first =
            machine.directory == directory_id(node, 0) && !machine.is_lost && !machine.is_rotten;
        let budget = (self.plan.voters - 1) / 2;
        is_first && (node >= self.plan.voters || self.lost_voters() < budget)
    }

    /// Flips a bit in a log.
    fn rot(&mut self, node: usize, live: bool, down: Micros) {
        if !self.can_lose(node) || self.machines[node].process.is_none() {
            return;
        }
        if !live {
            self.end_process(node, false, None);
        }
        let mut random = self.draw(Draw::Fault, node, self.events);
        let disk = self.machines[node].disk.inner.clone();
        if flip_a_bit(&disk, &mut random, live) {
            self.count(if live { Count::LiveRot } else { Count::BitRot });
            self.machines[node].is_rotten = true;
            self.note(node, || "a bit on its disk goes wrong".to_owned());
        }
        if !live {
            self.start_in(node, down);
        }
    }

    /// An empty disk, and a new directory id: whoever it was is gone, and it comes back as an observer.
    fn wipe(&mut self, node: usize, down: Micros) {
        if !self.can_lose(node) {
            return;
        }
        self.end_process(node, false, None);
        self.count(Count::Wiped);
        self.note(node, || "its disk is wiped".to_owned());
        let directory = directory_id(node, 1);
        let nobody = VoterSet::default();
        let fresh = machine::formatted(self.plan, node, directory, &nobody);
        self.machines[node].disk = fresh;
        self.machines[node].directory = directory;
        self.machines[node].is_rotten = false;
        let facts = &mut self.facts.nodes[node];
        let gone = std::mem::take(&mut facts.durable);
        self.facts.graves.insert(facts.key, gone);
        facts.key = self.machines[node].key(node);
        facts.view = Image::default();
        facts.pending = VecDeque::new();
        if self.plan.is_dynamic {
            facts.first_voters = nobody;
        }
        facts.high_watermark = Offset::ZERO;
        facts.role_epoch = Epoch(0);
        self.start_in(node, down);
    }
}

/// Changes one bit of one batch in a log.
fn flip_a_bit(disk: &MemFs, random: &mut Random, live: bool) -> bool {
    let Ok(found) = read_log(disk, &log_dir()) else { return false };
    let places: Vec<(PathBuf, u64, usize)> = found
        .map_while(Result::ok)
        .map(|found| ((*found.path).clone(), found.batch.position(), found.batch.bytes().len()))
        .collect();
    if places.is_empty() {
        return false;
    }
    let (path, position, len) = places[random.index(places.len())].clone();
    // The epoch, four bytes after offset and length, is covered by no checksum: a process that runs knows what it was, one
    // that starts may not.
    let byte = loop {
        let byte = if random.percent(50) { random.index(24.min(len)) } else { random.index(len) };
        if live || !(12..16).contains(&byte) {
            break byte;
        }
    };
    let Ok(position) = usize::try_from(position) else { return false };
    let bit = u8::try_from(random.below(8)).unwrap_or(0);
    disk.damage(&path, position + byte, bit)
}
