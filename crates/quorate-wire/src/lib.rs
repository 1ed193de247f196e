//! Kafka's bytes: messages, record batches, checksums.
