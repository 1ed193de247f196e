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
use quorate_wire::metadata::{FeatureLevelRecord, MetadataRecord};
use quorate_wire::{EncodeError, Uuid, batch};

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

/// Writes the checkpoint into the metadata log directory.
pub(super) fn write(plan: &Plan<'_>, metadata_dir: &Path) -> Result<(), Failure> {
    let log_dir = metadata_dir.join(LOG_DIR);
    RealFs
        .create_dir(&log_dir)
        .and_then(|()| RealFs.sync_dir(metadata_dir))
        .map_err(|error| Failure::new(format!("cannot create {}: {error}", log_dir.display())))?;
    let batches = batches(plan, clock::now_ms()).map_err(|error| {
        Failure::new(format!("the voters cannot be written: {error}"))
            .next("give shorter host or listener names")
    })?;
    checkpoint::write(&RealFs, &log_dir, checkpoint::BOOTSTRAP, &batches).map_err(disk)?;
    Ok(())
}

/// Header, KRaftVersion and Voters in one batch; the features; the footer. Offsets count from 0, the epoch
/// is 0.
fn batches(plan: &Plan<'_>, now_ms: i64) -> Result<Vec<Bytes>, EncodeError> {
    let mut control = vec![ControlRecord::SnapshotHeader(SnapshotHeaderRecord {
        last_contained_log_timestamp: now_ms,
        ..Default::default()
    })];
    if plan.config.static_voters.is_empty() {
        control.push(ControlRecord::KRaftVersion(KRaftVersionRecord {
            kraft_version: 1,
            ..Default::default()
        }));
    }
    control.extend(plan.voters.as_ref().map(|set| ControlRecord::Voters(voters_record(set))));
    let features: Vec<Bytes> = plan
        .bootstrap
        .levels
        .iter()
        .map(|(name, level)| feature_level(name, *level))
        .collect::<Result<_, _>>()?;
    let footer = [ControlRecord::SnapshotFooter(SnapshotFooterRecord::default())];
    let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    let data_base = count(control.len());
    Ok(vec![
        batch::encode_control(0, 0, now_ms, &control)?,
        batch::encode_data(data_base, 0, now_ms, &features),
        batch::encode_control(data_base + count(features.len()), 0, now_ms, &footer)?,
    ])
}

/// The value of a FeatureLevelRecord.
pub(crate) fn feature_level(name: &str, level: i16) -> Result<Bytes, EncodeError> {
    let record =
        FeatureLevelRecord { name: name.to_owned(), feature_level: level, ..Default::default() };
    MetadataRecord::FeatureLevel(record).encode(0)
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
