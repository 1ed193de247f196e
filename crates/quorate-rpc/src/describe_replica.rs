//! DescribeReplica: what a replica believes, with what its node knows beside it. Private to Quorate.

use std::collections::BTreeMap;
use std::time::Duration;

use quorate_core::ids::{Epoch, NodeId, Offset, OffsetAndEpoch};
use quorate_core::message::{
    ElectionRound, ErrorCode, KRaftVersion, ReplicaDescription, Unreachable, VoterAnswer,
};
use quorate_core::voters::{Voter, VoterSet};
use quorate_wire::message as wire;

use crate::common::{
    directory_out, endpoints_in, endpoints_out, key_in, leader_in, leader_out, voter_in, voter_out,
};
use crate::server::ServerContext;

const ROLES: [&str; 6] =
    ["leader", "follower", "candidate", "prospective", "unattached", "resigned"];

pub(crate) fn response_out(
    description: &ReplicaDescription,
    context: &ServerContext,
) -> wire::DescribeReplicaResponse {
    let (voted_id, voted_directory_id) = voter_out(description.voted.as_ref());
    wire::DescribeReplicaResponse {
        cluster_id: context.cluster_id.clone(),
        node_id: description.key.id.0,
        directory_id: directory_out(&description.key),
        software_version: env!("CARGO_PKG_VERSION").to_owned(),
        listeners: endpoints_out(&context.listeners),
        role: description.role.to_owned(),
        epoch: description.epoch.0,
        leader_id: leader_out(description.leader),
        voted_id,
        voted_directory_id,
        is_voter: description.is_voter,
        log_start_offset: description.log_start.0,
        log_end_offset: description.log_end.offset.0,
        log_end_epoch: description.log_end.epoch.0,
        durable_end_offset: description.durable_end.0,
        oldest_unfinished_write_ms: description.oldest_unfinished_write.map_or(-1, millis),
        high_watermark: description.high_watermark.map_or(-1, |offset| offset.0),
        kraft_version: description.kraft_version.0,
        voters: description.voters.iter().map(|(id, voter)| voter_described(id, voter)).collect(),
        voters_offset: description.voters_offset.map_or(-1, |offset| offset.0),
        leaderless_ms: description.leaderless.map_or(-1, millis),
        last_round: description.last_round.as_ref().map(round_out),
        integrity_fault: description.integrity_fault.clone(),
        unreachable: description
            .unreachable
            .iter()
            .map(|(id, reason, since)| wire::UnreachablePeer {
                node_id: id.0,
                reason: reason_out(*reason),
                since_ms: millis(*since),
                ..Default::default()
            })
            .collect(),
        ..Default::default()
    }
}

pub(crate) fn response_in(
    response: wire::DescribeReplicaResponse,
) -> Result<ReplicaDescription, Unreachable> {
    if response.error_code != 0 {
        return Err(Unreachable::TopLevel(ErrorCode(response.error_code)));
    }
    let role = ROLES.into_iter().find(|role| *role == response.role);
    let voters = response.voters.into_iter().map(|voter| {
        let key = key_in(voter.voter_id, voter.voter_directory_id);
        let levels = (KRaftVersion(voter.min_kraft_version), KRaftVersion(voter.max_kraft_version));
        let endpoints = endpoints_in(voter.endpoints);
        (key.id, Voter { directory: key.directory, endpoints, kraft_versions: levels })
    });
    let voters = VoterSet::new(voters).ok_or(Unreachable::Malformed)?;
    // The 0-0 checkpoint stands at -1 too, but voters from records have directories.
    let from_records = voters.iter().any(|(_, voter)| voter.directory.is_some());
    let unreachable = response.unreachable.into_iter().map(|peer| {
        let reason = reason_in(&peer.reason)?;
        Some((NodeId(peer.node_id), reason, duration(peer.since_ms)?))
    });
    Ok(ReplicaDescription {
        key: key_in(response.node_id, response.directory_id),
        role: role.ok_or(Unreachable::Malformed)?,
        epoch: Epoch(response.epoch),
        leader: leader_in(response.leader_id),
        voted: voter_in(response.voted_id, response.voted_directory_id),
        is_voter: response.is_voter,
        log_start: Offset(response.log_start_offset),
        log_end: OffsetAndEpoch::new(
            Offset(response.log_end_offset),
            Epoch(response.log_end_epoch),
        ),
        durable_end: Offset(response.durable_end_offset),
        oldest_unfinished_write: duration(response.oldest_unfinished_write_ms),
        high_watermark: (response.high_watermark >= 0).then_some(Offset(response.high_watermark)),
        kraft_version: KRaftVersion(response.kraft_version),
        voters,
        voters_offset: (response.voters_offset >= 0 || from_records)
            .then_some(Offset(response.voters_offset)),
        leaderless: duration(response.leaderless_ms),
        last_round: match response.last_round {
            Some(round) => Some(round_in(round).ok_or(Unreachable::Malformed)?),
            None => None,
        },
        integrity_fault: response.integrity_fault,
        unreachable: unreachable.collect::<Option<_>>().ok_or(Unreachable::Malformed)?,
    })
}

