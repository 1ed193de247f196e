//! Controllers: types 27 (KIP-919) and 29.

use crate::codec::{UnknownTags, Uuid, Wire};
use crate::message::{RegisteredFeature, RegisteredListener};

/// A controller says where it listens and what it can run.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 27, versions = 0..=0, flexible = 0..)]
pub struct RegisterControllerRecord {
    /// Which controller.
    pub controller_id: i32,
    /// Made up at each start of the process.
    pub incarnation_id: Uuid,
    /// A remnant of the migration from ZooKeeper.
    pub zk_migration_ready: bool,
    /// Where it listens.
    pub end_points: Vec<RegisteredListener>,
    /// The features that it can have.
    pub features: Vec<RegisteredFeature>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A controller's registration is forgotten.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 29, versions = 0..=0, flexible = 0..)]
pub struct UnregisterControllerRecord {
    /// Which controller.
    pub controller_id: i32,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}
