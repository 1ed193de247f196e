//! `quorate info`: what stands in the configured directories, in the words of Kafka's storage tool.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use quorate_storage::meta_properties::MetaProperties;

use crate::config::Config;
use crate::directories::{self, State};
use crate::failure::Failure;
use crate::say;

/// Says which directories are configured, and what their meta.properties say.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit codes: 0 no problem found; 1 problems, which are listed.")]
pub(crate) struct Args {
    /// The node's configuration.
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
    /// One JSON object instead of text.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Default, serde::Serialize)]
struct Found {
    directories: Vec<String>,
    metadata: Option<BTreeMap<&'static str, String>>,
    problems: Vec<String>,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let config = Config::load(&args.config)?;
    let found = look(&directories::survey(&config.directories));
    if args.json {
        say(out, &serde_json::to_string(&found).unwrap_or_default())?;
    } else {
        print(&found, out)?;
    }
    match found.problems.is_empty() {
        true => Ok(()),
        // They are on stdout already.
        false => Err(Failure::new("")),
    }
}

fn look(survey: &[(PathBuf, State)]) -> Found {
    let mut found = Found::default();
    let mut first: Option<(&PathBuf, &MetaProperties)> = None;
    for (dir, state) in survey {
        let name = dir.display();
        let problem = match state {
            State::Absent => Some(format!("{name} does not exist")),
            State::NotADirectory => Some(format!("{name} is not a directory")),
            State::Unformatted => Some(format!("{name} is not formatted.")),
            State::Unreadable(reason) => Some(reason.clone()),
            State::Formatted(meta) => {
                let (first_dir, first) = *first.get_or_insert((dir, meta));
                let differs = |key: &str, one: String, other: String| {
                    let first_dir = first_dir.display();
                    (one != other)
                        .then(|| format!("{name} has {key} {one}, but {first_dir} has {other}"))
                };
                differs("cluster.id", meta.cluster.clone(), first.cluster.clone())
                    .or_else(|| differs("node.id", meta.node.to_string(), first.node.to_string()))
            }
        };
        if !matches!(state, State::Absent | State::NotADirectory) {
            found.directories.push(name.to_string());
        }
        found.problems.extend(problem);
    }
    found.metadata = first.map(|(_, meta)| {
        let mut keys = BTreeMap::from([
            ("cluster.id", meta.cluster.clone()),
            ("node.id", meta.node.to_string()),
            ("version", "1".to_owned()),
        ]);
        keys.extend(meta.directory.map(|id| ("directory.id", id.to_string())));
        keys
    });
    found
}

fn print(found: &Found, out: &mut dyn Write) -> Result<(), Failure> {
    let list = |out: &mut dyn Write, one: &str, many: &str, lines: &[String]| {
        let [first, rest @ ..] = lines else { return Ok(()) };
        say(out, if rest.is_empty() { one } else { many })?;
        say(out, &format!("  {first}"))?;
        rest.iter().try_for_each(|line| say(out, &format!("  {line}")))?;
        say(out, "")
    };
    list(out, "Found log directory:", "Found log directories:", &found.directories)?;
    if let Some(metadata) = &found.metadata {
        let pairs: Vec<String> = metadata.iter().map(|(k, v)| format!("{k}={v}")).collect();
        say(out, &format!("Found metadata: {{{}}}", pairs.join(", ")))?;
        say(out, "")?;
    }
    list(out, "Found problem:", "Found problems:", &found.problems)
}
