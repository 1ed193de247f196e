//! Kafka's Raft RPCs as the core's messages, one file an RPC.
//!
//! Bytes come in as whole frames and leave as slices for one vectored write. What needs no state is
//! decided here: the cluster id, that the partition is the metadata log's, and that record batches are
//! whole. Nothing here reads a clock, a socket or a file.

pub mod api_versions;
pub mod client;
pub mod records;
pub mod server;

mod begin_quorum_epoch;
mod common;
mod describe_quorum;
mod describe_replica;
mod end_quorum_epoch;
mod fetch;
mod fetch_snapshot;
mod vote;

use quorate_core::message::Request;
pub use quorate_wire::message::ApiKey;

/// The API that carries this request.
pub fn api_of(request: &Request) -> ApiKey {
    match request {
        Request::Vote(_) => ApiKey::Vote,
        Request::BeginQuorumEpoch(_) => ApiKey::BeginQuorumEpoch,
        Request::EndQuorumEpoch(_) => ApiKey::EndQuorumEpoch,
        Request::Fetch(_) => ApiKey::Fetch,
        Request::FetchSnapshot(_) => ApiKey::FetchSnapshot,
        Request::DescribeQuorum => ApiKey::DescribeQuorum,
        Request::DescribeReplica => ApiKey::DescribeReplica,
    }
}
