//! `quorate run`: a controller, from its configuration until it is told to stop.

mod drive;
mod logging;
mod measure;
mod outcomes;
mod workload;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quorate_core::DirectoryId;
use quorate_network::{Limits, ListenerConfig};
use quorate_node::{
    CommittedBatch, Directory, Leadership, Node, NodeConfig, StartError, StateMachine, StopReason,
};
use quorate_storage::{Options, RollLimits};
use quorate_wire::metadata::MetadataRecord;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::{info, warn};

use self::workload::Workload;
use crate::commands::format;
use crate::config::Config;
use crate::failure::{Exit, Failure};
use crate::features::{LATEST_PRODUCTION, METADATA_VERSION};
use crate::uuid;

/// Runs a controller until SIGTERM or SIGINT.
///
/// The directory must have been formatted, by `quorate format` or by Kafka. The log goes to stderr; a node
/// that becomes leader logs a line with `leader epoch=N`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  quorate run --config controller.properties
  quorate run -c controller.properties --log debug --log-format json
  quorate run -c controller.properties --workload inflight=64,size=256,seconds=3,warmup=1

Exit codes:
  0  stopped by SIGTERM or SIGINT, after it handed its leadership over
  1  wrong arguments or configuration, or a listener's address is in use
  2  the directory was refused: not formatted, another node's, in use by a process, or damaged beyond use
  3  a write or a sync failed while it ran: it promised nothing from then on; look at the disk
  4  an internal error: please report it")]
pub(crate) struct Args {
    /// The node's configuration: a controller.properties of Kafka.
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
    /// What to log: error, warn, info, debug, trace, or filters such as info,quorate_node=debug.
    #[arg(long, value_name = "LEVEL", env = "QUORATE_LOG", default_value = "info")]
    log: String,
    /// How log lines look.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    log_format: logging::Format,
    /// For tests: while this node leads it appends records itself, inflight=N,size=BYTES,rate=PER-SECOND,
    /// and prints `ack ID OFFSET EPOCH`, `notappended ID REASON` or `unknown ID OFFSET EPOCH` of each.
    ///
    /// With seconds=S it measures instead, once: it appends for warmup=S, prints `begins`, goes on for S seconds, prints
    /// `ends`, and then a line of JSON: records committed, latencies in microseconds, syncs, and what failed. Without a
    /// rate, inflight=N records are always on their way (1 unless told), and as many as have committed go into one
    /// append of at most batch=N records (a MiB of them unless told). At a rate a record's latency counts from when it
    /// was due, and inflight=N (100,000 unless told) is only a bound.
    #[arg(long, value_name = "SPEC")]
    workload: Option<Workload>,
    /// Die when this process is gone; for `quorate dev`.
    #[arg(long, value_name = "PID", hide = true)]
    die_with_parent: Option<i32>,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if let Some(parent) = args.die_with_parent {
        die_with(parent)?;
    }
    let config = Config::load(&args.config)?;
    config.check_can_run()?;
    logging::start(&args.log, args.log_format)?;
    for warning in &config.warnings {
        warn!("{warning}");
    }
    // One thread: all the work is done by the node's own. Signals are caught before the node starts, so
    // that it never dies half-way.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| internal(format!("cannot start the runtime: {error}")))?;
    let stopped = runtime.block_on(serve(args, &config))?;
    match stopped {
        StopReason::ShutDown => {
            info!("stopped");
            Ok(())
        }
        StopReason::StorageFailed(error) => Err(Failure::new(error.to_string())
            .exit(Exit::Storage)
            .next("the node promised nothing from then on; repair the disk, then start it again")),
        StopReason::Died => Err(internal("the node died; the log has the reason".to_owned())),
    }
}

async fn serve(args: &Args, config: &Config) -> Result<StopReason, Failure> {
    let catch =
        |kind| signal(kind).map_err(|error| internal(format!("cannot catch signals: {error}")));
    let mut stop_signals = (catch(SignalKind::terminate())?, catch(SignalKind::interrupt())?);
    let options = Options {
        dir: config.metadata_dir.clone(),
        node: config.node,
        limits: RollLimits {
            segment_bytes: u64::from(config.storage.segment_bytes),
            segment_ms: u64::try_from(config.storage.segment_age.as_millis()).unwrap_or(u64::MAX),
            preallocate_bytes: u64::from(config.storage.preallocate_bytes),
        },
    };
    let directory = Directory::open(disk(), options)
        .map_err(|error| Failure::new(error.to_string()).exit(Exit::Directory))?;
    for note in directory.notes() {
        warn!("{note}");
    }
    let node_config = node_config(config, directory.id())?;
    info!(node = config.node.0, directory = %directory.id(), cluster = directory.cluster_id(), "starting");
    let state_machine = Ignorant::new();
    let has_metadata_version = state_machine.has_metadata_version.clone();
    let node = Node::start(directory, node_config, state_machine).map_err(start_failure)?;
    info!(node = config.node.0, "started");
    let work = args.workload.map(|workload| {
        // Not one that an older node of the cluster does not know: it would stop at it.
        let level = format::formatted_metadata_version(&config.metadata_dir)
            .map_err(|error| Failure::new(error.to_string()).exit(Exit::Directory))?;
        let metadata_version = drive::FirstRecord {
            level: level.unwrap_or_else(|| LATEST_PRODUCTION.level()),
            is_there: has_metadata_version,
        };
        drive::start(workload, config.node, node.handle().clone(), metadata_version)
    });
    let work = work.transpose()?;
    let reason = tokio::select! {
        name = first(&mut stop_signals) => {
            info!(signal = name, "stopping");
            node.shutdown().await
        }
        reason = node.stopped() => reason,
    };
    if let Some(work) = work {
        work.finish().await;
    }
    Ok(reason)
}

