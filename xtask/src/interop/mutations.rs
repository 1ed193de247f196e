//! `cargo xtask interop mutations`: recorded frames of Kafka's with random changes, against a quorum that runs.
//!
//! Each mutation goes to a node over a connection of its own, which then ends: the node answers, or closes it. Their
//! cluster id is the quorum's, so that what still decodes goes all the way. Some of it is a vote of a higher epoch,
//! which by the protocol deposes the leader: the quorum elects again, and goes on.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use quorate_rpc::api_versions::SERVED;
use quorate_wire::message::ApiKey;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

use super::quorum::{Make, Plan, Quorum};
use crate::kafka::Release;
use crate::step::{root, step};

/// Flags of `cargo xtask interop mutations`.
#[derive(clap::Args)]
pub(super) struct Options {
    /// How many.
    #[arg(long, default_value_t = 200_000)]
    count: u64,
    /// Chooses the mutations.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

const CHECK: &str = "interop mutations";
/// Whose frames they are: most of the recorded ones name this cluster.
const CLUSTER: &str = "1aQDHr_LSE2otbLmze5Ozg";
/// The other cluster that recorded frames name.
const OTHER_CLUSTER: &str = "6UXafv9RQ2KAafqUFzv8Qw";
const NODES: i32 = 3;
const SENDERS: u64 = 16;
/// How long a whole frame may wait for its answer before its sender hangs up: a parked Fetch waits longer.
const HANG_UP: Duration = Duration::from_millis(200);
/// How long a node may take to answer a whole frame or to close.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long the quorum may go without a commit, elections included.
const LONGEST_GAP: Duration = Duration::from_secs(60);
/// What a node may use: its bounds on frames and answers are larger, but nobody sends so much here.
const MOST_MEMORY_KIB: u64 = 256 << 10;

pub(super) fn run(options: &Options, binary: &Path, dir: &Path) -> Result<String> {
    let mut quorum = None;
    step(CHECK, "start", || {
        let args =
            ["--workload", "inflight=4,size=100,rate=200", "--log", "error,quorate_node=info"];
        let plan = || Plan {
            make: Make::Quorate(args.map(str::to_owned).to_vec()),
            properties: String::new(),
        };
        let controllers = (0..NODES).map(|_| plan()).collect();
        let any = Release::of_family("4.4");
        let made = Quorum::format(binary, dir, Some(CLUSTER), false, &any, controllers, None)?;
        let quorum = quorum.insert(made);
        (1..=NODES).try_for_each(|id| quorum.start(id))?;
        quorum.wait_for_leader(0)?;
        Ok(String::new())
    })?;
    let mut quorum = quorum.context("started")?;
    step(CHECK, "frames as they are", || as_they_are(&quorum))?;
    let mut figures = String::new();
    step(CHECK, &format!("{} mutations", options.count), || {
        figures = attack(&mut quorum, options)?;
        Ok(figures.clone())
    })?;
    step(CHECK, "logs compared", || {
        let compared = quorum.compare()?;
        quorum.end_all()?;
        Ok(format!("{} bytes below offset {}", compared.bytes, compared.records))
    })?;
    Ok(figures)
}

/// Every frame of an API that ApiVersions lists is answered as it was recorded, and every other closes its connection.
fn as_they_are(quorum: &Quorum) -> Result<String> {
    let (mut answered, mut closed) = (0, 0);
    for frame in &frames()? {
        let api = frame.get(4..6).and_then(|api| <[u8; 2]>::try_from(api).ok());
        let api = i16::from_be_bytes(api.context("a frame without a header")?);
        let version = frame.get(6..8).and_then(|version| <[u8; 2]>::try_from(version).ok());
        let version = i16::from_be_bytes(version.context("a frame without a header")?);
        let served = ApiKey::from_code(api).filter(|api| SERVED.contains(api));
        // ApiVersions of a later version is answered too, with the versions that there are.
        let is_served = served.is_some_and(|served| {
            served == ApiKey::ApiVersions || served.versions().contains(&version)
        });
        let is_answered = matches!(send(quorum.port(1)?, frame)?, Fate::Answered);
        if is_answered != is_served {
            bail!("API {api} version {version}: served {is_served}, answered {is_answered}");
        }
        if is_answered { answered += 1 } else { closed += 1 }
    }
    Ok(format!("{answered} answered, {closed} of APIs that are not served closed"))
}

#[derive(Default)]
struct Counts {
    sent: AtomicU64,
    answered: AtomicU64,
    closed: AtomicU64,
    /// Neither answered nor closed in time.
    hung: AtomicU64,
}

fn attack(quorum: &mut Quorum, options: &Options) -> Result<String> {
    let frames = frames()?;
    let ports: Vec<u16> = (1..=NODES).map(|id| quorum.port(id)).collect::<Result<_>>()?;
    let counts = Counts::default();
    let mut watch = Watch::new(quorum)?;
    thread::scope(|scope| {
        let senders: Vec<_> = (0..SENDERS)
            .map(|sender| {
                let seed = options.seed.wrapping_mul(1000).wrapping_add(sender);
                let share = options.count / SENDERS + u64::from(sender < options.count % SENDERS);
                let (frames, ports, counts) = (&frames, &ports, &counts);
                scope.spawn(move || send_all(seed, share, frames, ports, counts))
            })
            .collect();
        let mut result = Ok(());
        while result.is_ok() && senders.iter().any(|sender| !sender.is_finished()) {
            thread::sleep(Duration::from_millis(500));
            result = watch.look(quorum);
            if counts.hung.load(Ordering::Relaxed) > 0 {
                result = result
                    .and_then(|()| bail!("a node neither answered nor closed within {PATIENCE:?}"));
            }
        }
        if result.is_err() {
            // The senders end with the nodes.
            quorum.kill_all();
        }
        for sender in senders {
            match sender.join() {
                Ok(sent) if result.is_ok() => sent?,
                Ok(_) => {}
                Err(_) => bail!("a sender panicked"),
            }
        }
        result
    })?;
    let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
    if get(&counts.answered) * 10 < get(&counts.sent) {
        bail!("{} of {} were answered: too few decode", get(&counts.answered), get(&counts.sent));
    }
    Ok(format!(
        "{} mutations of {} frames, {} answered and {} closed; {} commits, the longest gap {:.1} s, {} elections; {} MiB \
         of memory at most",
        get(&counts.sent),
        frames.len(),
        get(&counts.answered),
        get(&counts.closed),
        watch.commits,
        watch.longest_gap.as_secs_f64(),
        watch.elections,
        watch.most_kib >> 10
    ))
}

/// What the nodes say and take meanwhile.
struct Watch {
    logs: Vec<(PathBuf, u64)>,
    commits: usize,
    elections: usize,
    last_commit: Instant,
    longest_gap: Duration,
    most_kib: u64,
}

impl Watch {
    fn new(quorum: &Quorum) -> Result<Watch> {
        let logs = quorum.controllers().map(|node| (node.log(), 0)).collect();
        let mut watch = Watch {
            logs,
            commits: 0,
            elections: 0,
            last_commit: Instant::now(),
            longest_gap: Duration::ZERO,
            most_kib: 0,
        };
        watch.read_logs()?;
        watch.elections = 0;
        watch.commits = 0;
        Ok(watch)
    }

