//! Controllers of either make, a broker, their directories and configurations.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use quorate_core::{DirectoryId, NodeId};
use quorate_storage::RealFs;
use quorate_storage::meta_properties::{self, MetaProperties, parse_uuid};
use serde_json::Value;

use super::logs::{self, Compared};
use super::process::{End, Process, matching_lines, wait_for};
use crate::kafka::{Release, SERVER, STORAGE};
use crate::usage::{self, Usage};

/// What a node runs.
#[derive(Clone, Debug)]
pub(crate) enum Make {
    /// Apache Kafka.
    Java(Release),
    /// The binary under test, with these arguments to `run`.
    Quorate(Vec<String>),
}

/// A controller, or the broker.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) id: i32,
    pub(crate) make: Make,
    is_broker: bool,
    /// The directory id.
    directory: String,
    port: u16,
    /// Its configuration, data and log.
    dir: PathBuf,
    /// Lines of its configuration that others do not have.
    properties: String,
    process: Option<Process>,
}

impl Node {
    /// `Quorate 3`, `Java 4.4.0 1`.
    pub(crate) fn name(&self) -> String {
        let role = if self.is_broker { "broker " } else { "" };
        match &self.make {
            Make::Java(release) => format!("{role}{} (Java {})", self.id, release.version()),
            Make::Quorate(_) => format!("{role}{} (Quorate)", self.id),
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        self.process.is_some()
    }

    /// The directory that was formatted.
    pub(crate) fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// Where log and quorum-state are.
    pub(crate) fn log_dir(&self) -> PathBuf {
        self.data().join("__cluster_metadata-0")
    }

    /// What it has logged.
    pub(crate) fn log(&self) -> PathBuf {
        self.dir.join("node.log")
    }

    /// Its configuration.
    pub(crate) fn config(&self) -> PathBuf {
        self.dir.join("node.properties")
    }

    /// Writes this node's own identity into a directory that another node wrote.
    pub(crate) fn adopt(&self, cluster: &str) -> Result<()> {
        let directory = parse_uuid(&self.directory).and_then(DirectoryId::from_bytes);
        let meta = MetaProperties {
            cluster: cluster.to_owned(),
            node: NodeId(self.id),
            directory: Some(directory.context("a directory id that does not read")?),
        };
        Ok(meta_properties::write(&RealFs, &self.data(), &meta, 0)?)
    }
}

/// The quorum as its leader describes it.
#[derive(Clone, Debug)]
pub(crate) struct Description {
    pub(crate) leader: i32,
    pub(crate) epoch: i32,
    pub(crate) high_watermark: i64,
}

/// Everything that runs.
#[derive(Debug)]
pub(crate) struct Quorum {
    binary: PathBuf,
    pub(crate) dir: PathBuf,
    pub(crate) cluster: String,
    is_static: bool,
    /// The release whose tool formats the directories of Java nodes: the oldest of them.
    formatter: Release,
    pub(crate) nodes: Vec<Node>,
}

/// How long a start, or an election, may take on a busy machine.
pub(crate) const BOUND: Duration = Duration::from_secs(180);

/// A node of a quorum that is to be made.
pub(crate) struct Plan {
    pub(crate) make: Make,
    pub(crate) properties: String,
}

impl Quorum {
    /// Formats controllers 1, 2, ..., and a broker if there is to be one.
    pub(crate) fn format(
        binary: &Path,
        dir: &Path,
        cluster: Option<&str>,
        is_static: bool,
        formatter: &Release,
        controllers: Vec<Plan>,
        broker: Option<Release>,
    ) -> Result<Quorum> {
        let mut quorum = Quorum {
            binary: binary.to_owned(),
            dir: dir.to_owned(),
            cluster: String::new(),
            is_static,
            formatter: formatter.clone(),
            nodes: Vec::new(),
        };
        quorum.cluster = cluster.map_or_else(|| quorum.random_uuid(), |id| Ok(id.to_owned()))?;
        let ports = free_ports(controllers.len() + 1)?;
        let broker =
            broker.map(|release| Plan { make: Make::Java(release), properties: String::new() });
        let controller_count = controllers.len();
        for (at, (plan, port)) in controllers.into_iter().chain(broker).zip(ports).enumerate() {
            let is_broker = at >= controller_count;
            let id = i32::try_from(at)? + if is_broker { 10 } else { 1 };
            let dir = dir.join(format!("node-{id}"));
            let directory = quorum.random_uuid()?;
            fs::create_dir_all(&dir).with_context(|| dir.display().to_string())?;
            let Plan { make, properties } = plan;
            let process = None;
            quorum.nodes.push(Node {
                id,
                make,
                is_broker,
                directory,
                port,
                dir,
                properties,
                process,
            });
        }
        for node in &quorum.nodes {
            let config = node.config();
            fs::write(&config, quorum.properties(node))
                .with_context(|| config.display().to_string())?;
            quorum.format_node(node).with_context(|| format!("format {}", node.name()))?;
        }
        Ok(quorum)
    }

