//! A machine: its disk and clocks, which outlive processes, and the process that runs on it.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use quorate_core::config::Config;
use quorate_core::io::{CorrelationId, Event, Message, Output, RequestId, WriteId};
use quorate_core::message::ControlRecord;
use quorate_core::message::{KRaftVersion, LogRange, Received, Request, Response, Unreachable};
use quorate_core::voters::{Voter, VoterSet};
use quorate_core::{
    DirectoryId, Endpoint, Endpoints, Epoch, ListenerName, NodeId, Offset, Replica, ReplicaKey,
};
use quorate_driver::{LeaderToken, Leadership, Log, Proposals};
use quorate_rpc::ApiKey;
use quorate_rpc::records;
use quorate_rpc::server::{AnswerFormat, ServerContext};
use quorate_storage::mem_fs::MemFs;
use quorate_storage::{LOG_DIR, LogReader, Options, RollLimits, Store, StoreWrite, checkpoint};
use quorate_wire::batch::encode_control;

use crate::clock::{Clock, Micros};
use crate::disk::SimFs;
use crate::plan::{Generation, Plan};

pub(crate) const CLUSTER: &str = "QuorateSimulatedClustA";
const DIR: &str = "/disk/meta";
const FIRST_PORT: u16 = 9001;

pub(crate) struct Machine<M> {
    pub(crate) disk: SimFs,
    pub(crate) clock: Clock,
    pub(crate) generation: Generation,
    pub(crate) directory: DirectoryId,
    /// Counts processes.
    pub(crate) boot: u64,
    pub(crate) process: Option<Process<M>>,
    pub(crate) paused_until: Micros,
    pub(crate) stuck_until: Micros,
    /// It accepts no connections until then.
    pub(crate) refuses_until: Micros,
    /// Its process ends in the middle of the next writes.
    pub(crate) doom: Option<Doom>,
    /// Its disk is damaged: what the next process finds may be less than was promised.
    pub(crate) is_rotten: bool,
    /// Its disk is gone for good, and nobody starts it again.
    pub(crate) is_lost: bool,
    /// A start is under way.
    pub(crate) is_starting: bool,
}

/// An end in the middle of writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doom {
    /// Unsynced writes may be lost with the power.
    pub(crate) power: bool,
    /// So many operations succeed.
    pub(crate) operations: u32,
    /// How long until it is started again.
    pub(crate) down: Micros,
}

/// What a process holds in memory.
pub(crate) struct Process<M> {
    pub(crate) replica: Replica,
    pub(crate) output: Output,
    /// What steps asked for and is not done yet.
    pub(crate) messages: Vec<Message>,
    pub(crate) events: Vec<Event>,
    pub(crate) log: Log,
    pub(crate) store: Store<SimFs>,
    pub(crate) reader: LogReader<SimFs>,
    pub(crate) context: ServerContext,
    /// The local time at its start.
    pub(crate) started: Micros,
    pub(crate) inbox: VecDeque<Inbound>,
    /// A wake-up is due.
    pub(crate) is_woken: bool,
    /// Only the newest timer counts.
    pub(crate) timer: u64,
    pub(crate) timer_at: Option<Micros>,
    pub(crate) replies: BTreeMap<RequestId, Reply>,
    pub(crate) last_request: u64,
    pub(crate) proposals: Proposals<u64>,
    pub(crate) committed: Offset,
    pub(crate) durable: WriteId,
    /// Submitted, and not taken by the commit loop.
    pub(crate) waiting: Vec<(WriteId, StoreWrite)>,
    /// Taken, and not done.
    pub(crate) queue: VecDeque<(WriteId, StoreWrite)>,
    pub(crate) is_committing: bool,
    pub(crate) store_failed: bool,
    pub(crate) state_machine: M,
    pub(crate) applied: Offset,
    pub(crate) leaders: VecDeque<(Offset, Leadership)>,
    pub(crate) token: Option<LeaderToken>,
    /// The last token, worth something or not.
    pub(crate) old_token: Option<LeaderToken>,
    pub(crate) is_stopping: bool,
    /// The state machine has met what cannot be read, and stopped.
    pub(crate) apply_failed: bool,
    /// How long until it is started again, if it stops in good order.
    pub(crate) down: Micros,
}

/// What has come in.
pub(crate) enum Inbound {
    Request {
        frame: Bytes,
        from: Asker,
    },
    Answer {
        id: CorrelationId,
        response: Result<Response<Received>, Unreachable>,
    },
    Durable(WriteId),
    StoreFailed,
    Propose {
        proposal: u64,
        token: LeaderToken,
        values: Vec<Bytes>,
    },
    Resign(Epoch),
    Shutdown,
    Cold {
        range: LogRange,
        response: Response<LogRange>,
        reply: Reply,
        /// None if they cannot be read.
        records: Option<Vec<Bytes>>,
    },
}

/// Who waits for an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker {
    pub(crate) node: usize,
    pub(crate) boot: u64,
    pub(crate) id: CorrelationId,
    pub(crate) api: ApiKey,
    pub(crate) version: i16,
}

