//! Three formatted directories with their configurations, and the nodes that run on them.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::build::Binary;
use super::history::Incarnation;
use super::process::{Process, Said, output_within};

/// How many voters there are.
pub(crate) const NODES: usize = 3;

/// The directories, and whatever runs.
#[derive(Debug)]
pub(crate) struct Cluster {
    binary: PathBuf,
    dir: PathBuf,
    ports: Vec<u16>,
    starts: Vec<u32>,
    running: Vec<Option<Process>>,
}

/// How long the tools may take.
const TOOL_BOUND: Duration = Duration::from_secs(30);

impl Cluster {
    /// Formats the directories of a dynamic quorum under `dir`. `properties` are lines for the configuration of all.
    pub(crate) fn format(binary: &Binary, dir: PathBuf, properties: &str) -> Result<Cluster> {
        let cluster = Cluster {
            binary: binary.path.clone(),
            dir,
            ports: free_ports()?,
            starts: vec![0; NODES],
            running: (0..NODES).map(|_| None).collect(),
        };
        fs::create_dir_all(&cluster.dir).with_context(|| cluster.dir.display().to_string())?;
        let cluster_id = cluster.random_uuid()?;
        let mut voters = Vec::new();
        for (node, port) in cluster.ports.iter().enumerate() {
            voters.push(format!("{}@127.0.0.1:{port}:{}", node + 1, cluster.random_uuid()?));
        }
        for node in 0..NODES {
            let config = cluster.config(node);
            fs::write(&config, cluster.properties(node, properties))
                .with_context(|| config.display().to_string())?;
            let mut format = Command::new(&cluster.binary);
            format.arg("format").arg(format!("--cluster-id={cluster_id}"));
            format
                .arg("--config")
                .arg(&config)
                .arg(format!("--initial-controllers={}", voters.join(",")));
            output_within(&mut format, TOOL_BOUND).context("quorate format")?;
        }
        Ok(cluster)
    }

    fn random_uuid(&self) -> Result<String> {
        let text = output_within(Command::new(&self.binary).arg("random-uuid"), TOOL_BOUND)
            .context("quorate random-uuid")?;
        Ok(text.trim().to_owned())
    }

    fn properties(&self, node: usize, more: &str) -> String {
        let port = self.ports.get(node).copied().unwrap_or_default();
        format!(
            "process.roles=controller\n\
             node.id={}\n\
             controller.quorum.bootstrap.servers={}\n\
             controller.listener.names=CONTROLLER\n\
             listeners=CONTROLLER://127.0.0.1:{port}\n\
             advertised.listeners=CONTROLLER://127.0.0.1:{port}\n\
             log.dirs={}\n\
             {more}",
            node + 1,
            self.bootstrap(),
            self.data(node).display(),
        )
    }

    fn bootstrap(&self) -> String {
        let servers: Vec<String> =
            self.ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        servers.join(",")
    }

    /// Its configuration.
    pub(crate) fn config(&self, node: usize) -> PathBuf {
        self.dir.join(format!("node-{}.properties", node + 1))
    }

    fn data(&self, node: usize) -> PathBuf {
        self.dir.join(format!("node-{}", node + 1))
    }

    /// Where a node's log and quorum-state are.
    pub(crate) fn log_dir(&self, node: usize) -> PathBuf {
        self.data(node).join("__cluster_metadata-0")
    }

    /// Starts a node that is down.
    pub(crate) fn start(
        &mut self,
        node: usize,
        workload: Option<&str>,
        seed: u64,
        said: &SyncSender<Said>,
    ) -> Result<()> {
        let config = self.config(node);
        let binary = Binary { path: self.binary.clone() };
        let (Some(starts), Some(slot)) = (self.starts.get_mut(node), self.running.get_mut(node))
        else {
            bail!("there is no node {}", node + 1);
        };
        *starts += 1;
        let who = Incarnation { node, start: *starts };
        let log = log_file(&self.dir, who);
        *slot = Some(Process::start(&binary, &config, workload, &log, seed, who, said)?);
        Ok(())
    }

    /// Where the stderr of a process is kept.
    pub(crate) fn log_file(&self, who: Incarnation) -> PathBuf {
        log_file(&self.dir, who)
    }

    /// Takes a running node out, to be ended.
    pub(crate) fn take(&mut self, node: usize) -> Option<Process> {
        self.running.get_mut(node).and_then(Option::take)
    }

    /// The running process of a node.
    pub(crate) fn running(&self, node: usize) -> Option<&Process> {
        self.running.get(node).and_then(Option::as_ref)
    }

    /// The running processes.
    pub(crate) fn all_running(&mut self) -> impl Iterator<Item = &mut Process> {
        self.running.iter_mut().filter_map(Option::as_mut)
    }

    /// The quorum's own account of itself, as JSON.
    pub(crate) fn describe(&self) -> Result<serde_json::Value> {
        let mut describe = Command::new(&self.binary);
        describe.args([
            "quorum",
            "describe",
            "--json",
            "--bootstrap-controller",
            &self.bootstrap(),
        ]);
        let text = output_within(&mut describe, TOOL_BOUND).context("quorate quorum describe")?;
        serde_json::from_str(&text).context("what describe prints is no JSON")
    }
}

fn log_file(dir: &Path, who: Incarnation) -> PathBuf {
    dir.join(format!("node-{}-start-{:04}.log", who.node + 1, who.start))
}

/// Ports on which nothing listens. They lie below the range that the kernel gives to outgoing connections:
/// a peer that tries again and again to reach a node that is down could else be given that very port, and
/// connect to itself.
fn free_ports() -> Result<Vec<u16>> {
    let first_ephemeral = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")
        .ok()
        .and_then(|range| range.split_ascii_whitespace().next()?.parse().ok())
        .unwrap_or(32768)
        .max(10_000);
    // Runs side by side begin at different places.
    let spread = u16::try_from(std::process::id() % 4000).unwrap_or(0);
    let candidates = (1024..first_ephemeral).rev().skip(usize::from(spread));
    let free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    let ports: Vec<u16> = candidates.filter(free).take(NODES).collect();
    if ports.len() < NODES {
        bail!("no {NODES} free ports below {first_ephemeral}");
    }
    Ok(ports)
}
