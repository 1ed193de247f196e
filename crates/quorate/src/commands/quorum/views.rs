//! With no leader: each node's own view, so that one page says why there is none.

use std::collections::BTreeSet;
use std::io::Write;

use quorate_core::Endpoint;
use quorate_wire::message::{DescribeReplicaResponse, DescribedAnswer, DescribedRound};

use super::survey::Survey;
use crate::failure::Failure;
use crate::say;

pub(super) fn print(survey: &Survey, out: &mut dyn Write) -> Result<(), Failure> {
    say(out, &summary(survey))?;
    for (endpoint, view) in survey.views() {
        say(out, "")?;
        node(endpoint, view, out)?;
    }
    for other in survey.nodes.iter().filter(|node| node.view.is_none()) {
        say(out, &format!("\n{} does not lead, and has no API for its own view", other.endpoint))?;
    }
    for silent in &survey.silent {
        let (endpoint, reason) = (&silent.endpoint, &silent.reason);
        match silent.node {
            Some(id) => say(out, &format!("\nnode {id} ({endpoint}): {reason}"))?,
            None => say(out, &format!("\n{endpoint}: {reason}"))?,
        }
    }
    Ok(())
}

/// Whether enough voters can be reached at all.
fn summary(survey: &Survey) -> String {
    // The newest voter set that somebody has read counts.
    let newest = survey
        .views()
        .map(|(_, view)| view)
        .max_by_key(|view| (view.voters_offset, view.log_end_epoch, view.log_end_offset));
    let Some(newest) = newest else { return "There is no leader.".to_owned() };
    let voters: BTreeSet<i32> = newest.voters.iter().map(|voter| voter.voter_id).collect();
    if voters.is_empty() {
        return "There is no leader, and no node knows of any voter: format one with --standalone or --initial-controllers."
            .to_owned();
    }
    let reached = survey.views().filter(|(_, view)| voters.contains(&view.node_id)).count();
    let (all, majority) = (voters.len(), voters.len() / 2 + 1);
    if reached < majority {
        return format!(
            "There is no leader: {reached} of {all} voters can be reached, and {majority} are needed."
        );
    }
    if survey.views().any(|(_, view)| view.integrity_fault.is_some()) {
        return "There is no leader, and a node has stopped taking part: see its integrity fault."
            .to_owned();
    }
    format!(
        "There is no leader, though {reached} of {all} voters can be reached from here: \
         see what they say of each other."
    )
}

fn node(
    endpoint: &Endpoint,
    view: &DescribeReplicaResponse,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let observer = if view.is_voter { "" } else { ", no voter" };
    say(
        out,
        &format!(
            "node {} ({endpoint}): {}, epoch {}{observer}",
            view.node_id, view.role, view.epoch
        ),
    )?;
    let mut line = |label: &str, value: String| say(out, &format!("  {label:<15} {value}"));
    line(
        "leader",
        match (view.leader_id, view.leaderless_ms) {
            (id, _) if id >= 0 => format!("node {id}"),
            (_, ms) if ms >= 0 => format!("none for {}", age(ms)),
            _ => "none".to_owned(),
        },
    )?;
    let end = format!("{}@{}", view.log_end_offset, view.log_end_epoch);
    line(
        "log end",
        match view.durable_end_offset {
            durable if durable == view.log_end_offset => end,
            durable => format!("{end}, on disk below {durable}"),
        },
    )?;
    line(
        "high watermark",
        match view.high_watermark {
            -1 => "unknown".to_owned(),
            offset => offset.to_string(),
        },
    )?;
    line(
        "voted",
        match view.voted_id {
            -1 => "for nobody in this epoch".to_owned(),
            id => format!("for node {id}"),
        },
    )?;
    let voters: Vec<String> = view.voters.iter().map(|voter| voter.voter_id.to_string()).collect();
    line(
        "voters",
        match view.voters_offset {
            -1 => format!("{} (from the start)", voters.join(", ")),
            offset => format!("{} (offset {offset})", voters.join(", ")),
        },
    )?;
    if let Some(fault) = &view.integrity_fault {
        line("INTEGRITY FAULT", fault.clone())?;
    }
    for peer in &view.unreachable {
        line(
            "unreachable",
            format!("{}: {} for {}", who(peer.node_id), peer.reason, age(peer.since_ms)),
        )?;
    }
    match &view.last_round {
        None => line("last election", "never asked for votes since it started".to_owned()),
        Some(round) => {
            line("last election", title(round))?;
            round.answers.iter().try_for_each(|answer| line("", said(answer)))
        }
    }
}

/// A peer; bootstrap servers, whose ids are not known, count down from -2.
fn who(peer: i32) -> String {
    match peer {
        ..0 => format!("bootstrap server {}", peer.saturating_neg().saturating_sub(1)),
        _ => format!("node {peer}"),
    }
}

