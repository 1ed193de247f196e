//! A machine's clocks: they drift, they jump, and its monotonic one never goes back.

use quorate_core::Instant;
use std::time::Duration;

/// Virtual time, and spans of it, in microseconds.
pub type Micros = u64;

/// A millisecond.
pub const MS: Micros = 1000;

/// A second.
pub const SECOND: Micros = 1_000_000;

/// The monotonic clock and the wall clock of one machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// Microseconds that pass here while a million pass in truth.
    rate: u64,
    /// The true time and the local one at the last change.
    since: (Micros, Micros),
    /// What the wall clock is off by, in milliseconds.
    wall_offset_ms: i64,
}

/// Virtual time starts here, in milliseconds since 1970.
const EPOCH_MS: i64 = 1_700_000_000_000;

impl Clock {
    pub(crate) fn new(rate: u64) -> Clock {
        Clock { rate: rate.max(1), since: (0, 0), wall_offset_ms: 0 }
    }

    /// The local monotonic time.
    pub(crate) fn local(&self, now: Micros) -> Micros {
        let (at, local) = self.since;
        local + now.saturating_sub(at) * self.rate / 1_000_000
    }

    /// The first true time at which the local clock shows at least `local`.
    pub(crate) fn when(&self, local: Micros) -> Micros {
        let (at, since) = self.since;
        at + (local.saturating_sub(since) * 1_000_000).div_ceil(self.rate)
    }

    /// The monotonic clock jumps forward, as after a suspension.
    pub(crate) fn jump(&mut self, now: Micros, by: Micros) {
        self.since = (now, self.local(now) + by);
    }

    /// The wall clock is set.
    pub(crate) fn set_wall(&mut self, by_ms: i64) {
        self.wall_offset_ms = self.wall_offset_ms.saturating_add(by_ms);
    }

    /// Milliseconds since 1970, as this machine believes.
    pub(crate) fn wall_ms(&self, now: Micros) -> i64 {
        let ms = i64::try_from(self.local(now) / MS).unwrap_or(i64::MAX);
        EPOCH_MS.saturating_add(ms).saturating_add(self.wall_offset_ms).max(0)
    }
}

/// As the core takes it: `local` counted from `boot`.
pub(crate) fn instant(local: Micros, boot: Micros) -> Instant {
    Instant::from_start(Duration::from_micros(local.saturating_sub(boot)))
}
