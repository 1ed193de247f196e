//! DescribeQuorum, which only a leader answers (KIP-595, KIP-836), and DescribeReplica, which every replica
//! answers for itself.

use alloc::boxed::Box;
use alloc::format;

use crate::io::RequestId;
use crate::message::{ErrorCode, QuorumDescription, ReplicaDescription, Response};
use crate::outbox::Turn;
use crate::replica::Replica;
use crate::role::Role;

impl Replica {
    pub(crate) fn on_describe_quorum(&mut self, turn: &mut Turn<'_>, id: RequestId) {
        let voters = self.voters.voters();
        let description = match &mut self.role {
            Role::Leader(leader) => {
                let (voter_lines, observers) = leader.describe(turn.now, voters, self.log.end());
                Ok(QuorumDescription {
                    leader: self.config.node,
                    epoch: self.epoch,
                    high_watermark: self.high_watermark,
                    voters: voter_lines,
                    observers,
                    nodes: voters.iter().map(|(id, voter)| (id, voter.endpoints.clone())).collect(),
                })
            }
            _ => Err(ErrorCode::NOT_LEADER_OR_FOLLOWER),
        };
        self.outbox.answer_tool(turn, id, Response::DescribeQuorum(description));
    }

    pub(crate) fn on_describe_replica(&mut self, turn: &mut Turn<'_>, id: RequestId) {
        let description = self.describe(turn.now);
        self.outbox.answer_tool(turn, id, Response::DescribeReplica(Box::new(description)));
    }

    /// What this replica believes at this moment.
    pub fn describe(&self, now: crate::Instant) -> ReplicaDescription {
        ReplicaDescription {
            key: self.config.key(),
            role: self.role.name(),
            epoch: self.epoch,
            leader: self.leader(),
            voted: self.voted,
            is_voter: self.is_voter(),
            log_start: self.log.start(),
            log_end: self.log.end_and_epoch(),
            durable_end: self.log.durable_end(),
            high_watermark: self.high_watermark,
            kraft_version: self.voters.kraft_version(),
            voters: self.voters.voters().clone(),
            voters_offset: self.voters.voters_offset(),
            leaderless: self.leaderless_since.map(|since| now.since(since)),
            oldest_unfinished_write: self.outbox.oldest_unfinished().map(|since| now.since(since)),
            last_round: self.last_round.clone(),
            integrity_fault: self.integrity_fault.as_ref().map(|fault| format!("{fault}")),
            unreachable: self
                .unreachable
                .iter()
                .map(|(id, (why, since))| (*id, *why, now.since(*since)))
                .collect(),
        }
    }
}
