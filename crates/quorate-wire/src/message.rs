//! The Raft RPCs at every version of Kafka 4.4, one file an RPC.
//!
//! The structs have Kafka's names and fields; what the fields mean is told by the KIP that each file
//! names. Build one with `..Default::default()`: the defaults are the schema's.

use crate::codec::{Message, UnknownTags, Wire};

mod api_versions;
mod begin_quorum_epoch;
mod describe_quorum;
mod describe_replica;
mod end_quorum_epoch;
mod fetch;
mod fetch_snapshot;
mod header;
mod vote;

pub use api_versions::*;
pub use begin_quorum_epoch::*;
pub use describe_quorum::*;
pub use describe_replica::*;
pub use end_quorum_epoch::*;
pub use fetch::*;
pub use fetch_snapshot::*;
pub use header::*;
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
        /// An API that is built.
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

        $(impl Request for $request {
            type Response = $response;
            const API: ApiKey = ApiKey::$api;
        })*
    };
}

apis! {
    /// Records from a leader's log.
    Fetch = 1, FetchRequest, FetchResponse;
    /// What a node speaks.
    ApiVersions = 18, ApiVersionsRequest, ApiVersionsResponse;
    /// Votes and pre-votes.
    Vote = 52, VoteRequest, VoteResponse;
    /// A leader announces itself.
    BeginQuorumEpoch = 53, BeginQuorumEpochRequest, BeginQuorumEpochResponse;
    /// A leader resigns.
    EndQuorumEpoch = 54, EndQuorumEpochRequest, EndQuorumEpochResponse;
    /// The state of a quorum, from its leader.
    DescribeQuorum = 55, DescribeQuorumRequest, DescribeQuorumResponse;
    /// Slices of a snapshot.
    FetchSnapshot = 59, FetchSnapshotRequest, FetchSnapshotResponse;
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
