//! What the derive makes of its attributes, on messages made for the purpose.

use bytes::{Bytes, BytesMut};
use quorate_wire::codec::{MAX_ARRAY_ELEMENTS, MAX_STRING_LEN, MAX_TAGS, Wire};
use quorate_wire::{DecodeErrorKind, EncodeError, Message, UnknownTags};

#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 7, versions = 0..=3, flexible = 2..)]
struct Sample {
    id: i32,
    #[wire(since = 1)]
    strict: i16,
    #[wire(since = 1, default = -1, ignorable)]
    lenient: i64,
    #[wire(until = 1)]
    ended: i8,
    #[wire(nullable_since = 1)]
    text: Option<String>,
    #[wire(since = 2, tag = 5, default = String::from("five"))]
    five: String,
    #[wire(since = 3, tag = 1)]
    one: bool,
    #[wire(since = 2, tag = 9)]
    inner: Inner,
    #[wire(never_flexible)]
    old: String,
    #[wire(unknown)]
    unknown: UnknownTags,
}

#[derive(Clone, Debug, PartialEq, Wire)]
struct Inner {
    #[wire(default = -1)]
    a: i32,
    list: Vec<i16>,
}

/// A byte on the wire, and much memory.
#[derive(Clone, Debug, PartialEq, Wire)]
struct Bomb {
    #[wire(tag = 0)]
    a: String,
    #[wire(tag = 1)]
    b: String,
    #[wire(tag = 2)]
    c: String,
}

#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(versions = 0..=0, flexible = 0..)]
struct Bombs {
    bombs: Vec<Bomb>,
}

fn text() -> Sample {
    Sample { text: Some("t".into()), ..Sample::default() }
}

fn encode(version: i16, sample: &Sample) -> Vec<u8> {
    let mut buf = BytesMut::new();
    sample.encode(version, &mut buf).expect("the version can carry it");
    assert_eq!(sample.encoded_len(version), Ok(buf.len()));
    buf.to_vec()
}

fn decode(version: i16, bytes: &[u8]) -> Result<Sample, DecodeErrorKind> {
    Sample::decode_exact(version, Bytes::copy_from_slice(bytes)).map_err(|error| error.kind)
}

#[test]
fn constants_say_what_the_attributes_say() {
    assert_eq!(Sample::NAME, "Sample");
    assert_eq!(Sample::KEY, Some(7));
    assert_eq!(Sample::VERSIONS, 0..=3);
    assert!(!Sample::ctx(1).flexible && Sample::ctx(2).flexible);
    let default = Sample::default();
    assert_eq!((default.lenient, default.five.as_str(), default.inner.a), (-1, "five", -1));
}

#[test]
fn each_version_has_its_own_fields() {
    let sample = Sample { id: 1, old: "o".into(), ..text() };
    assert_eq!(encode(0, &sample), b"\0\0\0\x01\0\0\x01t\0\x01o");
    let one = [&b"\0\0\0\x01\0\0"[..], &[0xff; 8], b"\0\0\x01t\0\x01o"].concat();
    assert_eq!(encode(1, &sample), one);
    let two = [&b"\0\0\0\x01\0\0"[..], &[0xff; 8], b"\x02t\0\x01o\0"].concat();
    assert_eq!(encode(2, &sample), two);
    for version in Sample::VERSIONS {
        assert_eq!(decode(version, &encode(version, &sample)), Ok(sample.clone()));
    }
}

#[test]
fn tags_ascend_whatever_the_order_of_fields_and_defaults_stay_out() {
    let mut sample =
        Sample { one: true, five: "5".into(), inner: Inner { a: 1, list: vec![2] }, ..text() };
    for tag in [7, 0, 200] {
        sample.unknown.push(tag, Bytes::from_static(b"x"));
    }
    let bytes = encode(3, &sample);
    let tags =
        b"\x06\0\x01x\x01\x01\x01\x05\x02\x025\x07\x01x\x09\x08\0\0\0\x01\x02\0\x02\0\xc8\x01\x01x";
    assert!(bytes.ends_with(tags), "{bytes:x?}");
    assert_eq!(decode(3, &bytes), Ok(sample));
    // A struct is at its default only if all of its fields are.
    let half = Sample { inner: Inner { a: -1, list: vec![2] }, ..text() };
    assert_eq!(decode(2, &encode(2, &half)), Ok(half));
}

