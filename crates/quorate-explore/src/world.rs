//! What an action makes of a state: the network and the crashes around `node.rs`.

use std::collections::HashMap;

use quorate_core::Epoch;
use quorate_core::message::{Request, Unreachable};

use crate::batches::Batches;
use crate::bound::Bound;
use crate::cluster::Cluster;
use crate::intern::{Interner, PlainBuild};
use crate::node::{Answer, Deed, Happening, Node};
use crate::rules::{History, MAX_EPOCHS, View};
use crate::state::{Action, Item, MAX_NODES, Spent, State};

/// All values that states are made of, and all that was worked out about them.
pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) batches: Batches,
    pub(crate) nodes: Interner<Node>,
    pub(crate) requests: Interner<Request>,
    pub(crate) answers: Interner<Answer>,
    pub(crate) items: Interner<Item>,
    histories: Interner<History>,
    reactions: Vec<Reaction>,
    by_cause: HashMap<(u32, u64), u32, PlainBuild>,
    /// For each node the number of directories that a crash may leave.
    crash_ways: HashMap<u32, u8, PlainBuild>,
    lost: u32,
    /// The most epochs that had a leader, and the most batches that were committed, on one path.
    pub(crate) elections: usize,
    pub(crate) committed: usize,
    /// What the rules look at, by node; and what they said of it.
    views: Interner<View>,
    view_of: Vec<u32>,
    judged: HashMap<(u32, u8, [u32; MAX_NODES]), u32, PlainBuild>,
}

/// What became of a node by one event.
#[derive(Clone)]
struct Reaction {
    node: u32,
    effects: Vec<Effect>,
}

/// A [`Deed`] by numbers.
#[derive(Clone, Copy)]
enum Effect {
    Forget { slot: i32 },
    Ask { slot: i32, to: u8, request: u32 },
    Reply { to: u8, tag: u8, answer: u32 },
}

/// What happens to a node, by numbers.
#[derive(Clone, Copy)]
enum Cause {
    Request { from: u8, request: u32, is_late: bool },
    Answer { slot: i32, answer: u32 },
    Durable,
    Tick,
    Timeout,
    Propose(u8),
    Crash(u8),
}

impl Cause {
    fn word(self) -> u64 {
        let pack = |kind: u64, a: u8, b: u32| kind << 40 | u64::from(a) << 32 | u64::from(b);
        match self {
            Cause::Request { from, request, is_late: false } => pack(1, from, request),
            Cause::Request { from, request, is_late: true } => pack(8, from, request),
            Cause::Answer { slot, answer } => pack(2, slot.to_le_bytes()[0], answer),
            Cause::Durable => pack(3, 0, 0),
            Cause::Tick => pack(4, 0, 0),
            Cause::Timeout => pack(5, 0, 0),
            Cause::Propose(number) => pack(6, number, 0),
            Cause::Crash(way) => pack(7, way, 0),
        }
    }
}

impl World {
    /// The world of a bound, and the state in which all replicas have started on empty directories.
    pub(crate) fn new(bound: Bound) -> Result<(World, State), String> {
        assert!(bound.nodes() <= MAX_NODES, "{} nodes, of at most {MAX_NODES}", bound.nodes());
        let epochs = usize::try_from(bound.epochs).expect("epochs are not negative");
        assert!(epochs + 1 < MAX_EPOCHS, "{epochs} epochs of at most {}", MAX_EPOCHS - 2);
        let mut answers = Interner::default();
        let lost = answers.intern(Err(Unreachable::Reset));
        let mut histories = Interner::default();
        let history = histories.intern(History::default());
        let mut world = World {
            cluster: Cluster::new(bound),
            batches: Batches::default(),
            nodes: Interner::default(),
            requests: Interner::default(),
            answers,
            items: Interner::default(),
            histories,
            reactions: Vec::new(),
            by_cause: HashMap::default(),
            crash_ways: HashMap::default(),
            lost,
            elections: 0,
            committed: 0,
            views: Interner::default(),
            view_of: Vec::new(),
            judged: HashMap::default(),
        };
        let mut state = State {
            nodes: [0; MAX_NODES],
            history,
            spent: Spent::default(),
            slow_disks: 0,
            bag: Vec::new(),
        };
        for place in 0..bound.nodes() {
            let mut deeds = Vec::new();
            let number = u8::try_from(place).expect("few nodes");
            let node = Node::new(number, &world.cluster, &mut world.batches, &mut deeds)
                .map_err(|why| format!("node {place} {why}"))?;
            state.nodes[place] = world.intern_node(node);
            let effects = world.effects(deeds);
            world.take_effect(&mut state, number, &effects);
        }
        Ok((world, state))
    }

