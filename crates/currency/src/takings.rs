//! The inputs that an activity took in, compared with those that it would find now.
//!
//! In: an activity. Out: the reasons that its uses give, each with the moment of the use. A
//! question about a result counts those until the last moment that matters
//! ([`Influences`](crate::influence::Influences)). Each activity is judged once.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use backstory_eventlog::event::{Bytes, Time};
use backstory_files::CLOCK_GRANULARITY;
use backstory_graph::model::{Edge, Entity, EntityId, EntityKind, Relation};
use backstory_store::{ActivityKey, EntityKey, RunKey, Store};
use backstory_workflow::paths::{absolute, base_name, is_system};
use backstory_workflow::steps::is_one;
use backstory_workflow::tools::knowledge;
use rustc_hash::FxHashMap;

use crate::Result;
use crate::file_state::FileState;
use crate::influence::Influences;
use crate::loaded_runs::{CountedUse, LoadedRun, LoadedRuns, Taking};
use crate::reason::Reason;
use crate::reductions;
use crate::step_inputs::InputJudge;

/// A reason that one use gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaleUse {
    /// The taking.
    pub taking: Taking,
    /// The moment from which on another use counts instead: the activity then read the content of
    /// the file that it had looked at.
    pub end: Option<Time>,
    /// The file that was used, by its recorded path.
    pub path: Bytes,
    /// True if its content was read or executed.
    pub is_read: bool,
    /// True if it is a directory whose names were read.
    pub is_listed: bool,
    /// Why the same use would now find something else.
    pub reason: Reason,
}

impl StaleUse {
    /// True if a result with these influences depends on the use by an activity.
    pub fn counts(&self, key: ActivityKey, influences: &Influences) -> bool {
        let until = influences.until.get(&key);
        let is_over = until.is_some_and(|until| self.end.is_some_and(|end| end <= *until));
        !is_over && influences.counts(key, &self.taking)
    }
}

/// Judges what activities took in.
pub struct TakingsJudge<'j> {
    store: &'j dyn Store,
    runs: &'j LoadedRuns<'j>,
    inputs: &'j InputJudge<'j>,
    judged: RefCell<FxHashMap<ActivityKey, Rc<Vec<StaleUse>>>>,
    worked: RefCell<FxHashMap<Vec<u8>, Time>>,
}

