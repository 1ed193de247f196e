//! Fetch (KIP-595; v15 KIP-903; v17 KIP-853; v18 KIP-1166).

use bytes::Bytes;
use quorate_core::ids::{Endpoint, Epoch, NodeId, Offset, OffsetAndEpoch};
use quorate_core::message::{
    CurrentLeader, ErrorCode, FetchOutcome, FetchRequest, FetchResponse, FetcherHighWatermark,
    Received, Unreachable,
};
use quorate_wire::message as wire;
use quorate_wire::{Records, Uuid};

use crate::common::{PARTITION, check_cluster, directory_out, key_in, leader_in, leader_out, only};
use crate::records;

/// From here on topics have ids. Below it nothing says that the metadata log is meant.
pub(crate) const TOPIC_ID_SINCE: i16 = 13;
/// From here on the fetching replica stands in `ReplicaState`.
const REPLICA_STATE_SINCE: i16 = 15;
/// From here on Kafka's leaders fill the node endpoints, though version 16 has them already.
const NODES_SINCE: i16 = 17;
/// In the request: nothing is said of a high watermark.
const UNSAID: i64 = i64::MAX;

pub(crate) fn request_in(
    request: wire::FetchRequest,
    version: i16,
    cluster_id: &str,
) -> Result<FetchRequest, ErrorCode> {
    check_cluster(request.cluster_id.as_deref(), cluster_id)?;
    let partition = only(request.topics)
        .filter(|topic| topic.topic_id == Uuid::METADATA_TOPIC)
        .and_then(|topic| only(topic.partitions))
        .filter(|partition| partition.partition == PARTITION)
        .ok_or(ErrorCode::INVALID_REQUEST)?;
    let replica_id = match version {
        REPLICA_STATE_SINCE.. => request.replica_state.replica_id,
        _ => request.replica_id,
    };
    Ok(FetchRequest {
        replica: key_in(replica_id, partition.replica_directory_id),
        epoch: Epoch(partition.current_leader_epoch),
        offset: Offset(partition.fetch_offset),
        last_fetched_epoch: Epoch(partition.last_fetched_epoch),
        max_wait_ms: request.max_wait_ms,
        max_bytes: request.max_bytes,
        high_watermark: match partition.high_watermark {
            UNSAID => FetcherHighWatermark::Unsaid,
            ..0 => FetcherHighWatermark::Unknown,
            known => FetcherHighWatermark::Known(Offset(known)),
        },
    })
}

/// None if the version cannot say which topic is meant.
pub(crate) fn request_out(
    request: &FetchRequest,
    version: i16,
    cluster_id: &str,
) -> Option<wire::FetchRequest> {
    if version < TOPIC_ID_SINCE {
        return None;
    }
    let partition = wire::FetchPartition {
        partition: PARTITION,
        current_leader_epoch: request.epoch.0,
        fetch_offset: request.offset.0,
        last_fetched_epoch: request.last_fetched_epoch.0,
        replica_directory_id: directory_out(&request.replica),
        high_watermark: match request.high_watermark {
            FetcherHighWatermark::Unsaid => UNSAID,
            FetcherHighWatermark::Unknown => -1,
            FetcherHighWatermark::Known(offset) => offset.0,
        },
        ..Default::default()
    };
    let mut fetch = wire::FetchRequest {
        cluster_id: Some(cluster_id.to_owned()),
        max_wait_ms: request.max_wait_ms,
        max_bytes: request.max_bytes,
        topics: vec![wire::FetchTopic {
            topic_id: Uuid::METADATA_TOPIC,
            partitions: vec![partition],
            ..Default::default()
        }],
        ..Default::default()
    };
    match version {
        REPLICA_STATE_SINCE.. => fetch.replica_state.replica_id = request.replica.id.0,
        _ => fetch.replica_id = request.replica.id.0,
    }
    Some(fetch)
}

pub(crate) fn refusal(error: ErrorCode) -> wire::FetchResponse {
    wire::FetchResponse { error_code: error.0, ..Default::default() }
}

