//! Record batches at the edge of the core: what comes in is checked, what goes out is encoded once.

use bytes::Bytes;
use quorate_core::ids::{Epoch, NodeId, Offset, ReplicaKey};
use quorate_core::io::{Batch, Content};
use quorate_core::message::{ControlRecord, KRaftVersion, Received, ReceivedBatch};
use quorate_core::voters::{Voter, VoterSet};
use quorate_wire::batch::{BatchError, batches, control_records, encode_control, encode_data};
use quorate_wire::{EncodeError, batch, control as wire};

use crate::common::{directory_out, endpoints_in, endpoints_out, key_in};

/// Why records are not what they should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordsError {
    /// The batch is not whole, not right, or would stop a Java replica.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// A control record says something impossible.
    #[error("the control record at offset {offset}: {reason}")]
    Control {
        /// Its offset.
        offset: i64,
        /// What is wrong with it.
        reason: String,
    },
    /// No leader has this epoch.
    #[error("negative leader epoch {0}")]
    Epoch(i32),
    /// The value to be appended has no bytes: no reader of the log takes it.
    #[error("record {0} of the batch is empty")]
    EmptyValue(usize),
    /// The batch has no records.
    #[error("the batch has no records")]
    Empty,
    /// A field is longer than the format allows.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

/// Checks the records of a Fetch answer, batch by batch. The batches before the first bad one stand;
/// a last one that is cut short is normal, and dropped.
pub fn check(bytes: Bytes) -> Received {
    let mut received = Received::default();
    let mut rest = batches(bytes);
    loop {
        let position = rest.position();
        let rejected = match rest.next() {
            None | Some(Err(BatchError::Incomplete { .. })) => return received,
            Some(Err(error)) => error.into(),
            Some(Ok(batch)) => match check_batch(batch) {
                Ok(batch) => {
                    received.batches.push(batch);
                    continue;
                }
                Err(error) => error,
            },
        };
        received.rejected = Some(format!("batch at byte {position}: {rejected}"));
        return received;
    }
}

/// Checks what is in one whole batch.
///
/// # Errors
/// The first thing that is wrong.
pub fn check_batch(batch: batch::Batch) -> Result<ReceivedBatch, RecordsError> {
    let (base, epoch) = (batch.base_offset(), batch.leader_epoch());
    if epoch < 0 {
        return Err(RecordsError::Epoch(epoch));
    }
    batch.raft_check()?;
    let mut control = Vec::new();
    for (offset, record) in control_records(&batch)? {
        let record =
            control_in(record).map_err(|reason| RecordsError::Control { offset, reason })?;
        control.push((Offset(offset), record));
    }
    Ok(ReceivedBatch {
        base: Offset(base),
        end: Offset(batch.end_offset()),
        epoch: Epoch(epoch),
        control,
        bytes: batch.into_bytes(),
    })
}

/// Encodes a batch to be appended, with this time in milliseconds since 1970. One that came encoded is
/// passed on as it is.
///
/// # Errors
/// If it has no records, an empty one, or a name that is too long.
///
/// # Panics
/// If the core counted its bytes or records otherwise.
pub fn encode(batch: &Batch, timestamp_ms: i64) -> Result<Bytes, RecordsError> {
    let (base, epoch) = (batch.base.0, batch.epoch.0);
    let (bytes, count) = match &batch.content {
        Content::Encoded(bytes) => return Ok(bytes.clone()),
        Content::Data(values) => {
            if let Some(index) = values.iter().position(Bytes::is_empty) {
                return Err(RecordsError::EmptyValue(index));
            }
            if values.is_empty() {
                return Err(RecordsError::Empty);
            }
            (encode_data(base, epoch, timestamp_ms, values), values.len())
        }
        Content::Control(records) => {
            if records.is_empty() {
                return Err(RecordsError::Empty);
            }
            let control: Vec<_> = records.iter().map(control_out).collect();
            (encode_control(base, epoch, timestamp_ms, &control)?, records.len())
        }
    };
    assert_eq!(bytes.len(), batch.encoded_len, "the length of the batch at {}", batch.base);
    assert_eq!(batch.base.plus(count), batch.end, "the records of the batch at {}", batch.base);
    Ok(bytes)
}