    fn random_uuid(&self) -> Result<String> {
        Ok(quiet_output(Command::new(&self.binary).arg("random-uuid"))?.trim().to_owned())
    }

    fn format_node(&self, node: &Node) -> Result<()> {
        let mut command = match &node.make {
            Make::Java(_) => self.formatter.java(STORAGE),
            Make::Quorate(_) => Command::new(&self.binary),
        };
        command.arg("format").args(["-t", &self.cluster, "-c"]).arg(node.config());
        // With the features of the oldest node: nobody else is asked. Its layout must be one that all nodes open.
        command.args(["--release-version", self.formatter.family()]);
        if matches!(node.make, Make::Quorate(_)) && self.formatter.has_old_layout() {
            command.args(["--layout", "4.0"]);
        }
        if !self.is_static && !node.is_broker {
            let voters = self
                .controllers()
                .map(|node| format!("{}@127.0.0.1:{}:{}", node.id, node.port, node.directory));
            command.args(["--initial-controllers", &voters.collect::<Vec<_>>().join(",")]);
        }
        quiet_output(&mut command)?;
        Ok(())
    }

    fn properties(&self, node: &Node) -> String {
        let voters: Vec<String> = self
            .controllers()
            .map(|node| match self.is_static {
                true => format!("{}@127.0.0.1:{}", node.id, node.port),
                false => format!("127.0.0.1:{}", node.port),
            })
            .collect();
        let key = if self.is_static { "voters" } else { "bootstrap.servers" };
        let common = format!(
            "node.id={}\ncontroller.listener.names=CONTROLLER\ncontroller.quorum.{key}={}\nlog.dirs={}\n{}",
            node.id,
            voters.join(","),
            node.data().display(),
            node.properties
        );
        let port = node.port;
        let own = if node.is_broker {
            format!(
                "process.roles=broker\nlisteners=PLAINTEXT://127.0.0.1:{port}\n\
                 advertised.listeners=PLAINTEXT://127.0.0.1:{port}\n\
                 offsets.topic.replication.factor=1\ntransaction.state.log.replication.factor=1\n\
                 transaction.state.log.min.isr=1\n"
            )
        } else {
            // Logs are compared from offset 0 on, so nobody makes snapshots.
            format!(
                "process.roles=controller\nlisteners=CONTROLLER://127.0.0.1:{port}\n\
                 advertised.listeners=CONTROLLER://127.0.0.1:{port}\n\
                 metadata.log.max.snapshot.interval.ms=0\n\
                 metadata.log.max.record.bytes.between.snapshots=1000000000\n"
            )
        };
        // A broker that comes back waits for its former session to end, and longer on a busy machine.
        let java = "num.network.threads=1\nnum.io.threads=2\nbackground.threads=2\n\
                    initial.broker.registration.timeout.ms=180000\n";
        format!("{own}{common}{}", if matches!(node.make, Make::Java(_)) { java } else { "" })
    }

