//! A path as a story that a person can read.

use quorate_core::io::ElectionState;
use quorate_core::message::{FetchOutcome, FetcherHighWatermark, Received, Request, Response};

use crate::batches::Batches;
use crate::node::{Answer, Deed, Node};
use crate::state::{Action, Item, State};
use crate::world::World;

/// One line an event, with what it makes of the node that it concerns.
pub(crate) fn tell(world: &mut World, root: &State, path: &[Action]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut state = root.clone();
    for (i, action) in path.iter().enumerate() {
        let what = describe(world, &state, *action);
        if let Action::HoldBack(_) | Action::SlowDown(_) = action {
            lines.push(format!("{:>3}  {what}", i + 1));
            if let Ok(Some(next)) = world.act(&state, *action) {
                state = next;
            }
            continue;
        }
        let (place, deeds, node) = world.retell(&state, *action);
        lines.push(format!("{:>3}  node {place}: {what}", i + 1));
        if let Some(node) = node {
            let before = show_node(world.node(&state, place), &world.batches);
            let after = show_node(&node, &world.batches);
            if before != after {
                lines.push(format!("       is {after}"));
            }
        }
        for deed in deeds {
            match deed {
                Deed::Forget { .. } => {}
                Deed::Ask { to, request, .. } => {
                    lines.push(format!("       -> {to}  {}", show_request(&request)));
                }
                Deed::Reply { to, answer, .. } => {
                    lines.push(format!("       -> {to}  {}", show_answer(&answer)));
                }
            }
        }
        match world.act(&state, *action) {
            Ok(Some(next)) => state = next,
            Ok(None) | Err(_) => break,
        }
    }
    lines
}

fn describe(world: &World, state: &State, action: Action) -> String {
    match action {
        Action::Deliver(number) => match world.items.get(number) {
            Item::Request { from, .. } | Item::Answer { from, .. } => {
                format!("<- {from}  {}", show_item(world, number))
            }
            Item::Waiting { .. } => String::new(),
        },
        Action::HoldBack(number) => match world.items.get(number) {
            Item::Request { from, to, .. } | Item::Answer { from, to, .. } => {
                format!("held back, {from} -> {to}: {}", show_item(world, number))
            }
            Item::Waiting { .. } => String::new(),
        },
        Action::SlowDown(place) => format!("the disk of node {place} is slow"),
        Action::Lose { slot, .. } => format!("its call to {slot} is lost, and it hears of it"),
        Action::Durable(place) => {
            let write = world.node(state, place).oldest_pending(&world.batches);
            format!("durable: {write}")
        }
        Action::Tick(_) => "time passes".into(),
        Action::Timeout(_) => "its role's timeout passes".into(),
        Action::Propose(_) => format!("is given record p{}", state.spent.proposals + 1),
        Action::Crash { way: 0, .. } => "crashes, loses all unsynced writes, and restarts".into(),
        Action::Crash { .. } => "crashes, keeps some unsynced writes, and restarts".into(),
    }
}

fn show_item(world: &World, number: u32) -> String {
    match *world.items.get(number) {
        Item::Request { request, is_late, .. } => {
            let late = if is_late { "late " } else { "" };
            format!("{late}{}", show_request(world.requests.get(request)))
        }
        Item::Answer { answer, .. } => show_answer(world.answers.get(answer)),
        Item::Waiting { .. } => String::new(),
    }
}

fn show_node(node: &Node, batches: &Batches) -> String {
    let log: Vec<String> = node.log.iter().map(|id| batches.show(*id)).collect();
    let known = node.high_watermark.map_or(String::new(), |at| format!(" hw={at}"));
    let leader = match node.leader {
        Some(leader) if node.role != "leader" => format!(" of {leader}"),
        _ => String::new(),
    };
    format!("{}{leader} epoch={}{known} log=[{}]", node.role, node.epoch, log.join(", "))
}

pub(crate) fn show_election(state: &ElectionState) -> String {
    let leader = state.leader.map_or(String::new(), |leader| format!(" leader={leader}"));
    let voted = state.voted.map_or(String::new(), |voted| format!(" voted={}", voted.id));
    format!("election state epoch={}{leader}{voted}", state.epoch)
}

fn show_request(request: &Request) -> String {
    match request {
        Request::Vote(vote) => {
            let kind = if vote.pre_vote { "pre-vote" } else { "vote" };
            format!("{kind} epoch={} log={}", vote.epoch, vote.log_end)
        }
        Request::BeginQuorumEpoch(begin) => format!("begin-quorum-epoch epoch={}", begin.epoch),
        Request::EndQuorumEpoch(end) => format!("end-quorum-epoch epoch={}", end.epoch),
        Request::Fetch(fetch) => {
            let known = match fetch.high_watermark {
                FetcherHighWatermark::Known(at) => format!(" hw={at}"),
                FetcherHighWatermark::Unknown | FetcherHighWatermark::Unsaid => String::new(),
            };
            let (offset, last) = (fetch.offset, fetch.last_fetched_epoch);
            format!("fetch epoch={} at {offset}@{last}{known}", fetch.epoch)
        }
        other => format!("{other:?}"),
    }
}

fn show_answer(answer: &Answer) -> String {
    let leader = |current: &quorate_core::message::CurrentLeader| {
        let leader = current.leader.map_or(String::new(), |leader| format!(" leader={leader}"));
        format!("epoch={}{leader}", current.epoch)
    };
    match answer {
        Ok(Response::Vote(vote)) => {
            let granted = if vote.granted { "granted" } else { "refused" };
            format!("{granted} {}", leader(&vote.current))
        }
        Ok(Response::BeginQuorumEpoch(answer)) => {
            format!("begin-quorum-epoch answer {}", leader(&answer.current))
        }
        Ok(Response::EndQuorumEpoch(answer)) => {
            format!("end-quorum-epoch answer {}", leader(&answer.current))
        }
        Ok(Response::Fetch(fetch)) => {
            let known = fetch.high_watermark.map_or(String::new(), |at| format!(" hw={at}"));
            let error = match fetch.error.0 {
                0 => String::new(),
                code => format!(" error={code}"),
            };
            let outcome = match &fetch.outcome {
                FetchOutcome::Records(Received { batches, .. }) => match &batches[..] {
                    [] => "nothing".to_owned(),
                    [first, .., last] => format!("{}..{}@{}", first.base, last.end, last.epoch),
                    [one] => format!("{}..{}@{}", one.base, one.end, one.epoch),
                },
                FetchOutcome::Diverging(at) => format!("diverging at {at}"),
                FetchOutcome::Snapshot(at) => format!("snapshot {at}"),
            };
            format!("fetch answer {}{known}{error} {outcome}", leader(&fetch.current))
        }
        other => format!("{other:?}"),
    }
}
