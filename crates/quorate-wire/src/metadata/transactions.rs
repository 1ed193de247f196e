//! What frames other records: types 20 (KIP-835), 23, 24 and 25 (KIP-868).

use crate::codec::{UnknownTags, Wire};

/// Records from here on count together, once the transaction ends.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 23, versions = 0..=0, flexible = 0..)]
pub struct BeginTransactionRecord {
    /// What it is for.
    #[wire(tag = 0)]
    pub name: Option<String>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// The records of the transaction count.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 24, versions = 0..=0, flexible = 0..)]
pub struct EndTransactionRecord {
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// The records of the transaction do not count.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 25, versions = 0..=0, flexible = 0..)]
pub struct AbortTransactionRecord {
    /// Why.
    #[wire(tag = 0)]
    pub reason: Option<String>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Nothing; a Java node skips what stands in its unknown tagged fields.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 20, versions = 0..=0, flexible = 0..)]
pub struct NoOpRecord {
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}