    pub(crate) fn node(&self, state: &State, place: u8) -> &Node {
        self.nodes.get(state.nodes[usize::from(place)])
    }

    /// Everything that may happen in a state.
    pub(crate) fn actions(&mut self, state: &State, actions: &mut Vec<Action>) {
        let bound = self.cluster.bound;
        let is_quiet = self.ordinary_actions(state, actions);
        for place in 0..bound.nodes() {
            let number = state.nodes[place];
            let node = self.nodes.get(number);
            let place_number = node.place;
            if is_quiet && node.has_tick() {
                actions.push(Action::Tick(place_number));
            }
            if is_quiet
                && node.has_timeout()
                && place < bound.campaigners
                && state.spent.timeouts < bound.timeouts
            {
                actions.push(Action::Timeout(place_number));
            }
            if is_quiet && node.role == "leader" && state.spent.proposals < bound.proposals {
                actions.push(Action::Propose(place_number));
            }
            if state.spent.losses < bound.losses {
                let slots = node.asked().map(|slot| i8::try_from(slot).expect("few nodes"));
                actions.extend(slots.map(|slot| Action::Lose { asker: place_number, slot }));
            }
            if state.spent.crashes < bound.crashes {
                let ways = *self.crash_ways.entry(number).or_insert_with(|| {
                    u8::try_from(node.after_crash(&self.batches).len()).expect("few writes pend")
                });
                actions.extend((0..ways).map(|way| Action::Crash { node: place_number, way }));
            }
        }
    }

    /// What arrives or becomes durable; whether nothing does so by itself.
    fn ordinary_actions(&self, state: &State, actions: &mut Vec<Action>) -> bool {
        let bound = self.cluster.bound;
        let mut prompt = None;
        for place in 0..bound.nodes() {
            let node = self.nodes.get(state.nodes[place]);
            if !node.has_pending_writes() {
                continue;
            }
            if bound.delays.is_none() || state.slow_disks & (1 << place) != 0 {
                actions.push(Action::Durable(node.place));
            } else {
                prompt.get_or_insert((Action::Durable(node.place), Action::SlowDown(node.place)));
            }
        }
        let mut last = None;
        for number in &state.bag {
            let may_wait = match self.items.get(*number) {
                Item::Waiting { .. } => continue,
                Item::Request { is_held, .. } | Item::Answer { is_held, .. } => {
                    bound.delays.is_none() || *is_held
                }
            };
            if !may_wait {
                prompt.get_or_insert((Action::Deliver(*number), Action::HoldBack(*number)));
            } else if last != Some(*number) {
                actions.push(Action::Deliver(*number));
                last = Some(*number);
            }
        }
        let Some((happens, is_put_off)) = prompt else {
            return true;
        };
        actions.push(happens);
        if bound.delays.is_some_and(|delays| state.spent.delays < delays) {
            actions.push(is_put_off);
        }
        false
    }

    /// The state after an action; none if it lies outside the bound. An error is a broken rule.
    pub(crate) fn act(&mut self, state: &State, action: Action) -> Result<Option<State>, String> {
        let mut next = state.clone();
        if self.put_off(&mut next, action) {
            return Ok(Some(next));
        }
        let (place, cause) = self.prepare(&mut next, action);
        let before = next.nodes[usize::from(place)];
        let broken = |why: String| format!("node {place} {why}");
        let reaction = self.react(before, cause).map_err(broken)?;
        let Reaction { node, ref mut effects } = self.reactions[reaction];
        let effects = std::mem::take(effects);
        next.nodes[usize::from(place)] = node;
        self.take_effect(&mut next, place, &effects);
        self.reactions[reaction].effects = effects;
        if self.view_of(node) != self.view_of(before) {
            self.check(&mut next, place).map_err(broken)?;
        }
        if !self.nodes.get(node).has_pending_writes() {
            next.slow_disks &= !(1 << place);
        }
        let is_within = self.nodes.get(node).epoch <= Epoch(self.cluster.bound.epochs);
        Ok(is_within.then_some(next))
    }

