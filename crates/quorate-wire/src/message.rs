//! The RPCs of a controller's listener at every version of Kafka 4.4, one file an RPC or a few that belong
//! together.
//!
//! The structs have Kafka's fields, and its names unless two schemas have the same for different things;
//! what the fields mean is told by the KIP that each file names. Build one with `..Default::default()`: the
//! defaults are the schema's. That a message is here says nothing of who serves it.

#[cfg(feature = "vectors")]
use serde_json::Value;

use crate::codec::{Message, UnknownTags, Wire};
#[cfg(feature = "vectors")]
use crate::vectors::{Check, Checked};

mod acls;
mod add_raft_voter;
mod allocate_producer_ids;
mod alter_configs;
mod alter_partition;
mod api_versions;
mod assign_replicas_to_dirs;
mod begin_quorum_epoch;
mod broker_heartbeat;
mod broker_registration;
mod client_quotas;
mod controller_registration;
mod create_partitions;
mod create_topics;
mod delegation_tokens;
mod delete_topics;
mod describe_cluster;
mod describe_configs;
mod describe_quorum;
mod describe_replica;
mod describe_topic_partitions;
mod elect_leaders;
mod end_quorum_epoch;
mod envelope;
mod fetch;
mod fetch_snapshot;
mod header;
mod metadata;
mod quorum_state_data;
mod reassignments;
mod remove_raft_voter;
mod sasl;
mod scram_credentials;
mod update_features;
mod update_raft_voter;
mod vote;

pub use acls::*;
pub use add_raft_voter::*;
pub use allocate_producer_ids::*;
pub use alter_configs::*;
pub use alter_partition::*;
pub use api_versions::*;
pub use assign_replicas_to_dirs::*;
pub use begin_quorum_epoch::*;
pub use broker_heartbeat::*;
pub use broker_registration::*;
pub use client_quotas::*;
pub use controller_registration::*;
pub use create_partitions::*;
pub use create_topics::*;
pub use delegation_tokens::*;
pub use delete_topics::*;
pub use describe_cluster::*;
pub use describe_configs::*;
pub use describe_quorum::*;
pub use describe_replica::*;
pub use describe_topic_partitions::*;
pub use elect_leaders::*;
pub use end_quorum_epoch::*;
pub use envelope::*;
pub use fetch::*;
pub use fetch_snapshot::*;
pub use header::*;
pub use metadata::*;
pub use quorum_state_data::*;
pub use reassignments::*;
pub use remove_raft_voter::*;
pub use sasl::*;
pub use scram_credentials::*;
pub use update_features::*;
pub use update_raft_voter::*;
pub use vote::*;

/// A request, and what answers it.
pub trait Request: Message {
    /// Answers it, at the same version.
    type Response: Message;
    /// Under which key it is asked.
    const API: ApiKey;
}