async fn first(signals: &mut (Signal, Signal)) -> &'static str {
    tokio::select! {
        _ = signals.0.recv() => "SIGTERM",
        _ = signals.1.recv() => "SIGINT",
    }
}

/// The disk of this machine.
#[cfg(not(feature = "power-cut"))]
fn disk() -> quorate_storage::RealFs {
    quorate_storage::RealFs
}

/// A disk that loses at SIGKILL what was not synced: a test build.
#[cfg(feature = "power-cut")]
fn disk() -> quorate_storage::power_cut::PowerCutFs {
    warn!("this is a test build: what is not synced is lost when this process is killed");
    quorate_storage::power_cut::PowerCutFs::from_env()
}

/// A state machine that keeps nothing but whether the log has a metadata.version.
struct Ignorant {
    has_metadata_version: Arc<AtomicBool>,
}

impl Ignorant {
    fn new() -> Ignorant {
        Ignorant { has_metadata_version: Arc::default() }
    }
}

impl StateMachine for Ignorant {
    fn apply(&mut self, batch: &CommittedBatch) {
        if self.has_metadata_version.load(Ordering::Acquire) {
            return;
        }
        let is_metadata_version = |value: &[u8]| {
            let decoded = MetadataRecord::decode(bytes::Bytes::copy_from_slice(value));
            matches!(decoded, Ok((MetadataRecord::FeatureLevel(record), _)) if record.name == METADATA_VERSION)
        };
        if batch.records().any(|(_, value)| is_metadata_version(value)) {
            self.has_metadata_version.store(true, Ordering::Release);
        }
    }

    /// The node logs it.
    fn leader_changed(&mut self, _: &Leadership) {}
}

/// Kafka bounds neither connections nor the bytes of requests unless told to; these hold where it is not.
const MAX_CONNECTIONS: usize = 1024;
const MAX_REQUEST_BYTES: usize = 128 << 20;
const MAX_ANSWER_BYTES: usize = 256 << 20;
/// How long a frame may take from its first byte to its last.
const PATIENCE: Duration = Duration::from_secs(10);
/// Connections that are to stay open for ever stay so long.
const NEVER: Duration = Duration::from_secs(365 * 24 * 3600);

fn node_config(config: &Config, directory: DirectoryId) -> Result<NodeConfig, Failure> {
    let seed = u64::from_be_bytes(uuid::random_bytes()?);
    let network = &config.network;
    let bytes = |bytes: u32| usize::try_from(bytes).unwrap_or(usize::MAX);
    // Differs from Kafka: its default is no bound at all.
    let connections = |limit: u32| match i32::try_from(limit) {
        Ok(i32::MAX) | Err(_) => MAX_CONNECTIONS,
        Ok(_) => bytes(limit),
    };
    let request_max_bytes = bytes(network.request_max_bytes);
    let listeners = config.listeners.bind.iter().map(|listener| ListenerConfig {
        name: listener.name.clone(),
        host: listener.host.clone(),
        port: listener.port,
        idle: network.max_idle.map_or(NEVER, |idle| idle.min(NEVER)),
        patience: PATIENCE,
        request_max_bytes,
    });
    let listener = config.default_listener().as_str();
    Ok(NodeConfig {
        core: config.core(directory, seed),
        listeners: listeners.collect(),
        limits: Limits::new(
            connections(network.max_connections),
            connections(network.max_connections_per_ip),
            MAX_REQUEST_BYTES.max(request_max_bytes),
            MAX_ANSWER_BYTES,
        ),
        ..NodeConfig::new(directory, config.node.0, listener, "", 0)
    })
}

fn start_failure(error: StartError) -> Failure {
    use quorate_core::StartError as Replica;
    let exit = match &error {
        StartError::Listen { .. } => Exit::Refused,
        StartError::Replica(Replica::NoPeers | Replica::NotAStaticVoter(_)) => Exit::Refused,
        StartError::Replica(_) | StartError::OtherNode { .. } | StartError::Storage(_) => {
            Exit::Directory
        }
        StartError::Thread(_) => Exit::Internal,
    };
    Failure::new(error.to_string()).exit(exit)
}

fn internal(message: String) -> Failure {
    Failure::new(message).exit(Exit::Internal)
}

/// Has the kernel kill this process when its parent is gone; at once if it is gone already.
fn die_with(parent: i32) -> Result<(), Failure> {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| internal(format!("cannot bind this process to its parent: {error}")))?;
    let now = getppid().map(|pid| pid.as_raw_nonzero().get());
    match now == Some(parent) {
        true => Ok(()),
        false => Err(internal(format!("process {parent}, which started this node, is gone"))),
    }
}
