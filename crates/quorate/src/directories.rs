//! The configured log directories as they are found on disk: what `format` and `info` both look at.

use std::fs;
use std::path::{Path, PathBuf};

use quorate_core::NodeId;
use quorate_storage::RealFs;
use quorate_storage::meta_properties::{self, MetaProperties};

use crate::failure::{Exit, Failure};

/// What one directory holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// There is nothing at this path.
    Absent,
    /// There is something else than a directory.
    NotADirectory,
    /// A directory without meta.properties.
    Unformatted,
    /// A directory with meta.properties.
    Formatted(MetaProperties),
    /// A directory whose meta.properties cannot be read, with the reason.
    Unreadable(String),
}

/// The configured directories with their states, in the order in which they are configured.
pub(crate) fn survey(directories: &[PathBuf]) -> Vec<(PathBuf, State)> {
    directories.iter().map(|dir| (dir.clone(), look(dir))).collect()
}

fn look(dir: &Path) -> State {
    match fs::metadata(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return State::Absent,
        Err(error) => {
            return State::Unreadable(format!("cannot look at {}: {error}", dir.display()));
        }
        Ok(found) if !found.is_dir() => return State::NotADirectory,
        Ok(_) => {}
    }
    match meta_properties::read(&RealFs, dir) {
        Ok(Some(meta)) => State::Formatted(meta),
        Ok(None) => State::Unformatted,
        Err(error) => State::Unreadable(error.to_string()),
    }
}

/// Refuses directories that cannot belong to this node of this cluster, and each other's strangers.
pub(crate) fn check_identity(
    found: &[(PathBuf, State)],
    cluster: &str,
    node: NodeId,
) -> Result<(), Failure> {
    let mut ids = Vec::new();
    for (dir, state) in found {
        let file = dir.join(meta_properties::FILE_NAME);
        let file = file.display();
        let meta = match state {
            State::Absent | State::Unformatted => continue,
            State::NotADirectory => {
                return Err(refused(format!("{} is not a directory", dir.display()))
                    .next("correct log.dirs, or move that file away"));
            }
            State::Unreadable(reason) => return Err(refused(reason.clone())),
            State::Formatted(meta) => meta,
        };
        if meta.cluster != cluster {
            let read = &meta.cluster;
            return Err(refused(format!(
                "Invalid cluster.id in: {file}. Expected {cluster}, but read {read}"
            ))
            .next("give the cluster id that the directory belongs to, or another directory"));
        }
        if meta.node != node {
            let read = meta.node;
            return Err(refused(format!(
                "Stored node id {read} doesn't match previous node id {node} in {file}."
            ))
            .next("correct node.id or log.dirs: this directory belongs to another node"));
        }
        if let Some(directory) = meta.directory {
            if let Some((other, _)) = ids.iter().find(|(_, id)| *id == directory) {
                let dir = dir.display();
                return Err(refused(format!(
                    "{dir} and {other} have the same directory.id {directory}"
                ))
                .next("one is a copy of the other: remove it from log.dirs"));
            }
            ids.push((dir.display().to_string(), directory));
        }
    }
    Ok(())
}

fn refused(message: String) -> Failure {
    Failure::new(message).exit(Exit::Refused)
}
