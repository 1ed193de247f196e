//! AlterConfigs, key 33 (KIP-133), and IncrementalAlterConfigs, key 44 (KIP-339).

use crate::codec::{UnknownTags, Wire};

/// Sets all configurations of resources.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 33, versions = 0..=2, flexible = 2..)]
pub struct AlterConfigsRequest {
    /// The resources.
    pub resources: Vec<AlterConfigsResource>,
    /// Whether to check alone and change nothing.
    pub validate_only: bool,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A resource of an [`AlterConfigsRequest`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct AlterConfigsResource {
    /// The type of the resource.
    pub resource_type: i8,
    /// The resource's name.
    pub resource_name: String,
    /// The configurations.
    pub configs: Vec<AlterableConfig>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A configuration to be set.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct AlterableConfig {
    /// The key.
    pub name: String,
    /// The value.
    #[wire(default = Some(String::new()))]
    pub value: Option<String>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// What came of each resource.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 33, versions = 0..=2, flexible = 2..)]
pub struct AlterConfigsResponse {
    /// How long the request was throttled, in milliseconds.
    pub throttle_time_ms: i32,
    /// What came of each.
    pub responses: Vec<AlterConfigsResourceResponse>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// What came of one resource.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct AlterConfigsResourceResponse {
    /// An error, or 0.
    pub error_code: i16,
    /// Its text.
    #[wire(default = Some(String::new()))]
    pub error_message: Option<String>,
    /// The type of the resource.
    pub resource_type: i8,
    /// The resource's name.
    pub resource_name: String,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Changes single configurations.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 44, versions = 0..=1, flexible = 1..)]
pub struct IncrementalAlterConfigsRequest {
    /// The resources.
    pub resources: Vec<IncrementalAlterConfigsResource>,
    /// Whether to check alone and change nothing.
    pub validate_only: bool,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A resource of an [`IncrementalAlterConfigsRequest`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct IncrementalAlterConfigsResource {
    /// The type of the resource.
    pub resource_type: i8,
    /// The resource's name.
    pub resource_name: String,
    /// The configurations.
    pub configs: Vec<IncrementalAlterableConfig>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A change of one configuration.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct IncrementalAlterableConfig {
    /// The key.
    pub name: String,
    /// 0 set, 1 delete, 2 append, 3 subtract.
    pub config_operation: i8,
    /// The value.
    #[wire(default = Some(String::new()))]
    pub value: Option<String>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// What came of each resource.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 44, versions = 0..=1, flexible = 1..)]
pub struct IncrementalAlterConfigsResponse {
    /// How long the request was throttled, in milliseconds.
    pub throttle_time_ms: i32,
    /// What came of each.
    pub responses: Vec<AlterConfigsResourceResponse>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}
