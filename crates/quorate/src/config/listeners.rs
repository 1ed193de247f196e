//! `listeners`, `advertised.listeners`, `controller.listener.names` and `listener.security.protocol.map`.
//!
//! Names are compared in upper case. Only PLAINTEXT is spoken so far: `Config::check_can_run` says so.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use quorate_core::{Endpoint, Endpoints, ListenerName};

use super::properties::Properties;
use crate::failure::Failure;

/// A listener as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listener {
    /// Its name.
    pub(crate) name: ListenerName,
    /// The host; empty for every address.
    pub(crate) host: String,
    /// The port; 0 for any free one.
    pub(crate) port: u16,
}

/// How bytes travel on a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Plaintext,
    Ssl,
    SaslPlaintext,
    SaslSsl,
}

impl Protocol {
    fn parse(name: &str) -> Option<Protocol> {
        match name.to_uppercase().as_str() {
            "PLAINTEXT" => Some(Protocol::Plaintext),
            "SSL" => Some(Protocol::Ssl),
            "SASL_PLAINTEXT" => Some(Protocol::SaslPlaintext),
            "SASL_SSL" => Some(Protocol::SaslSsl),
            _ => None,
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Protocol::Plaintext => "PLAINTEXT",
            Protocol::Ssl => "SSL",
            Protocol::SaslPlaintext => "SASL_PLAINTEXT",
            Protocol::SaslSsl => "SASL_SSL",
        })
    }
}

/// The controller side of a node's listeners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listeners {
    /// `controller.listener.names`; the first is the one that replicas talk through.
    pub(crate) names: Vec<ListenerName>,
    /// Where to listen: the entries of `listeners` under these names.
    pub(crate) bind: Vec<Listener>,
    /// Where others find this node, one entry for each of these names in their order. An empty host
    /// means this machine.
    pub(crate) advertised: Vec<Listener>,
    /// The protocol of each of these names.
    pub(crate) protocols: BTreeMap<ListenerName, Protocol>,
}

impl Listeners {
    /// Reads and checks the four keys. `own_voter` is this node's entry in the static voters.
    pub(crate) fn read(
        properties: &Properties,
        controller: bool,
        broker: bool,
        own_voter: Option<&Endpoint>,
    ) -> Result<Listeners, Failure> {
        let names = names(properties)?;
        let all = parse(properties, "listeners")?;
        check_unique(properties, &all)?;
        let is_ours = |listener: &&Listener| names.contains(&listener.name);
        if controller {
            if !broker && let Some(other) = all.iter().find(|listener| !is_ours(listener)) {
                let what = format!(
                    "has the listener {}, which controller.listener.names lacks",
                    other.name
                );
                return Err(properties.bad("listeners", what).next(
                    "a node with process.roles=controller has controller listeners alone: name it there, or remove it here",
                ));
            }
            for name in &names {
                if !all.iter().any(|listener| listener.name == *name) {
                    let what = format!("{name} of controller.listener.names is not in listeners");
                    return Err(properties
                        .failure(what)
                        .next(format!("add {name}://HOST:PORT to listeners")));
                }
            }
        }
        if let Some(inter) = properties.text("inter.broker.listener.name")
            && names.contains(&ListenerName::new(inter))
        {
            return Err(properties
                .bad("inter.broker.listener.name", "is in controller.listener.names too")
                .next("brokers talk to each other through a listener of their own"));
        }
        let protocols = protocols(properties, &names, &all)?;
        let bind: Vec<Listener> = all.iter().filter(is_ours).cloned().collect();
        let advertised = advertised(properties, &names, &bind, broker, own_voter)?;
        Ok(Listeners { names, bind, advertised, protocols })
    }
}

impl Listeners {
    /// Where others find this node, with the name of this machine for a host that is not configured.
    pub(crate) fn endpoints(&self) -> Endpoints {
        let endpoint = |listener: &Listener| match listener.host.as_str() {
            "" => Endpoint::new(&host_name(), listener.port),
            host => Endpoint::new(host, listener.port),
        };
        self.advertised.iter().map(|listener| (listener.name.clone(), endpoint(listener))).collect()
    }
}

fn names(properties: &Properties) -> Result<Vec<ListenerName>, Failure> {
    const KEY: &str = "controller.listener.names";
    properties.required(KEY, "name the listener of the controllers, for example CONTROLLER")?;
    let names: Vec<ListenerName> =
        properties.list(KEY).into_iter().map(ListenerName::new).collect();
    if names.is_empty() {
        return Err(properties.bad(KEY, "names no listener").next("for example CONTROLLER"));
    }
    Ok(names)
}

fn parse(properties: &Properties, key: &str) -> Result<Vec<Listener>, Failure> {
    let entries = properties.list(key).into_iter();
    entries
        .map(|entry| {
            parse_listener(entry).ok_or_else(|| {
                properties
                    .bad(key, format!("has the entry {entry}, which is no NAME://HOST:PORT"))
                    .next("for example CONTROLLER://controller1.example.com:9093")
            })
        })
        .collect()
}

fn parse_listener(entry: &str) -> Option<Listener> {
    let (name, address) = entry.split_once("://")?;
    let (host, port) = split_host_port(address)?;
    let valid = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-' || c == '.';
    (!name.is_empty() && name.chars().all(valid)).then(|| Listener {
        name: ListenerName::new(name),
        host: host.to_owned(),
        port,
    })
}

