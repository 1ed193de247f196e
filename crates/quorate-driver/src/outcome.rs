//! What became of an append.

use quorate_core::{Epoch, NodeId, Offset};

/// What became of records that were to be appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// They are committed: no failure that leaves a majority of disks intact takes them back.
    Committed {
        /// The first record's offset; the others follow.
        offset: Offset,
        /// The epoch.
        epoch: Epoch,
    },
    /// None of them is in the log, nor will be.
    NotAppended(NotAppended),
    /// They were appended, and this node lost its leadership before it knew more: they may still be committed,
    /// all of them, at most once, at this offset and epoch.
    OutcomeUnknown {
        /// The first record's offset; -1 if the node died before it could tell.
        offset: Offset,
        /// The epoch.
        epoch: Epoch,
    },
}

/// Why records were not appended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAppended {
    /// This node does not lead the token's epoch.
    #[error("not the leader: epoch {epoch} has {}", match leader { Some(id) => format!("leader {id}"), None => "no known leader".to_owned() })]
    NotLeader {
        /// The present epoch.
        epoch: Epoch,
        /// Its leader, once known.
        leader: Option<NodeId>,
    },
    /// As much as is allowed waits already.
    #[error("queue full: wait for earlier appends, then try again")]
    QueueFull,
    /// The records do not fit one batch.
    #[error("too large: {bytes} bytes, a batch takes {limit}")]
    TooLarge {
        /// What they would take in bytes.
        bytes: usize,
        /// What a batch may take.
        limit: usize,
    },
    /// There were no records, or one of them was empty.
    #[error("no records, or an empty one")]
    Empty,
    /// The node has stopped, or is about to.
    #[error("the node is stopping")]
    Stopped,
}

impl From<quorate_core::io::NotAppended> for NotAppended {
    fn from(reason: quorate_core::io::NotAppended) -> NotAppended {
        use quorate_core::io::NotAppended as Core;
        match reason {
            Core::NotLeader { epoch, leader } => NotAppended::NotLeader { epoch, leader },
            Core::QueueFull => NotAppended::QueueFull,
            Core::TooLarge { bytes, limit } => NotAppended::TooLarge { bytes, limit },
            Core::Empty => NotAppended::Empty,
        }
    }
}
