//! Record batches by number. A log is a short list of numbers, so that states are small and two batches are
//! the same if and only if their numbers are.

use std::collections::HashMap;

use bytes::Bytes;
use quorate_core::io::{Batch, Content};
use quorate_core::message::{ControlRecord, ReceivedBatch};
use quorate_core::{Epoch, Offset};

/// The number of a batch.
pub(crate) type BatchId = u32;

/// All batches that any replica ever wrote.
#[derive(Default)]
pub(crate) struct Batches {
    all: Vec<ReceivedBatch>,
    ids: HashMap<ReceivedBatch, BatchId>,
    /// The control records that a batch of the text `control 3` holds.
    controls: Vec<Vec<ControlRecord>>,
}

impl Batches {
    /// The number of a batch that a replica asks to be written.
    pub(crate) fn intern(&mut self, batch: Batch) -> BatchId {
        let bytes = match batch.content {
            Content::Data(values) => Bytes::from(values.join(&b' ')),
            Content::Control(records) => self.control_bytes(records),
            Content::Encoded(bytes) => bytes,
        };
        let control = self.read_control(&bytes, batch.base);
        let batch =
            ReceivedBatch { base: batch.base, end: batch.end, epoch: batch.epoch, bytes, control };
        if let Some(id) = self.ids.get(&batch) {
            return *id;
        }
        let id = BatchId::try_from(self.all.len()).expect("few batches");
        self.all.push(batch.clone());
        self.ids.insert(batch, id);
        id
    }

    /// Who granted its vote is written down for people, and nobody reads it: it is left out, so that logs which
    /// differ in nothing else are the same.
    fn control_bytes(&mut self, records: Vec<ControlRecord>) -> Bytes {
        let records: Vec<ControlRecord> = records
            .into_iter()
            .map(|record| match record {
                ControlRecord::LeaderChange { leader, .. } => {
                    ControlRecord::LeaderChange { leader, voters: vec![], granting: vec![] }
                }
                other => other,
            })
            .collect();
        let known = self.controls.iter().position(|known| *known == records);
        let index = known.unwrap_or_else(|| {
            self.controls.push(records);
            self.controls.len() - 1
        });
        Bytes::from(format!("control {index}"))
    }

    /// The control records that the core reads, as the edge finds them in the bytes.
    fn read_control(&self, bytes: &Bytes, base: Offset) -> Vec<(Offset, ControlRecord)> {
        let Some(records) = self.control_of(bytes) else {
            return vec![];
        };
        let with_offsets = records.iter().enumerate().map(|(i, record)| (base.plus(i), record));
        with_offsets
            .filter(|(_, record)| !matches!(record, ControlRecord::LeaderChange { .. }))
            .map(|(offset, record)| (offset, record.clone()))
            .collect()
    }

    fn control_of(&self, bytes: &Bytes) -> Option<&Vec<ControlRecord>> {
        let index = std::str::from_utf8(bytes).ok()?.strip_prefix("control ")?;
        self.controls.get(index.parse::<usize>().ok()?)
    }

    pub(crate) fn get(&self, id: BatchId) -> &ReceivedBatch {
        &self.all[usize::try_from(id).expect("a batch of ours")]
    }

    /// The end of a log.
    pub(crate) fn end(&self, log: &[BatchId]) -> Offset {
        log.last().map_or(Offset::ZERO, |id| self.get(*id).end)
    }

    /// The epoch of a log's last record.
    pub(crate) fn last_epoch(&self, log: &[BatchId]) -> Epoch {
        log.last().map_or(Epoch(0), |id| self.get(*id).epoch)
    }

    /// How many batches lie below an offset, if it is where one ends.
    pub(crate) fn below(&self, log: &[BatchId], offset: Offset) -> Option<usize> {
        if offset == Offset::ZERO {
            return Some(0);
        }
        log.iter().position(|id| self.get(*id).end == offset).map(|last| last + 1)
    }

    /// A batch for people: `0..3@1 control`, `3..4@1 p1`.
    pub(crate) fn show(&self, id: BatchId) -> String {
        let batch = self.get(id);
        let text = match self.control_of(&batch.bytes) {
            Some(records) if records.len() > 1 => "leader and voters".into(),
            Some(_) => "leader".into(),
            None => String::from_utf8_lossy(&batch.bytes),
        };
        format!("{}..{}@{} {text}", batch.base, batch.end, batch.epoch)
    }
}
