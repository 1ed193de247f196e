//! The edge between frames and the core: requests in, answers in, and the records of answers.
//!
//! Three bytes choose the kind, the API and its version.

use bytes::Bytes;
use quorate_core::ids::{Endpoints, Epoch, NodeId, Offset, OffsetAndEpoch, ReplicaKey};
use quorate_core::io::{Batch, Content};
use quorate_core::message::*;
use quorate_rpc::client::{Origin, decode_response, encode_request};
use quorate_rpc::server::{Decoded, ServerContext, decode_request, encode_response};
use quorate_rpc::{ApiKey, api_of, records};

use crate::source::{DECODER, Source, mend_crcs, within_bounds};

const NOW_MS: i64 = 1_800_000_000_000;
const ORIGIN: Origin<'static> =
    Origin { client_id: "raft-client-1", cluster_id: "QuorateGoldenClusterAA" };
/// What the core answers, and one API that it does not know.
const APIS: [ApiKey; 8] = [
    ApiKey::Vote,
    ApiKey::BeginQuorumEpoch,
    ApiKey::EndQuorumEpoch,
    ApiKey::Fetch,
    ApiKey::FetchSnapshot,
    ApiKey::DescribeQuorum,
    ApiKey::DescribeReplica,
    ApiKey::CreateTopics,
];

pub(crate) fn context() -> ServerContext {
    ServerContext {
        cluster_id: ORIGIN.cluster_id.to_owned(),
        kraft_version: KRaftVersion(1),
        listeners: Endpoints::new(),
    }
}

/// The target.
pub fn run(data: &[u8]) {
    let mut source = Source::new(data);
    let (kind, api, version) = (source.byte(), source.pick(&APIS), source.byte());
    let bytes = source.rest();
    match kind % 3 {
        0 => request(Bytes::copy_from_slice(bytes)),
        1 => {
            let versions = api.versions();
            let span = versions.end() - versions.start() + 1;
            answer(api, versions.start() + i16::from(version) % span, bytes);
        }
        _ => {
            let mut bytes = bytes.to_vec();
            mend_crcs(&mut bytes);
            received(&records::check(bytes.into()));
        }
    }
}

