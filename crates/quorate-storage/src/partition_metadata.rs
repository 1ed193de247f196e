//! `partition.metadata`: which topic a log directory belongs to, always the metadata topic.

use std::path::Path;

use crate::error::StorageError;
use crate::fs::FileSystem;
use crate::small_file;

/// The file's name in the log directory.
pub(crate) const FILE_NAME: &str = "partition.metadata";

/// The fixed id of `__cluster_metadata`.
const TOPIC_ID: &str = "AAAAAAAAAAAAAAAAAAAAAQ";

/// Checks the file, if there is one.
pub(crate) fn check<F: FileSystem>(fs: &F, log_dir: &Path) -> Result<(), StorageError> {
    let path = log_dir.join(FILE_NAME);
    match small_file::read_text(fs, &path)? {
        Some(text) => check_text(&text, &path),
        None => Ok(()),
    }
}

/// Writes the file durably if there is none, as must be before the first append.
pub(crate) fn write_if_missing<F: FileSystem>(fs: &F, log_dir: &Path) -> Result<(), StorageError> {
    let path = log_dir.join(FILE_NAME);
    match small_file::read(fs, &path)? {
        Some(_) => Ok(()),
        None => {
            small_file::replace(fs, &path, format!("version: 0\ntopic_id: {TOPIC_ID}").as_bytes())
        }
    }
}

fn check_text(text: &str, path: &Path) -> Result<(), StorageError> {
    let refuse = |field: &str, reason: String| Err(StorageError::unreadable(path, field, reason));
    let mut lines = text.lines();
    match lines.next().and_then(|line| line.strip_prefix("version:")).map(str::trim) {
        Some("0") => {}
        Some(other) => return refuse("version", format!("{other:?} is not known (0 is)")),
        None => return refuse("version", "line 1 is not `version: 0`".to_owned()),
    }
    match lines.next().and_then(|line| line.strip_prefix("topic_id:")).map(str::trim) {
        Some(TOPIC_ID) => Ok(()),
        Some(other) => Err(StorageError::Foreign {
            path: path.to_owned(),
            field: "topic_id",
            found: other.to_owned(),
            expected: TOPIC_ID.to_owned(),
            next: "this is the log of another topic; point metadata.log.dir at a controller's directory",
        }),
        None => refuse("topic_id", "line 2 is not `topic_id: …`".to_owned()),
    }
}