impl<'j> TakingsJudge<'j> {
    /// Judges activities of a store's runs.
    pub fn new(
        store: &'j dyn Store,
        runs: &'j LoadedRuns<'j>,
        inputs: &'j InputJudge<'j>,
    ) -> TakingsJudge<'j> {
        TakingsJudge {
            store,
            runs,
            inputs,
            judged: RefCell::default(),
            worked: RefCell::default(),
        }
    }

    /// Judges single uses.
    pub fn inputs(&self) -> &'j InputJudge<'j> {
        self.inputs
    }

    /// The reasons that a result is not what its makers would give out now.
    pub fn reasons(&self, influences: &Influences) -> Result<BTreeSet<Reason>> {
        let mut reasons = BTreeSet::new();
        for &key in influences.until.keys() {
            let stale = self.stale_uses(key)?;
            let stale = stale.iter();
            let stale = stale.filter(|stale| stale.counts(key, influences));
            reasons.extend(stale.map(|stale| stale.reason.clone()));
        }
        for &version in &influences.results {
            let run = self.runs.get(version.run())?;
            reasons.extend(failure(&run, version.local()));
        }
        Ok(reasons)
    }

    /// The uses of an activity that would now find something else.
    pub fn stale_uses(&self, key: ActivityKey) -> Result<Rc<Vec<StaleUse>>> {
        if let Some(known) = self.judged.borrow().get(&key) {
            return Ok(known.clone());
        }
        let stale = Rc::new(self.judge(key)?);
        self.judged.borrow_mut().insert(key, stale.clone());
        Ok(stale)
    }

    fn judge(&self, key: ActivityKey) -> Result<Vec<StaleUse>> {
        let run = self.runs.get(key.run())?;
        let at = key.local().0 as usize;
        let mut stale = Vec::new();
        for CountedUse { edge, taking, .. } in reductions::counted_uses(&run, at).iter() {
            let entity = run.recording.entity(edge.entity);
            // The activity makes it anew before it reads it.
            let is_own = run
                .makers(edge.entity)
                .iter()
                .any(|(maker, _)| *maker == at);
            if is_own && entity.version > 0 {
                continue;
            }
            let worked = |directory: &[u8]| self.worked(&run, directory);
            let mut reason = self.inputs.reason(&run, at, edge, &worked)?;
            if reason.is_none() && edge.relation == Relation::List {
                reason = self.changed_behind(&run, at, edge)?;
            }
            let Some(reason) = reason else { continue };
            if run.is_driver(at) && self.decided_since(&run, at, &entity.path)? {
                continue;
            }
            stale.push(StaleUse {
                taking: *taking,
                end: reductions::end_of_look(&run, at, edge),
                path: entity.path.clone(),
                is_read: is_read(edge.relation, entity),
                is_listed: edge.relation == Relation::List,
                reason,
            });
        }
        stale.extend(self.named_files(&run, at)?);
        for derived in run.linked(at) {
            let entity = run.recording.entity(derived.from);
            if let Some(reason) = self.inputs.origin(&run, entity)? {
                stale.push(StaleUse {
                    taking: Taking {
                        entity: derived.from,
                        start: derived.time,
                        by: None,
                    },
                    end: None,
                    path: entity.path.clone(),
                    is_read: true,
                    is_listed: false,
                    reason,
                });
            }
        }
        Ok(stale)
    }

    /// Changed files that the words of a program name whose look-ups no recorder saw.
    fn named_files(&self, run: &LoadedRun, at: usize) -> Result<Vec<StaleUse>> {
        let activity = &run.recording.activities[at];
        let mut stale = Vec::new();
        if activity.lookups_known || activity.epoch == 0 {
            return Ok(stale);
        }
        for word in activity.argv.iter().skip(1) {
            let path = Bytes::from(absolute(word, &activity.cwd));
            let used = |edge: &Edge| run.recording.entity(edge.entity).path == path;
            if is_system(&path) || run.recording.edges[at].iter().any(used) {
                continue;
            }
            if self.has_changed(run, &path)? {
                stale.push(StaleUse {
                    taking: Taking {
                        entity: EntityId(u32::MAX),
                        start: activity.interval.start,
                        by: None,
                    },
                    end: None,
                    path: path.clone(),
                    is_read: false,
                    is_listed: false,
                    reason: Reason::MayHaveRead(path),
                });
            }
        }
        Ok(stale)
    }

    /// True if a file that a word may name is another one than at the end of the run.
    fn has_changed(&self, run: &LoadedRun, path: &Bytes) -> Result<bool> {
        let files = self.inputs.files;
        if let Some(known) = run.left(path).or_else(|| run.before(path)) {
            let state = files.state(path, known, run.ended)?;
            return Ok(state != FileState::Current);
        }
        Ok(match files.present.link(path) {
            Ok(now) => now.mtime.max(now.ctime) > run.ended,
            // Some run has seen a file there.
            Err(_) => self.store.at_path(path)?.iter().any(|key| {
                let seen = self.runs.get(key.run());
                seen.is_ok_and(|run| run.recording.entity(key.local()).kind == EntityKind::File)
            }),
        })
    }

    /// The directory of a listing, if its names may have changed between the use and the moment at
    /// which they were stored. Changes by the run itself are known. A change by a later run matters
    /// only if it concerns a name that the activity can have taken.
    fn changed_behind(&self, run: &LoadedRun, at: usize, edge: &Edge) -> Result<Option<Reason>> {
        let path = &run.recording.entity(edge.entity).path;
        let now = self.inputs.files.present.listing(path);
        let Some((real, stored)) = now.and_then(|now| {
            let stored = run.listings.get(&*now.real)?;
            Some((now.real, stored))
        }) else {
            return Ok(None);
        };
        let own = [path, &real].map(|path| run.worked_in(path)).concat();
        let own = own.iter().map(|&(_, time, _)| time).max();
        let known = edge.interval.start.max(own.unwrap_or(Time::MIN));
        let is_search = || {
            let views = self.inputs.views;
            views.is_module_search(run, at, path, &BTreeSet::new())
        };
        let patterns = run.name_patterns(at, edge);
        let is_known = || stored.changed <= known + CLOCK_GRANULARITY;
        // `rerun` itself puts files back when a repetition has ended.
        let is_repetition = run.recording.details.summary.repeats.is_some();
        if is_repetition || is_known() || patterns.match_nothing() || is_search() {
            return Ok(None);
        }
        let mut last = Time::MIN;
        let workers = self.workers(&real)?.into_iter();
        for key in workers.filter(|key| *key != run.recording.key) {
            let other = self.runs.get(key)?;
            let worked = other.worked_in(&real).iter();
            for &(_, time, file) in worked.filter(|(_, time, _)| *time > known) {
                if patterns.may_match(base_name(&other.recording.entity(file).path)) {
                    return Ok(Some(Reason::MayHaveChanged(path.clone())));
                }
                last = last.max(time);
            }
        }
        let is_known = stored.changed <= last.saturating_add(CLOCK_GRANULARITY);
        Ok((!is_known).then(|| Reason::MayHaveChanged(path.clone())))
    }

    /// The runs that made files in a directory.
    fn workers(&self, directory: &[u8]) -> Result<BTreeSet<RunKey>> {
        let inside = [directory.strip_suffix(b"/").unwrap_or(directory), b"/"].concat();
        let made = self.store.made_in(&inside)?;
        Ok(made.iter().map(|(_, key)| key.run()).collect())
    }

    /// The last time at which recorded runs worked in a directory.
    fn worked(&self, run: &LoadedRun, directory: &[u8]) -> Time {
        if let Some(known) = self.worked.borrow().get(directory) {
            return run.ended.max(*known);
        }
        let runs = self.workers(directory).unwrap_or_default();
        let ended = runs.into_iter().filter_map(|run| self.runs.get(run).ok());
        let worked = ended.map(|run| run.ended).max().unwrap_or(Time::MIN);
        self.worked.borrow_mut().insert(directory.to_vec(), worked);
        run.ended.max(worked)
    }

    /// True if the same builder has read the file's present state in a later run that ended well.
    /// Such a builder notes the words of each command, so it has executed those that changed.
    /// `make` compares times only, so its decision is no proof.
    fn decided_since(&self, run: &LoadedRun, at: usize, path: &Bytes) -> Result<bool> {
        let who = &run.recording.activities[at];
        let program = who.exec_path.as_deref().unwrap_or_default();
        if is_one(program, &knowledge().programs.time_comparing_builders) {
            return Ok(false);
        }
        let files = self.inputs.files;
        let now = files.present.ident(path);
        for key in self.store.at_path(path)? {
            if key.run() <= run.recording.key {
                continue;
            }
            let later = self.runs.get(key.run())?;
            let is_well = later.recording.details.summary.exit == Some(0);
            let entity = later.recording.entity(key.local());
            let is_now = match (&now, entity.kind, &entity.ident) {
                (Err(_), kind, _) => kind == EntityKind::Missing,
                (Ok(_), EntityKind::Directory, _) => true,
                (Ok(now), EntityKind::File, Some(then)) => {
                    files.holds(path, now, then)? == Some(true)
                }
                _ => false,
            };
            if is_well && is_now && used_by_the_same(&later, key, run, at) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// True if a program with the words and the directory of an activity used the entity.
fn used_by_the_same(later: &LoadedRun, key: EntityKey, run: &LoadedRun, at: usize) -> bool {
    let who = &run.recording.activities[at];
    let same = later.recording.activities.iter().enumerate();
    let mut same = same.filter(|(_, other)| (&other.argv, &other.cwd) == (&who.argv, &who.cwd));
    same.any(|(at, _)| {
        let mut edges = later.recording.edges[at].iter();
        edges.any(|edge| edge.entity == key.local() && edge.relation.is_use())
    })
}

/// True if the content of a file was read or executed.
pub fn is_read(relation: Relation, entity: &Entity) -> bool {
    matches!(relation, Relation::Read | Relation::Execute) && entity.kind == EntityKind::File
}

/// The reason that the maker of a version failed. A file that a failed program left is no result.
///
/// A shell goes on after a failed command. So the shell that opened the file counts if it ended
/// while the file was open. Else the last command counts that it started with the open file.
pub fn failure(run: &LoadedRun, version: EntityId) -> Option<Reason> {
    failed_maker(run, version).map(|at| failed(run, at))
}

/// The reason that a failed maker is.
pub fn failed(run: &LoadedRun, at: usize) -> Reason {
    let activity = &run.recording.activities[at];
    let program = activity.exec_path.clone().unwrap_or_default();
    Reason::MakerFailed(activity.argv.first().cloned().unwrap_or(program))
}

/// The activity whose failure [`failure`] reports.
pub fn failed_maker(run: &LoadedRun, version: EntityId) -> Option<usize> {
    let all = run.makers(version);
    let Some(&(shell, held)) = all.iter().find(|(at, _)| run.is_shell_or_builder(*at)) else {
        let mut makers = run.givers(version).into_iter().map(|(at, _)| at);
        return makers.find(|&at| has_failed(run, at));
    };
    let activity = &run.recording.activities[shell];
    let is_wrong = activity.signal.is_some() || activity.exit.is_some_and(|exit| exit != 0);
    if is_wrong && held.end >= activity.interval.end {
        return Some(shell);
    }
    let children = run.recording.children[shell].iter().copied();
    let last = children
        .filter(|child| all.iter().any(|(at, _)| at == child))
        .max_by_key(|&at| run.recording.activities[at].interval.start);
    let last = last.map(|at| last_program(run, at));
    last.filter(|&at| has_failed(run, at))
}

/// The program that a process executed last.
fn last_program(run: &LoadedRun, at: usize) -> usize {
    let all = &run.recording.activities;
    let next = |&at: &usize| {
        let mut children = run.recording.children[at].iter().copied();
        children.find(|&child| all[at].execed && all[child].pid == all[at].pid)
    };
    std::iter::successors(Some(at), next).last().unwrap_or(at)
}

fn has_failed(run: &LoadedRun, at: usize) -> bool {
    let activity = &run.recording.activities[at];
    let program = activity.exec_path.as_deref().unwrap_or_default();
    match (activity.signal, activity.exit) {
        (Some(_), _) => true,
        (None, None | Some(0)) => false,
        (None, Some(1)) => !is_one(program, &knowledge().programs.answers_by_status),
        (None, Some(_)) => true,
    }
}
