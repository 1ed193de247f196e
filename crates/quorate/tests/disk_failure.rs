//! `quorate run` on a disk that fails while it runs: it says so, promises nothing more, and exits with its own code.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A process that does not outlive its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_disk_that_fails_while_it_runs_ends_the_process_with_code_3() {
    let place = tempfile::tempdir().expect("a directory");
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .expect("a free port")
        .port();
    let (config, log) = (place.path().join("controller.properties"), place.path().join("log"));
    let properties = format!(
        "process.roles=controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n\
         listeners=CONTROLLER://127.0.0.1:{port}\n\
         controller.quorum.bootstrap.servers=127.0.0.1:{port}\nlog.dirs={}\n",
        place.path().join("data").display()
    );
    fs::write(&config, properties).expect("written");
    let format = Command::new(env!("CARGO_BIN_EXE_quorate"))
        .args(["format", "-t", "cluster", "-s", "-c"])
        .arg(&config)
        .output()
        .expect("the command runs");
    assert!(format.status.success(), "{}", String::from_utf8_lossy(&format.stderr));

    // No file may grow beyond 256 KiB (512 where the shell counts in larger blocks): writes to the log fail then as on a full disk (EFBIG). The signal that the
    // kernel sends with that error is ignored, in the shell and what it becomes.
    let limited = r#"trap '' XFSZ; ulimit -f "$1"; shift; exec "$@""#;
    let blocks = (256 << 10) / 512;
    let child = Command::new("sh")
        .args([
            "-c",
            limited,
            "sh",
            &blocks.to_string(),
            env!("CARGO_BIN_EXE_quorate"),
            "run",
            "-c",
        ])
        .arg(&config)
        .args(["--workload", "inflight=8,size=2000,rate=0"])
        .stdout(Stdio::piped())
        .stderr(fs::File::create(&log).expect("created"))
        .spawn();
    let mut node = Running(child.expect("the command runs"));
    let stdout = node.0.stdout.take().expect("a pipe");
    let outcomes = std::thread::spawn(move || {
        let lines = BufReader::new(stdout).lines();
        lines.map(|line| line.expect("text")).collect::<Vec<String>>()
    });
    let start = Instant::now();
    let status = loop {
        if let Some(status) = node.0.try_wait().expect("it can be asked") {
            break status;
        }
        let log = fs::read_to_string(&log).unwrap_or_default();
        assert!(start.elapsed() < PATIENCE, "it still runs:\n{log}");
        std::thread::sleep(Duration::from_millis(20));
    };
    let log = fs::read_to_string(&log).expect("readable");
    assert_eq!(status.code(), Some(3), "{log}");
    for expected in
        ["File too large", ".log", "the node promised nothing from then on; repair the disk"]
    {
        assert!(log.contains(expected), "no {expected:?} in\n{log}");
    }

    let outcomes = outcomes.join().expect("it reads");
    let first_unsure = outcomes.iter().position(|line| !line.starts_with("ack ")).expect("some");
    assert!(first_unsure > 10, "it worked before: {outcomes:?}");
    for line in &outcomes[first_unsure..] {
        assert!(
            line.starts_with("unknown ") || line.starts_with("notappended "),
            "nothing is acknowledged after the failure: {line}"
        );
    }
}
