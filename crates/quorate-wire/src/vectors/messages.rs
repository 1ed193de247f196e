//! Bodies of messages, control records and metadata records; and odd encodings with Java's verdict.

use bytes::{Bytes, BytesMut};
use serde_json::Value;

use super::{Check, Checked, Outcome, hex, int16, member, same, same_bytes, string};
use crate::codec::{Message, UnknownTags};
use crate::control::{self, ControlRecord};
use crate::json::{Json, from_json, to_json};
use crate::message::{ApiKey, request_header_version, response_header_version};
use crate::metadata::{self, MetadataRecord};

/// A line with bytes and the JSON that Kafka gives for them.
pub(super) struct Plain;

impl Check for Plain {
    fn check<M: Message + Json + PartialEq>(&self, line: &Value) -> Checked {
        let version = int16(line, "version")?;
        if !M::VERSIONS.contains(&version) {
            return Ok(Outcome::LeftOut(format!("{} v{version}", M::NAME)));
        }
        let bytes = hex(line, "hex")?;
        if let Some(flexible) = line.get("flexible").and_then(Value::as_bool) {
            same("flexible", &M::ctx(version).flexible, &flexible)?;
        }
        both_ways::<M>(version, &bytes, member(line, "json")?, line.get("unknownTags"))?;
        prefixes::<M>(version, &bytes)?;
        key::<M>(line)?;
        header_version::<M>(version, line)?;
        control(line, version, &bytes)?;
        framed(line, version, &bytes)?;
        Ok(Outcome::Passed)
    }
}

/// Decodes and encodes, in one piece and vectored, and compares the computed size.
pub(super) fn both_ways<M: Message + Json + PartialEq>(
    version: i16,
    bytes: &Bytes,
    json: &Value,
    unknown: Option<&Value>,
) -> Result<(), String> {
    let decoded = M::decode_exact(version, bytes.clone()).map_err(|error| error.to_string())?;
    same("decoded", &to_json(&decoded, version), json)?;

    let mut built = from_json::<M>(version, json).map_err(|error| error.to_string())?;
    for tag in unknown.and_then(Value::as_array).into_iter().flatten() {
        let path: Vec<&str> = string(tag, "path")?.split('/').skip(1).collect();
        let tags: &mut UnknownTags = built
            .unknown_tags_at(&path)
            .ok_or_else(|| format!("nothing keeps unknown tags at {path:?}"))?;
        let number = member(tag, "tag")?.as_u64().and_then(|number| u32::try_from(number).ok());
        tags.push(number.ok_or("a tag is no number")?, hex(tag, "hex")?);
    }
    if built != decoded {
        return Err("what is built from the JSON is not what is decoded".into());
    }
    let mut encoded = BytesMut::new();
    built.encode(version, &mut encoded).map_err(|error| error.to_string())?;
    same_bytes("encoded", &encoded, bytes)?;
    let len = built.encoded_len(version).map_err(|error| error.to_string())?;
    same("computed length", &len, &bytes.len())?;
    let parts = built.encode_vectored(version).map_err(|error| error.to_string())?;
    same_bytes("encoded for a vectored write", &parts.concat(), bytes)
}

/// Whatever is cut short must be refused.
fn prefixes<M: Message>(version: i16, bytes: &Bytes) -> Result<(), String> {
    let taken = (0..bytes.len()).find(|len| M::decode(version, &mut bytes.slice(..*len)).is_ok());
    taken.map_or(Ok(()), |len| Err(format!("decodes when cut after {len} bytes")))
}

fn key<M: Message>(line: &Value) -> Result<(), String> {
    let key = line.get("apiKey").or(line.get("controlType")).and_then(Value::as_i64);
    same("key", &M::KEY.map(i64::from), &key)
}

fn header_version<M: Message>(version: i16, line: &Value) -> Result<(), String> {
    let Some(expected) = line.get("headerVersion").and_then(Value::as_i64) else { return Ok(()) };
    let api = M::KEY.and_then(ApiKey::from_code).ok_or("no API has this key")?;
    let ours = match M::NAME.ends_with("Request") {
        true => request_header_version(api, version),
        false => response_header_version(api, version),
    };
    same("header version", &i64::from(ours), &expected)
}

/// A control record's key; the value is always read at version 0.
fn control(line: &Value, version: i16, value: &Bytes) -> Result<(), String> {
    if line.get("keyHex").is_none() {
        return Ok(());
    }
    let key = hex(line, "keyHex")?;
    let type_code = control::decode_key(&key).map_err(|error| error.to_string())?;
    same("type in the key", &type_code, &int16(line, "controlType")?)?;
    if version > 0 {
        return Ok(());
    }
    let record = ControlRecord::decode(&key, value.clone()).map_err(|error| error.to_string())?;
    same_bytes("key", &record.key(), &key)?;
    let mut encoded = BytesMut::new();
    record.encode_value(&mut encoded).map_err(|error| error.to_string())?;
    same_bytes("control record", &encoded, value)
}

/// A metadata record's frame.
fn framed(line: &Value, version: i16, body: &Bytes) -> Result<(), String> {
    if line.get("framedHex").is_none() {
        return Ok(());
    }
    let framed = hex(line, "framedHex")?;
    let (_, _, inner) = metadata::split(framed.clone()).map_err(|error| error.to_string())?;
    same_bytes("what the frame holds", &inner, body)?;
    let (record, found) =
        MetadataRecord::decode(framed.clone()).map_err(|error| error.to_string())?;
    same("version in the frame", &found, &version)?;
    let encoded = record.encode(version).map_err(|error| error.to_string())?;
    same_bytes("framed", &encoded, &framed)?;
    match (0..framed.len()).find(|len| MetadataRecord::decode(framed.slice(..*len)).is_ok()) {
        None => Ok(()),
        Some(len) => Err(format!("the frame decodes when cut after {len} bytes")),
    }
}

/// A line with odd bytes and what Java's reader says of them.
pub(super) struct Edge;

impl Check for Edge {
    fn check<M: Message + Json + PartialEq>(&self, line: &Value) -> Checked {
        let version = int16(line, "version")?;
        let mut bytes = hex(line, "hex")?;
        let decoded = M::decode(version, &mut bytes);
        match (string(line, "java")?, decoded) {
            ("ok", Ok(message)) => {
                same("decoded", &to_json(&message, version), member(line, "json")?)?;
                let left = member(line, "bytesLeft")?.as_u64();
                same("bytes left", &u64::try_from(bytes.len()).ok(), &left)?;
                Ok(Outcome::Passed)
            }
            ("error", Err(_)) => Ok(Outcome::Passed),
            ("ok", Err(error)) if error.is_stricter_than_java() => {
                Ok(Outcome::Stricter(error.to_string()))
            }
            ("ok", Err(error)) => Err(format!("Java takes it, we do not: {error}")),
            ("error", Ok(_)) => Err(format!("Java refuses it: {}", string(line, "error")?)),
            (other, _) => Err(format!("`java` is {other}")),
        }
    }
}