/// A control record as the core knows it.
///
/// # Errors
/// In words, if a voter comes twice, has a negative id or a name that is too long in upper case, there are no
/// voters, or a level of kraft.version is not one that we know.
pub fn control_in(record: wire::ControlRecord) -> Result<ControlRecord, String> {
    let ids = |voters: Vec<wire::Voter>| voters.iter().map(|v| NodeId(v.voter_id)).collect();
    Ok(match record {
        wire::ControlRecord::LeaderChange(change) => ControlRecord::LeaderChange {
            leader: NodeId(change.leader_id),
            voters: ids(change.voters),
            granting: ids(change.granting_voters),
        },
        wire::ControlRecord::SnapshotHeader(header) => ControlRecord::SnapshotHeader {
            last_contained_log_timestamp: header.last_contained_log_timestamp,
        },
        wire::ControlRecord::SnapshotFooter(_) => ControlRecord::SnapshotFooter,
        wire::ControlRecord::KRaftVersion(record) => {
            let level = KRaftVersion(record.kraft_version);
            let (min, max) = KRaftVersion::SUPPORTED;
            if level < min || level > max {
                return Err(format!("kraft.version {} is not supported", level.0));
            }
            ControlRecord::KRaftVersion(level)
        }
        wire::ControlRecord::Voters(record) => {
            let voters = ControlRecord::Voters(voters_in(record)?);
            // A leader writes it again, and names that are too long in upper case could not be.
            control_out(&voters).value_len().map_err(|error| error.to_string())?;
            voters
        }
    })
}

fn voters_in(record: wire::VotersRecord) -> Result<VoterSet, String> {
    if record.voters.is_empty() {
        return Err("no voters".to_owned());
    }
    if let Some(voter) = record.voters.iter().find(|voter| voter.voter_id < 0) {
        return Err(format!("voter {} has a negative id", voter.voter_id));
    }
    let voters = record.voters.into_iter().map(|voter| {
        let levels = voter.kraft_version_feature;
        let key = key_in(voter.voter_id, voter.voter_directory_id);
        let voter = Voter {
            directory: key.directory,
            endpoints: endpoints_in(voter.endpoints),
            kraft_versions: (
                KRaftVersion(levels.min_supported_version),
                KRaftVersion(levels.max_supported_version),
            ),
        };
        (key.id, voter)
    });
    VoterSet::new(voters).ok_or_else(|| "a voter comes twice".to_owned())
}

/// A control record as it is written.
pub fn control_out(record: &ControlRecord) -> wire::ControlRecord {
    let voters = |ids: &[NodeId]| {
        ids.iter().map(|id| wire::Voter { voter_id: id.0, ..Default::default() }).collect()
    };
    match record {
        ControlRecord::LeaderChange { leader, voters: all, granting } => {
            wire::ControlRecord::LeaderChange(wire::LeaderChangeMessage {
                leader_id: leader.0,
                voters: voters(all),
                granting_voters: voters(granting),
                ..Default::default()
            })
        }
        ControlRecord::KRaftVersion(level) => {
            wire::ControlRecord::KRaftVersion(wire::KRaftVersionRecord {
                kraft_version: level.0,
                ..Default::default()
            })
        }
        ControlRecord::Voters(set) => wire::ControlRecord::Voters(wire::VotersRecord {
            voters: set.iter().map(|(id, voter)| voter_out(id, voter)).collect(),
            ..Default::default()
        }),
        ControlRecord::SnapshotHeader { last_contained_log_timestamp } => {
            wire::ControlRecord::SnapshotHeader(wire::SnapshotHeaderRecord {
                last_contained_log_timestamp: *last_contained_log_timestamp,
                ..Default::default()
            })
        }
        ControlRecord::SnapshotFooter => {
            wire::ControlRecord::SnapshotFooter(wire::SnapshotFooterRecord::default())
        }
    }
}

fn voter_out(id: NodeId, voter: &Voter) -> wire::VotersRecordVoter {
    wire::VotersRecordVoter {
        voter_id: id.0,
        voter_directory_id: directory_out(&ReplicaKey::new(id, voter.directory)),
        endpoints: endpoints_out(&voter.endpoints),
        kraft_version_feature: wire::KRaftVersionFeature {
            min_supported_version: voter.kraft_versions.0.0,
            max_supported_version: voter.kraft_versions.1.0,
            ..Default::default()
        },
        ..Default::default()
    }
}
