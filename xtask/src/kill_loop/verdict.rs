//! What must be in the logs.

use std::collections::HashMap;

use super::failure::{Checked, found};
use super::history::History;
use super::lines::Outcome;
use super::log_copy::{Entry, LogCopy};

/// While all nodes are down: whatever was acknowledged, all of it below this offset, is on the disks of a
/// majority.
pub(super) fn majority_has_acknowledged(
    history: &History,
    logs: &[LogCopy],
    below: i64,
) -> Checked {
    for (&offset, &(id, epoch)) in history.acknowledged().range(..below) {
        let wanted = Entry { offset, epoch, id };
        let copies = logs.iter().filter(|log| log.at(offset) == Some(&wanted)).count();
        if copies * 2 <= logs.len() {
            let ends: Vec<i64> = logs.iter().map(LogCopy::end).collect();
            let detail = format!(
                "{wanted:?} is acknowledged, but on {copies} of {} disks; the logs end at {ends:?}",
                logs.len()
            );
            return found("acknowledged-on-majority", detail);
        }
    }
    Ok(())
}

/// At the end, after a clean stop: all logs agree below the high watermark, and every promise was kept.
pub(super) fn final_state(history: &History, logs: &[LogCopy], high_watermark: i64) -> Checked {
    for (index, log) in logs.iter().enumerate() {
        let node = index + 1;
        if let Some(cut) = &log.cut {
            return found("clean-stop", format!("node {node}: {cut}"));
        }
        if log.end() < high_watermark {
            let detail = format!(
                "node {node} ends at {}, below the high watermark {high_watermark}",
                log.end()
            );
            return found("identical", detail);
        }
        if let Some(first) = logs.first() {
            let (ours, theirs) = (log.below(high_watermark), first.below(high_watermark));
            if ours != theirs {
                let at = ours.iter().zip(&theirs).take_while(|(a, b)| a == b).count();
                return found("identical", format!("nodes 1 and {node} differ at byte {at}"));
            }
        }
        no_record_twice(node, log)?;
    }
    let Some(log) = logs.first() else { return Ok(()) };
    acknowledged_are_there(history, log, high_watermark)?;
    for log in logs {
        others_are_in_their_place(history, log)?;
    }
    Ok(())
}

fn no_record_twice(node: usize, log: &LogCopy) -> Checked {
    let mut seen = HashMap::with_capacity(log.records.len());
    for entry in &log.records {
        if let Some(before) = seen.insert(entry.id, entry.offset) {
            let detail =
                format!("node {node} has record {} at {before} and at {}", entry.id, entry.offset);
            return found("record-twice", detail);
        }
    }
    Ok(())
}

fn acknowledged_are_there(history: &History, log: &LogCopy, high_watermark: i64) -> Checked {
    for (&offset, &(id, epoch)) in history.acknowledged() {
        let wanted = Entry { offset, epoch, id };
        if offset >= high_watermark {
            let detail = format!("{wanted:?} is acknowledged, but not below {high_watermark}");
            return found("acknowledged-lost", detail);
        }
        match log.at(offset) {
            Some(entry) if *entry == wanted => {}
            Some(entry) => {
                let detail = format!("{wanted:?} is acknowledged, but there is {entry:?}");
                return found("acknowledged-lost", detail);
            }
            None => {
                let detail = format!("{wanted:?} is acknowledged, but no record of ours is there");
                return found("acknowledged-lost", detail);
            }
        }
    }
    Ok(())
}

