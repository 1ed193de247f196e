//! Checks this crate against golden vectors: bytes written by Kafka, with what Kafka reads in them.
//!
//! A file has one JSON object a line; `testdata/wire/README.md` tells its form. Every line is checked
//! both ways, and cut short at every byte. Lines of messages that are not built are counted.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::Value;

use crate::codec::Message;
use crate::control;
use crate::json::Json;
use crate::message;
use crate::metadata;

mod batches;
mod frames;
mod messages;

/// What the check of a file found.
#[derive(Debug, Default)]
pub struct Report {
    /// How many lines are as they should be.
    pub passed: usize,
    /// The lines that are not, and why.
    pub failed: Vec<String>,
    /// How many lines were left out, by message.
    pub left_out: BTreeMap<String, usize>,
    /// Lines that Java takes and we refuse on purpose; they are among those that passed.
    pub stricter: Vec<String>,
}

impl Report {
    /// How many lines were left out.
    pub fn left_out_count(&self) -> usize {
        self.left_out.values().sum()
    }

    /// Adds what another file gave.
    pub fn merge(&mut self, other: Report) {
        self.passed += other.passed;
        self.failed.extend(other.failed);
        self.stricter.extend(other.stricter);
        for (message, count) in other.left_out {
            *self.left_out.entry(message).or_default() += count;
        }
    }
}

/// Checks every line of a file.
pub fn check_file(text: &str) -> Report {
    let mut report = Report::default();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let parsed = serde_json::from_str::<Value>(line);
        let name = match &parsed {
            Ok(line) => format!("line {}: {}", index + 1, title(line)),
            Err(_) => format!("line {}", index + 1),
        };
        match parsed.map_err(|error| error.to_string()).and_then(|line| check_line(&line)) {
            Ok(Outcome::Passed) => report.passed += 1,
            Ok(Outcome::Stricter(why)) => {
                report.passed += 1;
                report.stricter.push(format!("{name}: {why}"));
            }
            Ok(Outcome::LeftOut(what)) => *report.left_out.entry(what).or_default() += 1,
            Err(why) => report.failed.push(format!("{name}: {why}")),
        }
    }
    report
}

/// What a line that did not fail came to.
pub(crate) enum Outcome {
    Passed,
    Stricter(String),
    LeftOut(String),
}

pub(crate) type Checked = Result<Outcome, String>;

fn check_line(line: &Value) -> Checked {
    if line.get("kind").is_some() {
        return batches::check(line);
    }
    let name = string(line, "message")?;
    let direction = line.get("direction").and_then(Value::as_str);
    let java = line.get("java").is_some();
    match (direction, java) {
        (Some(_), _) => for_message(name, line, &frames::Frame),
        (None, true) => for_message(name, line, &messages::Edge),
        (None, false) => for_message(name, line, &messages::Plain),
    }
}

/// A check of a line whose message has the type `M`.
pub(crate) trait Check {
    /// Checks the line.
    fn check<M: Message + Json + PartialEq>(&self, line: &Value) -> Checked;
}

/// Finds the type that bears Kafka's name.
fn for_message(name: &str, line: &Value, check: &impl Check) -> Checked {
    macro_rules! others {
        ($($module:ident::{$($message:ident),*}),* $(,)?) => {
            match name {
                $($($module::$message::NAME => check.check::<$module::$message>(line),)*)*
                other => Ok(Outcome::LeftOut(other.to_owned())),
            }
        };
    }
    let listed = message::check_named(name, line, check);
    listed.or_else(|| metadata::check_named(name, line, check)).unwrap_or_else(|| {
        others! {
            message::{RequestHeader, ResponseHeader, DefaultPrincipalData, QuorumStateData},
            control::{
                LeaderChangeMessage, SnapshotHeaderRecord, SnapshotFooterRecord,
                KRaftVersionRecord, VotersRecord
            },
        }
    })
}

fn title(line: &Value) -> String {
    let part = |key| line.get(key).and_then(Value::as_str);
    let name = part("message").or(part("name")).unwrap_or("?");
    let version = line.get("version").map(|version| format!(" v{version}")).unwrap_or_default();
    let variant = part("variant").or(part("note")).map(|variant| format!(" ({variant})"));
    format!("{name}{version}{}", variant.unwrap_or_default())
}

/// Compares two values, and shows both if they differ.
fn same<T: PartialEq + core::fmt::Debug>(what: &str, ours: &T, theirs: &T) -> Result<(), String> {
    match ours == theirs {
        true => Ok(()),
        false => Err(format!("{what}: ours {ours:?}, Kafka's {theirs:?}")),
    }
}

fn same_bytes(what: &str, ours: &[u8], theirs: &[u8]) -> Result<(), String> {
    match ours == theirs {
        true => Ok(()),
        false => Err(format!("{what}: ours {}, Kafka's {}", to_hex(ours), to_hex(theirs))),
    }
}

fn member<'a>(line: &'a Value, name: &str) -> Result<&'a Value, String> {
    line.get(name).ok_or_else(|| format!("the line has no `{name}`"))
}

fn string<'a>(line: &'a Value, name: &str) -> Result<&'a str, String> {
    member(line, name)?.as_str().ok_or_else(|| format!("`{name}` is no string"))
}

fn int16(line: &Value, name: &str) -> Result<i16, String> {
    let number = member(line, name)?.as_i64().and_then(|number| i16::try_from(number).ok());
    number.ok_or_else(|| format!("`{name}` is no int16"))
}

fn hex(line: &Value, name: &str) -> Result<Bytes, String> {
    from_hex(string(line, name)?).ok_or_else(|| format!("`{name}` is not hex"))
}

fn from_hex(text: &str) -> Option<Bytes> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    let digit =
        |digit: u8| char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
