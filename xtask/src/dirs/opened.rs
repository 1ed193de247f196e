//! What our store finds when it opens a copy, against what Kafka's log layer found. A log that begins with a snapshot is not
//! opened for writing yet: it is read, and described all the same.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use quorate_core::io::ElectionState;
use quorate_core::{Epoch, Offset};

use quorate_storage::{
    LOG_DIR, Opened, Options, RealFs, RollLimits, StorageError, Store, checkpoint, meta_properties,
    quorum_state, read_log,
};
use quorate_wire::batch::control_records;
use quorate_wire::control::ControlRecord;
use serde_json::Value;

use super::{Scratch, number_of, text_of};

/// Opens the copy, twice, and compares. `verified` is what `log verify` said of the original.
pub(super) fn check(
    copy: &Path,
    expected: &Value,
    damage: &Value,
    verified: &Value,
) -> Result<String> {
    identity(copy, &expected["metaProperties"])?;
    let opened = match open(copy) {
        Ok(opened) => opened,
        Err(error @ StorageError::HasSnapshots { .. }) => {
            ensure!(error.to_string().contains("this version cannot yet open"), "{error}");
            let found = Found::read(&copy.join(LOG_DIR))?;
            ensure!(verified["logEndOffset"] == found.log_end.0, "log verify ends at {verified}");
            return Ok(format!("is {READ_ONLY}: {}", describe(&found, expected)?));
        }
        Err(error) => bail!("does not open: {error}"),
    };
    let end = opened.log_end;
    ensure!(verified["logEndOffset"] == end.0, "log verify ends at {}", verified["logEndOffset"]);
    let verdict = match damage.is_null() {
        true => {
            ensure!(opened.notes.is_empty(), "notes: {:?}", opened.notes);
            format!("opens, {}", describe(&Found::of(&opened), expected)?)
        }
        false => cut(&opened, expected, verified)?,
    };
    opened.store.close().context("does not close")?;
    let again = open(copy).context("does not open again")?;
    ensure!(again.notes.is_empty() && again.log_end == end, "opens otherwise the second time");
    Ok(verdict)
}

fn open(dir: &Path) -> Result<Opened<RealFs>, StorageError> {
    let meta = meta_properties::read(&RealFs, dir)?;
    let meta = meta.ok_or_else(|| StorageError::Unformatted { dir: dir.to_owned() })?;
    let options = Options { dir: dir.to_owned(), node: meta.node, limits: RollLimits::default() };
    Store::open(RealFs, options)
}

fn identity(dir: &Path, expected: &Value) -> Result<()> {
    let meta = meta_properties::read(&RealFs, dir)?.context("there is no meta.properties")?;
    let directory = meta.directory.context("there is no directory.id")?;
    ensure!(meta.cluster == text_of(&expected["cluster.id"])?, "cluster.id {}", meta.cluster);
    ensure!(meta.node.to_string() == text_of(&expected["node.id"])?, "node.id {}", meta.node);
    ensure!(directory.to_string() == text_of(&expected["directory.id"])?, "{directory}");
    Ok(())
}

/// What a verdict says of a directory that was not opened for writing.
pub(super) const READ_ONLY: &str = "read, not opened for writing";

/// What a directory holds.
struct Found {
    log_start: Offset,
    log_end: Offset,
    epochs: Vec<(Epoch, Offset)>,
    election: Option<ElectionState>,
    /// Control records with their offsets: those of a checkpoint stand before its end.
    control: Vec<(i64, ControlRecord)>,
}

impl Found {
    fn of(opened: &Opened<RealFs>) -> Found {
        let bootstrap = opened.bootstrap.iter().flat_map(|checkpoint| &checkpoint.control);
        let log = opened.control.iter().map(|(offset, record)| (offset.0, record.clone()));
        Found {
            log_start: opened.log_start,
            log_end: opened.log_end,
            epochs: opened.epochs.clone(),
            election: opened.election.clone(),
            control: bootstrap.map(|record| (-1, record.clone())).chain(log).collect(),
        }
    }

