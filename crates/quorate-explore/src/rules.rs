//! What must hold between replicas, after every event and over all of history (protocol reference 8.1; the
//! numbers are its). A single replica's rules are in `node.rs`.

use quorate_core::{Epoch, NodeId, Offset, ReplicaKey};

use crate::batches::{BatchId, Batches};
use crate::cluster::key;
use crate::node::Node;

/// So many epochs at the most.
pub(crate) const MAX_EPOCHS: usize = 8;

/// All of a node that the rules look at.
#[derive(Hash)]
pub(crate) struct View {
    place: u8,
    role: &'static str,
    epoch: Epoch,
    leader: Option<NodeId>,
    committed: Offset,
    promised: Option<(Epoch, ReplicaKey)>,
    log: Vec<BatchId>,
    disk_log: Vec<BatchId>,
}

impl View {
    pub(crate) fn of(node: &Node) -> View {
        View {
            place: node.place,
            role: node.role,
            epoch: node.epoch,
            leader: node.leader,
            committed: node.committed,
            promised: node.promised,
            log: node.log.clone(),
            disk_log: node.disk.log.clone(),
        }
    }
}

/// What is remembered of the past.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct History {
    /// By epoch: one more than the place of its leader, 0 while there is none.
    leaders: [u8; MAX_EPOCHS],
    /// The longest log that any replica called committed.
    committed: Vec<BatchId>,
}

impl History {
    /// How many epochs had a leader.
    pub(crate) fn elections(&self) -> usize {
        self.leaders.iter().filter(|leader| **leader != 0).count()
    }

    /// How many batches were committed.
    pub(crate) fn committed(&self) -> usize {
        self.committed.len()
    }

    /// What is remembered once a node has changed.
    pub(crate) fn after(&self, changed: &Node, batches: &Batches) -> Result<History, String> {
        let mut history = self.clone();
        let epoch = usize::try_from(changed.epoch.0).expect("epochs are not negative");
        let leader = &mut history.leaders[epoch];
        // 1: one leader an epoch, whoever says so.
        if changed.role == "leader" {
            let me = changed.place + 1;
            if *leader != 0 && *leader != me {
                return Err(format!("leads epoch {epoch}, which node {} led", *leader - 1));
            }
            *leader = me;
        }
        if let Some(named) = changed.leader
            && i32::from(*leader) != named.0 + 1
        {
            let led = match *leader {
                0 => "nobody".to_owned(),
                leader => format!("node {}", leader - 1),
            };
            return Err(format!("takes {named} for the leader of epoch {epoch}, which {led} led"));
        }
        // 6: what is committed never changes.
        if changed.committed > Offset::ZERO {
            let Some(count) = batches.below(&changed.log, changed.committed) else {
                return Err(format!("has committed {} and does not hold it", changed.committed));
            };
            let mine = &changed.log[..count];
            let common = count.min(history.committed.len());
            if mine[..common] != history.committed[..common] {
                return Err("has committed something else than what was committed before".into());
            }
            if count > common {
                history.committed = mine.to_vec();
            }
        }
        Ok(history)
    }

    /// What must hold of all nodes together, once one has changed.
    pub(crate) fn check<'a>(
        &self,
        nodes: impl Iterator<Item = &'a Node> + Clone,
        changed: &Node,
        voters: usize,
        batches: &Batches,
    ) -> Result<(), String> {
        // 8 and 10: a majority of the voters has it on stable media.
        let holds = |node: &&Node| node.disk.log.starts_with(&self.committed);
        let holders = nodes.clone().take(voters).filter(holds).count();
        if holders <= voters / 2 {
            let end = batches.end(&self.committed);
            return Err(format!(
                "goes on while what is committed, up to {end}, is durable on {holders} of {voters} voters"
            ));
        }
        // 3: a leader has the votes of a majority, each of them on stable media before it was told.
        if changed.role == "leader" {
            let me = key(usize::from(changed.place));
            let voted = |node: &&Node| {
                node.promised.is_some_and(|(epoch, candidate)| {
                    epoch > changed.epoch || (epoch == changed.epoch && candidate == me)
                })
            };
            let votes = nodes.clone().take(voters).filter(voted).count();
            if votes <= voters / 2 {
                return Err(format!(
                    "leads epoch {} with the votes of {votes} of {voters} voters",
                    changed.epoch
                ));
            }
        }
        // 7: the leader of the highest epoch has it all.
        let latest = self.leaders.iter().rposition(|leader| *leader != 0);
        let of_latest =
            |node: &&Node| node.role == "leader" && usize::try_from(node.epoch.0).ok() == latest;
        if let Some(leader) = nodes.clone().find(of_latest)
            && !leader.log.starts_with(&self.committed)
        {
            let (place, epoch) = (leader.place, leader.epoch);
            return Err(format!(
                "goes on while node {place} leads epoch {epoch} without all that is committed"
            ));
        }
        // 5: where two logs have a record of one epoch at one offset, they are the same up to it.
        for other in nodes.filter(|other| other.place != changed.place) {
            for (mine, theirs) in [(&changed.log, &other.log), (&changed.disk.log, &other.log)] {
                check_match(mine, theirs, batches)
                    .map_err(|why| format!("{why}, against node {}", other.place))?;
            }
        }
        Ok(())
    }
}

fn check_match(a: &[BatchId], b: &[BatchId], batches: &Batches) -> Result<(), String> {
    let common = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    for id in &a[common..] {
        let mine = batches.get(*id);
        let same = b[common..].iter().map(|id| batches.get(*id)).find(|theirs| {
            theirs.epoch == mine.epoch && theirs.base < mine.end && mine.base < theirs.end
        });
        if let Some(theirs) = same {
            let (epoch, base, end) = (mine.epoch, theirs.base, theirs.end);
            return Err(format!("its log differs from {base}..{end} of the same epoch {epoch}"));
        }
    }
    Ok(())
}
