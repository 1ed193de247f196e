//! A node's log as its directory has it, read without the code that wrote it.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use bytes::{Bytes, BytesMut};
use quorate_wire::batch::Batch;
use quorate_wire::metadata::MetadataRecord;

use super::lines::{ID_LEN, Id, parse_id};

/// All batches of a log up to the first that is torn or out of place.
#[derive(Debug, Default)]
pub(super) struct LogCopy {
    /// The batches, one after another.
    pub(super) bytes: Bytes,
    /// Of each batch the offset after it, and the length of `bytes` up to there.
    ends: Vec<(i64, usize)>,
    /// That of the last batch.
    epoch: i32,
    /// The workload's records, by offset.
    pub(super) records: Vec<Entry>,
    /// Why reading ended before the end of the files.
    pub(super) cut: Option<String>,
}

/// A record of the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) offset: i64,
    pub(super) epoch: i32,
    pub(super) id: Id,
}

/// The segments of a log, by base offset, as their files have them.
#[derive(Debug)]
pub(super) struct Segments(Vec<(i64, PathBuf, Bytes)>);

impl Segments {
    /// Reads the files of a log directory.
    pub(super) fn read(log_dir: &Path) -> Result<Segments> {
        let with_content = |(base, path): (i64, PathBuf)| {
            let content = fs::read(&path).with_context(|| path.display().to_string())?;
            Ok((base, path, content.into()))
        };
        Ok(Segments(segments(log_dir)?.into_iter().map(with_content).collect::<Result<_>>()?))
    }
}

impl LogCopy {
    /// Takes a log that begins at offset 0 apart. A torn end is no error.
    pub(super) fn parse(segments: Segments) -> LogCopy {
        let mut copy = LogCopy::default();
        let mut bytes = BytesMut::new();
        for (base, path, content) in segments.0 {
            if base != copy.end() {
                copy.cut =
                    Some(format!("{} begins, but the log ends at {}", path.display(), copy.end()));
                break;
            }
            copy.add_segment(content, &path, &mut bytes);
            if copy.cut.is_some() {
                break;
            }
        }
        copy.bytes = bytes.freeze();
        copy
    }

    fn add_segment(&mut self, mut rest: Bytes, path: &Path, bytes: &mut BytesMut) {
        let whole = rest.len();
        while !rest.is_empty() {
            let position = whole - rest.len();
            match Batch::parse(&rest).context("no whole batch").and_then(|(batch, after)| {
                self.add(&batch)?;
                Ok((batch, after))
            }) {
                Ok((batch, after)) => {
                    bytes.extend_from_slice(batch.bytes());
                    self.ends.push((batch.end_offset(), bytes.len()));
                    rest = after;
                }
                Err(error) => {
                    self.cut = Some(format!("{} at byte {position}: {error:#}", path.display()));
                    return;
                }
            }
        }
    }

    fn add(&mut self, batch: &Batch) -> Result<()> {
        if batch.base_offset() != self.end() {
            bail!("offset {} follows {}", batch.base_offset(), self.end());
        }
        if batch.leader_epoch() < self.epoch {
            bail!("epoch {} follows {}", batch.leader_epoch(), self.epoch);
        }
        self.epoch = batch.leader_epoch();
        if batch.is_control() {
            return Ok(());
        }
        for record in batch.records()? {
            let record = record?;
            let value = Bytes::copy_from_slice(record.value.unwrap_or_default());
            if let (MetadataRecord::NoOp(no_op), _) = MetadataRecord::decode(value)? {
                let payload =
                    no_op.unknown.iter().next().context("a NoOpRecord without payload")?.1;
                let id =
                    payload.get(..ID_LEN).and_then(parse_id).context("a payload without id")?;
                let epoch = batch.leader_epoch();
                self.records.push(Entry { offset: record.offset, epoch, id });
            }
        }
        Ok(())
    }

    /// The offset after the last whole batch.
    pub(super) fn end(&self) -> i64 {
        self.ends.last().map_or(0, |(end, _)| *end)
    }

