//! Three nodes: their directories, ports and processes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use quorate_core::Endpoint;
use rustix::process::{Pid, Signal, kill_process};

use crate::commands::format;
use crate::config::Config;
use crate::failure::{Exit, Failure};
use crate::uuid;

/// How many voters there are.
pub(super) const NODES: usize = 3;
/// What the leader appends.
const WORKLOAD: &str = "inflight=16,size=64,rate=20";
/// How long nodes may take to stop before they are killed. All of them stop at once, so the leader waits in
/// vain for a successor.
const STOP: Duration = Duration::from_secs(1);
/// Holds the voters of a directory, so that it can be used again.
const FILE: &str = "quorum.json";

/// Three nodes in one directory.
pub(super) struct Cluster {
    dir: PathBuf,
    /// The nodes, by id from 1.
    pub(super) nodes: Vec<Node>,
}

/// One node.
pub(super) struct Node {
    pub(super) id: i32,
    pub(super) endpoint: Endpoint,
    config: PathBuf,
    log: PathBuf,
    child: Option<Child>,
    /// How it ended by itself, if it did.
    pub(super) ended: Option<String>,
}

/// What is said before anything else.
pub(super) struct FirstLine {
    pub(super) text: String,
    pub(super) json: String,
}

/// The content of [`FILE`].
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Quorum {
    cluster_id: String,
    ports: Vec<u16>,
    directory_ids: Vec<String>,
}

impl Cluster {
    /// Makes and formats the directory, or takes up one that was made before.
    pub(super) fn prepare(dir: &Path) -> Result<Cluster, Failure> {
        let cannot = |what: &str, error: io::Error| {
            Failure::new(format!("{}: cannot {what}: {error}", dir.display()))
                .next("give a directory that can be written with --dir")
        };
        fs::create_dir_all(dir).map_err(|error| cannot("be made", error))?;
        let dir = dir.canonicalize().map_err(|error| cannot("be found", error))?;
        let quorum = Quorum::load_or_make(&dir)?;
        let voters: Vec<String> = (1..)
            .zip(&quorum.ports)
            .zip(&quorum.directory_ids)
            .map(|((id, port), directory): ((i32, _), _)| {
                format!("{id}@127.0.0.1:{port}:{directory}")
            })
            .collect();
        let voters = voters.join(",");
        let servers: Vec<String> =
            quorum.ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        let mut nodes = Vec::new();
        for (id, port) in (1..).zip(&quorum.ports) {
            let home = dir.join(format!("node{id}"));
            fs::create_dir_all(&home).map_err(|error| cannot("be written", error))?;
            let config = home.join("controller.properties");
            let text = format!(
                "process.roles=controller\nnode.id={id}\ncontroller.listener.names=CONTROLLER\n\
                 listeners=CONTROLLER://127.0.0.1:{port}\ncontroller.quorum.bootstrap.servers={}\n\
                 log.dirs={}\n",
                servers.join(","),
                home.join("data").display()
            );
            fs::write(&config, text).map_err(|error| cannot("be written", error))?;
            let loaded = Config::load(&config)?;
            let plan = format::plan_latest(&loaded, &quorum.cluster_id, &voters)?;
            format::format(&plan, &mut io::sink())?;
            nodes.push(Node {
                id,
                endpoint: Endpoint::new("127.0.0.1", *port),
                config,
                log: home.join("log"),
                child: None,
                ended: None,
            });
        }
        Ok(Cluster { dir, nodes })
    }

    pub(super) fn first_line(&self) -> FirstLine {
        let endpoints: Vec<String> =
            self.nodes.iter().map(|node| node.endpoint.to_string()).collect();
        let json = serde_json::json!({ "directory": self.dir, "bootstrapControllers": endpoints });
        FirstLine {
            text: format!(
                "quorate dev: three voters at {}, in {}",
                endpoints.join(","),
                self.dir.display()
            ),
            json: json.to_string(),
        }
    }

    /// The directory.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Starts all nodes.
    pub(super) fn start_all(&mut self) -> Result<(), Failure> {
        self.nodes.iter_mut().try_for_each(Node::start)
    }

    /// Kills a running node, or starts one that is down.
    pub(super) fn toggle(&mut self, index: usize) -> Result<(), Failure> {
        let Some(node) = self.nodes.get_mut(index) else { return Ok(()) };
        if node.is_running() {
            node.kill();
            return Ok(());
        }
        node.start()
    }

