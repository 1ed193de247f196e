//! A node's life: threads, runtime, start and stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use quorate_core::NodeId;
use quorate_core::io::Output;
use quorate_core::{Instant as CoreInstant, Replica};
use quorate_driver::{Directory, Leadership, Log, StateMachine};
use quorate_network::{Listener, Peers, PeersConfig, response_max_bytes};
use quorate_rpc::server::ServerContext;
use quorate_storage::fs::FileSystem;
use quorate_storage::{StorageError, StoreEvent, start as start_store};
use tokio::sync::{mpsc, watch};

use crate::apply::Applier;
use crate::cold;
use crate::config::NodeConfig;
use crate::driver::{Driver, State, StoreState};
use crate::handle::Handle;

/// A running node.
#[derive(Debug)]
pub struct Node {
    handle: Handle,
    stopped: watch::Receiver<Option<StopReason>>,
}

/// Why a node does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The directory is another node's.
    #[error("the directory belongs to node {directory}, the configuration to node {configured}")]
    OtherNode {
        /// `node.id` in `meta.properties`.
        directory: NodeId,
        /// `node.id` in the configuration.
        configured: NodeId,
    },
    /// Configuration and directory do not fit together.
    #[error(transparent)]
    Replica(#[from] quorate_core::StartError),
    /// A listener cannot be bound.
    #[error(
        "cannot listen on {listener} ({address}): {source}; free the port, or correct `listeners`"
    )]
    Listen {
        /// Its name.
        listener: String,
        /// `host:port`.
        address: String,
        /// Why.
        source: std::io::Error,
    },
    /// Storage does not start.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The operating system has no thread, or no runtime, to give.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
}

/// Why a node has stopped.
#[derive(Clone, Debug)]
pub enum StopReason {
    /// It was asked to.
    ShutDown,
    /// Its disk failed: nothing more was promised from then on.
    StorageFailed(StorageError),
    /// Its state machine or driver panicked.
    Died,
}

/// How many requests wait for the driver; more wait on their sockets.
const MAX_WAITING_REQUESTS: usize = 1024;

impl Node {
    /// Starts a node on a directory. It owns its threads; any runtime may hold the handle.
    ///
    /// # Errors
    /// See [`StartError`]; the directory is closed again then.
    pub fn start<F: FileSystem>(
        directory: Directory<F>,
        mut config: NodeConfig,
        state_machine: impl StateMachine,
    ) -> Result<Node, StartError> {
        if directory.node() != config.core.node {
            return Err(StartError::OtherNode {
                directory: directory.node(),
                configured: config.core.node,
            });
        }
        // One that is parked for each connection: none is answered early, which would ask again at once.
        let connections = config.limits.max_connections();
        config.core.max_parked_fetches = config.core.max_parked_fetches.max(connections);
        let (commands, inbox) = mpsc::channel(config.max_waiting_proposals);
        let (leadership, leadership_view) = watch::channel(Leadership::default());
        let (stop, stopped) = watch::channel(None);
        let groups = Arc::new(AtomicU64::new(0));
        let (started, ready) = std::sync::mpsc::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let counted = groups.clone();
        thread::Builder::new().name("quorate-driver".to_owned()).spawn(move || {
            // Whatever ends this thread, whoever waits for the node learns of it.
            let stop = StopOnDrop(Some(stop));
            let built = runtime.block_on(build(
                directory,
                config,
                state_machine,
                inbox,
                leadership,
                counted,
            ));
            match built {
                Ok(driver) => {
                    if started.send(Ok(())).is_ok() {
                        let reason = runtime.block_on(driver.run());
                        // Its sockets close now: whoever hears that the node has stopped may bind its address.
                        drop(runtime);
                        stop.send(reason);
                    }
                }
                Err(error) => {
                    let _ = started.send(Err(error));
                }
            }
        })?;
        // A moment at most: the driver binds its listeners and says so.
        match ready.recv() {
            Ok(Ok(())) => {
                let handle = Handle { commands, leadership: leadership_view, groups };
                Ok(Node { handle, stopped })
            }
            Ok(Err(error)) => Err(error),
            Err(_) => {
                Err(StartError::Thread(std::io::Error::other("the driver died at its start")))
            }
        }
    }

