//! DescribeClientQuotas and AlterClientQuotas, keys 48 and 49 (KIP-546).

use crate::codec::{UnknownTags, Wire};

/// Asks for the quotas of the entities that match.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 48, versions = 0..=1, flexible = 1..)]
pub struct DescribeClientQuotasRequest {
    /// The parts that an entity must have.
    pub components: Vec<QuotaComponent>,
    /// Whether the entity must have no other parts.
    pub strict: bool,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A part that an entity must have.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct QuotaComponent {
    /// The type: `user`, `client-id` or `ip`.
    pub entity_type: String,
    /// 0 exact name, 1 default, 2 any.
    pub match_type: i8,
    /// The name, where it must be exact.
    #[wire(default = Some(String::new()), name = "match")]
    pub matched: Option<String>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// The quotas of the entities that match.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 48, versions = 0..=1, flexible = 1..)]
pub struct DescribeClientQuotasResponse {
    /// How long the request was throttled, in milliseconds.
    pub throttle_time_ms: i32,
    /// An error, or 0.
    pub error_code: i16,
    /// Its text.
    #[wire(default = Some(String::new()))]
    pub error_message: Option<String>,
    /// The entities.
    #[wire(default = Some(Vec::new()))]
    pub entries: Option<Vec<DescribedQuotas>>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// An entity and its quotas.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct DescribedQuotas {
    /// The parts of the entity.
    pub entity: Vec<QuotaEntity>,
    /// Its quotas.
    pub values: Vec<QuotaValue>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A part of the entity that a quota is for.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct QuotaEntity {
    /// The type: `user`, `client-id` or `ip`.
    pub entity_type: String,
    /// The name; null for the default.
    #[wire(default = Some(String::new()))]
    pub entity_name: Option<String>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A quota.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct QuotaValue {
    /// Which quota.
    pub key: String,
    /// The value.
    pub value: f64,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Changes quotas.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 49, versions = 0..=1, flexible = 1..)]
pub struct AlterClientQuotasRequest {
    /// The entities.
    pub entries: Vec<QuotaAlteration>,
    /// Whether to check alone and change nothing.
    pub validate_only: bool,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// An entity and the changes of its quotas.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct QuotaAlteration {
    /// The parts of the entity.
    pub entity: Vec<QuotaEntity>,
    /// The changes.
    pub ops: Vec<QuotaOperation>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A change of one quota.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct QuotaOperation {
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

/// What came of each entity.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 49, versions = 0..=1, flexible = 1..)]
pub struct AlterClientQuotasResponse {
    /// How long the request was throttled, in milliseconds.
    pub throttle_time_ms: i32,
    /// The entities.
    pub entries: Vec<QuotaAlterationResult>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// What came of one entity.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct QuotaAlterationResult {
    /// An error, or 0.
    pub error_code: i16,
    /// Its text.
    #[wire(default = Some(String::new()))]
    pub error_message: Option<String>,
    /// The parts of the entity.
    pub entity: Vec<QuotaEntity>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}