    /// The batches that lie wholly below an offset.
    pub(super) fn below(&self, offset: i64) -> Bytes {
        let batches = self.ends.partition_point(|(end, _)| *end <= offset);
        let len =
            batches.checked_sub(1).and_then(|last| self.ends.get(last)).map_or(0, |(_, len)| *len);
        self.bytes.slice(..len)
    }

    /// The record at an offset.
    pub(super) fn at(&self, offset: i64) -> Option<&Entry> {
        let index = self.records.binary_search_by_key(&offset, |entry| entry.offset).ok()?;
        self.records.get(index)
    }
}

/// The `.log` files by base offset.
fn segments(log_dir: &Path) -> Result<Vec<(i64, PathBuf)>> {
    let entries = match fs::read_dir(log_dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| log_dir.display().to_string()),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "log")
            && let Some(base) = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok())
        {
            found.push((base, path));
        }
    }
    found.sort();
    Ok(found)
}

/// For tests: the batches of a log that the workload could have written.
#[cfg(test)]
pub(super) mod sample {
    use quorate_wire::UnknownTags;
    use quorate_wire::batch::encode_data;
    use quorate_wire::metadata::NoOpRecord;

    use super::*;

    /// A batch of workload records.
    pub(in super::super) fn batch(base: i64, epoch: i32, ids: &[u128]) -> Bytes {
        let values: Vec<Bytes> = ids
            .iter()
            .map(|id| {
                let mut unknown = UnknownTags::default();
                unknown.push(1000, Bytes::from(format!("{}....", Id(*id))));
                MetadataRecord::NoOp(NoOpRecord { unknown }).encode(0).expect("it encodes")
            })
            .collect();
        encode_data(base, epoch, 1_767_225_600_000, &values)
    }

    /// A log of one segment.
    pub(in super::super) fn log(batches: &[Bytes]) -> LogCopy {
        let mut copy = LogCopy::default();
        let mut bytes = BytesMut::new();
        copy.add_segment(batches.concat().into(), Path::new("sample"), &mut bytes);
        copy.bytes = bytes.freeze();
        copy
    }
}

#[cfg(test)]
mod tests {
    use super::sample::{batch, log};
    use super::*;

    #[test]
    fn segments_are_read_in_order_up_to_the_torn_end() {
        let dir = std::env::temp_dir().join(format!("quorate-log-copy-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory");
        let mut torn = batch(3, 2, &[4]).to_vec();
        torn.extend_from_slice(&batch(4, 2, &[5])[..40]);
        fs::write(dir.join("00000000000000000003.log"), torn).expect("a file");
        fs::write(dir.join("00000000000000000003.index"), "").expect("a file");
        fs::write(dir.join("00000000000000000000.log"), batch(0, 1, &[1, 2, 3])).expect("a file");
        let segments = Segments::read(&dir);
        fs::remove_dir_all(&dir).expect("removed");
        let copy = LogCopy::parse(segments.expect("a log"));
        assert_eq!(copy.end(), 4);
        assert_eq!(copy.at(3), Some(&Entry { offset: 3, epoch: 2, id: Id(4) }));
        assert!(
            copy.cut.as_ref().is_some_and(|cut| cut.contains("0003.log at byte")),
            "{:?}",
            copy.cut
        );
        assert_eq!(copy.below(3), batch(0, 1, &[1, 2, 3]));
        assert_eq!(copy.below(2), Bytes::new());
    }

    #[test]
    fn a_gap_and_an_epoch_that_falls_end_the_log() {
        let copy = log(&[batch(0, 2, &[1]), batch(2, 2, &[2])]);
        assert!(copy.end() == 1 && copy.cut.is_some_and(|cut| cut.contains("offset 2 follows 1")));
        let copy = log(&[batch(0, 2, &[1]), batch(1, 1, &[2])]);
        assert!(copy.end() == 1 && copy.cut.is_some_and(|cut| cut.contains("epoch 1 follows 2")));
    }
}