#[test]
fn a_field_that_the_version_lacks_must_be_at_its_default_unless_ignorable() {
    let refused = |field: &str, version| {
        Err(EncodeError::UnsupportedVersion { message: "Sample", field: field.into(), version })
    };
    assert_eq!(Sample { strict: 1, ..text() }.encoded_len(0), refused("strict", 0));
    assert_eq!(Sample { ended: 1, ..text() }.encoded_len(2), refused("ended", 2));
    assert_eq!(Sample { one: true, ..text() }.encoded_len(2), refused("one", 2));
    assert_eq!(Sample { five: String::new(), ..text() }.encoded_len(1), refused("five", 1));
    assert_eq!(Sample { text: None, ..text() }.encoded_len(0), refused("text", 0));
    assert_eq!(text().encoded_len(4), refused("", 4));
    let dropped = Sample { lenient: 5, ..text() };
    assert_eq!(encode(0, &dropped), encode(0, &text()));

    let mut tagged = text();
    tagged.unknown.push(77, Bytes::new());
    assert_eq!(tagged.encoded_len(1), refused("tagged fields", 1));
    tagged.unknown.push(5, Bytes::new());
    let known = EncodeError::KnownTag { message: "Sample", field: String::new(), tag: 5 };
    assert_eq!(tagged.encoded_len(2), Err(known));
    // A failed encode writes nothing.
    let mut buf = BytesMut::new();
    assert!(tagged.encode(2, &mut buf).is_err() && buf.is_empty());
}

#[test]
fn what_is_too_long_is_not_encoded() {
    let long = |len| Sample { text: Some("x".repeat(len)), ..Sample::default() };
    assert!(long(MAX_STRING_LEN).encoded_len(2).is_ok());
    let error = long(MAX_STRING_LEN + 1).encoded_len(2);
    assert!(
        matches!(error, Err(EncodeError::TooLong { field, len: 32_768, .. }) if field == "text")
    );
    let list = vec![0; MAX_ARRAY_ELEMENTS + 1];
    let many = Sample { inner: Inner { a: 0, list }, ..text() };
    let error = many.encoded_len(2);
    assert!(matches!(error, Err(EncodeError::TooLong { field, .. }) if field == "inner.list"));
    assert_eq!(
        EncodeError::TooLong { message: "Sample", field: String::new(), len: 5 }.to_string(),
        "Sample: a length of 5 is too long"
    );
}

#[test]
fn errors_name_field_and_position() {
    let sample = Sample { inner: Inner { a: 1, list: vec![2] }, ..text() };
    let mut bytes = encode(2, &sample);
    let end = bytes.len();
    // The list has one element, and nothing but a count of tags behind it; let it have two.
    bytes[end - 4] = 3;
    let error = Sample::decode_exact(2, bytes.into()).expect_err("the list is too long");
    assert_eq!((error.message, error.field.as_str()), ("Sample", "inner.list[1]"));
    assert_eq!(error.position, end - 1);
    assert_eq!(error.kind, DecodeErrorKind::TagSize { tag: 9 });

    let error = Sample::decode_exact(0, Bytes::from_static(b"\0\0\0")).expect_err("cut");
    assert_eq!(error.to_string(), "Sample.id at byte 0: needs 4 bytes, 3 are left");
    let error = Sample::decode_exact(9, Bytes::new()).expect_err("no such version");
    assert_eq!(error.kind, DecodeErrorKind::UnsupportedVersion { version: 9 });
    let trailing = [&encode(2, &text())[..], b"rest"].concat();
    let error = Sample::decode_exact(2, trailing.clone().into()).expect_err("bytes are left");
    assert_eq!(error.kind, DecodeErrorKind::TrailingBytes { left: 4 });
    let mut bytes = Bytes::from(trailing);
    assert!(Sample::decode(2, &mut bytes).is_ok());
    assert_eq!(bytes, &b"rest"[..]);
}

