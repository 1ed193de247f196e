//! Power cuts before every single operation of a history of writes.
//!
//! After each one: what was reported durable is there, the log is one that the history had, and
//! the election state is none that is older than what was reported.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::path::Path;

use bytes::Bytes;
use quorate_core::io::WriteId;
use quorate_core::{Epoch, Offset};

use super::{DIR, batches, data, election, formatted, log_dir, log_file, open_mem, opening, run};
use crate::mem_fs::{Fault, MemFs, Operation, OperationKind};
use crate::random::Random;
use crate::{EncodedBatch, FileSystem, StorageError, StoreWrite};

/// What a directory would hold after some of the writes.
#[derive(Clone, Debug, Default)]
struct Model {
    epoch: i32,
    log: Vec<EncodedBatch>,
}

impl Model {
    fn end(&self) -> i64 {
        self.log.last().map_or(0, |batch| batch.end.0)
    }

    fn apply(&mut self, write: &StoreWrite) {
        match write {
            StoreWrite::ElectionState(state) => self.epoch = state.epoch.0,
            StoreWrite::Append(batch) => self.log.push(batch.clone()),
            StoreWrite::Truncate { to } => self.log.retain(|batch| batch.end <= *to),
        }
    }

    fn bytes(&self) -> Vec<Bytes> {
        self.log.iter().map(|batch| batch.bytes.clone()).collect()
    }
}

/// A history as a replica could make it: epochs are recorded before they are written, truncations are
/// followed by a newer epoch. `models[n]` is what the first n writes leave.
struct History {
    writes: Vec<StoreWrite>,
    models: Vec<Model>,
}

impl History {
    fn new(seed: u64, len: usize) -> History {
        let mut random = Random::new(seed);
        let mut history = History { writes: Vec::new(), models: vec![Model::default()] };
        while history.writes.len() < len {
            let model = history.models.last().unwrap().clone();
            match random.below(10) {
                0 | 1 => history.new_epoch(),
                2 if !model.log.is_empty() => {
                    let keep = random.below(model.log.len());
                    let to = model.log[keep].base;
                    history.push(StoreWrite::Truncate { to });
                    history.new_epoch();
                }
                _ if model.epoch == 0 => history.new_epoch(),
                _ => {
                    let (records, size) = (1 + random.below(3), 1 + random.below(120));
                    history.push(StoreWrite::Append(data(model.end(), model.epoch, records, size)));
                }
            }
        }
        history
    }

    fn new_epoch(&mut self) {
        let model = self.models.last().unwrap();
        let (epoch, end) = (model.epoch + 1, model.end());
        self.push(election(epoch));
        self.push(StoreWrite::Append(opening(end, epoch)));
    }

    fn push(&mut self, write: StoreWrite) {
        let mut model = self.models.last().unwrap().clone();
        model.apply(&write);
        self.writes.push(write);
        self.models.push(model);
    }

    /// Opens the disk and does the writes, as many in a queue as the seed says; tidies up now and then.
    /// Returns how many writes were reported durable before an error, if there was one.
    fn play(&self, fs: &MemFs, seed: u64) -> (usize, Result<(), StorageError>) {
        let mut store = match open_mem(fs) {
            Ok(opened) => opened.store,
            Err(error) => return (0, Err(error)),
        };
        let mut random = Random::new(seed);
        let mut queue = VecDeque::new();
        // Appends one by one are many, and get room ahead.
        let in_a_row = if seed.is_multiple_of(2) { 6 } else { 1 };
        let mut submitted = 0;
        let mut durable = 0;
        let result = loop {
            let more = (submitted + 1 + random.below(in_a_row)).min(self.writes.len());
            for n in submitted..more {
                queue.push_back((WriteId(n as u64 + 1), self.writes[n].clone()));
            }
            submitted = more;
            if queue.is_empty() {
                break Ok(());
            }
            match store.committer().run(&mut queue) {
                Ok(through) => durable = usize::try_from(through.0).unwrap(),
                Err(error) => break Err(error),
            }
            if random.below(8) == 0
                && let Err(error) = store.committer().tidy()
            {
                break Err(error);
            }
        };
        // Killed: nothing is closed.
        (durable, result)
    }

    /// Checks what a crash left after this many durable writes.
    fn check(&self, fs: &MemFs, durable: usize) -> Model {
        only_the_newest_segment_ends_in_zeros(fs);
        let mut opened = open_mem(fs).unwrap();
        let left = batches(fs, Path::new(DIR));
        let epoch = opened.election.as_ref().map_or(0, |state| state.epoch.0);

        // Writes after the durable ones were under way: any run of appends, or one of the others.
        let mut after = durable;
        while let Some(StoreWrite::Append(_)) = self.writes.get(after) {
            after += 1;
        }
        let after = after.max((durable + 1).min(self.writes.len()));
        let before = self.models[durable].bytes();
        let possible = self.models[durable..=after].iter().any(|model| {
            let model = model.bytes();
            // A truncation may be done in part; an append is whole or not there.
            left == model
                || (left.len() <= before.len()
                    && before.starts_with(&left)
                    && left.starts_with(&model))
        });
        assert!(
            possible,
            "{} batches are left, {} were durable, {:?} was under way",
            left.len(),
            before.len(),
            self.writes.get(durable)
        );
        let epochs: Vec<i32> =
            self.models[durable..=after].iter().map(|model| model.epoch).collect();
        assert!(epochs.contains(&epoch), "epoch {epoch}, not one of {epochs:?}");
        self.check_summary(&opened.epochs, opened.log_end, &left);
        assert!(opened.epochs.iter().all(|(in_log, _)| in_log.0 <= epoch));

        // It goes on from there, and the next one finds it in order.
        let end = opened.log_end.0;
        let next = epoch + 1;
        run(
            &mut opened.store,
            1,
            [
                election(next),
                StoreWrite::Append(opening(end, next)),
                StoreWrite::Append(data(end + 1, next, 2, 50)),
            ],
        )
        .unwrap();
        opened.store.close().unwrap();
        let again = open_mem(&fs.crash(0)).unwrap();
        assert_eq!(again.log_end, Offset(end + 3));
        assert_eq!(again.notes, []);
        let log = self.models[after].log.iter().chain(&self.models[durable].log);
        let log = left
            .iter()
            .map(|bytes| log.clone().find(|batch| batch.bytes == *bytes).unwrap().clone());
        Model { epoch, log: log.collect() }
    }

