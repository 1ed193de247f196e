//! Kafka's releases as levels of `metadata.version`, and the features that each release turns on.
//!
//! Levels and names are those of Kafka 4.4.0 (KIP-584, KIP-1022).

/// The levels that Kafka 4.4.0 knows: name, level. The last one is not for production.
const RELEASES: [(&str, i16); 28] = [
    ("3.3-IV3", 7),
    ("3.4-IV0", 8),
    ("3.5-IV0", 9),
    ("3.5-IV1", 10),
    ("3.5-IV2", 11),
    ("3.6-IV0", 12),
    ("3.6-IV1", 13),
    ("3.6-IV2", 14),
    ("3.7-IV0", 15),
    ("3.7-IV1", 16),
    ("3.7-IV2", 17),
    ("3.7-IV3", 18),
    ("3.7-IV4", 19),
    ("3.8-IV0", 20),
    ("3.9-IV0", 21),
    ("4.0-IV0", 22),
    ("4.0-IV1", 23),
    ("4.0-IV2", 24),
    ("4.0-IV3", 25),
    ("4.1-IV0", 26),
    ("4.1-IV1", 27),
    ("4.2-IV0", 28),
    ("4.2-IV1", 29),
    ("4.3-IV0", 30),
    ("4.4-IV0", 31),
    ("4.4-IV1", 32),
    ("4.4-IV2", 33),
    ("4.5-IV0", 34),
];

/// The level that a directory is formatted with unless told otherwise: that of Kafka 4.4.
pub(crate) const LATEST_PRODUCTION: MetadataVersion = MetadataVersion(33);

/// The latest level for production of Kafka 4.0.
pub(crate) const V4_0_IV3: MetadataVersion = MetadataVersion(25);

/// The first level with SCRAM users in the metadata log (KIP-900).
pub(crate) const SCRAM_SINCE: MetadataVersion = MetadataVersion(11);

/// From this metadata.version on, this level is a feature's default.
type Default = (i16, i16);

/// The features beside `metadata.version`, names ascending, each with its highest level and its defaults.
const FEATURES: [(&str, i16, &[Default]); 6] = [
    ("eligible.leader.replicas.version", 1, &[(26, 1)]),
    ("group.version", 1, &[(22, 1)]),
    ("kraft.version", 1, &[]),
    ("share.version", 2, &[(28, 1), (31, 2)]),
    ("streams.version", 1, &[(29, 1)]),
    ("transaction.version", 2, &[(24, 2)]),
];

/// The name of the feature that stands for the release.
pub(crate) const METADATA_VERSION: &str = "metadata.version";
/// The name of the quorum's own feature, which control records carry.
pub(crate) const KRAFT_VERSION: &str = "kraft.version";

/// A level of `metadata.version` that Kafka 4.4.0 knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MetadataVersion(i16);

impl MetadataVersion {
    /// Finds a release by name: `4.0-IV3`, or `4.0` or `4.0.1` for the last level of 4.0.
    pub(crate) fn parse(name: &str) -> Option<MetadataVersion> {
        let key = match name.match_indices('.').nth(1) {
            Some((end, _)) => &name[..end],
            None => name,
        };
        let family = |full: &str| full.split_once("-IV").is_some_and(|(family, _)| family == key);
        let of_name = RELEASES.iter().rev().find(|(full, _)| *full == key || family(full));
        of_name.map(|(_, level)| MetadataVersion(*level))
    }

    /// The release of a level.
    pub(crate) fn from_level(level: i16) -> Option<MetadataVersion> {
        RELEASES.iter().any(|(_, known)| *known == level).then_some(MetadataVersion(level))
    }

    /// The level.
    pub(crate) fn level(self) -> i16 {
        self.0
    }

    /// The name, such as `4.4-IV2`.
    pub(crate) fn name(self) -> &'static str {
        RELEASES.iter().find(|(_, level)| *level == self.0).map_or("unknown", |(name, _)| name)
    }

    /// The names that `--release-version` takes, from the first to the latest for production.
    pub(crate) fn names() -> String {
        let known = RELEASES.iter().filter(|(_, level)| *level <= LATEST_PRODUCTION.0);
        known.map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    }

    /// The levels that are known: the first and the last.
    pub(crate) fn levels() -> (i16, i16) {
        (RELEASES[0].1, RELEASES[RELEASES.len() - 1].1)
    }

    /// The level that a feature has by default at this release; 0 for none.
    pub(crate) fn default_level(self, feature: &str) -> i16 {
        let defaults = FEATURES.iter().find(|(name, ..)| *name == feature).map(|entry| entry.2);
        let reached = defaults.unwrap_or(&[]).iter().rev().find(|(from, _)| *from <= self.0);
        reached.map_or(0, |(_, level)| *level)
    }
}

/// The features beside `metadata.version` by name, and the highest level of each.
pub(crate) fn supported() -> impl Iterator<Item = (&'static str, i16)> {
    FEATURES.iter().map(|(name, highest, _)| (*name, *highest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defaults(release: &str) -> Vec<(&'static str, i16)> {
        let version = MetadataVersion::parse(release).expect(release);
        let all = supported().map(|(name, _)| (name, version.default_level(name)));
        all.filter(|(_, level)| *level > 0).collect()
    }

    #[test]
    fn a_release_is_found_by_family_patch_and_full_name() {
        for (name, level) in [
            ("3.3", 7),
            ("3.9", 21),
            ("4.0", 25),
            ("4.0.1", 25),
            ("4.0-IV1", 23),
            ("4.4", 33),
            ("4.5-IV0", 34),
        ] {
            assert_eq!(
                MetadataVersion::parse(name).map(MetadataVersion::level),
                Some(level),
                "{name}"
            );
        }
        for name in ["3.2", "4", "7", "", "4.0-IV9", "4.0-IV", "9.9"] {
            assert_eq!(MetadataVersion::parse(name), None, "{name}");
        }
        assert_eq!(LATEST_PRODUCTION.name(), "4.4-IV2");
        assert!(MetadataVersion::names().ends_with("4.4-IV2"));
    }

    #[test]
    fn each_release_turns_on_its_features() {
        assert_eq!(defaults("3.9"), []);
        assert_eq!(defaults("4.0"), [("group.version", 1), ("transaction.version", 2)]);
        let (elr, group, transaction) = (
            ("eligible.leader.replicas.version", 1),
            ("group.version", 1),
            ("transaction.version", 2),
        );
        assert_eq!(defaults("4.1"), [elr, group, transaction]);
        let streams = ("streams.version", 1);
        assert_eq!(defaults("4.3"), [elr, group, ("share.version", 1), streams, transaction]);
        assert_eq!(defaults("4.4"), [elr, group, ("share.version", 2), streams, transaction]);
    }
}
