//! DescribeQuorum (KIP-595; v1 KIP-836; v2 KIP-853).

use std::time::Duration;

use quorate_core::ids::{Epoch, NodeId, Offset};
use quorate_core::message::{ErrorCode, QuorumDescription, ReplicaProgress, Unreachable};
use quorate_wire::Uuid;
use quorate_wire::message as wire;

use crate::common::{PARTITION, TOPIC, directory_out, endpoints_in, endpoints_out, key_in, only};
use crate::server::error_message;

/// From here on directory ids and nodes are told.
const DIRECTORY_SINCE: i16 = 2;

/// # Errors
/// The answer that refuses the request: each partition that was asked for, by its name.
pub(crate) fn request_in(
    request: wire::DescribeQuorumRequest,
) -> Result<(), wire::DescribeQuorumResponse> {
    let is_ours = |topic: &wire::DescribeQuorumRequestTopic| {
        topic.topic_name == TOPIC
            && matches!(topic.partitions.as_slice(), [p] if p.partition_index == PARTITION)
    };
    if matches!(request.topics.as_slice(), [topic] if is_ours(topic)) {
        return Ok(());
    }
    let topics = request.topics.into_iter().map(|topic| wire::DescribeQuorumResponseTopic {
        topic_name: topic.topic_name,
        partitions: topic
            .partitions
            .into_iter()
            .map(|p| failed(p.partition_index, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION))
            .collect(),
        ..Default::default()
    });
    Err(wire::DescribeQuorumResponse { topics: topics.collect(), ..Default::default() })
}

pub(crate) fn request_out() -> wire::DescribeQuorumRequest {
    let partition =
        wire::DescribeQuorumRequestPartition { partition_index: PARTITION, ..Default::default() };
    wire::DescribeQuorumRequest {
        topics: vec![wire::DescribeQuorumRequestTopic {
            topic_name: TOPIC.to_owned(),
            partitions: vec![partition],
            ..Default::default()
        }],
        ..Default::default()
    }
}

pub(crate) fn refusal(error: ErrorCode) -> wire::DescribeQuorumResponse {
    wire::DescribeQuorumResponse {
        error_code: error.0,
        error_message: Some(error_message(error).to_owned()),
        ..Default::default()
    }
}

/// Ages become timestamps, counted back from `now_ms`.
pub(crate) fn response_out(
    description: &Result<QuorumDescription, ErrorCode>,
    version: i16,
    now_ms: i64,
) -> wire::DescribeQuorumResponse {
    let replicas = |replicas: &[ReplicaProgress]| {
        replicas.iter().map(|replica| replica_out(replica, version, now_ms)).collect()
    };
    let (partition, nodes) = match description {
        Err(error) => (failed(PARTITION, *error), Vec::new()),
        Ok(description) => {
            let partition = wire::DescribeQuorumResponsePartition {
                partition_index: PARTITION,
                leader_id: description.leader.0,
                leader_epoch: description.epoch.0,
                high_watermark: description.high_watermark.map_or(-1, |offset| offset.0),
                current_voters: replicas(&description.voters),
                observers: replicas(&description.observers),
                ..Default::default()
            };
            let nodes = description.nodes.iter().map(|(id, endpoints)| wire::DescribeQuorumNode {
                node_id: id.0,
                listeners: endpoints_out(endpoints),
                ..Default::default()
            });
            (partition, nodes.filter(|_| version >= DIRECTORY_SINCE).collect())
        }
    };
    wire::DescribeQuorumResponse {
        topics: vec![wire::DescribeQuorumResponseTopic {
            topic_name: TOPIC.to_owned(),
            partitions: vec![partition],
            ..Default::default()
        }],
        nodes,
        ..Default::default()
    }
}

fn failed(index: i32, error: ErrorCode) -> wire::DescribeQuorumResponsePartition {
    wire::DescribeQuorumResponsePartition {
        partition_index: index,
        error_code: error.0,
        error_message: Some(error_message(error).to_owned()),
        ..Default::default()
    }
}

fn replica_out(replica: &ReplicaProgress, version: i16, now_ms: i64) -> wire::ReplicaState {
    let timestamp = |age: Option<Duration>| {
        age.map_or(-1, |age| {
            now_ms.saturating_sub(i64::try_from(age.as_millis()).unwrap_or(i64::MAX)).max(0)
        })
    };
    wire::ReplicaState {
        replica_id: replica.key.id.0,
        replica_directory_id: match version {
            DIRECTORY_SINCE.. => directory_out(&replica.key),
            _ => Uuid::ZERO,
        },
        log_end_offset: replica.log_end.map_or(-1, |offset| offset.0),
        last_fetch_timestamp: timestamp(replica.last_fetch),
        last_caught_up_timestamp: timestamp(replica.last_caught_up),
        ..Default::default()
    }
}

pub(crate) fn response_in(
    response: wire::DescribeQuorumResponse,
    now_ms: i64,
) -> Result<Result<QuorumDescription, ErrorCode>, Unreachable> {
    if response.error_code != 0 {
        return Err(Unreachable::TopLevel(ErrorCode(response.error_code)));
    }
    let partition = only(response.topics)
        .filter(|topic| topic.topic_name == TOPIC)
        .and_then(|topic| only(topic.partitions))
        .filter(|partition| partition.partition_index == PARTITION)
        .ok_or(Unreachable::Malformed)?;
    if partition.error_code != 0 {
        return Ok(Err(ErrorCode(partition.error_code)));
    }
    let replicas = |replicas: Vec<wire::ReplicaState>| {
        replicas.into_iter().map(|replica| replica_in(&replica, now_ms)).collect()
    };
    Ok(Ok(QuorumDescription {
        leader: NodeId(partition.leader_id),
        epoch: Epoch(partition.leader_epoch),
        high_watermark: offset_in(partition.high_watermark),
        voters: replicas(partition.current_voters),
        observers: replicas(partition.observers),
        nodes: response
            .nodes
            .into_iter()
            .map(|node| (NodeId(node.node_id), endpoints_in(node.listeners)))
            .collect(),
    }))
}

fn replica_in(replica: &wire::ReplicaState, now_ms: i64) -> ReplicaProgress {
    let age = |timestamp: i64| {
        let age = u64::try_from(now_ms.saturating_sub(timestamp)).unwrap_or(0);
        (timestamp >= 0).then_some(Duration::from_millis(age))
    };
    ReplicaProgress {
        key: key_in(replica.replica_id, replica.replica_directory_id),
        log_end: offset_in(replica.log_end_offset),
        last_fetch: age(replica.last_fetch_timestamp),
        last_caught_up: age(replica.last_caught_up_timestamp),
    }
}

fn offset_in(offset: i64) -> Option<Offset> {
    (offset >= 0).then_some(Offset(offset))
}
