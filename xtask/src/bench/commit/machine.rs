//! What was measured on, and in which versions: without it no figure means anything.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::who::System;
use super::{etcd, kafka};
use crate::step::root;

/// Lines of Markdown.
pub(super) fn describe(systems: &[System], dir: &Path) -> String {
    let mut lines = of_quorate(dir);
    if systems.contains(&System::Etcd) {
        lines.push(format!("- etcd {}", etcd::version().unwrap_or_else(|_| UNKNOWN.to_owned())));
    }
    if systems.contains(&System::Kafka) {
        lines.push(of_kafka(kafka::VERSION));
    }
    lines.join("\n")
}

/// Of a measurement that has directories below `dir`.
pub(in crate::bench) fn of_quorate(dir: &Path) -> Vec<String> {
    vec![
        format!("- {}, {} cores, {} GiB of memory", processor(), cores(), memory_gib()),
        format!("- Linux {}, {}", kernel(), file_system(dir)),
        format!("- Quorate {}, {}", commit(), said("rustc", &["--version"])),
    ]
}

/// Of one that has Apache Kafka in it.
pub(in crate::bench) fn of_kafka(version: &str) -> String {
    format!("- Apache Kafka {version}, {}", said("java", &["--version"]))
}

const UNKNOWN: &str = "unknown";

fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    name.map_or(UNKNOWN, |(_, name)| name).to_owned()
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(0, usize::from)
}

fn memory_gib() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = total.and_then(|total| total.split_ascii_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0).div_ceil(1 << 20)
}

fn kernel() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    text.trim().to_owned()
}

/// Of the longest mount point that a directory lies below.
fn file_system(dir: &Path) -> String {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let below = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (point, kind) = (words.next()?, words.next()?);
        dir.starts_with(point).then_some((point.len(), kind))
    });
    below.max().map_or(UNKNOWN, |(_, kind)| kind).to_owned()
}

fn commit() -> String {
    let head = said("git", &["describe", "--always", "--dirty", "--abbrev=10"]);
    if head == UNKNOWN { env!("CARGO_PKG_VERSION").to_owned() } else { head }
}

/// The first line that a program prints.
fn said(program: &str, args: &[&str]) -> String {
    let mut command = Command::new(program);
    command.args(args).current_dir(root()).stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().ok().filter(|output| output.status.success());
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    text.and_then(|text| Some(text.lines().next()?.trim().to_owned()))
        .unwrap_or_else(|| UNKNOWN.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_tells_something() {
        let text = describe(&[System::Etcd], Path::new("/"));
        assert_eq!(text.lines().count(), 4, "{text}");
        assert!(text.contains("Linux") && text.contains("etcd v3.6."), "{text}");
        assert!(cores() > 0 && memory_gib() > 0);
    }
}
