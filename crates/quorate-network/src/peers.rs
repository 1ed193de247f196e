//! Outgoing requests: one task and one connection for each destination id.
//!
//! Each [`Peers::send`] ends in exactly one [`PeerEvent::Response`], unless a newer one to the same
//! destination takes its place first. What the core makes of failures is its own affair (protocol
//! reference 2.6); that a dead peer is not hammered is ours: see [`Peers`].

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use quorate_core::ids::NodeId;
use quorate_core::io::{CorrelationId, Destination};
use quorate_core::message::{Received, Request, Response, Unreachable};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::peer::{Outgoing, Peer};

/// How many destinations are kept; the one that was used longest ago makes room for another. Ids come
/// from the network, so their number needs a bound.
const MAX_PEERS: usize = 128;
/// How many events wait for the driver before connections wait for it too.
const EVENTS: usize = 256;

/// How this replica speaks to others.
#[derive(Clone, Debug)]
pub struct PeersConfig {
    /// The client id in request headers.
    pub client_id: String,
    /// The cluster id in requests.
    pub cluster_id: String,
    /// `controller.quorum.request.timeout.ms`: a send ends by then, connecting included.
    pub request_timeout: Duration,
    /// The first pause after a connection failed, `reconnect.backoff.ms`. It doubles with each failure
    /// up to `reconnect_backoff_max`, varies by a fifth either way, and is forgotten when a request is
    /// answered.
    pub reconnect_backoff: Duration,
    /// The longest pause.
    pub reconnect_backoff_max: Duration,
    /// A connection that carried nothing for so long is closed.
    pub idle: Duration,
    /// The largest answer: see [`response_max_bytes`].
    pub response_max_bytes: usize,
}

impl PeersConfig {
    /// Kafka's defaults for a replica of this cluster.
    pub fn new(client_id: &str, cluster_id: &str) -> PeersConfig {
        PeersConfig {
            client_id: client_id.to_owned(),
            cluster_id: cluster_id.to_owned(),
            request_timeout: Duration::from_millis(2000),
            reconnect_backoff: Duration::from_millis(50),
            reconnect_backoff_max: Duration::from_millis(500),
            idle: Duration::from_secs(9 * 60),
            response_max_bytes: response_max_bytes(1 << 20),
        }
    }
}

/// The largest answer that can come if we ask for so many bytes of records: a leader sends one batch
/// in any case, of up to 8 MiB, and some bytes around it.
pub fn response_max_bytes(fetch_max_bytes: usize) -> usize {
    const LARGEST_BATCH: usize = 8 << 20;
    const SLACK: usize = 64 << 10;
    fetch_max_bytes.max(LARGEST_BATCH).saturating_add(SLACK)
}

/// What becomes known about peers.
#[derive(Debug)]
pub enum PeerEvent {
    /// The end of a send.
    Response {
        /// Which.
        id: CorrelationId,
        /// To whom it went.
        to: NodeId,
        /// The answer, or why there is none.
        response: Result<Response<Received>, Unreachable>,
    },
    /// An idle connection to this destination was ended by the other side: it may have died.
    Closed {
        /// Which.
        to: NodeId,
    },
}

/// The destinations that this replica sends to.
///
/// While a destination is in backoff after a failed connection, a send to it fails at once with the
/// reason of that failure. The core needs to know soon: its only outstanding Fetch must not wait for a
/// dead bootstrap server (2.6, 2.9), and its own backoff paces what comes next.
///
/// A connection carries one request at a time. If a newer one comes meanwhile, the answer to the older
/// is awaited for a moment and dropped; a peer that holds it longer, as a leader does with Fetch, loses
/// the connection for a new one.
#[derive(Debug)]
pub struct Peers {
    config: Arc<PeersConfig>,
    events: mpsc::Sender<PeerEvent>,
    slots: HashMap<NodeId, Slot>,
    sends: u64,
}

#[derive(Debug)]
struct Slot {
    newest: watch::Sender<Option<Outgoing>>,
    last_used: u64,
    task: JoinHandle<()>,
}

impl Peers {
    /// No destinations yet. The events must be read, or connections stall.
    pub fn new(config: PeersConfig) -> (Peers, mpsc::Receiver<PeerEvent>) {
        let (events, receiver) = mpsc::channel(EVENTS);
        let peers = Peers { config: Arc::new(config), events, slots: HashMap::new(), sends: 0 };
        (peers, receiver)
    }

    /// Sends a request, in place of an older one to the same destination that has not ended. Must be
    /// called within a tokio runtime; returns at once.
    pub fn send(&mut self, to: &Destination, id: CorrelationId, request: Request) {
        self.sends += 1;
        if !self.slots.contains_key(&to.id) && self.slots.len() >= MAX_PEERS {
            self.forget_oldest();
        }
        let number = self.sends;
        let outgoing = Outgoing { number, id, endpoint: to.endpoint.clone(), request };
        let slot = match self.slots.entry(to.id) {
            Entry::Occupied(slot) => slot.into_mut(),
            Entry::Vacant(vacant) => {
                let (sender, receiver) = watch::channel(None);
                let peer = Peer::new(to.id, self.config.clone(), self.events.clone(), receiver);
                let task = tokio::spawn(peer.run());
                vacant.insert(Slot { newest: sender, last_used: 0, task })
            }
        };
        slot.last_used = self.sends;
        slot.newest.send_replace(Some(outgoing));
    }

    fn forget_oldest(&mut self) {
        let oldest = self.slots.iter().min_by_key(|(_, slot)| slot.last_used).map(|(id, _)| *id);
        if let Some(oldest) = oldest {
            // The task sees that its sender is gone, reports what it still had to do, and ends.
            self.slots.remove(&oldest);
        }
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        for slot in self.slots.values() {
            slot.task.abort();
        }
    }
}
