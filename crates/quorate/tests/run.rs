//! `quorate run`, `quorum describe` and `dev` as scripts meet them: exit codes, lines, and what stops what.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a node logs when it becomes leader, with the epoch behind it.
const LEADER: &str = ": leader epoch=";

fn quorate<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Output {
    Command::new(env!("CARGO_BIN_EXE_quorate")).args(args).output().expect("the command runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("an address").port()
}

/// A node's configuration in a place of its own.
struct Home {
    place: TempDir,
    port: u16,
}

impl Home {
    fn new(more: &str) -> Home {
        let home = Home { place: tempfile::tempdir().expect("a directory"), port: free_port() };
        let (port, data) = (home.port, home.data());
        let properties = format!(
            "process.roles=controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n\
             listeners=CONTROLLER://127.0.0.1:{port}\n\
             controller.quorum.bootstrap.servers=127.0.0.1:{port}\nlog.dirs={}\n{more}\n",
            data.display()
        );
        fs::write(home.config(), properties).expect("written");
        home
    }

    fn formatted(more: &str) -> Home {
        let home = Home::new(more);
        let output = quorate(["format", "-t", "cluster", "-s", "-c", &home.config()]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        home
    }

    fn config(&self) -> String {
        self.place.path().join("controller.properties").display().to_string()
    }

    fn data(&self) -> PathBuf {
        self.place.path().join("data")
    }

    fn log(&self) -> String {
        fs::read_to_string(self.place.path().join("log")).unwrap_or_default()
    }

    fn endpoint(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn start(&self, more: &[&str]) -> Running {
        let log = File::create(self.place.path().join("log")).expect("created");
        let child = Command::new(env!("CARGO_BIN_EXE_quorate"))
            .args(["run", "-c", &self.config()])
            .args(more)
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn();
        Running(child.expect("the command runs"))
    }

    fn wait_for(&self, line: &str) {
        let start = Instant::now();
        while !self.log().contains(line) {
            assert!(start.elapsed() < PATIENCE, "no {line:?} in\n{}", self.log());
            sleep(Duration::from_millis(20));
        }
    }

    /// Runs the node, which must end by itself.
    fn refused(&self) -> (Option<i32>, String) {
        let output = quorate(["run", "-c", &self.config()]);
        (output.status.code(), text(&output.stderr))
    }
}

/// A process that does not outlive its test.
struct Running(Child);

impl Running {
    fn pid(&self) -> Pid {
        Pid::from_child(&self.0)
    }

    fn stop(mut self) -> Option<i32> {
        kill_process(self.pid(), Signal::TERM).expect("it runs");
        self.0.wait().expect("it ends").code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_controller_leads_acknowledges_and_hands_over() {
    let home = Home::formatted("");
    let mut last_epoch = 0;
    for _ in 1..=2 {
        let mut node = home.start(&["--workload", "inflight=8,size=100,rate=200"]);
        home.wait_for(LEADER);
        let log = home.log();
        let epoch = log.split_once(LEADER).and_then(|(_, rest)| rest.lines().next()).expect("it");
        let lines = BufReader::new(node.0.stdout.take().expect("a pipe")).lines();
        let acks: Vec<String> = lines.take(20).map(|line| line.expect("text")).collect();
        let mut ids = Vec::new();
        let mut offsets = Vec::new();
        for ack in &acks {
            let words: Vec<&str> = ack.split(' ').collect();
            let ["ack", id, offset, epoch] = words[..] else { panic!("{ack}") };
            assert_eq!((id.len(), epoch), (32, epoch), "{ack}");
            ids.push(id.to_owned());
            offsets.push(offset.parse::<i64>().expect("an offset"));
        }
        assert!(offsets.is_sorted_by(|a, b| a < b), "{offsets:?}");
        assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");

        let output = quorate(["quorum", "describe", "--bootstrap-controller", &home.endpoint()]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let status = text(&output.stdout);
        assert!(
            status.starts_with("ClusterId:              cluster\nLeaderId:               1\n"),
            "{status}"
        );
        assert_eq!(node.stop(), Some(0), "{}", home.log());
        let epoch = epoch.parse().expect("a number");
        assert!(epoch > last_epoch, "{epoch} after {last_epoch}");
        last_epoch = epoch;
    }
}

/// A Java node stops at a metadata.version that it does not know.
#[test]
fn a_workload_begins_with_the_metadata_version_of_the_directory() {
    for (flags, level) in [
        (&["--layout", "4.0"][..], 25),
        (&["--layout", "4.0", "--release-version", "4.2"], 29),
        (&["--release-version", "4.2"], 29),
        (&[], 33),
    ] {
        let home = Home::new("");
        let (config, log_dir) = (home.config(), home.data().join("__cluster_metadata-0"));
        let format = ["format", "-t", "cluster", "-s", "-c", &config];
        let output = quorate([&format[..], flags].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let mut node = home.start(&["--workload", "rate=200"]);
        let mut ack = String::new();
        BufReader::new(node.0.stdout.take().expect("a pipe")).read_line(&mut ack).expect("text");
        assert!(ack.starts_with("ack "), "{ack}");
        assert_eq!(node.stop(), Some(0), "{}", home.log());
        let segment = log_dir.join("00000000000000000000.log").display().to_string();
        let dump = text(&quorate(["log", "dump", &segment]).stdout);
        let first = dump.lines().find(|line| line.contains("\"type\":")).expect("a record");
        let record = format!("\"name\":\"metadata.version\",\"featureLevel\":{level}");
        assert!(first.contains(&record), "{flags:?}: {first}");
    }
}

#[test]
fn a_workload_without_a_reader_ends_and_the_node_goes_on() {
    let home = Home::formatted("");
    let mut node = home.start(&["--workload", "inflight=8,rate=0"]);
    drop(node.0.stdout.take());
    home.wait_for("nobody reads stdout");
    assert_eq!(node.stop(), Some(0), "{}", home.log());
}

#[test]
fn a_measured_workload_prints_its_marks_and_one_report_and_the_node_goes_on() {
    let home = Home::formatted("");
    let mut node = home.start(&["--workload", "inflight=4,size=100,seconds=0.3,warmup=0.1"]);
    let lines = BufReader::new(node.0.stdout.take().expect("a pipe")).lines();
    let lines: Vec<String> = lines.take(3).map(|line| line.expect("text")).collect();
    let [begins, ends, report] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!((begins.as_str(), ends.as_str()), ("begins", "ends"));
    let report: Value = serde_json::from_str(report).expect("JSON");
    let count = |name: &str| report[name].as_u64().unwrap_or_else(|| panic!("{name} in {report}"));
    assert!(count("records") >= 4 && count("records") == 4 * count("appends"), "{report}");
    // Each append was synced before it was committed: there is one voter.
    assert!(count("durable_groups").abs_diff(count("appends")) <= 2, "{report}");
    assert_eq!(["not_appended", "unknown", "unfinished"].map(count), [0; 3], "{report}");
    let latency = |name: &str| report["latency_us"][name].as_f64().expect(name);
    assert!(latency("p50") > 0.0 && latency("p50") <= latency("max"), "{report}");
    home.wait_for("it was measured");
    let output = quorate(["quorum", "describe", "--bootstrap-controller", &home.endpoint()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(node.stop(), Some(0), "{}", home.log());
}

#[test]
fn a_directory_that_is_not_this_nodes_is_refused_with_its_own_code() {
    let unformatted = Home::new("");
    let (code, message) = unformatted.refused();
    assert!(code == Some(2) && message.contains("is not formatted"), "{code:?} {message}");

    let home = Home::formatted("");
    let node = home.start(&[]);
    home.wait_for(LEADER);
    let (code, message) = home.refused();
    assert!(code == Some(2) && message.contains("is locked"), "{code:?} {message}");
    assert_eq!(node.stop(), Some(0));

    let properties = fs::read_to_string(home.config()).expect("readable");
    fs::write(home.config(), properties.replace("node.id=1", "node.id=2")).expect("written");
    let (code, message) = home.refused();
    assert!(
        code == Some(2) && message.contains("node.id is 1, but 2 is expected"),
        "{code:?} {message}"
    );
    fs::write(home.config(), properties).expect("written");

    let state = home.data().join("__cluster_metadata-0/quorum-state");
    fs::write(&state, "{").expect("written");
    let (code, message) = home.refused();
    assert!(code == Some(2) && message.contains("quorum-state"), "{code:?} {message}");
    assert_eq!(
        fs::read_to_string(&state).expect("readable"),
        "{",
        "a damaged file is not replaced"
    );
}

#[test]
fn a_bad_configuration_is_refused_as_such() {
    for (more, expected) in [
        ("process.roles=broker,controller", "Quorate is a controller alone"),
        ("listener.security.protocol.map=CONTROLLER:SSL", "does not speak"),
        (
            "controller.quorum.fetch.timeout.ms=2s",
            "controller.quorum.fetch.timeout.ms=2s is not a whole number",
        ),
    ] {
        let home = Home::new(more);
        let (code, message) = home.refused();
        assert!(code == Some(1) && message.contains(expected), "{more}: {code:?} {message}");
        assert!(!home.data().exists());
    }
    let home = Home::formatted("");
    let _taken = TcpListener::bind((Ipv4Addr::LOCALHOST, home.port)).expect("free until now");
    let (code, message) = home.refused();
    assert!(code == Some(1) && message.contains(&home.endpoint()), "{code:?} {message}");
    assert_eq!(
        quorate(["run", "-c", &home.config(), "--workload", "speed=1"]).status.code(),
        Some(1)
    );
}

#[test]
fn without_a_leader_the_nodes_say_why() {
    let home = Home::new("controller.quorum.election.timeout.ms=100");
    let silent = free_port();
    let voters = format!(
        "1@127.0.0.1:{}:QuorateDirOfNode001AAA,2@127.0.0.1:{silent}:QuorateDirOfNode002AAA",
        home.port
    );
    let output = quorate(["format", "-t", "cluster", "-I", &voters, "-c", &home.config()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let node = home.start(&[]);
    home.wait_for("election round");
    let describe = ["quorum", "describe", "--timeout", "0", "--bootstrap-controller"];
    let output = quorate(describe.iter().copied().chain([home.endpoint().as_str()]));
    assert_eq!(output.status.code(), Some(1));
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(err.starts_with("there is no leader"), "{err}");
    for expected in [
        "There is no leader: 1 of 2 voters can be reached, and 2 are needed.\n".to_owned(),
        format!("node 1 ({}): ", home.endpoint()),
        "node 2 could not be asked: connection-refused\n".to_owned(),
        format!("\nnode 2 (127.0.0.1:{silent}): Connection refused"),
    ] {
        assert!(out.contains(&expected), "no {expected:?} in\n{out}");
    }
    let output = quorate(describe.iter().copied().chain([home.endpoint().as_str(), "--json"]));
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((output.status.code(), &json["leaderId"]), (Some(1), &Value::from(-1)));
    assert_eq!(json["replicas"][0]["lastRound"]["answers"][0]["kind"], "connection-refused");
    assert_eq!(node.stop(), Some(0), "{}", home.log());

    let nobody = quorate(describe.iter().copied().chain([home.endpoint().as_str()]));
    assert_eq!(nobody.status.code(), Some(1));
    assert!(text(&nobody.stderr).starts_with("no controller answers: "));
}

/// `dev --json` in a directory, until it has a leader.
fn dev(dir: &Path) -> (Running, Vec<Value>) {
    let child = Command::new(env!("CARGO_BIN_EXE_quorate"))
        .args(["dev", "--json", "--dir"])
        .arg(dir)
        .stdout(Stdio::piped())
        .spawn();
    let mut dev = Running(child.expect("the command runs"));
    let mut seen = Vec::new();
    let start = Instant::now();
    for line in BufReader::new(dev.0.stdout.take().expect("a pipe")).lines() {
        let value: Value = serde_json::from_str(&line.expect("text")).expect("JSON");
        let leads = value["leaderId"].as_i64().is_some_and(|id| id > 0);
        seen.push(value);
        if leads {
            break;
        }
        assert!(start.elapsed() < PATIENCE, "no leader: {seen:?}");
    }
    (dev, seen)
}

/// The processes that run with a configuration in this directory.
fn nodes_in(dir: &Path) -> Vec<Pid> {
    let dir = dir.display().to_string();
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    entries
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let command = fs::read(entry.path().join("cmdline")).ok()?;
            let command = String::from_utf8_lossy(&command).into_owned();
            (command.contains("\0run\0") && command.contains(&dir)).then(|| Pid::from_raw(pid))?
        })
        .collect()
}

/// Whether a process is gone, or a zombie, whose files are closed: its command line is gone before its locks are.
fn has_ended(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    let state = stat.ok().and_then(|stat| stat.rsplit(") ").next()?.chars().next());
    state.is_none_or(|state| matches!(state, 'Z' | 'X'))
}

#[test]
fn dev_has_a_leader_goes_on_in_its_directory_and_leaves_no_orphans() {
    let place = tempfile::tempdir().expect("a directory");
    let dir = place.path().canonicalize().expect("it exists").join("quorum");
    let (mut first, seen) = dev(&dir);
    assert_eq!(seen[0]["bootstrapControllers"].as_array().map(Vec::len), Some(3));
    let nodes = nodes_in(&dir);
    assert_eq!(nodes.len(), 3);
    first.0.kill().expect("it runs");
    first.0.wait().expect("it ends");
    let start = Instant::now();
    while !nodes.iter().all(|pid| has_ended(*pid)) {
        assert!(start.elapsed() < PATIENCE, "orphans: {:?}", nodes_in(&dir));
        sleep(Duration::from_millis(20));
    }

    let (second, again) = dev(&dir);
    assert_eq!(again[0], seen[0], "the same addresses");
    let epoch = |seen: &[Value]| seen.last().and_then(|last| last["leaderEpoch"].as_i64());
    assert!(epoch(&again) > epoch(&seen), "a new epoch of the same log");
    assert_eq!(second.stop(), Some(0));
    assert_eq!(nodes_in(&dir), []);
}