fn title(round: &DescribedRound) -> String {
    let kind = if round.pre_vote { "pre-votes" } else { "votes" };
    format!(
        "asked for {kind} in epoch {} with log end {}@{}: {}",
        round.epoch, round.log_end_offset, round.log_end_epoch, round.outcome
    )
}

fn said(answer: &DescribedAnswer) -> String {
    let id = answer.voter_id;
    match answer.kind.as_str() {
        "none" => format!("node {id} has not answered"),
        "granted" => format!("node {id} granted"),
        "refused" => {
            let leader = match answer.leader_id {
                -1 => "no leader".to_owned(),
                leader => format!("leader {leader}"),
            };
            let error = match answer.error_code {
                0 => String::new(),
                code => format!(", error {}", error_name(code)),
            };
            format!("node {id} refused: it is in epoch {} with {leader}{error}", answer.epoch)
        }
        reason => format!("node {id} could not be asked: {reason}"),
    }
}

fn error_name(code: i16) -> String {
    let name = match code {
        -1 => "UNKNOWN_SERVER_ERROR",
        3 => "UNKNOWN_TOPIC_OR_PARTITION",
        6 => "NOT_LEADER_OR_FOLLOWER",
        31 => "CLUSTER_AUTHORIZATION_FAILED",
        35 => "UNSUPPORTED_VERSION",
        42 => "INVALID_REQUEST",
        74 => "FENCED_LEADER_EPOCH",
        75 => "UNKNOWN_LEADER_EPOCH",
        104 => "INCONSISTENT_CLUSTER_ID",
        125 => "INVALID_VOTER_KEY",
        _ => return code.to_string(),
    };
    format!("{name} ({code})")
}

fn age(ms: i64) -> String {
    match ms {
        ..10_000 => format!("{ms} ms"),
        10_000..600_000 => format!("{} s", ms / 1000),
        _ => format!("{} min", ms / 60_000),
    }
}

#[cfg(test)]
mod tests {
    use quorate_wire::message::{DescribedVoter, UnreachablePeer};

    use super::super::survey::{Node, Silent};
    use super::*;

    #[test]
    fn the_views_say_why_there_is_no_leader() {
        let voters =
            [1, 2, 3].map(|voter_id| DescribedVoter { voter_id, ..Default::default() }).to_vec();
        let answer = |voter_id, kind: &str, error_code, epoch| DescribedAnswer {
            voter_id,
            kind: kind.to_owned(),
            error_code,
            epoch,
            leader_id: -1,
            ..Default::default()
        };
        let peer = |node_id, reason: &str, since_ms| UnreachablePeer {
            node_id,
            reason: reason.to_owned(),
            since_ms,
            ..Default::default()
        };
        let view = DescribeReplicaResponse {
            node_id: 1,
            role: "prospective".to_owned(),
            epoch: 5,
            leader_id: -1,
            voted_id: 2,
            is_voter: true,
            log_end_offset: 100,
            log_end_epoch: 4,
            durable_end_offset: 99,
            high_watermark: 98,
            voters,
            voters_offset: 0,
            leaderless_ms: 12_345,
            last_round: Some(DescribedRound {
                epoch: 6,
                pre_vote: true,
                log_end_offset: 100,
                log_end_epoch: 4,
                outcome: "lost".to_owned(),
                answers: vec![answer(2, "refused", 0, 7), answer(3, "timed-out", 0, -1)],
                ..Default::default()
            }),
            unreachable: vec![peer(-3, "connection-refused", 50), peer(3, "timed-out", 700_000)],
            ..Default::default()
        };
        let endpoint = Endpoint::new("c1", 9093);
        let survey = Survey {
            nodes: vec![Node { endpoint, view: Some(view) }],
            silent: vec![Silent {
                node: Some(3),
                endpoint: Endpoint::new("c3", 9093),
                reason: "Connection refused".to_owned(),
            }],
        };
        let mut out = Vec::new();
        print(&survey, &mut out).expect("memory takes it");
        assert_eq!(
            String::from_utf8(out).expect("text"),
            "\
There is no leader: 1 of 3 voters can be reached, and 2 are needed.

node 1 (c1:9093): prospective, epoch 5
  leader          none for 12 s
  log end         100@4, on disk below 99
  high watermark  98
  voted           for node 2
  voters          1, 2, 3 (offset 0)
  unreachable     bootstrap server 2: connection-refused for 50 ms
  unreachable     node 3: timed-out for 11 min
  last election   asked for pre-votes in epoch 6 with log end 100@4: lost
                  node 2 refused: it is in epoch 7 with no leader
                  node 3 could not be asked: timed-out

node 3 (c3:9093): Connection refused
"
        );
    }
}
