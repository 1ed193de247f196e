//! Answers to Fetch: with batches from memory, from disk, or none, and never with those of a log that is no more.

use bytes::Bytes;
use quorate_core::io::{Batch, Content, Write, WriteId};
use quorate_core::message::{
    CurrentLeader, ErrorCode, FetchOutcome, FetchResponse, LogRange, Response,
};
use quorate_core::{Epoch, NodeId, Offset, OffsetAndEpoch};
use quorate_driver::{Filled, Log};
use quorate_storage::StoreWrite;
use quorate_wire::batch::encode_data;

const HIGH_WATERMARK: Offset = Offset(4);

/// What the log holds from this offset on: two records in a batch.
fn encoded(base: i64, epoch: i32) -> Bytes {
    encode_data(base, epoch, 1000, &vec![Bytes::from(format!("from {base}")); 2])
}

fn append(log: &mut Log, id: u64, base: i64, epoch: i32) {
    let bytes = encoded(base, epoch);
    let batch = Batch {
        base: Offset(base),
        end: Offset(base + 2),
        epoch: Epoch(epoch),
        encoded_len: bytes.len(),
        content: Content::Encoded(bytes.clone()),
    };
    let StoreWrite::Append(written) = log.submit(WriteId(id), Write::Append(batch), 5000) else {
        panic!("an append")
    };
    assert_eq!(written.bytes, bytes, "what a leader encoded is stored as it is");
}

/// A log of three batches of two records each, all durable.
fn log(tail_bytes: usize) -> Log {
    let mut log = Log::new(Offset(0), tail_bytes);
    for (id, base) in (1..).zip([0, 2, 4]) {
        append(&mut log, id, base, 1);
    }
    log.on_durable(WriteId(3));
    log
}

fn range(from: i64, to: i64, generation: u64) -> LogRange {
    LogRange { from: Offset(from), to: Offset(to), max_bytes: 1 << 20, generation }
}

fn fetch(outcome: FetchOutcome<LogRange>) -> Response<LogRange> {
    Response::Fetch(FetchResponse {
        error: ErrorCode::NONE,
        current: CurrentLeader { epoch: Epoch(1), leader: Some(NodeId(1)), endpoint: None },
        high_watermark: Some(HIGH_WATERMARK),
        log_start: Some(Offset(0)),
        outcome,
    })
}

fn answer(range: LogRange) -> Response<LogRange> {
    fetch(FetchOutcome::Records(range))
}

/// What an answer becomes when the log was truncated after it was made.
fn assert_moved_on(response: &Response<LogRange>, records: &[Bytes]) {
    let Response::Fetch(fetch) = response else { panic!("{response:?}") };
    assert_eq!(fetch.error, ErrorCode::NOT_LEADER_OR_FOLLOWER);
    assert_eq!(fetch.high_watermark, None, "errors have none");
    assert_eq!(records, [] as [Bytes; 0], "no header may name a leader that did not write them");
}

#[test]
fn what_is_in_memory_is_sent_at_once() {
    let log = log(1 << 20);
    let range = range(2, 6, 0);
    let records = vec![encoded(2, 1), encoded(4, 1)];
    assert_eq!(log.fill(answer(range)), Filled::Ready(answer(range), records));
}

#[test]
fn one_batch_comes_whatever_the_limit_and_no_more_than_it_allows() {
    let log = log(1 << 20);
    let len = u32::try_from(encoded(0, 1).len()).unwrap();
    for (max_bytes, expected) in [(0, 1), (len, 1), (2 * len - 1, 1), (2 * len, 2), (3 * len, 3)] {
        let range = LogRange { max_bytes, ..range(0, 6, 0) };
        let Filled::Ready(_, records) = log.fill(answer(range)) else { panic!("in memory") };
        assert_eq!(records.len(), expected, "{max_bytes} bytes");
    }
}

#[test]
fn what_memory_has_no_more_is_left_to_the_disk() {
    let log = log(0);
    let range = range(0, 6, 0);
    assert_eq!(log.fill(answer(range)), Filled::Cold(range, answer(range)));
    let read = vec![encoded(0, 1), encoded(2, 1), encoded(4, 1)];
    assert_eq!(log.fill_cold(range, answer(range), read.clone()), (answer(range), read));
    let nothing = log.fill_cold(range, answer(range), Vec::new());
    assert_eq!(
        nothing,
        (answer(range), Vec::new()),
        "it could not be read: the fetcher asks again"
    );
}

#[test]
fn an_answer_without_batches_stays_as_it_is() {
    let log = log(0);
    let end = OffsetAndEpoch::new(Offset(2), Epoch(1));
    for response in [
        answer(range(6, 6, 0)),
        // Nobody looks at what is empty: it names no bytes that could be another log's.
        answer(range(6, 6, 7)),
        fetch(FetchOutcome::Diverging(end)),
        fetch(FetchOutcome::Snapshot(end)),
        Response::TopLevel(ErrorCode::NOT_LEADER_OR_FOLLOWER),
    ] {
        assert_eq!(log.fill(response.clone()), Filled::Ready(response, Vec::new()));
    }
    // Beyond the log end, there is nothing to be read from disk either.
    let beyond = answer(range(6, 8, 0));
    assert_eq!(log.fill(beyond.clone()), Filled::Ready(beyond, Vec::new()));
}

#[test]
fn a_range_of_before_a_truncation_is_answered_without_records() {
    // From memory.
    let mut hot = log(1 << 20);
    let old = range(0, 4, 0);
    hot.submit(WriteId(4), Write::Truncate { to: Offset(4) }, 0);
    let Filled::Ready(response, records) = hot.fill(answer(old)) else { panic!("no disk needed") };
    assert_moved_on(&response, &records);
    append(&mut hot, 5, 4, 2);
    let new = range(2, 6, 1);
    let records = vec![encoded(2, 1), encoded(4, 2)];
    assert_eq!(hot.fill(answer(new)), Filled::Ready(answer(new), records));

    // From disk: before the read, and while it was under way.
    let mut cold = log(0);
    let Filled::Cold(asked, response) = cold.fill(answer(old)) else { panic!("on disk alone") };
    cold.submit(WriteId(4), Write::Truncate { to: Offset(2) }, 0);
    append(&mut cold, 5, 2, 2);
    cold.on_durable(WriteId(5));
    let read = vec![encoded(0, 1), encoded(2, 2)];
    let (response, records) = cold.fill_cold(asked, response, read);
    assert_moved_on(&response, &records);
    let Filled::Ready(response, records) = cold.fill(answer(old)) else { panic!("no disk needed") };
    assert_moved_on(&response, &records);
}

#[test]
fn what_is_not_durable_is_never_left_to_the_disk() {
    let mut log = log(0);
    append(&mut log, 4, 6, 1);
    append(&mut log, 5, 8, 1);
    let range = range(6, 10, 0);
    let both = vec![encoded(6, 1), encoded(8, 1)];
    assert_eq!(log.fill(answer(range)), Filled::Ready(answer(range), both));
    log.on_durable(WriteId(4));
    assert_eq!(log.fill(answer(range)), Filled::Cold(range, answer(range)));
}
