//! Listeners and connections that speak Kafka's framing.
