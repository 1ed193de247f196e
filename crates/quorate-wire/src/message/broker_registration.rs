//! BrokerRegistration, key 62, and UnregisterBroker, key 64 (KIP-631; v2 KIP-858; v3 KIP-966; v4 is as v3 but may name
//! features whose minimum is 0).

use crate::codec::{UnknownTags, Uuid, Wire};

/// A broker asks to be let into the cluster.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 62, versions = 0..=4, flexible = 0..)]
pub struct BrokerRegistrationRequest {
    /// Which broker.
    pub broker_id: i32,
    /// The cluster that the broker belongs to.
    pub cluster_id: String,
    /// Made up at each start of the process.
    pub incarnation_id: Uuid,
    /// Where it listens.
    pub listeners: Vec<RegisteredListener>,
    /// The features that it can have.
    pub features: Vec<RegisteredFeature>,
    /// Its rack.
    #[wire(default = Some(String::new()))]
    pub rack: Option<String>,
    /// A remnant of the migration from ZooKeeper.
    #[wire(since = 1)]
    pub is_migrating_zk_broker: bool,
    /// Its log directories that work.
    #[wire(since = 2, ignorable)]
    pub log_dirs: Vec<Uuid>,
    /// The broker's epoch before a clean stop, or -1.
    #[wire(since = 3, default = -1, ignorable)]
    pub previous_broker_epoch: i64,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A listener of a broker or controller.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct RegisteredListener {
    /// The listener's name.
    pub name: String,
    /// A host name or address.
    pub host: String,
    /// A port.
    pub port: u16,
    /// 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL.
    pub security_protocol: i16,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A feature, and the levels that a broker or controller can run, both ends included.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct RegisteredFeature {
    /// The feature's name.
    pub name: String,
    /// The lowest level.
    pub min_supported_version: i16,
    /// The highest level.
    pub max_supported_version: i16,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Whether the broker is in the cluster.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 62, versions = 0..=4, flexible = 0..)]
pub struct BrokerRegistrationResponse {
    /// How long the request was throttled, in milliseconds.
    pub throttle_time_ms: i32,
    /// An error, or 0.
    pub error_code: i16,
    /// The broker's epoch: the offset of its registration.
    #[wire(default = -1)]
    pub broker_epoch: i64,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Asks to forget a broker.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 64, versions = 0..=0, flexible = 0..)]
pub struct UnregisterBrokerRequest {
    /// Which broker.
    pub broker_id: i32,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Whether it is forgotten.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 64, versions = 0..=0, flexible = 0..)]
pub struct UnregisterBrokerResponse {
    /// How long the request was throttled, in milliseconds.
    pub throttle_time_ms: i32,
    /// An error, or 0.
    pub error_code: i16,
    /// Its text.
    #[wire(default = Some(String::new()))]
    pub error_message: Option<String>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}
