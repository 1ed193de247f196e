//! Fetch requests. One frame is encoded, and what differs is written over: offset and high watermark.

use anyhow::{Context, Result};
use quorate_wire::Uuid;
use quorate_wire::frame::encode_request;
use quorate_wire::message::{FetchPartition, FetchRequest, FetchTopic};

/// The newest version.
pub(crate) const VERSION: i16 = 18;

/// As brokers ask.
const MAX_WAIT_MS: i32 = 500;
const MAX_BYTES: i32 = 8 << 20;

/// A request of one observer.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    frame: Vec<u8>,
    offset_at: usize,
    high_watermark_at: usize,
}

/// Numbers that stand in no frame by chance.
const OFFSET: i64 = 0x11_2233_4455_6677;
const HIGH_WATERMARK: i64 = 0x77_6655_4433_2211;

impl Request {
    /// All that stays the same.
    pub(crate) fn new(cluster: &str, replica: i32, epoch: i32) -> Result<Request> {
        let mut request = FetchRequest {
            cluster_id: Some(cluster.to_owned()),
            max_wait_ms: MAX_WAIT_MS,
            max_bytes: MAX_BYTES,
            topics: vec![FetchTopic {
                topic_id: Uuid::METADATA_TOPIC,
                partitions: vec![FetchPartition {
                    current_leader_epoch: epoch,
                    fetch_offset: OFFSET,
                    last_fetched_epoch: epoch,
                    high_watermark: HIGH_WATERMARK,
                    ..Default::default()
                }],
                ..Default::default()
            }],
            ..Default::default()
        };
        request.replica_state.replica_id = replica;
        let slices = encode_request(VERSION, 1, "observers", &request)?;
        let frame = slices.concat();
        let place = |number: i64| {
            let bytes = number.to_be_bytes();
            let at = frame.windows(bytes.len()).position(|window| window == bytes);
            at.context("a number does not stand in the frame")
        };
        let (offset_at, high_watermark_at) = (place(OFFSET)?, place(HIGH_WATERMARK)?);
        Ok(Request { frame, offset_at, high_watermark_at })
    }

    /// The frame that asks from an offset on.
    pub(crate) fn ask(&mut self, offset: i64, high_watermark: i64) -> &[u8] {
        let numbers = [(self.offset_at, offset), (self.high_watermark_at, high_watermark)];
        for (at, number) in numbers {
            if let Some(place) = self.frame.get_mut(at..at + 8) {
                place.copy_from_slice(&number.to_be_bytes());
            }
        }
        &self.frame
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use quorate_wire::Message;
    use quorate_wire::frame::SIZE_LEN;
    use quorate_wire::message::{ApiKey, RequestHeader, request_header_version};

    use super::*;

    #[test]
    fn a_request_asks_for_what_it_is_told() {
        let mut request = Request::new("a cluster", 4711, 3).expect("it encodes");
        request.ask(1, 0);
        let mut frame = Bytes::copy_from_slice(request.ask(1234, 1200)).slice(SIZE_LEN..);
        let version = request_header_version(ApiKey::Fetch, VERSION);
        RequestHeader::decode(version, &mut frame).expect("a header");
        let read = FetchRequest::decode_exact(VERSION, frame).expect("a Fetch");
        let partition = &read.topics[0].partitions[0];
        assert_eq!((partition.fetch_offset, partition.high_watermark), (1234, 1200));
        assert_eq!((read.replica_state.replica_id, partition.current_leader_epoch), (4711, 3));
    }
}
