//! DescribeAcls, CreateAcls and DeleteAcls, keys 29 to 31 (KIP-140; v1 KIP-290; v3 KIP-373).

use crate::codec::{UnknownTags, Wire};

/// Asks for the ACLs that match.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 29, versions = 1..=3, flexible = 2..)]
pub struct DescribeAclsRequest {
    /// Of which type the resource must be.
    pub resource_type_filter: i8,
    /// Which name it must have; null for any.
    #[wire(default = Some(String::new()))]
    pub resource_name_filter: Option<String>,
    /// Which pattern type it must have.
    #[wire(default = 3)]
    pub pattern_type_filter: i8,
    /// Whom it must be about; null for anybody.
    #[wire(default = Some(String::new()))]
    pub principal_filter: Option<String>,
    /// Which host it must name; null for any.
    #[wire(default = Some(String::new()))]
    pub host_filter: Option<String>,
    /// What it allows or denies.
    pub operation: i8,
    /// 2 deny, 3 allow.
    pub permission_type: i8,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// The ACLs that match.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 29, versions = 1..=3, flexible = 2..)]
pub struct DescribeAclsResponse {
    /// How long the request was throttled, in milliseconds.
    pub throttle_time_ms: i32,
    /// An error, or 0.
    pub error_code: i16,
    /// Its text.
    #[wire(default = Some(String::new()))]
    pub error_message: Option<String>,
    /// The resources.
    pub resources: Vec<DescribeAclsResource>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A resource and its ACLs.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct DescribeAclsResource {
    /// The type of the resource.
    pub resource_type: i8,
    /// The resource's name.
    pub resource_name: String,
    /// 3 literal, 4 prefixed.
    #[wire(default = 3)]
    pub pattern_type: i8,
    /// The ACLs.
    pub acls: Vec<AclDescription>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// An ACL of a resource.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct AclDescription {
    /// Whom it is about.
    pub principal: String,
    /// A host name or address.
    pub host: String,
    /// What it allows or denies.
    pub operation: i8,
    /// 2 deny, 3 allow.
    pub permission_type: i8,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Asks for ACLs.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 30, versions = 1..=3, flexible = 2..)]
pub struct CreateAclsRequest {
    /// The ACLs to be made.
    pub creations: Vec<AclCreation>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// An ACL to be made.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct AclCreation {
    /// The type of the resource.
    pub resource_type: i8,
    /// The resource's name.
    pub resource_name: String,
    /// 3 literal, 4 prefixed.
    #[wire(default = 3)]
    pub resource_pattern_type: i8,
    /// Whom it is about.
    pub principal: String,
    /// A host name or address.
    pub host: String,
    /// What it allows or denies.
    pub operation: i8,
    /// 2 deny, 3 allow.
    pub permission_type: i8,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// What came of each ACL, in the order of the request.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 30, versions = 1..=3, flexible = 2..)]
pub struct CreateAclsResponse {
    /// How long the request was throttled, in milliseconds.
    pub throttle_time_ms: i32,
    /// What came of each.
    pub results: Vec<AclCreationResult>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// What came of one ACL.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct AclCreationResult {
    /// An error, or 0.
    pub error_code: i16,
    /// Its text.
    #[wire(default = Some(String::new()))]
    pub error_message: Option<String>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Asks to delete the ACLs that match.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 31, versions = 1..=3, flexible = 2..)]
pub struct DeleteAclsRequest {
    /// Which ACLs go.
    pub filters: Vec<DeleteAclsFilter>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Which ACLs are to be deleted.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct DeleteAclsFilter {
    /// Of which type the resource must be.
    pub resource_type_filter: i8,
    /// Which name it must have; null for any.
    #[wire(default = Some(String::new()))]
    pub resource_name_filter: Option<String>,
    /// Which pattern type it must have.
    #[wire(default = 3)]
    pub pattern_type_filter: i8,
    /// Whom it must be about; null for anybody.
    #[wire(default = Some(String::new()))]
    pub principal_filter: Option<String>,
    /// Which host it must name; null for any.
    #[wire(default = Some(String::new()))]
    pub host_filter: Option<String>,
    /// What it allows or denies.
    pub operation: i8,
    /// 2 deny, 3 allow.
    pub permission_type: i8,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// What came of each filter, in the order of the request.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 31, versions = 1..=3, flexible = 2..)]
pub struct DeleteAclsResponse {
    /// How long the request was throttled, in milliseconds.
    pub throttle_time_ms: i32,
    /// What came of each filter.
    pub filter_results: Vec<DeleteAclsFilterResult>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// What came of one filter.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct DeleteAclsFilterResult {
    /// An error, or 0.
    pub error_code: i16,
    /// Its text.
    #[wire(default = Some(String::new()))]
    pub error_message: Option<String>,
    /// The ACLs that it hit.
    pub matching_acls: Vec<DeleteAclsMatchingAcl>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// An ACL that a filter hit.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct DeleteAclsMatchingAcl {
    /// An error, or 0.
    pub error_code: i16,
    /// Its text.
    #[wire(default = Some(String::new()))]
    pub error_message: Option<String>,
    /// The type of the resource.
    pub resource_type: i8,
    /// The resource's name.
    pub resource_name: String,
    /// 3 literal, 4 prefixed.
    #[wire(default = 3)]
    pub pattern_type: i8,
    /// Whom it is about.
    pub principal: String,
    /// A host name or address.
    pub host: String,
    /// What it allows or denies.
    pub operation: i8,
    /// 2 deny, 3 allow.
    pub permission_type: i8,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}
