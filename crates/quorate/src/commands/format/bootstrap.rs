//! The metadata that a new cluster begins with: `metadata.version`, the features that come with it, and users.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use quorate_storage::{LOG_DIR, RealFs, StorageError, checkpoint};
use quorate_wire::EncodeError;
use quorate_wire::metadata::{FeatureLevelRecord, MetadataRecord, UserScramCredentialRecord};

use super::scram;
use crate::failure::Failure;
use crate::features::{
    self, KRAFT_VERSION, LATEST_PRODUCTION, METADATA_VERSION, MetadataVersion, SCRAM_SINCE,
    V4_0_IV3,
};

/// How a directory is laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Layout {
    /// That of Kafka 4.0 to 4.3: the records in `bootstrap.checkpoint`, in every log directory.
    #[value(name = "4.0")]
    V4_0,
    /// That of Kafka 4.4: the records in the 0-0 checkpoint of controllers.
    #[default]
    #[value(name = "4.4")]
    V4_4,
}

impl Layout {
    /// The release that the layout is named after: a node of it must be able to read the records.
    fn default_release(self) -> MetadataVersion {
        match self {
            Layout::V4_0 => V4_0_IV3,
            Layout::V4_4 => LATEST_PRODUCTION,
        }
    }
}

/// The features and users that a directory is formatted with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bootstrap {
    /// The release.
    pub(crate) metadata_version: MetadataVersion,
    /// The records in their order: `metadata.version`, then the others that are on, names ascending. Never
    /// `kraft.version`, which is a control record.
    pub(crate) levels: Vec<(String, i16)>,
    /// The credentials of users, in the order of the arguments.
    pub(crate) scram: Vec<UserScramCredentialRecord>,
    /// The level of `kraft.version` that was asked for.
    pub(crate) kraft_version: Option<i16>,
}

/// What `--layout`, `--release-version`, `--feature` and `--add-scram` say.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) release: Option<String>,
    pub(crate) features: Vec<String>,
    pub(crate) layout: Layout,
    pub(crate) scram: Vec<String>,
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
        let scram = wanted.scram.iter().map(|argument| scram::credential(argument));
        let scram = scram.collect::<Result<Vec<_>, _>>()?;
        if !scram.is_empty() && metadata_version < SCRAM_SINCE {
            return Err(Failure::new(format!(
                "SCRAM is only supported in {METADATA_VERSION} {} or later.",
                SCRAM_SINCE.name()
            ))
            .next("give a later --release-version, or leave --add-scram out"));
        }
        Ok(Bootstrap { metadata_version, levels, scram, kraft_version })
    }

    /// The values of the records, in their order.
    pub(crate) fn values(&self) -> Result<Vec<Bytes>, EncodeError> {
        let levels = self.levels.iter().map(|(name, level)| feature_level(name, *level));
        let scram = self.scram.iter().cloned();
        let scram = scram.map(|record| MetadataRecord::UserScramCredential(record).encode(0));
        levels.chain(scram).collect()
    }

    /// The line that the storage tool prints, as Java shows these records.
    pub(crate) fn line(&self) -> String {
        let levels = self.levels.iter().map(|(name, level)| {
            format!("FeatureLevelRecord(name='{name}', featureLevel={level})")
        });
        let scram = self.scram.iter().map(|record| {
            format!(
                "UserScramCredentialRecord(name='{}', mechanism={}, salt={:?}, storedKey={:?}, serverKey={:?}, \
                 iterations={})",
                record.name,
                record.mechanism,
                signed(&record.salt),
                signed(&record.stored_key),
                signed(&record.server_key),
                record.iterations
            )
        });
        let records = levels.chain(scram);
        let records: Vec<String> =
            records.map(|record| format!("ApiMessageAndVersion({record} at version 0)")).collect();
        format!(
            "Bootstrap metadata: BootstrapMetadata(records=[{}], metadataVersionLevel={}, source=format command)",
            records.join(", "),
            self.metadata_version.level()
        )
    }
}

/// The value of a FeatureLevelRecord.
pub(crate) fn feature_level(name: &str, level: i16) -> Result<Bytes, EncodeError> {
    let record =
        FeatureLevelRecord { name: name.to_owned(), feature_level: level, ..Default::default() };
    MetadataRecord::FeatureLevel(record).encode(0)
}

/// The level of `metadata.version` that a directory was formatted with, in either layout; none if that says nothing of it.
pub(crate) fn formatted_metadata_version(dir: &Path) -> Result<Option<i16>, StorageError> {
    let own = dir.join(LOG_DIR).join(checkpoint::file_name(checkpoint::BOOTSTRAP));
    for path in [dir.join("bootstrap.checkpoint"), own] {
        for value in checkpoint::read(&RealFs, &path)?.unwrap_or_default().data {
            if let Ok((MetadataRecord::FeatureLevel(record), _)) = MetadataRecord::decode(value)
                && record.name == METADATA_VERSION
            {
                return Ok(Some(record.feature_level));
            }
        }
    }
    Ok(None)
}

/// Java's bytes.
fn signed(bytes: &[u8]) -> Vec<i8> {
    bytes.iter().map(|byte| byte.cast_signed()).collect()
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
        (None, None) => Ok(wanted.layout.default_release()),
    }
}
