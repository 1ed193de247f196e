//! A `controller.properties` of Kafka as this node's configuration.
//!
//! What is read is checked at once, with file, key, value and next step in the message. Keys that Kafka knows
//! and a Quorate controller does not need are accepted silently; others are named in one warning.
//! Source: Kafka 4.4's documentation of its configuration, and the checks of its startup.

pub(crate) mod keys;
pub(crate) mod listeners;
pub(crate) mod properties;
mod quorum;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::time::Duration;

use quorate_core::voters::VoterSet;
use quorate_core::{DirectoryId, Endpoint, ListenerName, NodeId};

use self::listeners::{Listeners, Protocol};
use self::properties::Properties;
use crate::failure::Failure;

/// What a configuration file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    /// The file it comes from.
    pub(crate) file: PathBuf,
    /// `process.roles` has `controller`.
    pub(crate) controller: bool,
    /// `process.roles` has `broker`.
    pub(crate) broker: bool,
    /// `node.id`.
    pub(crate) node: NodeId,
    /// `metadata.log.dir`, else the first of `log.dirs`, else of `log.dir`.
    pub(crate) metadata_dir: PathBuf,
    /// Every configured directory once, sorted; the metadata log directory is one of them.
    pub(crate) directories: Vec<PathBuf>,
    /// The controller listeners.
    pub(crate) listeners: Listeners,
    /// `controller.quorum.voters` in the order of the file.
    pub(crate) static_voters: Vec<(NodeId, Endpoint)>,
    /// `controller.quorum.bootstrap.servers`.
    pub(crate) bootstrap_servers: Vec<Endpoint>,
    /// `quorate.campaign` is not `never`: this node stands for election.
    pub(crate) campaigns: bool,
    /// `controller.quorum.*`.
    pub(crate) quorum: QuorumSettings,
    /// `metadata.log.*`.
    pub(crate) storage: StorageSettings,
    /// `socket.*`, `max.connections*`.
    pub(crate) network: NetworkSettings,
    /// `unstable.feature.versions.enable`: levels that are not for production may be formatted.
    pub(crate) unstable_features: bool,
    /// What is odd but no error, one line each.
    pub(crate) warnings: Vec<String>,
}

/// Times and sizes of the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QuorumSettings {
    pub(crate) election_timeout: Duration,
    pub(crate) election_backoff_max: Duration,
    pub(crate) fetch_timeout: Duration,
    pub(crate) request_timeout: Duration,
    pub(crate) retry_backoff: Duration,
    /// `quorate.hint.delay.ms`; 0 turns hints of a leader's death off.
    pub(crate) hint_delay: Duration,
    pub(crate) linger: Duration,
    pub(crate) fetch_max_bytes: u32,
    pub(crate) max_batch_bytes: u32,
}

/// When a segment of the log is full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StorageSettings {
    /// `metadata.log.segment.bytes`.
    pub(crate) segment_bytes: u32,
    /// `metadata.log.segment.ms`.
    pub(crate) segment_age: Duration,
    /// `quorate.log.preallocate.bytes`: how far ahead of many appends the log's file is made longer; 0 turns it off.
    pub(crate) preallocate_bytes: u32,
}

/// Bounds of the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NetworkSettings {
    /// `socket.request.max.bytes`.
    pub(crate) request_max_bytes: u32,
    /// `max.connections`.
    pub(crate) max_connections: u32,
    /// `max.connections.per.ip`.
    pub(crate) max_connections_per_ip: u32,
    /// `connections.max.idle.ms`; absent where it is negative and idle connections stay.
    pub(crate) max_idle: Option<Duration>,
}

/// The largest `int` of Java, for keys without a bound of their own.
const INT_MAX: u32 = i32::MAX as u32;

