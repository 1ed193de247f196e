//! The `quorum-state` files after each kill: a replica keeps its epochs and its votes.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, anyhow};
use serde_json::Value;

use super::failure::{Checked, found};

/// What a file says. -1 stands for nobody.
#[derive(Clone, Debug, PartialEq, Eq)]
struct State {
    epoch: i64,
    leader: i64,
    /// Node and directory.
    voted: (i64, String),
}

/// What each directory said last.
#[derive(Debug)]
pub(super) struct Elections {
    last: Vec<State>,
}

impl Elections {
    /// Of as many directories, none of which has seen an election.
    pub(super) fn new(nodes: usize) -> Elections {
        Elections { last: vec![State { epoch: 0, leader: -1, voted: (-1, String::new()) }; nodes] }
    }

    /// Reads a stopped node's file. `led` is the latest epoch that the node said it leads.
    pub(super) fn check(&mut self, node: usize, log_dir: &Path, led: Option<i32>) -> Checked {
        let path = log_dir.join("quorum-state");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            // No file is epoch 0, which a fresh directory may well have.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return self.compare(node, None, led);
            }
            Err(error) => {
                return Err(anyhow!(error).context(path.display().to_string()).into());
            }
        };
        match parse(&text) {
            Ok(state) => self.compare(node, Some(state), led),
            Err(error) => found("election-file", format!("{}: {error:#}", path.display())),
        }
    }

    fn compare(&mut self, node: usize, state: Option<State>, led: Option<i32>) -> Checked {
        let Some(last) = self.last.get_mut(node) else { return Ok(()) };
        let now = match state {
            Some(state) => state,
            None => State { epoch: 0, leader: -1, voted: (-1, String::new()) },
        };
        let name = node + 1;
        if let Some(led) = led
            && now.epoch < i64::from(led)
        {
            let detail =
                format!("node {name} led epoch {led}, but its disk has epoch {}", now.epoch);
            return found("epoch-promised", detail);
        }
        if now.epoch < last.epoch {
            let detail = format!("on the disk of node {name}: {now:?} after {last:?}");
            return found("epoch-back", detail);
        }
        if now.epoch == last.epoch {
            let somebody = |id: i64| id >= 0;
            if somebody(last.leader) && now.leader != last.leader && somebody(now.leader) {
                let detail = format!("on the disk of node {name}: {now:?} after {last:?}");
                return found("leader-changed", detail);
            }
            // Once the leader of the epoch is known, the vote may be dropped: nobody else can win it.
            let dropped = !somebody(now.voted.0) && somebody(now.leader);
            if somebody(last.voted.0) && now.voted != last.voted && !dropped {
                let detail = format!("on the disk of node {name}: {now:?} after {last:?}");
                return found("vote-changed", detail);
            }
        }
        *last = now;
        Ok(())
    }
}

fn parse(text: &str) -> anyhow::Result<State> {
    let value: Value = serde_json::from_str(text).context("is no JSON")?;
    let number = |field: &str| {
        value.get(field).and_then(Value::as_i64).with_context(|| format!("has no {field}"))
    };
    let directory = value.get("votedDirectoryId").and_then(Value::as_str).unwrap_or_default();
    Ok(State {
        epoch: number("leaderEpoch")?,
        leader: number("leaderId")?,
        voted: (number("votedId")?, directory.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::super::failure::check_of;
    use super::*;

    fn file(epoch: i64, leader: i64, voted: i64) -> Option<State> {
        let text = format!(
            r#"{{"leaderId":{leader},"leaderEpoch":{epoch},"votedId":{voted},"votedDirectoryId":"A","data_version":1}}"#
        );
        Some(parse(&text).expect("a file"))
    }

    #[test]
    fn epochs_and_votes_are_kept() {
        let mut elections = Elections::new(1);
        for state in
            [None, file(1, -1, -1), file(1, -1, 2), file(1, 2, 2), file(1, 2, -1), file(4, -1, 3)]
        {
            elections.compare(0, state, None).expect("all is well");
        }
        elections.compare(0, file(5, 1, 1), Some(5)).expect("it led 5");
    }

    #[test]
    fn an_epoch_that_was_led_is_on_the_disk() {
        let mut elections = Elections::new(1);
        assert_eq!(check_of(elections.compare(0, file(4, 2, 2), Some(5))), "epoch-promised");
        assert_eq!(check_of(elections.compare(0, None, Some(1))), "epoch-promised");
    }

    #[test]
    fn an_epoch_does_not_go_back() {
        let mut elections = Elections::new(2);
        elections.compare(0, file(4, 2, 2), None).expect("first");
        elections.compare(1, file(3, 2, 2), None).expect("another directory");
        assert_eq!(check_of(elections.compare(0, file(3, 2, 2), None)), "epoch-back");
        assert_eq!(check_of(elections.compare(0, None, None)), "epoch-back");
    }

    #[test]
    fn a_vote_is_not_changed_nor_forgotten() {
        for after in [file(4, -1, 3), file(4, -1, -1), file(4, 1, 3)] {
            let mut elections = Elections::new(1);
            elections.compare(0, file(4, -1, 2), None).expect("first");
            assert_eq!(check_of(elections.compare(0, after, None)), "vote-changed");
        }
    }

    #[test]
    fn an_epoch_has_one_leader() {
        let mut elections = Elections::new(1);
        elections.compare(0, file(4, 2, 2), None).expect("first");
        assert_eq!(check_of(elections.compare(0, file(4, 3, 2), None)), "leader-changed");
    }

    #[test]
    fn a_file_that_does_not_read_is_found() {
        let dir = std::env::temp_dir().join(format!("quorate-elections-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory");
        fs::write(dir.join("quorum-state"), "{\"leaderId\":1").expect("a file");
        let result = Elections::new(1).check(0, &dir, None);
        fs::remove_dir_all(&dir).expect("removed");
        assert_eq!(check_of(result), "election-file");
    }
}
