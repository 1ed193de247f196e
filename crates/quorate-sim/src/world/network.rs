//! The network: real bytes over links that delay, lose, double, reorder and cut.

use bytes::{Bytes, BytesMut};
use quorate_core::io::{CorrelationId, Destination};
use quorate_core::message::{LogRange, Request, Response, Unreachable};
use quorate_rpc::api_of;
use quorate_rpc::client::{Origin, decode_response, encode_request};
use quorate_rpc::server::encode_response;
use quorate_wire::frame::SIZE_LEN;

use super::{Draw, Flight, Happening, World, micros};
use crate::clock::Micros;
use crate::counters::Count;
use crate::machine::{Asker, CLUSTER, Inbound, Process, Reply, index_of};
use crate::random::Random;
use crate::trace::{self, What};
use crate::workload::Workload;

/// The state of all links.
#[derive(Debug)]
pub(super) struct Links {
    nodes: usize,
    links: Vec<Link>,
}

/// What one node's messages to another go through.
#[derive(Clone, Debug, Default)]
pub(super) struct Link {
    pub(super) cut_until: Micros,
    pub(super) slow_until: Micros,
    pub(super) slow_by: Micros,
    /// The second node accepts no connection of the first until then.
    pub(super) refused_until: Micros,
    /// Counts the connections that the first node opened to the second.
    pub(super) connection: u64,
    /// Counts messages.
    messages: u64,
    /// When the last of those that were sent so far arrives.
    last_arrival: Micros,
}

impl Links {
    pub(super) fn new(nodes: usize) -> Links {
        Links { nodes, links: vec![Link::default(); nodes * nodes] }
    }

    pub(super) fn of(&mut self, from: usize, to: usize) -> &mut Link {
        &mut self.links[from * self.nodes + to]
    }

    pub(super) fn is_cut(&self, from: usize, to: usize, now: Micros) -> bool {
        self.links[from * self.nodes + to].cut_until > now
    }

    pub(super) fn heal(&mut self) {
        for link in &mut self.links {
            link.cut_until = 0;
            link.slow_until = 0;
            link.refused_until = 0;
        }
    }
}

/// What becomes of a message.
enum Fate {
    Arrives(Micros),
    Lost,
}

