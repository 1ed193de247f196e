//! The language of the scripts, and the replica that they speak to.

pub(crate) mod harness;
pub(crate) mod language;
mod peers;
pub(crate) mod print;
mod replica;