/// Splits `host:port` or `[ipv6]:port`; the host may be empty.
pub(crate) fn split_host_port(address: &str) -> Option<(&str, u16)> {
    let (host, port) = address.rsplit_once(':')?;
    let bare = match host.strip_prefix('[') {
        Some(rest) => {
            let inner = rest.strip_suffix(']')?;
            inner.parse::<Ipv6Addr>().ok()?;
            inner
        }
        None if host.contains(':') => return None,
        None => host,
    };
    let plain = port.bytes().all(|c| c.is_ascii_digit());
    let valid = |c: char| c.is_alphanumeric() || matches!(c, '-' | '.' | '_' | ':' | '%');
    (plain && bare.chars().all(valid)).then_some((bare, port.parse().ok()?))
}

/// Whether a host means every address of this machine, so that no other machine can connect to it.
pub(crate) fn is_wildcard(host: &str) -> bool {
    host.is_empty()
        || host.parse() == Ok(Ipv4Addr::UNSPECIFIED)
        || host.parse() == Ok(Ipv6Addr::UNSPECIFIED)
}

fn check_unique(properties: &Properties, listeners: &[Listener]) -> Result<(), Failure> {
    let mut names = BTreeSet::new();
    for listener in listeners {
        if !names.insert(&listener.name) {
            let what = format!("has the listener {} twice", listener.name);
            return Err(properties.bad("listeners", what).next("give each a name of its own"));
        }
    }
    let family = |host: &str| match (host.parse::<Ipv4Addr>(), host.parse::<Ipv6Addr>()) {
        (Ok(_), _) => Some(4),
        (_, Ok(_)) => Some(6),
        _ => None,
    };
    for (i, one) in listeners.iter().enumerate() {
        for other in listeners.iter().skip(i + 1).filter(|l| l.port == one.port && l.port != 0) {
            // One IPv4 and one IPv6 address may share a port.
            let shared =
                matches!((family(&one.host), family(&other.host)), (Some(a), Some(b)) if a != b);
            if !shared {
                let what =
                    format!("has port {} for both {} and {}", one.port, one.name, other.name);
                return Err(properties.bad("listeners", what).next("give each a port of its own"));
            }
        }
    }
    Ok(())
}

fn protocols(
    properties: &Properties,
    names: &[ListenerName],
    listeners: &[Listener],
) -> Result<BTreeMap<ListenerName, Protocol>, Failure> {
    const KEY: &str = "listener.security.protocol.map";
    let mut map = BTreeMap::new();
    let given = properties.text(KEY).is_some();
    for entry in properties.list(KEY) {
        let (name, protocol) = entry.split_once(':').ok_or_else(|| {
            properties
                .bad(KEY, format!("has the entry {entry}, which is no NAME:PROTOCOL"))
                .next("for example CONTROLLER:PLAINTEXT")
        })?;
        let protocol = Protocol::parse(protocol.trim()).ok_or_else(|| {
            properties
                .bad(KEY, format!("has the unknown security protocol {protocol}"))
                .next("Kafka knows PLAINTEXT, SSL, SASL_PLAINTEXT and SASL_SSL")
        })?;
        map.insert(ListenerName::new(name.trim()), protocol);
    }
    let secure = |name: &ListenerName| {
        Protocol::parse(name.as_str()).is_some_and(|protocol| protocol != Protocol::Plaintext)
    };
    // Without a map the names of the four protocols mean themselves; other controller listeners are
    // PLAINTEXT, unless some listener is named after a secure protocol.
    let plain = !given && !names.iter().chain(listeners.iter().map(|l| &l.name)).any(secure);
    let mut protocols = BTreeMap::new();
    for name in names {
        let own = if given { None } else { Protocol::parse(name.as_str()) };
        let protocol = map.get(name).copied().or(own).or(plain.then_some(Protocol::Plaintext));
        let Some(protocol) = protocol else {
            return Err(properties
                .failure(format!("no security protocol is defined for the listener {name}"))
                .next(format!("add {name}:PLAINTEXT to {KEY}")));
        };
        protocols.insert(name.clone(), protocol);
    }
    Ok(protocols)
}

/// From `advertised.listeners`; else from `listeners`. The first name, where that gives no host, takes this
/// node's entry in the static voters.
fn advertised(
    properties: &Properties,
    names: &[ListenerName],
    bind: &[Listener],
    broker: bool,
    own_voter: Option<&Endpoint>,
) -> Result<Vec<Listener>, Failure> {
    const KEY: &str = "advertised.listeners";
    let given = parse(properties, KEY)?;
    for listener in &given {
        if !broker && !names.contains(&listener.name) {
            let what = format!(
                "has the listener {}, which controller.listener.names lacks",
                listener.name
            );
            return Err(properties.bad(KEY, what).next("advertise controller listeners alone"));
        }
        if !listener.host.is_empty() && is_wildcard(&listener.host) {
            let what =
                format!("advertises {}, where no other machine can connect to", listener.host);
            return Err(properties
                .bad(KEY, what)
                .next("give the host under which the others find this node"));
        }
    }
    let mut effective = Vec::new();
    for (i, name) in names.iter().enumerate() {
        let find = |list: &[Listener]| list.iter().find(|l| l.name == *name).cloned();
        let Some(mut listener) = find(&given).or_else(|| find(bind)) else { continue };
        if i == 0
            && is_wildcard(&listener.host)
            && let Some(own) = own_voter
        {
            listener.host = own.host.to_string();
            listener.port = own.port;
        }
        if !listener.host.is_empty() && is_wildcard(&listener.host) {
            let what = format!("has no host for {name} under which the others find this node");
            return Err(properties
                .bad("listeners", what)
                .next(format!("add advertised.listeners={name}://HOST:{}", listener.port)));
        }
        effective.push(listener);
    }
    Ok(effective)
}

/// The name of this machine.
fn host_name() -> String {
    let uname = rustix::system::uname();
    match uname.nodename().to_str() {
        Ok(name) if !name.is_empty() => name.to_owned(),
        _ => "localhost".to_owned(),
    }
}
