//! The influence of a result: everything that it can depend on, over all runs.
//!
//! In: the version of a file. Out: [`Influences`], the activities that the version depends on, each
//! with the last moment that counts. `docs/influence.md` states the model: what an activity gives
//! out depends on all that it took in before. The search goes
//!
//! - from a version to the activities that gave it out, and to the versions that it derives from;
//! - from an activity to the one that started it, until the start;
//! - to what it took in: files and channels, other processes' statuses and signals;
//! - from a file that a run found to the run that makes it now ([`PresentMakers`]).
//!
//! Invariant: the search leaves out only what a rule of [`crate::reductions`] proves to carry
//! nothing.

use std::collections::{BTreeSet, hash_map::Entry};
use std::rc::Rc;

use backstory_eventlog::event::Time;
use backstory_graph::lineage::{forgets, uses};
use backstory_graph::model::{ActivityId, Edge, EntityId, EntityKind, Informed, Relation};
use backstory_store::{ActivityKey, EntityKey, RunKey};
use backstory_workflow::paths::{base_name, is_of_kernel};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::Result;
use crate::loaded_runs::{Heard, LoadedRun, LoadedRuns, Taking};
use crate::present_makers::PresentMakers;
use crate::reductions;
use crate::repetition::repetition;
use crate::shell_flow::{Given, Range, ShellFlow, Statements};

/// The activities that a result depends on.
#[derive(Debug, Clone, Default)]
pub struct Influences {
    /// The activities, each with the last moment at which what it took in counts.
    pub until: FxHashMap<ActivityKey, Time>,
    /// The result, and the versions that other runs found and a run made.
    pub results: BTreeSet<EntityKey>,
    /// The runs of the activities and of the result.
    pub runs: BTreeSet<RunKey>,
    /// Files that a program copied: of what it took in later, only these count.
    copied: FxHashSet<(ActivityKey, EntityId)>,
    /// Shells of which some statements count only. All of another activity counts.
    given: FxHashMap<ActivityKey, Given>,
}

impl Influences {
    /// True if the result depends on what an activity took in.
    pub fn counts(&self, key: ActivityKey, taking: &Taking) -> bool {
        let until = self.until.get(&key);
        let is_before = until.is_some_and(|until| taking.start <= *until);
        is_before && self.leads(key, taking.by, false)
            || self.copied.contains(&(key, taking.entity))
    }

    /// True if what counts of an activity can depend on what some of its statements took in.
    fn leads(&self, key: ActivityKey, by: Option<Range>, is_status: bool) -> bool {
        let given = self.given.get(&key);
        given.is_none_or(|given| given.flow.leads(by, &given.by, is_status))
    }

    /// The part of an activity that counts, for a search that goes on from there.
    pub fn reached(&self, key: ActivityKey) -> Option<Reached> {
        let until = *self.until.get(&key)?;
        let by = self.given.get(&key).map(|given| given.by.clone());
        Some(Reached { key, until, by })
    }

    /// Notes that an activity counts. False if all of that counted already.
    fn reach(&mut self, one: &Reached, flow: Option<Rc<ShellFlow>>) -> bool {
        let Reached { key, until, by } = one;
        let given = by.as_ref().zip(flow);
        let Some(known) = self.until.get_mut(key) else {
            self.until.insert(*key, *until);
            self.runs.insert(key.run());
            if let Some((by, flow)) = given {
                let by = by.clone();
                self.given.insert(*key, Given { flow, by });
            }
            return true;
        };
        let is_later = *known < *until;
        *known = (*known).max(*until);
        let grows = match (self.given.get_mut(key), given) {
            (None, _) => false,
            (Some(_), None) => self.given.remove(key).is_some(),
            (Some(known), Some((by, _))) => {
                let count = known.by.len();
                known.by.extend(by);
                known.by.len() > count
            }
        };
        is_later || grows
    }
}

