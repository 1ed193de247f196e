//! Runs every script under `tests/scripts`: one behaviour a file, told as commands and what they give.
//!
//! `UPDATE=1 cargo test -p quorate-core --test scripts` rewrites what stands below `----`: review the
//! difference. `SCRIPT=vote` runs those alone whose path has `vote` in it. The words are explained in
//! `tests/scripts/README.md`.

mod script;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::{env, fs};

use script::harness::Harness;
use script::language::{self, Block};

#[test]
fn scripts() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let only = env::var("SCRIPT").unwrap_or_default();
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.retain(|file| file.to_string_lossy().contains(&only));
    files.sort();
    let failures: Vec<String> = files.iter().filter_map(|file| check(&root, file).err()).collect();
    assert!(
        failures.is_empty(),
        "{} of {} scripts fail\n\n{}",
        failures.len(),
        files.len(),
        failures.join("\n")
    );
    println!("{} scripts", files.len());
}

/// Every folder must hold scripts.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let before = files.len();
    for entry in fs::read_dir(folder).expect("the folder of scripts") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "txt") {
            files.push(path);
        }
    }
    assert!(files.len() > before, "no scripts in {}", folder.display());
}

fn check(root: &Path, file: &Path) -> Result<(), String> {
    let name = file.strip_prefix(root).unwrap_or(file).display().to_string();
    let text = fs::read_to_string(file).map_err(|error| format!("{name}: {error}"))?;
    if !text.starts_with("# ") {
        return Err(format!("{name}:1: the first line says which behaviour this is: # ..."));
    }
    let blocks = language::blocks(&text);
    if blocks.iter().all(|block| block.expected.is_none()) {
        return Err(format!("{name}: nothing is expected in it"));
    }
    let run = catch_unwind(AssertUnwindSafe(|| outputs(&name, &blocks)));
    let outputs = run.map_err(|_| format!("{name}: panicked"))??;
    let got = language::text(&blocks, &outputs);
    if got == text {
        return Ok(());
    }
    if env::var("UPDATE").is_ok_and(|update| update == "1") {
        return fs::write(file, got).map_err(|error| format!("{name}: {error}"));
    }
    Err(difference(&name, &text, &got))
}

fn outputs(name: &str, blocks: &[Block]) -> Result<Vec<String>, String> {
    let mut harness = Harness::default();
    let mut outputs = Vec::new();
    for block in blocks {
        let mut output = String::new();
        for (at, line) in block.lines.iter().filter(|(_, line)| !line.starts_with('#')) {
            let part = harness.run(line);
            output.push_str(&part.map_err(|error| format!("{name}:{at}: {line}\n  {error}\n"))?);
        }
        if output.is_empty() {
            output.push_str("(nothing)\n");
        }
        outputs.push(output);
    }
    Ok(outputs)
}

fn difference(name: &str, expected: &str, got: &str) -> String {
    let (mut expected, mut got) =
        (expected.lines().collect::<Vec<_>>(), got.lines().collect::<Vec<_>>());
    let mut at = 1;
    while !expected.is_empty() && expected.first() == got.first() {
        expected.remove(0);
        got.remove(0);
        at += 1;
    }
    while !expected.is_empty() && expected.last() == got.last() {
        expected.pop();
        got.pop();
    }
    let lines = |sign: &str, lines: &[&str]| {
        lines.iter().map(|line| format!("{sign} {line}\n")).collect::<String>()
    };
    format!("{name}:{at}:\n{}{}", lines("-", &expected), lines("+", &got))
}
