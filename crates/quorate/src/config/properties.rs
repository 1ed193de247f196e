//! A Java properties file with typed access: every key that is read is checked, and named with its value
//! and a next step when it is wrong.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::File;
use std::io::{BufReader, Read};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::keys;
use crate::failure::Failure;

/// The keys and values of a configuration file. The last of duplicate keys counts.
#[derive(Debug)]
pub(crate) struct Properties {
    file: PathBuf,
    values: BTreeMap<String, String>,
}

impl Properties {
    pub(crate) fn read(file: &Path) -> Result<Properties, Failure> {
        let name = file.display();
        let open = File::open(file).map_err(|error| {
            Failure::new(format!("{name}: cannot be opened: {error}"))
                .next("give the path of a controller.properties with --config")
        })?;
        let mut values = BTreeMap::new();
        // Java knows no byte order mark; our reader takes the first bytes for one, and panics where one is cut short.
        // Blanks before a key do not count.
        let text = b" ".chain(BufReader::new(open));
        let parsed = java_properties::PropertiesIter::new(text).read_into(|key, value| {
            values.insert(key, value.trim().to_owned());
        });
        parsed.map_err(|error| {
            Failure::new(format!("{name}: is not a properties file: {error}"))
                .next("write one key=value a line")
        })?;
        Ok(Properties { file: file.to_owned(), values })
    }

    /// The value of a key, if it is there and not empty.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        debug_assert!(keys::is_known(key), "{key} is not in the list of known keys");
        self.values.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The value of a key that must be there.
    pub(crate) fn required(&self, key: &str, next: impl Display) -> Result<&str, Failure> {
        self.text(key).ok_or_else(|| self.failure(format!("{key} is missing")).next(next))
    }

    /// The entries of a comma-separated list; none if the key is not there.
    pub(crate) fn list(&self, key: &str) -> Vec<&str> {
        let value = self.text(key).unwrap_or("");
        value.split(',').map(str::trim).filter(|entry| !entry.is_empty()).collect()
    }

    /// A whole number in a range, in the unit of the key's name.
    pub(crate) fn number<N>(
        &self,
        key: &str,
        default: N,
        range: RangeInclusive<N>,
    ) -> Result<N, Failure>
    where
        N: FromStr + PartialOrd + Display,
    {
        let Some(value) = self.text(key) else { return Ok(default) };
        let next = format!(
            "give a whole number from {} to {}, or remove the line for the default of {default}",
            range.start(),
            range.end()
        );
        match value.parse::<N>() {
            Ok(number) if range.contains(&number) => Ok(number),
            Ok(_) => Err(self.bad(key, "is out of range").next(next)),
            Err(_) => Err(self.bad(key, "is not a whole number that fits").next(next)),
        }
    }

    /// `true` or `false` in any case.
    pub(crate) fn flag(&self, key: &str, default: bool) -> Result<bool, Failure> {
        match self.text(key).map(str::to_lowercase).as_deref() {
            None => Ok(default),
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            Some(_) => Err(self.bad(key, "is neither true nor false").next("give true or false")),
        }
    }

    /// Something is wrong with this file.
    pub(crate) fn failure(&self, what: impl Display) -> Failure {
        Failure::new(format!("{}: {what}", self.file.display()))
    }

    /// Something is wrong with the value of this key.
    pub(crate) fn bad(&self, key: &str, what: impl Display) -> Failure {
        let value = self.values.get(key).map_or("", String::as_str);
        self.failure(format!("{key}={value} {what}"))
    }

    /// One line that names every key that Kafka does not know, with a suggestion where a known one is near.
    pub(crate) fn unknown_keys(&self) -> Option<String> {
        let mut unknown = self.values.keys().filter(|key| !keys::is_known(key)).peekable();
        unknown.peek()?;
        let names: Vec<String> = unknown
            .map(|key| match keys::nearest(key) {
                Some(near) => format!("{key} (did you mean {near}?)"),
                None => key.clone(),
            })
            .collect();
        Some(format!("{}: unknown keys are ignored: {}", self.file.display(), names.join(", ")))
    }
}