    /// Reads a log that begins with a snapshot.
    fn read(log_dir: &Path) -> Result<Found> {
        let names: Vec<String> = std::fs::read_dir(log_dir)?
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        let ids = names.iter().filter_map(|name| checkpoint::parse_file_name(name));
        let mut ids: Vec<_> = ids.collect();
        ids.sort_unstable();
        let (first, latest) =
            ids.first().zip(ids.last()).context("a directory with snapshots has none")?;
        let snapshot = checkpoint::read(&RealFs, &log_dir.join(checkpoint::file_name(*latest)))?;
        let before = latest.offset.0 - 1;
        let records = snapshot.context("the snapshot is gone")?.control.into_iter();
        let mut found = Found {
            log_start: latest.offset,
            log_end: latest.offset,
            epochs: Vec::new(),
            election: quorum_state::read(&RealFs, log_dir)?,
            control: records.map(|record| (before, record)).collect(),
        };
        for (count, batch) in read_log(&RealFs, log_dir)?.enumerate() {
            let batch = batch?.batch;
            if count == 0 {
                found.log_start = batch.base();
            }
            // Kafka knows the epochs from its first snapshot on.
            let since = batch.base().max(first.offset);
            if found.epochs.last().is_none_or(|(epoch, _)| *epoch < batch.epoch()) {
                found.epochs.push((batch.epoch(), since));
            }
            let control = control_records(batch.batch())?.into_iter();
            let later = control.filter(|(offset, _)| *offset > before);
            found.control.extend(later);
            found.log_end = batch.end();
        }
        Ok(found)
    }
}

/// Compares all that Kafka's log layer tells.
fn describe(opened: &Found, node: &Value) -> Result<String> {
    let expected = &node["opened"];
    let end = opened.log_end;
    if expected.is_null() {
        // Kafka found no log to open.
        ensure!(end == Offset(0) && opened.epochs.is_empty(), "the log ends at {end}");
        return Ok("has no log yet".to_owned());
    }
    same("log start", &opened.log_start.0, &number_of(&expected["logStartOffset"])?)?;
    same("log end", &end.0, &number_of(&expected["logEndOffset"])?)?;
    epochs(opened, expected)?;
    let election = opened.election.as_ref().map(printed);
    same("quorum-state", &election.as_deref(), &expected["electionState"].as_str())?;
    let (version, voters) = voters(opened);
    same("kraft.version", &i64::from(version), &number_of(&expected["kraftVersion"])?)?;
    let offset = voters.as_ref().map(|(offset, _)| *offset);
    same("the voters' offset", &offset, &expected["votersOffset"].as_i64())?;
    let set = voters.map(|(_, set)| set).unwrap_or_default();
    let count = set.len();
    same(
        "voters",
        &by_id(set),
        &by_id(expected["voters"].as_array().cloned().unwrap_or_default()),
    )?;
    let voters = match offset {
        Some(offset) => format!("{count} voters at {offset}"),
        None => "no voters".to_owned(),
    };
    Ok(format!("ends at {end}, kraft.version {version}, {voters}"))
}

fn epochs(opened: &Found, expected: &Value) -> Result<()> {
    let ours: Vec<String> =
        opened.epochs.iter().map(|(epoch, start)| format!("{epoch} {start}")).collect();
    let lines = expected["leaderEpochCheckpointAfter"].as_array().context("no epochs")?;
    let theirs: Vec<String> =
        lines.iter().skip(2).map(|line| text_of(line).map(str::to_owned)).collect::<Result<_>>()?;
    same("epochs", &ours, &theirs)?;
    for asked in expected["endOffsetForEpoch"].as_array().into_iter().flatten() {
        let epoch = Epoch(i32::try_from(number_of(&asked[0])?)?);
        let after = opened.epochs.partition_point(|(other, _)| *other <= epoch);
        // Before the first epoch Kafka has an answer of its own.
        let Some((found, _)) = after.checked_sub(1).and_then(|at| opened.epochs.get(at)) else {
            continue;
        };
        let end = opened.epochs.get(after).map_or(opened.log_end, |(_, start)| *start);
        let ours = (end.0, i64::from(found.0));
        same("the end of an epoch", &ours, &(number_of(&asked[1])?, number_of(&asked[2])?))?;
    }
    Ok(())
}

