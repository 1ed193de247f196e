//! The `quorate` command.
#![allow(dead_code)]
mod config;
mod features;
mod failure;

fn main() {}
