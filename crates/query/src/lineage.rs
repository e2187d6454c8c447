//! `of` and `uses`: all time-respecting paths from a file, over all runs.

mod label;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;

use backstory_eventlog::event::Time;
use backstory_graph::lineage::forgets;
use backstory_graph::model::EntityKind;
use backstory_store::{EntityKey, RunKey, Store};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::answer::{Flow, Lineage, Link, Node, Scope};
use crate::neighbours::{Direction, Key, Neighbour, NeighbourFinder, Seen};
use crate::root::{self, Asked};
use crate::runs::resolve;
use crate::{Error, Globs, Result};
use label::{Label, Labels, rank_of, time_of};

/// The activities and entities that the newest version of `path` came from.
pub fn ancestry(store: &dyn Store, path: &Path, scope: &Scope) -> Result<Lineage> {
    let _one_state = store.reading()?;
    let run = within(store, scope)?;
    let (newest, entity) = root::find(store, path, run)?;
    if entity.kind == EntityKind::Missing {
        return Err(Error::OnlyMissing(Asked::new(path)?.absolute));
    }
    follow(store, &[newest], Direction::Back, scope, run)
}

/// The activities and entities that came from the newest version of `path`, in every run that used
/// it.
pub fn influence(store: &dyn Store, path: &Path, scope: &Scope) -> Result<Lineage> {
    let _one_state = store.reading()?;
    let run = within(store, scope)?;
    let roots = root::find_all(store, path, run)?;
    follow(store, &roots, Direction::Forth, scope, run)
}

/// The ancestry of given versions, which [`crate::subject`] finds.
pub fn ancestry_of(store: &dyn Store, versions: &[EntityKey], scope: &Scope) -> Result<Lineage> {
    follow(
        store,
        versions,
        Direction::Back,
        scope,
        within(store, scope)?,
    )
}

/// Everything that came from given versions, as far as it is found while `goes_on` is true. It is
/// asked before each node.
///
/// # Errors
///
/// The store cannot be read.
pub fn influence_while(
    store: &dyn Store,
    versions: &[EntityKey],
    scope: &Scope,
    goes_on: &dyn Fn() -> bool,
) -> Result<Lineage> {
    let run = within(store, scope)?;
    follow_while(store, versions, Direction::Forth, scope, run, goes_on)
}

/// Everything that came from given versions.
pub fn influence_of(store: &dyn Store, versions: &[EntityKey], scope: &Scope) -> Result<Lineage> {
    follow(
        store,
        versions,
        Direction::Forth,
        scope,
        within(store, scope)?,
    )
}

fn within(store: &dyn Store, scope: &Scope) -> Result<Option<RunKey>> {
    match &scope.run {
        Some(run) => Ok(Some(
            crate::runs::record(store, &resolve(store, Some(run))?)?.key,
        )),
        None => Ok(None),
    }
}

/// Follows all steps from `roots`.
pub fn follow(
    store: &dyn Store,
    roots: &[EntityKey],
    direction: Direction,
    scope: &Scope,
    run: Option<RunKey>,
) -> Result<Lineage> {
    follow_while(store, roots, direction, scope, run, &|| true)
}

fn follow_while(
    store: &dyn Store,
    roots: &[EntityKey],
    direction: Direction,
    scope: &Scope,
    run: Option<RunKey>,
    goes_on: &dyn Fn() -> bool,
) -> Result<Lineage> {
    let _one_state = store.reading()?;
    let exclude = Globs::new(&scope.exclude)?;
    let mut search = Search::new(store, direction, scope, run, exclude);
    for root in roots {
        if !goes_on() {
            search.answer.cut = true;
            break;
        }
        search.start(Key::Entity(*root), direction.always())?;
    }
    search.run(goes_on)?;
    Ok(search.finished())
}

/// The neighbours of one node, which is the only subject of the answer. `reach`: the time that
/// matters at the node, as [`Lineage::reach`] has it; by default any time.
///
/// # Errors
///
/// If the store fails, or does not have the node.
pub fn hop(
    store: &dyn Store,
    from: Key,
    reach: Option<Time>,
    direction: Direction,
    scope: &Scope,
) -> Result<Lineage> {
    let _one_state = store.reading()?;
    let (run, exclude) = (within(store, scope)?, Globs::new(&scope.exclude)?);
    let mut search = Search::new(store, direction, scope, run, exclude);
    search.start(from, reach.unwrap_or(direction.always()))?;
    search.step()?;
    Ok(search.finished())
}

