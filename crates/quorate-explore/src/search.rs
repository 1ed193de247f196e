//! Breadth first: every state within the bound once, so that the first broken rule has a shortest story.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::bound::Bound;
use crate::intern::{Fingerprint, PlainBuild};
use crate::node::quieten_the_core;
use crate::state::{Action, State};
use crate::story::tell;
use crate::world::World;

/// What was explored.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// Distinct states.
    pub states: u64,
    /// Actions that were tried, one for each state and each that may happen in it.
    pub transitions: u64,
    /// Those of them that lead outside the bound.
    pub outside: u64,
    /// The length of the longest shortest path.
    pub depth: u32,
    /// The most epochs that had a leader on one path.
    pub elections: usize,
    /// The most batches that were committed on one path, the leader changes included.
    pub committed: usize,
    /// Distinct states of a replica with its disk.
    pub nodes: usize,
    /// How long it took.
    pub time: Duration,
}

/// A rule that is broken, and how.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The rule, in the words of the checker.
    pub rule: String,
    /// What happened, one line an event, from the start.
    pub story: Vec<String>,
    /// What was explored until then.
    pub figures: Figures,
}

/// Where a state was first reached from.
struct Parent {
    state: u32,
    action: Action,
}

/// Explores everything within a bound. `report` is called after each depth.
///
/// # Errors
/// The shortest story of a broken rule.
pub fn explore(bound: Bound, mut report: impl FnMut(&Figures)) -> Result<Figures, Box<Violation>> {
    quieten_the_core();
    let start = Instant::now();
    let mut figures = Figures { states: 1, ..Figures::default() };
    let (mut world, root) = World::new(bound).map_err(|rule| {
        Box::new(Violation { rule, story: vec!["all replicas start".into()], figures })
    })?;
    let mut seen: HashSet<Fingerprint, PlainBuild> = HashSet::default();
    seen.insert(root.fingerprint());
    let mut parents = vec![Parent { state: 0, action: Action::Durable(0) }];
    let mut frontier: Vec<(u32, State)> = vec![(0, root.clone())];
    let mut actions = Vec::new();
    while !frontier.is_empty() {
        let mut next_frontier = Vec::new();
        for (number, state) in &frontier {
            actions.clear();
            world.actions(state, &mut actions);
            for action in &actions {
                figures.transitions += 1;
                let next = match world.act(state, *action) {
                    Ok(Some(next)) => next,
                    Ok(None) => {
                        figures.outside += 1;
                        continue;
                    }
                    Err(rule) => {
                        figures.time = start.elapsed();
                        figures.nodes = world.nodes.len();
                        let mut path = path_to(&parents, *number);
                        path.push(*action);
                        let story = tell(&mut world, &root, &path);
                        return Err(Box::new(Violation { rule, story, figures }));
                    }
                };
                if seen.insert(next.fingerprint()) {
                    let next_number = u32::try_from(parents.len()).expect("fewer than 2^32 states");
                    parents.push(Parent { state: *number, action: *action });
                    next_frontier.push((next_number, next));
                }
            }
        }
        figures.states += u64::try_from(next_frontier.len()).unwrap_or(u64::MAX);
        figures.depth += u32::from(!next_frontier.is_empty());
        figures.time = start.elapsed();
        figures.nodes = world.nodes.len();
        (figures.elections, figures.committed) = (world.elections, world.committed);
        report(&figures);
        frontier = next_frontier;
    }
    Ok(figures)
}

fn path_to(parents: &[Parent], mut state: u32) -> Vec<Action> {
    let mut path = Vec::new();
    while state != 0 {
        let parent = &parents[usize::try_from(state).expect("a number of ours")];
        path.push(parent.action);
        state = parent.state;
    }
    path.reverse();
    path
}
