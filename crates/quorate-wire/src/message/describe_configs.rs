//! DescribeConfigs, key 32 (KIP-133; v1 KIP-226; v3 KIP-569), and ListConfigResources, key 74 (KIP-714; v1 KIP-1142).

use crate::codec::{UnknownTags, Wire};

/// Asks for the configurations of resources.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 32, versions = 1..=4, flexible = 4..)]
pub struct DescribeConfigsRequest {
    /// The resources.
    pub resources: Vec<DescribeConfigsResource>,
    /// Whether to name the settings behind the value.
    pub include_synonyms: bool,
    /// Whether to explain each.
    #[wire(since = 3)]
    pub include_documentation: bool,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A resource of a [`DescribeConfigsRequest`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct DescribeConfigsResource {
    /// The type of the resource.
    pub resource_type: i8,
    /// The resource's name.
    pub resource_name: String,
    /// The keys wanted; null for all.
    #[wire(default = Some(Vec::new()))]
    pub configuration_keys: Option<Vec<String>>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// The configurations.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 32, versions = 1..=4, flexible = 4..)]
pub struct DescribeConfigsResponse {
    /// How long the request was throttled, in milliseconds.
    pub throttle_time_ms: i32,
    /// What came of each.
    pub results: Vec<DescribeConfigsResult>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A resource of a [`DescribeConfigsResponse`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct DescribeConfigsResult {
    /// An error, or 0.
    pub error_code: i16,
    /// Its text.
    #[wire(default = Some(String::new()))]
    pub error_message: Option<String>,
    /// The type of the resource.
    pub resource_type: i8,
    /// The resource's name.
    pub resource_name: String,
    /// The configurations.
    pub configs: Vec<DescribeConfigsResourceResult>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A configuration.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct DescribeConfigsResourceResult {
    /// The key.
    pub name: String,
    /// The value.
    #[wire(default = Some(String::new()))]
    pub value: Option<String>,
    /// Whether it cannot be changed.
    pub read_only: bool,
    /// Where the value comes from, or -1.
    #[wire(default = -1)]
    pub config_source: i8,
    /// Whether the value is kept secret.
    pub is_sensitive: bool,
    /// The settings that the value comes from, the first that is set counts.
    pub synonyms: Vec<DescribeConfigsSynonym>,
    /// The type of its values.
    #[wire(since = 3, ignorable)]
    pub config_type: i8,
    /// What it is for.
    #[wire(since = 3, default = Some(String::new()), ignorable)]
    pub documentation: Option<String>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A setting that a configuration's value can come from.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct DescribeConfigsSynonym {
    /// The key.
    pub name: String,
    /// The value.
    #[wire(default = Some(String::new()))]
    pub value: Option<String>,
    /// Where it is set.
    pub source: i8,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Asks which resources have configurations.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 74, versions = 0..=1, flexible = 0..)]
pub struct ListConfigResourcesRequest {
    /// The types wanted.
    #[wire(since = 1)]
    pub resource_types: Vec<i8>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// The resources that have configurations.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 74, versions = 0..=1, flexible = 0..)]
pub struct ListConfigResourcesResponse {
    /// How long the request was throttled, in milliseconds.
    pub throttle_time_ms: i32,
    /// An error, or 0.
    pub error_code: i16,
    /// The resources.
    pub config_resources: Vec<ConfigResource>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A resource that has configurations.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct ConfigResource {
    /// The resource's name.
    pub resource_name: String,
    /// The type of the resource.
    #[wire(since = 1, default = 16, ignorable)]
    pub resource_type: i8,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}
