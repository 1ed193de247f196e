//! Nodes on disks in memory: what memory has no more is read from disk, by followers and state machines; a disk that
//! fails ends its node, and nothing that was promised is lost.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use quorate_core::voters::{Voter, VoterSet};
use quorate_core::{Endpoint, Endpoints, Epoch, ListenerName, NodeId, Offset};
use quorate_node::{
    CommittedBatch, Directory, LeaderToken, Leadership, Node, NodeConfig, NotAppended, Outcome,
    StateMachine, StopReason, random_directory_id,
};
use quorate_storage::mem_fs::{Fault, MemFs, OperationKind};
use quorate_storage::meta_properties::{self, MetaProperties};
use quorate_storage::{LOG_DIR, Options, RollLimits, read_log};

const DIR: &str = "/disk";

/// Leaders here resign, or have no peers; that a busy machine is slow should not make them lose their office.
const FETCH_TIMEOUT: Duration = Duration::from_secs(8);

/// What a state machine was told, in order.
#[derive(Clone, Debug, PartialEq)]
enum Told {
    Record { offset: Offset, epoch: Epoch, value: Bytes },
    Leads(Epoch),
}

/// Keeps what it is told, and takes its time.
#[derive(Clone, Default)]
struct Machine {
    told: Arc<Mutex<Vec<Told>>>,
    /// How long a batch takes.
    delay: Duration,
    /// Nothing is applied before its sender is gone. Locked by whoever waits for that.
    gate: Option<Arc<Mutex<Receiver<()>>>>,
}

impl StateMachine for Machine {
    fn apply(&mut self, batch: &CommittedBatch) {
        if let Some(gate) = self.gate.take() {
            let _ = gate.lock().unwrap().recv();
        }
        std::thread::sleep(self.delay);
        let epoch = batch.epoch();
        let records = batch.records().map(|(offset, value)| {
            let value = Bytes::copy_from_slice(value);
            Told::Record { offset, epoch, value }
        });
        self.told.lock().unwrap().extend(records);
    }

    fn leader_changed(&mut self, leadership: &Leadership) {
        if let Some(token) = &leadership.token {
            self.told.lock().unwrap().push(Told::Leads(token.epoch()));
        }
    }
}

impl Machine {
    fn values(&self) -> Vec<Bytes> {
        let told = self.told.lock().unwrap();
        told.iter()
            .filter_map(|told| match told {
                Told::Record { value, .. } => Some(value.clone()),
                Told::Leads(_) => None,
            })
            .collect()
    }

    /// Offsets ascend, and no record comes after this node was told that it leads a later epoch.
    fn assert_in_order(&self) {
        let (mut next, mut leads) = (Offset(0), Epoch(0));
        for told in self.told.lock().unwrap().iter() {
            match told {
                Told::Record { offset, epoch, .. } => {
                    assert!(*offset >= next, "{offset} after {next}");
                    assert!(*epoch >= leads, "{offset}@{epoch} after it was told to lead {leads}");
                    next = offset.plus(1);
                }
                Told::Leads(epoch) => {
                    assert!(*epoch > leads, "{epoch} after {leads}");
                    leads = *epoch;
                }
            }
        }
    }
}

struct Settings {
    tail_bytes: usize,
    segment_bytes: u64,
    delay: Duration,
}

const SETTINGS: Settings =
    Settings { tail_bytes: 16 << 20, segment_bytes: 64 << 10, delay: Duration::ZERO };

struct Member {
    fs: MemFs,
    node: Option<Node>,
    machine: Machine,
}

struct Cluster {
    settings: Settings,
    host: String,
    members: Vec<Member>,
}

/// An address of this machine that no other cluster has: nodes come back to the port that they had, which nobody may
/// take meanwhile.
fn new_host() -> String {
    static CLUSTERS: AtomicU16 = AtomicU16::new(1);
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let cluster = CLUSTERS.fetch_add(1, Ordering::Relaxed);
    assert!(cluster < 255, "few tests");
    format!("127.{}.{low}.{cluster}", high.max(1))
}

/// Below those that the system gives to whoever asks for any.
fn port(id: i32) -> u16 {
    9090 + u16::try_from(id).unwrap()
}

fn formatted(id: i32) -> MemFs {
    let fs = MemFs::new([DIR]);
    let directory = Some(random_directory_id().unwrap());
    let meta = MetaProperties { cluster: "test".to_owned(), node: NodeId(id), directory };
    meta_properties::write(&fs, Path::new(DIR), &meta, 0).unwrap();
    fs
}

