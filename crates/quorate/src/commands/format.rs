//! `quorate format`: what Kafka's storage tool does, in the layout of Kafka 4.4 or of the releases before.
//!
//! `meta.properties` is written last in each directory: a directory that has it is whole, and one
//! where formatting was cut off can be formatted again.

mod bootstrap;
mod checkpoint;
mod scram;
mod voters;

use std::io::Write;
use std::path::{Path, PathBuf};

use quorate_core::voters::VoterSet;
use quorate_core::{DirectoryId, Endpoint};
use quorate_storage::RealFs;
use quorate_storage::fs::FileSystem as _;
use quorate_storage::meta_properties::{self, MetaProperties};

use self::bootstrap::{Bootstrap, Layout, Wanted};
pub(crate) use self::bootstrap::{feature_level, formatted_metadata_version};
use crate::config::Config;
use crate::directories::{self, State};
use crate::failure::{Exit, Failure};
use crate::{clock, say, uuid};

/// Formats the directories of a node, as kafka-storage does.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A quorum of three: make three directory ids with `quorate random-uuid`, then on every node, with the same lists,
  quorate format -t CLUSTER-ID -c controller.properties \\
    -I 1@c1:9093:DIR-ID-1,2@c2:9093:DIR-ID-2,3@c3:9093:DIR-ID-3

A single controller, to which others can be added:
  quorate format -t $(quorate random-uuid) -c controller.properties --standalone

A quorum with nodes of Kafka 4.0 to 4.3 needs --layout 4.0 on every node: in a directory of layout 4.4 an older
node loses features and users, or takes them for committed and never passes them on. A node of 4.4 opens both.
The release must be one that the oldest node knows; layout 4.0 begins with 4.0-IV3 unless told otherwise.

Users for SASL/SCRAM, there from the first start on:
  --add-scram 'SCRAM-SHA-256=[name=alice,password=secret,iterations=8192]'
  --add-scram 'SCRAM-SHA-512=[name=bob,salt=\"BASE64\",saltedpassword=\"BASE64\"]'
A password on the command line can be seen by other users of the machine; a salted one does not give it away.

Exit codes: 0 formatted, or formatted already with -g; 1 refused, nothing was written, or not all of it.")]
pub(crate) struct Args {
    /// The cluster's id, the same on every node; `quorate random-uuid` makes one.
    #[arg(short = 't', long, value_name = "ID")]
    cluster_id: String,
    /// The node's configuration: a controller.properties of Kafka.
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
    /// This node is the only voter of a new quorum.
    #[arg(short, long, conflicts_with_all = ["initial_controllers", "no_initial_controllers"])]
    standalone: bool,
    /// The voters of a new quorum: ID@HOST:PORT:DIRECTORY-ID,... the same on every node.
    #[arg(short = 'I', long, value_name = "LIST", conflicts_with = "no_initial_controllers")]
    initial_controllers: Option<String>,
    /// This node joins a quorum that exists, and learns its voters there.
    #[arg(short = 'N', long)]
    no_initial_controllers: bool,
    /// Leave directories alone that are formatted already.
    #[arg(short = 'g', long)]
    ignore_formatted: bool,
    /// The release whose features the cluster begins with: 4.4, 4.0-IV3, ... [default: 4.4-IV2; of layout 4.0, 4.0-IV3]
    #[arg(short, long, value_name = "RELEASE")]
    release_version: Option<String>,
    /// The level of one feature, NAME=LEVEL; may come several times.
    #[arg(short, long, value_name = "NAME=LEVEL")]
    feature: Vec<String>,
    /// The layout of the directories: 4.0 if nodes of Kafka 4.0 to 4.3 are to open them, see below.
    #[arg(
        long,
        value_enum,
        default_value = "4.4",
        hide_possible_values = true,
        value_name = "4.0|4.4"
    )]
    layout: Layout,
    /// A user with a SCRAM credential, MECHANISM=[name=..,password=..]; may come several times.
    #[arg(short = 'S', long, value_name = "CREDENTIAL")]
    add_scram: Vec<String>,
}