    /// The controllers.
    pub(crate) fn controllers(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| !node.is_broker)
    }

    /// A node by its id.
    pub(crate) fn node(&self, id: i32) -> Result<&Node> {
        self.nodes.iter().find(|node| node.id == id).with_context(|| format!("no node {id}"))
    }

    fn node_mut(&mut self, id: i32) -> Result<&mut Node> {
        self.nodes.iter_mut().find(|node| node.id == id).with_context(|| format!("no node {id}"))
    }

    /// Where a node listens.
    pub(crate) fn port(&self, id: i32) -> Result<u16> {
        Ok(self.node(id)?.port)
    }

    /// What a running node has used so far.
    pub(crate) fn usage(&self, id: i32) -> Result<Usage> {
        let node = self.node(id)?;
        let process = node.process.as_ref();
        usage::of(process.with_context(|| format!("{} is not running", node.name()))?.id())
    }

    /// The memory of the node that uses most, in KiB.
    pub(crate) fn most_resident_kib(&self) -> Result<u64> {
        let running = self.nodes.iter().filter_map(|node| node.process.as_ref());
        let all: Vec<u64> = running
            .map(|process| Ok(usage::of(process.id())?.resident_kib))
            .collect::<Result<_>>()?;
        all.into_iter().max().context("nothing runs")
    }

    /// Ends all at once, whatever they are at.
    pub(crate) fn kill_all(&mut self) {
        self.nodes.iter_mut().for_each(|node| node.process = None);
    }

    /// `host:port` of the broker.
    pub(crate) fn broker(&self) -> Result<(i32, String)> {
        let broker = self.nodes.iter().find(|node| node.is_broker).context("there is no broker")?;
        Ok((broker.id, format!("127.0.0.1:{}", broker.port)))
    }

    /// Starts a node that is down.
    pub(crate) fn start(&mut self, id: i32) -> Result<()> {
        let binary = self.binary.clone();
        let node = self.node_mut(id)?;
        let command = match &node.make {
            Make::Java(release) => {
                let mut java = release.java(SERVER);
                java.arg(node.config());
                java
            }
            Make::Quorate(args) => {
                let mut quorate = Command::new(binary);
                quorate.env("NO_COLOR", "1");
                quorate.arg("run").arg("--config").arg(node.config()).args(args);
                quorate
            }
        };
        if node.is_running() {
            bail!("{} runs already", node.name());
        }
        node.process = Some(Process::start(&node.name(), &command, &node.log())?);
        Ok(())
    }

    /// Ends a running node. Quorate must end well when it is told to.
    pub(crate) fn end(&mut self, id: i32, how: End) -> Result<()> {
        let node = self.node_mut(id)?;
        let name = node.name();
        let process = node.process.take().with_context(|| format!("{name} is not running"))?;
        let status = process.end(how)?;
        if how == End::Terminate && matches!(node.make, Make::Quorate(_)) && !status.success() {
            bail!("{name} ended with {status} after SIGTERM");
        }
        Ok(())
    }

    /// Ends all, brokers first.
    pub(crate) fn end_all(&mut self) -> Result<()> {
        let mut running: Vec<(bool, i32)> = self
            .nodes
            .iter()
            .filter(|node| node.is_running())
            .map(|node| (!node.is_broker, node.id))
            .collect();
        running.sort_unstable();
        running.into_iter().try_for_each(|(_, id)| self.end(id, End::Terminate))
    }

    /// Fails if anything has stopped that was not told to.
    pub(crate) fn check(&mut self) -> Result<()> {
        self.nodes.iter_mut().filter_map(|node| node.process.as_mut()).try_for_each(Process::check)
    }

