//! One destination: its connection, its backoff, and the request in hand.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use quorate_core::ids::{Endpoint, NodeId};
use quorate_core::io::CorrelationId;
use quorate_core::message::{Received, Request, Response, Unreachable};
use quorate_rpc::client::{Origin, decode_response, encode_request};
use quorate_rpc::{ApiKey, api_of};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout, timeout_at};
use tracing::{debug, info, warn};

use crate::clock::now_ms;
use crate::connection::{Connection, Failure};
use crate::peers::{PeerEvent, PeersConfig};

/// How long the answer to a request that nobody waits for any more may take before the connection is
/// given up. A Fetch may be held on purpose; everything else is answered at once, and a new connection
/// costs three round trips.
const FETCH_GRACE: Duration = Duration::from_millis(20);
const GRACE: Duration = Duration::from_millis(250);
/// How often a peer that stays in trouble is named in the log.
const WARN_PERIOD: Duration = Duration::from_secs(60);

/// A request on its way to one destination.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    /// Tells it from all others, to any destination.
    pub(crate) number: u64,
    pub(crate) id: CorrelationId,
    pub(crate) endpoint: Endpoint,
    pub(crate) request: Request,
}

/// The newest request to a destination; the older ones are forgotten.
pub(crate) type Newest = watch::Receiver<Option<Outgoing>>;

/// The task behind a destination.
pub(crate) struct Peer {
    to: NodeId,
    config: Arc<PeersConfig>,
    events: mpsc::Sender<PeerEvent>,
    newest: Newest,
    /// The number of the last request that was begun.
    begun: u64,
    link: Option<Link>,
    /// The last connection that was proven is gone, and no new one has failed yet.
    may_reconnect: bool,
    trouble: Option<Trouble>,
    warned: Option<Instant>,
    chance: u64,
}

struct Link {
    endpoint: Endpoint,
    connection: Connection,
    /// Whether a request was answered on it. A peer that accepts and hangs up is not well.
    proven: bool,
}

/// A row of failures to get an answer from an endpoint.
struct Trouble {
    endpoint: Endpoint,
    since: Instant,
    last: Unreachable,
    backoff: Duration,
    retry_at: Instant,
}

/// How a turn with a request ended.
enum End {
    /// An answer, or a failure after which the connection is still good.
    Answered(Result<Response<Received>, Unreachable>),
    /// There is no connection, or it is no good any more.
    Failed(Failure),
    /// A newer request has come.
    Superseded,
}

/// What came of waiting for an answer.
enum Talked {
    InTime(Result<Bytes, Failure>),
    /// A newer request came, or none will; the answer may have come a little later.
    Superseded {
        forgotten: bool,
        late: bool,
    },
}

impl Peer {
    pub(crate) fn new(
        to: NodeId,
        config: Arc<PeersConfig>,
        events: mpsc::Sender<PeerEvent>,
        newest: Newest,
    ) -> Peer {
        // Only to spread reconnects: a number that differs between processes and peers.
        let chance = (u64::from(std::process::id()) << 32) | u64::from(to.0.unsigned_abs()) | 1;
        Peer {
            to,
            config,
            events,
            newest,
            begun: 0,
            link: None,
            may_reconnect: false,
            trouble: None,
            warned: None,
            chance,
        }
    }

    /// Serves requests until the sender is gone.
    pub(crate) async fn run(mut self) {
        while let Some(outgoing) = self.next().await {
            let response = match self.attempt(&outgoing).await {
                End::Answered(response) => response,
                End::Failed(failure) => {
                    let kind = failure.kind;
                    self.lose_link(&outgoing.endpoint, &failure);
                    Err(kind)
                }
                End::Superseded => continue,
            };
            let event = PeerEvent::Response { id: outgoing.id, to: self.to, response };
            if self.events.send(event).await.is_err() {
                return;
            }
        }
    }

    /// Waits for a request; meanwhile notices that the peer ends an idle connection.
    async fn next(&mut self) -> Option<Outgoing> {
        loop {
            let begun = self.begun;
            let newest = newer_than(&mut self.newest, begun);
            let ended = match &mut self.link {
                None => {
                    let outgoing = newest.await?;
                    self.begun = outgoing.number;
                    return Some(outgoing);
                }
                Some(link) => tokio::select! {
                    // The end first: a request is better off with a new connection.
                    biased;
                    ended = timeout(self.config.idle, link.connection.ended()) => {
                        ended.map_err(|_| link.endpoint.clone()).map(|f| (link.endpoint.clone(), f))
                    }
                    outgoing = newest => {
                        let outgoing = outgoing?;
                        self.begun = outgoing.number;
                        return Some(outgoing);
                    }
                },
            };
            match ended {
                Ok((endpoint, failure)) => {
                    self.lose_link(&endpoint, &failure);
                    self.events.send(PeerEvent::Closed { to: self.to }).await.ok()?;
                }
                Err(endpoint) => {
                    debug!(peer = %self.to, %endpoint, "idle connection closed");
                    self.link = None;
                }
            }
        }
    }

    async fn attempt(&mut self, outgoing: &Outgoing) -> End {
        let deadline = Instant::now() + self.config.request_timeout;
        let endpoint = &outgoing.endpoint;
        self.link.take_if(|link| link.endpoint != *endpoint);
        self.trouble.take_if(|trouble| trouble.endpoint != *endpoint);
        if self.link.is_none() {
            if let Some(trouble) = &self.trouble
                && Instant::now() < trouble.retry_at
            {
                return End::Answered(Err(trouble.last));
            }
            let open = Connection::open(
                endpoint,
                &self.config.client_id,
                self.config.response_max_bytes,
                deadline,
            );
            // A newer request to the same endpoint would need this very connection.
            let connection = tokio::select! {
                biased;
                opened = open => match opened {
                    Ok(connection) => connection,
                    Err(failure) => return End::Failed(failure),
                },
                end = moved(&mut self.newest, endpoint) => return end,
            };
            self.link = Some(Link { endpoint: endpoint.clone(), connection, proven: false });
        }
        self.exchange(outgoing, deadline).await
    }

