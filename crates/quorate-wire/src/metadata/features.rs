//! Features: types 12 (KIP-584) and 21 (KIP-866).

use crate::codec::{UnknownTags, Wire};

/// The level of a feature, `metadata.version` above all.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 12, versions = 0..=0, flexible = 0..)]
pub struct FeatureLevelRecord {
    /// The feature.
    pub name: String,
    /// Its level; 0 removes it.
    pub feature_level: i16,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// How far the migration from ZooKeeper is; in old clusters alone.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 21, versions = 0..=0, flexible = 0..)]
pub struct ZkMigrationStateRecord {
    /// How far the migration is.
    pub zk_migration_state: i8,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}
