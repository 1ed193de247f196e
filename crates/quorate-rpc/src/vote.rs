//! Vote (KIP-595; v1 KIP-853; v2 KIP-996).

use quorate_core::ids::{Epoch, Offset, OffsetAndEpoch};
use quorate_core::message::{ErrorCode, Unreachable, VoteRequest, VoteResponse};
use quorate_wire::message as wire;

use crate::common::{
    PARTITION, TOPIC, check_cluster, current_in, directory_out, key_in, leader_out, nodes_out,
    only, voter_in, voter_out,
};

pub(crate) fn request_in(
    request: wire::VoteRequest,
    cluster_id: &str,
) -> Result<VoteRequest, ErrorCode> {
    check_cluster(request.cluster_id.as_deref(), cluster_id)?;
    let partition = only(request.topics)
        .filter(|topic| topic.topic_name == TOPIC)
        .and_then(|topic| only(topic.partitions))
        .filter(|partition| partition.partition_index == PARTITION)
        .ok_or(ErrorCode::INVALID_REQUEST)?;
    Ok(VoteRequest {
        voter: voter_in(request.voter_id, partition.voter_directory_id),
        replica: key_in(partition.replica_id, partition.replica_directory_id),
        epoch: Epoch(partition.replica_epoch),
        log_end: OffsetAndEpoch::new(
            Offset(partition.last_offset),
            Epoch(partition.last_offset_epoch),
        ),
        pre_vote: partition.pre_vote,
    })
}

pub(crate) fn request_out(request: &VoteRequest, cluster_id: &str) -> wire::VoteRequest {
    let (voter_id, voter_directory_id) = voter_out(request.voter.as_ref());
    let partition = wire::VoteRequestPartition {
        partition_index: PARTITION,
        replica_epoch: request.epoch.0,
        replica_id: request.replica.id.0,
        replica_directory_id: directory_out(&request.replica),
        voter_directory_id,
        last_offset_epoch: request.log_end.epoch.0,
        last_offset: request.log_end.offset.0,
        pre_vote: request.pre_vote,
        ..Default::default()
    };
    wire::VoteRequest {
        cluster_id: Some(cluster_id.to_owned()),
        voter_id,
        topics: vec![wire::VoteRequestTopic {
            topic_name: TOPIC.to_owned(),
            partitions: vec![partition],
            ..Default::default()
        }],
        ..Default::default()
    }
}

pub(crate) fn refusal(error: ErrorCode) -> wire::VoteResponse {
    wire::VoteResponse { error_code: error.0, ..Default::default() }
}

pub(crate) fn response_out(response: &VoteResponse) -> wire::VoteResponse {
    let partition = wire::VoteResponsePartition {
        partition_index: PARTITION,
        error_code: response.error.0,
        leader_id: leader_out(response.current.leader),
        leader_epoch: response.current.epoch.0,
        vote_granted: response.granted,
        ..Default::default()
    };
    wire::VoteResponse {
        topics: vec![wire::VoteResponseTopic {
            topic_name: TOPIC.to_owned(),
            partitions: vec![partition],
            ..Default::default()
        }],
        node_endpoints: nodes_out(&response.current),
        ..Default::default()
    }
}

pub(crate) fn response_in(response: wire::VoteResponse) -> Result<VoteResponse, Unreachable> {
    if response.error_code != 0 {
        return Err(Unreachable::TopLevel(ErrorCode(response.error_code)));
    }
    let partition = only(response.topics)
        .filter(|topic| topic.topic_name == TOPIC)
        .and_then(|topic| only(topic.partitions))
        .filter(|partition| partition.partition_index == PARTITION)
        .ok_or(Unreachable::Malformed)?;
    Ok(VoteResponse {
        error: ErrorCode(partition.error_code),
        current: current_in(partition.leader_id, partition.leader_epoch, response.node_endpoints),
        granted: partition.vote_granted,
    })
}