fn voter_described(id: NodeId, voter: &Voter) -> wire::DescribedVoter {
    let key = quorate_core::ids::ReplicaKey::new(id, voter.directory);
    wire::DescribedVoter {
        voter_id: id.0,
        voter_directory_id: directory_out(&key),
        endpoints: endpoints_out(&voter.endpoints),
        min_kraft_version: voter.kraft_versions.0.0,
        max_kraft_version: voter.kraft_versions.1.0,
        ..Default::default()
    }
}

fn round_out(round: &ElectionRound) -> wire::DescribedRound {
    let outcome = match round.won {
        None => "open",
        Some(true) => "won",
        Some(false) => "lost",
    };
    wire::DescribedRound {
        epoch: round.epoch.0,
        pre_vote: round.pre_vote,
        log_end_offset: round.log_end.offset.0,
        log_end_epoch: round.log_end.epoch.0,
        outcome: outcome.to_owned(),
        answers: round.answers.iter().map(|(id, answer)| answer_out(*id, answer)).collect(),
        ..Default::default()
    }
}

fn answer_out(voter: NodeId, answer: &VoterAnswer) -> wire::DescribedAnswer {
    let mut described = wire::DescribedAnswer { voter_id: voter.0, ..Default::default() };
    described.kind = match answer {
        VoterAnswer::None => "none".to_owned(),
        VoterAnswer::Granted => "granted".to_owned(),
        VoterAnswer::Refused { error, epoch, leader } => {
            described.error_code = error.0;
            described.epoch = epoch.0;
            described.leader_id = leader_out(*leader);
            "refused".to_owned()
        }
        VoterAnswer::Unreachable(reason) => reason_out(*reason),
    };
    described
}

fn round_in(round: wire::DescribedRound) -> Option<ElectionRound> {
    let mut answers = BTreeMap::new();
    for answer in round.answers {
        let said = match answer.kind.as_str() {
            "none" => VoterAnswer::None,
            "granted" => VoterAnswer::Granted,
            "refused" => VoterAnswer::Refused {
                error: ErrorCode(answer.error_code),
                epoch: Epoch(answer.epoch),
                leader: leader_in(answer.leader_id),
            },
            reason => VoterAnswer::Unreachable(reason_in(reason)?),
        };
        answers.insert(NodeId(answer.voter_id), said);
    }
    Some(ElectionRound {
        epoch: Epoch(round.epoch),
        pre_vote: round.pre_vote,
        log_end: OffsetAndEpoch::new(Offset(round.log_end_offset), Epoch(round.log_end_epoch)),
        won: match round.outcome.as_str() {
            "open" => None,
            "won" => Some(true),
            "lost" => Some(false),
            _ => return None,
        },
        answers,
    })
}

fn reason_out(reason: Unreachable) -> String {
    match reason {
        Unreachable::Refused => "connection-refused".to_owned(),
        Unreachable::Reset => "reset".to_owned(),
        Unreachable::TimedOut => "timed-out".to_owned(),
        Unreachable::UnsupportedVersion => "unsupported-version".to_owned(),
        Unreachable::Malformed => "malformed".to_owned(),
        Unreachable::TopLevel(error) => format!("error-{}", error.0),
    }
}

fn reason_in(reason: &str) -> Option<Unreachable> {
    Some(match reason {
        "connection-refused" => Unreachable::Refused,
        "reset" => Unreachable::Reset,
        "timed-out" => Unreachable::TimedOut,
        "unsupported-version" => Unreachable::UnsupportedVersion,
        "malformed" => Unreachable::Malformed,
        other => {
            let code = other.strip_prefix("error-")?.parse().ok()?;
            Unreachable::TopLevel(ErrorCode(code))
        }
    })
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

fn duration(millis: i64) -> Option<Duration> {
    u64::try_from(millis).ok().map(Duration::from_millis)
}
