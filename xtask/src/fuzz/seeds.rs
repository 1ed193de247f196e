//! Golden data in the form of the targets' inputs: what Kafka wrote is where fuzzing begins.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use quorate_wire::message::ApiKey;
use serde_json::Value;

use crate::step::root;

/// Writes the inputs into a folder for each target.
pub(super) fn write(to: &Path) -> Result<()> {
    let mut seeds = Seeds { to, count: 0 };
    let files = fs::read_dir(root().join("testdata/wire"))?;
    for file in files {
        let path = file?.path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            let text = fs::read_to_string(&path)?;
            for line in text.lines().filter(|line| !line.trim().is_empty()) {
                let line =
                    serde_json::from_str(line).with_context(|| path.display().to_string())?;
                seeds.of_line(&line)?;
            }
        }
    }
    seeds.of_directory(&root().join("testdata/dirs"))?;
    println!("fuzz: {} inputs out of the golden data", seeds.count);
    Ok(())
}

struct Seeds<'a> {
    to: &'a Path,
    count: u32,
}

impl Seeds<'_> {
    fn put(&mut self, target: &str, parts: &[&[u8]]) -> Result<()> {
        let folder = self.to.join(target);
        fs::create_dir_all(&folder)?;
        self.count += 1;
        Ok(fs::write(folder.join(format!("{:05}", self.count)), parts.concat())?)
    }

    fn of_line(&mut self, line: &Value) -> Result<()> {
        let text = |name: &str| line.get(name).and_then(Value::as_str);
        let number = |name: &str| line.get(name).and_then(Value::as_i64);
        let bytes = text("hex").and_then(from_hex).unwrap_or_default();
        if line.get("kind").is_some() {
            self.put("wire", &[&[5, 0, 0], &bytes])?;
            self.put("rpc", &[&[2, 0, 0], &bytes])?;
            self.put("files", &[&[0], &bytes])?;
            return self.put("log", &[&[2, 0], &bytes]);
        }
        if let (Some(key), Some(bytes)) = (text("keyHex").and_then(from_hex), text("hex")) {
            let value = from_hex(bytes).unwrap_or_default();
            self.put("wire", &[&[3, 4, 0], &key, &value])?;
        }
        if let Some(bytes) = text("framedHex").and_then(from_hex) {
            self.put("wire", &[&[4, 0, 0], &bytes])?;
        }
        let api = number("apiKey").and_then(|key| i16::try_from(key).ok());
        let (Some(api), Some(version)) = (api.and_then(ApiKey::from_code), number("version"))
        else {
            return Ok(());
        };
        let index = ApiKey::ALL.iter().position(|other| *other == api).unwrap_or(0);
        let index = u8::try_from(index)?;
        // The target counts versions from the one before the first.
        let version = u8::try_from(version - i64::from(*api.versions().start()) + 1).unwrap_or(0);
        let is_request = text("message").is_some_and(|name| name.ends_with("Request"));
        if text("direction").is_none() {
            return self.put("wire", &[&[u8::from(!is_request), index, version], &bytes]);
        }
        let frame = bytes.get(4..).unwrap_or_default();
        if is_request {
            self.put("wire", &[&[6, 20, 0], &bytes])?;
            return self.put("rpc", &[&[0, 0, 0], frame]);
        }
        const ANSWERED: [ApiKey; 6] = [
            ApiKey::Vote,
            ApiKey::BeginQuorumEpoch,
            ApiKey::EndQuorumEpoch,
            ApiKey::Fetch,
            ApiKey::FetchSnapshot,
            ApiKey::DescribeQuorum,
        ];
        match ANSWERED.iter().position(|other| *other == api) {
            Some(place) => {
                let version = version.saturating_sub(1);
                self.put("rpc", &[&[1, u8::try_from(place)?, version], frame])
            }
            None => Ok(()),
        }
    }

    fn of_directory(&mut self, folder: &Path) -> Result<()> {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                self.of_directory(&path)?;
                continue;
            }
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let kind = match name.as_str() {
                "quorum-state" => 2,
                "meta.properties" => 3,
                "partition.metadata" => 4,
                "leader-epoch-checkpoint" => 5,
                name if name.ends_with(".checkpoint") => 0,
                name if name.ends_with(".log") => {
                    let bytes = fs::read(&path)?;
                    // The first batches of a long one.
                    let some = bytes.get(..4000).unwrap_or(&bytes);
                    self.put("log", &[&[2, 0], some])?;
                    let half = bytes.get(..1000).unwrap_or(&bytes);
                    let len = u16::try_from(half.len())?.to_be_bytes();
                    self.put("log", &[&[7, 1, 0], &len, half, half])?;
                    continue;
                }
                _ => continue,
            };
            self.put("files", &[&[kind], &fs::read(&path)?])?;
        }
        Ok(())
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    let digit = |digit: u8| char::from(digit).to_digit(16);
    pairs.iter().map(|[high, low]| u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()).collect()
}