impl Cluster {
    fn new(count: i32, settings: Settings) -> Cluster {
        let host = new_host();
        let members = (1..=count)
            .map(|id| Member { fs: formatted(id), node: None, machine: Machine::default() })
            .collect();
        Cluster { settings, host, members }
    }

    fn started(count: i32, settings: Settings) -> Cluster {
        let mut cluster = Cluster::new(count, settings);
        (0..cluster.members.len()).for_each(|i| cluster.start(i));
        cluster
    }

    fn start(&mut self, i: usize) {
        let machine = Machine { delay: self.settings.delay, ..Machine::default() };
        self.start_with(i, machine);
    }

    fn start_with(&mut self, i: usize, machine: Machine) {
        let id = i32::try_from(i + 1).unwrap();
        let limits =
            RollLimits { segment_bytes: self.settings.segment_bytes, ..RollLimits::default() };
        let options = Options { dir: PathBuf::from(DIR), node: NodeId(id), limits };
        let directory = Directory::open(self.members[i].fs.clone(), options).unwrap();
        let mut config = NodeConfig::new(directory.id(), id, "CONTROLLER", &self.host, port(id));
        let name = ListenerName::new("CONTROLLER");
        let voters = (1..).take(self.members.len()).map(|id| {
            let endpoints = Endpoints::from([(name.clone(), Endpoint::new(&self.host, port(id)))]);
            let version = quorate_core::message::KRaftVersion(0);
            (NodeId(id), Voter { directory: None, endpoints, kraft_versions: (version, version) })
        });
        config.core.static_voters = VoterSet::new(voters).unwrap();
        config.core.election_timeout = Duration::from_millis(200);
        config.core.fetch_timeout = FETCH_TIMEOUT;
        config.core.seed = u64::try_from(id).unwrap();
        config.tail_bytes = self.settings.tail_bytes;
        let node = Node::start(directory, config, machine.clone()).unwrap();
        let member = &mut self.members[i];
        (member.node, member.machine) = (Some(node), machine);
    }

    async fn stop(&mut self, i: usize) {
        let node = self.members[i].node.take().unwrap();
        assert!(matches!(node.shutdown().await, StopReason::ShutDown));
    }

    fn node(&self, i: usize) -> &Node {
        self.members[i].node.as_ref().unwrap()
    }

