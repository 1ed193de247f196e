//! The tables of `docs/protocol` name tests, scripts and steps: they are there.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What stands between backticks.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Whether the name is of something that must exist, and does.
fn is_found(name: &str) -> bool {
    if let Some((file, test)) = name.split_once("::") {
        let path = match file.strip_suffix(".rs") {
            Some(_) => root().join("crates").join(file),
            None => root().join(format!("crates/quorate-node/tests/hazards/{file}.rs")),
        };
        let source = read(&path);
        let tests = source.split("#[test]").skip(1);
        let wanted = format!("fn {test}()");
        assert!(
            tests.into_iter().any(|test| test.trim_start().starts_with(&wanted)),
            "{} has no test {test}",
            path.display()
        );
        return true;
    }
    if name.ends_with(".txt") {
        let path = root().join("crates/quorate-core/tests/scripts").join(name);
        assert!(path.is_file(), "no script {}", path.display());
        return true;
    }
    if let Some((check, step)) = name.split_once(": ") {
        let path = root().join(format!("xtask/src/interop/{check}.rs"));
        assert!(read(&path).contains(&format!("\"{step}")), "{} has no {step:?}", path.display());
        return true;
    }
    false
}

#[test]
fn every_test_that_is_named_exists() {
    for (file, rows, least) in [("hazards.md", 17, 70), ("versions.md", 12, 20)] {
        let text = read(&root().join("docs/protocol").join(file));
        let found = names(&text).filter(|name| is_found(name)).count();
        assert!(found >= least, "{file} names {found} tests");
        let table = text.lines().filter(|line| line.starts_with("| ")).count();
        assert!(table >= rows, "{file} has {table} rows");
        // Each row names what shows it.
        let header = |line: &str| line.starts_with("| |") || line.contains("| Test |");
        for line in text.lines().filter(|line| line.starts_with("| ") && !header(line)) {
            let is_header = line.starts_with("| Kafka |");
            assert!(is_header || names(line).any(is_found), "{file}: {line}");
        }
    }
}