/// A request from anybody: what the core gets can be sent on, and every answer to it encodes.
fn request(frame: Bytes) {
    let context = context();
    let decoded = within_bounds(frame.len(), DECODER, || decode_request(frame.clone(), &context));
    let (request, format) = match decoded {
        Ok(Decoded::Request(request, format)) => (request, format),
        Ok(Decoded::Answer(slices)) => return check_frame(&slices),
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert_eq!(format.api, api_of(&request));
    for error in [ErrorCode::BROKER_NOT_AVAILABLE, ErrorCode::UNKNOWN_SERVER_ERROR] {
        let refused = encode_response(format, &Response::TopLevel(error), vec![], &context, NOW_MS);
        check_frame(&refused.expect("every request can be refused"));
    }
    let slices = encode_request(&request, format.version, 7, &ORIGIN)
        .expect("a version carries what came in it");
    check_frame(&slices);
    match decode_request(Bytes::from(slices.concat()).slice(4..), &context) {
        Ok(Decoded::Request(again, _)) => assert_eq!(again, request),
        other => panic!("{request:?} became {other:?}"),
    }
}

fn check_frame(slices: &[Bytes]) {
    let frame = slices.concat();
    let size = frame.first_chunk().map(|size| i32::from_be_bytes(*size));
    assert_eq!(size, i32::try_from(frame.len() - 4).ok(), "the size in front");
}

/// An answer from anybody, as a frame and with the records mended.
fn answer(api: ApiKey, version: i16, bytes: &[u8]) {
    let frame = Bytes::copy_from_slice(bytes);
    // A description counts the ages of replicas, and has their endpoints in maps.
    let decoded = within_bounds(frame.len(), 8 * DECODER, || {
        decode_response(api, version, frame.clone(), NOW_MS)
    });
    let Ok(response) = decoded else { return };
    let (out, bytes) = match response.clone() {
        Response::Vote(response) => (Response::Vote(response), vec![]),
        Response::BeginQuorumEpoch(response) => (Response::BeginQuorumEpoch(response), vec![]),
        Response::EndQuorumEpoch(response) => (Response::EndQuorumEpoch(response), vec![]),
        Response::FetchSnapshot(response) => (Response::FetchSnapshot(response), vec![]),
        Response::Fetch(fetch) => {
            let (outcome, bytes) = match fetch.outcome {
                FetchOutcome::Records(batches) => {
                    received(&batches);
                    if batches.rejected.is_some() {
                        return;
                    }
                    let (from, to) = (Offset(0), Offset(0));
                    let range = LogRange { from, to, max_bytes: 0, generation: 0 };
                    let bytes = batches.batches.into_iter().map(|batch| batch.bytes).collect();
                    (FetchOutcome::Records(range), bytes)
                }
                FetchOutcome::Diverging(at) => (FetchOutcome::Diverging(at), vec![]),
                FetchOutcome::Snapshot(id) => (FetchOutcome::Snapshot(id), vec![]),
            };
            let FetchResponse { error, current, high_watermark, log_start, .. } = fetch;
            let fetch = FetchResponse { error, current, high_watermark, log_start, outcome };
            (Response::Fetch(fetch), bytes)
        }
        Response::DescribeQuorum(_) | Response::DescribeReplica(_) | Response::TopLevel(_) => {
            return;
        }
    };
    // Whoever asks for Fetch below 13 is no replica, so nothing can be asked in our name.
    let Ok(asked) = encode_request(&example(api), version, 7, &ORIGIN) else { return };
    let asked = decode_request(Bytes::from(asked.concat()).slice(4..), &context());
    let Ok(Decoded::Request(_, format)) = asked else { panic!("our own request: {asked:?}") };
    let slices = encode_response(format, &out, bytes, &context(), NOW_MS)
        .expect("a version carries what came in it");
    check_frame(&slices);
    let again = decode_response(api, version, Bytes::from(slices.concat()).slice(4..), NOW_MS);
    let (again, response) = (again.expect("written by us"), without_endpoint(response, version));
    assert_eq!(again, response);
}

/// Fetch 16 has endpoints, but they are not filled there.
fn without_endpoint(response: Response<Received>, version: i16) -> Response<Received> {
    match response {
        Response::Fetch(mut fetch) if version < 17 => {
            fetch.current.endpoint = None;
            Response::Fetch(fetch)
        }
        other => other,
    }
}

/// Batches that pass the edge can stand in a log, and their control records be written again.
fn received(received: &Received) {
    for batch in &received.batches {
        assert!(batch.base.0 >= 0 && batch.end > batch.base && batch.epoch.0 >= 0, "{batch:?}");
        for (offset, _) in &batch.control {
            assert!(batch.base <= *offset && *offset < batch.end, "{batch:?}");
        }
        let control: Vec<_> = batch.control.iter().map(|(_, record)| record.clone()).collect();
        let (base, epoch) = (Offset(0), Epoch(1));
        let wire: Vec<_> = control.iter().map(records::control_out).collect();
        let encoded_len = quorate_wire::batch::control_batch_len(&wire).expect("it encodes");
        let end = base.plus(control.len());
        let content = Content::Control(control.clone());
        if !control.is_empty() {
            let bytes = records::encode(&Batch { base, end, epoch, encoded_len, content }, 1);
            let again = records::check(bytes.expect("it encodes"));
            assert_eq!(again.rejected, None);
            let again = again.batches.into_iter().flat_map(|batch| batch.control);
            assert!(again.map(|(_, record)| record).eq(control));
        }
    }
}

pub(crate) fn example(api: ApiKey) -> Request {
    let replica = ReplicaKey::new(NodeId(1), None);
    let (epoch, log_end) = (Epoch(1), OffsetAndEpoch::default());
    match api {
        ApiKey::Vote => {
            Request::Vote(VoteRequest { voter: None, replica, epoch, log_end, pre_vote: false })
        }
        ApiKey::BeginQuorumEpoch => Request::BeginQuorumEpoch(BeginQuorumEpochRequest {
            voter: None,
            leader: NodeId(1),
            epoch,
            endpoints: Endpoints::new(),
        }),
        ApiKey::EndQuorumEpoch => Request::EndQuorumEpoch(EndQuorumEpochRequest {
            leader: NodeId(1),
            epoch,
            preferred_candidates: vec![],
            endpoints: Endpoints::new(),
        }),
        ApiKey::FetchSnapshot => Request::FetchSnapshot(FetchSnapshotRequest {
            replica,
            epoch,
            snapshot: log_end,
            position: 0,
            max_bytes: 1,
        }),
        _ => Request::Fetch(FetchRequest {
            replica,
            epoch,
            offset: Offset(0),
            last_fetched_epoch: Epoch(0),
            max_wait_ms: 0,
            max_bytes: 1,
            high_watermark: FetcherHighWatermark::Unknown,
        }),
    }
}