/// Records travel beside the answer: whole batches from the asked offset on.
pub(crate) fn response_out<R>(
    response: &FetchResponse<R>,
    records: Vec<Bytes>,
    version: i16,
) -> wire::FetchResponse {
    let current = &response.current;
    let mut partition = wire::FetchPartitionData {
        partition_index: PARTITION,
        error_code: response.error.0,
        high_watermark: response.high_watermark.map_or(-1, |offset| offset.0),
        log_start_offset: response.log_start.map_or(-1, |offset| offset.0),
        current_leader: wire::LeaderIdAndEpoch {
            leader_id: leader_out(current.leader),
            leader_epoch: current.epoch.0,
            ..Default::default()
        },
        // Not every client takes null.
        records: Some(Records::default()),
        ..Default::default()
    };
    match response.outcome {
        FetchOutcome::Records(_) => partition.records = Some(Records(records)),
        FetchOutcome::Diverging(OffsetAndEpoch { offset, epoch }) => {
            partition.diverging_epoch.epoch = epoch.0;
            partition.diverging_epoch.end_offset = offset.0;
        }
        FetchOutcome::Snapshot(OffsetAndEpoch { offset, epoch }) => {
            partition.snapshot_id.end_offset = offset.0;
            partition.snapshot_id.epoch = epoch.0;
        }
    }
    let node = current.leader.zip(current.endpoint.as_ref()).map(|(leader, endpoint)| {
        wire::FetchNodeEndpoint {
            node_id: leader.0,
            host: endpoint.host.to_string(),
            port: endpoint.port.into(),
            ..Default::default()
        }
    });
    wire::FetchResponse {
        responses: vec![wire::FetchableTopicResponse {
            topic_id: Uuid::METADATA_TOPIC,
            partitions: vec![partition],
            ..Default::default()
        }],
        node_endpoints: node.filter(|_| version >= NODES_SINCE).into_iter().collect(),
        ..Default::default()
    }
}

pub(crate) fn response_in(
    response: wire::FetchResponse,
) -> Result<FetchResponse<Received>, Unreachable> {
    if response.error_code != 0 {
        return Err(Unreachable::TopLevel(ErrorCode(response.error_code)));
    }
    let partition = only(response.responses)
        .filter(|topic| topic.topic_id == Uuid::METADATA_TOPIC)
        .and_then(|topic| only(topic.partitions))
        .filter(|partition| partition.partition_index == PARTITION)
        .ok_or(Unreachable::Malformed)?;
    let leader = leader_in(partition.current_leader.leader_id);
    let node = response.node_endpoints.into_iter().find(|n| Some(NodeId(n.node_id)) == leader);
    let endpoint = match node {
        None => None,
        Some(node) => {
            let port = u16::try_from(node.port).map_err(|_| Unreachable::Malformed)?;
            Some(Endpoint::new(&node.host, port))
        }
    };
    let (diverging, snapshot) = (&partition.diverging_epoch, &partition.snapshot_id);
    let outcome = if diverging.epoch >= 0 {
        let end = Offset(diverging.end_offset);
        FetchOutcome::Diverging(OffsetAndEpoch::new(end, Epoch(diverging.epoch)))
    } else if snapshot.epoch >= 0 && snapshot.end_offset >= 0 {
        let end = Offset(snapshot.end_offset);
        FetchOutcome::Snapshot(OffsetAndEpoch::new(end, Epoch(snapshot.epoch)))
    } else if snapshot.epoch >= 0 || snapshot.end_offset >= 0 {
        return Err(Unreachable::Malformed);
    } else {
        let bytes = partition.records.map(Records::into_bytes).unwrap_or_default();
        FetchOutcome::Records(records::check(bytes))
    };
    Ok(FetchResponse {
        error: ErrorCode(partition.error_code),
        current: CurrentLeader {
            epoch: Epoch(partition.current_leader.leader_epoch),
            leader,
            endpoint,
        },
        high_watermark: offset_in(partition.high_watermark),
        log_start: offset_in(partition.log_start_offset),
        outcome,
    })
}

fn offset_in(offset: i64) -> Option<Offset> {
    (offset >= 0).then_some(Offset(offset))
}
