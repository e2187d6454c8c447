//! `rerun`: brings files up to date by running stale steps again. Each step is recorded.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`plan_text`], [`plan_json`] | print the plan |
//! | [`consent`] | asks before steps with hazards run |
//! | [`refusal_text`] | says what would be destroyed, and which files are taken as they are |
//! | [`runner`] | runs a step under `record` |
//! | [`preparation`], [`standard_input`] | bring back what a step began with |
//! | [`progress`] | prints the progress, and the end |
//! | [`convergence`] | says why a step would run again at once |

mod consent;
mod convergence;
mod plan_json;
mod plan_text;
mod preparation;
mod progress;
mod refusal_text;
mod runner;
mod standard_input;

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use backstory_eventlog::event::Bytes;
use backstory_graph::model::EntityKind;
use backstory_replay::rerun::execution::{self, ExecutionOptions, StepOutcome};
use backstory_replay::rerun::hazards::{Hazard, hazards};
use backstory_replay::rerun::kept_files::{KeptBecause, KeptFile, NeededSteps};
use backstory_replay::rerun::refusals::{Allowed, Refusal, refusals};
use backstory_replay::rerun::unit_files::UnitSearch;
use backstory_replay::rerun::work_list::{Standing, WorkList};
use backstory_replay::rerun::{self, PlannedStep, overwritten_files, set_aside};
use backstory_store::{GraphStore, Store};

use super::contents::store_contents;
use super::{Outcome, answer};
use crate::args::replay::RerunArgs;
use crate::current_store::CurrentStore;
use crate::ending::{self, Workers};
use crate::error::{Failure, complain};
use crate::index;
use crate::json::{self, Value};
use crate::scope::ProjectScope;
use crate::text::paths::shown;
use crate::text::style::Style;

/// The directory below the store's for outputs that are put aside.
const ASIDE: &str = "aside";

/// The plan for some files.
struct Plan<'s> {
    /// The files, as the user named them.
    paths: &'s [PathBuf],
    work: WorkList<'s>,
    scope: &'s ProjectScope,
    /// The hazards of each step that may run.
    hazards: Vec<Vec<Hazard>>,
    /// Why stale steps do not run, with the index of the step.
    refusals: Vec<(usize, Refusal)>,
    /// The files that the steps take as they are.
    kept: &'s [KeptFile],
}

impl Plan<'_> {
    /// True if a file behind the result is stale, and only a repeated edit would change it.
    fn has_stale_edit(&self) -> bool {
        let mut kept = self.kept.iter();
        kept.any(|file| matches!(file.why, KeptBecause::Edit(_)))
    }
}

