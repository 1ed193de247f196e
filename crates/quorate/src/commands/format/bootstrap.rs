//! The metadata that a new cluster begins with: `metadata.version` and the features that come with it.

use std::collections::BTreeMap;

use crate::failure::Failure;
use crate::features::{self, KRAFT_VERSION, LATEST_PRODUCTION, METADATA_VERSION, MetadataVersion};

/// The features that a directory is formatted with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bootstrap {
    /// The release.
    pub(crate) metadata_version: MetadataVersion,
    /// The records in their order: `metadata.version`, then the others that are on, names ascending. Never
    /// `kraft.version`, which is a control record.
    pub(crate) levels: Vec<(String, i16)>,
    /// The level of `kraft.version` that was asked for.
    pub(crate) kraft_version: Option<i16>,
}

/// What `--release-version` and `--feature` say.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) release: Option<String>,
    pub(crate) features: Vec<String>,
    pub(crate) allow_unstable: bool,
}

impl Bootstrap {
    /// Checks what was asked for and fills in the defaults of the release.
    pub(crate) fn new(wanted: &Wanted) -> Result<Bootstrap, Failure> {
        let mut asked: BTreeMap<String, i16> = BTreeMap::new();
        for feature in &wanted.features {
            let (name, level) = parse_feature(feature)?;
            if asked.insert(name.clone(), level).is_some() {
                return Err(Failure::new(format!("Feature {name} was specified more than once."))
                    .next("give --feature once for each name"));
            }
        }
        let metadata_version = release(wanted, asked.remove(METADATA_VERSION))?;
        if metadata_version > LATEST_PRODUCTION && !wanted.allow_unstable {
            return Err(Failure::new(format!(
                "{METADATA_VERSION} {} is not yet stable.",
                metadata_version.name()
            ))
            .next(format!("the latest for production is {}", LATEST_PRODUCTION.name())));
        }
        let mut levels = vec![(METADATA_VERSION.to_owned(), metadata_version.level())];
        let kraft_version = asked.get(KRAFT_VERSION).copied();
        for (name, level) in &asked {
            let Some((_, highest)) = features::supported().find(|(known, _)| known == name) else {
                let known: Vec<&str> = features::supported().map(|(name, _)| name).collect();
                return Err(Failure::new(format!(
                    "Unsupported feature: {name}. Supported features are: {}",
                    known.join(", ")
                )));
            };
            if !(0..=highest).contains(level) {
                return Err(Failure::new(format!("No feature:{name} with feature level {level}"))
                    .next(format!("give a level from 0 to {highest}")));
            }
        }
        for (name, _) in features::supported().filter(|(name, _)| *name != KRAFT_VERSION) {
            let default = metadata_version.default_level(name);
            let level = asked.get(name).copied().unwrap_or(default);
            if name == "eligible.leader.replicas.version"
                && level > 0
                && metadata_version.level() < 23
            {
                return Err(Failure::new(format!(
                    "{name} could not be set to {level} because it depends on {METADATA_VERSION} level 23"
                ))
                .next("give --release-version 4.0 or later, or leave the feature out"));
            }
            if level > 0 {
                levels.push((name.to_owned(), level));
            }
        }
        Ok(Bootstrap { metadata_version, levels, kraft_version })
    }

    /// The line that the storage tool prints, as Java shows these records.
    pub(crate) fn line(&self) -> String {
        let records: Vec<String> = self
            .levels
            .iter()
            .map(|(name, level)| {
                format!("ApiMessageAndVersion(FeatureLevelRecord(name='{name}', featureLevel={level}) at version 0)")
            })
            .collect();
        format!(
            "Bootstrap metadata: BootstrapMetadata(records=[{}], metadataVersionLevel={}, source=format command)",
            records.join(", "),
            self.metadata_version.level()
        )
    }
}

fn parse_feature(feature: &str) -> Result<(String, i16), Failure> {
    let bad = || {
        Failure::new(format!("Can't parse feature=level string {feature}."))
            .next("for example --feature group.version=1")
    };
    let (name, level) = feature.split_once('=').ok_or_else(bad)?;
    Ok((name.trim().to_owned(), level.trim().parse().map_err(|_| bad())?))
}

fn release(wanted: &Wanted, level: Option<i16>) -> Result<MetadataVersion, Failure> {
    match (&wanted.release, level) {
        (Some(_), Some(level)) => Err(Failure::new(format!(
            "Use --release-version instead of --feature {METADATA_VERSION}={level} to avoid ambiguity."
        ))),
        (Some(name), None) => MetadataVersion::parse(name).ok_or_else(|| {
            Failure::new(format!(
                "Unknown metadata.version '{name}'. Supported metadata.version are: {}",
                MetadataVersion::names()
            ))
        }),
        (None, Some(level)) => MetadataVersion::from_level(level).ok_or_else(|| {
            let (first, last) = MetadataVersion::levels();
            Failure::new(format!(
                "No MetadataVersion with feature level {level}. Valid feature levels are from {first} to {last}."
            ))
        }),
        (None, None) => Ok(LATEST_PRODUCTION),
    }
}
