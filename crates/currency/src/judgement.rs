//! The one definition of "current".
//!
//! A result is current if all hold:
//!
//! - Its content is as its last maker left it: by identity, else by digest.
//! - Its maker did not fail.
//! - Each thing that influenced it is as it was taken in: see [`crate::influence`] and
//!   [`crate::takings`].
//!
//! [`status`] judges results on the graph. [`plan`] finds the steps that make them again: a reason
//! that a step of its own has makes that step stale. Any other reason concerns what decided on the
//! steps, so the whole command of the run is executed again. Both use the same reasons, so they
//! cannot disagree. [`origin`] has the steps of a plan for exports.
//!
//! Each run is read once, each activity judged once, and each file examined once, for all results
//! that are asked for.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use backstory_eventlog::event::{Bytes, Time};
use backstory_graph::model::{Entity, EntityKind};
use backstory_query::{Asked, RealDirectories};
use backstory_store::{ActivityKey, EntityKey, Store};
use backstory_workflow::paths::is_below_tool;
use backstory_workflow::selection::{MakingPart, WholeCommand};
use backstory_workflow::{Error as WorkflowError, shell};

use crate::Result;
use crate::deciders::Deciders;
use crate::decisions::{self, decisions};
use crate::derived_views::ViewJudge;
use crate::file_state::{FileComparison, FileState, is_nameless};
use crate::file_status::{FileStatus, changed};
use crate::influence::{Extent, InfluenceSearch};
use crate::loaded_runs::LoadedRuns;
use crate::planned_step::PlannedStep;
use crate::planning::{order_behind, planned};
use crate::present_files::PresentFiles;
use crate::present_makers::PresentMakers;
use crate::reason::Reason;
use crate::results::ResultFinder;
use crate::step_group::{StepGroup, steps_of_run};
use crate::step_inputs::InputJudge;
use crate::takings::TakingsJudge;

/// Whether each of the files is current. `paths` are absolute or relative to the current directory.
///
/// # Errors
///
/// If the current directory is not known, or the store fails.
pub fn status(store: &dyn Store, paths: &[PathBuf]) -> Result<Vec<FileStatus>> {
    let _one_state = store.reading()?;
    Judge::new(store).with(paths, |judging, results| {
        let statuses = results.iter().map(|result| judging.status(result));
        statuses.collect()
    })
}

/// The steps behind paths, with the reasons of the stale ones. A step behind several of them is
/// there once. `env`: changed variables.
///
/// # Errors
///
/// If no step made one of the paths, or the store fails.
pub fn plan(
    store: &dyn Store,
    paths: &[PathBuf],
    env: &[(Bytes, Bytes)],
) -> Result<Vec<PlannedStep>> {
    let _one_state = store.reading()?;
    Judge::new(store).with(paths, |judging, results| {
        let group = judging.group(results, env)?;
        let (mut wanted, mut stale) = (Vec::new(), Vec::new());
        for result in results {
            let made = result.maker(&group)?;
            if !env.is_empty() || judging.status(result)?.state != FileState::Current {
                stale.push(made.clone());
            }
            wanted.push(made);
        }
        planned(&group, &wanted, &stale)
    })
}

/// The part of the record that makes a file: the steps behind it as they were recorded, whether
/// they are current or not. A run is one step if something that may change decided on its commands.
/// An export that is executed holds them, so it does what `rerun` does after any change.
///
/// # Errors
///
/// If no step made the path, or the store fails.
pub fn origin(store: &dyn Store, path: &Path) -> Result<FileOrigin> {
    let _one_state = store.reading()?;
    Judge::new(store).with(&[path.to_owned()], |judging, results| {
        let group = judging.group(results, &[])?;
        let wanted = [results[0].maker(&group)?];
        let parts = group.parts(&order_behind(&group, &wanted)?)?;
        let [(_, path)] = wanted;
        Ok(FileOrigin { path, parts })
    })
}

/// The whole command of a run, if its commands may not stand alone in an export that is executed.
/// The argument is the run's id.
///
/// # Errors
///
/// If there is no such run, or the store fails.
pub fn whole_command(store: &dyn Store, run: &str) -> Result<Option<WholeCommand>> {
    let _one_state = store.reading()?;
    let record = store.run(run)?;
    let key = record
        .ok_or_else(|| backstory_query::Error::NoRun(run.to_owned()))?
        .key;
    Judge::new(store).judging(|judging| {
        let run = judging.runs.get(key)?;
        let all = (0..run.recording.activities.len()).map(|at| (0, at));
        let steps = steps_of_run(run.commands()?, 0, &all.collect());
        let outputs = steps.iter().flat_map(|step| &step.outputs);
        let results = outputs.filter_map(|path| run.left(path));
        let results = results.map(|version| EntityKey::new(key, version.id));
        let behind = judging.search.of_all(results, Extent::Run)?;
        let runs = [run];
        let deciders = Deciders::of(&judging.search, &runs, &steps, behind)?;
        let found = decisions(&runs, &steps, &deciders, judging.takings.inputs())?;
        let facts = found.get(&0);
        Ok(facts.map(|facts| decisions::whole_command(&runs[0], facts)))
    })
}

/// The part of the record that makes a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileOrigin {
    /// The absolute path of the file.
    pub path: Bytes,
    /// The parts of runs, oldest first.
    pub parts: Vec<MakingPart>,
}

/// A path that was asked for, with the version that the last run left.
struct JudgedResult {
    asked: Asked,
    version: Option<(EntityKey, Entity)>,
    run: Option<String>,
    ended: i64,
}