    async fn leader(&self) -> (usize, LeaderToken) {
        loop {
            for (i, member) in self.members.iter().enumerate() {
                if let Some(node) = &member.node
                    && let Some(token) = node.handle().leadership().borrow().token.clone()
                {
                    return (i, token);
                }
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Appends these values and waits until all are committed.
    async fn commit(&self, i: usize, token: &LeaderToken, values: &[Bytes]) {
        let append = |value: &Bytes| self.node(i).handle().append(token, vec![value.clone()]);
        let pending: Vec<_> = values.iter().map(append).collect();
        for outcome in pending {
            let outcome = outcome.await;
            if !matches!(outcome, Outcome::Committed { .. }) {
                let stopped = tokio::time::timeout(Duration::from_secs(2), self.node(i).stopped());
                panic!("node {}: {outcome:?}, stopped: {:?}", i + 1, stopped.await);
            }
        }
    }

    async fn applied(&self, i: usize, values: &[Bytes]) {
        let machine = &self.members[i].machine;
        while machine.values().len() < values.len() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(machine.values() == values, "node {} applied all, once, in order", i + 1);
        machine.assert_in_order();
    }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        tokio::time::timeout(Duration::from_secs(40), future).await.expect("in time")
    })
}

fn value(i: usize) -> Bytes {
    Bytes::from(format!("value {i:06} {}", "x".repeat(200)))
}

fn values(count: usize) -> Vec<Bytes> {
    (0..count).map(value).collect()
}

/// How often segments were read since the record began.
fn reads(fs: &MemFs) -> usize {
    let is_read = |op: &&quorate_storage::mem_fs::Operation| {
        op.kind == OperationKind::Read && op.path.extension().is_some_and(|e| e == "log")
    };
    fs.record().iter().filter(is_read).count()
}

fn log(fs: &MemFs) -> Vec<Bytes> {
    let found = read_log(fs, &Path::new(DIR).join(LOG_DIR)).unwrap();
    found.map(|found| found.unwrap().batch.bytes().clone()).collect()
}

#[test]
fn a_node_that_was_away_catches_up_from_its_leaders_disk() {
    run(async {
        let mut cluster = Cluster::started(3, Settings { tail_bytes: 0, ..SETTINGS });
        let (leader, token) = cluster.leader().await;
        let away = (leader + 1) % 3;
        cluster.stop(away).await;
        let values = values(600);
        for values in values.chunks(10) {
            cluster.commit(leader, &token, values).await;
        }
        cluster.applied(leader, &values).await;
        cluster.members[leader].fs.start_record();
        cluster.start(away);
        cluster.applied(away, &values).await;
        assert!(reads(&cluster.members[leader].fs) > 0, "memory had nothing of it");
        let away = log(&cluster.members[away].fs);
        assert!(log(&cluster.members[leader].fs).starts_with(&away) && away.len() >= 60);
    });
}

#[test]
fn a_slow_state_machine_reads_from_disk_what_it_fell_behind_on() {
    // Far more than waits in memory for it, whatever the log itself keeps there.
    let values: Vec<Bytes> = (0..28).map(|i| Bytes::from(vec![i; 1 << 20])).collect();
    for (tail_bytes, waiting) in [(1 << 20, 1), (1 << 20, 4), (64 << 20, 4)] {
        run(async {
            let settings = Settings { tail_bytes, segment_bytes: 8 << 20, ..SETTINGS };
            let mut cluster = Cluster::new(1, settings);
            let (open_gate, gate) = std::sync::mpsc::channel();
            let gate = Arc::new(Mutex::new(gate));
            cluster.start_with(0, Machine { gate: Some(gate.clone()), ..Machine::default() });
            let (_, token) = cluster.leader().await;
            let (before, after) = values.split_at(24);
            // The first holds the state machine, others wait in memory for it, if any; then come more at once than a
            // small memory keeps.
            for value in &before[..waiting] {
                cluster.commit(0, &token, std::slice::from_ref(value)).await;
                // Before it is held it could take more at once, all of which memory would have.
                while gate.try_lock().is_ok() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
            cluster.commit(0, &token, &before[waiting..14]).await;
            for value in &before[14..] {
                cluster.commit(0, &token, std::slice::from_ref(value)).await;
            }
            assert!(cluster.members[0].machine.values().is_empty());
            cluster.members[0].fs.start_record();
            drop(open_gate);
            cluster.commit(0, &token, after).await;
            cluster.applied(0, &values).await;
            assert!(
                reads(&cluster.members[0].fs) > 0,
                "more than waits in memory was read from disk"
            );
        });
    }
}

#[test]
fn a_state_machine_learns_that_it_leads_when_it_has_applied_all_that_is_older() {
    run(async {
        // A node that has to apply its whole log first.
        let slow = Settings { delay: Duration::from_millis(2), ..SETTINGS };
        let mut cluster = Cluster::started(1, slow);
        let (_, token) = cluster.leader().await;
        let values = values(100);
        for value in &values {
            cluster.commit(0, &token, std::slice::from_ref(value)).await;
        }
        cluster.stop(0).await;
        cluster.start(0);
        let (_, token) = cluster.leader().await;
        let told = cluster.members[0].machine.told.lock().unwrap().clone();
        assert_eq!(told.len(), values.len() + 1);
        assert_eq!(told.last(), Some(&Told::Leads(token.epoch())));
        cluster.applied(0, &values).await;
    });
    run(async {
        // A follower that is far behind when its leader goes.
        let slow = Settings { delay: Duration::from_millis(4), ..SETTINGS };
        let mut cluster = Cluster::started(3, slow);
        let (leader, token) = cluster.leader().await;
        let values = values(100);
        for value in &values {
            cluster.commit(leader, &token, std::slice::from_ref(value)).await;
        }
        cluster.stop(leader).await;
        let (next, next_token) = cluster.leader().await;
        assert!(next_token.epoch() > token.epoch());
        let told = cluster.members[next].machine.told.lock().unwrap().clone();
        assert_eq!(told.len(), values.len() + 1);
        assert_eq!(told.last(), Some(&Told::Leads(next_token.epoch())));
        cluster.applied(next, &values).await;
    });
}

/// What became of appends, one after another without waiting, until the node takes none any more.
async fn append_until_it_ends(node: &Node, token: &LeaderToken) -> Vec<Outcome> {
    let mut pending = Vec::new();
    for i in 0.. {
        pending.push(node.handle().append(token, vec![value(i)]));
        tokio::time::sleep(Duration::from_micros(200)).await;
        // The last ones find a node that has stopped.
        if tokio::time::timeout(Duration::ZERO, node.stopped()).await.is_ok() {
            break;
        }
    }
    let mut outcomes = Vec::new();
    for outcome in pending {
        outcomes.push(outcome.await);
    }
    outcomes
}

/// Those that are committed come first; returns their offsets.
fn committed(outcomes: &[Outcome], what: &str) -> Vec<Offset> {
    let mut offsets = Vec::new();
    for (i, outcome) in outcomes.iter().enumerate() {
        match outcome {
            Outcome::Committed { offset, .. } => {
                assert_eq!(offsets.len(), i, "{what}: committed after the failure: {outcome:?}");
                offsets.push(*offset);
            }
            Outcome::OutcomeUnknown { offset, .. } => assert!(offset.0 >= 0, "{what}: a place"),
            Outcome::NotAppended(_) => {}
        }
    }
    let resigned =
        |outcome: &Outcome| matches!(outcome, Outcome::NotAppended(NotAppended::NotLeader { .. }));
    assert!(outcomes.iter().any(resigned), "{what}: it resigned before it stopped");
    offsets
}

/// Whether a log in batches has these values at these offsets: those that were committed, by number.
fn assert_holds(log: Vec<Bytes>, offsets: &[Offset], what: &str) {
    let mut records = std::collections::BTreeMap::new();
    for bytes in log {
        for batch in quorate_wire::batch::batches(bytes).map(Result::unwrap) {
            if let Some(batch) = CommittedBatch::new(batch) {
                records.extend(batch.records().map(|(at, value)| (at, value.to_vec())));
            }
        }
    }
    for (i, offset) in offsets.iter().enumerate() {
        assert!(records.get(offset).is_some_and(|found| *found == value(i)), "{what}: {offset}");
    }
}

#[test]
fn a_failing_disk_ends_a_node_and_nothing_that_it_committed_is_lost() {
    use std::io::ErrorKind::StorageFull;
    let mut cases = Vec::new();
    for n in [0, 1, 2, 3, 10, 41] {
        for fault in [Fault::Once(StorageFull), Fault::Forever(StorageFull)] {
            cases.push(std::thread::spawn(move || {
                let what = format!("{fault:?} at {n}");
                run(async {
                    let cluster = Cluster::started(1, SETTINGS);
                    let (_, token) = cluster.leader().await;
                    let fs = &cluster.members[0].fs;
                    fs.fail_at(n, fault);
                    let outcomes = append_until_it_ends(cluster.node(0), &token).await;
                    let reason = cluster.node(0).stopped().await;
                    assert!(matches!(reason, StopReason::StorageFailed(_)), "{what}: {reason:?}");
                    let offsets = committed(&outcomes, &what);
                    for seed in 0..10 {
                        assert_holds(sound(&fs.crash(seed)), &offsets, &what);
                    }
                });
            }));
        }
    }
    for case in cases {
        case.join().unwrap();
    }
}

/// The log as the next start finds it.
fn sound(fs: &MemFs) -> Vec<Bytes> {
    let limits = RollLimits { segment_bytes: SETTINGS.segment_bytes, ..RollLimits::default() };
    let options = Options { dir: PathBuf::from(DIR), node: NodeId(1), limits };
    drop(Directory::open(fs.clone(), options).unwrap());
    log(fs)
}

#[test]
fn a_leader_whose_disk_fails_makes_way_and_the_others_have_what_it_committed() {
    run(async {
        let mut cluster = Cluster::started(3, SETTINGS);
        let (leader, token) = cluster.leader().await;
        cluster.members[leader].fs.fail_at(40, Fault::Forever(std::io::ErrorKind::Other));
        let outcomes = append_until_it_ends(cluster.node(leader), &token).await;
        let reason = cluster.node(leader).stopped().await;
        assert!(matches!(reason, StopReason::StorageFailed(_)), "{reason:?}");
        cluster.members[leader].node = None;
        let offsets = committed(&outcomes, "three voters");
        assert!(!offsets.is_empty(), "the disk worked at first");

        // Long before anybody would miss a leader that is silent.
        let next = tokio::time::timeout(FETCH_TIMEOUT / 2, cluster.leader()).await;
        let (next, next_token) = next.expect("it told the others");
        cluster.commit(next, &next_token, &[Bytes::from_static(b"it goes on")]).await;
        assert_holds(log(&cluster.members[next].fs), &offsets, "the next leader");
        cluster.members[next].machine.assert_in_order();
    });
}

#[test]
fn a_node_that_has_stopped_has_let_go_of_its_address() {
    run(async {
        let mut cluster = Cluster::started(1, SETTINGS);
        for _ in 0..20 {
            cluster.stop(0).await;
            let free = std::net::TcpListener::bind((cluster.host.as_str(), port(1)));
            assert!(free.is_ok(), "{free:?}");
            drop(free);
            cluster.start(0);
        }
    });
}
