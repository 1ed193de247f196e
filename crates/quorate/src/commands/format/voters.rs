//! The voters that a directory is formatted with: `id@host:port:directory-id`, separated by commas.

use std::net::Ipv6Addr;

use quorate_core::message::KRaftVersion;
use quorate_core::voters::{Voter, VoterSet};
use quorate_core::{DirectoryId, Endpoint, Endpoints, ListenerName, NodeId};
use quorate_storage::meta_properties;

use crate::failure::Failure;

/// Reads `--initial-controllers`; the endpoints stand under the first controller listener.
pub(crate) fn parse(list: &str, listener: &ListenerName) -> Result<VoterSet, Failure> {
    let mut voters: Vec<(NodeId, Voter)> = Vec::new();
    for entry in list.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        let (id, endpoint, directory) = parse_entry(entry).map_err(|what| {
            Failure::new(what).next(format!(
                "in --initial-controllers, {entry} must have the form ID@HOST:PORT:DIRECTORY-ID; `quorate random-uuid` makes directory ids"
            ))
        })?;
        if voters.iter().any(|(other, _)| *other == id) {
            return Err(Failure::new(format!("Node id {id} was specified more than once.")));
        }
        voters.push((id, voter(directory, listener, endpoint)));
    }
    match VoterSet::new(voters) {
        Some(set) if !set.is_empty() => Ok(set),
        _ => Err(Failure::new("--initial-controllers names no voter")
            .next("give ID@HOST:PORT:DIRECTORY-ID of each, separated by commas")),
    }
}

/// A voter of this implementation.
pub(crate) fn voter(directory: DirectoryId, listener: &ListenerName, endpoint: Endpoint) -> Voter {
    Voter {
        directory: Some(directory),
        endpoints: Endpoints::from([(listener.clone(), endpoint)]),
        kraft_versions: KRaftVersion::SUPPORTED,
    }
}

fn parse_entry(entry: &str) -> Result<(NodeId, Endpoint, DirectoryId), String> {
    let part = |what: &str| format!("{what} in dynamic voter string.");
    let (id, rest) = entry.split_once('@').ok_or("No @ found in dynamic voter string.")?;
    let id = id.parse().map_err(|_| part("Failed to parse node id"))?;
    if id < 0 {
        return Err(part(&format!("Invalid negative node id {id}")));
    }
    let (host, rest) = match rest.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or("No right bracket follows the host.")?;
            host.parse::<Ipv6Addr>().map_err(|_| part("Failed to parse IPv6 address"))?;
            (host, rest.strip_prefix(':').ok_or("No colon follows the host's right bracket.")?)
        }
        None => rest.split_once(':').ok_or("No colon following hostname could be found.")?,
    };
    if host.is_empty() {
        return Err("No hostname found after node id.".to_owned());
    }
    let (port, directory) =
        rest.split_once(':').ok_or("No colon following port could be found.")?;
    let port = port.parse().map_err(|_| part("Failed to parse port"))?;
    let bytes = meta_properties::parse_uuid(directory);
    let bytes = bytes.ok_or_else(|| part("Failed to parse directory ID"))?;
    // Differs from Kafka: it formats with a reserved id, and refuses the directory at the start.
    let directory =
        DirectoryId::from_bytes(bytes).filter(|_| !meta_properties::is_reserved(&bytes));
    let directory = directory.ok_or_else(|| part("Reserved directory ID"))?;
    Ok((NodeId(id), Endpoint::new(host, port), directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_read_as_kafka_reads_them() {
        let listener = ListenerName::new("CONTROLLER");
        let list = "2@[::1]:9093:QuorateDirOfNode002AAA, 1@c1.example:9094:QuorateDirOfNode001AAA";
        let set = parse(list, &listener).expect("good");
        let shown: Vec<String> = set
            .iter()
            .map(|(id, v)| format!("{id} {} {}", v.directory.expect("one"), v.endpoints[&listener]))
            .collect();
        assert_eq!(
            shown,
            ["1 QuorateDirOfNode001AAA c1.example:9094", "2 QuorateDirOfNode002AAA [::1]:9093"]
        );
    }

    #[test]
    fn bad_entries_say_what_is_wrong_with_which() {
        let id = "QuorateDirOfNode001AAA";
        for (entry, expected) in [
            (format!("1-h:1:{id}"), "No @ found"),
            (format!("x@h:1:{id}"), "Failed to parse node id"),
            (format!("-1@h:1:{id}"), "Invalid negative node id -1"),
            (format!("1@:1:{id}"), "No hostname found"),
            (format!("1@[::1:1:{id}"), "No right bracket"),
            ("1@h:9093".to_owned(), "No colon following port could be found."),
            (format!("1@h:70000:{id}"), "Failed to parse port"),
            ("1@h:1:short".to_owned(), "Failed to parse directory ID in dynamic voter string."),
            ("1@h:1:AAAAAAAAAAAAAAAAAAAAAA".to_owned(), "Reserved directory ID"),
            (format!("1@h:1:{id},1@h:2:{id}"), "Node id 1 was specified more than once."),
            (",".to_owned(), "--initial-controllers names no voter"),
        ] {
            let failure = parse(&entry, &ListenerName::new("C")).expect_err(&entry);
            assert!(failure.message.starts_with(expected), "{entry}: {}", failure.message);
        }
    }
}
