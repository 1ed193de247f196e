//! A replica's directory in memory.

use bytes::Bytes;
use quorate_core::config::Recovered;
use quorate_core::io::{Batch, Content, ElectionState, Write};
use quorate_core::message::{ControlRecord, ReceivedBatch};
use quorate_core::{Epoch, Offset};

/// A log and an election state, as files.
#[derive(Clone, Default)]
pub(crate) struct Disk {
    pub(crate) election: Option<ElectionState>,
    pub(crate) log: Vec<ReceivedBatch>,
}

impl Disk {
    pub(crate) fn end(&self) -> Offset {
        self.log.last().map_or(Offset(0), |batch| batch.end)
    }

    pub(crate) fn last_epoch(&self) -> Epoch {
        self.log.last().map_or(Epoch(0), |batch| batch.epoch)
    }

    pub(crate) fn batch_before(&self, end: Offset) -> Option<&ReceivedBatch> {
        self.log.iter().rev().find(|batch| batch.base < end && end <= batch.end)
    }

    pub(crate) fn apply(&mut self, write: Write) {
        match write {
            Write::ElectionState(state) => self.election = Some(state),
            Write::Truncate { to } => {
                self.log.retain(|batch| batch.base < to);
                assert!(self.end() <= to, "a truncation inside a batch, to {to}");
            }
            Write::Append(batch) => {
                assert_eq!(batch.base, self.end(), "an append that leaves a gap");
                self.log.push(stored(batch));
            }
        }
    }

    pub(crate) fn recovered(&self, bootstrap: Vec<ControlRecord>) -> Recovered {
        let mut epochs: Vec<(Epoch, Offset)> = Vec::new();
        for batch in &self.log {
            if epochs.last().is_none_or(|(epoch, _)| *epoch < batch.epoch) {
                epochs.push((batch.epoch, batch.base));
            }
        }
        Recovered {
            election: self.election.clone(),
            log_start: Offset(0),
            log_end: self.end(),
            epochs,
            bootstrap,
            control: self.log.iter().flat_map(|batch| batch.control.clone()).collect(),
        }
    }
}

/// A batch "encoded": its bytes are its records in text.
pub(crate) fn stored(batch: Batch) -> ReceivedBatch {
    let Batch { base, end, epoch, content, .. } = batch;
    let (bytes, control) = match content {
        Content::Data(records) => (
            Bytes::from(records.iter().map(|r| r.as_ref()).collect::<Vec<_>>().join(&b' ')),
            vec![],
        ),
        Content::Control(records) => {
            let bytes = Bytes::from(format!("control {records:?}"));
            (bytes, records.into_iter().enumerate().map(|(i, r)| (base.plus(i), r)).collect())
        }
        // The edge reads the control records back out of the bytes: `Node::control` remembers them.
        Content::Encoded(bytes) => (bytes, vec![]),
    };
    ReceivedBatch { base, end, epoch, bytes, control }
}
