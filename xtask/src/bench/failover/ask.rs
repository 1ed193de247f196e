//! One node asked over one connection, by DescribeQuorum: the same question to every make.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bytes::{Buf, Bytes};
use quorate_wire::codec::Message;
use quorate_wire::frame::encode_request;
use quorate_wire::message::{
    ApiKey, DescribeQuorumRequest, DescribeQuorumRequestPartition, DescribeQuorumRequestTopic,
    DescribeQuorumResponse, ResponseHeader, response_header_version,
};

/// The leader's own account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) leader: i32,
    pub(super) epoch: i32,
    /// -1 until this leader has committed something in its own epoch.
    pub(super) high_watermark: i64,
    /// Each voter's log end, as the leader knows it; -1 if it does not.
    pub(super) log_ends: Vec<i64>,
}

/// With it come the ids of voters' directories; every release that we meet serves it.
const VERSION: i16 = 2;

/// No answer is longer: there are three voters and no observers.
const MAX_FRAME: usize = 64 << 10;

/// How long a node may take to accept, and to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// A connection to a node.
#[derive(Debug)]
pub(super) struct Asker {
    stream: TcpStream,
    request: Vec<u8>,
}

impl Asker {
    /// Connects to a port of this machine.
    pub(super) fn connect(port: u16) -> Result<Asker> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let stream = TcpStream::connect_timeout(&address, PATIENCE)
            .with_context(|| format!("no connection to port {port}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let topic = DescribeQuorumRequestTopic {
            topic_name: "__cluster_metadata".to_owned(),
            partitions: vec![DescribeQuorumRequestPartition::default()],
            ..Default::default()
        };
        let question = DescribeQuorumRequest { topics: vec![topic], ..Default::default() };
        let request = encode_request(VERSION, 0, "bench", &question)?.concat();
        Ok(Asker { stream, request })
    }

    /// Asks once: none if this node does not lead.
    ///
    /// # Errors
    /// The connection is of no more use.
    pub(super) fn ask(&mut self) -> Result<Option<Account>> {
        self.stream.write_all(&self.request)?;
        let mut size = [0; 4];
        self.stream.read_exact(&mut size)?;
        let size = usize::try_from(i32::from_be_bytes(size)).context("a negative size")?;
        if size > MAX_FRAME {
            bail!("an answer of {size} bytes");
        }
        let mut frame = vec![0; size];
        self.stream.read_exact(&mut frame)?;
        account(Bytes::from(frame))
    }
}

fn account(mut frame: Bytes) -> Result<Option<Account>> {
    let header = response_header_version(ApiKey::DescribeQuorum, VERSION);
    ResponseHeader::decode(header, &mut frame)?;
    let response = DescribeQuorumResponse::decode_exact(VERSION, frame.copy_to_bytes(frame.len()))?;
    let partition = response.topics.into_iter().flat_map(|topic| topic.partitions).next();
    let leads = |error: i16| response.error_code == 0 && error == 0;
    Ok(partition.filter(|partition| leads(partition.error_code)).map(|partition| Account {
        leader: partition.leader_id,
        epoch: partition.leader_epoch,
        high_watermark: partition.high_watermark,
        log_ends: partition.current_voters.iter().map(|voter| voter.log_end_offset).collect(),
    }))
}

#[cfg(test)]
mod tests {
    use quorate_wire::frame::{SIZE_LEN, encode_response};
    use quorate_wire::message::{
        DescribeQuorumResponsePartition, DescribeQuorumResponseTopic, ReplicaState,
    };

    use super::*;

    fn answer(error_code: i16) -> Bytes {
        let voter = ReplicaState {
            replica_id: 2,
            replica_directory_id: Default::default(),
            log_end_offset: 11,
            last_fetch_timestamp: -1,
            last_caught_up_timestamp: -1,
            unknown: Default::default(),
        };
        let partition = DescribeQuorumResponsePartition {
            error_code,
            leader_id: 2,
            leader_epoch: 7,
            high_watermark: 10,
            current_voters: vec![voter],
            ..Default::default()
        };
        let topic =
            DescribeQuorumResponseTopic { partitions: vec![partition], ..Default::default() };
        let response = DescribeQuorumResponse { topics: vec![topic], ..Default::default() };
        let frame = encode_response(ApiKey::DescribeQuorum, VERSION, 0, &response);
        Bytes::from(frame.expect("it encodes").concat()).slice(SIZE_LEN..)
    }

    #[test]
    fn only_a_leader_gives_an_account() {
        let wanted = Account { leader: 2, epoch: 7, high_watermark: 10, log_ends: vec![11] };
        assert_eq!(account(answer(0)).expect("it decodes"), Some(wanted));
        assert_eq!(account(answer(6)).expect("it decodes"), None);
        assert!(account(answer(0).slice(1..)).is_err());
    }
}