/// Brings files up to date. Exits with 1 if a step failed or was not run, or with `--dry-run` if a
/// step is stale.
pub fn run(args: RerunArgs, store: Option<&Path>) -> Outcome {
    let mut current = CurrentStore::open(store)?;
    let aside = current.home.dir().join(ASIDE);
    if !args.dry_run {
        let is_recording = |launcher: u32| {
            let mut live = index::recording(&current.home).into_iter();
            live.any(|header| header.launcher_pid == launcher)
        };
        mention(&set_aside::restore_left(&aside, &is_recording));
    }
    store_contents(&mut current);
    let env = super::replay::variables(&args.env)?;
    let scope = ProjectScope::new(&args.scope)?;
    let needed = needed(&current, &args.paths, &env)?;
    let steps = &needed.steps;
    let plan = plan(&args, &current, &scope, &needed)?;
    if args.dry_run {
        answer(|out| match args.json {
            true => plan_json::print(&plan, out),
            false => plan_text::print(&plan, Style::of_stdout(), out),
        })?;
        let stale = plan.work.with(&[Standing::Stale, Standing::Outside]);
        return Ok(u8::from(!stale.is_empty() || plan.has_stale_edit()));
    }
    if let Some(line) = refusal_text::first(&plan) {
        return Err(Failure::not_found(line));
    }
    if !consent::is_given(&plan, &args)? {
        complain("nothing was run");
        return Ok(1);
    }
    ending::watch(Workers::Signalled);
    let begun = Instant::now();
    let mut runner = runner::StepRecorder::new(&current, steps, args.jobs > 1, args.json)?;
    runner.units(&needed, args.overwrite);
    let mut progress = progress::ProgressLines::new(&plan, &current.store, args.json);
    let options = ExecutionOptions {
        jobs: args.jobs,
        keep_going: args.keep_going,
        aside: &aside,
        overwritten: &current.home.dir().join(overwritten_files::DIRECTORY),
    };
    let done = execution::bring_up_to_date(&plan.work, options, &runner, &mut progress);
    ending::unless_ended();
    let end = convergence::after(&plan, &done, &env, &current)?;
    if args.json {
        answer(|out| {
            json::lines(
                out,
                steps.iter().zip(&done).map(|(step, done)| line(step, done)),
            )
        })?;
        end.stale.iter().for_each(|line| complain(line));
    } else {
        answer(|out| progress.summary(&plan, &done, begun.elapsed(), &end, out))?;
    }
    mention_failures(steps, &done);
    let well = |done: &StepOutcome| matches!(done, StepOutcome::Current | StepOutcome::Again(_));
    let is_current = end.stale.is_empty() && !plan.has_stale_edit();
    Ok(u8::from(!done.iter().all(well) || !is_current))
}

/// The steps behind files, without those that only make files that are taken as they are.
fn needed(
    current: &CurrentStore,
    paths: &[PathBuf],
    env: &[(Bytes, Bytes)],
) -> Result<NeededSteps, Failure> {
    let paths = absolute(paths)?;
    let steps = match rerun::plan(&current.store, &paths, env) {
        Ok(steps) => steps,
        Err(error) => {
            return Err(match source_among(current, &paths)? {
                Some(source) => Failure::not_found(source),
                None => error.into(),
            });
        }
    };
    let search = UnitSearch::new(&current.store);
    let units = steps.iter().map(|step| search.of(step));
    let units = units.collect::<Result<Vec<_>, _>>()?;
    let real = paths.iter().filter_map(|path| path.canonicalize().ok());
    let names = paths.iter().cloned().chain(real);
    let wanted: Vec<Bytes> = names
        .map(|path| path.as_os_str().as_bytes().into())
        .collect();
    Ok(NeededSteps::of(steps, units, &wanted, current.home.dir()))
}

/// The sentence on the first of the paths that runs have read and none has made.
fn source_among(current: &CurrentStore, paths: &[PathBuf]) -> Result<Option<String>, Failure> {
    for path in paths {
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        let (mut used, mut made) = (false, false);
        for name in [path, &real] {
            for key in current.store.at_path(name.as_os_str().as_bytes())? {
                let entity = current.store.entity(key)?;
                used |= entity.kind == EntityKind::File && entity.version == 0;
                made |= entity.version > 0;
            }
        }
        if used && !made {
            let name = shown(path.as_os_str().as_bytes());
            return Ok(Some(format!(
                "{name} is a source: no recorded command made it, so there is nothing to run. `backstory uses {name}` lists what came from it"
            )));
        }
    }
    Ok(None)
}