/// What to format, once the arguments are read.
pub(crate) struct Plan<'a> {
    pub(crate) config: &'a Config,
    pub(crate) cluster: &'a str,
    /// The voters of a new quorum; none for static voters, or for a node that joins.
    pub(crate) voters: Option<VoterSet>,
    pub(crate) bootstrap: Bootstrap,
    pub(crate) layout: Layout,
    pub(crate) ignore_formatted: bool,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let config = Config::load(&args.config)?;
    for warning in &config.warnings {
        // stdout has the lines of Kafka's tool alone.
        let _ = writeln!(std::io::stderr(), "{warning}");
    }
    let bootstrap = Bootstrap::new(&Wanted {
        release: args.release_version.clone(),
        features: args.feature.clone(),
        layout: args.layout,
        scram: args.add_scram.clone(),
        allow_unstable: config.unstable_features,
    })?;
    let voters = initial_voters(args, &config)?;
    check_kraft_version(&config, bootstrap.kraft_version)?;
    let plan = Plan {
        config: &config,
        cluster: &args.cluster_id,
        voters,
        bootstrap,
        layout: args.layout,
        ignore_formatted: args.ignore_formatted,
    };
    format(&plan, out)
}

/// A plan with the features of the latest release, for `dev`.
pub(crate) fn plan_latest<'a>(
    config: &'a Config,
    cluster: &'a str,
    list: &str,
) -> Result<Plan<'a>, Failure> {
    Ok(Plan {
        config,
        cluster,
        voters: Some(voters::parse(list, config.default_listener())?),
        bootstrap: Bootstrap::new(&Wanted::default())?,
        layout: Layout::default(),
        ignore_formatted: true,
    })
}

fn initial_voters(args: &Args, config: &Config) -> Result<Option<VoterSet>, Failure> {
    let is_static = !config.static_voters.is_empty();
    if is_static && (args.standalone || args.initial_controllers.is_some()) {
        return Err(Failure::new(
            "You cannot specify controller.quorum.voters and format the node with --initial-controllers or --standalone.",
        )
        .next("remove controller.quorum.voters from the configuration for voters in the log, or the flag for static ones"));
    }
    if args.standalone {
        if !config.controller {
            return Err(Failure::new("You can only use --standalone on a controller.")
                .next("this node has no controller role: leave the flag out"));
        }
        return standalone(config).map(Some);
    }
    if let Some(list) = &args.initial_controllers {
        return voters::parse(list, config.default_listener()).map(Some);
    }
    if config.controller && !is_static && !args.no_initial_controllers {
        return Err(Failure::new(
            "Because controller.quorum.voters is not set on this controller, you must specify one of the following: \
             --standalone, --initial-controllers, or --no-initial-controllers.",
        ));
    }
    Ok(None)
}

/// This node alone, under its first advertised listener and a fresh directory id.
fn standalone(config: &Config) -> Result<VoterSet, Failure> {
    let listener = config.listeners.advertised.first().ok_or_else(|| {
        Failure::new(format!("{}: there is no controller listener", config.file.display()))
            .next("add CONTROLLER://HOST:PORT to listeners")
    })?;
    let host = if listener.host.is_empty() { "localhost" } else { &listener.host };
    let endpoint = Endpoint::new(host, listener.port);
    let voter = voters::voter(uuid::random()?, config.default_listener(), endpoint);
    Ok(VoterSet::new([(config.node, voter)]).unwrap_or_default())
}

fn check_kraft_version(config: &Config, asked: Option<i16>) -> Result<(), Failure> {
    let is_static = !config.static_voters.is_empty();
    match asked {
        Some(0) if !is_static => Err(Failure::new(
            "Cannot set kraft.version to 0 if controller.quorum.voters is empty and one of the flags --standalone, \
             --initial-controllers, or --no-initial-controllers is used.",
        )
        .next("leave the feature kraft.version out")),
        Some(1) if is_static => Err(Failure::new(
            "Cannot set kraft.version to 1 unless controller.quorum.voters is empty and one of the flags --standalone, \
             --initial-controllers, or --no-initial-controllers is used.",
        )
        .next("remove controller.quorum.voters from the configuration, and use one of the flags")),
        _ => Ok(()),
    }
}