/// The level of kraft.version, and the voters with their offset: the latest counts.
fn voters(opened: &Found) -> (i16, Option<(i64, Vec<Value>)>) {
    let (mut version, mut voters) = (0, None);
    for (offset, record) in &opened.control {
        match record {
            ControlRecord::KRaftVersion(record) => version = record.kraft_version,
            ControlRecord::Voters(_) => {
                let set = record.to_json()["voters"].as_array().cloned();
                voters = Some((*offset, set.unwrap_or_default()));
            }
            _ => {}
        }
    }
    (version, voters)
}

fn by_id(mut voters: Vec<Value>) -> Vec<Value> {
    voters.sort_by_key(|voter| voter["voterId"].as_i64());
    voters
}

/// A damaged log is cut at the first break, and nothing behind it stays.
///
/// Differs from Kafka: it does not see an epoch that is out of order, and leaves a hole where an index file is
/// missing. There we cut, and the end is that of the first break.
fn cut(opened: &Opened<RealFs>, node: &Value, verified: &Value) -> Result<String> {
    let [note] = &opened.notes[..] else { bail!("notes: {:?}", opened.notes) };
    let said = &verified["damage"][0];
    same("where it is cut", &Some(note.position), &said["position"].as_u64())?;
    same("the bytes lost", &Some(note.bytes_lost), &said["bytesLost"].as_u64())?;
    let (ours, kafkas) = (opened.log_end.0, number_of(&node["opened"]["logEndOffset"])?);
    let break_at = number_of(&said["endAfterCut"])?;
    same("the end", &ours, &break_at)?;
    ensure!(ours <= kafkas, "we end at {ours}, behind Kafka's {kafkas}");
    let epochs: Vec<i32> = opened.epochs.iter().map(|(epoch, _)| epoch.0).collect();
    same("epochs", &epochs, &vec![1])?;
    let kafka = match ours == kafkas {
        true => "as by Kafka".to_owned(),
        false => format!("Kafka goes on to {kafkas} over the break"),
    };
    Ok(format!("is cut at the first break, offset {ours}, {} bytes lost; {kafka}", note.bytes_lost))
}

/// One file for each kind of content, read and written letter by letter.
pub(super) fn quorum_states(tree: &Path, expected: &Value) -> Result<String> {
    let kinds = expected["kinds"].as_object().context("no kinds")?;
    for (kind, expected) in kinds {
        let state = quorum_state::read(&RealFs, &tree.join(kind))?;
        let state = state.with_context(|| format!("{kind} has no quorum-state"))?;
        same(kind, &printed(&state).as_str(), &text_of(&expected["electionState"])?)?;
        let copy = Scratch::new()?;
        quorum_state::write(&RealFs, copy.path(), &state)?;
        let written = std::fs::read_to_string(copy.path().join(quorum_state::FILE_NAME))?;
        same(kind, &written.as_str(), &text_of(&expected["text"])?)?;
    }
    Ok(format!("{} quorum-state files are read, and written letter by letter", kinds.len()))
}

/// An election state as Kafka prints it.
fn printed(state: &ElectionState) -> String {
    let leader =
        state.leader.map_or("OptionalInt.empty".to_owned(), |id| format!("OptionalInt[{id}]"));
    let voted = state.voted.map_or("Optional.empty".to_owned(), |key| {
        let directory = key.directory.map_or("<undefined>".to_owned(), |id| id.to_string());
        format!("Optional[ReplicaKey(id={}, directoryId={directory})]", key.id)
    });
    let (epoch, voters) = (state.epoch, &state.voters);
    format!("Election(epoch={epoch}, leaderId={leader}, votedKey={voted}, voters={voters:?})")
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, ours: &T, theirs: &T) -> Result<()> {
    ensure!(ours == theirs, "{what}: ours {ours:?}, Kafka's {theirs:?}");
    Ok(())
}
