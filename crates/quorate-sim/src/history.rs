//! The course of a run, for what a scenario expects of it.

use quorate_core::{Epoch, Offset};

use crate::clock::Micros;

/// What happened when, in short.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Every change of a role.
    pub roles: Vec<RoleChange>,
    /// Every advance of a high watermark: when, at which node, to what.
    pub high_watermarks: Vec<(Micros, usize, Offset)>,
    /// Every outcome that a client was told as committed: when it was proposed, when it was told, at which node.
    pub acknowledged: Vec<(Micros, Micros, usize)>,
    /// Proposals without an outcome: when each was made.
    pub proposed: std::collections::BTreeMap<u64, Micros>,
    /// Processes that started: when, which node.
    pub starts: Vec<(Micros, usize)>,
    /// Fetches that left: when, from which node, to which.
    pub fetches: Vec<(Micros, usize, usize)>,
    /// Logs that were cut: when, whose, to where.
    pub truncations: Vec<(Micros, usize, Offset)>,
    /// Nodes that the schedule's targets came out as: when, which.
    pub hits: Vec<(Micros, usize)>,
    /// When the quiet phase was over.
    pub end: Micros,
    /// The end of what was committed.
    pub committed: Offset,
}

/// A change of a node's role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoleChange {
    /// When.
    pub at: Micros,
    /// Whose.
    pub node: usize,
    /// To what.
    pub role: &'static str,
    /// In which epoch.
    pub epoch: Epoch,
    /// Why.
    pub reason: &'static str,
}

impl History {
    /// Who became leader when, and in which epoch.
    pub fn leaders(&self) -> impl Iterator<Item = &RoleChange> {
        self.roles.iter().filter(|change| change.role == "leader")
    }

    /// The largest epoch that any node was in.
    pub fn newest_epoch(&self) -> Epoch {
        self.roles.iter().map(|change| change.epoch).max().unwrap_or_default()
    }

    /// The epochs in which anybody became leader at or after this time.
    pub fn leaders_since(&self, at: Micros) -> usize {
        self.leaders().filter(|change| change.at >= at).count()
    }
}
