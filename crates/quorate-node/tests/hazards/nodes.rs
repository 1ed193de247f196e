//! Nodes beside fake peers, all voters static, on 127.0.0.1.

use std::net::TcpListener;
use std::time::Duration;

use bytes::Bytes;
use quorate_core::message::{KRaftVersion, ReplicaDescription};
use quorate_core::voters::{Voter, VoterSet};
use quorate_core::{Endpoint, Endpoints, ListenerName, NodeId, Offset};
use quorate_node::{
    CommittedBatch, Directory, LeaderToken, Leadership, Node, NodeConfig, Outcome, StateMachine,
    random_directory_id,
};
use quorate_storage::meta_properties::{self, MetaProperties};
use quorate_storage::{Options, RealFs, RollLimits};

use crate::fake::CLUSTER;

/// Keeps nothing.
struct Ignorant;

impl StateMachine for Ignorant {
    fn apply(&mut self, _: &CommittedBatch) {}

    fn leader_changed(&mut self, _: &Leadership) {}
}

/// A running node.
pub(crate) struct Running {
    pub(crate) node: Node,
    pub(crate) port: u16,
    _dir: tempfile::TempDir,
}

pub(crate) fn listener() -> ListenerName {
    ListenerName::new("CONTROLLER")
}

pub(crate) fn endpoints(port: u16) -> Endpoints {
    Endpoints::from([(listener(), Endpoint::new("127.0.0.1", port))])
}

pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Starts a node among these voters, `(id, port)`, with its own port among them.
pub(crate) fn start(
    id: i32,
    voters: &[(i32, u16)],
    election: Duration,
    fetch: Duration,
) -> Running {
    start_with(id, voters, |config| {
        config.election_timeout = election;
        config.fetch_timeout = fetch;
    })
}

/// The same, with what else this changes.
pub(crate) fn start_with(
    id: i32,
    voters: &[(i32, u16)],
    change: impl FnOnce(&mut quorate_core::config::Config),
) -> Running {
    let dir = tempfile::tempdir().unwrap();
    let meta = MetaProperties {
        cluster: CLUSTER.to_owned(),
        node: NodeId(id),
        directory: Some(random_directory_id().unwrap()),
    };
    meta_properties::write(&RealFs, dir.path(), &meta, 0).unwrap();
    let limits = RollLimits { segment_bytes: 1 << 20, ..RollLimits::default() };
    let options = Options { dir: dir.path().to_owned(), node: NodeId(id), limits };
    let directory = Directory::open(RealFs, options).unwrap();
    let port = voters.iter().find(|(voter, _)| *voter == id).expect("a voter").1;
    let mut config = NodeConfig::new(directory.id(), id, "CONTROLLER", "127.0.0.1", port);
    let set = voters.iter().map(|(id, port)| {
        let version = KRaftVersion(0);
        let kraft_versions = (version, version);
        (NodeId(*id), Voter { directory: None, endpoints: endpoints(*port), kraft_versions })
    });
    config.core.static_voters = VoterSet::new(set).unwrap();
    config.core.request_timeout = Duration::from_millis(500);
    config.core.seed = u64::try_from(id).unwrap();
    change(&mut config.core);
    let node = Node::start(directory, config, Ignorant).unwrap();
    Running { node, port, _dir: dir }
}

impl Running {
    /// What the node believes; that it answers shows that it runs.
    pub(crate) async fn describe(&self) -> ReplicaDescription {
        self.node.handle().describe().await.expect("the node runs")
    }

    /// Waits until what it believes is as wanted.
    pub(crate) async fn wait_for(&self, what: &str, wanted: impl Fn(&ReplicaDescription) -> bool) {
        for _ in 0..1000 {
            if wanted(&self.describe().await) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{what}: not within 10 s; {:#?}", self.describe().await);
    }
}

/// Two nodes, 1 and 2, and a fake voter 3.
pub(crate) struct Pair {
    pub(crate) nodes: [Running; 2],
}

impl Pair {
    pub(crate) fn start(fake: u16) -> Pair {
        Pair::with_fetch_timeout(fake, Duration::from_secs(1))
    }

    /// The fetch timeout is how long a leader may be kept from its followers.
    pub(crate) fn with_fetch_timeout(fake: u16, fetch: Duration) -> Pair {
        let voters = [(1, free_port()), (2, free_port()), (3, fake)];
        let start = |id| start(id, &voters, Duration::from_millis(200), fetch);
        Pair { nodes: [start(1), start(2)] }
    }

    /// Waits for one of them to lead.
    pub(crate) async fn leader(&self) -> (&Running, LeaderToken) {
        for _ in 0..2000 {
            for running in &self.nodes {
                let token = running.node.handle().leadership().borrow().token.clone();
                if let Some(token) = token {
                    return (running, token);
                }
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("nobody leads");
    }

    /// Appends a record through whoever leads, until one is committed.
    pub(crate) async fn commit(&self) -> Offset {
        for _ in 0..2000 {
            let (leader, token) = self.leader().await;
            let record = vec![Bytes::from_static(b"a record")];
            if let Outcome::Committed { offset, .. } =
                leader.node.handle().append(&token, record).await
            {
                return offset;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("nothing is committed");
    }
}

/// Runs a test that may take a minute or two on a busy machine.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        tokio::time::timeout(Duration::from_secs(180), test).await.expect("in three minutes")
    })
}
