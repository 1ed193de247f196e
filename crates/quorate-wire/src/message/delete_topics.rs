//! DeleteTopics, key 20 (KIP-4; v6 KIP-516).

use crate::codec::{UnknownTags, Uuid, Wire};

/// Asks to delete topics.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 20, versions = 1..=6, flexible = 4..)]
pub struct DeleteTopicsRequest {
    /// The topics.
    #[wire(since = 6)]
    pub topics: Vec<DeleteTopicState>,
    /// The topics by name.
    #[wire(until = 5, ignorable)]
    pub topic_names: Vec<String>,
    /// How long it may take, in milliseconds.
    pub timeout_ms: i32,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A topic to be deleted, by name or by id.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct DeleteTopicState {
    /// The topic's name; null if the id counts.
    #[wire(since = 6)]
    pub name: Option<String>,
    /// The topic's id.
    #[wire(since = 6)]
    pub topic_id: Uuid,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// What came of each topic.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 20, versions = 1..=6, flexible = 4..)]
pub struct DeleteTopicsResponse {
    /// How long the request was throttled, in milliseconds.
    pub throttle_time_ms: i32,
    /// What came of each.
    pub responses: Vec<DeletableTopicResult>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A topic that was deleted, or why not.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct DeletableTopicResult {
    /// The topic's name.
    #[wire(default = Some(String::new()), nullable_since = 6)]
    pub name: Option<String>,
    /// The topic's id.
    #[wire(since = 6, ignorable)]
    pub topic_id: Uuid,
    /// An error, or 0.
    pub error_code: i16,
    /// Its text.
    #[wire(since = 5, ignorable)]
    pub error_message: Option<String>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}