/// A search for everything that can be reached. Labels leave the queue best first, and time only
/// shrinks along a path, so each node is expanded once. With a limited depth, a node is expanded
/// once for each label that no other label covers. A node is also expanded again if what the search
/// met later brings more steps around it: see [`NeighbourFinder::changed_nodes`].
struct Search<'s> {
    store: &'s dyn Store,
    neighbours: NeighbourFinder<'s>,
    direction: Direction,
    depth: Option<usize>,
    most: Option<usize>,
    exclude: Globs,
    /// True if every node will be expanded.
    reads_ahead: bool,
    answer: Lineage,
    /// The index of a node in the answer. `None` if it is left out.
    index: FxHashMap<Key, Option<usize>>,
    labels: Vec<Labels>,
    /// The nodes and flows of the links in the answer. A long history has a million.
    links: FxHashSet<(u32, u32, Flow)>,
    queue: BinaryHeap<(Label, Reverse<usize>, Key, Time)>,
    runs: FxHashMap<RunKey, String>,
}

impl<'s> Search<'s> {
    fn new(
        store: &'s dyn Store,
        direction: Direction,
        scope: &Scope,
        run: Option<RunKey>,
        exclude: Globs,
    ) -> Search<'s> {
        Search {
            store,
            neighbours: NeighbourFinder::new(store, direction, scope, run),
            direction,
            depth: scope.depth,
            most: scope.most,
            exclude,
            reads_ahead: false,
            answer: Lineage::default(),
            index: FxHashMap::default(),
            labels: Vec::new(),
            links: FxHashSet::default(),
            queue: BinaryHeap::new(),
            runs: FxHashMap::default(),
        }
    }

    /// Adds a subject.
    fn start(&mut self, key: Key, time: Time) -> Result<()> {
        let first_new = self.answer.nodes.len();
        if let Some(node) = self.node(key, true)? {
            self.visit(node, key, time, 0);
        }
        self.complete(first_new)?;
        self.answer.roots = self.answer.nodes.len();
        Ok(())
    }

    fn run(&mut self, goes_on: &dyn Fn() -> bool) -> Result<()> {
        self.reads_ahead = self.depth.is_none() && self.most.is_none();
        while !self.queue.is_empty() {
            if !goes_on() {
                self.answer.cut = true;
                break;
            }
            self.step()?;
        }
        Ok(())
    }

    /// Expands the best node of the queue, if there is one.
    fn step(&mut self) -> Result<()> {
        let Some((label, Reverse(node), key, time)) = self.queue.pop() else {
            return Ok(());
        };
        if !self.labels[node].iter().any(|known| *known == label) {
            return Ok(());
        }
        let seen = match self.answer.nodes[node] {
            Node::Entity {
                ident,
                version,
                kind,
                ..
            } => Some(Seen {
                ident,
                version,
                kind,
            }),
            Node::Activity { .. } => None,
        };
        let first_new = self.answer.nodes.len();
        for neighbour in self.neighbours.around(key, seen, time)? {
            let other = neighbour
                .from
                .and_then(|from| self.index.get(&from).copied());
            let from = other.flatten().unwrap_or(node);
            self.take(from, label.depth.0, neighbour)?;
        }
        self.complete(first_new)?;
        self.queue_changed();
        Ok(())
    }

    /// Puts the nodes into the queue again around which there are more steps by now.
    fn queue_changed(&mut self) {
        for key in self.neighbours.changed_nodes() {
            let Some(node) = self.index.get(&key).copied().flatten() else {
                continue;
            };
            for label in self.labels[node].iter() {
                let time = time_of(label.rank, self.direction);
                self.queue.push((*label, Reverse(node), key, time));
            }
        }
    }

    /// Adds what is known of their contents to the nodes from `first` on. A process has used
    /// hundreds of files, and one question for all of them takes less time.
    fn complete(&mut self, first: usize) -> Result<()> {
        let (mut idents, mut former) = (Vec::new(), Vec::new());
        for node in &self.answer.nodes[first..] {
            if let Node::Entity {
                ident: Some(ident),
                version,
                ..
            } = node
            {
                idents.push(*ident);
                former.extend((*version == 0).then_some(*ident));
            }
        }
        let facts = self.neighbours.facts();
        facts.read(&idents)?;
        for node in &mut self.answer.nodes[first..] {
            if let Node::Entity {
                ident: Some(ident),
                digest,
                kept,
                ..
            } = node
            {
                let content = facts.content(ident)?;
                (*digest, *kept) = (content.digest, content.kept);
            }
        }
        match self.reads_ahead {
            true => self.neighbours.read_ahead(&former),
            false => Ok(()),
        }
    }

    /// The answer, with the time that matters at each node.
    fn finished(mut self) -> Lineage {
        let best = |labels: &Labels| labels.iter().map(|label| label.rank).max();
        let direction = self.direction;
        let reach = self.labels.iter();
        self.answer.reach = reach
            .map(|labels| best(labels).map_or(direction.always(), |rank| time_of(rank, direction)))
            .collect();
        self.answer
    }

    /// Follows one step from `node`.
    fn take(&mut self, node: usize, depth: usize, step: Neighbour) -> Result<()> {
        // An activity made the derived version, and its own links lead there, too.
        let crosses = matches!(step.to, Key::Activity(_)) || step.flow == Flow::Derived;
        let depth = depth + usize::from(crosses);
        if self.depth.is_some_and(|most| depth > most) {
            self.answer.cut = true;
            return Ok(());
        }
        let full = self
            .most
            .is_some_and(|most| self.answer.nodes.len() >= most);
        if full && !self.index.contains_key(&step.to) {
            self.answer.cut = true;
            return Ok(());
        }
        let Some(other) = self.node(step.to, false)? else {
            return Ok(());
        };
        let (from, to) = match self.direction {
            Direction::Back => (other, node),
            Direction::Forth => (node, other),
        };
        // An answer has fewer nodes than that: each takes a hundred bytes.
        let ends = [from, to].map(|node| node as u32);
        if self.links.insert((ends[0], ends[1], step.flow)) {
            let (flow, certainty, interval) = (step.flow, step.certainty, step.interval);
            self.answer.links.push(Link {
                from,
                to,
                flow,
                certainty,
                interval,
            });
        }
        if !self.forgets(other) {
            self.visit(other, step.to, step.time, depth);
        }
        Ok(())
    }

    /// True for a device that passes nothing on.
    fn forgets(&self, node: usize) -> bool {
        match &self.answer.nodes[node] {
            Node::Entity { kind, path, .. } => forgets(*kind, path),
            Node::Activity { .. } => false,
        }
    }

    /// Puts a node into the queue, unless it was reached at least as well.
    fn visit(&mut self, node: usize, key: Key, time: Time, depth: usize) {
        let rank = rank_of(time, self.direction);
        let depth = if self.depth.is_some() { depth } else { 0 };
        let label = Label {
            rank,
            depth: Reverse(depth),
        };
        if self.labels[node].add(label) {
            self.queue.push((label, Reverse(node), key, time));
        }
    }

    /// The index of a node in the answer, added when first seen. `None` if it is excluded.
    fn node(&mut self, key: Key, root: bool) -> Result<Option<usize>> {
        if let Some(known) = self.index.get(&key) {
            return Ok(*known);
        }
        let node = match key {
            Key::Entity(entity_key) => {
                let entity = self.store.entity(entity_key)?;
                if !root && self.exclude.matches(&entity.path) {
                    self.index.insert(key, None);
                    return Ok(None);
                }
                Node::Entity {
                    id: entity_key.0,
                    run: self.run_id(entity_key.run())?,
                    kind: entity.kind,
                    path: entity.path,
                    version: entity.version,
                    ident: entity.ident,
                    // See `complete`.
                    digest: None,
                    kept: false,
                }
            }
            Key::Activity(activity_key) => {
                let activity = self.store.activity(activity_key)?;
                Node::Activity {
                    id: activity_key.0,
                    run: self.run_id(activity_key.run())?,
                    pid: activity.pid,
                    epoch: activity.epoch,
                    exec_path: activity.exec_path,
                    argv: activity.argv,
                    cwd: activity.cwd,
                    interval: activity.interval,
                    env_set: activity.env_set,
                    env_unset: activity.env_unset,
                }
            }
        };
        let place = self.answer.nodes.len();
        self.answer.nodes.push(node);
        self.labels.push(Labels::default());
        self.index.insert(key, Some(place));
        Ok(Some(place))
    }

    fn run_id(&mut self, key: RunKey) -> Result<String> {
        if let Some(id) = self.runs.get(&key) {
            return Ok(id.clone());
        }
        let id = self.store.run_id(key)?;
        let id = id.ok_or_else(|| Error::NoRun(format!("number {}", key.0)))?;
        self.runs.insert(key, id.clone());
        Ok(id)
    }
}
