//! `cargo xtask dirs [--golden DIR]`: directories that Apache Kafka wrote, opened, read and described.
//!
//! Each tree has an `expected.json` with what Kafka's own tools and its log layer say. A copy of every node's
//! directory is opened by our store, and looked over and dumped by the `quorate` command; the tree itself stays
//! as it is. `testdata/dirs/README.md` tells the form.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::{Map, Value};

use crate::step::{cargo, root, step, succeed, target};

mod dumps;
mod opened;

/// Flags of `cargo xtask dirs`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Trees in the form of testdata/dirs; without it, those.
    #[arg(long, value_name = "DIR")]
    golden: Option<PathBuf>,
}

/// Checks all trees, a line each.
pub(crate) fn run(options: &Options) -> Result<String> {
    let golden = options.golden.clone().unwrap_or_else(|| root().join("testdata/dirs"));
    step("dirs", "build", || {
        succeed(cargo().args(["build", "--locked", "--package", "quorate"]))?;
        Ok(String::new())
    })?;
    let quorate = target().join("debug/quorate");
    let (mut count, mut failed, mut read_only) = (0, 0, 0);
    for dir in subdirectories(&golden)? {
        let name = name_of(&dir);
        let verdict = Tree::load(&dir).and_then(|tree| tree.check(&quorate));
        match verdict {
            Ok(verdict) => {
                println!("{name}: {verdict}");
                read_only += usize::from(verdict.contains(opened::READ_ONLY));
            }
            Err(error) => {
                println!("{name}: FAILED {error:#}");
                failed += 1;
            }
        }
        count += 1;
    }
    ensure!(count > 0, "there is no tree in {}", golden.display());
    ensure!(failed == 0, "{failed} of {count} trees are not as they should be");
    Ok(format!("{count} trees, {read_only} of them read and not opened for writing"))
}

/// A tree and what is expected of it.
struct Tree {
    dir: PathBuf,
    expected: Value,
}

impl Tree {
    fn load(dir: &Path) -> Result<Tree> {
        let path = dir.join("expected.json");
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let expected = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        Ok(Tree { dir: dir.to_owned(), expected })
    }

    fn check(&self, quorate: &Path) -> Result<String> {
        if self.expected.get("refused").is_some() {
            return self.refused(quorate);
        }
        if self.expected.get("kinds").is_some() {
            return opened::quorum_states(&self.dir, &self.expected);
        }
        let mut verdicts = Vec::new();
        for (node, expected) in self.nodes()? {
            let verdict = self.node(quorate, node, expected).with_context(|| node.clone())?;
            verdicts.push(format!("{node} {verdict}"));
        }
        let dumps = dumps::check(quorate, &self.dir, &self.expected)?;
        if dumps > 0 {
            verdicts.push(format!("{dumps} dumps equal Kafka's"));
        }
        Ok(verdicts.join("; "))
    }

    fn nodes(&self) -> Result<&Map<String, Value>> {
        self.expected["nodes"].as_object().context("expected.json has no nodes")
    }

