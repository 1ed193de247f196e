//! Who is there, who says what, and who leads.

use std::time::Duration;

use quorate_core::Endpoint;
use quorate_network::{Client, ClientError};
use quorate_wire::message::{
    DescribeQuorumRequest, DescribeQuorumRequestPartition, DescribeQuorumRequestTopic,
    DescribeQuorumResponse, DescribeQuorumResponsePartition, DescribeReplicaRequest,
    DescribeReplicaResponse,
};
use tokio::task::JoinSet;

/// How long one node may take to answer one question.
const PATIENCE: Duration = Duration::from_secs(2);
/// How many nodes are asked at most, whatever they say of further ones.
const MAX_NODES: usize = 64;
/// Kafka's client id of a tool.
const CLIENT_ID: &str = "quorate-describe";

/// A node that answered.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// Where it was asked.
    pub(crate) endpoint: Endpoint,
    /// Its own view; absent for a Java node, which has no API for it.
    pub(crate) view: Option<DescribeReplicaResponse>,
}

/// A node that did not.
#[derive(Clone, Debug)]
pub(crate) struct Silent {
    /// Its id, where another node told of it.
    pub(crate) node: Option<i32>,
    /// Where it was asked.
    pub(crate) endpoint: Endpoint,
    /// What happened.
    pub(crate) reason: String,
}

/// Everybody that could be found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Survey {
    /// Who answered; those with a view by id.
    pub(crate) nodes: Vec<Node>,
    /// Who did not.
    pub(crate) silent: Vec<Silent>,
}

/// The leader's account.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    /// The partition of the metadata log.
    pub(crate) partition: DescribeQuorumResponsePartition,
    /// Where voters listen.
    pub(crate) nodes: Vec<quorate_wire::message::DescribeQuorumNode>,
}

impl Survey {
    /// Asks these nodes, and then the voters that they tell of.
    pub(crate) async fn of(bootstrap: &[Endpoint]) -> Survey {
        let mut survey = Survey::default();
        let first = bootstrap.iter().take(MAX_NODES).map(|endpoint| (None, endpoint.clone()));
        survey.ask(first.collect()).await;
        let learnt = survey.voters_not_asked();
        survey.ask(learnt).await;
        survey.nodes.sort_by_key(|node| node.view.as_ref().map(|view| view.node_id));
        survey.nodes.dedup_by_key(|node| match &node.view {
            Some(view) => (view.node_id, view.directory_id, String::new()),
            None => (-1, quorate_wire::Uuid::ZERO, node.endpoint.to_string()),
        });
        survey
    }

    /// The views, by node id.
    pub(crate) fn views(&self) -> impl Iterator<Item = (&Endpoint, &DescribeReplicaResponse)> {
        self.nodes.iter().filter_map(|node| Some((&node.endpoint, node.view.as_ref()?)))
    }

    async fn ask(&mut self, whom: Vec<(Option<i32>, Endpoint)>) {
        let mut questions = JoinSet::new();
        for (node, endpoint) in whom {
            questions.spawn(async move {
                let answer = describe_replica(&endpoint, PATIENCE).await;
                (node, endpoint, answer)
            });
        }
        while let Some(done) = questions.join_next().await {
            let Ok((node, endpoint, answer)) = done else { continue };
            match answer {
                Ok(view) => self.nodes.push(Node { endpoint, view: Some(view) }),
                Err(ClientError::Unsupported { .. }) => {
                    self.nodes.push(Node { endpoint, view: None });
                }
                Err(error) => {
                    let reason = reason(&endpoint, &error);
                    self.silent.push(Silent { node, endpoint, reason });
                }
            }
        }
    }

    fn voters_not_asked(&self) -> Vec<(Option<i32>, Endpoint)> {
        let mut learnt: Vec<(Option<i32>, Endpoint)> = Vec::new();
        for voter in self.views().flat_map(|(_, view)| &view.voters) {
            let Some(listener) = voter.endpoints.first() else { continue };
            let endpoint = Endpoint::new(&listener.host, listener.port);
            let asked = self.views().any(|(_, view)| view.node_id == voter.voter_id)
                || self.nodes.iter().any(|node| node.endpoint == endpoint)
                || self.silent.iter().any(|silent| silent.endpoint == endpoint)
                || learnt.iter().any(|(_, other)| *other == endpoint);
            if !asked && learnt.len() < MAX_NODES {
                learnt.push((Some(voter.voter_id), endpoint));
            }
        }
        learnt
    }

    /// The account of the leader, if there is one that answers. It counts only from whom a view of the
    /// highest epoch names, or from a node without a view that says so itself.
    pub(crate) async fn ask_leader(&mut self) -> Option<Account> {
        let newest =
            self.views().filter(|(_, view)| view.leader_id >= 0).map(|(_, view)| view.epoch);
        let newest = newest.max();
        let mut candidates: Vec<Endpoint> = Vec::new();
        for (endpoint, view) in self.views().filter(|(_, view)| Some(view.epoch) == newest) {
            if view.leader_id == view.node_id {
                candidates.insert(0, endpoint.clone());
            } else if let Some(voter) = view.voters.iter().find(|v| v.voter_id == view.leader_id)
                && let Some(listener) = voter.endpoints.first()
            {
                candidates.push(Endpoint::new(&listener.host, listener.port));
            }
        }
        let without_view = self.nodes.iter().filter(|node| node.view.is_none());
        candidates.extend(without_view.map(|node| node.endpoint.clone()));
        let mut asked: Vec<Endpoint> = Vec::new();
        for endpoint in candidates {
            if asked.contains(&endpoint) {
                continue;
            }
            if let Ok(Some(account)) = describe_quorum(&endpoint).await {
                return Some(account);
            }
            asked.push(endpoint);
        }
        None
    }
}

/// What happened, without the endpoint, which is shown beside it.
fn reason(endpoint: &Endpoint, error: &ClientError) -> String {
    let prefix = format!("{endpoint}: ");
    let mut reason = error.to_string();
    while let Some(rest) = reason.strip_prefix(&prefix) {
        reason = rest.to_owned();
    }
    reason
}

/// Asks a node for its own view.
pub(crate) async fn describe_replica(
    endpoint: &Endpoint,
    patience: Duration,
) -> Result<DescribeReplicaResponse, ClientError> {
    let mut client = Client::connect(endpoint, CLIENT_ID, patience).await?;
    let (view, _) = client.call(&DescribeReplicaRequest::default()).await?;
    Ok(view)
}

/// Asks a node as the leader; none if it says that it is not.
async fn describe_quorum(endpoint: &Endpoint) -> Result<Option<Account>, ClientError> {
    let mut client = Client::connect(endpoint, CLIENT_ID, PATIENCE).await?;
    let partitions = vec![DescribeQuorumRequestPartition::default()];
    let topic_name = "__cluster_metadata".to_owned();
    let topics = vec![DescribeQuorumRequestTopic { topic_name, partitions, ..Default::default() }];
    let request = DescribeQuorumRequest { topics, ..Default::default() };
    let (response, _): (DescribeQuorumResponse, i16) = client.call(&request).await?;
    if response.error_code != 0 {
        return Ok(None);
    }
    let partition = response.topics.into_iter().flat_map(|topic| topic.partitions).next();
    let partition = partition.filter(|partition| partition.error_code == 0);
    Ok(partition.map(|partition| Account { partition, nodes: response.nodes }))
}
