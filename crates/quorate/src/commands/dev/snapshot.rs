//! What the three nodes say at one moment.

use std::time::Duration;

use quorate_wire::message::DescribeReplicaResponse;
use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::cluster::Cluster;
use crate::commands::quorum::describe_replica;

/// How long a node may take to answer.
const PATIENCE: Duration = Duration::from_millis(500);

/// Looks at the nodes again and again, and keeps the time without a leader.
pub(super) struct Observer {
    leaderless_since: Option<Instant>,
    last_leaderless: Duration,
    max_leaderless: Duration,
    leader: Option<(i32, i32)>,
}

/// One look.
pub(super) struct Snapshot {
    /// The leader and its epoch.
    pub(super) leader: Option<(i32, i32)>,
    /// How long there has been none.
    pub(super) leaderless: Option<Duration>,
    /// How long there was none the last time.
    pub(super) last_leaderless: Duration,
    /// The longest time without one.
    pub(super) max_leaderless: Duration,
    /// The nodes by id.
    pub(super) nodes: Vec<Row>,
}

/// One node.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    pub(super) node_id: i32,
    /// The role, or `silent` for a process that gives no answer, or `down`.
    pub(super) role: String,
    pub(super) epoch: Option<i32>,
    pub(super) leader_id: Option<i32>,
    pub(super) log_end_offset: Option<i64>,
    pub(super) high_watermark: Option<i64>,
    /// How many records it is behind the leader.
    pub(super) lag: Option<i64>,
    /// How long it has known no leader, in milliseconds.
    pub(super) leaderless_ms: Option<i64>,
    /// How its process ended.
    pub(super) ended: Option<String>,
}

/// A snapshot as `--json` prints it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Json<'a> {
    leader_id: i32,
    leader_epoch: i32,
    leaderless_ms: u128,
    max_leaderless_ms: u128,
    nodes: &'a [Row],
}

impl Observer {
    pub(super) fn new(_: &Cluster) -> Observer {
        Observer {
            leaderless_since: Some(Instant::now()),
            last_leaderless: Duration::ZERO,
            max_leaderless: Duration::ZERO,
            leader: None,
        }
    }

    /// Asks all nodes at once.
    pub(super) async fn look(&mut self, cluster: &mut Cluster) -> Snapshot {
        let mut answers = JoinSet::new();
        let mut rows = Vec::new();
        for (index, node) in cluster.nodes.iter_mut().enumerate() {
            let running = node.is_running();
            rows.push(Row::silent(node.id, running, node.ended.clone()));
            if running {
                let endpoint = node.endpoint.clone();
                answers.spawn(async move { (index, describe_replica(&endpoint, PATIENCE).await) });
            }
        }
        while let Some(answer) = answers.join_next().await {
            if let Ok((index, Ok(view))) = answer
                && let Some(row) = rows.get_mut(index)
            {
                row.fill(&view);
            }
        }
        let leader = rows.iter().filter(|row| row.role == "leader").max_by_key(|row| row.epoch);
        let end = leader.and_then(|row| row.log_end_offset);
        let leader = leader.map(|row| (row.node_id, row.epoch.unwrap_or(-1)));
        for row in &mut rows {
            row.lag = end.zip(row.log_end_offset).map(|(end, own)| end.saturating_sub(own).max(0));
        }
        self.count(leader);
        Snapshot {
            leader,
            leaderless: self.leaderless_since.map(|since| since.elapsed()),
            last_leaderless: self.last_leaderless,
            max_leaderless: self.max_leaderless,
            nodes: rows,
        }
    }

    fn count(&mut self, leader: Option<(i32, i32)>) {
        match (leader, self.leaderless_since) {
            (Some(_), Some(since)) => {
                self.last_leaderless = since.elapsed();
                // The start is no failure: the time that it takes is not counted.
                if self.leader.is_some() {
                    self.max_leaderless = self.max_leaderless.max(self.last_leaderless);
                }
                self.leaderless_since = None;
            }
            (None, None) => self.leaderless_since = Some(Instant::now()),
            _ => {}
        }
        self.leader = leader.or(self.leader);
    }
}

impl Row {
    fn silent(node_id: i32, running: bool, ended: Option<String>) -> Row {
        Row {
            node_id,
            role: if running { "silent" } else { "down" }.to_owned(),
            epoch: None,
            leader_id: None,
            log_end_offset: None,
            high_watermark: None,
            lag: None,
            leaderless_ms: None,
            ended,
        }
    }

    fn fill(&mut self, view: &DescribeReplicaResponse) {
        let known = |number: i64| (number >= 0).then_some(number);
        self.role.clone_from(&view.role);
        self.epoch = Some(view.epoch);
        self.leader_id = (view.leader_id >= 0).then_some(view.leader_id);
        self.log_end_offset = known(view.log_end_offset);
        self.high_watermark = known(view.high_watermark);
        self.leaderless_ms = known(view.leaderless_ms);
    }
}

impl Snapshot {
    /// For `--json`.
    pub(super) fn json(&self) -> Json<'_> {
        let (leader_id, leader_epoch) = self.leader.unwrap_or((-1, -1));
        Json {
            leader_id,
            leader_epoch,
            leaderless_ms: self.leaderless.unwrap_or_default().as_millis(),
            max_leaderless_ms: self.max_leaderless.as_millis(),
            nodes: &self.nodes,
        }
    }

    /// For a log: all nodes in one line.
    pub(super) fn line(&self) -> String {
        let mut words: Vec<String> =
            self.nodes.iter().map(|row| format!("node{}={}", row.node_id, row.summary())).collect();
        if let Some(since) = self.leaderless {
            words.push(format!("leaderless={:.1}s", since.as_secs_f64()));
        }
        words.join(" ")
    }
}

impl Row {
    fn summary(&self) -> String {
        let number = |n: Option<i64>| n.map_or_else(|| "?".to_owned(), |n| n.to_string());
        match (&self.ended, self.epoch) {
            (Some(ended), _) => format!("{}({ended})", self.role),
            (None, None) => self.role.clone(),
            (None, Some(epoch)) => format!(
                "{}(epoch={epoch} end={} hw={} lag={})",
                self.role,
                number(self.log_end_offset),
                number(self.high_watermark),
                number(self.lag)
            ),
        }
    }
}