/// An activity that counts.
#[derive(Debug, Clone)]
pub struct Reached {
    /// The activity.
    pub key: ActivityKey,
    /// The last moment that counts.
    pub until: Time,
    /// The statements of a shell that count. `None`: all.
    pub by: Option<Statements>,
}

/// How much of what an activity took in counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Everything.
    All,
    /// Everything within the runs of the versions.
    Run,
    /// Only content: what was read from files and channels.
    Content,
}

/// The nodes that a search has still to visit, each with the last moment that counts.
#[derive(Default)]
struct SearchQueue {
    activities: Vec<Reached>,
    versions: Vec<(EntityKey, Time, bool)>,
    seen: FxHashMap<EntityKey, Time>,
    /// Activities whose success is no matter of the search.
    steps: FxHashSet<ActivityKey>,
}

impl SearchQueue {
    fn activity(&mut self, run: RunKey, at: usize, until: Time) {
        self.statements(run, at, until, None);
    }

    /// Adds some statements of a shell. `None`: all.
    fn statements(&mut self, run: RunKey, at: usize, until: Time, by: Option<Statements>) {
        let key = ActivityKey::new(run, ActivityId(at as u32));
        self.activities.push(Reached { key, until, by });
    }

    fn version(&mut self, run: RunKey, entity: EntityId, until: Time) {
        let key = EntityKey::new(run, entity);
        self.versions.push((key, until, false));
    }

    /// Notes a visit. False if an earlier visit counted as much.
    fn visit(&mut self, key: EntityKey, until: Time) -> bool {
        match self.seen.entry(key) {
            Entry::Occupied(mut known) if *known.get() < until => {
                known.insert(until);
                true
            }
            Entry::Occupied(_) => false,
            Entry::Vacant(free) => {
                free.insert(until);
                true
            }
        }
    }
}

/// Searches backwards over runs.
pub struct InfluenceSearch<'s> {
    /// The runs.
    pub runs: &'s LoadedRuns<'s>,
    makers: &'s PresentMakers<'s>,
}

