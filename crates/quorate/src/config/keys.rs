//! The configuration keys of Kafka 4.4 and our own, to tell a key without effect here from a misspelt one.

/// Every key of a broker or controller, one a line, sorted; from Kafka's documentation of its
/// configuration. Most have no effect on a Quorate controller and are accepted silently.
const KNOWN: &str = include_str!("known_keys.txt");

/// Quorate's own keys.
const OWN: [&str; 3] =
    ["quorate.campaign", "quorate.hint.delay.ms", "quorate.log.preallocate.bytes"];

fn known() -> impl Iterator<Item = &'static str> {
    KNOWN.lines().chain(OWN)
}

/// Keys that continue in a name of the operator's choice.
const OPEN_PREFIXES: [&str; 4] = [
    "listener.name.",
    "config.providers.",
    "metrics.context.",
    "remote.log.metadata.manager.impl.prefix.",
];

pub(crate) fn is_known(key: &str) -> bool {
    known().any(|known| known == key) || OPEN_PREFIXES.iter().any(|prefix| key.starts_with(prefix))
}

/// The known key that was probably meant.
pub(crate) fn nearest(key: &str) -> Option<&'static str> {
    let limit = (key.len() / 6).clamp(1, 4);
    known()
        .map(|known| (strsim::damerau_levenshtein(&key.to_lowercase(), known), known))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_and_has_no_duplicates() {
        let keys: Vec<&str> = KNOWN.lines().collect();
        assert!(keys.is_sorted_by(|a, b| a < b), "sort the list");
    }

    #[test]
    fn a_near_miss_finds_the_key_that_was_meant() {
        for (wrong, right) in [
            ("controller.quorum.fetch.timeout", "controller.quorum.fetch.timeout.ms"),
            ("controler.listener.names", "controller.listener.names"),
            ("node.ID", "node.id"),
            ("quorate.campaigns", "quorate.campaign"),
            ("metadata.log.dirs", "metadata.log.dir"),
        ] {
            assert!(!is_known(wrong));
            assert_eq!(nearest(wrong), Some(right), "{wrong}");
        }
        assert_eq!(nearest("company.team"), None);
    }
}