impl Config {
    /// Reads and checks a file.
    pub(crate) fn load(file: &Path) -> Result<Config, Failure> {
        let properties = Properties::read(file)?;
        let (controller, broker) = roles(&properties)?;
        let node = node_id(&properties)?;
        let static_voters = quorum::static_voters(&properties)?;
        let bootstrap_servers = quorum::bootstrap_servers(&properties)?;
        quorum::check(&properties, node, controller, &static_voters, &bootstrap_servers)?;
        let own = static_voters.iter().find(|(id, _)| *id == node).map(|(_, endpoint)| endpoint);
        let listeners = Listeners::read(&properties, controller, broker, own)?;
        let (metadata_dir, directories) = directories(&properties)?;
        let quorum = quorum_settings(&properties)?;
        let mut warnings: Vec<String> = properties.unknown_keys().into_iter().collect();
        warnings.extend(odd_values(&properties, &quorum)?);
        Ok(Config {
            file: file.to_owned(),
            controller,
            broker,
            node,
            metadata_dir,
            directories,
            listeners,
            static_voters,
            bootstrap_servers,
            campaigns: campaigns(&properties)?,
            quorum,
            storage: storage_settings(&properties)?,
            network: network_settings(&properties)?,
            unstable_features: properties.flag("unstable.feature.versions.enable", false)?,
            warnings,
        })
    }

    /// Refuses what can be formatted but not run by Quorate: brokers, and listeners that are encrypted or
    /// authenticated.
    pub(crate) fn check_can_run(&self) -> Result<(), Failure> {
        let file = self.file.display();
        if self.broker || !self.controller {
            return Err(Failure::new(format!(
                "{file}: process.roles has the broker role, and Quorate is a controller alone"
            ))
            .next("set process.roles=controller, and run brokers with Apache Kafka"));
        }
        for (name, protocol) in &self.listeners.protocols {
            if *protocol != Protocol::Plaintext {
                return Err(Failure::new(format!(
                    "{file}: listener.security.protocol.map gives {name} the protocol {protocol}, \
                     which this version of Quorate does not speak"
                ))
                .next(format!("use {name}:PLAINTEXT on a network that you trust")));
            }
        }
        Ok(())
    }

    /// The listener that replicas talk through.
    pub(crate) fn default_listener(&self) -> &ListenerName {
        // `Listeners::read` refuses an empty list.
        &self.listeners.names[0]
    }

    /// The static voters as the replica uses them.
    pub(crate) fn voter_set(&self) -> VoterSet {
        quorum::voter_set(&self.static_voters, self.default_listener())
    }

    /// The core's configuration. `directory` is the id in meta.properties.
    pub(crate) fn core(&self, directory: DirectoryId, seed: u64) -> quorate_core::config::Config {
        let quorum = &self.quorum;
        let mut core = quorate_core::config::Config::new(
            self.node,
            directory,
            self.default_listener().clone(),
        );
        core.endpoints = self.listeners.endpoints();
        core.static_voters = self.voter_set();
        core.bootstrap_servers = self.bootstrap_servers.clone();
        core.campaigns = self.campaigns;
        core.election_timeout = quorum.election_timeout;
        core.election_backoff_max = quorum.election_backoff_max;
        core.fetch_timeout = quorum.fetch_timeout;
        core.request_timeout = quorum.request_timeout;
        core.retry_backoff = quorum.retry_backoff;
        core.hint_delay = quorum.hint_delay;
        core.linger = quorum.linger;
        core.fetch_max_bytes = quorum.fetch_max_bytes;
        core.max_batch_bytes = usize::try_from(quorum.max_batch_bytes).unwrap_or(usize::MAX);
        core.seed = seed;
        core
    }
}

fn roles(properties: &Properties) -> Result<(bool, bool), Failure> {
    const KEY: &str = "process.roles";
    properties.required(KEY, "set process.roles=controller")?;
    let (mut controller, mut broker) = (false, false);
    for role in properties.list(KEY) {
        match role {
            "controller" => controller = true,
            "broker" => broker = true,
            _ => {
                return Err(properties
                    .bad(KEY, format!("has the unknown role {role}"))
                    .next("set process.roles=controller"));
            }
        }
    }
    Ok((controller, broker))
}

