//! Kafka's Raft RPCs as the core's messages.
