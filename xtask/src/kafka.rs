//! Apache Kafka beside us: releases brought from Maven Central, and their processes.
//!
//! A release lies in the ignored folder `kafka/VERSION/libs`, complete or not at all. Java and Maven are the machine's.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};

use crate::step::{root, step, succeed};

/// The releases that we meet, newest first. A new one is a line here.
pub(crate) const VERSIONS: [&str; 3] = ["4.4.0", "4.2.1", "4.0.0"];

/// Log output on stderr. This is the last of the line that goes with the slf4j of these releases.
const SLF4J: &str = "1.7.36";

/// Named in full, or Maven takes the newest.
const COPY_DEPENDENCIES: &str =
    "org.apache.maven.plugins:maven-dependency-plugin:2.8:copy-dependencies";

/// Flags of `cargo xtask kafka`.
#[derive(Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Brings releases from Maven Central; those that are there already stay.
    Get {
        /// Which; all that we meet if none is named.
        versions: Vec<String>,
    },
    /// Runs a controller or broker, or both in one, until it is interrupted.
    Run {
        version: String,
        /// Its `.properties`.
        properties: PathBuf,
    },
    /// Formats directories, as kafka-storage does: `storage VERSION format -t ID -c FILE`.
    Storage {
        version: String,
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Prints segments and checkpoints, as kafka-dump-log does.
    DumpLog {
        version: String,
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Runs any other class: `tool VERSION org.apache.kafka.tools.MetadataQuorumCommand ...`.
    Tool {
        version: String,
        class: String,
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
}

/// Brings releases, or becomes one of their processes.
pub(crate) fn run(options: &Options) -> Result<String> {
    let (version, class, args) = match &options.what {
        What::Get { versions } => {
            let all = VERSIONS.map(str::to_owned);
            return get(if versions.is_empty() { &all } else { versions });
        }
        What::Run { version, properties } => {
            (version, SERVER, vec![properties.display().to_string()])
        }
        What::Storage { version, args } => (version, STORAGE, args.clone()),
        What::DumpLog { version, args } => (version, dump_log(version), args.clone()),
        What::Tool { version, class, args } => (version, class.as_str(), args.clone()),
    };
    let release = Release::installed(version)?;
    Err(release.java(class).args(args).exec()).context("java does not start")
}

/// The class of a controller or broker.
pub(crate) const SERVER: &str = "kafka.Kafka";
/// The class of kafka-storage.
pub(crate) const STORAGE: &str = "kafka.tools.StorageTool";

/// The class of kafka-dump-log, which moved in 4.3.
pub(crate) fn dump_log(version: &str) -> &'static str {
    let old = ["3.", "4.0.", "4.1.", "4.2."].iter().any(|family| version.starts_with(family));
    if old { "kafka.tools.DumpLogSegments" } else { "org.apache.kafka.tools.DumpLogSegments" }
}

fn get(versions: &[String]) -> Result<String> {
    check_java()?;
    let mut brought = 0;
    for version in versions {
        let release = Release { version: version.clone() };
        if release.is_installed()? {
            println!("kafka: {version} is in {}", release.libs().display());
            continue;
        }
        step("kafka", version, || release.get())?;
        brought += 1;
    }
    Ok(format!("{} releases, {brought} of them new", versions.len()))
}

fn check_java() -> Result<()> {
    let mut java = Command::new("java");
    java.arg("-version").stdin(Stdio::null());
    let said = java.output().context(
        "java does not start; Apache Kafka needs a JDK of 17 or newer: apt install openjdk-17-jdk-headless",
    )?;
    let text = String::from_utf8_lossy(&said.stderr).into_owned();
    let major = text
        .split('"')
        .nth(1)
        .and_then(|version| version.split(['.', '-', '+']).next()?.parse::<u32>().ok());
    match major {
        Some(17..) => Ok(()),
        _ => bail!(
            "Apache Kafka needs a JDK of 17 or newer; `java -version` says {}",
            text.lines().next().unwrap_or("nothing")
        ),
    }
}

/// A release of Apache Kafka.
#[derive(Clone, Debug)]
pub(crate) struct Release {
    version: String,
}

impl Release {
    /// A release that was brought.
    pub(crate) fn installed(version: &str) -> Result<Release> {
        let release = Release { version: version.to_owned() };
        if !release.is_installed()? {
            bail!("Apache Kafka {version} is not here: cargo xtask kafka get {version}");
        }
        check_java()?;
        Ok(release)
    }

    /// A release of this family, whether it is here or not: for its features.
    pub(crate) fn of_family(family: &str) -> Release {
        Release { version: format!("{family}.0") }
    }

    /// Such as `4.4.0`.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// Such as `4.4`.
    pub(crate) fn family(&self) -> &str {
        self.version.rsplit_once('.').map_or(&self.version, |(family, _)| family)
    }

    /// Whether its formatter writes the layout of 4.0 to 4.3.
    pub(crate) fn has_old_layout(&self) -> bool {
        ["4.0", "4.1", "4.2", "4.3"].contains(&self.family())
    }

    fn dir(&self) -> PathBuf {
        root().join("kafka").join(&self.version)
    }

    fn libs(&self) -> PathBuf {
        self.dir().join("libs")
    }

    fn is_installed(&self) -> Result<bool> {
        let libs = self.libs();
        libs.try_exists().with_context(|| libs.display().to_string())
    }

    fn get(&self) -> Result<String> {
        let dir = self.dir();
        let partial = dir.join("partial");
        if partial.try_exists()? {
            fs::remove_dir_all(&partial).with_context(|| partial.display().to_string())?;
        }
        fs::create_dir_all(&dir).with_context(|| dir.display().to_string())?;
        let pom = dir.join("pom.xml");
        fs::write(&pom, self.pom()).with_context(|| pom.display().to_string())?;
        let mut maven = Command::new("mvn");
        maven.args(["--batch-mode", "--quiet", "--file"]).arg(&pom).stdin(Stdio::null());
        maven.args(["-Dstyle.color=never", "-Dmaven.wagon.http.retryHandler.count=5"]);
        maven.args([COPY_DEPENDENCIES, "-DincludeScope=runtime"]);
        maven.arg(format!("-DoutputDirectory={}", partial.display()));
        // What was downloaded stays in Maven's own repository, so that the next attempt goes on from there.
        let first = succeed(&mut maven);
        first.or_else(|_| succeed(&mut maven)).with_context(|| {
            format!(
                "Maven must be on the machine (apt install maven), reach Maven Central, and find \
                 org.apache.kafka:kafka_2.13:{} there",
                self.version
            )
        })?;
        check_bindings(&partial)?;
        let jars = fs::read_dir(&partial).with_context(|| partial.display().to_string())?.count();
        fs::rename(&partial, self.libs()).with_context(|| self.libs().display().to_string())?;
        Ok(format!("{jars} jars"))
    }

    fn pom(&self) -> String {
        let dependency = |group: &str, artifact: &str, version: &str| {
            format!(
                "    <dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>\
                 <version>{version}</version></dependency>\n"
            )
        };
        let mut dependencies = String::new();
        for artifact in ["kafka_2.13", "kafka-tools"] {
            dependencies.push_str(&dependency("org.apache.kafka", artifact, &self.version));
        }
        dependencies.push_str(&dependency("org.slf4j", "slf4j-simple", SLF4J));
        format!(
            "<project xmlns=\"http://maven.apache.org/POM/4.0.0\">\n  \
             <modelVersion>4.0.0</modelVersion>\n  \
             <groupId>quorate</groupId>\n  <artifactId>kafka-libs</artifactId>\n  \
             <version>{}</version>\n  <packaging>pom</packaging>\n  <dependencies>\n{dependencies}  \
             </dependencies>\n</project>\n",
            self.version
        )
    }

    /// Java with this release on its class path: a small heap, quick to start, IPv4, log lines with their time on
    /// stderr.
    pub(crate) fn java(&self, class: &str) -> Command {
        let mut java = self.jvm();
        java.arg(class);
        java
    }

    /// The same, up to the class or source file that is to run.
    pub(crate) fn jvm(&self) -> Command {
        self.jvm_with(&["-Xms32m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"])
    }

    /// Java as Kafka's own scripts start a server: with all its compilers, and a heap of a GiB.
    pub(crate) fn server(&self, class: &str) -> Command {
        let mut java = self.jvm_with(&[
            "-Xms1g",
            "-Xmx1g",
            "-server",
            "-XX:+UseG1GC",
            "-XX:MaxGCPauseMillis=20",
            "-XX:InitiatingHeapOccupancyPercent=35",
            "-XX:+ExplicitGCInvokesConcurrent",
            "-XX:MaxInlineLevel=15",
            "-Djava.awt.headless=true",
        ]);
        java.arg(class);
        java
    }

    fn jvm_with(&self, options: &[&str]) -> Command {
        let mut java = Command::new("java");
        java.args(options);
        java.args(["-XX:-UsePerfData", "-XX:+ExitOnOutOfMemoryError"]);
        java.arg("-Djava.net.preferIPv4Stack=true");
        java.arg("-Dorg.slf4j.simpleLogger.showDateTime=true");
        java.arg("-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss.SSS");
        java.arg("-cp").arg(self.libs().join("*"));
        java
    }
}

/// Two bindings of slf4j, and chance decides which of them logs.
fn check_bindings(libs: &Path) -> Result<()> {
    let mut bindings = Vec::new();
    for entry in fs::read_dir(libs).with_context(|| libs.display().to_string())? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let families =
            ["slf4j-simple", "slf4j-log4j", "slf4j-reload4j", "log4j-slf4j", "logback-classic"];
        if families.iter().any(|family| name.starts_with(family)) {
            bindings.push(name);
        }
    }
    if bindings.len() != 1 {
        bail!("one binding of slf4j is wanted, not {}: exclude it in the pom", bindings.join(", "));
    }
    Ok(())
}
