//! One node's start, up to its first vote.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use quorate_wire::Message;
use quorate_wire::frame::encode_request;
use quorate_wire::message::{
    ApiKey, ResponseHeader, VoteRequest, VoteRequestPartition, VoteRequestTopic, VoteResponse,
    response_header_version,
};
use rustix::process::{Pid, Signal, kill_process};

use super::load::mib;
use crate::interop::process::End;
use crate::interop::quorum::Quorum;
use crate::kill_loop::build::Binary;
use crate::usage;

/// A start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    /// From before the process was made until it had granted a vote, which it keeps on disk.
    pub(super) vote_ms: f64,
    /// In use a while after that.
    pub(super) mib: f64,
}

/// How long a start may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// After it memory is looked at; well below the time after which the node would campaign itself.
const SETTLING: Duration = Duration::from_millis(300);
/// How often the listener is tried.
const TRY_EVERY: Duration = Duration::from_micros(200);

const VERSION: i16 = 2;

/// Starts node 1 alone, asks it for its vote in `epoch`, which must be later than all it knows, and ends it.
pub(super) fn measure(binary: &Binary, quorum: &Quorum, epoch: i32, how: End) -> Result<Start> {
    let address = (Ipv4Addr::LOCALHOST, quorum.port(1)?);
    let frame = request(&quorum.cluster, epoch)?;
    let log = std::fs::File::create(quorum.dir.join("start.log")).context("start.log")?;
    let mut command = Command::new(&binary.path);
    command.env("NO_COLOR", "1").arg("run").arg("--config").arg(quorum.node(1)?.config());
    command.args(["--die-with-parent", &std::process::id().to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    let start = Instant::now();
    let mut node = Guard(command.spawn().context("quorate does not start")?);
    let mut stream = loop {
        match TcpStream::connect(address) {
            Ok(stream) => break stream,
            Err(error) if start.elapsed() > PATIENCE => {
                return Err(error).context("node 1 does not listen");
            }
            Err(_) => {
                if let Some(status) = node.0.try_wait()? {
                    bail!("node 1 ended with {status}");
                }
                thread::sleep(TRY_EVERY);
            }
        }
    };
    stream.set_read_timeout(Some(PATIENCE))?;
    let granted = vote(&mut stream, &frame).context("the first vote")?;
    let vote_ms = start.elapsed().as_secs_f64() * 1e3;
    if !granted {
        bail!("node 1 does not grant its vote in epoch {epoch}");
    }
    thread::sleep(SETTLING);
    let resident = usage::of(node.0.id())?.resident_kib;
    let start = Start { vote_ms, mib: mib(resident) };
    if how == End::Kill {
        return Ok(start);
    }
    kill_process(Pid::from_child(&node.0), Signal::TERM).context("node 1 cannot be signalled")?;
    let status = node.0.wait()?;
    if !status.success() {
        bail!("node 1 ended with {status} after SIGTERM");
    }
    Ok(start)
}

/// Kills the process, whatever it is at.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        // Both fail only if the process is gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Node 2 asks, whose log is longer than any.
fn request(cluster: &str, epoch: i32) -> Result<Bytes> {
    let request = VoteRequest {
        cluster_id: Some(cluster.to_owned()),
        voter_id: 1,
        topics: vec![VoteRequestTopic {
            topic_name: "__cluster_metadata".to_owned(),
            partitions: vec![VoteRequestPartition {
                replica_epoch: epoch,
                replica_id: 2,
                last_offset_epoch: epoch - 1,
                last_offset: i64::MAX / 2,
                ..Default::default()
            }],
            ..Default::default()
        }],
        ..Default::default()
    };
    Ok(encode_request(VERSION, 1, "bench", &request)?.concat().into())
}

fn vote(stream: &mut TcpStream, frame: &[u8]) -> Result<bool> {
    stream.write_all(frame)?;
    let mut size = [0; 4];
    stream.read_exact(&mut size)?;
    let mut answer = Vec::new();
    stream.take(u64::from(u32::from_be_bytes(size))).read_to_end(&mut answer)?;
    let mut answer = Bytes::from(answer);
    ResponseHeader::decode(response_header_version(ApiKey::Vote, VERSION), &mut answer)?;
    let answer = VoteResponse::decode_exact(VERSION, answer)?;
    let partition = answer.topics.first().and_then(|topic| topic.partitions.first());
    match partition {
        Some(partition) if partition.error_code == 0 => Ok(partition.vote_granted),
        _ => bail!("it answers {answer:?}"),
    }
}
