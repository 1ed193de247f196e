//! Nothing is cut that this replica knows to be committed, nor anything that a leader has committed whose epoch
//! it has heard of: only who still follows an older leader may cut what it has not acknowledged to the newer one.

use quorate_storage::StoreWrite;

use super::{Checker, ensure};
use crate::facts::{Facts, Seen};

pub(crate) struct Truncation;

impl Checker for Truncation {
    fn name(&self) -> &'static str {
        "truncation"
    }

    fn check(&mut self, facts: &Facts, seen: &Seen<'_>) -> Result<(), String> {
        let Seen::Submitted { node, write: StoreWrite::Truncate { to }, .. } = seen else {
            return Ok(());
        };
        let before = &facts.nodes[*node];
        ensure(*to >= before.high_watermark, || {
            format!("n{} cuts to {to}, below {}", before.id, before.high_watermark)
        })?;
        let first = before.view.count_below(*to);
        let cuts_committed = match (facts.committed.get(first), before.view.log.get(first)) {
            (Some((committed, epoch)), Some(mine)) => {
                committed.chain == mine.chain && *epoch <= before.view.election_epoch()
            }
            _ => false,
        };
        ensure(!cuts_committed, || format!("n{} cuts to {to} what is committed", before.id))
    }
}
