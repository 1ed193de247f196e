//! Kafka's bytes: messages, record batches, checksums. No sockets, no files.
//!
//! What comes in is not trusted: it decodes, or gives an error with field and position; it never
//! panics, and never takes memory out of proportion to its size.
//!
//! - [`message`]: the RPCs, one file each, as structs with `#[derive(Wire)]`;
//! - [`control`] and [`metadata`]: what records hold;
//! - [`batch`]: record batches, read without copying and built in one pass;
//! - [`frame`]: whole requests and responses with their size and header;
//! - [`codec`]: how a struct becomes bytes.

extern crate self as quorate_wire;

pub mod batch;
pub mod codec;
pub mod control;
pub mod crc;
mod error;
pub mod frame;
#[cfg(feature = "json")]
pub mod json;
pub mod message;
pub mod metadata;
#[cfg(feature = "vectors")]
pub mod vectors;

pub use codec::{Message, Records, UnknownTags, Uuid};
pub use error::{DecodeError, DecodeErrorKind, EncodeError};