    /// For appends and questions.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Waits until the node has stopped, by itself or because it was asked to.
    pub async fn stopped(&self) -> StopReason {
        let mut stopped = self.stopped.clone();
        match stopped.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone().unwrap_or(StopReason::Died),
            Err(_) => StopReason::Died,
        }
    }

    /// Hands over to another voter if this node leads, closes the directory, and waits until all is done.
    pub async fn shutdown(&self) -> StopReason {
        self.handle.shut_down().await;
        self.stopped().await
    }
}

struct StopOnDrop(Option<watch::Sender<Option<StopReason>>>);

impl StopOnDrop {
    fn send(mut self, reason: StopReason) {
        if let Some(stop) = self.0.take() {
            stop.send_replace(Some(reason));
        }
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        if let Some(stop) = self.0.take() {
            stop.send_replace(Some(StopReason::Died));
        }
    }
}

async fn build<F: FileSystem>(
    directory: Directory<F>,
    config: NodeConfig,
    state_machine: impl StateMachine,
    commands: mpsc::Receiver<crate::handle::Command>,
    leadership: watch::Sender<Leadership>,
    groups: Arc<AtomicU64>,
) -> Result<Driver, StartError> {
    let cluster = directory.cluster_id().to_owned();
    let (recovered, store) = directory.into_parts();
    let (log_start, log_end) = (recovered.log_start, recovered.log_end);
    let mut output = Output::default();
    let clock = Instant::now();
    let replica =
        Replica::start(config.core.clone(), recovered, CoreInstant::default(), &mut output)?;

    let (context, context_view) = watch::channel(ServerContext {
        cluster_id: cluster.clone(),
        kraft_version: replica.kraft_version(),
        listeners: config.core.endpoints.clone(),
    });
    let (requests_in, requests) = mpsc::channel(MAX_WAITING_REQUESTS);
    let mut listeners = Vec::new();
    for listener in &config.listeners {
        let bound = Listener::bind(
            listener.clone(),
            config.limits.clone(),
            context_view.clone(),
            requests_in.clone(),
        )
        .await;
        listeners.push(bound.map_err(|source| StartError::Listen {
            listener: listener.name.to_string(),
            address: format!("{}:{}", listener.host, listener.port),
            source,
        })?);
    }
    let (peers, peer_events) = Peers::new(PeersConfig {
        request_timeout: config.core.request_timeout,
        response_max_bytes: response_max_bytes(
            usize::try_from(config.core.fetch_max_bytes).unwrap_or(usize::MAX),
        ),
        ..PeersConfig::new(&format!("raft-client-{}", config.core.node), &cluster)
    });
    let (store_in, store_view) = watch::channel(StoreState::default());
    let store_in = Arc::new(store_in);
    let waits_for_disk = Arc::new(AtomicBool::new(true));
    let is_waited_for = waits_for_disk.clone();
    let (submitter, reader) = start_store(store, move |event| {
        store_in.send_if_modified(|state| match event {
            StoreEvent::Durable(through) => {
                groups.fetch_add(1, Ordering::Relaxed);
                state.durable = state.durable.max(through);
                is_waited_for.load(Ordering::Relaxed)
            }
            StoreEvent::Failed(error) => {
                state.failed = Some(error);
                true
            }
        });
    })?;
    let (cold, cold_answers) = cold::start(reader.clone())?;
    let boundaries = reader.clone();
    let applier = Applier::start(state_machine, reader, log_start, leadership)?;
    Ok(Driver {
        replica,
        clock,
        output,
        log: Log::new(log_end, config.tail_bytes),
        submitter,
        store: store_view,
        waits_for_disk,
        requests,
        peers,
        peer_events,
        commands,
        is_boundary_on_disk: Box::new(move |offset| {
            boundaries.is_boundary(offset).unwrap_or(false)
        }),
        cold,
        cold_answers,
        applier,
        context,
        listeners,
        state: State::default(),
    })
}
