//! Every decoder of quorate-wire: bytes decode or give an error, in bounded memory; what decodes encodes, to the same
//! again.
//!
//! Three bytes choose the kind, the message and its version; the rest is what is decoded.

use std::fmt::Debug;

use bytes::{Bytes, BytesMut};
use quorate_wire::batch::{
    Batch, RecordView, batches, control_batch_len, control_records, data_batch_len, encode_control,
    encode_data,
};
use quorate_wire::control::{self, ControlRecord};
use quorate_wire::frame::next_frame;
use quorate_wire::message::*;
use quorate_wire::metadata::MetadataRecord;
use quorate_wire::{DecodeError, Message};

use crate::source::{DECODER, Source, mend_crcs, within_bounds};

/// The target.
pub fn run(data: &[u8]) {
    let mut source = Source::new(data);
    let (kind, which, version) = (source.byte(), source.byte(), source.byte());
    let bytes = Bytes::copy_from_slice(source.rest());
    let api = ApiKey::ALL[usize::from(which) % ApiKey::ALL.len()];
    match kind % 7 {
        0 => of_api(api, &Body { is_request: true, version, bytes }),
        1 => of_api(api, &Body { is_request: false, version, bytes }),
        2 => other_message(which, version, &bytes),
        3 => control_record(usize::from(which) % 6, &bytes),
        4 => metadata_record(&bytes),
        5 => log_bytes(bytes, which & 1 == 1),
        _ => frames(&bytes, 1 << (which % 32)),
    }
}

/// The body of a request or response.
struct Body {
    is_request: bool,
    version: u8,
    bytes: Bytes,
}

impl Body {
    fn check<R>(&self)
    where
        R: Request + PartialEq + Debug,
        R::Response: PartialEq + Debug,
    {
        match self.is_request {
            true => check_any_version::<R>(self.version, &self.bytes),
            false => check_any_version::<R::Response>(self.version, &self.bytes),
        }
    }
}

/// Lists every API; the compiler says if one is missing.
macro_rules! apis {
    ($($api:ident $request:ident),* $(,)?) => {
        fn of_api(api: ApiKey, body: &Body) {
            match api {
                $(ApiKey::$api => body.check::<$request>(),)*
            }
        }
    };
}

apis! {
    Fetch FetchRequest,
    Metadata MetadataRequest,
    SaslHandshake SaslHandshakeRequest,
    ApiVersions ApiVersionsRequest,
    CreateTopics CreateTopicsRequest,
    DeleteTopics DeleteTopicsRequest,
    DescribeAcls DescribeAclsRequest,
    CreateAcls CreateAclsRequest,
    DeleteAcls DeleteAclsRequest,
    DescribeConfigs DescribeConfigsRequest,
    AlterConfigs AlterConfigsRequest,
    SaslAuthenticate SaslAuthenticateRequest,
    CreatePartitions CreatePartitionsRequest,
    CreateDelegationToken CreateDelegationTokenRequest,
    RenewDelegationToken RenewDelegationTokenRequest,
    ExpireDelegationToken ExpireDelegationTokenRequest,
    DescribeDelegationToken DescribeDelegationTokenRequest,
    ElectLeaders ElectLeadersRequest,
    IncrementalAlterConfigs IncrementalAlterConfigsRequest,
    AlterPartitionReassignments AlterPartitionReassignmentsRequest,
    ListPartitionReassignments ListPartitionReassignmentsRequest,
    DescribeClientQuotas DescribeClientQuotasRequest,
    AlterClientQuotas AlterClientQuotasRequest,
    DescribeUserScramCredentials DescribeUserScramCredentialsRequest,
    AlterUserScramCredentials AlterUserScramCredentialsRequest,
    Vote VoteRequest,
    BeginQuorumEpoch BeginQuorumEpochRequest,
    EndQuorumEpoch EndQuorumEpochRequest,
    DescribeQuorum DescribeQuorumRequest,
    AlterPartition AlterPartitionRequest,
    UpdateFeatures UpdateFeaturesRequest,
    Envelope EnvelopeRequest,
    FetchSnapshot FetchSnapshotRequest,
    DescribeCluster DescribeClusterRequest,
    BrokerRegistration BrokerRegistrationRequest,
    BrokerHeartbeat BrokerHeartbeatRequest,
    UnregisterBroker UnregisterBrokerRequest,
    AllocateProducerIds AllocateProducerIdsRequest,
    ControllerRegistration ControllerRegistrationRequest,
    AssignReplicasToDirs AssignReplicasToDirsRequest,
    ListConfigResources ListConfigResourcesRequest,
    DescribeTopicPartitions DescribeTopicPartitionsRequest,
    AddRaftVoter AddRaftVoterRequest,
    RemoveRaftVoter RemoveRaftVoterRequest,
    UpdateRaftVoter UpdateRaftVoterRequest,
    UnregisterController UnregisterControllerRequest,
    DescribeReplica DescribeReplicaRequest,
}