#[test]
fn tagged_fields_are_taken_as_they_may_come() {
    let plain = encode(3, &text());
    let with_tags = |tags: &[u8]| [&plain[..plain.len() - 1], tags].concat();
    // At its default, needlessly; twice, where the last one counts; out of order.
    assert_eq!(decode(3, &with_tags(b"\x01\x05\x05\x05five")), Ok(text()));
    let twice = decode(3, &with_tags(b"\x02\x05\x02\x02a\x05\x02\x02b"));
    assert_eq!(twice.map(|sample| sample.five), Ok("b".into()));
    let unordered = decode(3, &with_tags(b"\x03\x09\x06\0\0\0\x07\x01\0\x46\0\x05\x02\x02a"));
    let unordered = unordered.expect("any order will do");
    assert_eq!((unordered.inner.a, unordered.five.as_str()), (7, "a"));
    assert!(unordered.unknown.get(0x46).is_some_and(Bytes::is_empty));
    // Not in this version; of another size than its content; beyond the end; too many.
    let not_in_version = DecodeErrorKind::TagNotInVersion { tag: 1, version: 2 };
    assert_eq!(decode(2, &with_tags(b"\x01\x01\x01\x01")), Err(not_in_version));
    let size = Err(DecodeErrorKind::TagSize { tag: 5 });
    assert_eq!(decode(3, &with_tags(b"\x01\x05\x03\x02ab")), size);
    assert_eq!(decode(3, &with_tags(b"\x01\x05\x01\x02a")), size);
    let beyond = DecodeErrorKind::Truncated { needed: 9, left: 1 };
    assert_eq!(decode(3, &with_tags(b"\x01\x46\x09a")), Err(beyond));
    let count = MAX_TAGS + 1;
    let many = [&b"\x91\x4e"[..], &vec![0; 2 * count]].concat();
    assert_eq!(decode(3, &with_tags(&many)), Err(DecodeErrorKind::TooManyTags { count }));
}

#[test]
fn as_many_tags_as_kafka_takes_are_taken() {
    let mut sample = text();
    for tag in 0..10_000 {
        sample.unknown.push(100 + tag, Bytes::new());
    }
    let ascending = encode(3, &sample);
    assert_eq!(decode(3, &ascending), Ok(sample.clone()));
    // Those of three bytes, last first: still in good time, and in order afterwards.
    let (head, small_tags) = ascending.split_at(encode(3, &text()).len() + 1);
    let (small_tags, large_tags) = small_tags.split_at(2 * 28);
    let descending: Vec<u8> = large_tags.rchunks(3).flatten().copied().collect();
    let unordered = [head, &descending, small_tags].concat();
    assert_eq!(decode(3, &unordered), Ok(sample.clone()));
    sample.unknown.push(99_999, Bytes::new());
    assert!(sample.encoded_len(3).is_err());
}

#[test]
fn varints_may_be_longer_than_needed_but_not_beyond_32_bits() {
    let head = [&b"\0\0\0\0\0\0"[..], &[0xff; 8]].concat();
    let with = |len: &[u8]| [&head[..], len, b"t\0\0\0"].concat();
    assert_eq!(decode(2, &with(b"\x82\x80\x80\x80\x00")), Ok(text()));
    for bad in [&b"\x82\x80\x80\x80\x80\x00"[..], b"\x82\x80\x80\x80\x10"] {
        assert_eq!(decode(2, &with(bad)), Err(DecodeErrorKind::VarintTooLong));
    }
}

#[test]
fn null_is_refused_where_it_may_not_be() {
    let mut bytes = encode(0, &text());
    bytes.splice(4 + 1..4 + 1 + 3, [0xff, 0xff]);
    assert_eq!(decode(0, &bytes), Err(DecodeErrorKind::Null));
    let null = Sample { text: None, ..Sample::default() };
    assert_eq!(decode(1, &encode(1, &null)), Ok(null));
}

#[test]
fn counts_of_elements_are_checked_before_the_elements() {
    let kind = |bytes: Vec<u8>| {
        Bombs::decode_exact(0, bytes.into()).map_err(|error| (error.position, error.kind))
    };
    let missing = DecodeErrorKind::Truncated { needed: 9, left: 1 };
    assert_eq!(kind(vec![10, 0]), Err((1, missing)));
    // A million and one, and all of them are there.
    let count = MAX_ARRAY_ELEMENTS + 1;
    let many = [&b"\xc2\x84\x3d"[..], &vec![0; count]].concat();
    assert_eq!(kind(many), Err((3, DecodeErrorKind::TooManyElements { count })));
}

#[test]
fn elements_may_not_take_memory_out_of_proportion() {
    let bombs = |count: usize| {
        let mut buf = BytesMut::new();
        let message = Bombs { bombs: vec![Bomb::default(); count] };
        message.encode(0, &mut buf).expect("few enough");
        Bombs::decode_exact(0, buf.freeze())
    };
    assert!(bombs(100).is_ok());
    let error = bombs(10_000).expect_err("72 times the bytes");
    assert_eq!(error.kind, DecodeErrorKind::Memory);
}