    async fn exchange(&mut self, outgoing: &Outgoing, deadline: Instant) -> End {
        let Some(link) = &mut self.link else { return End::Superseded };
        if self.newest.borrow().as_ref().is_some_and(|newest| newest.number > outgoing.number) {
            return End::Superseded;
        }
        let api = api_of(&outgoing.request);
        let Some(version) = link.connection.versions.choose(api) else {
            return End::Answered(Err(Unreachable::UnsupportedVersion));
        };
        let origin =
            Origin { client_id: &self.config.client_id, cluster_id: &self.config.cluster_id };
        let correlation = link.connection.correlation();
        let Ok(slices) = encode_request(&outgoing.request, version, correlation, &origin) else {
            return End::Answered(Err(Unreachable::UnsupportedVersion));
        };
        let talked = {
            let mut talk = pin!(async {
                link.connection.write(&slices).await?;
                link.connection.read(correlation).await
            });
            tokio::select! {
                biased;
                answer = timeout_at(deadline, &mut talk) => Talked::InTime(answer.unwrap_or_else(
                    |_| Err(Failure::new(Unreachable::TimedOut, "no answer in time")),
                )),
                newer = newer_than(&mut self.newest, outgoing.number) => {
                    let grace = if api == ApiKey::Fetch { FETCH_GRACE } else { GRACE };
                    let late = timeout(grace, &mut talk).await;
                    Talked::Superseded { forgotten: newer.is_none(), late: matches!(late, Ok(Ok(_))) }
                }
            }
        };
        let frame = match talked {
            Talked::InTime(Ok(frame)) => frame,
            Talked::InTime(Err(failure)) => return End::Failed(failure),
            Talked::Superseded { forgotten: true, .. } => return End::Failed(forgotten()),
            Talked::Superseded { late, .. } => {
                link.proven |= late;
                // An answer that is missing is no fault of the peer's: the next request may connect at
                // once.
                self.link.take_if(|_| !late);
                return End::Superseded;
            }
        };
        let response = decode_response(api, version, frame, now_ms());
        if let Err(Unreachable::Malformed) = response {
            let reason = format!("its answer to {} version {version} is malformed", api.name());
            return End::Failed(Failure::new(Unreachable::Malformed, reason));
        }
        link.proven = true;
        if let Some(trouble) = self.trouble.take() {
            let after = trouble.since.elapsed();
            info!(peer = %self.to, endpoint = %outgoing.endpoint, ?after, "peer answers again");
        }
        if let Err(Unreachable::TopLevel(error)) = response
            && self.may_warn()
        {
            let endpoint = &outgoing.endpoint;
            warn!(peer = %self.to, %endpoint, api = api.name(), error = error.0, "peer refuses our requests");
        }
        End::Answered(response)
    }

    /// Notes that there is no connection any more. One on which requests were answered may be replaced
    /// at once; otherwise the endpoint gets a pause. A process that is killed may take one more connection before its
    /// listener is closed and that is reset: the next attempt will tell.
    fn lose_link(&mut self, endpoint: &Endpoint, failure: &Failure) {
        let proven = self.link.take().is_some_and(|link| link.proven);
        debug!(peer = %self.to, %endpoint, reason = %failure, proven, "connection failed");
        let is_reset = failure.kind == Unreachable::Reset;
        let may_reconnect = std::mem::replace(&mut self.may_reconnect, proven);
        if (proven && failure.kind != Unreachable::Malformed) || (may_reconnect && is_reset) {
            return;
        }
        let now = Instant::now();
        let config = &self.config;
        let trouble = self.trouble.get_or_insert_with(|| Trouble {
            endpoint: endpoint.clone(),
            since: now,
            last: failure.kind,
            backoff: config.reconnect_backoff / 2,
            retry_at: now,
        });
        trouble.last = failure.kind;
        trouble.backoff = (trouble.backoff * 2).min(config.reconnect_backoff_max);
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        let percent = 80 + u32::try_from(self.chance % 41).unwrap_or(0);
        trouble.retry_at = now + trouble.backoff * percent / 100;
        let unreachable_for = trouble.since.elapsed();
        if self.may_warn() {
            warn!(
                peer = %self.to, %endpoint, reason = %failure, ?unreachable_for,
                "cannot reach peer",
            );
        }
    }

    fn may_warn(&mut self) -> bool {
        let due = self.warned.is_none_or(|warned| warned.elapsed() >= WARN_PERIOD);
        if due {
            self.warned = Some(Instant::now());
        }
        due
    }
}

/// The newest request, once it is newer than this one; none when the sender is gone.
async fn newer_than(newest: &mut Newest, number: u64) -> Option<Outgoing> {
    let is_newer = |value: &Option<Outgoing>| value.as_ref().is_some_and(|o| o.number > number);
    newest.wait_for(is_newer).await.ok()?.clone()
}

/// Ends when the newest request is for another endpoint, or the sender is gone.
async fn moved(newest: &mut Newest, endpoint: &Endpoint) -> End {
    let has_moved =
        |value: &Option<Outgoing>| value.as_ref().is_some_and(|o| o.endpoint != *endpoint);
    match newest.wait_for(has_moved).await {
        Ok(_) => End::Superseded,
        Err(_) => End::Failed(forgotten()),
    }
}

fn forgotten() -> Failure {
    Failure::new(Unreachable::Reset, "too many other destinations")
}
