//! What a process has used so far, from `/proc`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Processor, wake-ups and memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    /// In its own code and in the kernel.
    pub(crate) cpu_seconds: f64,
    /// Voluntary context switches of the threads that it has.
    pub(crate) switches: u64,
    /// Memory in use, in KiB.
    pub(crate) resident_kib: u64,
    /// The most memory that it ever had in use, in KiB.
    pub(crate) peak_kib: u64,
}

/// Reads what a process has used.
pub(crate) fn of(pid: u32) -> Result<Usage> {
    let proc = Path::new("/proc").join(pid.to_string());
    let text =
        |path: PathBuf| fs::read_to_string(&path).with_context(|| path.display().to_string());
    // The second field is the name, in parentheses; times are the 14th and 15th, in hundredths of a second.
    let stat = text(proc.join("stat"))?;
    let fields: Vec<&str> =
        stat.rsplit_once(") ").context("stat has no name")?.1.split_ascii_whitespace().collect();
    let ticks = |field: usize| -> Result<u64> {
        Ok(fields.get(field - 3).context("stat is too short")?.parse()?)
    };
    let cpu_seconds = (ticks(14)? + ticks(15)?) as f64 / 100.0;
    let mut switches = 0;
    let task = proc.join("task");
    for task in fs::read_dir(&task).with_context(|| task.display().to_string())? {
        // A thread may end between the listing and the reading.
        if let Ok(status) = fs::read_to_string(task?.path().join("status")) {
            switches += field(&status, "voluntary_ctxt_switches:")?;
        }
    }
    let status = text(proc.join("status"))?;
    let (resident_kib, peak_kib) = (field(&status, "VmRSS:")?, field(&status, "VmHWM:")?);
    Ok(Usage { cpu_seconds, switches, resident_kib, peak_kib })
}

fn field(status: &str, name: &str) -> Result<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix(name));
    let number = value.and_then(|value| value.split_ascii_whitespace().next());
    Ok(number.with_context(|| format!("no {name}"))?.parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_something() {
        let before = of(std::process::id()).expect("this process");
        assert!(before.resident_kib > 0 && before.peak_kib >= before.resident_kib);
        let start = std::time::Instant::now();
        while start.elapsed().as_millis() < 300 {}
        let after = of(std::process::id()).expect("this process");
        assert!(after.cpu_seconds > before.cpu_seconds, "{before:?} {after:?}");
    }
}
