//! EndQuorumEpoch (KIP-595; v1 KIP-853).

use quorate_core::ids::{Epoch, NodeId, ReplicaKey};
use quorate_core::message::{EndQuorumEpochRequest, ErrorCode, QuorumEpochResponse, Unreachable};
use quorate_wire::message as wire;

use crate::common::{
    PARTITION, TOPIC, check_cluster, current_in, directory_out, endpoints_in, endpoints_out,
    key_in, leader_out, nodes_out, only,
};

pub(crate) fn request_in(
    request: wire::EndQuorumEpochRequest,
    cluster_id: &str,
) -> Result<EndQuorumEpochRequest, ErrorCode> {
    check_cluster(request.cluster_id.as_deref(), cluster_id)?;
    let partition = only(request.topics)
        .filter(|topic| topic.topic_name == TOPIC)
        .and_then(|topic| only(topic.partitions))
        .filter(|partition| partition.partition_index == PARTITION)
        .ok_or(ErrorCode::INVALID_REQUEST)?;
    let candidates = partition.preferred_candidates.into_iter();
    let mut preferred_candidates: Vec<ReplicaKey> =
        candidates.map(|c| key_in(c.candidate_id, c.candidate_directory_id)).collect();
    if preferred_candidates.is_empty() {
        let successors = partition.preferred_successors.into_iter();
        preferred_candidates = successors.map(|id| ReplicaKey::new(NodeId(id), None)).collect();
    }
    Ok(EndQuorumEpochRequest {
        leader: NodeId(partition.leader_id),
        epoch: Epoch(partition.leader_epoch),
        preferred_candidates,
        endpoints: endpoints_in(request.leader_endpoints),
    })
}

/// Candidates stand in two fields, of which each version has one.
pub(crate) fn request_out(
    request: &EndQuorumEpochRequest,
    cluster_id: &str,
) -> wire::EndQuorumEpochRequest {
    let candidates = &request.preferred_candidates;
    let partition = wire::EndQuorumEpochRequestPartition {
        partition_index: PARTITION,
        leader_id: request.leader.0,
        leader_epoch: request.epoch.0,
        preferred_successors: candidates.iter().map(|key| key.id.0).collect(),
        preferred_candidates: candidates
            .iter()
            .map(|key| wire::ReplicaInfo {
                candidate_id: key.id.0,
                candidate_directory_id: directory_out(key),
                ..Default::default()
            })
            .collect(),
        ..Default::default()
    };
    wire::EndQuorumEpochRequest {
        cluster_id: Some(cluster_id.to_owned()),
        topics: vec![wire::EndQuorumEpochRequestTopic {
            topic_name: TOPIC.to_owned(),
            partitions: vec![partition],
            ..Default::default()
        }],
        leader_endpoints: endpoints_out(&request.endpoints),
        ..Default::default()
    }
}

pub(crate) fn refusal(error: ErrorCode) -> wire::EndQuorumEpochResponse {
    wire::EndQuorumEpochResponse { error_code: error.0, ..Default::default() }
}

pub(crate) fn response_out(response: &QuorumEpochResponse) -> wire::EndQuorumEpochResponse {
    let partition = wire::EndQuorumEpochResponsePartition {
        partition_index: PARTITION,
        error_code: response.error.0,
        leader_id: leader_out(response.current.leader),
        leader_epoch: response.current.epoch.0,
        ..Default::default()
    };
    wire::EndQuorumEpochResponse {
        topics: vec![wire::EndQuorumEpochResponseTopic {
            topic_name: TOPIC.to_owned(),
            partitions: vec![partition],
            ..Default::default()
        }],
        node_endpoints: nodes_out(&response.current),
        ..Default::default()
    }
}

pub(crate) fn response_in(
    response: wire::EndQuorumEpochResponse,
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