    /// If the action is one that holds something back, does it.
    fn put_off(&mut self, next: &mut State, action: Action) -> bool {
        match action {
            Action::HoldBack(number) => {
                let mut item = *self.items.get(number);
                match &mut item {
                    Item::Request { is_held, .. } | Item::Answer { is_held, .. } => *is_held = true,
                    Item::Waiting { .. } => {}
                }
                next.remove(number);
                next.add(self.items.intern(item));
            }
            Action::SlowDown(place) => next.slow_disks |= 1 << place,
            _ => return false,
        }
        next.spent.delays += 1;
        true
    }

    /// Takes out of the network what the action uses up. Returns whom it concerns, and what happens to it.
    fn prepare(&mut self, next: &mut State, action: Action) -> (u8, Cause) {
        match action {
            Action::Deliver(number) => {
                next.remove(number);
                match *self.items.get(number) {
                    Item::Request { from, slot, to, request, is_late, is_held: _ } => {
                        let tag = self.node(next, to).free_tag(from);
                        let waiting = Item::Waiting { from, slot, to, tag, is_late };
                        next.add(self.items.intern(waiting));
                        (to, Cause::Request { from, request, is_late })
                    }
                    Item::Answer { to, slot, answer, .. } => (to, Cause::Answer { slot, answer }),
                    Item::Waiting { .. } => unreachable!("a request that arrived arrives no more"),
                }
            }
            Action::Lose { asker, slot } => {
                next.spent.losses += 1;
                let slot = i32::from(slot);
                self.forget(next, asker, slot);
                (asker, Cause::Answer { slot, answer: self.lost })
            }
            Action::HoldBack(_) | Action::SlowDown(_) => unreachable!("nothing happens to a node"),
            Action::Durable(place) => (place, Cause::Durable),
            Action::Tick(place) => (place, Cause::Tick),
            Action::Timeout(place) => {
                next.spent.timeouts += 1;
                (place, Cause::Timeout)
            }
            Action::Propose(place) => {
                next.spent.proposals += 1;
                (place, Cause::Propose(next.spent.proposals))
            }
            Action::Crash { node, way } => {
                next.spent.crashes += 1;
                let slots: Vec<i32> = self.node(next, node).asked().collect();
                for slot in slots {
                    self.forget(next, node, slot);
                }
                let items = &self.items;
                let is_lost = |number: &u32| match items.get(*number) {
                    Item::Waiting { to, .. } => *to == node,
                    Item::Request { .. } | Item::Answer { .. } => false,
                };
                next.bag.retain(|number| !is_lost(number));
                (node, Cause::Crash(way))
            }
        }
    }

    /// What an event makes of a node: worked out once.
    fn react(&mut self, before: u32, cause: Cause) -> Result<usize, String> {
        if let Some(known) = self.by_cause.get(&(before, cause.word())) {
            return Ok(usize::try_from(*known).expect("a number of ours"));
        }
        let mut deeds = Vec::new();
        let node = self.work_out(before, cause, &mut deeds)?;
        let node = self.intern_node(node);
        let effects = self.effects(deeds);
        let number = self.reactions.len();
        self.reactions.push(Reaction { node, effects });
        let short = u32::try_from(number).expect("fewer than 2^32 reactions");
        self.by_cause.insert((before, cause.word()), short);
        Ok(number)
    }

    fn work_out(
        &mut self,
        before: u32,
        cause: Cause,
        deeds: &mut Vec<Deed>,
    ) -> Result<Node, String> {
        let World { cluster, batches, nodes, requests, answers, .. } = self;
        let node = nodes.get(before);
        let happening = match cause {
            Cause::Request { from, request, is_late } => {
                Happening::Request { from, request: requests.get(request), is_late }
            }
            Cause::Answer { slot, answer } => {
                Happening::Answer { slot, answer: answers.get(answer) }
            }
            Cause::Durable => Happening::Durable,
            Cause::Tick => Happening::Tick,
            Cause::Timeout => Happening::Timeout,
            Cause::Propose(number) => Happening::Propose(number),
            Cause::Crash(way) => {
                let disk = node.after_crash(batches).swap_remove(usize::from(way));
                return node.restart(disk, cluster, batches, deeds);
            }
        };
        node.react(&happening, cluster, batches, deeds)
    }

    /// The same once more, for a story.
    pub(crate) fn retell(
        &mut self,
        state: &State,
        action: Action,
    ) -> (u8, Vec<Deed>, Option<Node>) {
        let mut next = state.clone();
        let (place, cause) = self.prepare(&mut next, action);
        let mut deeds = Vec::new();
        let node = self.work_out(next.nodes[usize::from(place)], cause, &mut deeds).ok();
        (place, deeds, node)
    }