    /// Asks all controllers that run who leads; none if nobody does.
    pub(crate) fn describe(&mut self) -> Result<Option<Description>> {
        self.check()?;
        let whom: Vec<String> = self
            .controllers()
            .filter(|node| node.is_running())
            .map(|node| format!("127.0.0.1:{}", node.port))
            .collect();
        let mut describe = Command::new(&self.binary);
        describe.args(["quorum", "describe", "--json", "--timeout", "1"]);
        describe.args(["--bootstrap-controller", &whom.join(",")]);
        let output = describe.output().context("quorate quorum describe does not start")?;
        if !output.status.success() {
            return Ok(None);
        }
        let json: Value =
            serde_json::from_slice(&output.stdout).context("describe prints no JSON")?;
        let number = |name: &str| json.get(name).and_then(Value::as_i64);
        let (Some(leader), Some(epoch), Some(high_watermark)) =
            (number("leaderId"), number("leaderEpoch"), number("highWatermark"))
        else {
            return Ok(None);
        };
        if leader < 0 || high_watermark < 0 {
            return Ok(None);
        }
        Ok(Some(Description {
            leader: i32::try_from(leader)?,
            epoch: i32::try_from(epoch)?,
            high_watermark,
        }))
    }

    /// Waits for a leader whose epoch is above this one.
    pub(crate) fn wait_for_leader(&mut self, above_epoch: i32) -> Result<Description> {
        wait_for(&format!("a leader after epoch {above_epoch}"), BOUND, || {
            Ok(self.describe()?.filter(|now| now.epoch > above_epoch))
        })
    }

    /// Waits until the running controllers have all that is committed now, and compares their logs below there. One that has
    /// just come back may have another batch at the end, which was never committed and which it is about to cut.
    pub(crate) fn compare(&mut self) -> Result<Compared> {
        let now = wait_for("a leader", BOUND, || self.describe())?;
        let high_watermark = now.high_watermark;
        let leaders = self.node(now.leader)?.log_dir();
        let running: Vec<(String, PathBuf)> = self
            .controllers()
            .filter(|node| node.is_running())
            .map(|node| (node.name(), node.log_dir()))
            .collect();
        for (name, log_dir) in &running {
            let what = format!("{name} has the leader's batch before offset {high_watermark}");
            wait_for(&what, BOUND, || {
                self.check()?;
                let wanted = logs::epoch_before(&leaders, high_watermark)?;
                let found = logs::epoch_before(log_dir, high_watermark)?;
                Ok((wanted.is_some() && found == wanted).then_some(()))
            })?;
        }
        // A batch that spans the high watermark does not exist: whole batches are committed.
        let dirs: Vec<(String, &Path)> =
            running.iter().map(|(name, dir)| (name.clone(), dir.as_path())).collect();
        logs::compare(&dirs, now.high_watermark)
    }

    /// Lines in which Java nodes speak of errors.
    pub(crate) fn java_errors(&self) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for node in self.nodes.iter().filter(|node| matches!(node.make, Make::Java(_))) {
            let lines = matching_lines(&node.log(), |line| {
                line.contains(" ERROR ") || line.contains("FATAL")
            })?;
            found.extend(lines.into_iter().map(|line| format!("{}: {line}", node.name())));
        }
        Ok(found)
    }
}

/// What a short command prints; what it says on stderr only if it fails: Java's tools are talkative there.
fn quiet_output(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("{program} does not start"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let errors: Vec<&str> = said.lines().filter(|line| !line.contains(" INFO ")).collect();
        bail!("{program} ended with {}: {}", output.status, errors.join("\n"));
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Ports on which nothing listens, below the range of outgoing connections: else a peer that tries again and again to
/// reach a node that is down could be given that very port, and connect to itself.
pub(crate) fn free_ports(count: usize) -> Result<Vec<u16>> {
    let spread = u16::try_from(std::process::id() % 4000).unwrap_or(0);
    let candidates = (10_000..30_000u16).rev().skip(usize::from(spread));
    let free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    let ports: Vec<u16> = candidates.filter(free).take(count).collect();
    if ports.len() < count {
        bail!("no {count} free ports");
    }
    Ok(ports)
}
