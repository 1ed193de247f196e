//! The commit thread of a machine, on virtual time, and the end of a process.

use quorate_core::io::WriteId;
use quorate_storage::FileSystem;
use quorate_storage::mem_fs::Fault;

use super::{Draw, Happening, World};
use crate::clock::{Micros, SECOND};
use crate::counters::Count;
use crate::disk::{DiskFailure, DiskOperation};
use crate::facts::Seen;
use crate::machine::{Inbound, Process, log_dir};
use crate::trace::What;
use crate::workload::Workload;

impl<W: Workload> World<'_, W> {
    /// Takes what waits, if the thread is idle.
    pub(super) fn begin_commit(&mut self, node: usize, process: &mut Process<W::Machine>) {
        if process.is_committing || process.store_failed {
            return;
        }
        process.queue.append(&mut std::mem::take(&mut process.waiting).into());
        if process.queue.is_empty() {
            return;
        }
        process.is_committing = true;
        let disk = &self.plan.disk;
        let mut random = self.draw(Draw::Sync, node, self.events);
        let mut wait = random.within(disk.sync.0, disk.sync.1);
        if self.quiet.is_none() && random.per_mille(disk.slow) {
            wait += random.below(disk.slow_by);
            self.count(Count::SlowSync);
        }
        let boot = self.machines[node].boot;
        self.after(wait, Happening::Commit { node, boot });
    }

    /// Does the writes that may share a sync: all at once, at the moment at which they are done.
    pub(super) fn commit(&mut self, node: usize) {
        let machine = &mut self.machines[node];
        let boot = machine.boot;
        if machine.stuck_until > self.now {
            let until = machine.stuck_until;
            self.count(Count::StuckSync);
            return self.at(until, Happening::Commit { node, boot });
        }
        // The end of a stuck disk may have come twice.
        if machine.process.as_ref().is_none_or(|process| !process.is_committing) {
            return;
        }
        if let Some(doom) = machine.doom.take() {
            return self.crash(node, doom.power, Some(doom.operations), doom.down);
        }
        let Some(mut process) = machine.process.take() else { return };
        process.is_committing = false;
        let before = process.queue.len();
        match process.store.committer().run(&mut process.queue) {
            Ok(through) => {
                let done = before - process.queue.len();
                if done > 1 {
                    self.count(Count::GroupCommit);
                }
                if process.queue.front().is_some() {
                    self.count(Count::BarrierWait);
                }
                self.trace.tell(self.now, node, || What::Disk(format!("durable #{}", through.0)));
                self.persisted(node, through);
                let wait = self.draw(Draw::Wake, node, self.events).within(5, 60);
                self.after(wait, Happening::Stored { node, boot, through: Some(through) });
                self.begin_commit(node, &mut process);
                if !process.is_committing && process.store.committer().is_untidy() {
                    self.after(SECOND, Happening::Tidy { node, boot });
                }
            }
            Err(error) => {
                self.trace.tell(self.now, node, || What::Disk(error.to_string()));
                process.store_failed = true;
                self.after(20, Happening::Stored { node, boot, through: None });
            }
        }
        self.machines[node].process = Some(process);
        self.count_disk_failures(node);
        self.watch_segments(node);
    }

    /// Counts the errors that a disk has given out since; how many.
    pub(super) fn count_disk_failures(&mut self, node: usize) -> usize {
        let failures = self.machines[node].disk.take_failures();
        for failure in &failures {
            self.count(match failure {
                DiskFailure::Armed(DiskOperation::Write) => Count::WriteError,
                DiskFailure::Armed(DiskOperation::Sync) => Count::SyncError,
                DiskFailure::Armed(DiskOperation::Rename) => Count::RenameError,
                DiskFailure::Armed(DiskOperation::SyncDir) => Count::SyncDirError,
                DiskFailure::Full => Count::DiskFull,
                DiskFailure::Aborted => continue,
            });
        }
        failures.len()
    }

    fn persisted(&mut self, node: usize, through: WriteId) {
        while let Some((id, write)) = self.facts.nodes[node].pending.front().cloned() {
            if id > through {
                break;
            }
            self.observe(&Seen::Persisted { node, write: &write });
        }
    }

    fn watch_segments(&mut self, node: usize) {
        if self.counters.get(Count::Roll) > 0 {
            return;
        }
        let names = self.machines[node].disk.list(&log_dir()).unwrap_or_default();
        if names.iter().filter(|name| name.ends_with(".log")).count() > 1 {
            self.count(Count::Roll);
        }
    }

    pub(super) fn on_stored(&mut self, node: usize, through: Option<WriteId>) {
        match through {
            Some(through) => self.receive(node, Inbound::Durable(through)),
            None => self.receive(node, Inbound::StoreFailed),
        }
    }

    pub(super) fn tidy(&mut self, node: usize) {
        let boot = self.machines[node].boot;
        let Some(process) = &mut self.machines[node].process else { return };
        if process.is_committing || process.store_failed {
            return;
        }
        if let Err(error) = process.store.committer().tidy() {
            process.store_failed = true;
            self.trace.tell(self.now, node, || What::Disk(error.to_string()));
            self.after(20, Happening::Stored { node, boot, through: None });
        }
        self.count_disk_failures(node);
    }

    /// Leaves a directory in good order, as a node does that stops.
    pub(super) fn close_store(&mut self, node: usize) {
        let Some(mut process) = self.machines[node].process.take() else { return };
        process.queue.append(&mut std::mem::take(&mut process.waiting).into());
        while !process.queue.is_empty() && !process.store_failed {
            match process.store.committer().run(&mut process.queue) {
                Ok(through) => self.persisted(node, through),
                Err(_) => process.store_failed = true,
            }
        }
        // The directory is in good order nevertheless.
        let _ = process.store.close();
        self.count_disk_failures(node);
        self.reboot_if_aborted(node);
        self.crashed(node);
    }

    /// A file system that changes no more is mounted anew: the machine is started again.
    pub(super) fn reboot_if_aborted(&mut self, node: usize) {
        if self.machines[node].disk.is_aborted() {
            let seed = self.draw(Draw::Crash, node, self.events).number();
            self.machines[node].disk.reboot(seed);
            self.count_survivors(node);
        }
    }

    fn count_survivors(&mut self, node: usize) {
        let report = self.machines[node].disk.inner.crash_report();
        if report.has_torn_log {
            self.count(Count::TornBatch);
        }
        if report.is_out_of_order {
            self.count(Count::OutOfOrder);
        }
    }

    /// A process ends, in the middle of a write if that is asked for and there is one, and is started again.
    pub(super) fn crash(&mut self, node: usize, power: bool, mid_write: Option<u32>, down: Micros) {
        self.count(if power { Count::PowerCut } else { Count::Kill });
        self.note(node, || if power { "loses its power" } else { "is killed" }.to_owned());
        self.end_process(node, power, mid_write);
        self.start_in(node, down);
    }

    /// A process is gone; unsynced writes may be lost with the power.
    pub(super) fn end_process(&mut self, node: usize, power: bool, mid_write: Option<u32>) {
        let seed = self.draw(Draw::Crash, node, self.events).number();
        let machine = &mut self.machines[node];
        machine.doom = None;
        let mut is_torn = false;
        let mut power = power;
        if let Some(mut process) = machine.process.take() {
            if let Some(operations) = mid_write
                && !process.store_failed
                && machine.stuck_until <= self.now
            {
                process.queue.append(&mut std::mem::take(&mut process.waiting).into());
                let at = usize::try_from(operations).unwrap_or(0);
                machine.disk.inner.fail_at(at, Fault::Forever(std::io::ErrorKind::Interrupted));
                while !process.queue.is_empty() {
                    if process.store.committer().run(&mut process.queue).is_err() {
                        is_torn = true;
                        break;
                    }
                }
            }
            drop(process);
        }
        power |= machine.disk.is_aborted();
        let _ = machine.disk.take_failures();
        if !power {
            // Its machine ends the connections of a process that is gone.
            for other in (0..self.machines.len()).filter(|other| *other != node) {
                if !self.links.is_cut(node, other, self.now) {
                    self.reset(other, node);
                }
            }
        }
        let machine = &mut self.machines[node];
        if power {
            machine.disk.reboot(seed);
            self.count_survivors(node);
        } else {
            machine.disk.kill();
        }
        if is_torn {
            self.count(Count::TornWrite);
        }
        self.crashed(node);
    }

    fn crashed(&mut self, node: usize) {
        self.facts.nodes[node].local = 0;
        self.observe(&Seen::Crashed { node });
        let boot = self.machines[node].boot;
        self.flights.retain(|(from, of, _), _| *from != node || *of != boot);
    }
}
