//! A patch with its head: what is wrong, and how it is to be found.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// A planted fault.
#[derive(Debug)]
pub(super) struct Patch {
    pub(super) path: PathBuf,
    /// The name of the file without its ending.
    pub(super) name: String,
    /// The first line.
    pub(super) fault: String,
    /// The row of the table of known faults.
    pub(super) row: Option<String>,
    pub(super) scenario: Option<String>,
    /// How many seeds it may take.
    pub(super) cap: Option<u64>,
    /// The checker that sees it, and in some seed no other does.
    pub(super) only: Option<String>,
    /// The bound within which the exhaustive search finds it too.
    pub(super) explore: Option<String>,
}

impl Patch {
    pub(super) fn read(path: &Path) -> Result<Patch> {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        Patch::parse(path, &text).with_context(|| path.display().to_string())
    }

    fn parse(path: &Path, text: &str) -> Result<Patch> {
        let Some(name) = path.file_stem().and_then(|stem| stem.to_str()) else {
            bail!("the name is no UTF-8");
        };
        let is_head = |line: &&str| !line.starts_with("diff ") && !line.starts_with("--- ");
        let head: Vec<&str> = text.lines().take_while(is_head).collect();
        if head.len() == text.lines().count() {
            bail!("no diff is in it");
        }
        let value = |key: &str| {
            let of =
                |line: &&str| Some(line.strip_prefix(key)?.strip_prefix(':')?.trim().to_owned());
            head.iter().find_map(of)
        };
        let cap = value("Cap").map(|cap| cap.parse().with_context(|| format!("Cap: {cap}")));
        Ok(Patch {
            path: path.to_owned(),
            name: name.to_owned(),
            fault: head.first().map_or_else(String::new, |line| line.trim().to_owned()),
            row: value("Row"),
            scenario: value("Scenario"),
            cap: cap.transpose()?,
            only: value("Only"),
            explore: value("Explore"),
        })
    }

    /// All in a folder, by name.
    pub(super) fn all(folder: &Path) -> Result<Vec<Patch>> {
        let problem = || folder.display().to_string();
        let mut paths = Vec::new();
        for entry in fs::read_dir(folder).with_context(problem)? {
            let path = entry.with_context(problem)?.path();
            if path.extension().is_some_and(|ending| ending == "patch" || ending == "diff") {
                paths.push(path);
            }
        }
        paths.sort();
        if paths.is_empty() {
            bail!("{} has no *.patch", folder.display());
        }
        paths.iter().map(|path| Patch::read(path)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read() {
        let text = "It forgets.\nMore: of it.\n\nRow: B004\nCap: 20\nOnly: one-vote\ndiff --git a/x b/x\nCap: 7\n";
        let patch = Patch::parse(Path::new("a/it-forgets.patch"), text).unwrap();
        assert_eq!((patch.name.as_str(), patch.fault.as_str()), ("it-forgets", "It forgets."));
        assert_eq!((patch.row.as_deref(), patch.cap), (Some("B004"), Some(20)));
        assert_eq!((patch.scenario, patch.explore), (None, None));
        assert_eq!(patch.only.as_deref(), Some("one-vote"));
    }

    #[test]
    fn a_head_that_cannot_be_read_is_an_error() {
        assert!(Patch::parse(Path::new("x.patch"), "Cap: many\ndiff --git a/x b/x\n").is_err());
        assert!(Patch::parse(Path::new("x.patch"), "no diff\n").is_err());
    }
}
