//! `quorate log verify`: whether a directory is sound, what is lost if not, and what a start would do.

use std::io::Write;
use std::path::PathBuf;

use quorate_storage::RealFs;
use quorate_storage::verify::{AtStart, Damage, Verified, verify};
use serde_json::{Value, json};

use super::progress::Meter;
use crate::failure::Failure;
use crate::say;

/// Looks a directory over, changes nothing, and says what is damaged.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Every batch of every segment and checkpoint is read: CRC, offsets without a gap, epochs, control records, the
rules of Kafka's own log reader; and the small files. For each damage it says in which file, at which byte and
offset, what a start of this node would do (cut the log there, refuse the directory, write the file anew,
nothing), and what is lost if the log is cut there. Nothing is changed and no lock is taken.

Exit codes: 0 sound; 1 damage, which is listed, or the directory cannot be read.")]
pub(crate) struct Args {
    /// A metadata log directory, the one with meta.properties; or its __cluster_metadata-0 alone.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// One JSON object instead of text.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let mut meter = Meter::new(true);
    let mut progress = |at: quorate_storage::verify::Progress<'_>| meter.at(at.path, at.bytes);
    let found = verify(&RealFs, &args.dir, &mut progress).map_err(|error| {
        Failure::new(error.to_string())
            .next("give a metadata.log.dir (log.dirs): the directory that has meta.properties")
    })?;
    if args.json {
        say(out, &object(args, &found).to_string())?;
    } else {
        for line in lines(args, &found) {
            say(out, &line)?;
        }
    }
    match found.damage.is_empty() {
        true => Ok(()),
        // It is on stdout already.
        false => Err(Failure::new("")),
    }
}

fn lines(args: &Args, found: &Verified) -> Vec<String> {
    let dir = args.dir.display();
    let mut lines: Vec<String> = found.damage.iter().map(line).collect();
    lines.extend(found.remarks.iter().map(|remark| format!("remark: {remark}")));
    let verdict = match found.damage.len() {
        0 => "sound".to_owned(),
        1 => "DAMAGED in 1 place".to_owned(),
        n => format!("DAMAGED in {n} places"),
    };
    lines.push(format!(
        "{dir}: {verdict}; offsets {} to {}, {} checkpoints; {} batches, {} records, {} bytes are sound",
        found.log_start,
        found.log_end,
        found.checkpoints,
        found.batches,
        found.records,
        found.bytes
    ));
    lines
}

fn line(damage: &Damage) -> String {
    let position = damage.position.map(|at| format!(", position {at}")).unwrap_or_default();
    let offset = damage.offset.map(|at| format!(", offset {at}")).unwrap_or_default();
    let at_start = match &damage.at_start {
        AtStart::Refuses => "a start refuses the directory".to_owned(),
        AtStart::Repairs => "a start writes the file anew from the log".to_owned(),
        AtStart::Ignores => "a start does not notice".to_owned(),
        AtStart::Cuts(loss) => {
            let readable = match loss.readable_to {
                Some(end) => {
                    format!(", among them batches up to offset {end} that can still be read")
                }
                None => ", none of which holds a batch that can still be read".to_owned(),
            };
            format!(
                "a start cuts the log there: it then ends at offset {}, and {} bytes are lost{readable}",
                loss.end, loss.bytes
            )
        }
    };
    format!("damage: {}{position}{offset}: {}; {at_start}", damage.path.display(), damage.reason)
}

fn object(args: &Args, found: &Verified) -> Value {
    let damage = found.damage.iter().map(|damage| {
        let mut shown = json!({
            "file": damage.path.display().to_string(),
            "position": damage.position,
            "offset": damage.offset.map(|offset| offset.0),
            "reason": damage.reason,
            "atStart": match &damage.at_start {
                AtStart::Cuts(_) => "cut",
                AtStart::Refuses => "refuse",
                AtStart::Repairs => "repair",
                AtStart::Ignores => "ignore",
            },
        });
        if let AtStart::Cuts(loss) = &damage.at_start {
            shown["endAfterCut"] = loss.end.0.into();
            shown["bytesLost"] = loss.bytes.into();
            shown["readableTo"] = loss.readable_to.map(|end| end.0).into();
        }
        shown
    });
    json!({
        "directory": args.dir.display().to_string(),
        "sound": found.damage.is_empty(),
        "logStartOffset": found.log_start.0,
        "logEndOffset": found.log_end.0,
        "checkpoints": found.checkpoints,
        "batches": found.batches,
        "records": found.records,
        "bytes": found.bytes,
        "damage": damage.collect::<Vec<_>>(),
        "remarks": found.remarks,
    })
}
