//! What an answer to Fetch says, as far as an observer has to know it.

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use quorate_wire::message::{ApiKey, FetchResponse, ResponseHeader, response_header_version};
use quorate_wire::{Message, batch};

use crate::request::VERSION;

/// The answer for the one partition.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// 0, or why there are no records.
    pub(crate) error: i16,
    /// The leader's id and epoch; a negative id where none is known.
    pub(crate) leader: (i32, i32),
    /// Where that leader listens.
    pub(crate) endpoint: Option<String>,
    /// Negative if it is not known.
    pub(crate) high_watermark: i64,
    /// Whole batches, and perhaps a part of another.
    pub(crate) records: Bytes,
}

/// Decodes a frame, its length left out.
pub(crate) fn decode(mut frame: Bytes) -> Result<Answer> {
    ResponseHeader::decode(response_header_version(ApiKey::Fetch, VERSION), &mut frame)?;
    let response = FetchResponse::decode_exact(VERSION, frame)?;
    if response.error_code != 0 {
        bail!("the Fetch is refused with error {}", response.error_code);
    }
    let partition = response
        .responses
        .into_iter()
        .next()
        .and_then(|topic| topic.partitions.into_iter().next())
        .context("the answer has no partition")?;
    if partition.diverging_epoch.epoch >= 0 || partition.snapshot_id.epoch >= 0 {
        bail!("the leader does not have the log below the offset that it is asked for");
    }
    let leader = (partition.current_leader.leader_id, partition.current_leader.leader_epoch);
    let node = response.node_endpoints.iter().find(|node| node.node_id == leader.0);
    Ok(Answer {
        error: partition.error_code,
        leader,
        endpoint: node.map(|node| format!("{}:{}", node.host, node.port)),
        high_watermark: partition.high_watermark,
        records: partition.records.map(|records| records.into_bytes()).unwrap_or_default(),
    })
}

/// The offset after the whole batches in `records`, which begin at `from`.
pub(crate) fn end_of(records: &[u8], from: i64) -> Result<i64> {
    let (mut rest, mut end) = (records, from);
    while let Some(header) = rest.get(..batch::HEADER_LEN) {
        let base = i64::from_be_bytes(field(header, 0)?);
        let length = i32::from_be_bytes(field(header, 8)?);
        let last_delta = i32::from_be_bytes(field(header, 23)?);
        if base != end || last_delta < 0 {
            bail!("a batch of {base} and {last_delta} more comes where {end} was asked for");
        }
        let length = 12 + usize::try_from(length).context("a negative length of a batch")?;
        let Some(after) = rest.get(length..) else { break };
        end = base + i64::from(last_delta) + 1;
        rest = after;
    }
    if !records.is_empty() && end == from {
        bail!("{} bytes of records without a whole batch", records.len());
    }
    Ok(end)
}

fn field<const N: usize>(header: &[u8], at: usize) -> Result<[u8; N]> {
    header.get(at..).and_then(<[u8]>::first_chunk).copied().context("a batch is cut short")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(base: i64, last_delta: i32, more: usize) -> Vec<u8> {
        let mut bytes = vec![0; batch::HEADER_LEN + more];
        let length = i32::try_from(bytes.len() - 12).expect("small");
        bytes[..8].copy_from_slice(&base.to_be_bytes());
        bytes[8..12].copy_from_slice(&length.to_be_bytes());
        bytes[23..27].copy_from_slice(&last_delta.to_be_bytes());
        bytes
    }

    #[test]
    fn whole_batches_count_and_gaps_do_not_pass() {
        let two = [batch(7, 2, 5), batch(10, 0, 0)].concat();
        assert_eq!(end_of(&two, 7).expect("whole"), 11);
        assert_eq!(end_of(&two[..two.len() - 1], 7).expect("one is whole"), 10);
        assert_eq!(end_of(&[], 7).expect("nothing"), 7);
        assert!(end_of(&two, 6).is_err(), "another offset");
        assert!(end_of(&[batch(7, 2, 5), batch(11, 0, 0)].concat(), 7).is_err(), "a gap");
        assert!(end_of(&two[..30], 7).is_err(), "not one batch");
    }
}
