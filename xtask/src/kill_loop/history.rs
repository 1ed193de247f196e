//! What the nodes said became of each record, and who led; checked line by line.

use std::collections::{BTreeMap, HashMap};

use super::failure::{Checked, found};
use super::lines::{Id, Outcome, Place};

/// One start of a node's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Incarnation {
    pub(crate) node: usize,
    pub(crate) start: u32,
}

/// Everything that was read.
#[derive(Debug, Default)]
pub(super) struct History {
    outcomes: HashMap<Id, Outcome>,
    /// By offset, the acknowledged record there.
    acknowledged: BTreeMap<i64, (Id, i32)>,
    unknown: usize,
    not_appended: usize,
    /// By epoch, who said that it leads it.
    leaders: BTreeMap<i32, Incarnation>,
}

impl History {
    /// Notes what became of a record.
    pub(super) fn outcome(&mut self, id: Id, outcome: Outcome) -> Checked {
        if let Some(before) = self.outcomes.insert(id, outcome) {
            return found("two-outcomes", format!("record {id}: {before:?}, then {outcome:?}"));
        }
        match outcome {
            Outcome::Unknown(_) => self.unknown += 1,
            Outcome::NotAppended => self.not_appended += 1,
            Outcome::Acknowledged(place) => self.acknowledge(id, place)?,
        }
        Ok(())
    }

    fn acknowledge(&mut self, id: Id, Place { offset, epoch }: Place) -> Checked {
        if let Some((other, _)) = self.acknowledged.insert(offset, (id, epoch)) {
            let detail = format!("records {other} and {id} are both acknowledged at {offset}");
            return found("offset-twice", detail);
        }
        let before = self.acknowledged.range(..offset).next_back();
        let after = self.acknowledged.range(offset + 1..).next();
        let falls = before.is_some_and(|(_, (_, other))| *other > epoch)
            || after.is_some_and(|(_, (_, other))| *other < epoch);
        if falls {
            let detail = format!(
                "record {id} is acknowledged at {offset}@{epoch} between {before:?} and {after:?}"
            );
            return found("epoch-order", detail);
        }
        Ok(())
    }

    /// Notes that a node said that it leads an epoch. No epoch is led twice: not by two nodes, nor by a
    /// node before and after a restart.
    pub(super) fn leader(&mut self, epoch: i32, who: Incarnation) -> Checked {
        match self.leaders.insert(epoch, who) {
            Some(before) if before != who => {
                found("two-leaders", format!("epoch {epoch} is led by {before:?} and by {who:?}"))
            }
            _ => Ok(()),
        }
    }

    /// The latest epoch that has a leader, and the leader.
    pub(super) fn latest_leader(&self) -> Option<(i32, Incarnation)> {
        self.leaders.last_key_value().map(|(epoch, who)| (*epoch, *who))
    }

    /// The latest epoch that a node said it leads.
    pub(super) fn latest_led_by(&self, node: usize) -> Option<i32> {
        self.leaders.iter().rev().find(|(_, who)| who.node == node).map(|(epoch, _)| *epoch)
    }

    /// The acknowledged records by offset: id and epoch.
    pub(super) fn acknowledged(&self) -> &BTreeMap<i64, (Id, i32)> {
        &self.acknowledged
    }

    /// What became of a record, if anybody said.
    pub(super) fn outcome_of(&self, id: Id) -> Option<Outcome> {
        self.outcomes.get(&id).copied()
    }

    /// How many records have an unknown outcome.
    pub(super) fn unknown(&self) -> usize {
        self.unknown
    }

    /// How many records were not appended.
    pub(super) fn not_appended(&self) -> usize {
        self.not_appended
    }
}

#[cfg(test)]
mod tests {
    use super::super::failure::check_of;
    use super::*;

    fn ack(offset: i64, epoch: i32) -> Outcome {
        Outcome::Acknowledged(Place { offset, epoch })
    }

    #[test]
    fn a_record_has_one_outcome() {
        let mut history = History::default();
        history.outcome(Id(1), ack(5, 1)).expect("first");
        assert_eq!(check_of(history.outcome(Id(1), Outcome::NotAppended)), "two-outcomes");
    }

    #[test]
    fn an_offset_is_acknowledged_once() {
        let mut history = History::default();
        history.outcome(Id(1), ack(5, 1)).expect("first");
        assert_eq!(check_of(history.outcome(Id(2), ack(5, 2))), "offset-twice");
    }

    #[test]
    fn epochs_do_not_fall_from_offset_to_offset() {
        let mut history = History::default();
        history.outcome(Id(1), ack(5, 2)).expect("first");
        history.outcome(Id(2), ack(9, 3)).expect("later");
        history.outcome(Id(3), ack(7, 2)).expect("between, read late");
        assert_eq!(check_of(history.outcome(Id(4), ack(10, 2))), "epoch-order");
        assert_eq!(check_of(history.outcome(Id(5), ack(6, 3))), "epoch-order");
    }

    #[test]
    fn an_epoch_is_led_once() {
        let mut history = History::default();
        let who = |node, start| Incarnation { node, start };
        history.leader(4, who(0, 1)).expect("first");
        history.leader(4, who(0, 1)).expect("said again");
        assert_eq!(check_of(history.leader(4, who(1, 1))), "two-leaders");
        history.leader(5, who(0, 2)).expect("next");
        assert_eq!(check_of(history.leader(5, who(0, 3))), "two-leaders");
        assert_eq!(history.latest_leader(), Some((5, who(0, 3))));
    }
}
