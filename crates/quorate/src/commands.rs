//! One module a subcommand.

pub(crate) mod dev;
pub(crate) mod format;
pub(crate) mod info;
pub(crate) mod log;
pub(crate) mod quorum;
pub(crate) mod run;
