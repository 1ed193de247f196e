//! Tools.

fn main() {}
