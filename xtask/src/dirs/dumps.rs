//! What `quorate log dump --json` prints, against what kafka-dump-log did.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value};

use super::{json_lines, quorate_in};

/// Compares every file that the tree has a dump of. Returns how many.
pub(super) fn check(quorate: &Path, tree: &Path, expected: &Value) -> Result<usize> {
    let Some(dumps) = expected["dumps"].as_object() else { return Ok(0) };
    for (path, dump) in dumps {
        let output = quorate_in(quorate, &["log", "dump", "--json"], &tree.join(path))?;
        let mut ours = json_lines(&output)?;
        // The unreadable end, which Kafka's tool tells in other words.
        ours.retain(|object| object.get("damage").is_none());
        let theirs = dump["batches"].as_array().context("a dump has no batches")?;
        ensure!(
            ours.len() == theirs.len(),
            "{path}: {} batches, Kafka has {}",
            ours.len(),
            theirs.len()
        );
        for (ours, theirs) in ours.iter().zip(theirs) {
            batch(ours, theirs, &expected["batchDefaults"])
                .with_context(|| format!("{path}, batch at offset {}", theirs["baseOffset"]))?;
        }
    }
    Ok(dumps.len())
}

fn batch(ours: &Value, theirs: &Value, defaults: &Value) -> Result<()> {
    let mut full = defaults.as_object().context("no batchDefaults")?.clone();
    full.extend(theirs.as_object().context("no batch")?.clone());
    let records = full.remove("records").unwrap_or_default();
    members(ours, &full)?;
    let theirs = records.as_array().context("no records")?;
    let ours = ours["records"].as_array().context("we have no records")?;
    ensure!(ours.len() == theirs.len(), "{} records, Kafka has {}", ours.len(), theirs.len());
    for (ours, theirs) in ours.iter().zip(theirs) {
        let mut theirs = theirs.as_object().context("no record")?.clone();
        theirs.entry("CreateTime").or_insert(full["CreateTime"].clone());
        if theirs.remove("text").is_some() {
            // 4.0.0 does not decode this one.
            theirs.insert("control".into(), "LeaderChange".into());
        }
        members(ours, &theirs)?;
    }
    Ok(())
}

/// Each of their members is ours; we may have more.
fn members(ours: &Value, theirs: &Map<String, Value>) -> Result<()> {
    for (name, theirs) in theirs {
        let ours = &ours[name];
        ensure!(ours == theirs, "{name}: ours {ours}, Kafka's {theirs}");
    }
    Ok(())
}
