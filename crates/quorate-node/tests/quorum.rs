//! Three nodes in one process, on real sockets and real directories.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use quorate_core::voters::{Voter, VoterSet};
use quorate_core::{Endpoint, Endpoints, ListenerName, NodeId, Offset};
use quorate_node::{
    CommittedBatch, Directory, Leadership, Node, NodeConfig, NotAppended, Outcome, StateMachine,
    StopReason, random_directory_id,
};
use quorate_storage::meta_properties::{self, MetaProperties};
use quorate_storage::{Options, RealFs, RollLimits};

/// An offset, and the value of the record there.
type Record = (Offset, Vec<u8>);

/// Keeps what was applied.
#[derive(Clone, Default)]
struct Applied(Arc<Mutex<Vec<Record>>>);

impl StateMachine for Applied {
    fn apply(&mut self, batch: &CommittedBatch) {
        let mut applied = self.0.lock().unwrap();
        applied.extend(batch.records().map(|(offset, value)| (offset, value.to_vec())));
    }

    fn leader_changed(&mut self, _: &Leadership) {}
}

struct Cluster {
    dir: tempfile::TempDir,
    ports: Vec<u16>,
    /// The first so many nodes.
    voters: usize,
    /// Of each node; see `NodeConfig`.
    tail_bytes: usize,
    nodes: Vec<Option<(Node, Applied)>>,
}

/// Ports on which nothing listens, below those that the kernel gives to outgoing connections: a node that comes back finds
/// its own free.
fn free_ports(count: usize) -> Vec<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let base = 12_000 + u16::try_from(std::process::id() % 1000).unwrap() * 20;
    let candidates = std::iter::repeat_with(|| base + NEXT.fetch_add(1, Ordering::Relaxed));
    candidates.filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).take(count).collect()
}

impl Cluster {
    fn start(count: usize) -> Cluster {
        let mut cluster = Cluster::format(count, count);
        for id in 1..=count {
            cluster.start_node(id);
        }
        cluster
    }

    fn format(count: usize, voters: usize) -> Cluster {
        let dir = tempfile::tempdir().unwrap();
        for id in 1..=count {
            let dir = dir.path().join(id.to_string());
            std::fs::create_dir(&dir).unwrap();
            let meta = MetaProperties {
                cluster: "test".to_owned(),
                node: NodeId(i32::try_from(id).unwrap()),
                directory: Some(random_directory_id().unwrap()),
            };
            meta_properties::write(&RealFs, &dir, &meta, 0).unwrap();
        }
        let nodes = (0..count).map(|_| None).collect();
        Cluster { dir, ports: free_ports(count), voters, tail_bytes: 16 << 20, nodes }
    }

    fn path(&self, id: usize) -> std::path::PathBuf {
        self.dir.path().join(id.to_string())
    }

    fn start_node(&mut self, id: usize) {
        let applied = Applied::default();
        let node = start_node(self, id, applied.clone());
        self.nodes[id - 1] = Some((node, applied));
    }

    fn node(&self, id: usize) -> &Node {
        &self.nodes[id - 1].as_ref().unwrap().0
    }