/// How to answer.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) to: Asker,
    pub(crate) format: AnswerFormat,
    pub(crate) request: Request,
}

pub(crate) fn node_id(index: usize) -> NodeId {
    NodeId(i32::try_from(index + 1).unwrap_or(i32::MAX))
}

pub(crate) fn listener() -> ListenerName {
    ListenerName::new("CONTROLLER")
}

fn endpoint(index: usize) -> Endpoint {
    let port = FIRST_PORT.saturating_add(u16::try_from(index).unwrap_or(u16::MAX));
    Endpoint::new(&format!("h{}", index + 1), port)
}

/// The node that listens there.
pub(crate) fn index_of(endpoint: &Endpoint) -> usize {
    usize::from(endpoint.port.saturating_sub(FIRST_PORT))
}

fn endpoints(index: usize) -> Endpoints {
    Endpoints::from([(listener(), endpoint(index))])
}

/// The id of a node's n-th directory, a letter as in the core's scripts: from A on, from N on for the second one.
pub(crate) fn directory_id(index: usize, n: u8) -> DirectoryId {
    let letter = b'A' + 13 * n + u8::try_from(index % 13).unwrap_or(0);
    DirectoryId::from_bytes([letter; 16]).expect("it is not zero")
}

/// The voters that the cluster begins with.
pub(crate) fn voters(plan: &Plan) -> VoterSet {
    VoterSet::new((0..plan.voters).map(|index| {
        let level = KRaftVersion(i16::from(plan.is_dynamic));
        let voter = Voter {
            directory: plan.is_dynamic.then(|| directory_id(index, 0)),
            endpoints: endpoints(index),
            kraft_versions: (KRaftVersion(0), level),
        };
        (node_id(index), voter)
    }))
    .expect("ids differ")
}

pub(crate) fn config(plan: &Plan, index: usize, directory: DirectoryId, seed: u64) -> Config {
    let mut config = Config::new(node_id(index), directory, listener());
    config.endpoints = endpoints(index);
    if plan.is_dynamic {
        config.bootstrap_servers = (0..plan.voters).map(endpoint).collect();
    } else {
        config.static_voters = voters(plan);
    }
    if !plan.hints.get(index).copied().unwrap_or(true) {
        config.hint_delay = Duration::ZERO;
    }
    let timeouts = &plan.timeouts;
    config.election_timeout = timeouts.election;
    config.election_backoff_max = timeouts.election_backoff_max;
    config.fetch_timeout = timeouts.fetch;
    config.request_timeout = timeouts.request;
    config.retry_backoff = timeouts.retry_backoff;
    config.fetch_max_wait = timeouts.fetch_max_wait;
    config.linger = timeouts.linger;
    config.high_watermark_linger = timeouts.high_watermark_linger;
    config.fetch_max_bytes = plan.disk.fetch_max_bytes;
    config.max_batch_bytes = plan.disk.max_batch_bytes;
    config.max_uncommitted_bytes = plan.disk.max_uncommitted_bytes;
    config.seed = seed;
    config
}

pub(crate) fn options(plan: &Plan, index: usize) -> Options {
    let limits = RollLimits { segment_bytes: plan.disk.segment_bytes, ..RollLimits::default() };
    Options { dir: PathBuf::from(DIR), node: node_id(index), limits }
}

pub(crate) fn log_dir() -> PathBuf {
    Path::new(DIR).join(LOG_DIR)
}

/// A formatted disk. Whoever is no voter from the start knows no voters.
pub(crate) fn formatted(
    plan: &Plan,
    index: usize,
    directory: DirectoryId,
    voters: &VoterSet,
) -> SimFs {
    let log_dir = log_dir();
    let fs = MemFs::new([Path::new(DIR), &log_dir]);
    let meta = format!(
        "node.id={}\ndirectory.id={directory}\nversion=1\ncluster.id={CLUSTER}\n",
        node_id(index)
    );
    fs.install(&Path::new(DIR).join("meta.properties"), meta.as_bytes());
    if plan.is_dynamic {
        let mut first = vec![
            ControlRecord::SnapshotHeader { last_contained_log_timestamp: 0 },
            ControlRecord::KRaftVersion(KRaftVersion(1)),
        ];
        if !voters.is_empty() {
            first.push(ControlRecord::Voters(voters.clone()));
        }
        let first: Vec<_> = first.iter().map(records::control_out).collect();
        let last = [records::control_out(&ControlRecord::SnapshotFooter)];
        let footer_at = i64::try_from(first.len()).unwrap_or(0);
        let batches = [
            encode_control(0, 0, 0, &first).expect("short names"),
            encode_control(footer_at, 0, 0, &last).expect("no names"),
        ];
        checkpoint::write(&fs, &log_dir, checkpoint::BOOTSTRAP, &batches).expect("a good disk");
    }
    SimFs::new(fs)
}

impl<M> Machine<M> {
    pub(crate) fn is_up(&self, boot: u64) -> bool {
        self.process.is_some() && self.boot == boot
    }

    pub(crate) fn key(&self, index: usize) -> ReplicaKey {
        ReplicaKey::new(node_id(index), Some(self.directory))
    }
}