    /// Stops all nodes in good order, and by force those that take too long.
    pub(super) fn stop(&mut self) {
        for node in &mut self.nodes {
            node.terminate();
        }
        let deadline = Instant::now() + STOP;
        while Instant::now() < deadline && self.nodes.iter_mut().any(Node::is_running) {
            std::thread::sleep(Duration::from_millis(20));
        }
        self.nodes.iter_mut().for_each(Node::kill);
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.nodes.iter_mut().for_each(Node::kill);
    }
}

impl Node {
    fn start(&mut self) -> Result<(), Failure> {
        let cannot = |error: io::Error| {
            Failure::new(format!("cannot start node {}: {error}", self.id)).exit(Exit::Internal)
        };
        let program = std::env::current_exe().map_err(cannot)?;
        let log = OpenOptions::new().create(true).append(true).open(&self.log).map_err(cannot)?;
        let child = Command::new(program)
            .arg("run")
            .arg("--config")
            .arg(&self.config)
            .args(["--workload", WORKLOAD, "--die-with-parent", &std::process::id().to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            // Ctrl-C is for us: we stop the nodes.
            .process_group(0)
            .spawn()
            .map_err(cannot)?;
        self.child = Some(child);
        self.ended = None;
        Ok(())
    }

    /// Whether its process lives; takes note of how it ended.
    pub(super) fn is_running(&mut self) -> bool {
        let Some(child) = &mut self.child else { return false };
        match child.try_wait() {
            Ok(None) => true,
            Ok(Some(status)) => {
                // Only a node that gave up by itself has said why.
                let last = status.code().and_then(|_| last_line(&self.log));
                let last = last.map_or_else(String::new, |last| format!(": {last}"));
                self.ended = Some(format!("{status}{last}"));
                self.child = None;
                false
            }
            Err(_) => false,
        }
    }

    fn terminate(&mut self) {
        if let Some(child) = &self.child
            && let Ok(id) = i32::try_from(child.id())
            && let Some(pid) = Pid::from_raw(id)
        {
            // A child that is not waited for keeps its id, so this can be no other process.
            let _ = kill_process(pid, Signal::TERM);
        }
    }

    /// SIGKILL, and wait.
    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
            self.ended = Some("killed".to_owned());
        }
    }
}

impl Quorum {
    fn load_or_make(dir: &Path) -> Result<Quorum, Failure> {
        let file = dir.join(FILE);
        let name = file.display().to_string();
        match fs::read(&file) {
            Ok(text) => serde_json::from_slice(&text)
                .ok()
                .filter(|quorum: &Quorum| {
                    quorum.ports.len() == NODES && quorum.directory_ids.len() == NODES
                })
                .ok_or_else(|| {
                    Failure::new(format!("{name}: is not what `quorate dev` wrote"))
                        .next("give another directory with --dir")
                }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let id = |_| uuid::random().map(|id| id.to_string());
                let quorum = Quorum {
                    cluster_id: uuid::random()?.to_string(),
                    ports: free_ports()?,
                    directory_ids: (0..NODES).map(id).collect::<Result<_, _>>()?,
                };
                let text = serde_json::to_vec_pretty(&quorum).unwrap_or_default();
                let written = fs::write(&file, text);
                written.map_err(|error| {
                    Failure::new(format!("{name}: cannot be written: {error}"))
                        .next("give a directory that can be written with --dir")
                })?;
                Ok(quorum)
            }
            Err(error) => Err(Failure::new(format!("{name}: cannot be read: {error}"))
                .next("give another directory with --dir")),
        }
    }
}

/// Ports that nobody listens on at this moment.
fn free_ports() -> Result<Vec<u16>, Failure> {
    let cannot = |error: io::Error| Failure::new(format!("no port on 127.0.0.1 is free: {error}"));
    // All at once, or they could be the same.
    let listeners: Vec<TcpListener> = (0..NODES)
        .map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
        .collect::<Result<_, _>>()
        .map_err(cannot)?;
    listeners
        .iter()
        .map(|listener| Ok(listener.local_addr()?.port()))
        .collect::<Result<_, _>>()
        .map_err(cannot)
}

/// The last line of a log, to say why a node ended.
fn last_line(log: &Path) -> Option<String> {
    const TAIL: u64 = 4096;
    let mut file = File::open(log).ok()?;
    let len = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(TAIL))).ok()?;
    let mut tail = Vec::new();
    file.take(TAIL).read_to_end(&mut tail).ok()?;
    String::from_utf8_lossy(&tail).lines().rfind(|line| !line.trim().is_empty()).map(str::to_owned)
}
