//! Configurations, quotas and producer ids: types 4, 14 and 15 (KIP-631).

use crate::codec::{UnknownTags, Wire};
use crate::message::QuotaEntity;

/// A configuration of a resource changes.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 4, versions = 0..=0, flexible = 0..)]
pub struct ConfigRecord {
    /// The type of the resource.
    pub resource_type: i8,
    /// The resource's name.
    pub resource_name: String,
    /// The key.
    pub name: String,
    /// The value; null removes it.
    #[wire(default = Some(String::new()))]
    pub value: Option<String>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A quota changes.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 14, versions = 0..=0, flexible = 0..)]
pub struct ClientQuotaRecord {
    /// The parts of the entity.
    pub entity: Vec<QuotaEntity>,
    /// Which quota.
    pub key: String,
    /// The value.
    pub value: f64,
    /// Whether the quota goes.
    pub remove: bool,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A block of producer ids is handed out.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 15, versions = 0..=0, flexible = 0..)]
pub struct ProducerIdsRecord {
    /// The broker that has the block.
    pub broker_id: i32,
    /// The broker's epoch, or -1.
    #[wire(default = -1)]
    pub broker_epoch: i64,
    /// The first id that is free.
    pub next_producer_id: i64,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}
