//! The `quorum-state` file: epoch, leader and vote, so that no replica votes twice in an epoch.
//!
//! One line of JSON, version 0 while kraft.version is 0, else version 1 (KIP-595, KIP-853). A file that
//! does not read is refused and never replaced: a fresh default could vote a second time.

use std::path::{Path, PathBuf};

use quorate_core::io::ElectionState;
use quorate_core::message::KRaftVersion;
use quorate_core::{DirectoryId, Epoch, NodeId, ReplicaKey};
use serde_json::{Map, Value};

use crate::error::StorageError;
use crate::fs::FileSystem;
use crate::meta_properties::parse_uuid;
use crate::small_file;

/// The file's name in the log directory.
pub const FILE_NAME: &str = "quorum-state";

/// Reads the file from a log directory; `None` if there is none: epoch 0, no vote.
///
/// # Errors
///
/// Whatever Kafka refuses too: a missing field, another version, text that is not one line of JSON. The
/// error names the file and the field.
pub fn read<F: FileSystem>(fs: &F, log_dir: &Path) -> Result<Option<ElectionState>, StorageError> {
    let path = path(log_dir);
    match small_file::read_text(fs, &path)? {
        Some(text) => parse(&text, &path).map(Some),
        None => Ok(None),
    }
}

/// Replaces the file durably.
///
/// # Errors
///
/// Those of the disk.
pub fn write<F: FileSystem>(
    fs: &F,
    log_dir: &Path,
    state: &ElectionState,
) -> Result<(), StorageError> {
    small_file::replace(fs, &path(log_dir), format(state).as_bytes())
}

fn path(log_dir: &Path) -> PathBuf {
    log_dir.join(FILE_NAME)
}

/// The line as Kafka writes it: member order and spacing too.
fn format(state: &ElectionState) -> String {
    let leader = state.leader.unwrap_or(NodeId(-1));
    let epoch = state.epoch;
    let voted = state.voted.map_or(NodeId(-1), |key| key.id);
    if state.kraft_version >= KRaftVersion(1) {
        let directory = match state.voted.and_then(|key| key.directory) {
            Some(directory) => directory.to_string(),
            None => NO_DIRECTORY.to_owned(),
        };
        return format!(
            r#"{{"leaderId":{leader},"leaderEpoch":{epoch},"votedId":{voted},"votedDirectoryId":"{directory}","data_version":1}}"#
        );
    }
    let voters: Vec<String> =
        state.voters.iter().map(|id| format!(r#"{{"voterId":{id}}}"#)).collect();
    format!(
        r#"{{"clusterId":"","leaderId":{leader},"leaderEpoch":{epoch},"votedId":{voted},"appliedOffset":0,"currentVoters":[{}],"data_version":0}}"#,
        voters.join(",")
    )
}

/// The zero uuid: no vote, or a vote for a replica whose directory is not known.
const NO_DIRECTORY: &str = "AAAAAAAAAAAAAAAAAAAAAA";

fn parse(text: &str, path: &Path) -> Result<ElectionState, StorageError> {
    let refuse = |field: &str, reason: String| StorageError::unreadable(path, field, reason);
    if text.is_empty() {
        return Err(refuse("line 1", format!("the file is empty; {NEXT_STEP}")));
    }
    // As Kafka does: later lines do not count.
    let line = text.lines().next().unwrap_or("");
    let value: Value = serde_json::from_str(line).map_err(|error| {
        refuse("line 1", format!("is not one line of JSON ({error}); {NEXT_STEP}"))
    })?;
    let Value::Object(fields) = value else {
        return Err(refuse("line 1", format!("is no JSON object; {NEXT_STEP}")));
    };
    let fields = Fields { fields: &fields, path };
    let version = match fields.int("data_version")? {
        0 => KRaftVersion(0),
        1 => KRaftVersion(1),
        other => {
            let reason = format!(
                "{other} is a version of this file that is not known (0 and 1 are); a newer release wrote it"
            );
            return Err(refuse("data_version", reason));
        }
    };
    let epoch = fields.int("leaderEpoch")?;
    if epoch < 0 {
        return Err(refuse("leaderEpoch", format!("{epoch} is negative")));
    }
    let leader = fields.node("leaderId")?;
    let voted = fields.node("votedId")?;
    let (directory, voters) = if version == KRaftVersion(0) {
        fields.text("clusterId")?;
        fields.long("appliedOffset")?;
        (None, fields.voters()?)
    } else {
        (fields.directory("votedDirectoryId")?, Vec::new())
    };
    Ok(ElectionState {
        epoch: Epoch(epoch),
        leader,
        voted: voted.map(|id| ReplicaKey::new(id, directory)),
        kraft_version: version,
        voters,
    })
}

const NEXT_STEP: &str = "a replica that forgets its vote may vote twice, so the file is not replaced: \
    restore it, or take this replica out of the quorum and let it join with an empty directory";

struct Fields<'a> {
    fields: &'a Map<String, Value>,
    path: &'a Path,
}

impl Fields<'_> {
    fn refuse(&self, field: &str, reason: impl ToString) -> StorageError {
        StorageError::unreadable(self.path, field, reason)
    }

    fn value(&self, field: &str) -> Result<&Value, StorageError> {
        self.fields.get(field).ok_or_else(|| self.refuse(field, "is missing"))
    }

    fn long(&self, field: &str) -> Result<i64, StorageError> {
        let value = self.value(field)?;
        value.as_i64().ok_or_else(|| self.refuse(field, format!("{value} is no whole number")))
    }

    fn int(&self, field: &str) -> Result<i32, StorageError> {
        let value = self.long(field)?;
        i32::try_from(value).map_err(|_| self.refuse(field, format!("{value} is out of range")))
    }

    fn text(&self, field: &str) -> Result<&str, StorageError> {
        let value = self.value(field)?;
        value.as_str().ok_or_else(|| self.refuse(field, format!("{value} is no text")))
    }

    /// A node's id, or -1 for none.
    fn node(&self, field: &str) -> Result<Option<NodeId>, StorageError> {
        match self.int(field)? {
            -1 => Ok(None),
            id if id >= 0 => Ok(Some(NodeId(id))),
            id => Err(self.refuse(field, format!("{id} is no node id"))),
        }
    }

    fn directory(&self, field: &str) -> Result<Option<DirectoryId>, StorageError> {
        let text = self.text(field)?;
        let bytes = parse_uuid(text)
            .ok_or_else(|| self.refuse(field, format!("{text:?} is no base64 uuid")))?;
        Ok(DirectoryId::from_bytes(bytes))
    }

    fn voters(&self) -> Result<Vec<NodeId>, StorageError> {
        const FIELD: &str = "currentVoters";
        let value = self.value(FIELD)?;
        let Some(elements) = value.as_array() else {
            return Err(self.refuse(FIELD, format!("{value} is no list")));
        };
        let voter = |element: &Value| {
            let fields = element.as_object()?;
            i32::try_from(fields.get("voterId")?.as_i64()?).ok().map(NodeId)
        };
        elements
            .iter()
            .map(|element| {
                voter(element)
                    .ok_or_else(|| self.refuse(FIELD, format!("{element} has no voterId")))
            })
            .collect()
    }
}
