//! The field's words as types: who, when, where in the log.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::time::Duration;

/// A replica's id, `node.id` in the configuration. Never negative for a replica.
///
/// Connections to bootstrap servers, whose ids are not known, use -2, -3, … as destinations.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub i32);

/// A leader's term: Raft's word is *term*. Zero before the first leader.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Epoch(pub i32);

/// A place in the log. An end offset is exclusive: it names the next record to come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Offset(pub i64);

/// An end offset with the epoch of the record before it, printed `100@4`.
///
/// Ordered as logs are: by epoch first, then by offset (Raft §5.4.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct OffsetAndEpoch {
    /// The end offset.
    pub offset: Offset,
    /// The epoch of the record before it.
    pub epoch: Epoch,
}

/// The uuid in `meta.properties` of a metadata log directory: which disk (KIP-853). Never zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DirectoryId([u8; 16]);

/// Who votes, and on which disk (KIP-853). Ordered by id, then directory, absent first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReplicaKey {
    /// The replica's id.
    pub id: NodeId,
    /// Its directory; absent where the sender does not know it or has none.
    pub directory: Option<DirectoryId>,
}

/// The name of a listener, always in upper case.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerName(Arc<str>);

/// Where a replica listens: a name or address that is not resolved yet, and a port.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// A DNS name or an IP address.
    pub host: Arc<str>,
    /// The TCP port.
    pub port: u16,
}

/// A replica's endpoints by listener name.
pub type Endpoints = BTreeMap<ListenerName, Endpoint>;

/// A moment on the replica's own monotonic clock, in microseconds since it started.
///
/// Instants are compared and never hashed: two replicas that differ in nothing but the time are one
/// state to an explorer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Instant(u64);

impl NodeId {
    /// Whether this can be a replica's id.
    pub fn is_replica(self) -> bool {
        self.0 >= 0
    }
}

impl Epoch {
    /// The last epoch that a replica may enter; the end of int32 is kept free (section 10, item 17).
    ///
    /// Differs from Kafka: it steps past the end of int32 and stops.
    pub const MAX: Epoch = Epoch(i32::MAX - 1024);

    /// Whether a replica of this epoch may believe that another one has come. In the upper half of int32 epochs
    /// grow by elections alone, or one packet from anybody would use them up for good.
    pub fn may_jump_to(self, other: Epoch) -> bool {
        const HALF: Epoch = Epoch(1 << 30);
        const ELECTIONS: i32 = 1024;
        other <= HALF || (other <= Epoch::MAX && other.0.saturating_sub(self.0) <= ELECTIONS)
    }

    /// The epoch after this one, or none at [`Epoch::MAX`].
    pub fn next(self) -> Option<Epoch> {
        (self < Epoch::MAX).then(|| Epoch(self.0 + 1))
    }
}

impl Offset {
    /// The start of a log that never was cut.
    pub const ZERO: Offset = Offset(0);

    /// The offset `count` records further on. Offsets end long before int64 does.
    pub fn plus(self, count: usize) -> Offset {
        Offset(self.0.saturating_add(i64::try_from(count).unwrap_or(i64::MAX)))
    }
}

impl OffsetAndEpoch {
    /// `offset@epoch`.
    pub fn new(offset: Offset, epoch: Epoch) -> OffsetAndEpoch {
        OffsetAndEpoch { offset, epoch }
    }
}

impl Ord for OffsetAndEpoch {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        (self.epoch, self.offset).cmp(&(other.epoch, other.offset))
    }
}

impl PartialOrd for OffsetAndEpoch {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl DirectoryId {
    /// From the 16 bytes of the wire; zero means *not given*.
    pub fn from_bytes(bytes: [u8; 16]) -> Option<DirectoryId> {
        (bytes != [0; 16]).then_some(DirectoryId(bytes))
    }

    /// The 16 bytes, high ones first.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl ReplicaKey {
    /// A key of both parts.
    pub fn new(id: NodeId, directory: Option<DirectoryId>) -> ReplicaKey {
        ReplicaKey { id, directory }
    }

    /// Whether a stored key names this replica: same id, and the same directory unless none is stored.
    pub fn is_named_by(&self, stored: &ReplicaKey) -> bool {
        self.id == stored.id && (stored.directory.is_none() || stored.directory == self.directory)
    }
}

impl ListenerName {
    /// The name, normalised to upper case.
    pub fn new(name: &str) -> ListenerName {
        ListenerName(Arc::from(name.to_uppercase()))
    }

    /// The name in upper case.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Endpoint {
    /// An endpoint of both parts.
    pub fn new(host: &str, port: u16) -> Endpoint {
        Endpoint { host: Arc::from(host), port }
    }
}

impl Instant {
    /// The moment so long after the start.
    pub fn from_start(since_start: Duration) -> Instant {
        Instant(u64::try_from(since_start.as_micros()).unwrap_or(u64::MAX))
    }

    /// How long after the start.
    pub fn since_start(self) -> Duration {
        Duration::from_micros(self.0)
    }

    /// How long after `earlier`; zero if it is not after it.
    pub fn since(self, earlier: Instant) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl core::ops::Add<Duration> for Instant {
    type Output = Instant;

    fn add(self, wait: Duration) -> Instant {
        Instant(self.0.saturating_add(u64::try_from(wait.as_micros()).unwrap_or(u64::MAX)))
    }
}

impl Hash for Instant {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

macro_rules! show {
    ($($type:ty: |$this:ident, $f:ident| $body:expr;)*) => {$(
        impl fmt::Display for $type {
            fn fmt(&self, $f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let $this = self;
                $body
            }
        }
        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    )*};
}

show! {
    NodeId: |this, f| write!(f, "{}", this.0);
    Epoch: |this, f| write!(f, "{}", this.0);
    Offset: |this, f| write!(f, "{}", this.0);
    OffsetAndEpoch: |this, f| write!(f, "{}@{}", this.offset, this.epoch);
    ListenerName: |this, f| f.write_str(&this.0);
    Endpoint: |this, f| if this.host.contains(':') {
        write!(f, "[{}]:{}", this.host, this.port)
    } else {
        write!(f, "{}:{}", this.host, this.port)
    };
    Instant: |this, f| write!(f, "{:?}", this.since_start());
    DirectoryId: |this, f| {
        // Kafka's text form: URL-safe base64 without padding, 22 characters.
        const ALPHABET: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let bits = u128::from_be_bytes(this.0);
        let mut text = [0u8; 22];
        for (i, c) in text.iter_mut().enumerate() {
            let index = if i < 21 { (bits >> (122 - 6 * i)) & 63 } else { (bits << 4) & 63 };
            *c = ALPHABET[usize::try_from(index).unwrap_or(0)];
        }
        f.write_str(core::str::from_utf8(&text).unwrap_or("?"))
    };
    ReplicaKey: |this, f| match this.directory {
        Some(directory) => write!(f, "{}/{}", this.id, directory),
        None => write!(f, "{}", this.id),
    };
}