fn other_message(which: u8, version: u8, bytes: &Bytes) {
    match which % 9 {
        0 => check_any_version::<RequestHeader>(version, bytes),
        1 => check_any_version::<ResponseHeader>(version, bytes),
        2 => check_any_version::<DefaultPrincipalData>(version, bytes),
        3 => check_any_version::<QuorumStateData>(version, bytes),
        4 => check_any_version::<control::LeaderChangeMessage>(version, bytes),
        5 => check_any_version::<control::SnapshotHeaderRecord>(version, bytes),
        6 => check_any_version::<control::SnapshotFooterRecord>(version, bytes),
        7 => check_any_version::<control::KRaftVersionRecord>(version, bytes),
        _ => check_any_version::<control::VotersRecord>(version, bytes),
    }
}

/// One of the versions that are built, or the one before or after them.
fn check_any_version<M: Message + PartialEq + Debug>(version: u8, bytes: &Bytes) {
    let (first, last) = (*M::VERSIONS.start() - 1, *M::VERSIONS.end() + 1);
    check::<M>(first + i16::from(version) % (last - first + 1), bytes);
}

fn check<M: Message + PartialEq + Debug>(version: i16, bytes: &Bytes) {
    let mut rest = bytes.clone();
    let decoded = within_bounds(bytes.len(), DECODER, || M::decode(version, &mut rest));
    match decoded {
        Err(error) => {
            check_error(&error, bytes.len());
            assert_eq!(rest, bytes, "an error takes nothing");
        }
        Ok(message) => {
            assert!(M::VERSIONS.contains(&version), "version {version} is not built");
            check_again(version, &message);
        }
    }
}

fn check_error(error: &DecodeError, len: usize) {
    assert!(error.position <= len, "{error} is behind the end, {len}");
    assert!(!error.message.is_empty(), "{error} names no message");
}

fn encoded<M: Message>(version: i16, message: &M) -> Bytes {
    let mut buf = BytesMut::new();
    message.encode(version, &mut buf).expect("what was decoded can be encoded");
    buf.freeze()
}

/// Encodes, decodes and encodes again. The bytes that came in may have been other ones: unknown tags at their
/// defaults, overlong numbers.
fn check_again<M: Message + PartialEq + Debug>(version: i16, message: &M) {
    let first = encoded(version, message);
    let slices = message.encode_vectored(version).expect("it was encoded before");
    assert_eq!(slices.concat(), first, "in slices");
    let again = M::decode_exact(version, first.clone()).expect("what was encoded decodes");
    assert_eq!(encoded(version, &again), first, "encoded again");
    // NaN is not equal to itself; the bytes are.
    #[allow(clippy::eq_op)]
    let has_nan = message != message;
    assert!(has_nan || again == *message, "{message:?} came back as {again:?}");
    if let Some(len) = first.len().checked_sub(1) {
        let cut = M::decode(version, &mut first.slice(..len));
        assert!(cut.is_err(), "decodes without its last byte: {cut:?}");
    }
}

fn control_record(key_len: usize, bytes: &Bytes) {
    let key = bytes.slice(..key_len.min(bytes.len()));
    let value = bytes.slice(key.len()..);
    let decoded =
        within_bounds(bytes.len(), DECODER, || ControlRecord::decode(&key, value.clone()));
    match decoded {
        Err(error) => check_error(&error, bytes.len()),
        Ok(record) => {
            assert_eq!(control::decode_key(&key), Ok(record.type_code()));
            let mut buf = BytesMut::new();
            record.encode_value(&mut buf).expect("what was decoded can be encoded");
            assert_eq!(record.value_len(), Ok(buf.len()));
            assert_eq!(ControlRecord::decode(&record.key(), buf.freeze()), Ok(record));
        }
    }
}

fn metadata_record(bytes: &Bytes) {
    let decoded = within_bounds(bytes.len(), DECODER, || MetadataRecord::decode(bytes.clone()));
    match decoded {
        Err(error) => check_error(&error, bytes.len()),
        Ok((record, version)) => {
            let first = record.encode(version).expect("what was decoded can be encoded");
            let (again, same) = MetadataRecord::decode(first.clone()).expect("encoded by us");
            assert_eq!(same, version);
            assert_eq!(again.encode(version), Ok(first), "encoded again");
            #[allow(clippy::eq_op)]
            let has_nan = record != record;
            assert!(has_nan || again == record, "{record:?} came back as {again:?}");
        }
    }
}

