//! One module a subcommand.

pub(crate) mod format;
pub(crate) mod info;
pub(crate) mod quorum;
