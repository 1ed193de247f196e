//! The log on stderr: a line an event, with fields as key=value or as JSON.

use std::io::{self, IsTerminal as _};

use tracing_subscriber::EnvFilter;

use crate::failure::Failure;

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Time, level, module, message and key=value fields.
    Text,
    /// One JSON object a line.
    Json,
}

/// Starts logging. `level` is a level, or filters such as `info,quorate_core=debug`.
pub(crate) fn start(level: &str, format: Format) -> Result<(), Failure> {
    let filter = EnvFilter::try_new(level).map_err(|error| {
        Failure::new(format!("--log {level}: {error}")).next(
            "give error, warn, info, debug or trace, or filters such as info,quorate_node=debug",
        )
    })?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    match format {
        Format::Text => log.with_ansi(io::stderr().is_terminal()).init(),
        Format::Json => log.json().flatten_event(true).init(),
    }
    Ok(())
}
