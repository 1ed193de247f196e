//! Each proposal has one outcome, and the outcome is true.

use quorate_core::io::ProposalId;
use quorate_core::{Epoch, NodeId, Offset};
use quorate_driver::{NotAppended, Outcome, Proposals};

const EPOCH: Epoch = Epoch(3);

const NOT_LEADER: NotAppended = NotAppended::NotLeader { epoch: Epoch(4), leader: Some(NodeId(2)) };

/// Proposals that are appended, one after another, with these ends; the first begins at 10.
fn appended(ends: &[i64]) -> (Proposals<char>, Vec<ProposalId>) {
    let mut proposals = Proposals::default();
    let mut base = 10;
    let mut ids = Vec::new();
    for (who, end) in ('a'..).zip(ends) {
        let id = proposals.add(who);
        proposals.on_appended(id, Offset(base), Offset(*end), EPOCH);
        ids.push(id);
        base = *end;
    }
    (proposals, ids)
}

fn committed(offset: i64) -> Outcome {
    Outcome::Committed { offset: Offset(offset), epoch: EPOCH }
}

fn unknown(offset: i64) -> Outcome {
    Outcome::OutcomeUnknown { offset: Offset(offset), epoch: EPOCH }
}

#[test]
fn committed_means_that_the_high_watermark_has_passed_the_last_record() {
    let (mut proposals, _) = appended(&[13, 14, 17]);
    for before in [0, 10, 11, 12] {
        assert_eq!(proposals.on_committed(Offset(before)), [], "10..13 at {before}");
    }
    assert_eq!(proposals.on_committed(Offset(13)), [('a', committed(10))]);
    assert_eq!(proposals.on_committed(Offset(13)), [], "once");
    assert_eq!(proposals.on_committed(Offset(16)), [('b', committed(13))]);
    assert_eq!(proposals.on_committed(Offset(17)), [('c', committed(14))]);
    assert_eq!(proposals.on_stopped(), []);
}

#[test]
fn what_one_high_watermark_passes_is_told_in_order() {
    let (mut proposals, _) = appended(&[13, 14, 17]);
    assert_eq!(
        proposals.on_committed(Offset(100)),
        [('a', committed(10)), ('b', committed(13)), ('c', committed(14))]
    );
}

#[test]
fn lost_leadership_leaves_what_was_appended_unknown_at_its_own_place() {
    let (mut proposals, _) = appended(&[13, 14, 17]);
    assert_eq!(proposals.on_committed(Offset(14)).len(), 2);
    let open = proposals.add('d');
    assert_eq!(proposals.on_leadership_lost(), [('c', unknown(14))]);
    assert_eq!(proposals.on_committed(Offset(100)), [], "it has its outcome");
    assert_eq!(proposals.on_leadership_lost(), [], "once");
    // What was not appended is the core's to refuse.
    assert_eq!(
        proposals.on_not_appended(open, NOT_LEADER),
        Some(('d', Outcome::NotAppended(NOT_LEADER)))
    );
}

#[test]
fn not_appended_is_never_said_of_what_was_appended() {
    let (mut proposals, ids) = appended(&[13]);
    assert_eq!(proposals.on_not_appended(ids[0], NotAppended::QueueFull), None);
    assert_eq!(proposals.on_committed(Offset(13)), [('a', committed(10))], "it is still there");
    assert_eq!(proposals.on_not_appended(ids[0], NotAppended::QueueFull), None, "nor afterwards");

    // Nor the other way round.
    let refused = proposals.add('b');
    assert!(proposals.on_not_appended(refused, NotAppended::QueueFull).is_some());
    proposals.on_appended(refused, Offset(13), Offset(14), EPOCH);
    assert_eq!(proposals.on_committed(Offset(14)), []);
    assert_eq!(proposals.on_stopped(), []);
}

#[test]
fn a_stop_ends_all_of_them_each_with_what_is_known() {
    let (mut proposals, _) = appended(&[13, 14]);
    let in_the_open_batch = proposals.add('c');
    let outcomes = proposals.on_stopped();
    assert_eq!(
        outcomes,
        [('a', unknown(10)), ('b', unknown(13)), ('c', Outcome::NotAppended(NotAppended::Stopped))]
    );
    proposals.on_appended(in_the_open_batch, Offset(14), Offset(15), EPOCH);
    assert_eq!(proposals.on_committed(Offset(100)), []);
    assert_eq!(proposals.on_stopped(), [], "once");
}
