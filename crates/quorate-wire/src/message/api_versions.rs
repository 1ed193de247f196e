//! ApiVersions, key 18 (KIP-35, KIP-511, KIP-853, KIP-1242).

use crate::codec::{UnknownTags, Wire};

/// Asks which APIs the other side speaks.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 18, versions = 0..=5, flexible = 3..)]
pub struct ApiVersionsRequest {
    /// The client's software: letters and digits, with `-` and `.` inside.
    #[wire(since = 3, ignorable)]
    pub client_software_name: String,
    /// Its version, of the same characters.
    #[wire(since = 3, ignorable)]
    pub client_software_version: String,
    /// The cluster that the client takes us for; set together with the node id or not at all.
    #[wire(since = 5, ignorable)]
    pub cluster_id: Option<String>,
    /// The node that the client takes us for, or -1.
    #[wire(since = 5, default = -1, ignorable)]
    pub node_id: i32,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Which APIs and features a node speaks. Its response header is always v0.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 18, versions = 0..=5, flexible = 3..)]
pub struct ApiVersionsResponse {
    /// UNSUPPORTED_VERSION, at version 0, for a request of an unknown version.
    pub error_code: i16,
    /// The APIs.
    pub api_keys: Vec<ApiVersion>,
    /// How long the request was throttled, in milliseconds.
    #[wire(since = 1, ignorable)]
    pub throttle_time_ms: i32,
    /// The features that the node can have. Below version 4, those with a minimum of 0 must not be
    /// named.
    #[wire(since = 3, tag = 0, ignorable)]
    pub supported_features: Vec<SupportedFeatureKey>,
    /// The offset of the metadata that `finalized_features` comes from, or -1.
    #[wire(since = 3, tag = 1, default = -1, ignorable)]
    pub finalized_features_epoch: i64,
    /// The features that the cluster has.
    #[wire(since = 3, tag = 2, ignorable)]
    pub finalized_features: Vec<FinalizedFeatureKey>,
    /// A remnant of the migration from ZooKeeper.
    #[wire(since = 3, tag = 3, ignorable)]
    pub zk_migration_ready: bool,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// An API and its versions, both ends included.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct ApiVersion {
    /// Which API.
    pub api_key: i16,
    /// Its lowest version.
    pub min_version: i16,
    /// Its highest version.
    pub max_version: i16,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A feature and the levels that a node can run.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct SupportedFeatureKey {
    /// Such as `kraft.version`.
    pub name: String,
    /// The lowest level.
    pub min_version: i16,
    /// The highest level.
    pub max_version: i16,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A feature and the levels that the cluster runs.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct FinalizedFeatureKey {
    /// Such as `metadata.version`.
    pub name: String,
    /// The level.
    pub max_version_level: i16,
    /// Its lower bound.
    pub min_version_level: i16,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}
