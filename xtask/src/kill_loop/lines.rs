//! What a node's process says: outcomes on stdout, its log on stderr.
//!
//! ```text
//! ack ID OFFSET EPOCH        committed
//! unknown ID OFFSET EPOCH    appended, may commit, at most once
//! notappended ID REASON      never in any log
//! ```
//!
//! An ID has 32 hexadecimal digits and is used once; a record's payload begins with it.

use std::fmt;

use anyhow::{Context, Result, bail};

/// Where a record was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(super) offset: i64,
    pub(super) epoch: i32,
}

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Acknowledged(Place),
    Unknown(Place),
    NotAppended,
}

/// Reads a line of stdout: a record's id, and what became of it.
pub(super) fn outcome(line: &str) -> Result<(Id, Outcome)> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let &[kind, id, ref rest @ ..] = words.as_slice() else { bail!("{line:?} is too short") };
    let id = parse_id(id.as_bytes()).with_context(|| format!("{line:?} has no id"))?;
    let outcome = match (kind, rest) {
        ("ack", [offset, epoch]) => Outcome::Acknowledged(place(line, offset, epoch)?),
        ("unknown", [offset, epoch]) => Outcome::Unknown(place(line, offset, epoch)?),
        ("notappended", [_, ..]) => Outcome::NotAppended,
        _ => bail!("{line:?} is no outcome"),
    };
    Ok((id, outcome))
}

fn place(line: &str, offset: &str, epoch: &str) -> Result<Place> {
    let offset = offset.parse().with_context(|| format!("the offset in {line:?}"))?;
    let epoch = epoch.parse().with_context(|| format!("the epoch in {line:?}"))?;
    Ok(Place { offset, epoch })
}

/// How many digits an id has.
pub(super) const ID_LEN: usize = 32;

/// Names a record, once and for all.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Id(pub(super) u128);

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:0ID_LEN$x}", self.0)
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Reads an id.
pub(super) fn parse_id(digits: &[u8]) -> Option<Id> {
    let text = std::str::from_utf8(digits).ok()?;
    let is_hex = text.len() == ID_LEN && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u128::from_str_radix(text, 16).ok().map(Id)).flatten()
}

/// The epoch, if a line of the log says that its node now leads: the message is `leader` and nothing
/// else, so what stands before it is the end of the log line's head.
pub(super) fn leader_epoch(line: &str) -> Option<i32> {
    let (head, rest) = line.split_once("leader epoch=")?;
    let head = head.trim_end();
    if !head.is_empty() && !head.ends_with(':') {
        return None;
    }
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

/// Whether a line of the log reports lost committed data, which the node believes to have evidence of.
pub(super) fn is_integrity_fault(line: &str) -> bool {
    line.to_ascii_lowercase().contains("integrity fault")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_outcome_is_read() {
        let place = Place { offset: 17, epoch: 3 };
        let id = Id(0x3_0000_00ab_0000_0000_0000_0001);
        for (line, expected) in [
            ("ack 00000003000000ab0000000000000001 17 3", Outcome::Acknowledged(place)),
            ("unknown 00000003000000ab0000000000000001 17 3", Outcome::Unknown(place)),
            (
                "notappended 00000003000000ab0000000000000001 not-leader epoch=4",
                Outcome::NotAppended,
            ),
        ] {
            assert_eq!(outcome(line).expect(line), (id, expected));
        }
    }

    #[test]
    fn what_is_no_outcome_is_refused() {
        for line in [
            "",
            "ack",
            "ack 00000003000000ab0000000000000001",
            "ack 00000003000000ab0000000000000001 17",
            "ack 00000003000000ab0000000000000001 17 3 4",
            "ack ab 17 3",
            "ack 00000003000000ab000000000000000x 17 3",
            "ack 00000003000000ab0000000000000001 x 3",
            "notappended 00000003000000ab0000000000000001",
            "done 00000003000000ab0000000000000001 17 3",
        ] {
            assert!(outcome(line).is_err(), "{line}");
        }
    }

    #[test]
    fn only_a_node_that_leads_itself_counts_as_leader() {
        for (line, epoch) in [
            ("leader epoch=7", Some(7)),
            ("2026-11-29T23:00:00.1Z  INFO quorate_node::driver: leader epoch=12 node=2", Some(12)),
            ("2026-11-29T23:00:00.1Z  INFO quorate_node: follows leader epoch=12", None),
            ("2026-11-29T23:00:00.1Z  INFO quorate_node: role leader=2 epoch=12", None),
            ("2026-11-29T23:00:00.1Z  INFO quorate_node: leader epoch=", None),
        ] {
            assert_eq!(leader_epoch(line), epoch, "{line}");
        }
    }
}
