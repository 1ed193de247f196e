//! The command: the same seed is the same run in another process, and an interrupted run goes on where it was.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const SIM: &str = env!("CARGO_BIN_EXE_quorate-sim");

fn sim(arguments: &[&str]) -> Output {
    Command::new(SIM).args(arguments).output().unwrap()
}

fn last_line(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).lines().last().unwrap_or_default().to_owned()
}

#[test]
fn two_processes_agree_on_every_seed() {
    let output = sim(&["--seeds", "3", "--against", SIM]);
    let last = last_line(&output);
    assert!(output.status.success(), "{last}");
    assert!(last.starts_with("PASS sim: default: 3 seeds give the same digests"), "{last}");
}

#[test]
fn a_run_that_is_killed_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("done");
    let resume = ["--scenario", "slow-start", "--seeds", "150", "--resume"];
    let resumed = [&resume[..], &[file.to_str().unwrap()]].concat();
    let mut first = Command::new(SIM).args(&resumed).stdout(Stdio::null()).spawn().unwrap();
    let patience = Instant::now() + Duration::from_secs(60);
    while !file.exists() {
        assert!(Instant::now() < patience, "nothing is noted");
        std::thread::sleep(Duration::from_millis(2));
    }
    first.kill().unwrap();
    first.wait().unwrap();
    let done = noted(&file);
    assert!((1..150).contains(&done), "{done} seeds were done when it was killed");

    let rest = sim(&resumed);
    let whole = sim(&resume[..4]);
    assert!(rest.status.success() && whole.status.success());
    let digest = |output: &Output| last_line(output).rsplit_once("events").unwrap().1.to_owned();
    assert_eq!(digest(&rest), digest(&whole), "records and digest");
    assert!(last_line(&rest).contains("150 seeds,"));
    assert_eq!(noted(&file), 150);
    // All is done: a third start runs nothing.
    assert_eq!(digest(&sim(&resumed)), digest(&whole));
}

fn noted(file: &Path) -> u64 {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().nth(1).unwrap().split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn unknown_names_are_told_with_the_known_ones() {
    let output = sim(&["--without", "one-vot"]);
    assert!(!output.status.success());
    let last = last_line(&output);
    assert!(
        last.starts_with("FAIL sim: no checker is named one-vot") && last.contains("one-vote,")
    );
    let listed = sim(&["--list"]);
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.contains("checker one-vote\n") && listed.contains("\npower-cuts "));
}