/// Writes the list of APIs once: the enum, its numbers and the pairs of messages.
macro_rules! apis {
    ($($(#[doc = $doc:literal])* $api:ident = $key:literal, $request:ident, $response:ident;)*) => {
        /// An API whose messages are built.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ApiKey {
            $($(#[doc = $doc])* $api = $key,)*
        }

        impl ApiKey {
            /// All of them, by key.
            pub const ALL: &[ApiKey] = &[$(ApiKey::$api),*];

            /// The API with this key, if it is built.
            pub fn from_code(key: i16) -> Option<ApiKey> {
                match key {
                    $($key => Some(ApiKey::$api),)*
                    _ => None,
                }
            }

            /// The key on the wire.
            pub fn code(self) -> i16 {
                match self {
                    $(ApiKey::$api => $key,)*
                }
            }

            /// Kafka's name.
            pub fn name(self) -> &'static str {
                match self {
                    $(ApiKey::$api => stringify!($api),)*
                }
            }

            /// The versions that are built, both ends included.
            pub fn versions(self) -> core::ops::RangeInclusive<i16> {
                match self {
                    $(ApiKey::$api => $request::VERSIONS,)*
                }
            }

            /// The first flexible version.
            pub fn flexible_since(self) -> i16 {
                match self {
                    $(ApiKey::$api => $request::FLEXIBLE_SINCE,)*
                }
            }
        }

        /// Checks a line of golden vectors against the request or response that bears this name.
        #[cfg(feature = "vectors")]
        pub(crate) fn check_named(name: &str, line: &Value, check: &impl Check) -> Option<Checked> {
            match name {
                $(
                    $request::NAME => Some(check.check::<$request>(line)),
                    $response::NAME => Some(check.check::<$response>(line)),
                )*
                _ => None,
            }
        }

        $(impl Request for $request {
            type Response = $response;
            const API: ApiKey = ApiKey::$api;
        })*
    };
}

apis! {
    /// Records from a leader's log.
    Fetch = 1, FetchRequest, FetchResponse;
    /// Brokers, topics and partitions.
    Metadata = 3, MetadataRequest, MetadataResponse;
    /// The choice of a SASL mechanism.
    SaslHandshake = 17, SaslHandshakeRequest, SaslHandshakeResponse;
    /// What a node speaks.
    ApiVersions = 18, ApiVersionsRequest, ApiVersionsResponse;
    /// New topics.
    CreateTopics = 19, CreateTopicsRequest, CreateTopicsResponse;
    /// Topics that go.
    DeleteTopics = 20, DeleteTopicsRequest, DeleteTopicsResponse;
    /// The ACLs there are.
    DescribeAcls = 29, DescribeAclsRequest, DescribeAclsResponse;
    /// New ACLs.
    CreateAcls = 30, CreateAclsRequest, CreateAclsResponse;
    /// ACLs that go.
    DeleteAcls = 31, DeleteAclsRequest, DeleteAclsResponse;
    /// The configurations of resources.
    DescribeConfigs = 32, DescribeConfigsRequest, DescribeConfigsResponse;
    /// All configurations of a resource, set together.
    AlterConfigs = 33, AlterConfigsRequest, AlterConfigsResponse;
    /// A round of authentication.
    SaslAuthenticate = 36, SaslAuthenticateRequest, SaslAuthenticateResponse;
    /// More partitions.
    CreatePartitions = 37, CreatePartitionsRequest, CreatePartitionsResponse;
    /// A new delegation token.
    CreateDelegationToken = 38, CreateDelegationTokenRequest, CreateDelegationTokenResponse;
    /// A delegation token that lives longer.
    RenewDelegationToken = 39, RenewDelegationTokenRequest, RenewDelegationTokenResponse;
    /// A delegation token that ends.
    ExpireDelegationToken = 40, ExpireDelegationTokenRequest, ExpireDelegationTokenResponse;
    /// The delegation tokens there are.
    DescribeDelegationToken = 41, DescribeDelegationTokenRequest, DescribeDelegationTokenResponse;
    /// Elections of partition leaders.
    ElectLeaders = 43, ElectLeadersRequest, ElectLeadersResponse;
    /// Single configurations, set or deleted.
    IncrementalAlterConfigs = 44, IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse;
    /// Replicas that move.
    AlterPartitionReassignments = 45, AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse;
    /// The replicas that are moving.
    ListPartitionReassignments = 46, ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse;
    /// The quotas there are.
    DescribeClientQuotas = 48, DescribeClientQuotasRequest, DescribeClientQuotasResponse;
    /// Quotas, set or deleted.
    AlterClientQuotas = 49, AlterClientQuotasRequest, AlterClientQuotasResponse;
    /// The SCRAM credentials there are.
    DescribeUserScramCredentials = 50, DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse;
    /// SCRAM credentials, set or deleted.
    AlterUserScramCredentials = 51, AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse;
    /// Votes and pre-votes.
    Vote = 52, VoteRequest, VoteResponse;
    /// A leader announces itself.
    BeginQuorumEpoch = 53, BeginQuorumEpochRequest, BeginQuorumEpochResponse;
    /// A leader resigns.
    EndQuorumEpoch = 54, EndQuorumEpochRequest, EndQuorumEpochResponse;
    /// The state of a quorum, from its leader.
    DescribeQuorum = 55, DescribeQuorumRequest, DescribeQuorumResponse;
    /// The in-sync replicas of partitions, from their leaders.
    AlterPartition = 56, AlterPartitionRequest, AlterPartitionResponse;
    /// The levels of features, changed.
    UpdateFeatures = 57, UpdateFeaturesRequest, UpdateFeaturesResponse;
    /// A request that a broker passes on.
    Envelope = 58, EnvelopeRequest, EnvelopeResponse;
    /// Slices of a snapshot.
    FetchSnapshot = 59, FetchSnapshotRequest, FetchSnapshotResponse;
    /// The nodes of a cluster.
    DescribeCluster = 60, DescribeClusterRequest, DescribeClusterResponse;
    /// A broker joins.
    BrokerRegistration = 62, BrokerRegistrationRequest, BrokerRegistrationResponse;
    /// A broker is alive.
    BrokerHeartbeat = 63, BrokerHeartbeatRequest, BrokerHeartbeatResponse;
    /// A broker leaves for good.
    UnregisterBroker = 64, UnregisterBrokerRequest, UnregisterBrokerResponse;
    /// A block of producer ids.
    AllocateProducerIds = 67, AllocateProducerIdsRequest, AllocateProducerIdsResponse;
    /// A controller says what it is.
    ControllerRegistration = 70, ControllerRegistrationRequest, ControllerRegistrationResponse;
    /// The log directories of replicas.
    AssignReplicasToDirs = 73, AssignReplicasToDirsRequest, AssignReplicasToDirsResponse;
    /// The resources that have configurations.
    ListConfigResources = 74, ListConfigResourcesRequest, ListConfigResourcesResponse;
    /// Topics and partitions, a page at a time.
    DescribeTopicPartitions = 75, DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse;
    /// A replica becomes a voter.
    AddRaftVoter = 80, AddRaftVoterRequest, AddRaftVoterResponse;
    /// A voter becomes an observer.
    RemoveRaftVoter = 81, RemoveRaftVoterRequest, RemoveRaftVoterResponse;
    /// A voter says what it is.
    UpdateRaftVoter = 82, UpdateRaftVoterRequest, UpdateRaftVoterResponse;
    /// A registration of a controller goes.
    UnregisterController = 94, UnregisterControllerRequest, UnregisterControllerResponse;
    /// A replica's own view; private to Quorate.
    DescribeReplica = 31000, DescribeReplicaRequest, DescribeReplicaResponse;
}

impl ApiKey {
    /// Whether only Quorate's own clients may hear of it.
    pub fn is_private(self) -> bool {
        self == ApiKey::DescribeReplica
    }
}

/// The version of the [`RequestHeader`] before a request of this version.
pub fn request_header_version(api: ApiKey, version: i16) -> i16 {
    if version >= api.flexible_since() { 2 } else { 1 }
}

/// The version of the [`ResponseHeader`] before a response of this version. ApiVersions always has 0:
/// whoever asks does not know yet what the other side speaks.
pub fn response_header_version(api: ApiKey, version: i16) -> i16 {
    match api {
        ApiKey::ApiVersions => 0,
        _ if version >= api.flexible_since() => 1,
        _ => 0,
    }
}

/// Where a leader named in a response listens.
///
/// Differs from Kafka: a response of a version without endpoints drops them; Java cannot encode it.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct NodeEndpoint {
    /// Which node.
    pub node_id: i32,
    /// A host name or address.
    pub host: String,
    /// A port.
    pub port: u16,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A named address: a listener of a node, an endpoint of a voter.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct Listener {
    /// The listener's name, in upper case between replicas.
    pub name: String,
    /// A host name or address.
    pub host: String,
    /// A port.
    pub port: u16,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Where the leader that sends a request listens.
pub type LeaderEndpoint = Listener;
