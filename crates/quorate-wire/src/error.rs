//! What can be wrong with bytes, and with a message that is to become bytes.

use thiserror::Error;

/// Bytes that are not the message they should be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}{}{field} at byte {position}: {kind}", dot(field))]
pub struct DecodeError {
    /// The message, such as `VoteRequest`.
    pub message: &'static str,
    /// The way to the field, such as `topics[0].partitions[2].leaderId`; empty for the message itself.
    pub field: String,
    /// Where in the bytes the reader stood.
    pub position: usize,
    /// What is wrong there.
    pub kind: DecodeErrorKind,
}

/// What is wrong with bytes.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DecodeErrorKind {
    /// The bytes end too early.
    #[error("needs {needed} bytes, {left} are left")]
    Truncated {
        /// As many bytes the value needs.
        needed: usize,
        /// As many there are.
        left: usize,
    },
    /// The bytes go on after the end.
    #[error("{left} bytes are left over")]
    TrailingBytes {
        /// As many are left.
        left: usize,
    },
    /// Null in a field that cannot be null.
    #[error("null is not allowed")]
    Null,
    /// A variable-length integer that does not end, or does not fit.
    #[error("the variable-length integer is too long")]
    VarintTooLong,
    /// An array beyond [`crate::codec::MAX_ARRAY_ELEMENTS`].
    #[error("an array of {count} elements is too long")]
    TooManyElements {
        /// As many it claims to have.
        count: usize,
    },
    /// A struct with more than [`crate::codec::MAX_TAGS`] tagged fields.
    #[error("{count} tagged fields are too many")]
    TooManyTags {
        /// As many it claims to have.
        count: usize,
    },
    /// A string beyond [`crate::codec::MAX_STRING_LEN`].
    #[error("a string of {len} bytes is too long")]
    StringTooLong {
        /// Its length in bytes.
        len: usize,
    },
    /// A string that is not UTF-8.
    #[error("the string is not UTF-8")]
    Utf8,
    /// A known tag in a version that does not have it.
    #[error("tag {tag} does not exist in version {version}")]
    TagNotInVersion {
        /// The tag.
        tag: u32,
        /// The version.
        version: i16,
    },
    /// A known tag whose content is not as long as it says.
    #[error("tag {tag} does not end where its size says")]
    TagSize {
        /// The tag.
        tag: u32,
    },
    /// Elements that would take far more memory than bytes on the wire.
    #[error("would take too much memory for its size")]
    Memory,
    /// A version that is not built.
    #[error("version {version} is not supported")]
    UnsupportedVersion {
        /// The version.
        version: i16,
    },
    /// An API key, or a type of record, that is not built.
    #[error("type {key} is not known")]
    UnknownKey {
        /// The key.
        key: i64,
    },
}

impl DecodeError {
    pub(crate) fn new(kind: DecodeErrorKind, position: usize) -> DecodeError {
        DecodeError { message: "", field: String::new(), position, kind }
    }

    /// Names the field that the error came up in; called from the inside out.
    #[doc(hidden)]
    #[must_use]
    pub fn within(mut self, field: &str) -> DecodeError {
        prepend(&mut self.field, field);
        self
    }

    pub(crate) fn of(mut self, message: &'static str) -> DecodeError {
        self.message = message;
        self
    }

    /// Whether Java's reader takes such bytes: we refuse text that is not UTF-8 and tagged fields
    /// that do not end where they say, of which a sane peer writes neither.
    pub fn is_stricter_than_java(&self) -> bool {
        matches!(self.kind, DecodeErrorKind::Utf8 | DecodeErrorKind::TagSize { .. })
    }
}

/// A message that a version, or the format, cannot hold.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EncodeError {
    /// The version does not exist, or lacks a field that is set and may not be dropped. A sender takes
    /// it as UNSUPPORTED_VERSION from the peer whose version it is.
    #[error("{message} version {version} cannot carry {}", if field.is_empty() { "anything" } else { field })]
    UnsupportedVersion {
        /// The message, such as `VoteRequest`.
        message: &'static str,
        /// The way to the field; empty if the whole version is not built.
        field: String,
        /// The version.
        version: i16,
    },
    /// A string, array or byte field is longer than the format allows.
    #[error("{message}{}{field}: a length of {len} is too long", dot(field))]
    TooLong {
        /// The message.
        message: &'static str,
        /// The way to the field.
        field: String,
        /// The length, in bytes or elements.
        len: usize,
    },
    /// An unknown tagged field bears a tag that the message knows.
    #[error("{message}{}{field}: tag {tag} is not an unknown one", dot(field))]
    KnownTag {
        /// The message.
        message: &'static str,
        /// The way to the struct.
        field: String,
        /// The tag.
        tag: u32,
    },
}

impl EncodeError {
    #[doc(hidden)]
    #[must_use]
    pub fn unsupported(field: &str, version: i16) -> EncodeError {
        EncodeError::UnsupportedVersion { message: "", field: field.into(), version }
    }

    pub(crate) fn too_long(len: usize) -> EncodeError {
        EncodeError::TooLong { message: "", field: String::new(), len }
    }

    pub(crate) fn known_tag(tag: u32) -> EncodeError {
        EncodeError::KnownTag { message: "", field: String::new(), tag }
    }

    /// Names the field that the error came up in; called from the inside out.
    #[doc(hidden)]
    #[must_use]
    pub fn within(mut self, outer: &str) -> EncodeError {
        let (EncodeError::UnsupportedVersion { field, .. }
        | EncodeError::TooLong { field, .. }
        | EncodeError::KnownTag { field, .. }) = &mut self;
        prepend(field, outer);
        self
    }

    pub(crate) fn of(mut self, name: &'static str) -> EncodeError {
        let (EncodeError::UnsupportedVersion { message, .. }
        | EncodeError::TooLong { message, .. }
        | EncodeError::KnownTag { message, .. }) = &mut self;
        *message = name;
        self
    }
}

/// What stands between a message and a path.
fn dot(path: &str) -> &'static str {
    if path.is_empty() { "" } else { "." }
}

/// Puts `outer` before the path, with a dot unless an index follows.
fn prepend(path: &mut String, outer: &str) {
    if !path.is_empty() && !path.starts_with('[') {
        path.insert(0, '.');
    }
    path.insert_str(0, outer);
}
