//! Finding the leader: a Fetch of an old epoch is refused by everyone, and names who leads.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::answer::{self, Answer};
use crate::request::Request;

/// Who leads, and where its log ends.
#[derive(Clone, Debug)]
pub(crate) struct Leader {
    pub(crate) endpoint: String,
    pub(crate) epoch: i32,
    pub(crate) high_watermark: i64,
}

/// How long an election may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long one answer may take.
const ANSWER: Duration = Duration::from_secs(10);

/// Any id that no voter has.
const REPLICA: i32 = 9_999;

/// Asks all servers until one leads and knows its high watermark.
pub(crate) fn find(cluster: &str, servers: &[String]) -> Result<Leader> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        // One that has only just started does not answer.
        let named = servers.iter().find_map(|server| ask(server, cluster, 0, 0).ok()?.named());
        if let Some((endpoint, epoch)) = named
            // From the start of the log on: there is always something to answer.
            && let Ok(answer) = ask(&endpoint, cluster, epoch, 0)
            && answer.error == 0
            && answer.high_watermark > 0
        {
            return Ok(Leader { endpoint, epoch, high_watermark: answer.high_watermark });
        }
        if Instant::now() >= deadline {
            bail!("no leader is found among {}", servers.join(", "));
        }
        sleep(Duration::from_millis(20));
    }
}

impl Answer {
    fn named(self) -> Option<(String, i32)> {
        (self.leader.0 >= 0).then_some(())?;
        Some((self.endpoint?, self.leader.1))
    }
}

fn ask(server: &str, cluster: &str, epoch: i32, offset: i64) -> Result<Answer> {
    let mut stream = TcpStream::connect(server)?;
    stream.set_read_timeout(Some(ANSWER))?;
    let mut request = Request::new(cluster, REPLICA, epoch)?;
    stream.write_all(request.ask(offset, -1))?;
    let mut size = [0; 4];
    stream.read_exact(&mut size)?;
    let size = u64::from(u32::from_be_bytes(size));
    let mut frame = Vec::new();
    stream.take(size).read_to_end(&mut frame).context("an answer is cut short")?;
    answer::decode(frame.into())
}
