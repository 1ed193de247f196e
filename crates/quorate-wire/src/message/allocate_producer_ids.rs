//! AllocateProducerIds, key 67 (KIP-730).

use crate::codec::{UnknownTags, Wire};

/// A broker asks for a block of producer ids.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 67, versions = 0..=0, flexible = 0..)]
pub struct AllocateProducerIdsRequest {
    /// Which broker.
    pub broker_id: i32,
    /// The broker's epoch: the offset of its registration.
    #[wire(default = -1)]
    pub broker_epoch: i64,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// The block.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 67, versions = 0..=0, flexible = 0..)]
pub struct AllocateProducerIdsResponse {
    /// How long the request was throttled, in milliseconds.
    pub throttle_time_ms: i32,
    /// An error, or 0.
    pub error_code: i16,
    /// The first id of the block.
    pub producer_id_start: i64,
    /// How many ids it has.
    pub producer_id_len: i32,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}
