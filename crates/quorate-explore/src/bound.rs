//! The bounds of an exploration: how large the quorum is, and how much goes wrong in it.

/// How far an exploration goes. Within it every order of events is tried.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// Its name on the command line.
    pub name: &'static str,
    /// How many nodes vote, with the ids 0, 1, ….
    pub voters: usize,
    /// How many more nodes only fetch.
    pub observers: usize,
    /// Voters from the configuration (kraft.version 0), or else from the 0-0 checkpoint (kraft.version 1).
    pub static_voters: bool,
    /// The last epoch that any replica may enter.
    pub epochs: i32,
    /// How often in all a role's timeout passes: election, fetch or check-quorum.
    pub timeouts: u8,
    /// Whose timeouts pass: those of the first so many nodes. The others vote and follow.
    pub campaigners: usize,
    /// How many records are proposed in all.
    pub proposals: u8,
    /// How many crashes there are in all, each losing any part of the unsynced writes.
    pub crashes: u8,
    /// How often in all a request or its answer is lost so that the asker hears of it and may ask again. Messages
    /// that are lost in silence, late or out of order are not counted: there is no bound to them.
    pub losses: u8,
    /// How many requests of earlier roles are in flight from one node to another; of more than that all but the
    /// latest are lost.
    pub late: usize,
    /// How many messages are held back and disks slow down in all: what is not put off happens at once, in a fixed
    /// order; what is happens at any later moment or never. Without a number everything may wait.
    pub delays: Option<u8>,
    /// Whether nodes without a leader look for one at their neighbour; observers do in any case.
    pub searching: bool,
}

/// Three voters, three elections, two records, and a crash in between.
const CI: Bound = Bound {
    name: "ci",
    voters: 3,
    observers: 0,
    static_voters: false,
    epochs: 3,
    timeouts: 3,
    campaigners: 2,
    proposals: 2,
    crashes: 1,
    losses: 0,
    late: 1,
    delays: Some(1),
    searching: false,
};

/// The bounds by name.
pub const BOUNDS: &[Bound] = &[
    CI,
    // Fewer elections, and more out of order.
    Bound { name: "large", epochs: 2, timeouts: 2, delays: Some(2), ..CI },
    // Static voters, and no order at all but that of each disk.
    Bound {
        name: "two-voters",
        voters: 2,
        static_voters: true,
        epochs: 2,
        timeouts: 2,
        proposals: 1,
        losses: 1,
        delays: None,
        ..CI
    },
    // The observer looks for the leader by itself.
    Bound { name: "observer", voters: 2, observers: 1, epochs: 2, timeouts: 2, losses: 1, ..CI },
];

impl Bound {
    /// The bound of this name.
    pub fn named(name: &str) -> Option<&'static Bound> {
        BOUNDS.iter().find(|bound| bound.name == name)
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.voters + self.observers
    }
}