    /// What Kafka's formatter refused, ours does.
    fn refused(&self, quorate: &Path) -> Result<String> {
        let place = Scratch::new()?;
        let properties = std::fs::read_dir(&self.dir)?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .find(|path| path.extension().is_some_and(|extension| extension == "properties"));
        let text = std::fs::read_to_string(properties.context("there is no configuration")?)?;
        let config = place.path().join("server.properties");
        let nodes = place.path().join("nodes").display().to_string();
        std::fs::write(&config, text.replace("DIR", &nodes))?;
        let command = text_of(&self.expected["refused"]["command"])?;
        let args = command.split_whitespace().skip(1).map(|arg| {
            let is_config = arg.ends_with("server.properties");
            if is_config { config.display().to_string() } else { arg.to_owned() }
        });
        let output = Command::new(quorate).args(args).output()?;
        ensure!(!output.status.success(), "Kafka refuses this command, we do not: {command}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        let first = stderr.lines().next().unwrap_or_default();
        let theirs = text_of(&self.expected["refused"]["err"][0])?;
        ensure!(
            !first.is_empty() && theirs.starts_with(first),
            "ours {first:?}, Kafka's {theirs:?}"
        );
        Ok("refused, as by Kafka's formatter".to_owned())
    }

    /// A node's directory: looked over, then opened.
    fn node(&self, quorate: &Path, node: &str, expected: &Value) -> Result<String> {
        let dir = self.dir.join(node);
        let damage = &self.expected["damage"];
        let copy = Scratch::new()?;
        copy_tree(&dir, copy.path())?;
        let mut verify = verified(quorate, &dir)?;
        if let Some(at) = damage["zerosFrom"].as_u64() {
            // A killed node may leave zeros, and its lock file. Without that they are damage.
            let remarks = verify["remarks"].as_array().context("log verify names no remarks")?;
            let says = format!("position {at}: ");
            let is_it = |remark: &Value| remark.as_str().is_some_and(|it| it.contains(&says));
            ensure!(remarks.iter().any(is_it), "log verify says {verify}");
            std::fs::remove_file(copy.path().join(".lock"))?;
            verify = verified(quorate, copy.path())?;
        }
        let found = verify["damage"].as_array().context("log verify names no damage")?;
        if damage.is_null() {
            ensure!(found.is_empty(), "log verify finds damage: {found:?}");
        } else {
            let [found] = &found[..] else { bail!("log verify finds {found:?}") };
            check_damage(found, damage)?;
        }
        opened::check(copy.path(), expected, damage, &verify)
    }
}

/// What `log verify` says of a directory.
fn verified(quorate: &Path, dir: &Path) -> Result<Value> {
    let said = json_lines(&quorate_in(quorate, &["log", "verify", "--json"], dir)?)?;
    let [said] =
        <[Value; 1]>::try_from(said).map_err(|said| anyhow!("log verify says {said:?}"))?;
    Ok(said)
}

/// What is found must be where it was put.
fn check_damage(found: &Value, put: &Value) -> Result<()> {
    let file = text_of(&put["file"])?;
    ensure!(text_of(&found["file"])?.ends_with(file), "damage is found in {}", found["file"]);
    let position = put["batch"]["position"].as_u64().or(put["zerosFrom"].as_u64());
    ensure!(
        found["position"].as_u64() == position,
        "damage is found at {}, it is at {position:?}",
        found["position"]
    );
    ensure!(found["atStart"] == "cut", "a start is said to {}", found["atStart"]);
    Ok(())
}

/// Runs the command on a file or directory. It may fail: what it prints counts.
fn quorate_in(quorate: &Path, args: &[&str], path: &Path) -> Result<Output> {
    let output = Command::new(quorate).args(args).arg(path).output();
    output.with_context(|| format!("cannot run {}", quorate.display()))
}

fn json_lines(output: &Output) -> Result<Vec<Value>> {
    let text = String::from_utf8_lossy(&output.stdout);
    let parsed = text.lines().map(serde_json::from_str);
    parsed
        .collect::<Result<_, _>>()
        .with_context(|| format!("no JSON: {text} {}", String::from_utf8_lossy(&output.stderr)))
}

fn text_of(value: &Value) -> Result<&str> {
    value.as_str().with_context(|| format!("{value} is no text"))
}

fn number_of(value: &Value) -> Result<i64> {
    value.as_i64().with_context(|| format!("{value} is no number"))
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn subdirectories(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        std::fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))?;
    let mut found: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    found.retain(|path| path.is_dir());
    found.sort();
    Ok(found)
}

/// Copies files and directories; the copies can be written to.
fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy_tree(&entry.path(), &to)?,
            false => std::fs::write(to, std::fs::read(entry.path())?)?,
        }
    }
    Ok(())
}

/// A directory that goes when it is no longer needed.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Scratch> {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = target().join("dirs").join(format!("{}-{n}", std::process::id()));
        std::fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
        Ok(Scratch(path))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left over is in the target folder.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
