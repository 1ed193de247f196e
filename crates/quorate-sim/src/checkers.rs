//! What must be true after every event, one promise a file (protocol reference 8.1).

mod busy_loop;
mod committed;
mod durability;
mod election_safety;
mod epoch_index;
mod epoch_monotonic;
mod flush_before_promise;
mod high_watermark;
mod leader_completeness;
mod leader_once;
mod linearizability;
mod log_matching;
mod majority;
mod one_fetch;
mod one_vote;
mod outcomes;
mod own_epoch;
mod persist_before_act;
mod recovery;
mod roles;
mod state_machine;
mod transitions;
mod truncation;
mod voter_set;

use crate::facts::{Facts, Seen};
pub(crate) use outcomes::PRELOADED;

/// One promise.
pub(crate) trait Checker {
    /// As failures name it.
    fn name(&self) -> &'static str;

    /// Looks at what happened; the facts are those of just before. In words, what is wrong.
    fn check(&mut self, facts: &Facts, seen: &Seen<'_>) -> Result<(), String>;
}

/// All of them.
pub(crate) fn all() -> Vec<Box<dyn Checker>> {
    vec![
        Box::new(recovery::Recovery),
        Box::new(election_safety::ElectionSafety::default()),
        Box::new(epoch_monotonic::EpochMonotonic),
        Box::new(one_vote::OneVote::default()),
        Box::new(leader_once::LeaderOnce),
        Box::new(log_matching::LogMatching::default()),
        Box::new(truncation::Truncation),
        Box::new(flush_before_promise::FlushBeforePromise),
        Box::new(persist_before_act::PersistBeforeAct),
        Box::new(own_epoch::OwnEpoch),
        Box::new(majority::Majority),
        Box::new(committed::Committed),
        Box::new(leader_completeness::LeaderCompleteness),
        Box::new(high_watermark::HighWatermark::default()),
        Box::new(durability::Durability::default()),
        Box::new(roles::Roles),
        Box::new(transitions::Transitions),
        Box::new(voter_set::EffectiveVoters),
        Box::new(one_fetch::OneFetch::default()),
        Box::new(epoch_index::EpochIndex),
        Box::new(busy_loop::BusyLoop::default()),
        Box::new(outcomes::Outcomes::default()),
        Box::new(linearizability::Linearizability::default()),
        Box::new(state_machine::InOrderOnce::default()),
    ]
}

/// The names of all promises, in the order in which they are looked at, and of the quiet phase at the end.
pub fn names() -> Vec<&'static str> {
    all().iter().map(|checker| checker.name()).chain(["liveness"]).collect()
}

/// What else a failure may be named after: what shipping code says when it should not, and what a scenario expects.
pub const OTHER_VOICES: &[&str] = &["assertion", "codec", "cold-read", "nothing-odd", "scenario"];

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}