    fn read_logs(&mut self) -> Result<()> {
        for (path, position) in &mut self.logs {
            let mut file = File::open(&path).with_context(|| path.display().to_string())?;
            file.seek(SeekFrom::Start(*position))?;
            let mut text = Vec::new();
            file.read_to_end(&mut text)?;
            let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
            *position += u64::try_from(whole)?;
            let text = String::from_utf8_lossy(text.get(..whole).unwrap_or_default());
            self.commits += text.lines().filter(|line| line.starts_with("ack ")).count();
            self.elections += text.lines().filter(|line| line.contains("leader epoch=")).count();
        }
        Ok(())
    }

    fn look(&mut self, quorum: &mut Quorum) -> Result<()> {
        quorum.check()?;
        let before = self.commits;
        self.read_logs()?;
        let gap = self.last_commit.elapsed();
        self.longest_gap = self.longest_gap.max(gap);
        if self.commits > before {
            self.last_commit = Instant::now();
        } else if gap > LONGEST_GAP {
            bail!("nothing was committed for {LONGEST_GAP:?}");
        }
        self.most_kib = self.most_kib.max(quorum.most_resident_kib()?);
        if self.most_kib > MOST_MEMORY_KIB {
            bail!("a node uses {} MiB", self.most_kib >> 10);
        }
        Ok(())
    }
}

fn send_all(
    seed: u64,
    count: u64,
    frames: &[Vec<u8>],
    ports: &[u16],
    counts: &Counts,
) -> Result<()> {
    let mut chance = Chance(Xoshiro256PlusPlus::seed_from_u64(seed));
    for _ in 0..count {
        let (frame, port) = (chance.pick(frames), *chance.pick(ports));
        let mutated = mutate(frame, &mut chance);
        counts.sent.fetch_add(1, Ordering::Relaxed);
        let count = match send(port, &mutated)? {
            Fate::Answered => &counts.answered,
            Fate::Closed => &counts.closed,
            Fate::Hung => &counts.hung,
        };
        count.fetch_add(1, Ordering::Relaxed);
        if counts.hung.load(Ordering::Relaxed) > 0 {
            return Ok(());
        }
    }
    Ok(())
}

enum Fate {
    Answered,
    Closed,
    Hung,
}

fn send(port: u16, bytes: &[u8]) -> Result<Fate> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).context("no connection")?;
    stream.set_nodelay(true)?;
    // A node that has seen enough may have closed already.
    if stream.write_all(bytes).is_err() {
        return Ok(Fate::Closed);
    }
    let size = bytes.first_chunk().map(|size| i64::from(i32::from_be_bytes(*size)));
    let is_whole = size == i64::try_from(bytes.len()).ok().map(|len| len - 4);
    // Of half a frame the node is waiting for the rest.
    if is_whole {
        stream.set_read_timeout(Some(HANG_UP))?;
        match read(&mut stream) {
            Fate::Hung => {}
            fate => return Ok(fate),
        }
    }
    if stream.shutdown(Shutdown::Write).is_err() {
        return Ok(Fate::Closed);
    }
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(read(&mut stream))
}

