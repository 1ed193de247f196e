//! The `replica` command: a started replica from a description.

use std::time::Duration;

use quorate_core::config::{Config, Recovered};
use quorate_core::io::ElectionState;
use quorate_core::message::{ControlRecord, KRaftVersion};
use quorate_core::voters::{Voter, VoterSet};
use quorate_core::{
    DirectoryId, Endpoint, Endpoints, Epoch, ListenerName, NodeId, Offset, ReplicaKey,
};

use super::language::{Words, optional, parse, range, time};
use super::print::directory;

/// The listener that replicas talk through.
pub(crate) fn listener() -> ListenerName {
    ListenerName::new("CONTROLLER")
}

/// Replica 1 has directory A, 2 has B, and so on.
pub(crate) fn usual_directory(id: i32) -> DirectoryId {
    let letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let place = usize::try_from(id - 1).unwrap_or(25).min(25);
    directory(letters.chars().nth(place).unwrap_or('Z'))
}

/// `2/B`, or `2`.
pub(crate) fn key(text: &str) -> Result<ReplicaKey, String> {
    Ok(match text.split_once('/') {
        Some((id, letter)) => {
            ReplicaKey::new(NodeId(parse(id)?), Some(directory(parse::<char>(letter)?)))
        }
        None => ReplicaKey::new(NodeId(parse(text)?), None),
    })
}

/// Where replica `id` listens.
pub(crate) fn endpoint(id: i32) -> Endpoint {
    Endpoint::new(&format!("h{id}"), u16::try_from(9000 + id.clamp(0, 999)).unwrap_or(9999))
}

/// `1,2,3` as static voters, or `1/A,2/B` as voters of the log.
pub(crate) fn voters(text: &str) -> Result<VoterSet, String> {
    let keys = text.split(',').map(key).collect::<Result<Vec<_>, String>>()?;
    let voters = keys.iter().map(|key| {
        let kraft_versions = match key.directory {
            Some(_) => KRaftVersion::SUPPORTED,
            None => (KRaftVersion(0), KRaftVersion(0)),
        };
        let endpoints = Endpoints::from([(listener(), endpoint(key.id.0))]);
        (key.id, Voter { directory: key.directory, endpoints, kraft_versions })
    });
    VoterSet::new(voters).ok_or_else(|| format!("an id comes twice in {text}"))
}

/// What `replica ...` describes.
pub(crate) struct Description {
    pub(crate) config: Config,
    pub(crate) recovered: Recovered,
    /// Each write is durable before anything else happens.
    pub(crate) is_disk_instant: bool,
    /// Nothing ticks but where the script says so.
    pub(crate) is_by_hand: bool,
}

/// Reads the words after `replica`.
pub(crate) fn description(words: &mut Words) -> Result<Description, String> {
    let id: i32 = words.parse()?;
    let mine = words.value::<char>("dir")?.map_or_else(|| usual_directory(id), directory);
    let mut config = Config::new(NodeId(id), mine, listener());
    config.high_watermark_linger = Duration::ZERO;
    let mut at = endpoint(id);
    if let Some(port) = words.value("port")? {
        at.port = port;
    }
    config.endpoints = Endpoints::from([(listener(), at)]);
    if words.flag("also-external") {
        config.endpoints.insert(ListenerName::new("EXTERNAL"), Endpoint::new("external", 9999));
    }

    let mut recovered = Recovered::default();
    for part in words.text("log").iter().flat_map(|text| text.split(',')) {
        let (epoch, offsets) = part.split_once(':').ok_or("log=EPOCH:FROM..TO,...")?;
        let (from, to) = range(offsets)?;
        recovered.epochs.push((Epoch(parse(epoch)?), Offset(from)));
        recovered.log_end = Offset(to);
    }

    if let Some(text) = words.text("voters") {
        let set = voters(&text)?;
        if text.contains('/') {
            config.bootstrap_servers = set.ids().map(|id| endpoint(id.0)).collect();
            let records =
                [ControlRecord::KRaftVersion(KRaftVersion(1)), ControlRecord::Voters(set)];
            match words.value::<i64>("voters-at")? {
                Some(at) => recovered.control.extend((at..).map(Offset).zip(records)),
                None => recovered.bootstrap.extend(records),
            }
        } else {
            config.static_voters = set;
        }
    }
    if let Some(text) = words.text("static") {
        config.static_voters = voters(&text)?;
    }
    for (offset, text) in words.placed("voters")? {
        recovered.control.push((Offset(offset), ControlRecord::Voters(voters(&text)?)));
    }
    for (offset, text) in words.placed("kraft")? {
        let record = ControlRecord::KRaftVersion(KRaftVersion(parse(&text)?));
        let into = if offset < 0 { None } else { Some(Offset(offset)) };
        match into {
            Some(offset) => recovered.control.push((offset, record)),
            None => recovered.bootstrap.push(record),
        }
    }
    recovered.control.sort_by_key(|(offset, _)| *offset);
    if let Some(text) = words.text("bootstrap") {
        let ids = text.split(',').filter(|id| !id.is_empty());
        let ids = ids.map(parse).collect::<Result<Vec<i32>, String>>()?;
        config.bootstrap_servers = ids.into_iter().map(endpoint).collect();
    }

    let epoch: Option<i32> = words.value("epoch")?;
    let leader = words.text("leader").map(|text| optional::<i32>(&text)).transpose()?.flatten();
    let voted = words.text("voted").map(|text| key(&text)).transpose()?;
    if let Some(epoch) = epoch {
        let newest = recovered.control.last().or(None).is_some() || !recovered.bootstrap.is_empty();
        recovered.election = Some(ElectionState {
            epoch: Epoch(epoch),
            leader: leader.map(NodeId),
            voted,
            kraft_version: KRaftVersion(i16::from(newest)),
            voters: config.static_voters.ids().collect(),
        });
    } else if leader.is_some() || voted.is_some() {
        return Err("a stored leader or vote needs an epoch".into());
    }

    for (name, place) in [
        ("election", &mut config.election_timeout as &mut Duration),
        ("election-backoff", &mut config.election_backoff_max),
        ("fetch", &mut config.fetch_timeout),
        ("request", &mut config.request_timeout),
        ("backoff", &mut config.retry_backoff),
        ("hint", &mut config.hint_delay),
        ("linger", &mut config.linger),
        ("hw-linger", &mut config.high_watermark_linger),
    ] {
        if let Some(text) = words.text(name) {
            *place = time(&text)?;
        }
    }
    for (name, place) in [
        ("max-batch", &mut config.max_batch_bytes as &mut usize),
        ("max-uncommitted", &mut config.max_uncommitted_bytes),
        ("max-parked", &mut config.max_parked_fetches),
    ] {
        if let Some(number) = words.value(name)? {
            *place = number;
        }
    }
    config.campaigns = !words.flag("campaigns-never");
    config.seed = words.value("seed")?.unwrap_or(1);
    let is_disk_instant = match words.text("disk").as_deref() {
        None | Some("instant") => true,
        Some("slow") => false,
        Some(other) => return Err(format!("disk={other}: instant or slow")),
    };
    let is_by_hand = words.flag("by-hand");
    Ok(Description { config, recovered, is_disk_instant, is_by_hand })
}
