//! What each fuzz target does with its bytes, and what must then hold.
//!
//! `cargo xtask fuzz` builds the binaries with libFuzzer and the coverage that guides it. The inputs under
//! `corpus/TARGET` are data: a target may grow at its end, but the meaning of the bytes before stays.

#![forbid(unsafe_code)]

pub mod files;
pub mod log;
pub mod replica;
pub mod rpc;
mod source;
pub mod wire;