fn read(stream: &mut TcpStream) -> Fate {
    match stream.read(&mut [0; 4]) {
        Ok(0) => Fate::Closed,
        Ok(_) => Fate::Answered,
        Err(error) => match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Fate::Hung,
            _ => Fate::Closed,
        },
    }
}

struct Chance(Xoshiro256PlusPlus);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound.max(1)).unwrap_or(u64::MAX);
        usize::try_from(self.0.next_u64() % bound).unwrap_or(0)
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let at = self.below(from.len());
        &from[at]
    }

    fn byte(&mut self) -> u8 {
        let [first, ..] = self.0.next_u64().to_le_bytes();
        first
    }
}

/// Half of them one change of a bit, a byte or a field of four, which mostly still decodes; the others up to four changes,
/// bytes more or fewer and a cut end among them.
fn mutate(frame: &[u8], chance: &mut Chance) -> Vec<u8> {
    let mut frame = frame.to_vec();
    let (changes, kinds) = if chance.below(2) == 0 { (1, 3) } else { (1 + chance.below(4), 6) };
    for _ in 0..changes {
        let at = chance.below(frame.len());
        match chance.below(kinds) {
            0 => frame[at] ^= 1 << chance.below(8),
            1 => frame[at] = chance.byte(),
            2 => {
                let end = (at + 4).min(frame.len());
                let with = *chance.pick(&[0, 0xff, 0x7f, 0x80]);
                frame[at..end].fill(with);
            }
            3 => frame.truncate(at.max(1)),
            4 => frame.insert(at, chance.byte()),
            _ if frame.len() > 1 => {
                frame.remove(at);
            }
            _ => {}
        }
    }
    // In most cases the size fits, or nothing behind it would be looked at.
    if chance.below(8) != 0
        && let Some(len) = frame.len().checked_sub(4).and_then(|len| i32::try_from(len).ok())
        && let Some(size) = frame.get_mut(..4)
    {
        size.copy_from_slice(&len.to_be_bytes());
    }
    frame
}

/// The recorded requests, all of them of our cluster.
fn frames() -> Result<Vec<Vec<u8>>> {
    let path = root().join("testdata/wire/frames.jsonl");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let mut frames = Vec::new();
    for line in text.lines() {
        let json: serde_json::Value = serde_json::from_str(line)?;
        if json.get("direction").and_then(|direction| direction.as_str()) != Some("request") {
            continue;
        }
        let digits = json.get("hex").and_then(|hex| hex.as_str()).context("a frame without hex")?;
        let mut frame = Vec::new();
        for at in (0..digits.len()).step_by(2) {
            let byte = digits.get(at..at + 2).context("half a byte")?;
            frame.push(u8::from_str_radix(byte, 16)?);
        }
        let other = OTHER_CLUSTER.as_bytes();
        if let Some(at) = frame.windows(other.len()).position(|bytes| bytes == other) {
            frame[at..at + other.len()].copy_from_slice(CLUSTER.as_bytes());
        }
        frames.push(frame);
    }
    if frames.is_empty() {
        bail!("{} has no requests", path.display());
    }
    Ok(frames)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutations_differ_from_their_frames_and_repeat_by_seed() {
        let frames = frames().expect("the recorded frames");
        let all = |seed| {
            let mut chance = Chance(Xoshiro256PlusPlus::seed_from_u64(seed));
            let mutated = frames.iter().map(|frame| mutate(frame, &mut chance));
            mutated.collect::<Vec<_>>()
        };
        assert_eq!(all(1), all(1));
        let changed = all(2).iter().zip(&frames).filter(|(a, b)| a != b).count();
        assert!(changed * 10 > frames.len() * 9, "{changed} of {}", frames.len());
        let named = |id: &str| {
            let id = id.as_bytes();
            frames.iter().filter(|frame| frame.windows(id.len()).any(|bytes| bytes == id)).count()
        };
        assert!(named(CLUSTER) > 40 && named(OTHER_CLUSTER) == 0);
    }
}
