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
    OneWay "network: cut in one direction";
    Partition "network: cut in both directions";
    SlowLink "network: slow link";
    ResetConnection "network: connection reset";
    RefusedConnection "network: connection refused";
    OldVersion "network: older version used";
    RepeatedFetch "network: old Fetch repeated";
    SlowSync "disk: slow sync";
    StuckSync "disk: stuck sync";
    DiskError "disk: error";
    DiskFull "disk: full";
    BitRot "disk: bit rot";
    Wiped "disk: wiped, new directory id";
    TornWrite "disk: stopped in the middle of a write";
    Kill "process: killed";
    PowerCut "process: power cut";
    Paused "process: paused";
    ShutDown "process: shut down in good order";
    ClockJump "time: monotonic clock jumped";
    WallSet "time: wall clock set";
    ToUnattached "role: unattached";
    ToFollower "role: follower";
    ToProspective "role: prospective";
    ToCandidate "role: candidate";
    ToLeader "role: leader";
    ToResigned "role: resigned";
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
    OutcomeCommitted "client: committed";
    OutcomeNotAppended "client: not appended";
    OutcomeUnknown "client: outcome unknown";
    QueueFull "client: queue full";
    LateAnswer "path: answer to a forgotten request";
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