/// Formats every configured directory that is not formatted yet.
pub(crate) fn format(plan: &Plan<'_>, out: &mut dyn Write) -> Result<(), Failure> {
    let config = plan.config;
    let found = directories::survey(&config.directories);
    directories::check_identity(&found, plan.cluster, config.node)?;
    let formatted = |state: &State| matches!(state, State::Formatted(_));
    if let Some((dir, _)) = found.iter().find(|(_, state)| formatted(state))
        && !plan.ignore_formatted
    {
        return Err(Failure::new(format!(
            "Log directory {} is already formatted. Use --ignore-formatted to ignore this directory and format the others.",
            dir.display()
        )));
    }
    let mut todo: Vec<&Path> =
        found.iter().filter(|(_, state)| !formatted(state)).map(|(dir, _)| dir.as_path()).collect();
    if todo.is_empty() {
        return say(out, "All of the log directories are already formatted.");
    }
    // The metadata log directory first: it is the one that can be refused.
    todo.sort_by_key(|dir| *dir != config.metadata_dir);
    if todo.contains(&config.metadata_dir.as_path()) {
        checkpoint::check_empty(&config.metadata_dir)?;
    }
    say(out, &plan.bootstrap.line())?;
    let mut used: Vec<DirectoryId> = found
        .iter()
        .filter_map(|(_, state)| match state {
            State::Formatted(meta) => meta.directory,
            _ => None,
        })
        .collect();
    for dir in todo {
        let (kind, id) = kind(plan, dir);
        let id = match id {
            Some(id) => id,
            None => unused(&used)?,
        };
        used.push(id);
        let release = plan.bootstrap.metadata_version.name();
        say(out, &format!("Formatting {kind} {} with metadata.version {release}.", dir.display()))?;
        write_directory(plan, dir, id).map_err(|failure| {
            failure.next(
                "free space or correct the permissions, then format again with --ignore-formatted",
            )
        })?;
    }
    Ok(())
}

/// What a directory is called, and its id where the voter set names it.
fn kind(plan: &Plan<'_>, dir: &Path) -> (&'static str, Option<DirectoryId>) {
    if dir != plan.config.metadata_dir {
        return ("data directory", None);
    }
    match &plan.voters {
        None => ("metadata directory", None),
        Some(voters) => match voters.find(plan.config.node) {
            None => ("dynamic metadata directory", None),
            Some(voter) => ("dynamic metadata voter directory", voter.directory),
        },
    }
}

fn unused(used: &[DirectoryId]) -> Result<DirectoryId, Failure> {
    loop {
        let id = uuid::random()?;
        if !used.contains(&id) {
            return Ok(id);
        }
    }
}

fn write_directory(plan: &Plan<'_>, dir: &Path, id: DirectoryId) -> Result<(), Failure> {
    create_dirs(dir)?;
    checkpoint::write(plan, dir)?;
    let meta = MetaProperties {
        cluster: plan.cluster.to_owned(),
        node: plan.config.node,
        directory: Some(id),
    };
    meta_properties::write(&RealFs, dir, &meta, clock::now_ms()).map_err(disk)
}

/// Creates a directory and its parents, each durable in the one above.
fn create_dirs(dir: &Path) -> Result<(), Failure> {
    if dir.is_dir() {
        return Ok(());
    }
    let parent = match dir.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    create_dirs(parent)?;
    RealFs.create_dir(dir).and_then(|()| RealFs.sync_dir(parent)).map_err(|error| {
        Failure::new(format!("cannot create {}: {error}", dir.display())).exit(Exit::Refused)
    })
}

/// A disk that refuses.
fn disk(error: quorate_storage::StorageError) -> Failure {
    Failure::new(error.to_string())
}
