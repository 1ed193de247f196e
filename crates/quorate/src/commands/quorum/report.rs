//! What `--json` prints: DescribeQuorum's fields in lower camel case, one object.

use quorate_wire::Uuid;
use quorate_wire::message::{DescribeReplicaResponse, Listener, ReplicaState};
use serde::Serialize;

use super::survey::{Account, Survey};

/// The quorum as its leader sees it; with no leader `leader_id` is -1, the lists of replicas are empty, and
/// `replicas` and `unreachable` have what each node says of itself.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    pub(super) cluster_id: Option<String>,
    pub(super) leader_id: i32,
    pub(super) leader_epoch: i32,
    pub(super) high_watermark: i64,
    pub(super) current_voters: Vec<Replica>,
    pub(super) observers: Vec<Replica>,
    pub(super) nodes: Vec<Node>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) replicas: Option<Vec<View>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unreachable: Option<Vec<Unreachable>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Replica {
    pub(super) replica_id: i32,
    #[serde(serialize_with = "as_text")]
    pub(super) replica_directory_id: Uuid,
    pub(super) log_end_offset: i64,
    pub(super) last_fetch_timestamp: i64,
    pub(super) last_caught_up_timestamp: i64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Node {
    pub(super) node_id: i32,
    pub(super) listeners: Vec<Address>,
}

#[derive(Debug, Serialize)]
pub(super) struct Address {
    pub(super) name: String,
    pub(super) host: String,
    pub(super) port: u16,
}

/// A node's own view, with the fields of Quorate's DescribeReplica.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct View {
    node_id: i32,
    #[serde(serialize_with = "as_text")]
    directory_id: Uuid,
    endpoint: String,
    software_version: String,
    role: String,
    epoch: i32,
    leader_id: i32,
    voted_id: i32,
    is_voter: bool,
    log_start_offset: i64,
    log_end_offset: i64,
    log_end_epoch: i32,
    durable_end_offset: i64,
    high_watermark: i64,
    kraft_version: i16,
    voters: Vec<i32>,
    voters_offset: i64,
    leaderless_ms: i64,
    last_round: Option<Round>,
    integrity_fault: Option<String>,
    unreachable: Vec<Peer>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Round {
    epoch: i32,
    pre_vote: bool,
    log_end_offset: i64,
    log_end_epoch: i32,
    outcome: String,
    answers: Vec<Answer>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    voter_id: i32,
    kind: String,
    error_code: i16,
    epoch: i32,
    leader_id: i32,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Peer {
    node_id: i32,
    reason: String,
    since_ms: i64,
}

/// A node that gave no answer.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Unreachable {
    node_id: Option<i32>,
    endpoint: String,
    reason: String,
}

impl Report {
    pub(super) fn new(survey: &Survey, account: Option<&Account>) -> Report {
        let cluster_id = survey.views().map(|(_, view)| view.cluster_id.clone()).next();
        let Some(account) = account else {
            let epoch = survey.views().map(|(_, view)| view.epoch).max().unwrap_or(-1);
            let endpoint = |(endpoint, view): (&quorate_core::Endpoint, _)| {
                View::new(endpoint.to_string(), view)
            };
            let silent = survey.silent.iter().map(|silent| Unreachable {
                node_id: silent.node,
                endpoint: silent.endpoint.to_string(),
                reason: silent.reason.clone(),
            });
            return Report {
                cluster_id,
                leader_id: -1,
                leader_epoch: epoch,
                high_watermark: -1,
                current_voters: Vec::new(),
                observers: Vec::new(),
                nodes: Vec::new(),
                replicas: Some(survey.views().map(endpoint).collect()),
                unreachable: Some(silent.collect()),
            };
        };
        let partition = &account.partition;
        let nodes = account
            .nodes
            .iter()
            .map(|node| Node { node_id: node.node_id, listeners: addresses(&node.listeners) });
        Report {
            cluster_id,
            leader_id: partition.leader_id,
            leader_epoch: partition.leader_epoch,
            high_watermark: partition.high_watermark,
            current_voters: partition.current_voters.iter().map(Replica::new).collect(),
            observers: partition.observers.iter().map(Replica::new).collect(),
            nodes: nodes.collect(),
            replicas: None,
            unreachable: None,
        }
    }
}

impl Replica {
    fn new(state: &ReplicaState) -> Replica {
        Replica {
            replica_id: state.replica_id,
            replica_directory_id: state.replica_directory_id,
            log_end_offset: state.log_end_offset,
            last_fetch_timestamp: state.last_fetch_timestamp,
            last_caught_up_timestamp: state.last_caught_up_timestamp,
        }
    }
}

impl View {
    fn new(endpoint: String, view: &DescribeReplicaResponse) -> View {
        View {
            node_id: view.node_id,
            directory_id: view.directory_id,
            endpoint,
            software_version: view.software_version.clone(),
            role: view.role.clone(),
            epoch: view.epoch,
            leader_id: view.leader_id,
            voted_id: view.voted_id,
            is_voter: view.is_voter,
            log_start_offset: view.log_start_offset,
            log_end_offset: view.log_end_offset,
            log_end_epoch: view.log_end_epoch,
            durable_end_offset: view.durable_end_offset,
            high_watermark: view.high_watermark,
            kraft_version: view.kraft_version,
            voters: view.voters.iter().map(|voter| voter.voter_id).collect(),
            voters_offset: view.voters_offset,
            leaderless_ms: view.leaderless_ms,
            last_round: view.last_round.as_ref().map(|round| Round {
                epoch: round.epoch,
                pre_vote: round.pre_vote,
                log_end_offset: round.log_end_offset,
                log_end_epoch: round.log_end_epoch,
                outcome: round.outcome.clone(),
                answers: round
                    .answers
                    .iter()
                    .map(|answer| Answer {
                        voter_id: answer.voter_id,
                        kind: answer.kind.clone(),
                        error_code: answer.error_code,
                        epoch: answer.epoch,
                        leader_id: answer.leader_id,
                    })
                    .collect(),
            }),
            integrity_fault: view.integrity_fault.clone(),
            unreachable: view
                .unreachable
                .iter()
                .map(|peer| Peer {
                    node_id: peer.node_id,
                    reason: peer.reason.clone(),
                    since_ms: peer.since_ms,
                })
                .collect(),
        }
    }
}

fn addresses(listeners: &[Listener]) -> Vec<Address> {
    let address = |listener: &Listener| Address {
        name: listener.name.clone(),
        host: listener.host.clone(),
        port: listener.port,
    };
    listeners.iter().map(address).collect()
}

fn as_text<S: serde::Serializer>(id: &Uuid, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(id)
}
