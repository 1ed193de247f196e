//! Named runs: how each is drawn from a seed, and what is expected of it beyond what the checkers check.

mod default;

use crate::history::History;
use crate::plan::Plan;
use crate::random::Random;

/// A named kind of run.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// As the command line names it.
    pub name: &'static str,
    /// The row of the table of known faults that it re-tells, if it does.
    pub row: Option<&'static str>,
    /// What happens, in a sentence.
    pub about: &'static str,
    /// Draws a run.
    pub plan: fn(&mut Random) -> Plan,
    /// In words, what is not as it should be at the end.
    pub expect: fn(&Plan, &History) -> Result<(), String>,
}

impl Scenario {
    /// The run of a seed.
    pub fn draw(&self, seed: u64) -> Plan {
        (self.plan)(&mut Random::new(seed ^ 0x5175_6f72_6174_6500)).ordered()
    }
}

/// All scenarios; the first is the one that runs unless another is named.
pub const ALL: &[Scenario] = &[default::SCENARIO];

/// The scenario of this name.
pub fn find(name: &str) -> Option<&'static Scenario> {
    ALL.iter().find(|scenario| scenario.name == name)
}

fn nothing_more(_: &Plan, _: &History) -> Result<(), String> {
    Ok(())
}
