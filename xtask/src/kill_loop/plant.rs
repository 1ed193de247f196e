//! Copies of the tree with a fault in it. A harness that does not find these finds nothing.
//!
//! `xtask/planted/NAME.patch` has the fault and says in its head what it breaks. A patch that does not apply
//! fails the run: it is to be made anew when the code that it breaks has changed.

use std::fmt;

use anyhow::Result;
use clap::ValueEnum;

use super::build::{self, Binary};
use crate::scratch::{self, Scratch};
use crate::step::step;

/// Which fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Plant {
    /// Appended data are not synced.
    Fdatasync,
    /// A directory is not synced after a rename.
    DirSync,
    /// The election state is reported as durable, and later writes are done, before it is written.
    Barrier,
}

impl fmt::Display for Plant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Plant::Fdatasync => "fdatasync",
            Plant::DirSync => "dir-sync",
            Plant::Barrier => "barrier",
        })
    }
}

/// Copies the tree, breaks it and builds it.
pub(super) fn build(plant: Plant) -> Result<Binary> {
    let scratch = Scratch::open()?;
    step("kill-loop", "plant", || {
        scratch.restore()?;
        scratch.apply(&scratch::planted().join(format!("{plant}.patch")))?;
        Ok(scratch.source().display().to_string())
    })?;
    build::power_cut_of(&scratch.source(), &scratch.target())
}
