//! The 0-0 checkpoint that `format` writes: the quorum's own records, then the metadata that a new
//! cluster begins with (the layout of Kafka 4.4).

use std::fs;
use std::path::Path;

use bytes::Bytes;
use quorate_core::voters::VoterSet;
use quorate_storage::RealFs;
use quorate_storage::fs::FileSystem as _;
use quorate_storage::{LOG_DIR, checkpoint};
use quorate_wire::control::{
    ControlRecord, KRaftVersionFeature, KRaftVersionRecord, SnapshotFooterRecord,
    SnapshotHeaderRecord, VotersRecord, VotersRecordVoter,
};
use quorate_wire::message::Listener;
use quorate_wire::{EncodeError, Uuid, batch};

use super::bootstrap::Layout;
use super::{Plan, disk};
use crate::clock;
use crate::failure::Failure;

/// Refuses a metadata log directory without meta.properties that holds a log or an election nevertheless:
/// formatting it would give another node's identity to what is there.
///
/// Differs from Kafka: it formats over whatever it finds.
pub(super) fn check_empty(metadata_dir: &Path) -> Result<(), Failure> {
    let log_dir = metadata_dir.join(LOG_DIR);
    let names = match fs::read_dir(&log_dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            return Err(Failure::new(format!("cannot list {}: {error}", log_dir.display())));
        }
    };
    let own = checkpoint::file_name(checkpoint::BOOTSTRAP);
    for entry in names.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let written = entry.metadata().is_ok_and(|metadata| metadata.len() > 0);
        let log = name.ends_with(".log") && written;
        if log || name == "quorum-state" || (name.ends_with(".checkpoint") && name != own) {
            return Err(Failure::new(format!(
                "{} has no meta.properties but holds {name}: it was a node's directory",
                metadata_dir.display()
            ))
            .next("restore its meta.properties, or format another, empty directory"));
        }
    }
    Ok(())
}

/// Writes the checkpoints of a log directory that its layout has.
pub(super) fn write(plan: &Plan<'_>, dir: &Path) -> Result<(), Failure> {
    let now_ms = clock::now_ms();
    let is_metadata_dir = dir == plan.config.metadata_dir;
    match plan.layout {
        Layout::V4_0 => {
            let data = Data { header_ms: 0, control: Vec::new(), with_records: true };
            let batches = batches(plan, data, now_ms)?;
            checkpoint::write_bootstrap(&RealFs, dir, &batches).map_err(disk)?;
            match is_metadata_dir && plan.voters.is_some() {
                true => write_first(plan, dir, now_ms, false),
                false => Ok(()),
            }
        }
        Layout::V4_4 if plan.config.controller && is_metadata_dir => {
            write_first(plan, dir, now_ms, true)
        }
        Layout::V4_4 => Ok(()),
    }
}

/// Writes the 0-0 checkpoint.
fn write_first(
    plan: &Plan<'_>,
    metadata_dir: &Path,
    now_ms: i64,
    with_records: bool,
) -> Result<(), Failure> {
    let log_dir = metadata_dir.join(LOG_DIR);
    RealFs
        .create_dir(&log_dir)
        .and_then(|()| RealFs.sync_dir(metadata_dir))
        .map_err(|error| Failure::new(format!("cannot create {}: {error}", log_dir.display())))?;
    let mut control = Vec::new();
    if plan.config.static_voters.is_empty() {
        let record = KRaftVersionRecord { kraft_version: 1, ..Default::default() };
        control.push(ControlRecord::KRaftVersion(record));
    }
    control.extend(plan.voters.as_ref().map(|set| ControlRecord::Voters(voters_record(set))));
    let data = Data { header_ms: now_ms, control, with_records };
    let batches = batches(plan, data, now_ms)?;
    checkpoint::write(&RealFs, &log_dir, checkpoint::BOOTSTRAP, &batches).map_err(disk)?;
    Ok(())
}

/// What a checkpoint holds between its header and its footer.
struct Data {
    /// The time in the header record.
    header_ms: i64,
    /// What follows the header in its batch.
    control: Vec<ControlRecord>,
    /// Whether the bootstrap records are in it.
    with_records: bool,
}

/// Header and control records in one batch; the bootstrap records; the footer. Offsets count from 0, the
/// epoch is 0.
fn batches(plan: &Plan<'_>, data: Data, now_ms: i64) -> Result<Vec<Bytes>, Failure> {
    encode(plan, data, now_ms).map_err(|error| {
        Failure::new(format!("the checkpoint cannot be written: {error}"))
            .next("give shorter names of hosts, listeners or users")
    })
}

fn encode(plan: &Plan<'_>, data: Data, now_ms: i64) -> Result<Vec<Bytes>, EncodeError> {
    let mut control = vec![ControlRecord::SnapshotHeader(SnapshotHeaderRecord {
        last_contained_log_timestamp: data.header_ms,
        ..Default::default()
    })];
    control.extend(data.control);
    let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    let mut batches = vec![batch::encode_control(0, 0, now_ms, &control)?];
    let mut next = count(control.len());
    if data.with_records {
        let values = plan.bootstrap.values()?;
        batches.push(batch::encode_data(next, 0, now_ms, &values));
        next += count(values.len());
    }
    let footer = [ControlRecord::SnapshotFooter(SnapshotFooterRecord::default())];
    batches.push(batch::encode_control(next, 0, now_ms, &footer)?);
    Ok(batches)
}

fn voters_record(set: &VoterSet) -> VotersRecord {
    let voters = set.iter().map(|(id, voter)| VotersRecordVoter {
        voter_id: id.0,
        voter_directory_id: voter.directory.map_or(Uuid::ZERO, |id| Uuid(*id.as_bytes())),
        endpoints: voter
            .endpoints
            .iter()
            .map(|(name, endpoint)| Listener {
                name: name.as_str().to_owned(),
                host: endpoint.host.to_string(),
                port: endpoint.port,
                ..Default::default()
            })
            .collect(),
        kraft_version_feature: KRaftVersionFeature {
            min_supported_version: voter.kraft_versions.0.0,
            max_supported_version: voter.kraft_versions.1.0,
            ..Default::default()
        },
        ..Default::default()
    });
    VotersRecord { voters: voters.collect(), ..Default::default() }
}
