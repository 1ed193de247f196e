//! How often everything occurred that a run is there to provoke.

macro_rules! counters {
    ($($name:ident $text:literal;)*) => {
        /// Something worth provoking.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[allow(missing_docs)] // Their names are printed.
        pub enum Count { $($name,)* }

        impl Count {
            /// All of them.
            pub const ALL: &[Count] = &[$(Count::$name,)*];

            /// As it is printed.
            pub fn name(self) -> &'static str {
                match self { $(Count::$name => $text,)* }
            }
        }
    };
}

counters! {
    Lost "network: message lost";
    Doubled "network: request doubled";
    Late "network: message very late";
    Reordered "network: message overtaken";
    OneWay "network: cut in one direction";
    Partition "network: cut in both directions";
    Partial "network: one link cut, the others whole";
    SlowLink "network: slow link";
    ResetConnection "network: connection reset";
    RefusedConnection "network: connection refused, nothing listens";
    RefusedAlive "network: connection refused by one that runs";
    OldVersion "network: older version used";
    RepeatedFetch "network: old Fetch repeated";
    SlowSync "disk: slow sync";
    StuckSync "disk: stuck sync";
    WriteError "disk: error from write";
    SyncError "disk: error from fsync";
    RenameError "disk: error from rename";
    SyncDirError "disk: error from a directory's fsync";
    DiskFull "disk: write to a full disk";
    BitRot "disk: bit rot below a process that runs not";
    LiveRot "disk: bit rot below one that runs";
    RotRead "disk: damage met by a read";
    Wiped "disk: wiped, new directory id";
    TornWrite "disk: stopped in the middle of a write";
    TornBatch "disk: a batch survives in part";
    OutOfOrder "disk: unsynced writes survive out of order";
    Kill "process: killed";
    PowerCut "process: power cut";
    Blackout "process: power cut of all at once";
    Restart "process: started again";
    Paused "process: paused";
    ShutDown "process: shut down in good order";
    Drift "time: clocks drift";
    ClockJump "time: monotonic clock jumped";
    WallSet "time: wall clock set";
    UnattachedToUnattached "role: unattached -> unattached";
    FollowerToUnattached "role: follower -> unattached";
    ProspectiveToUnattached "role: prospective -> unattached";
    CandidateToUnattached "role: candidate -> unattached";
    LeaderToUnattached "role: leader -> unattached";
    ResignedToUnattached "role: resigned -> unattached";
    UnattachedToFollower "role: unattached -> follower";
    FollowerToFollower "role: follower -> follower";
    ProspectiveToFollower "role: prospective -> follower";
    CandidateToFollower "role: candidate -> follower";
    LeaderToFollower "role: leader -> follower";
    ResignedToFollower "role: resigned -> follower";
    UnattachedToProspective "role: unattached -> prospective";
    FollowerToProspective "role: follower -> prospective";
    CandidateToProspective "role: candidate -> prospective";
    ProspectiveToCandidate "role: prospective -> candidate";
    CandidateToLeader "role: candidate -> leader";
    LeaderToResigned "role: leader -> resigned";
    Truncation "path: truncation";
    CheckQuorum "path: check-quorum resignation";
    NoPreVote "path: fallback from pre-vote";
    PreVoteLost "path: pre-vote lost";
    VoteLost "path: vote lost, waited out";
    OwnEpochHolds "path: own-epoch rule holds a commit back";
    TailCut "path: recovery cuts a tail";
    TailSurvived "path: unsynced writes survive";
    StuckResignation "path: resignation for a stuck disk";
    DiskResignation "path: resignation for a failed disk";
    StateMachineResigns "path: state machine resigns";
    HandOver "path: hand-over in a shutdown";
    BarrierWait "path: a write waits for a barrier";
    GroupCommit "path: appends share a sync";
    Roll "path: segment rolled";
    ColdRead "path: answer read from disk";
    MovedOn "path: answer outdated by a truncation";
    RestartAsLeader "path: restart of a leader";
    RestartAsVoter "path: restart of one that voted";
    Concurrent "client: proposals at the same time";
    OutcomeCommitted "client: committed";
    OutcomeNotAppended "client: not appended";
    OutcomeUnknown "client: outcome unknown";
    QueueFull "client: queue full";
    LateAnswer "path: answer to a forgotten request";
}

impl Count {
    /// A move between roles, if it is one of the table in the core's `role.rs`.
    pub fn of_move(from: &str, to: &str) -> Option<Count> {
        let name = format!("role: {from} -> {to}");
        Count::ALL.iter().copied().find(|count| count.name() == name)
    }
}

/// How often each occurred in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters(Vec<u64>);

impl Default for Counters {
    fn default() -> Counters {
        Counters(vec![0; Count::ALL.len()])
    }
}

impl Counters {
    /// Once more.
    pub fn hit(&mut self, count: Count) {
        if let Some(n) = self.0.get_mut(count as usize) {
            *n += 1;
        }
    }

    /// How often.
    pub fn get(&self, count: Count) -> u64 {
        self.0.get(count as usize).copied().unwrap_or(0)
    }
}
