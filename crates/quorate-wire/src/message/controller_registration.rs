//! ControllerRegistration, key 70 (KIP-919), and UnregisterController, key 94.

use crate::codec::{UnknownTags, Uuid, Wire};
use crate::message::{RegisteredFeature, RegisteredListener};

/// A controller tells the active one where it listens and what it can run.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 70, versions = 0..=0, flexible = 0..)]
pub struct ControllerRegistrationRequest {
    /// Which controller.
    pub controller_id: i32,
    /// Made up at each start of the process.
    pub incarnation_id: Uuid,
    /// A remnant of the migration from ZooKeeper.
    pub zk_migration_ready: bool,
    /// Where it listens.
    pub listeners: Vec<RegisteredListener>,
    /// The features that it can have.
    pub features: Vec<RegisteredFeature>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Whether the registration is committed.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 70, versions = 0..=0, flexible = 0..)]
pub struct ControllerRegistrationResponse {
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

/// Asks to forget the registration of a controller.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 94, versions = 0..=0, flexible = 0..)]
pub struct UnregisterControllerRequest {
    /// Which controller.
    pub controller_id: i32,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Whether it is forgotten.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 94, versions = 0..=0, flexible = 0..)]
pub struct UnregisterControllerResponse {
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
