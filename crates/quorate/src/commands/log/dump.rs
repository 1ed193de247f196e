//! `quorate log dump`: the batches and records of segments and checkpoints, in the words of kafka-dump-log.

use std::io::{BufWriter, IsTerminal as _, Write};
use std::path::{Path, PathBuf};

use quorate_storage::{BatchFile, LogBatch, RealFs, StorageError, Unsound, checkpoint};
use serde::Serialize;

use super::batches::ShownBatch;
use super::progress::Meter;
use crate::failure::Failure;
use crate::say;

/// Prints the batches and records of segments and checkpoints, as kafka-dump-log does.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Control and metadata records are decoded; the text is that of kafka-dump-log --cluster-metadata-decoder.
With --json each batch is an object with the members of kafka-dump-log's lines, `file`, and `records`; a
record has `type`, `version` and `data`, or `control` and `value`, or `error`. Damage is an object with
`file`, `position` and `damage`. No lock is taken: the end of a live node's log may look torn.

  quorate log dump DIR/__cluster_metadata-0/00000000000000000000.log
  quorate log dump --json DIR/__cluster_metadata-0/*.log | jq -c '.records[] | select(.type == \"TOPIC_RECORD\")'

Exit codes: 0 all was read, but for a last batch that is cut short, or zeros, which are room for more; 1 a file cannot be
read on from some point.
A batch with a wrong CRC is printed with `isvalid: false`; `quorate log verify` is the judge of a directory.")]
pub(crate) struct Args {
    /// Segments (*.log) and checkpoints (*.checkpoint); deleted ones too.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// One JSON object a batch.
    #[arg(long)]
    json: bool,
}

/// A batch and where it is.
#[derive(Serialize)]
struct InFile<'a> {
    file: &'a str,
    #[serde(flatten)]
    batch: ShownBatch,
}

/// The unreadable rest of a file.
#[derive(Serialize)]
struct Damaged<'a> {
    file: &'a str,
    position: u64,
    damage: &'a str,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let mut meter = Meter::new(!std::io::stdout().is_terminal());
    let mut out = BufWriter::new(out);
    let mut broken = 0;
    for file in &args.files {
        let mut dump = Dump { path: file, json: args.json, out: &mut out, meter: &mut meter };
        if !dump.file()? {
            broken += 1;
        }
    }
    out.flush().map_err(|error| Failure::new(format!("cannot write to stdout: {error}")))?;
    match broken {
        0 => Ok(()),
        // They are named already.
        _ => Err(Failure::new("")),
    }
}

struct Dump<'a, W: Write> {
    path: &'a Path,
    json: bool,
    out: &'a mut W,
    meter: &'a mut Meter,
}

impl<W: Write> Dump<'_, W> {
    /// Prints a file; false if it could not be read to its end.
    fn file(&mut self) -> Result<bool, Failure> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if [".index", ".timeindex", ".snapshot"].iter().any(|suffix| name.contains(suffix)) {
            let path = self.path.display();
            return Err(Failure::new(format!("{path} is no segment and no checkpoint"))
                .next("give files that end in .log or .checkpoint"));
        }
        let disk = |error: StorageError| Failure::new(error.to_string());
        let mut batches = BatchFile::open(&RealFs, self.path, 0).map_err(|error| {
            disk(error).next("give segments and checkpoints: __cluster_metadata-0/*.log and *.checkpoint in metadata.log.dir")
        })?;
        if !self.json {
            self.head(&name)?;
        }
        loop {
            let position = batches.position();
            match batches.next_batch() {
                Ok(Some(batch)) => self.batch(&batch, true)?,
                Ok(None) => {
                    let zeros = batches.size().map_err(disk)?.saturating_sub(position);
                    if zeros > 0 && !self.json {
                        self.say(&format!(
                            "{zeros} zero bytes at the end of {name} are room for more"
                        ))?;
                    }
                    return Ok(true);
                }
                Err(StorageError::Corrupt { reason, .. }) => {
                    let is_torn = match batches.step_over().map_err(disk)? {
                        Unsound::Batch(batch) => {
                            self.batch(&batch, false)?;
                            continue;
                        }
                        Unsound::CutShort => true,
                        Unsound::NoBatch => false,
                    };
                    let left = batches.size().map_err(disk)?.saturating_sub(position);
                    self.rest(&name, position, left, &reason, is_torn)?;
                    return Ok(is_torn);
                }
                Err(error) => return Err(disk(error)),
            }
        }
    }

    fn say(&mut self, line: &str) -> Result<(), Failure> {
        say(self.out, line)
    }

    fn head(&mut self, name: &str) -> Result<(), Failure> {
        self.say(&format!("Dumping {}", self.path.display()))?;
        let snapshot = name.find(".checkpoint").and_then(|at| name.get(..at + ".checkpoint".len()));
        if name == "bootstrap.checkpoint" {
            self.say("KRaft bootstrap snapshot")
        } else if let Some(id) = snapshot.and_then(checkpoint::parse_file_name) {
            self.say(&format!("Snapshot end offset: {}, epoch: {}", id.offset, id.epoch))
        } else if let Some(base) = name.get(..20).and_then(|digits| digits.parse::<u64>().ok()) {
            self.say(&format!("Log starting offset: {base}"))
        } else {
            Ok(())
        }
    }

    fn batch(&mut self, batch: &LogBatch, isvalid: bool) -> Result<(), Failure> {
        self.meter.at(self.path, batch.position());
        let shown = ShownBatch::new(batch.batch(), batch.position(), isvalid);
        if !self.json {
            return shown.lines().iter().try_for_each(|line| self.say(line));
        }
        let path = self.path.display().to_string();
        self.object(&InFile { file: &path, batch: shown })
    }

    fn object(&mut self, object: &impl Serialize) -> Result<(), Failure> {
        let line = serde_json::to_string(object)
            .map_err(|error| Failure::new(format!("cannot be shown as JSON: {error}")))?;
        self.say(&line)
    }

    /// What is behind the last batch that can be read.
    fn rest(
        &mut self,
        name: &str,
        position: u64,
        left: u64,
        reason: &str,
        is_torn: bool,
    ) -> Result<(), Failure> {
        let path = self.path.display().to_string();
        if self.json {
            self.object(&Damaged { file: &path, position, damage: reason })?;
        } else if is_torn {
            self.say(&format!("Found {left} invalid bytes at the end of {name}"))?;
        }
        if !is_torn {
            let line = format!("{path}, position {position}: {reason}; {left} bytes are left");
            // Nowhere to complain to if this fails.
            let _ = writeln!(std::io::stderr(), "{line}");
        }
        Ok(())
    }
}
