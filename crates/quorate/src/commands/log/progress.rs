//! How far a long file has been read, for whoever waits at a terminal.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Shows progress on stderr, if that is a terminal, once reading takes longer than a moment.
pub(crate) struct Meter {
    shows: bool,
    file: PathBuf,
    size: u64,
    due: Instant,
}

const EVERY: Duration = Duration::from_secs(1);

impl Meter {
    /// `shows` is false where the output itself tells how far it is.
    pub(crate) fn new(shows: bool) -> Meter {
        let shows = shows && std::io::stderr().is_terminal();
        Meter { shows, file: PathBuf::new(), size: 0, due: Instant::now() + EVERY }
    }

    /// So many bytes of this file have been read.
    pub(crate) fn at(&mut self, file: &Path, bytes: u64) {
        if !self.shows || Instant::now() < self.due {
            return;
        }
        self.due = Instant::now() + EVERY;
        if self.file != file {
            self.file = file.to_owned();
            self.size = std::fs::metadata(file).map_or(0, |metadata| metadata.len());
        }
        let percent = bytes.saturating_mul(100) / self.size.max(1);
        let (file, megabytes) = (file.display(), bytes >> 20);
        // Nobody is hurt if it does not show.
        let _ = writeln!(std::io::stderr(), "{file}: {megabytes} MiB, {percent} %");
    }
}
