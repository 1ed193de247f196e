//! Licences and duplicates of dependencies, as `cargo metadata` tells them.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::licence::is_allowed;
use crate::step::{cargo, output};

/// The crate whose binary is shipped, and the platform that its tree is looked at for.
const SHIPPED: &str = "quorate";
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// Crates that may be in the binary in several versions, each with the reason. An entry that is not needed
/// fails the check.
const DUPLICATES: &[(&str, &str)] = &[];

/// Packages of the fuzz targets, which are never shipped, with a licence that we would not ship.
const NOT_SHIPPED: &[(&str, &str)] = &[("libfuzzer-sys", "(MIT OR Apache-2.0) AND NCSA")];

/// Every package of the lock files has a licence that we can ship.
pub(super) fn check_licences() -> Result<String> {
    let count = check_packages(&metadata(&[])?, &[])?;
    let fuzz = metadata(&["--manifest-path", super::FUZZ])?;
    Ok(format!("{count} packages, {} for fuzzing", check_packages(&fuzz, NOT_SHIPPED)?))
}

fn check_packages(metadata: &Value, listed: &[(&str, &str)]) -> Result<usize> {
    let mut refused = Vec::new();
    let packages = list(metadata, "packages")?;
    for package in packages {
        let name = format!("{} {}", text(package, "name")?, text(package, "version")?);
        match package.get("license").and_then(Value::as_str) {
            None => refused.push(format!("{name} names no licence")),
            Some(licence) if is_allowed(licence).with_context(|| name.clone())? => {}
            Some(licence) if listed.contains(&(text(package, "name")?, licence)) => {}
            Some(licence) => refused.push(format!("{name} is under {licence}")),
        }
    }
    if !refused.is_empty() {
        bail!("{}", refused.join(", "));
    }
    Ok(packages.len())
}

/// The binary holds no crate in two versions.
pub(super) fn check_duplicates() -> Result<String> {
    let metadata = metadata(&["--filter-platform", PLATFORM])?;
    let shipped = shipped_packages(&metadata)?;
    compare(&versions_by_name(&shipped), DUPLICATES)?;
    Ok(format!("{} packages in the binary on {PLATFORM}", shipped.len()))
}

fn compare(versions: &BTreeMap<&str, BTreeSet<&str>>, listed: &[(&str, &str)]) -> Result<()> {
    let is_listed = |name: &str| listed.iter().any(|(other, _)| *other == name);
    let several = |name: &&str| versions.get(name).is_some_and(|versions| versions.len() > 1);
    let duplicates: Vec<String> = versions
        .iter()
        .filter(|(name, versions)| versions.len() > 1 && !is_listed(name))
        .map(|(name, versions)| {
            format!("{name} {}", versions.iter().copied().collect::<Vec<_>>().join(" and "))
        })
        .collect();
    if !duplicates.is_empty() {
        bail!("in the binary in several versions: {}", duplicates.join(", "));
    }
    if let Some((name, _)) = listed.iter().find(|(name, _)| !several(name)) {
        bail!("{name} is listed as a duplicate, but is none");
    }
    Ok(())
}

fn versions_by_name<'a>(packages: &[&'a Value]) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in packages {
        if let (Ok(name), Ok(version)) = (text(package, "name"), text(package, "version")) {
            versions.entry(name).or_default().insert(version);
        }
    }
    versions
}

/// The packages that are linked into the binary: normal dependencies, but nothing behind a proc macro.
fn shipped_packages(metadata: &Value) -> Result<Vec<&Value>> {
    let packages: BTreeMap<&str, &Value> = list(metadata, "packages")?
        .iter()
        .map(|package| Ok((text(package, "id")?, package)))
        .collect::<Result<_>>()?;
    let resolve = metadata.get("resolve").context("cargo metadata resolves nothing")?;
    let nodes: BTreeMap<&str, &Value> = list(resolve, "nodes")?
        .iter()
        .map(|node| Ok((text(node, "id")?, node)))
        .collect::<Result<_>>()?;
    let root = packages
        .iter()
        .find(|(_, package)| text(package, "name").is_ok_and(|name| name == SHIPPED))
        .with_context(|| format!("there is no package {SHIPPED}"))?;
    let mut found = BTreeMap::new();
    let mut open = vec![*root.0];
    while let Some(id) = open.pop() {
        let package = *packages.get(id).with_context(|| format!("there is no package {id}"))?;
        if is_proc_macro(package) || found.insert(id, package).is_some() {
            continue;
        }
        let node = nodes.get(id).with_context(|| format!("{id} is not resolved"))?;
        for dependency in list(node, "deps")? {
            if list(dependency, "dep_kinds")?.iter().any(|kind| kind["kind"].is_null()) {
                open.push(text(dependency, "pkg")?);
            }
        }
    }
    Ok(found.into_values().collect())
}