fn others_are_in_their_place(history: &History, log: &LogCopy) -> Checked {
    for entry in &log.records {
        match history.outcome_of(entry.id) {
            Some(Outcome::NotAppended) => {
                return found("not-appended", format!("{entry:?} was said not to be appended"));
            }
            Some(Outcome::Unknown(place))
                if (place.offset, place.epoch) != (entry.offset, entry.epoch) =>
            {
                let detail = format!("{entry:?} was said to be at {place:?}, if anywhere");
                return found("unknown-moved", detail);
            }
            // Acknowledged ones were looked at; of the rest the process died before it could say.
            Some(Outcome::Unknown(_) | Outcome::Acknowledged(_)) | None => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::failure::check_of;
    use super::super::lines::{Id, Place};
    use super::super::log_copy::sample::{batch, log};
    use super::*;

    /// Records 1 and 2 are acknowledged, 3 is unknown, 4 was not appended.
    fn history() -> History {
        let mut history = History::default();
        let place = |offset| Place { offset, epoch: 1 };
        for (id, outcome) in [
            (1, Outcome::Acknowledged(place(0))),
            (2, Outcome::Acknowledged(place(1))),
            (3, Outcome::Unknown(place(2))),
            (4, Outcome::NotAppended),
        ] {
            history.outcome(Id(id), outcome).expect("consistent");
        }
        history
    }

    fn three(batches: &[bytes::Bytes]) -> [LogCopy; 3] {
        [log(batches), log(batches), log(batches)]
    }

    fn judge(batches: &[bytes::Bytes], high_watermark: i64) -> Checked {
        final_state(&history(), &three(batches), high_watermark)
    }

    #[test]
    fn kept_promises_pass() {
        judge(&[batch(0, 1, &[1, 2, 3]), batch(3, 2, &[5])], 4).expect("with the unknown record");
        judge(&[batch(0, 1, &[1, 2]), batch(2, 2, &[5])], 3).expect("without it");
        // Above the high watermark logs may differ.
        let mut logs = three(&[batch(0, 1, &[1, 2])]);
        logs[2] = log(&[batch(0, 1, &[1, 2]), batch(2, 1, &[3])]);
        final_state(&history(), &logs, 2).expect("a longer log");
    }

    #[test]
    fn each_broken_promise_is_found() {
        for (batches, high_watermark, check) in [
            (vec![batch(0, 1, &[1])], 1, "acknowledged-lost"),
            (vec![batch(0, 1, &[1, 2])], 1, "acknowledged-lost"),
            (vec![batch(0, 1, &[1, 5])], 2, "acknowledged-lost"),
            (vec![batch(0, 1, &[1]), batch(1, 2, &[2])], 2, "acknowledged-lost"),
            (vec![batch(0, 1, &[1, 2]), batch(2, 1, &[2])], 3, "record-twice"),
            (vec![batch(0, 1, &[1, 2]), batch(2, 1, &[3]), batch(3, 1, &[3])], 4, "record-twice"),
            (vec![batch(0, 1, &[1, 2]), batch(2, 1, &[5, 3])], 4, "unknown-moved"),
            (vec![batch(0, 1, &[1, 2]), batch(2, 2, &[3])], 3, "unknown-moved"),
            (vec![batch(0, 1, &[1, 2]), batch(2, 2, &[4])], 3, "not-appended"),
            (vec![batch(0, 1, &[1, 2]), batch(2, 2, &[4])], 2, "not-appended"),
            (vec![batch(0, 1, &[1, 2]), batch(4, 2, &[5])], 2, "clean-stop"),
            (vec![batch(0, 1, &[1, 2])], 3, "identical"),
        ] {
            assert_eq!(check_of(judge(&batches, high_watermark)), check, "{batches:?}");
        }
    }

    #[test]
    fn logs_that_differ_below_the_high_watermark_are_found() {
        let mut logs = three(&[batch(0, 1, &[1, 2]), batch(2, 2, &[5])]);
        logs[1] = log(&[batch(0, 1, &[1, 2]), batch(2, 2, &[6])]);
        final_state(&history(), &logs, 2).expect("they differ above");
        assert_eq!(check_of(final_state(&history(), &logs, 3)), "identical");
    }

    #[test]
    fn a_majority_must_have_what_is_acknowledged() {
        let (whole, short) = ([batch(0, 1, &[1, 2])], [batch(0, 1, &[1])]);
        let logs = [log(&whole), log(&short), log(&whole)];
        majority_has_acknowledged(&history(), &logs, 2).expect("two of three");
        let logs = [log(&whole), log(&short), log(&short)];
        assert_eq!(
            check_of(majority_has_acknowledged(&history(), &logs, 2)),
            "acknowledged-on-majority"
        );
    }
}
