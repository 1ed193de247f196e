//! BeginQuorumEpoch (KIP-595; v1 KIP-853).

use quorate_core::ids::{Epoch, NodeId};
use quorate_core::message::{BeginQuorumEpochRequest, ErrorCode, QuorumEpochResponse, Unreachable};
use quorate_wire::message as wire;

use crate::common::{
    PARTITION, TOPIC, check_cluster, current_in, endpoints_in, endpoints_out, leader_out,
    nodes_out, only, voter_in, voter_out,
};

pub(crate) fn request_in(
    request: wire::BeginQuorumEpochRequest,
    cluster_id: &str,
) -> Result<BeginQuorumEpochRequest, ErrorCode> {
    check_cluster(request.cluster_id.as_deref(), cluster_id)?;
    let partition = only(request.topics)
        .filter(|topic| topic.topic_name == TOPIC)
        .and_then(|topic| only(topic.partitions))
        .filter(|partition| partition.partition_index == PARTITION)
        .ok_or(ErrorCode::INVALID_REQUEST)?;
    Ok(BeginQuorumEpochRequest {
        voter: voter_in(request.voter_id, partition.voter_directory_id),
        leader: NodeId(partition.leader_id),
        epoch: Epoch(partition.leader_epoch),
        endpoints: endpoints_in(request.leader_endpoints),
    })
}

pub(crate) fn request_out(
    request: &BeginQuorumEpochRequest,
    cluster_id: &str,
) -> wire::BeginQuorumEpochRequest {
    let (voter_id, voter_directory_id) = voter_out(request.voter.as_ref());
    let partition = wire::BeginQuorumEpochRequestPartition {
        partition_index: PARTITION,
        voter_directory_id,
        leader_id: request.leader.0,
        leader_epoch: request.epoch.0,
        ..Default::default()
    };
    wire::BeginQuorumEpochRequest {
        cluster_id: Some(cluster_id.to_owned()),
        voter_id,
        topics: vec![wire::BeginQuorumEpochRequestTopic {
            topic_name: TOPIC.to_owned(),
            partitions: vec![partition],
            ..Default::default()
        }],
        leader_endpoints: endpoints_out(&request.endpoints),
        ..Default::default()
    }
}

pub(crate) fn refusal(error: ErrorCode) -> wire::BeginQuorumEpochResponse {
    wire::BeginQuorumEpochResponse { error_code: error.0, ..Default::default() }
}

pub(crate) fn response_out(response: &QuorumEpochResponse) -> wire::BeginQuorumEpochResponse {
    let partition = wire::BeginQuorumEpochResponsePartition {
        partition_index: PARTITION,
        error_code: response.error.0,
        leader_id: leader_out(response.current.leader),
        leader_epoch: response.current.epoch.0,
        ..Default::default()
    };
    wire::BeginQuorumEpochResponse {
        topics: vec![wire::BeginQuorumEpochResponseTopic {
            topic_name: TOPIC.to_owned(),
            partitions: vec![partition],
            ..Default::default()
        }],
        node_endpoints: nodes_out(&response.current),
        ..Default::default()
    }
}

pub(crate) fn response_in(
    response: wire::BeginQuorumEpochResponse,
) -> Result<QuorumEpochResponse, Unreachable> {
    if response.error_code != 0 {
        return Err(Unreachable::TopLevel(ErrorCode(response.error_code)));
    }
    let partition = only(response.topics)
        .filter(|topic| topic.topic_name == TOPIC)
        .and_then(|topic| only(topic.partitions))
        .filter(|partition| partition.partition_index == PARTITION)
        .ok_or(Unreachable::Malformed)?;
    Ok(QuorumEpochResponse {
        error: ErrorCode(partition.error_code),
        current: current_in(partition.leader_id, partition.leader_epoch, response.node_endpoints),
    })
}
