//! What a node is told at its start.

use std::time::Duration;

use quorate_core::config::Config;
use quorate_core::{DirectoryId, Endpoint, ListenerName, NodeId};
use quorate_network::{Limits, ListenerConfig};

/// A node's configuration.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// The replica's.
    pub core: Config,
    /// The listeners to bind. Their names are those of the replica's endpoints.
    pub listeners: Vec<ListenerConfig>,
    /// Bounds that the listeners share.
    pub limits: Limits,
    /// How many bytes of recent batches stay in memory beyond those that are not durable.
    pub tail_bytes: usize,
    /// How many proposals may wait for the driver; beyond it they end as `QueueFull`.
    pub max_waiting_proposals: usize,
}

impl NodeConfig {
    /// A node with one plaintext listener, which is also its address for others, and Kafka's defaults. It needs
    /// peers before it can start: set `core.bootstrap_servers` or `core.static_voters`.
    pub fn new(
        directory: DirectoryId,
        node: i32,
        listener: &str,
        host: &str,
        port: u16,
    ) -> NodeConfig {
        let name = ListenerName::new(listener);
        let mut core = Config::new(NodeId(node), directory, name.clone());
        core.endpoints.insert(name.clone(), Endpoint::new(host, port));
        NodeConfig {
            core,
            listeners: vec![NodeConfig::listener(name, host, port)],
            limits: Limits::new(1024, 1024, 128 << 20, 256 << 20),
            tail_bytes: 16 << 20,
            max_waiting_proposals: 65_536,
        }
    }

    /// A listener with Kafka's bounds.
    pub fn listener(name: ListenerName, host: &str, port: u16) -> ListenerConfig {
        ListenerConfig {
            name,
            host: host.to_owned(),
            port,
            idle: Duration::from_secs(600),
            patience: Duration::from_secs(10),
            request_max_bytes: 100 << 20,
        }
    }
}
