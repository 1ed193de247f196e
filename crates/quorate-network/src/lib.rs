//! Listeners and connections that speak Kafka's framing, on tokio.
//!
//! [`Listener`] takes requests in and writes answers, [`Peers`] sends requests and gets answers,
//! [`Client`] holds one conversation for a tool. What frames mean is `quorate-rpc`'s; how long to wait
//! and what to do about failures is the core's. Nothing here grows without a bound.

mod client;
mod clock;
mod connection;
mod frame;
mod listener;
mod peer;
mod peers;
mod stream;
mod warn;

pub use client::{Client, ClientError};
pub use listener::{Incoming, Limits, Listener, ListenerConfig, Reply};
pub use peers::{PeerEvent, Peers, PeersConfig, response_max_bytes};
