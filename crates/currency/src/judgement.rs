//! The one definition of "current".
//!
//! A result is current if both hold:
//!
//! - Its content is as its last producing step left it: by identity, else by digest.
//! - No step behind it is stale. The steps behind it are those that made its inputs, theirs, and
//!   so on, over all runs. Runs are joined by identity and by recorded transfers only.
//!
//! A step is stale for reasons of its own, or because a step that makes one of its inputs is stale.
//! [`status`] says whether results are current, and [`plan`] which steps are stale. Both read the
//! same [`StepFacts`](crate::step_group::StepFacts), so they cannot disagree. [`origin`] has the
//! steps of a plan for exports.
//!
//! Each run is read once, each step judged once, and each file examined once, for all results that
//! are asked for.

use std::collections::{BTreeSet, HashMap};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use backstory_eventlog::event::Bytes;
use backstory_graph::model::{Entity, EntityKind};
use backstory_query::{Asked, RealDirectories};
use backstory_store::{ActivityKey, EntityKey, RunKey, Store};
use backstory_workflow::selection::MakingPart;
use backstory_workflow::{Error as WorkflowError, shell};

use crate::Result;
use crate::derived_views::ViewJudge;
use crate::file_state::{FileComparison, FileState, is_nameless};
use crate::file_status::{FileStatus, changed, reasons_behind};
use crate::loaded_runs::LoadedRuns;
use crate::planned_step::PlannedStep;
use crate::planning::{order_behind, planned};
use crate::present_files::PresentFiles;
use crate::reach::{ReachSearch, Reached};
use crate::results::ResultFinder;
use crate::step_group::StepGroup;
use crate::step_inputs::InputJudge;

/// Whether each of the files is current. `paths` are absolute or relative to the current directory.
///
/// # Errors
///
/// If the current directory is not known, or the store fails.
pub fn status(store: &dyn Store, paths: &[PathBuf]) -> Result<Vec<FileStatus>> {
    let _one_state = store.reading()?;
    let judge = Judge::new(store);
    judge.with(&[], paths, false, |results, groups, inputs| {
        let statuses = results.iter().map(|result| result.status(groups, inputs));
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
    let judge = Judge::new(store);
    judge.with(env, paths, true, |results, groups, _| {
        let wanted = results.iter().map(|result| result.maker(groups));
        let wanted = wanted.collect::<Result<Vec<_>>>()?;
        match groups.first() {
            Some(group) => planned(group, &wanted),
            None => Ok(Vec::new()),
        }
    })
}

/// The part of the record that makes a file: the steps behind it as they were recorded, whether
/// they are current or not. An export that is executed holds them, so it does what `rerun` does.
///
/// # Errors
///
/// If no step made the path, or the store fails.
pub fn origin(store: &dyn Store, path: &Path) -> Result<FileOrigin> {
    let _one_state = store.reading()?;
    let judge = Judge::new(store);
    judge.with(&[], &[path.to_owned()], true, |results, groups, _| {
        let wanted = [results[0].maker(groups)?];
        let group = &groups[results[0].group];
        let parts = group.parts(&order_behind(group, &wanted)?);
        let [(_, path)] = wanted;
        Ok(FileOrigin { path, parts })
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

/// A path that was asked for, with what the judgement found.
struct JudgedResult {
    asked: Asked,
    /// The version that the last run left, with its key.
    version: Option<(EntityKey, Entity)>,
    run: Option<String>,
    ended: i64,
    /// The number of its group.
    group: usize,
}

impl JudgedResult {
    /// The step that makes the file, and the file's recorded path.
    fn maker(&self, groups: &[StepGroup<'_>]) -> Result<(usize, Bytes)> {
        let Some((_, version)) = &self.version else {
            return Err(backstory_query::Error::NotFound(self.asked.absolute.clone()).into());
        };
        match groups[self.group].maker(&version.path) {
            Some(step) => Ok((step, version.path.clone())),
            None => Err(WorkflowError::NoSteps(shell::quote(&version.path)).into()),
        }
    }

    fn status(&self, groups: &[StepGroup<'_>], inputs: &InputJudge<'_>) -> Result<FileStatus> {
        let shown: Bytes = self.asked.absolute.as_os_str().as_bytes().into();
        let mut status = FileStatus {
            path: shown.clone(),
            run: self.run.clone(),
            state: FileState::Unknown,
            changed_inputs: Vec::new(),
            reasons: Vec::new(),
            is_result: false,
        };
        let Some((_, version)) = &self.version else {
            return Ok(status);
        };
        status.state = inputs.files.state(&shown, version, self.ended)?;
        if status.state == FileState::Removed && is_nameless(&version.path) {
            status.state = FileState::Unknown;
        }
        let group = &groups[self.group];
        if let Some(step) = group.maker(&version.path) {
            let reasons = reasons_behind(group, step)?;
            if status.state == FileState::Current && !reasons.is_empty() {
                status.state = FileState::Outdated;
            }
            status.changed_inputs = changed(&reasons);
            status.reasons = reasons.into_iter().collect();
            status.is_result = version.last && version.kind != EntityKind::Directory;
        }
        Ok(status)
    }
}

struct Judge<'s> {
    store: &'s dyn Store,
    runs: LoadedRuns<'s>,
    present: PresentFiles,
    views: ViewJudge,
}

impl<'s> Judge<'s> {
    fn new(store: &'s dyn Store) -> Judge<'s> {
        Judge {
            store,
            runs: LoadedRuns::new(store),
            present: PresentFiles::default(),
            views: ViewJudge::default(),
        }
    }

    /// Finds the results and the groups of steps behind them. `joined`: all steps are one group,
    /// so that they can run in one order.
    fn with<T>(
        &self,
        env: &[(Bytes, Bytes)],
        paths: &[PathBuf],
        joined: bool,
        answer: impl FnOnce(&[JudgedResult], &[StepGroup<'_>], &InputJudge<'_>) -> Result<T>,
    ) -> Result<T> {
        let files = FileComparison::new(self.store, &self.present);
        let inputs = InputJudge {
            files: &files,
            views: &self.views,
        };
        let mut results = self.results(paths)?;
        let search = ReachSearch::new(self.store, &self.runs, &self.present);
        let mut behind: HashMap<Vec<ActivityKey>, usize> = HashMap::new();
        let mut numbers: HashMap<BTreeSet<RunKey>, usize> = HashMap::new();
        let mut reached: Vec<Reached> = Vec::new();
        for result in &mut results {
            let Some((key, _)) = &result.version else {
                continue;
            };
            let makers = search.makers(*key)?;
            if let Some(&group) = behind.get(&makers) {
                result.group = group;
                continue;
            }
            let here = search.behind(*key)?;
            let next = reached.len();
            let number = match joined {
                true => 0,
                false => *numbers.entry(here.runs.clone()).or_insert(next),
            };
            match reached.get_mut(number) {
                Some(group) => group.add(here),
                None => reached.push(here),
            }
            result.group = number;
            if !makers.is_empty() {
                behind.insert(makers, number);
            }
        }
        let groups = reached.iter().map(|reached| {
            let part = (&reached.runs, &reached.activities);
            StepGroup::new(self.store, &self.runs, &inputs, part, env)
        });
        let groups = groups.collect::<Result<Vec<_>>>()?;
        answer(&results, &groups, &inputs)
    }

    fn results(&self, paths: &[PathBuf]) -> Result<Vec<JudgedResult>> {
        let finder = ResultFinder::new(self.store, &self.runs, &self.present);
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
                group: 0,
            });
        }
        Ok(results)
    }
}