/// Batches one after another; their CRCs are mended if asked for.
fn log_bytes(bytes: Bytes, mend: bool) {
    let mut bytes = Vec::from(bytes);
    if mend {
        mend_crcs(&mut bytes);
    }
    let bytes = Bytes::from(bytes);
    let mut end = 0;
    let mut found = batches(bytes.clone());
    for batch in found.by_ref() {
        if let Ok(batch) = batch {
            assert_eq!(batch.bytes(), &bytes[end..end + batch.bytes().len()], "at {end}");
            end += batch.bytes().len();
            check_batch(&batch);
        } else if let Ok((batch, _)) = Batch::parse_unchecked(&bytes.slice(end..)) {
            check_batch(&batch);
        }
    }
    assert_eq!(found.position(), end);
}

fn check_batch(batch: &Batch) {
    let len = batch.bytes().len();
    assert!(0 <= batch.base_offset() && batch.base_offset() <= batch.last_offset());
    assert_eq!(batch.end_offset(), batch.last_offset() + 1);
    let (is_raft, control) = within_bounds(len, DECODER, || {
        (batch.raft_check().is_ok(), control_records(batch).unwrap_or_default())
    });
    let Ok(records) = batch.records() else {
        assert!(!is_raft, "compressed");
        return;
    };
    let records: Result<Vec<RecordView<'_>>, _> = records.collect();
    for record in records.iter().flatten() {
        let headers = record.headers().count();
        assert_eq!(i32::try_from(headers), Ok(record.header_count()));
    }
    if let (true, Ok(records)) = (is_raft, records) {
        build_again(batch, &records, &control);
    }
}

/// What a Raft reader takes, our builder can write; with offsets in a row, for it leaves no gaps.
fn build_again(batch: &Batch, records: &[RecordView<'_>], control: &[(i64, ControlRecord)]) {
    let (base, epoch, time) = (batch.base_offset(), batch.leader_epoch(), batch.base_timestamp());
    // It could not count past the end of the offsets.
    if base.checked_add(batch.bytes().len() as i64).is_none() {
        return;
    }
    let (built, len) = if batch.is_control() {
        let control: Vec<ControlRecord> =
            control.iter().map(|(_, record)| record.clone()).collect();
        assert_eq!(control.len(), records.len());
        let len = control_batch_len(&control).expect("decoded before");
        (encode_control(base, epoch, time, &control).expect("decoded before"), len)
    } else {
        let values = records.iter().filter_map(|record| record.value);
        let values: Vec<Bytes> = values.map(|value| batch.bytes().slice_ref(value)).collect();
        (encode_data(base, epoch, time, &values), data_batch_len(values.iter().map(Bytes::len)))
    };
    assert_eq!(built.len(), len, "the computed length");
    let (again, rest) = Batch::parse(&built).expect("built by us");
    assert!(rest.is_empty());
    assert_eq!(again.raft_check(), Ok(()));
    let values = |batch: &Batch| -> Vec<Vec<u8>> {
        let records = batch.records().expect("not compressed").map(|record| record.expect("built"));
        records.filter_map(|record| record.value.map(<[u8]>::to_vec)).collect()
    };
    match batch.is_control() {
        true => {
            let again = control_records(&again).expect("built by us");
            let again = again.into_iter().map(|(_, record)| record);
            assert!(again.eq(control.iter().map(|(_, record)| record.clone())));
        }
        false => assert_eq!(values(&again), values(batch)),
    }
}

/// A stream of frames: requests with their header.
fn frames(bytes: &Bytes, max: usize) {
    let mut stream = BytesMut::from(&bytes[..]);
    let mut left = stream.len();
    while let Ok(Some(mut frame)) = next_frame(&mut stream, max) {
        assert!(!frame.is_empty() && frame.len() <= max);
        assert_eq!(stream.len() + 4 + frame.len(), left, "the frame and its size are taken");
        left = stream.len();
        let whole = frame.clone();
        let header = within_bounds(whole.len(), DECODER, || RequestHeader::read(&mut frame));
        match header {
            Err(error) => check_error(&error, whole.len()),
            Ok(header) => {
                let api = ApiKey::from_code(header.request_api_key).expect("read refuses others");
                let version = request_header_version(api, header.request_api_version);
                check_again(version, &header);
                if api.versions().contains(&header.request_api_version) {
                    let first = *api.versions().start() - 1;
                    let version = u8::try_from(header.request_api_version - first);
                    let version = version.expect("few versions");
                    of_api(api, &Body { is_request: true, version, bytes: frame });
                }
            }
        }
    }
}