impl<'s> InfluenceSearch<'s> {
    /// A search over the runs of a store.
    pub fn new(runs: &'s LoadedRuns<'s>, makers: &'s PresentMakers<'s>) -> InfluenceSearch<'s> {
        InfluenceSearch { runs, makers }
    }

    /// The activities that gave out a version, each until when, sorted. Versions with the same ones
    /// depend on the same. Empty if that cannot be said, because the kernel made the version from
    /// other versions.
    pub fn givers(&self, version: EntityKey) -> Result<Vec<(ActivityKey, Time)>> {
        let run = self.runs.get(version.run())?;
        let path = &run.recording.entity(version.local()).path;
        if !run.origins(version.local()).is_empty() || run.is_redirected(path) {
            return Ok(Vec::new());
        }
        let givers = run.makers(version.local()).iter();
        let givers = givers.chain(run.mode_changes(version.local()));
        let givers = givers.map(|&(at, interval)| {
            let key = ActivityKey::new(version.run(), ActivityId(at as u32));
            (key, interval.end)
        });
        let mut givers: Vec<_> = givers.collect();
        givers.sort_unstable();
        givers.dedup();
        Ok(givers)
    }

    /// The activities and versions that a version depends on.
    pub fn of(&self, version: EntityKey, extent: Extent) -> Result<Influences> {
        self.of_all([version], extent)
    }

    /// The activities and versions that at least one of these versions depends on.
    pub fn of_all(
        &self,
        versions: impl IntoIterator<Item = EntityKey>,
        extent: Extent,
    ) -> Result<Influences> {
        let mut found = Influences::default();
        let mut queue = SearchQueue::default();
        for version in versions {
            found.runs.insert(version.run());
            queue.versions.push((version, Time::MAX, true));
        }
        self.search(queue, extent, found)
    }

    /// All that activities depend on, each until a moment. `steps`: activities that are executed
    /// again on their own if they are stale. If such a one now fails, the rest is not executed, so
    /// its former success decides nothing.
    pub fn of_activities(
        &self,
        activities: Vec<Reached>,
        steps: FxHashSet<ActivityKey>,
    ) -> Result<Influences> {
        let queue = SearchQueue {
            activities,
            steps,
            ..SearchQueue::default()
        };
        self.search(queue, Extent::All, Influences::default())
    }

    fn search(
        &self,
        mut queue: SearchQueue,
        extent: Extent,
        mut found: Influences,
    ) -> Result<Influences> {
        loop {
            if let Some((key, until, is_result)) = queue.versions.pop() {
                if queue.visit(key, until) {
                    self.version((key, until, is_result), extent, &mut queue, &mut found)?;
                }
            } else if let Some(one) = queue.activities.pop() {
                let run = self.runs.get(one.key.run())?;
                let flow = one
                    .by
                    .as_ref()
                    .and_then(|_| run.flow(one.key.local().0 as usize));
                if found.reach(&one, flow) {
                    self.activity((one.key, one.until), extent, &mut queue, &found)?;
                }
            } else {
                return Ok(found);
            }
        }
    }

    /// Goes on from a version to what gave it out.
    fn version(
        &self,
        (key, until, is_result): (EntityKey, Time, bool),
        extent: Extent,
        queue: &mut SearchQueue,
        found: &mut Influences,
    ) -> Result<()> {
        let run = self.runs.get(key.run())?;
        let entity = run.recording.entity(key.local());
        if forgets(entity.kind, &entity.path) || is_of_kernel(&entity.path) {
            return Ok(());
        }
        let leaves = extent != Extent::Run && !is_result;
        if leaves && let Some(now) = self.makers.of(&run, entity)? {
            found.runs.insert(now.run());
            queue.versions.push((now, Time::MAX, true));
            return Ok(());
        }
        if is_result {
            found.results.insert(key);
        }
        if run.is_redirected(&entity.path) && run.is_made(entity) {
            let all = 0..run.recording.activities.len();
            all.for_each(|at| queue.activity(key.run(), at, Time::MAX));
        }
        let changes = run.mode_changes(entity.id);
        // A program that held the file open for its children decided which of them ran.
        for &(at, interval) in run.makers(entity.id).iter().chain(changes) {
            if interval.start > until {
                continue;
            }
            // A program that copies files puts the content of one into one.
            let (start, end) = (interval.start, until.min(interval.end));
            let last = match run.copied_from(at, entity) {
                Some(files) => {
                    let by = ActivityKey::new(key.run(), ActivityId(at as u32));
                    for file in files {
                        found.copied.insert((by, file));
                        queue.version(key.run(), file, until);
                    }
                    run.recording.activities[at].interval.start
                }
                None => interval.end,
            };
            let flow = run.flow(at);
            let by = flow.map(|flow| flow.made(&run.recording, entity, start, end));
            queue.statements(key.run(), at, until.min(last), by);
        }
        for &(at, time) in run.movers(entity.id) {
            queue.activity(key.run(), at, until.min(time));
        }
        for derived in run.sources_of(entity.id) {
            if derived.time <= until {
                let origin = run.recording.entity(derived.from);
                let is_result = is_result && run.is_made(origin);
                let from = EntityKey::new(key.run(), derived.from);
                queue
                    .versions
                    .push((from, until.min(derived.time), is_result));
            }
        }
        Ok(())
    }

    /// Goes on from an activity to all that it took in until a moment.
    fn activity(
        &self,
        (key, until): (ActivityKey, Time),
        extent: Extent,
        queue: &mut SearchQueue,
        found: &Influences,
    ) -> Result<()> {
        let run = &*self.runs.get(key.run())?;
        let recording = &run.recording;
        let at = key.local().0 as usize;
        let activity = &recording.activities[at];
        let follows = |parent: &ActivityId| parent.0 as usize != at && extent != Extent::Content;
        if let Some(parent) = activity.parent.filter(follows) {
            let start = activity.interval.start;
            let flow = run.flow(parent.0 as usize);
            let by = flow.and_then(|flow| flow.child(at));
            queue.statements(key.run(), parent.0 as usize, until.min(start), by);
        }
        for edge in &recording.edges[at] {
            if edge.interval.start > until
                || !reductions::takes_in(run, at, edge)
                || !found.leads(key, run.taking(at, edge).by, false)
            {
                continue;
            }
            if extent == Extent::Content && !uses(edge.relation, false) {
                continue;
            }
            let last = until.min(edge.interval.end);
            queue.version(key.run(), edge.entity, last);
            if edge.relation == Relation::List {
                self.names(run, (at, edge), last, queue)?;
            }
        }
        let heard = run.heard(at).iter();
        let flow = run.flow(at);
        for heard in heard.filter(|_| extent != Extent::Content) {
            let by = flow.as_ref();
            let by = by.and_then(|flow| flow.heard(recording, heard.from));
            if !found.leads(key, by, true) {
                continue;
            }
            let from = ActivityKey::new(key.run(), ActivityId(heard.from as u32));
            let is_success = recording.activities[heard.from].exit == Some(0);
            if heard.why == Informed::Wait && is_success && queue.steps.contains(&from) {
                continue;
            }
            let hears =
                || reductions::hears(run, at, heard, until) || self.fails_now(run, at, heard);
            if heard.time <= until && hears() {
                let end = match heard.why {
                    Informed::Wait => Time::MAX,
                    _ => heard.time,
                };
                self.go_on(run, heard.from, end, queue)?;
            }
        }
        for other in reductions::sharers(run, at) {
            queue.activity(key.run(), other, until);
        }
        Ok(())
    }

    /// True if a status counts because the program would fail now: a file that it read is gone.
    fn fails_now(&self, run: &LoadedRun, at: usize, heard: &Heard) -> bool {
        let uses_status = || !run.is_driver(at) && !run.texts.ignores_statuses(&run.recording, at);
        heard.why == Informed::Wait
            && uses_status()
            && run.recording.edges[heard.from].iter().any(|edge| {
                let read = run.recording.entity(edge.entity);
                edge.relation == Relation::Read
                    && (read.kind, read.version) == (EntityKind::File, 0)
                    && run.left(&read.path).is_none()
                    && self.makers.is_gone(&read.path)
            })
    }

    /// Goes on to an activity whose status, signal or names were taken in.
    fn go_on(
        &self,
        run: &LoadedRun,
        from: usize,
        end: Time,
        queue: &mut SearchQueue,
    ) -> Result<()> {
        let this = run.recording.key;
        let Some(later) = repetition(self.runs, self.makers, run, from)? else {
            let flow = run.flow(from).filter(|_| end != Time::MAX);
            let by = flow.map(|flow| flow.during(end, end));
            queue.statements(this, from, end, by);
            return Ok(());
        };
        queue.activity(later.run(), later.local().0 as usize, Time::MAX);
        // Its words still are those that the shell computed.
        let activity = &run.recording.activities[from];
        if let Some(parent) = activity.parent {
            queue.activity(this, parent.0 as usize, activity.interval.start);
        }
        Ok(())
    }

    /// The names in a directory depend on the activities that gave or took them.
    fn names(
        &self,
        run: &LoadedRun,
        (lister, edge): (usize, &Edge),
        until: Time,
        queue: &mut SearchQueue,
    ) -> Result<()> {
        let directory = &run.recording.entity(edge.entity).path;
        for &(at, time, file) in run.worked_in(directory) {
            let name = base_name(&run.recording.entity(file).path);
            if time <= until && run.may_take(lister, edge, name) {
                self.go_on(run, at, time, queue)?;
            }
        }
        Ok(())
    }
}