    /// Waits for a leader that may append.
    async fn leader(&self) -> (usize, quorate_node::LeaderToken) {
        loop {
            for (i, node) in self.nodes.iter().enumerate() {
                if let Some((node, _)) = node
                    && let Some(token) = node.handle().leadership().borrow().token.clone()
                {
                    return (i + 1, token);
                }
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

fn start_node(cluster: &Cluster, id: usize, applied: Applied) -> Node {
    let node = i32::try_from(id).unwrap();
    let ports = &cluster.ports;
    let options = Options {
        dir: cluster.path(id),
        node: NodeId(node),
        limits: RollLimits { segment_bytes: 64 << 10, ..RollLimits::default() },
    };
    let directory = Directory::open(RealFs, options).unwrap();
    let mut config =
        NodeConfig::new(directory.id(), node, "CONTROLLER", "127.0.0.1", ports[id - 1]);
    let name = ListenerName::new("CONTROLLER");
    config.tail_bytes = cluster.tail_bytes;
    let voters = ports.iter().take(cluster.voters).zip(1..).map(|(port, id)| {
        let endpoints = Endpoints::from([(name.clone(), Endpoint::new("127.0.0.1", *port))]);
        let version = quorate_core::message::KRaftVersion(0);
        (NodeId(id), Voter { directory: None, endpoints, kraft_versions: (version, version) })
    });
    if id <= cluster.voters {
        config.core.static_voters = VoterSet::new(voters).unwrap();
    } else {
        config.core.bootstrap_servers = vec![Endpoint::new("127.0.0.1", ports[0])];
    }
    config.core.election_timeout = Duration::from_millis(200);
    config.core.fetch_timeout = Duration::from_millis(400);
    config.core.seed = u64::try_from(id).unwrap();
    Node::start(directory, config, applied).unwrap()
}

fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        tokio::time::timeout(Duration::from_secs(60), future).await.expect("in a minute")
    })
}

async fn wait_for(what: impl Fn() -> bool) {
    while !what() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn record(i: usize) -> Bytes {
    Bytes::from(format!("record {i:06} {}", "x".repeat(100)))
}

#[test]
fn appends_are_committed_and_applied_everywhere_in_order() {
    run(async {
        let mut cluster = Cluster::start(3);
        let (leader, token) = cluster.leader().await;
        // Enough for several segments, which are 64 KiB here.
        let pending: Vec<_> = (0..2000)
            .map(|i| {
                cluster.node(leader).handle().append(&token, vec![record(2 * i), record(2 * i + 1)])
            })
            .collect();
        let mut last = Offset(-1);
        for append in pending {
            let Outcome::Committed { offset, epoch } = append.await else {
                panic!("not committed")
            };
            assert!(offset > last && epoch == token.epoch());
            last = offset;
        }
        for id in 1..=3 {
            let applied = cluster.nodes[id - 1].as_ref().unwrap().1.clone();
            wait_for(|| applied.0.lock().unwrap().len() == 4000).await;
            let applied = applied.0.lock().unwrap();
            assert!((0..4000).all(|i| applied[i].1 == record(i)), "node {id} applied all in order");
        }
        // A node that was away reads from its own disk, and from its leader's what the leader's memory has no more.
        let follower = (1..=3).find(|id| *id != leader).unwrap();
        assert!(matches!(cluster.node(follower).shutdown().await, StopReason::ShutDown));
        cluster.start_node(follower);
        let applied = cluster.nodes[follower - 1].as_ref().unwrap().1.clone();
        wait_for(|| applied.0.lock().unwrap().len() == 4000).await;
        assert!((0..4000).all(|i| applied.0.lock().unwrap()[i].1 == record(i)));
    });
}

#[test]
fn a_clean_shutdown_of_the_leader_hands_over() {
    run(async {
        let mut cluster = Cluster::start(3);
        let (leader, token) = cluster.leader().await;
        let committed = cluster.node(leader).handle().append(&token, vec![record(1)]).await;
        assert!(matches!(committed, Outcome::Committed { .. }));
        let (node, _) = cluster.nodes[leader - 1].take().unwrap();
        assert!(matches!(node.shutdown().await, StopReason::ShutDown));
        let refused = node.handle().append(&token, vec![record(2)]).await;
        assert_eq!(refused, Outcome::NotAppended(NotAppended::Stopped));
        let (next, next_token) = cluster.leader().await;
        assert!(
            next != leader && next_token.epoch() == quorate_core::Epoch(token.epoch().0 + 1),
            "in one epoch"
        );
        let refused = cluster.node(next).handle().append(&token, vec![record(2)]).await;
        assert!(
            matches!(refused, Outcome::NotAppended(NotAppended::NotLeader { .. })),
            "an old token is worth nothing"
        );
        cluster.start_node(leader);
        let committed = cluster.node(next).handle().append(&next_token, vec![record(3)]).await;
        assert!(matches!(committed, Outcome::Committed { .. }));
        let applied = cluster.nodes[leader - 1].as_ref().unwrap().1.clone();
        wait_for(|| applied.0.lock().unwrap().len() == 2).await;
    });
}

#[test]
fn a_single_voter_leads_and_keeps_what_it_committed() {
    run(async {
        let mut cluster = Cluster::start(1);
        for round in 0..3usize {
            let (_, token) = cluster.leader().await;
            let outcome = cluster.node(1).handle().append(&token, vec![record(round)]).await;
            assert!(matches!(outcome, Outcome::Committed { .. }));
            let applied = cluster.nodes[0].as_ref().unwrap().1.clone();
            wait_for(|| applied.0.lock().unwrap().len() == round + 1).await;
            let (node, _) = cluster.nodes[0].take().unwrap();
            assert!(matches!(node.shutdown().await, StopReason::ShutDown));
            cluster.start_node(1);
        }
    });
}

#[test]
fn observers_get_what_only_the_disk_has_and_what_comes_next() {
    const RECORDS: usize = 3000;
    run(async {
        let mut cluster = Cluster::format(5, 1);
        // What is durable is in no node's memory any more.
        cluster.tail_bytes = 0;
        cluster.start_node(1);
        cluster.start_node(2);
        let (_, token) = cluster.leader().await;
        for i in 0..RECORDS {
            if i == RECORDS / 2 {
                // These begin with the first segment, while the leader is busy.
                (3..=5).for_each(|id| cluster.start_node(id));
            }
            let outcome = cluster.node(1).handle().append(&token, vec![record(i)]).await;
            assert!(matches!(outcome, Outcome::Committed { .. }), "{i}: {outcome:?}");
        }
        for id in 2..=5 {
            let applied = cluster.nodes[id - 1].as_ref().unwrap().1.clone();
            wait_for(|| applied.0.lock().unwrap().len() == RECORDS).await;
            let applied = applied.0.lock().unwrap();
            assert!((0..RECORDS).all(|i| applied[i].1 == record(i)), "node {id} has all in order");
        }
    });
}