    fn check_summary(&self, epochs: &[(Epoch, Offset)], end: Offset, left: &[Bytes]) {
        let all = self.models.iter().flat_map(|model| &model.log);
        let mut expected_end = Offset(0);
        let mut expected: Vec<(Epoch, Offset)> = Vec::new();
        for bytes in left {
            let batch = all.clone().find(|batch| batch.bytes == *bytes).unwrap();
            assert_eq!(batch.base, expected_end);
            expected_end = batch.end;
            if expected.last().is_none_or(|(last, _)| *last != batch.epoch) {
                expected.push((batch.epoch, batch.base));
            }
        }
        assert_eq!(end, expected_end);
        assert_eq!(epochs, expected);
        assert!(epochs.is_sorted());
    }
}

/// Kafka would drop the segments behind one that does.
fn only_the_newest_segment_ends_in_zeros(fs: &MemFs) {
    let mut names = fs.list(&log_dir()).unwrap();
    names.retain(|name| name.ends_with(".log"));
    names.sort_unstable();
    names.pop();
    for name in names {
        let content = fs.content(&log_file(&name)).unwrap();
        // Each batch ends with its record's count of headers, 0.
        let zeros = content.iter().rev().take_while(|byte| **byte == 0).count();
        assert!(zeros < 16, "{name} ends with {zeros} zeros");
    }
}

/// Cuts the power before each operation of this history. Returns how many there are, and how many make room.
fn cut_everywhere(history: &History, play_seed: u64, crash_seeds: u64) -> (usize, usize) {
    let fs = formatted();
    fs.start_record();
    let (durable, result) = history.play(&fs, play_seed);
    result.unwrap();
    assert_eq!(durable, history.writes.len());
    let operations = fs.operations();
    for n in 0..operations {
        let fs = formatted();
        fs.fail_at(n, Fault::Forever(ErrorKind::Other));
        let (durable, result) = history.play(&fs, play_seed);
        assert!(result.is_err(), "operation {n} of {operations} did not matter");
        for seed in 0..crash_seeds {
            history.check(&fs.crash(seed * 1000 + n as u64), durable);
        }
    }
    let makes_room = |op: &&Operation| op.kind == OperationKind::Allocate;
    (operations, fs.record().iter().filter(makes_room).count())
}

#[test]
fn power_cuts_before_every_operation() {
    let (mut operations, mut rooms) = (0, 0);
    for seed in 0..4 {
        let history = History::new(seed, 60);
        let has = |kind: fn(&StoreWrite) -> bool| history.writes.iter().any(kind);
        assert!(has(|write| matches!(write, StoreWrite::Append(_))));
        let (all, make_room) = cut_everywhere(&history, seed, 5);
        operations += all;
        rooms += make_room;
    }
    assert!(operations > 500, "{operations} are too few to mean much");
    assert!(rooms > 10, "{rooms} of them make room");
}

#[test]
fn a_power_cut_during_recovery() {
    let history = History::new(7, 30);
    let fs = formatted();
    history.play(&fs, 7).1.unwrap();
    let operations = fs.operations();
    for first in (0..operations).step_by(3) {
        let fs = formatted();
        fs.fail_at(first, Fault::Forever(ErrorKind::Other));
        let (durable, _) = history.play(&fs, 7);
        for second in 0.. {
            let fs = fs.crash(first as u64);
            fs.fail_at(second, Fault::Forever(ErrorKind::Other));
            let done = open_mem(&fs).is_ok();
            history.check(&fs.crash(second as u64), durable);
            if done {
                break;
            }
        }
    }
}

/// A process that is killed leaves its writes in the page cache, where the next one finds and trusts
/// them. From then on they must outlast a power cut.
#[test]
fn what_the_next_process_finds_outlasts_a_power_cut() {
    let history = History::new(3, 40);
    let fs = formatted();
    history.play(&fs, 3).1.unwrap();
    for n in 0..fs.operations() {
        let fs = formatted();
        fs.fail_at(n, Fault::Forever(ErrorKind::Other));
        let _ = history.play(&fs, 3);
        let fs = fs.kill();
        let found = open_mem(&fs).unwrap();
        let (log, election) = (batches(&fs, Path::new(DIR)), found.election);
        for seed in 0..4 {
            let fs = fs.crash(seed);
            let again = open_mem(&fs).unwrap();
            assert_eq!(again.election, election, "operation {n}");
            assert_eq!(batches(&fs, Path::new(DIR)), log, "operation {n}");
        }
    }
}
