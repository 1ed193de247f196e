//! Says what `cargo test` leaves out, and that the commands which do it are there.

use std::process::Command;

const LEFT_OUT: [(&[&str], &str); 4] = [
    (&["interop", "follow"], "Apache Kafka: a JDK, and `cargo xtask kafka get`"),
    (&["interop", "lead"], "Apache Kafka: a JDK, and `cargo xtask kafka get`"),
    (&["interop", "mutations"], "minutes, and a release build"),
    (&["kill-loop"], "minutes, and a release build"),
];

fn main() {
    println!("\nnot part of `cargo test`, run by `.ci/run`:");
    for (command, needs) in LEFT_OUT {
        println!("  cargo xtask {:<20} needs {needs}", command.join(" "));
        let help = Command::new(env!("CARGO_BIN_EXE_xtask")).args(command).arg("--help").output();
        assert!(help.expect("xtask runs").status.success(), "{command:?} is gone");
    }
}
