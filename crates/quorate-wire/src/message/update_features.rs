//! UpdateFeatures, key 57 (KIP-584; v1 KIP-778).

use crate::codec::{UnknownTags, Wire};

/// Asks to change the levels of features.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 57, versions = 0..=2, flexible = 0..)]
pub struct UpdateFeaturesRequest {
    /// How long it may take, in milliseconds.
    #[wire(default = 60000)]
    pub timeout_ms: i32,
    /// The features to be changed.
    pub feature_updates: Vec<FeatureUpdateKey>,
    /// Whether to check alone and change nothing.
    #[wire(since = 1)]
    pub validate_only: bool,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A feature and its new level.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct FeatureUpdateKey {
    /// The feature's name.
    pub feature: String,
    /// The level wanted; 0 removes it.
    pub max_version_level: i16,
    /// Whether the level may go down.
    #[wire(until = 0)]
    pub allow_downgrade: bool,
    /// 1 upgrade, 2 safe downgrade, 3 unsafe downgrade.
    #[wire(since = 1, default = 1)]
    pub upgrade_type: i8,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Whether the features have changed; for all of them together since version 2.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 57, versions = 0..=2, flexible = 0..)]
pub struct UpdateFeaturesResponse {
    /// How long the request was throttled, in milliseconds.
    pub throttle_time_ms: i32,
    /// An error, or 0.
    pub error_code: i16,
    /// Its text.
    #[wire(default = Some(String::new()))]
    pub error_message: Option<String>,
    /// What came of each.
    #[wire(until = 1, ignorable)]
    pub results: Vec<UpdatableFeatureResult>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// What came of one feature.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct UpdatableFeatureResult {
    /// The feature's name.
    pub feature: String,
    /// An error, or 0.
    pub error_code: i16,
    /// Its text.
    #[wire(default = Some(String::new()))]
    pub error_message: Option<String>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}
