//! `cargo xtask interop lead`: Quorate leads.
use anyhow::Result;
use std::path::Path;
/// Flags.
#[derive(clap::Args)]
pub(super) struct Options {
    /// Shorter.
    #[arg(long)]
    quick: bool,
}
pub(super) fn run(_options: &Options, _binary: &Path, _dir: &Path) -> Result<String> {
    anyhow::bail!("not yet")
}