fn is_proc_macro(package: &Value) -> bool {
    let targets = package.get("targets").and_then(Value::as_array);
    let kinds = targets.into_iter().flatten().filter_map(|target| target["kind"].as_array());
    kinds.flatten().any(|kind| kind == "proc-macro")
}

fn metadata(more: &[&str]) -> Result<Value> {
    let mut command = cargo();
    command.args(["metadata", "--format-version", "1", "--locked"]).args(more);
    serde_json::from_slice(&output(&mut command)?).context("what cargo metadata prints is no JSON")
}

fn list<'a>(value: &'a Value, field: &str) -> Result<&'a Vec<Value>> {
    value
        .get(field)
        .and_then(Value::as_array)
        .with_context(|| format!("there is no list {field:?}"))
}

fn text<'a>(value: &'a Value, field: &str) -> Result<&'a str> {
    value.get(field).and_then(Value::as_str).with_context(|| format!("there is no text {field:?}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn package(name: &str, version: &str, kind: &str) -> Value {
        json!({"id": format!("{name}@{version}"), "name": name, "version": version, "targets": [{"kind": [kind]}]})
    }

    fn node(id: &str, normal: &[&str], dev: &[&str]) -> Value {
        let edge = |id: &&str, kind: Value| json!({"pkg": id, "dep_kinds": [{"kind": kind}]});
        let normal = normal.iter().map(|id| edge(id, Value::Null));
        let dev = dev.iter().map(|id| edge(id, json!("dev")));
        json!({"id": id, "deps": normal.chain(dev).collect::<Vec<_>>()})
    }

    /// quorate needs a 1 and b, b needs c 1; c 2 comes only for tests, and a 2 only behind a proc macro.
    fn tree() -> Value {
        json!({
            "packages": [
                package("quorate", "0.1.0", "bin"), package("a", "1.0.0", "lib"), package("a", "2.0.0", "lib"),
                package("b", "1.0.0", "lib"), package("c", "1.0.0", "lib"), package("c", "2.0.0", "lib"),
                package("macro", "1.0.0", "proc-macro"),
            ],
            "resolve": {"nodes": [
                node("quorate@0.1.0", &["a@1.0.0", "b@1.0.0", "macro@1.0.0"], &["c@2.0.0"]),
                node("a@1.0.0", &[], &[]), node("a@2.0.0", &[], &[]), node("b@1.0.0", &["c@1.0.0"], &[]),
                node("c@1.0.0", &[], &[]), node("c@2.0.0", &[], &[]), node("macro@1.0.0", &["a@2.0.0"], &[]),
            ]},
        })
    }

    fn duplicates(tree: &Value, listed: &[(&str, &str)]) -> Result<()> {
        compare(&versions_by_name(&shipped_packages(tree)?), listed)
    }

    #[test]
    fn only_what_is_linked_counts() {
        let tree = tree();
        assert_eq!(shipped_packages(&tree).expect("a tree").len(), 4);
        duplicates(&tree, &[]).expect("no duplicates");
    }

    #[test]
    fn a_second_version_fails_unless_it_is_listed() {
        let mut tree = tree();
        tree["resolve"]["nodes"][3] = node("b@1.0.0", &["c@1.0.0", "a@2.0.0"], &[]);
        let error = duplicates(&tree, &[]).expect_err("a twice").to_string();
        assert!(error.contains("a 1.0.0 and 2.0.0"), "{error}");
        duplicates(&tree, &[("a", "b is behind")]).expect("listed");
    }

    #[test]
    fn an_entry_without_need_fails() {
        let error = duplicates(&tree(), &[("c", "was needed once")]).expect_err("stale");
        assert!(error.to_string().contains("listed"), "{error}");
    }
}
