//! A directory gives one vote an epoch, and none in an epoch that it led.

use std::collections::{BTreeMap, BTreeSet};

use quorate_core::io::Message;
use quorate_core::message::{Request, Response};
use quorate_core::{DirectoryId, Epoch, ReplicaKey};
use quorate_storage::StoreWrite;

use super::{Checker, ensure};
use crate::facts::{Facts, Seen};

#[derive(Default)]
pub(crate) struct OneVote {
    votes: BTreeMap<(Option<DirectoryId>, Epoch), ReplicaKey>,
    led: BTreeSet<(Option<DirectoryId>, Epoch)>,
}

impl Checker for OneVote {
    fn name(&self) -> &'static str {
        "one-vote"
    }

    fn check(&mut self, facts: &Facts, seen: &Seen<'_>) -> Result<(), String> {
        match seen {
            Seen::Persisted { node, write: StoreWrite::ElectionState(state) } => {
                let key = facts.nodes[*node].key;
                if state.leader == Some(key.id) {
                    self.led.insert((key.directory, state.epoch));
                }
                match state.voted {
                    Some(voted) => self.vote(key, state.epoch, voted),
                    None => Ok(()),
                }
            }
            Seen::Sent {
                node,
                message: Message::Response { response: Response::Vote(vote), .. },
                asked: Some(Request::Vote(asked)),
            } if vote.granted && !asked.pre_vote => {
                let key = facts.nodes[*node].key;
                ensure(!self.led.contains(&(key.directory, asked.epoch)), || {
                    format!("n{} led epoch {} and votes in it", key.id, asked.epoch)
                })?;
                self.vote(key, asked.epoch, asked.replica)
            }
            _ => Ok(()),
        }
    }
}

impl OneVote {
    fn vote(&mut self, voter: ReplicaKey, epoch: Epoch, voted: ReplicaKey) -> Result<(), String> {
        let first = *self.votes.entry((voter.directory, epoch)).or_insert(voted);
        // Old versions of Vote do not name the directory.
        let same = first.id == voted.id
            && (first.directory.is_none()
                || voted.directory.is_none()
                || first.directory == voted.directory);
        ensure(same, || format!("n{} votes for {voted} in epoch {epoch}, after {first}", voter.id))
    }
}
