//! FetchSnapshot (KIP-630; v1 KIP-853).

use quorate_core::ids::{Epoch, Offset, OffsetAndEpoch};
use quorate_core::message::{ErrorCode, FetchSnapshotRequest, FetchSnapshotResponse, Unreachable};
use quorate_wire::message as wire;

use crate::common::{
    PARTITION, TOPIC, check_cluster, current_in, directory_out, key_in, leader_out, nodes_out, only,
};

/// # Errors
/// The answer that refuses the request.
pub(crate) fn request_in(
    request: wire::FetchSnapshotRequest,
    cluster_id: &str,
) -> Result<FetchSnapshotRequest, wire::FetchSnapshotResponse> {
    check_cluster(request.cluster_id.as_deref(), cluster_id).map_err(refusal)?;
    let topic = only(request.topics).ok_or_else(|| refusal(ErrorCode::INVALID_REQUEST))?;
    let partition = only(topic.partitions).ok_or_else(|| refusal(ErrorCode::INVALID_REQUEST))?;
    if topic.name != TOPIC || partition.partition != PARTITION {
        return Err(unknown_partition(topic.name, partition.partition));
    }
    Ok(FetchSnapshotRequest {
        replica: key_in(request.replica_id, partition.replica_directory_id),
        epoch: Epoch(partition.current_leader_epoch),
        snapshot: id_in(&partition.snapshot_id),
        position: partition.position,
        max_bytes: request.max_bytes,
    })
}

pub(crate) fn request_out(
    request: &FetchSnapshotRequest,
    cluster_id: &str,
) -> wire::FetchSnapshotRequest {
    let partition = wire::FetchSnapshotRequestPartition {
        partition: PARTITION,
        current_leader_epoch: request.epoch.0,
        snapshot_id: id_out(request.snapshot),
        position: request.position,
        replica_directory_id: directory_out(&request.replica),
        ..Default::default()
    };
    wire::FetchSnapshotRequest {
        cluster_id: Some(cluster_id.to_owned()),
        replica_id: request.replica.id.0,
        max_bytes: request.max_bytes,
        topics: vec![wire::FetchSnapshotRequestTopic {
            name: TOPIC.to_owned(),
            partitions: vec![partition],
            ..Default::default()
        }],
        ..Default::default()
    }
}

pub(crate) fn refusal(error: ErrorCode) -> wire::FetchSnapshotResponse {
    wire::FetchSnapshotResponse { error_code: error.0, ..Default::default() }
}

fn unknown_partition(name: String, index: i32) -> wire::FetchSnapshotResponse {
    let partition = wire::FetchSnapshotResponsePartition {
        index,
        error_code: ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.0,
        ..Default::default()
    };
    response_of(name, partition)
}

/// Differs from Kafka, whose encoder trips over the null bytes of its error answers and sends
/// UNKNOWN_SERVER_ERROR in their place: ours have empty bytes.
pub(crate) fn response_out(response: &FetchSnapshotResponse) -> wire::FetchSnapshotResponse {
    let partition = wire::FetchSnapshotResponsePartition {
        index: PARTITION,
        error_code: response.error.0,
        snapshot_id: id_out(response.snapshot),
        current_leader: wire::FetchSnapshotLeader {
            leader_id: leader_out(response.current.leader),
            leader_epoch: response.current.epoch.0,
            ..Default::default()
        },
        ..Default::default()
    };
    wire::FetchSnapshotResponse {
        node_endpoints: nodes_out(&response.current),
        ..response_of(TOPIC.to_owned(), partition)
    }
}

pub(crate) fn response_in(
    response: wire::FetchSnapshotResponse,
) -> Result<FetchSnapshotResponse, Unreachable> {
    if response.error_code != 0 {
        return Err(Unreachable::TopLevel(ErrorCode(response.error_code)));
    }
    let partition = only(response.topics)
        .filter(|topic| topic.name == TOPIC)
        .and_then(|topic| only(topic.partitions))
        .filter(|partition| partition.index == PARTITION)
        .ok_or(Unreachable::Malformed)?;
    let current = &partition.current_leader;
    Ok(FetchSnapshotResponse {
        error: ErrorCode(partition.error_code),
        current: current_in(current.leader_id, current.leader_epoch, response.node_endpoints),
        snapshot: id_in(&partition.snapshot_id),
    })
}

fn response_of(
    name: String,
    partition: wire::FetchSnapshotResponsePartition,
) -> wire::FetchSnapshotResponse {
    wire::FetchSnapshotResponse {
        topics: vec![wire::FetchSnapshotResponseTopic {
            name,
            partitions: vec![partition],
            ..Default::default()
        }],
        ..Default::default()
    }
}

fn id_in(id: &wire::FetchSnapshotId) -> OffsetAndEpoch {
    OffsetAndEpoch::new(Offset(id.end_offset), Epoch(id.epoch))
}

fn id_out(id: OffsetAndEpoch) -> wire::FetchSnapshotId {
    wire::FetchSnapshotId { end_offset: id.offset.0, epoch: id.epoch.0, ..Default::default() }
}