fn node_id(properties: &Properties) -> Result<NodeId, Failure> {
    properties.required("node.id", "give this node a number of its own, for example node.id=1")?;
    let node = properties.number("node.id", 0, 0..=i32::MAX)?;
    if properties.text("broker.id").is_some()
        && properties.number("broker.id", node, i32::MIN..=i32::MAX)? != node
    {
        return Err(properties
            .bad("broker.id", format!("differs from node.id={node}"))
            .next("remove broker.id"));
    }
    Ok(NodeId(node))
}

/// Quorate's own key: a voter beside controllers of another make need not lead them.
fn campaigns(properties: &Properties) -> Result<bool, Failure> {
    const KEY: &str = "quorate.campaign";
    match properties.text(KEY) {
        None | Some("always") => Ok(true),
        Some("never") => Ok(false),
        Some(_) => Err(properties.bad(KEY, "is neither always nor never").next(
            "give never for a node that follows and votes, but never leads; else remove the line",
        )),
    }
}

fn directories(properties: &Properties) -> Result<(PathBuf, Vec<PathBuf>), Failure> {
    let key = if properties.text("log.dirs").is_some() { "log.dirs" } else { "log.dir" };
    let mut dirs: Vec<PathBuf> = properties.list(key).into_iter().map(PathBuf::from).collect();
    if properties.text(key).is_none() {
        // Kafka's default. A node that runs by chance on a directory that the system clears is no good,
        // but whoever relies on it with Kafka gets the same here.
        dirs.push(PathBuf::from("/tmp/kafka-logs"));
    }
    let Some(first) = dirs.first().cloned() else {
        return Err(properties.bad(key, "names no directory").next("give an absolute path"));
    };
    let metadata = properties.text("metadata.log.dir").map_or(first, PathBuf::from);
    dirs.push(metadata.clone());
    dirs.sort();
    dirs.dedup();
    Ok((metadata, dirs))
}

fn millis(properties: &Properties, key: &str, default: u32) -> Result<Duration, Failure> {
    let value = properties.number(key, default, 0..=INT_MAX)?;
    Ok(Duration::from_millis(u64::from(value)))
}

fn quorum_settings(properties: &Properties) -> Result<QuorumSettings, Failure> {
    // The rest is checked as Kafka checks it, though nothing here uses it yet.
    properties.number("controller.quorum.fetch.snapshot.max.bytes", 1 << 20, 1..=INT_MAX)?;
    properties.flag("controller.quorum.auto.join.enable", false)?;
    Ok(QuorumSettings {
        election_timeout: millis(properties, "controller.quorum.election.timeout.ms", 1000)?,
        election_backoff_max: millis(
            properties,
            "controller.quorum.election.backoff.max.ms",
            1000,
        )?,
        fetch_timeout: millis(properties, "controller.quorum.fetch.timeout.ms", 2000)?,
        request_timeout: millis(properties, "controller.quorum.request.timeout.ms", 2000)?,
        retry_backoff: millis(properties, "controller.quorum.retry.backoff.ms", 20)?,
        hint_delay: millis(properties, "quorate.hint.delay.ms", 10)?,
        // Differs from Kafka: its default is 25 ms. Here appends that wait for a sync are gathered anyway.
        linger: millis(properties, "controller.quorum.append.linger.ms", 0)?,
        fetch_max_bytes: properties.number(
            "controller.quorum.fetch.max.bytes",
            1 << 20,
            1..=INT_MAX,
        )?,
        max_batch_bytes: properties.number(
            "internal.metadata.max.batch.size.in.bytes",
            8 << 20,
            1024..=INT_MAX,
        )?,
    })
}

