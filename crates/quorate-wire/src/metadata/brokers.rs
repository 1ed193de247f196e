//! Brokers: types 0, 1, 7, 8 and 17 (KIP-631; log directories KIP-858, cordoned ones KIP-1066).

use crate::codec::{UnknownTags, Uuid, Wire};
use crate::message::{RegisteredFeature, RegisteredListener};

/// A broker joins the cluster, or comes back to it.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 0, versions = 0..=4, flexible = 0..)]
pub struct RegisterBrokerRecord {
    /// Which broker.
    pub broker_id: i32,
    /// A remnant of the migration from ZooKeeper.
    #[wire(since = 2)]
    pub is_migrating_zk_broker: bool,
    /// Made up at each start of the process.
    pub incarnation_id: Uuid,
    /// The broker's epoch: the offset of its registration.
    pub broker_epoch: i64,
    /// Where it listens.
    pub end_points: Vec<RegisteredListener>,
    /// The features that it can have.
    pub features: Vec<RegisteredFeature>,
    /// Its rack.
    #[wire(default = Some(String::new()))]
    pub rack: Option<String>,
    /// Whether it is fenced.
    #[wire(default = true)]
    pub fenced: bool,
    /// Whether it is about to stop.
    #[wire(since = 1)]
    pub in_controlled_shutdown: bool,
    /// Its log directories that work.
    #[wire(since = 3, tag = 0)]
    pub log_dirs: Vec<Uuid>,
    /// Log directories that take no new replicas; null if the broker never said.
    #[wire(since = 4, tag = 1)]
    pub cordoned_log_dirs: Option<Vec<Uuid>>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A broker leaves the cluster for good.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 1, versions = 0..=0, flexible = 0..)]
pub struct UnregisterBrokerRecord {
    /// Which broker.
    pub broker_id: i32,
    /// The broker's epoch: the offset of its registration.
    pub broker_epoch: i64,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A broker is fenced: it leads nothing and is in sync with nothing.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 7, versions = 0..=0, flexible = 0..)]
pub struct FenceBrokerRecord {
    /// Which broker.
    pub id: i32,
    /// Its epoch.
    pub epoch: i64,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A broker is fenced no longer.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 8, versions = 0..=0, flexible = 0..)]
pub struct UnfenceBrokerRecord {
    /// Which broker.
    pub id: i32,
    /// Its epoch.
    pub epoch: i64,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Something about a broker changes.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 17, versions = 0..=3, flexible = 0..)]
pub struct BrokerRegistrationChangeRecord {
    /// Which broker.
    pub broker_id: i32,
    /// The broker's epoch: the offset of its registration.
    pub broker_epoch: i64,
    /// 1 if it is fenced now, -1 if it no longer is, 0 if that stays.
    #[wire(tag = 0)]
    pub fenced: i8,
    /// 1 if it is about to stop, 0 if that stays.
    #[wire(since = 1, tag = 1)]
    pub in_controlled_shutdown: i8,
    /// Its log directories that work; empty if they stay.
    #[wire(since = 2, tag = 2)]
    pub log_dirs: Vec<Uuid>,
    /// Log directories that take no new replicas; null if they stay.
    #[wire(since = 3, tag = 3)]
    pub cordoned_log_dirs: Option<Vec<Uuid>>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}
