//! How a run can fail: a check found something, or the harness itself could not do its work.

use std::fmt;

/// Why a run failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// The quorum broke a promise.
    Found {
        /// Which check says so.
        check: &'static str,
        /// What it saw.
        detail: String,
    },
    /// The harness could not go on; this says nothing about the quorum.
    Broken(anyhow::Error),
}

/// What a check returns.
pub(super) type Checked<T = ()> = Result<T, Failure>;

/// A broken promise.
pub(super) fn found<T>(check: &'static str, detail: impl Into<String>) -> Checked<T> {
    Err(Failure::Found { check, detail: detail.into() })
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Found { check, detail } => write!(f, "{check}: {detail}"),
            Failure::Broken(error) => write!(f, "{error:#}"),
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Failure {
        Failure::Broken(error)
    }
}

/// For tests: the name of the check that found something.
#[cfg(test)]
pub(super) fn check_of<T: fmt::Debug>(result: Checked<T>) -> &'static str {
    match result {
        Err(Failure::Found { check, .. }) => check,
        other => panic!("no check found anything: {other:?}"),
    }
}