impl JudgedResult {
    /// The step that makes the file, and the file's recorded path.
    fn maker(&self, group: &StepGroup<'_>) -> Result<(usize, Bytes)> {
        let Some((_, version)) = &self.version else {
            return Err(backstory_query::Error::NotFound(self.asked.absolute.clone()).into());
        };
        match group.maker(&version.path) {
            Some(step) => Ok((step, version.path.clone())),
            None => Err(WorkflowError::NoSteps(shell::quote(&version.path)).into()),
        }
    }
}

/// Versions that the same activities gave out until the same moments depend on the same.
type KnownReasons = RefCell<HashMap<Vec<(ActivityKey, Time)>, Rc<BTreeSet<Reason>>>>;

/// All that judgements of one question share.
pub struct Judging<'j> {
    /// The runs.
    pub runs: &'j LoadedRuns<'j>,
    files: &'j FileComparison<'j>,
    finder: &'j ResultFinder<'j>,
    /// The makers of present files.
    pub makers: &'j PresentMakers<'j>,
    /// The search for influences.
    pub search: InfluenceSearch<'j>,
    takings: TakingsJudge<'j>,
    known: KnownReasons,
}

impl<'j> Judging<'j> {
    fn status(&self, result: &JudgedResult) -> Result<FileStatus> {
        let shown: Bytes = result.asked.absolute.as_os_str().as_bytes().into();
        let mut status = FileStatus {
            path: shown.clone(),
            run: result.run.clone(),
            state: FileState::Unknown,
            changed_inputs: Vec::new(),
            reasons: Vec::new(),
            is_result: false,
        };
        let Some((key, version)) = &result.version else {
            return Ok(status);
        };
        status.state = self.files.state(&shown, version, result.ended)?;
        if status.state == FileState::Removed && is_nameless(&version.path) {
            status.state = FileState::Unknown;
        }
        let reasons = self.reasons(*key)?;
        if status.state == FileState::Current && !reasons.is_empty() {
            status.state = match reasons.iter().all(Reason::is_uncertain) {
                true => FileState::Uncertain,
                false => FileState::Outdated,
            };
        }
        status.changed_inputs = changed(&reasons);
        status.reasons = reasons.iter().cloned().collect();
        status.is_result = is_result(version);
        Ok(status)
    }

    /// Why a version is not what its makers would give out now.
    fn reasons(&self, version: EntityKey) -> Result<Rc<BTreeSet<Reason>>> {
        let givers = self.search.givers(version)?;
        if let Some(reasons) = self.known.borrow().get(&givers) {
            return Ok(reasons.clone());
        }
        let reasons = Rc::new(
            self.takings
                .reasons(&self.search.of(version, Extent::All)?)?,
        );
        if !givers.is_empty() {
            self.known.borrow_mut().insert(givers, reasons.clone());
        }
        Ok(reasons)
    }

    /// The steps behind results, as one group, so that they can run in one order.
    fn group<'g>(
        &'g self,
        results: &[JudgedResult],
        env: &'g [(Bytes, Bytes)],
    ) -> Result<StepGroup<'g>> {
        let versions = results.iter().filter_map(|result| result.version.as_ref());
        let versions = versions.map(|(key, _)| *key);
        let behind = self.search.of_all(versions, Extent::All)?;
        let files = (self.files, self.makers);
        StepGroup::new(&self.search, &self.takings, files, behind, env)
    }
}

/// Judges results of a store.
pub struct Judge<'s> {
    store: &'s dyn Store,
    runs: LoadedRuns<'s>,
    present: PresentFiles,
    views: ViewJudge,
}

impl<'s> Judge<'s> {
    /// Nothing has been judged yet.
    pub fn new(store: &'s dyn Store) -> Judge<'s> {
        Judge {
            store,
            runs: LoadedRuns::new(store),
            present: PresentFiles::default(),
            views: ViewJudge::default(),
        }
    }

    /// Finds the versions that paths stand for, and answers a question about them.
    fn with<T>(
        &self,
        paths: &[PathBuf],
        answer: impl FnOnce(&Judging<'_>, &[JudgedResult]) -> Result<T>,
    ) -> Result<T> {
        self.judging(|judging| answer(judging, &self.results(judging.finder, paths)?))
    }

    /// Answers a question with all that judgements share.
    pub fn judging<T>(&self, answer: impl FnOnce(&Judging<'_>) -> Result<T>) -> Result<T> {
        let files = FileComparison::new(self.store, &self.present);
        let inputs = InputJudge {
            files: &files,
            views: &self.views,
        };
        let finder = ResultFinder::new(self.store, &self.runs, &self.present);
        let makers = PresentMakers::new(self.store, &self.runs, &files, &finder);
        answer(&Judging {
            runs: &self.runs,
            files: &files,
            finder: &finder,
            makers: &makers,
            search: InfluenceSearch::new(&self.runs, &makers),
            takings: TakingsJudge::new(self.store, &self.runs, &inputs),
            known: RefCell::default(),
        })
    }

    fn results(&self, finder: &ResultFinder<'_>, paths: &[PathBuf]) -> Result<Vec<JudgedResult>> {
        let (mut results, mut directories) = (Vec::new(), RealDirectories::default());
        for path in paths {
            let asked = Asked::among(path, &mut directories)?;
            let version = finder.last_produced(&asked)?;
            let run = match &version {
                Some((key, _)) => Some(self.runs.get(key.run())?),
                None => None,
            };
            results.push(JudgedResult {
                asked,
                version,
                ended: run.as_ref().map_or(0, |run| run.ended),
                run: run.map(|run| run.recording.details.summary.id.clone()),
            });
        }
        Ok(results)
    }
}

/// True for a file that its run left and that a person keeps: no directory, no file of a tool.
fn is_result(version: &Entity) -> bool {
    version.last && version.kind != EntityKind::Directory && !is_below_tool(&version.path)
}