    fn effects(&mut self, deeds: Vec<Deed>) -> Vec<Effect> {
        let effects = deeds.into_iter().map(|deed| match deed {
            Deed::Forget { slot } => Effect::Forget { slot },
            Deed::Ask { slot, to, request } => {
                Effect::Ask { slot, to, request: self.requests.intern(request) }
            }
            Deed::Reply { to, tag, answer } => {
                Effect::Reply { to, tag, answer: self.answers.intern(answer) }
            }
        });
        effects.collect()
    }

    fn take_effect(&mut self, state: &mut State, me: u8, effects: &[Effect]) {
        for effect in effects {
            match *effect {
                Effect::Forget { slot } => self.forget(state, me, slot),
                Effect::Ask { slot, to, request } => {
                    let item = Item::Request {
                        from: me,
                        slot,
                        to,
                        request,
                        is_late: false,
                        is_held: false,
                    };
                    state.add(self.items.intern(item));
                }
                Effect::Reply { to: asker, tag, answer } => {
                    let items = &self.items;
                    let call =
                        state.bag.iter().copied().find_map(|number| match *items.get(number) {
                            Item::Waiting { from, slot, to, tag: its, is_late }
                                if (from, to, its) == (asker, me, tag) =>
                            {
                                Some((number, slot, is_late))
                            }
                            _ => None,
                        });
                    let (number, slot, is_late) = call.expect("open requests are in the bag");
                    state.remove(number);
                    if !is_late {
                        let item =
                            Item::Answer { from: me, to: asker, slot, answer, is_held: false };
                        state.add(self.items.intern(item));
                    }
                }
            }
        }
    }

    /// A call counts no more for its asker: the request may still arrive, the answer is nobody's.
    fn forget(&mut self, state: &mut State, asker: u8, slot: i32) {
        let place = state.bag.iter().position(|number| match *self.items.get(*number) {
            Item::Request { from, slot: its, is_late: false, .. }
            | Item::Waiting { from, slot: its, is_late: false, .. } => (from, its) == (asker, slot),
            Item::Answer { to, slot: its, .. } => (to, its) == (asker, slot),
            _ => false,
        });
        let Some(place) = place else {
            return;
        };
        match *self.items.get(state.bag.remove(place)) {
            Item::Request { from, to, request, is_held, .. } => {
                let items = &self.items;
                let is_older = |number: &u32| match *items.get(*number) {
                    Item::Request { from: f, to: t, is_late: true, .. } => (f, t) == (from, to),
                    _ => false,
                };
                let older = state.bag.iter().filter(|number| is_older(number)).count();
                let late = self.cluster.bound.late;
                if older >= late {
                    state.bag.retain(|number| !is_older(number));
                }
                if late > 0 {
                    let item = Item::Request { from, slot: 0, to, request, is_late: true, is_held };
                    state.add(self.items.intern(item));
                }
            }
            Item::Waiting { from, to, tag, .. } => {
                let item = Item::Waiting { from, slot: 0, to, tag, is_late: true };
                state.add(self.items.intern(item));
            }
            Item::Answer { .. } => {}
        }
    }

    fn intern_node(&mut self, node: Node) -> u32 {
        let view = View::of(&node);
        let number = self.nodes.intern(node);
        if self.nodes.len() > self.view_of.len() {
            self.view_of.push(self.views.intern(view));
        }
        number
    }

    fn view_of(&self, node: u32) -> u32 {
        self.view_of[usize::try_from(node).expect("a number of ours")]
    }

    /// The rules between nodes. What they say depends on history and on what they look at, and is worked out once.
    fn check(&mut self, state: &mut State, changed: u8) -> Result<(), String> {
        let views = state.nodes.map(|node| self.view_of(node));
        let key = (state.history, changed, views);
        if let Some(history) = self.judged.get(&key) {
            state.history = *history;
            return Ok(());
        }
        let World { cluster, batches, nodes, histories, .. } = self;
        let node = nodes.get(state.nodes[usize::from(changed)]);
        let history = histories.get(state.history).after(node, batches)?;
        let all = state.nodes[..cluster.bound.nodes()].iter().map(|number| nodes.get(*number));
        history.check(all, node, cluster.bound.voters, batches)?;
        self.elections = self.elections.max(history.elections());
        self.committed = self.committed.max(history.committed());
        state.history = histories.intern(history);
        self.judged.insert(key, state.history);
        Ok(())
    }
}
