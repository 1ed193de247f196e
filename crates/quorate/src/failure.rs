//! What a command says when it does not do what it was asked, and with which exit code.
//!
//! A message has one to three lines: what is wrong with which file, key or value, and what to do next.

use std::fmt;
use std::process::ExitCode;

/// Why the process ends, as scripts see it. The numbers are part of the interface; `--help` lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The arguments or the configuration are wrong, or the command could not do its work.
    Refused = 1,
    /// The directory is unformatted, another node's, in use, or damaged beyond use.
    Directory = 2,
    /// A write or a sync failed while the node ran; the store is closed.
    Storage = 3,
    /// Something that must not happen did.
    Internal = 4,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Refused => 1,
            Exit::Directory => 2,
            Exit::Storage => 3,
            Exit::Internal => 4,
        })
    }
}

/// The end of a command that failed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The exit code.
    pub(crate) exit: Exit,
    /// For stderr, as it is.
    pub(crate) message: String,
}

impl Failure {
    /// A failure with the exit code 1.
    pub(crate) fn new(message: impl Into<String>) -> Failure {
        Failure { exit: Exit::Refused, message: message.into() }
    }

    /// The same message with another exit code.
    pub(crate) fn exit(mut self, exit: Exit) -> Failure {
        self.exit = exit;
        self
    }

    /// The same failure with a line that says what to do next.
    pub(crate) fn next(mut self, step: impl fmt::Display) -> Failure {
        self.message = format!("{}\n  {step}", self.message);
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}
