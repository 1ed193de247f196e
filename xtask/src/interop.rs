//! One quorum with Apache Kafka: real Java controllers and brokers beside a Quorate voter.
//!
//! - [`follow`]: Quorate votes and follows, and either side opens what the other wrote;
//! - [`lead`]: Quorate leads Java followers, and leadership goes to and fro;
//! - [`mutations`]: a quorum of Quorate alone, and frames that are almost right;
//! - [`quorum`] and [`process`]: the directories and the processes, all on 127.0.0.1;
//! - [`admin`]: one admin client that makes and deletes topics;
//! - [`logs`]: what the directories must have in common.
//!
//! Whatever stops that was not told to fails the check, whatever the check was about.

mod admin;
mod follow;
mod lead;
mod logs;
mod mutations;
pub(crate) mod process;
pub(crate) mod quorum;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};

use crate::step::{cargo, step, succeed, target};

/// Flags of `cargo xtask interop`.
#[derive(Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// A Quorate voter that never campaigns among Java controllers, with a broker attached.
    Follow(follow::Options),
    /// A Quorate leader of Java followers, and leadership to and fro.
    Lead(lead::Options),
    /// Mutated frames against a quorum of Quorate nodes.
    Mutations(mutations::Options),
}

impl Options {
    /// The check's name in its last line.
    pub(crate) fn name(&self) -> String {
        match &self.what {
            What::Follow(_) => "interop follow".to_owned(),
            What::Lead(_) => "interop lead".to_owned(),
            What::Mutations(_) => "interop mutations".to_owned(),
        }
    }
}

/// Builds, runs and cleans up if all is well.
pub(crate) fn run(options: &Options) -> Result<String> {
    let check = options.name();
    let binary = build(&check)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let dir = target().join("interop").join(format!("{}-{}", std::process::id(), now.as_secs()));
    println!("{check}: directories and logs in {}", dir.display());
    let result = match &options.what {
        What::Follow(options) => follow::run(options, &binary, &dir),
        What::Lead(options) => lead::run(options, &binary, &dir),
        What::Mutations(options) => mutations::run(options, &binary, &dir),
    };
    match result {
        Ok(figures) => {
            std::fs::remove_dir_all(&dir).with_context(|| dir.display().to_string())?;
            Ok(figures)
        }
        Err(error) => Err(error.context(format!("see {}", dir.display()))),
    }
}

pub(crate) fn build(check: &str) -> Result<PathBuf> {
    let path = target().join("release").join("quorate");
    step(check, "build", || {
        let mut command = cargo();
        command.args(["build", "--release", "--locked", "--package", "quorate"]);
        succeed(&mut command)?;
        Ok(path.display().to_string())
    })?;
    if !path.try_exists().with_context(|| path.display().to_string())? {
        bail!("cargo built no {}", path.display());
    }
    Ok(path)
}

/// Copies a directory with all that is in it, to where nothing is.
fn copy_dir(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to).with_context(|| to.display().to_string())?;
    for entry in std::fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy_dir(&from, &to)?;
        } else {
            std::fs::copy(&from, &to).with_context(|| from.display().to_string())?;
        }
    }
    Ok(())
}

/// What Java calls an error, each kind once: no reason to fail, and good to know.
fn say_errors(check: &str, quorum: &quorum::Quorum) -> Result<()> {
    let errors = quorum.java_errors()?;
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for line in &errors {
        let text = line.split_once("ERROR ").map_or(line.as_str(), |(_, text)| text);
        let kind = text.chars().filter(|c| !c.is_ascii_digit()).take(110).collect();
        *kinds.entry(kind).or_default() += 1;
    }
    println!("{check}: {} lines of errors in Java's logs", errors.len());
    for (kind, count) in kinds {
        println!("  {count} {kind}");
    }
    Ok(())
}
