//! A metadata log directory that a node may start on.

use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use quorate_core::config::Recovered;
use quorate_core::{DirectoryId, NodeId};
use quorate_rpc::records;
use quorate_storage::fs::FileSystem;
use quorate_storage::meta_properties::{self, MetaProperties};
use quorate_storage::{Note, Opened, Options, StorageError, Store};
use quorate_wire::control::ControlRecord;

/// An open directory: locked, recovered, and known to be this node's.
#[derive(Debug)]
pub struct Directory<F: FileSystem> {
    id: DirectoryId,
    cluster: String,
    node: NodeId,
    notes: Vec<Note>,
    recovered: Recovered,
    store: Store<F>,
}

/// Why a directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Storage refuses it.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// It has no directory id, which voters in the log need (KIP-853).
    #[error(
        "{file} has no directory.id, but the log is at kraft.version 1: add the directory.id under which this node \
         is a voter (`quorate quorum describe --replication` on another node shows it)"
    )]
    NoDirectoryId {
        /// The file.
        file: String,
    },
    /// A directory id is missing, and the operating system gives no random numbers for one.
    #[error("the system gives no random numbers: {0}")]
    NoRandomness(io::Error),
    /// A control record in it makes no sense.
    #[error("{dir}: {reason}")]
    BadControlRecord {
        /// The directory.
        dir: String,
        /// What is wrong.
        reason: String,
    },
}

impl<F: FileSystem> Directory<F> {
    /// Opens a directory for writing: checks whose it is, locks it, recovers the log.
    ///
    /// # Errors
    /// See [`OpenError`]; nothing is changed then.
    pub fn open(fs: F, options: Options) -> Result<Directory<F>, OpenError> {
        let dir = options.dir.clone();
        let opened = Store::open(fs.clone(), options)?;
        let Opened { meta, election, log_start, log_end, epochs, control, bootstrap, notes, store } =
            opened;
        let bad =
            |reason: String| OpenError::BadControlRecord { dir: dir.display().to_string(), reason };
        let has_kraft_version = |record: &ControlRecord| match record {
            ControlRecord::KRaftVersion(record) => record.kraft_version >= 1,
            _ => false,
        };
        let bootstrap = bootstrap.map(|checkpoint| checkpoint.control).unwrap_or_default();
        let is_reconfigurable =
            bootstrap.iter().chain(control.iter().map(|(_, record)| record)).any(has_kraft_version);
        let id = match meta.directory {
            Some(id) => id,
            None if is_reconfigurable => {
                let file = dir.join(meta_properties::FILE_NAME).display().to_string();
                return Err(OpenError::NoDirectoryId { file });
            }
            // A static quorum's directory of before KIP-853: it gets its id now, as in Kafka.
            None => give_id(&fs, &dir, &meta)?,
        };
        let recovered = Recovered {
            election,
            log_start,
            log_end,
            epochs,
            bootstrap: bootstrap
                .into_iter()
                .map(|record| records::control_in(record).map_err(bad))
                .collect::<Result<_, _>>()?,
            control: control
                .into_iter()
                .map(|(offset, record)| match records::control_in(record) {
                    Ok(record) => Ok((offset, record)),
                    Err(error) => Err(bad(format!("offset {offset}: {error}"))),
                })
                .collect::<Result<_, _>>()?,
        };
        Ok(Directory { id, cluster: meta.cluster, node: meta.node, notes, recovered, store })
    }

    /// Its `directory.id`.
    pub fn id(&self) -> DirectoryId {
        self.id
    }

    /// Its `cluster.id`.
    pub fn cluster_id(&self) -> &str {
        &self.cluster
    }

    /// Its `node.id`.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// What recovery found odd, and what it cut.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// What the core is told of it, and what writes to it.
    pub fn into_parts(self) -> (Recovered, Store<F>) {
        (self.recovered, self.store)
    }
}

fn give_id<F: FileSystem>(
    fs: &F,
    dir: &Path,
    meta: &MetaProperties,
) -> Result<DirectoryId, OpenError> {
    let id = random_directory_id().map_err(OpenError::NoRandomness)?;
    let meta = MetaProperties { directory: Some(id), ..meta.clone() };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now_ms = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
    meta_properties::write(fs, dir, &meta, now_ms)?;
    Ok(id)
}

/// A fresh directory id: random, not one of the reserved ones, and its text has no `-`.
///
/// # Errors
/// The operating system gives no random numbers.
pub fn random_directory_id() -> io::Result<DirectoryId> {
    loop {
        let mut bytes = [0; 16];
        let filled =
            rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty())?;
        if let Some(id) = DirectoryId::from_bytes(bytes)
            && filled == bytes.len()
            && !meta_properties::is_reserved(&bytes)
            && !id.to_string().contains('-')
        {
            return Ok(id);
        }
    }
}