impl<W: Workload> World<'_, W> {
    fn draw_message(&mut self, from: usize, to: usize) -> Random {
        let link = self.links.of(from, to);
        link.messages += 1;
        let n = link.messages;
        self.draw(Draw::Message, from * 16 + to, n)
    }

    fn fate(&mut self, from: usize, to: usize, random: &mut Random) -> Fate {
        if self.links.is_cut(from, to, self.now) {
            return Fate::Lost;
        }
        let network = &self.plan.network;
        let mut wait = random.within(network.latency.0, network.latency.1);
        if self.quiet.is_none() {
            if random.per_mille(network.lost) {
                self.count(Count::Lost);
                return Fate::Lost;
            }
            if random.per_mille(network.late) {
                wait += random.below(network.late_by);
                self.count(Count::Late);
            }
            let now = self.now;
            let link = self.links.of(from, to);
            if link.slow_until > now {
                wait += link.slow_by;
            }
        }
        let arrival = self.now + wait;
        let link = self.links.of(from, to);
        if arrival < link.last_arrival {
            self.count(Count::Reordered);
        } else {
            link.last_arrival = arrival;
        }
        Fate::Arrives(wait)
    }

    /// A request leaves.
    pub(super) fn ask(
        &mut self,
        node: usize,
        destination: &Destination,
        id: CorrelationId,
        request: &Request,
    ) {
        let to = index_of(&destination.endpoint);
        let boot = self.machines[node].boot;
        let api = api_of(request);
        let ours = *api.versions().end();
        let highest = |index: usize| self.machines[index].generation.highest(api.code(), ours);
        let version = highest(node).min(highest(to));
        let asker = Asker { node, boot, id, api, version };
        let mut random = self.draw_message(node, to);
        let connection = self.links.of(node, to).connection;
        self.flights.insert((node, boot, id), Flight { to, connection });
        let origin = Origin { client_id: "raft-client", cluster_id: CLUSTER };
        let correlation = i32::try_from(id.0).unwrap_or(0);
        let Ok(slices) = encode_request(request, version, correlation, &origin) else {
            let frame = Err(Unreachable::UnsupportedVersion);
            return self.after(20, Happening::Answer { to: asker, from: to, frame });
        };
        if version < ours {
            self.count(Count::OldVersion);
        }
        let frame = joined(&slices);
        if matches!(request, Request::Fetch(_)) {
            self.history.fetches.push((self.now, node, to));
            self.last_fetch.insert(node, (to, frame.clone(), asker));
        }
        let fate = self.fate(node, to, &mut random);
        self.trace.tell(self.now, node, || What::Sends {
            to,
            text: trace::request(request),
            lost: matches!(fate, Fate::Lost),
        });
        match fate {
            Fate::Lost => self.never(asker, to, &mut random),
            Fate::Arrives(wait) => {
                let is_reset = random.per_mille(self.plan.network.reset);
                let is_doubled = random.per_mille(self.plan.network.doubled);
                let more = random.below(self.plan.network.late_by.max(1));
                let copy = frame.clone();
                self.after(wait, Happening::Request { to, frame, from: asker });
                if self.quiet.is_some() {
                    return;
                }
                if is_doubled {
                    self.count(Count::Doubled);
                    self.after(wait + more, Happening::Request { to, frame: copy, from: asker });
                }
                if is_reset {
                    self.reset(node, to);
                }
            }
        }
    }

    /// A request or its answer is lost: the asker learns it from the network, or from its own clock.
    fn never(&mut self, asker: Asker, from: usize, random: &mut Random) {
        let timeout = micros(self.plan.timeouts.request);
        let (wait, why) = match random.below(3) {
            0 => (random.below(timeout), Unreachable::Reset),
            1 => (timeout, Unreachable::TimedOut),
            _ => return,
        };
        self.after(wait, Happening::Answer { to: asker, from, frame: Err(why) });
    }

    /// The connection from one node to another is reset: the answers on it are lost.
    pub(super) fn reset(&mut self, from: usize, to: usize) {
        self.count(Count::ResetConnection);
        let link = self.links.of(from, to);
        link.connection += 1;
        let connection = link.connection;
        let boot = self.machines[from].boot;
        let lost: Vec<CorrelationId> = self
            .flights
            .range((from, boot, CorrelationId(0))..=(from, boot, CorrelationId(u64::MAX)))
            .filter(|(_, flight)| flight.to == to && flight.connection < connection)
            .map(|((_, _, id), _)| *id)
            .collect();
        for id in lost {
            let api = quorate_rpc::ApiKey::Vote;
            let asker = Asker { node: from, boot, id, api, version: 0 };
            let frame = Err(Unreachable::Reset);
            self.after(30, Happening::Answer { to: asker, from: to, frame });
        }
    }

    /// A request arrives at a machine.
    pub(super) fn on_request(&mut self, to: usize, frame: Bytes, from: Asker) {
        let mut random = self.draw_message(to, from.node);
        if self.links.is_cut(from.node, to, self.now) {
            return self.never(from, to, &mut random);
        }
        let is_alive = self.machines[to].process.is_some();
        let refused_until =
            self.links.of(from.node, to).refused_until.max(self.machines[to].refuses_until);
        let refuses = refused_until > self.now;
        if is_alive && !refuses {
            return self.receive(to, Inbound::Request { frame, from });
        }
        // The machine answers for the process that is gone, if it runs itself.
        if !is_alive && random.percent(self.plan.network.silent) {
            return self.never(from, to, &mut random);
        }
        self.count(if is_alive { Count::RefusedAlive } else { Count::RefusedConnection });
        match self.fate(to, from.node, &mut random) {
            Fate::Arrives(wait) => {
                let frame = Err(Unreachable::Refused);
                self.after(wait, Happening::Answer { to: from, from: to, frame });
            }
            Fate::Lost => self.never(from, to, &mut random),
        }
    }

    /// An answer leaves.
    pub(super) fn respond(
        &mut self,
        node: usize,
        process: &mut Process<W::Machine>,
        reply: &Reply,
        response: &Response<LogRange>,
        records: Vec<Bytes>,
    ) {
        let to = reply.to;
        let wall = self.machines[node].clock.wall_ms(self.now);
        let encoded = encode_response(reply.format, response, records, &process.context, wall);
        let slices = match encoded {
            Ok(slices) => slices,
            Err(error) => return self.fail("codec", error.to_string()),
        };
        let mut random = self.draw_message(node, to.node);
        let fate = self.fate(node, to.node, &mut random);
        self.trace.tell(self.now, node, || What::Sends {
            to: to.node,
            text: trace::message(&quorate_core::io::Message::Response {
                id: quorate_core::io::RequestId(0),
                response: response.clone(),
            }),
            lost: matches!(fate, Fate::Lost),
        });
        match fate {
            Fate::Lost => self.never(to, node, &mut random),
            Fate::Arrives(wait) => {
                let frame = Ok(joined(&slices));
                self.after(wait, Happening::Answer { to, from: node, frame });
            }
        }
    }

    /// An answer, or the news that there is none, reaches who asked.
    pub(super) fn on_answer(&mut self, to: Asker, from: usize, frame: Result<Bytes, Unreachable>) {
        if !self.machines[to.node].is_up(to.boot) {
            return;
        }
        let is_bytes = frame.is_ok();
        if is_bytes && self.links.is_cut(from, to.node, self.now) {
            let mut random = self.draw_message(from, to.node);
            return self.never(to, from, &mut random);
        }
        let Some(flight) = self.flights.get(&(to.node, to.boot, to.id)).copied() else {
            if is_bytes {
                self.count(Count::LateAnswer);
            }
            return;
        };
        // Nobody reads from a connection that was reset.
        if is_bytes && flight.connection < self.links.of(to.node, from).connection {
            return;
        }
        self.flights.remove(&(to.node, to.boot, to.id));
        let wall = self.machines[to.node].clock.wall_ms(self.now);
        let response = match frame {
            Ok(frame) => {
                self.digest.add_bytes(&frame);
                decode_response(to.api, to.version, frame, wall)
            }
            Err(why) => Err(why),
        };
        if let Err(Unreachable::Malformed) = response {
            return self.fail("codec", format!("an answer to {:?} does not decode", to.api));
        }
        self.trace.tell(self.now, to.node, || What::Hears { from, text: trace::answer(&response) });
        self.receive(to.node, Inbound::Answer { id: to.id, response });
    }
}

/// A frame as it arrives, without its length.
fn joined(slices: &[Bytes]) -> Bytes {
    let mut frame = BytesMut::with_capacity(slices.iter().map(Bytes::len).sum());
    for slice in slices {
        frame.extend_from_slice(slice);
    }
    frame.freeze().split_off(SIZE_LEN)
}