fn storage_settings(properties: &Properties) -> Result<StorageSettings, Failure> {
    const LONG_MAX: u64 = i64::MAX as u64;
    properties.number("metadata.log.max.record.bytes.between.snapshots", 20 << 20, 1..=LONG_MAX)?;
    properties.number("metadata.log.max.snapshot.interval.ms", 3_600_000, 0..=LONG_MAX)?;
    properties.number("metadata.max.retention.bytes", 100 << 20, i64::MIN..=i64::MAX)?;
    properties.number("metadata.max.retention.ms", 604_800_000, i64::MIN..=i64::MAX)?;
    properties.number("metadata.max.idle.interval.ms", 500, 0..=INT_MAX)?;
    properties.number("internal.metadata.delete.delay.millis", 60_000, 0..=LONG_MAX)?;
    let bytes = properties.number("metadata.log.segment.bytes", 1 << 30, (8 << 20)..=INT_MAX)?;
    // Kafka's own tests make small segments with this key.
    let bytes = properties.number("internal.metadata.log.segment.bytes", bytes, 14..=INT_MAX)?;
    let age = properties.number("metadata.log.segment.ms", 604_800_000, 1..=LONG_MAX)?;
    let preallocate = properties.number("quorate.log.preallocate.bytes", 4 << 20, 0..=INT_MAX)?;
    Ok(StorageSettings {
        segment_bytes: bytes,
        segment_age: Duration::from_millis(age),
        preallocate_bytes: preallocate,
    })
}

fn network_settings(properties: &Properties) -> Result<NetworkSettings, Failure> {
    for (key, default, least) in [
        ("num.network.threads", 3, 1),
        ("num.io.threads", 8, 1),
        ("background.threads", 10, 1),
        ("queued.max.requests", 500, 1),
        ("socket.listen.backlog.size", 50, 1),
        ("socket.send.buffer.bytes", 102_400, -1),
        ("socket.receive.buffer.bytes", 102_400, -1),
        ("request.timeout.ms", 30_000, 0),
        ("max.connection.creation.rate", i32::MAX, 0),
        ("connection.failed.authentication.delay.ms", 100, 0),
        ("controller.socket.timeout.ms", 30_000, 0),
    ] {
        properties.number(key, default, least..=i32::MAX)?;
    }
    for (key, default) in [
        ("queued.max.request.bytes", -1),
        ("connections.max.reauth.ms", 0),
        ("socket.connection.setup.timeout.ms", 10_000),
        ("socket.connection.setup.timeout.max.ms", 30_000),
        ("server.max.startup.time.ms", i64::MAX),
    ] {
        properties.number(key, default, i64::MIN..=i64::MAX)?;
    }
    let idle = properties.number("connections.max.idle.ms", 600_000, i64::MIN..=i64::MAX)?;
    Ok(NetworkSettings {
        request_max_bytes: properties.number("socket.request.max.bytes", 100 << 20, 1..=INT_MAX)?,
        max_connections: properties.number("max.connections", INT_MAX, 0..=INT_MAX)?,
        max_connections_per_ip: properties.number(
            "max.connections.per.ip",
            INT_MAX,
            0..=INT_MAX,
        )?,
        max_idle: u64::try_from(idle).ok().map(Duration::from_millis),
    })
}

fn odd_values(properties: &Properties, quorum: &QuorumSettings) -> Result<Vec<String>, Failure> {
    let mut odd = Vec::new();
    for (key, value) in [
        ("controller.quorum.election.timeout.ms", quorum.election_timeout),
        ("controller.quorum.fetch.timeout.ms", quorum.fetch_timeout),
        ("controller.quorum.request.timeout.ms", quorum.request_timeout),
    ] {
        if value.is_zero() {
            odd.push(format!("{key}=0 lets elections follow each other without end"));
        }
    }
    if properties.flag("controller.quorum.auto.join.enable", false)? {
        odd.push(
            "controller.quorum.auto.join.enable=true has no effect yet: a node outside the voter set stays an observer"
                .to_owned(),
        );
    }
    Ok(odd)
}