fn plan<'s>(
    args: &'s RerunArgs,
    current: &CurrentStore,
    scope: &'s ProjectScope,
    needed: &'s NeededSteps,
) -> Result<Plan<'s>, Failure> {
    let steps = &needed.steps;
    let is_inside = |path: &[u8]| scope.contains(path);
    let forced = forced(&args.force, steps)?;
    let work = WorkList::new(steps, &is_inside, forced);
    let mut all = vec![Vec::new(); steps.len()];
    let may_run = work.with(&[Standing::Stale, Standing::Waits]);
    for &at in &may_run {
        all[at] = hazards(&current.store as &dyn Store, &steps[at], &is_inside)?;
    }
    let allowed = Allowed {
        overwrite: args.overwrite,
        has_input: standard_input::given().is_some(),
        store: current.home.dir(),
    };
    let is_moving = |at: usize| may_run.contains(&at);
    let stale = work.with(&[Standing::Stale]).into_iter();
    let refused = stale.flat_map(|at| {
        let all = refusals(at, steps, &needed.units, &is_moving, allowed);
        all.into_iter().map(move |refusal| (at, refusal))
    });
    Ok(Plan {
        paths: &args.paths,
        refusals: refused.collect(),
        kept: &needed.kept,
        work,
        scope,
        hazards: all,
    })
}

fn absolute(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let all = paths.iter().map(std::path::absolute);
    all.collect::<std::io::Result<_>>()
        .map_err(Failure::not_found)
}

/// The indexes of the steps that the user forces, by name or by an output.
fn forced(wanted: &[PathBuf], steps: &[PlannedStep]) -> Result<BTreeSet<usize>, Failure> {
    let mut forced = BTreeSet::new();
    for wanted in wanted {
        let path = std::path::absolute(wanted).map_err(Failure::not_found)?;
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        let makes = |step: &PlannedStep| {
            let is_wanted = |output: &Bytes| {
                [&path, &real]
                    .map(|path| path.as_os_str().as_bytes())
                    .contains(&&**output)
            };
            step.outputs.iter().any(|(output, _)| is_wanted(output))
                || step.name.as_bytes() == wanted.as_os_str().as_bytes()
        };
        let found: Vec<usize> = (0..steps.len()).filter(|&at| makes(&steps[at])).collect();
        if found.is_empty() {
            return Err(Failure::misuse(format!(
                "--force {}: no step of the plan has this name or makes this file; `backstory rerun --dry-run` lists the steps",
                wanted.display()
            )));
        }
        forced.extend(found);
    }
    Ok(forced)
}

/// The state of a step after the work, for JSON.
fn line(step: &PlannedStep, done: &StepOutcome) -> Value {
    let state = match done {
        StepOutcome::Current => "current",
        StepOutcome::Again(different) if different.is_empty() => "same",
        StepOutcome::Again(_) => "again",
        StepOutcome::Failed(_) => "failed",
        StepOutcome::NotMade(_) => "not made",
        StepOutcome::NotBegun => "not begun",
        StepOutcome::Outside => "outside",
    };
    Value::Object(vec![
        ("step", (&step.name).into()),
        ("state", state.into()),
        ("script", (&step.script).into()),
    ])
}

/// Prints on stderr which outputs of an earlier `rerun` were put back.
fn mention(left: &set_aside::Leftovers) {
    if let Some(first) = left.restored.first() {
        let more = match left.restored.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more files"),
        };
        complain(&format!(
            "put {}{more} back as before an earlier rerun, which was killed",
            shown(first)
        ));
    }
    left.failed.iter().for_each(|line| complain(line));
}

/// Prints on stderr which step failed.
fn mention_failures(steps: &[PlannedStep], done: &[StepOutcome]) {
    let count = |wanted: StepOutcome| done.iter().filter(|done| **done == wanted).count();
    let left = match count(StepOutcome::NotBegun) {
        0 => String::new(),
        1 => "; 1 later step did not start".to_owned(),
        several => format!("; {several} later steps did not start"),
    };
    for (step, done) in steps.iter().zip(done) {
        if let StepOutcome::NotMade(paths) = done {
            complain(&refusal_text::not_made(step, paths, &left));
        }
        let how = match done {
            StepOutcome::Failed(Ok(status)) => format!("status {status}"),
            StepOutcome::Failed(Err(why)) => why.clone(),
            _ => continue,
        };
        complain(&format!(
            "the step {} failed ({how}), and its old outputs were put back: {}{left}",
            step.name, step.script
        ));
    }
}
