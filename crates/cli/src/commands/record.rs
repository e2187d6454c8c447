//! `record`: runs a command under recording.
//!
//! Invariants: nothing slow happens before the command starts, and nothing is printed on the
//! command's output.

mod annotating;
mod summary;

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use backstory_functions::FunctionPatterns;
use backstory_query as query;
use backstory_session as session;
use backstory_store::Home;
use backstory_store::annotations::{self, AnnotationRecord};
use rustix::process::{Signal, set_parent_process_death_signal};

use super::Outcome;
use super::contents::store_contents;
use crate::args::record::RecordArgs;
use crate::byte_engine::ByteEngine;
use crate::current_store::CurrentStore;
use crate::error::{Failure, complain};
use crate::index::Busy;
use crate::log_follower::{self, LogFollower};
use crate::recording_options;
use crate::remote;
use annotating::{add_metrics, said_before};
use backstory_vocabulary::{ContentsMode, DurabilityMode, GuardMode};
use summary::{check_summary, stats, write_summary};

/// Between two looks at a recording that goes on after its command.
const WAIT_STEP: Duration = Duration::from_millis(5);

/// Runs the command under recording and returns its exit status.
pub fn run(args: RecordArgs, store: Option<&Path>) -> Outcome {
    let (mut prepared, options) = prepare(args, store).map_err(Failure::of_record)?;
    if !prepared.said.is_empty() {
        let said = annotations::append(&prepared.home, &prepared.said);
        said.map_err(|error| Failure::from(error).of_record())?;
    }
    let mut follower = prepared.follower.as_mut().and_then(LogFollower::start);
    let began = Instant::now();
    let recorded = session::record(options);
    let took = began.elapsed();
    if let (Err(_), Some(follower)) = (&recorded, &mut follower) {
        follower.end();
    }
    let mut recorded = recorded.map_err(|error| Failure::not_found(error).of_record())?;
    if let Some(follower) = follower.as_mut().filter(|_| !recorded.still_recording) {
        follower.wait();
    }
    // The next command may write them anew.
    let metrics = add_metrics(
        &prepared.home,
        &prepared.run,
        &prepared.metrics,
        &prepared.redact,
    );
    // The exit status stays the command's.
    if prepared.remote
        && let Err(failure) = remote::returning::fetch(&prepared.home, Busy::Wait)
    {
        complain(&failure.line);
    }
    let decided = prepared.remote && !recorded.still_recording;
    if (prepared.wait || decided)
        && let Err(failure) = wait_for_verdict(&prepared.home, &mut recorded)
    {
        complain(&failure.line);
    }
    if prepared.wait
        && prepared.contents != ContentsMode::Off
        && let Err(failure) = wait_for_contents(&prepared.home)
    {
        complain(&failure.line);
    }
    let mut line = recorded.warning();
    if let Err(failure) = metrics {
        line.get_or_insert(failure.line);
    }
    if let Some(path) = &prepared.summary
        && let Err(error) = write_summary(path, prepared.name, &recorded)
    {
        line.get_or_insert(format!(
            "cannot write the summary to {}: {error}",
            path.display()
        ));
    }
    if let Some(line) = line {
        complain(&line);
    }
    if prepared.stats {
        complain(&stats(&prepared.home, &recorded, took));
    }
    if let (true, Some(signal)) = (recorded.by_key, recorded.signal) {
        session::end_by_signal(signal);
    }
    // An exit status has 8 bits.
    Ok(recorded.status() as u8)
}

/// All that is determined before the command starts.
struct Prepared {
    name: Option<String>,
    summary: Option<PathBuf>,
    wait: bool,
    /// Which contents are stored.
    contents: ContentsMode,
    /// Fetch the runs of other machines.
    remote: bool,
    stats: bool,
    home: Home,
    /// The id of the run.
    run: String,
    /// Tags, parameters and the git work tree.
    said: Vec<AnnotationRecord>,
    /// Files with metrics, absolute.
    metrics: Vec<PathBuf>,
    /// Names that are secret, beside the usual.
    redact: Vec<String>,
    /// Looks for attacks while the command runs.
    follower: Option<LogFollower>,
}

/// Refuses options that contradict each other.
fn check_together(args: &RecordArgs) -> Result<(), Failure> {
    if args.self_contained && args.contents == ContentsMode::Off {
        return Err(Failure::misuse(
            "--self-contained stores contents, but --contents=off stores none: leave one of them out",
        ));
    }
    if args.durability != DurabilityMode::After && args.guard == GuardMode::Off {
        return Err(Failure::misuse(
            "--durability holds calls back by the guard, but --guard=off has none: leave one of them out",
        ));
    }
    if args.bytes && args.guard == GuardMode::Auto {
        return Err(Failure::misuse(
            "--guard=auto starts without a system call filter, but --bytes needs it from the start: leave one of them out",
        ));
    }
    if args.outputs.is_some() && !args.deep {
        return Err(Failure::misuse(
            "--outputs says how a deep record has what programs write: add --deep, or leave it out",
        ));
    }
    if args.time.is_some() && !args.deep {
        return Err(Failure::misuse(
            "--time says how a deep record has the time: add --deep, or leave it out",
        ));
    }
    if args.fixed_addresses && !args.deep {
        return Err(Failure::misuse(
            "--fixed-addresses is for programs that `replay --deep` runs again: add --deep, or leave it out",
        ));
    }
    Ok(())
}

fn prepare(
    args: RecordArgs,
    store: Option<&Path>,
) -> Result<(Prepared, session::Options), Failure> {
    check_together(&args)?;
    let functions = functions(&args)?;
    let (rules, chosen) = log_follower::rules(&args)?;
    if let Some(name) = &args.name {
        check_name(name)?;
    }
    if let Some(path) = &args.json_summary {
        check_summary(path)?;
    }
    if args.repeats.is_some() {
        // `rerun` restores the outputs of a step when it ends, so the step ends with it.
        let _ = set_parent_process_death_signal(Some(Signal::TERM));
    }
    let home = Home::locate(store).map_err(Failure::not_found)?;
    let id = home.new_run_id();
    let (run, redact) = (id.clone(), args.redact.clone());
    let said = said_before(&id, &args)?;
    let absolute = |path: &PathBuf| std::path::absolute(path);
    let metrics: Result<Vec<PathBuf>, _> = args.metric_from.iter().map(absolute).collect();
    let mut variables = match args.remote {
        true => remote::variables(&home, args.contents).map_err(Failure::not_found)?,
        false => Vec::new(),
    };
    if functions.is_some() {
        // The Python package looks at it, and what Node and R load.
        variables.push((
            session::ENV_FUNCTIONS.into(),
            args.functions.join("\n").into(),
        ));
    }
    let simulator = match args.bytes {
        true => Some(engine(&home, &id, args.implicit)?),
        false => None,
    };
    let follower = (!args.watch.is_empty())
        .then(|| LogFollower::new(&home, &id, &rules, &chosen, &args.watch_report))
        .transpose()?;
    let options = session::Options {
        followed: follower.is_some(),
        variables,
        command: args.command,
        simulator,
        name: args.name.clone(),
        repeats: args.repeats,
        guard: args.guard,
        lookups: args.lookups,
        io_uring: args.io_uring,
        contents: args.contents,
        self_contained: args.self_contained,
        suppress: args.suppress,
        durability: args.durability,
        deep: args.deep.then_some(args.outputs.unwrap_or_default()),
        time: args.time.unwrap_or_default(),
        fixed_addresses: args.fixed_addresses,
        // Their readers want all that is known about the run.
        waits_for_deep_log: args.json_summary.is_some()
            || args.stats
            || args.wait
            || args.remote
            || !args.watch.is_empty(),
        functions,
        redact: args.redact,
        detach_after: args.detach_after.map(Duration::from_secs),
        ..recording_options::of_command(&home, id)
    };
    let prepared = Prepared {
        name: args.name,
        summary: args.json_summary,
        wait: args.wait,
        contents: args.contents,
        remote: args.remote,
        stats: args.stats,
        home,
        run,
        said,
        metrics: metrics.map_err(Failure::misuse)?,
        redact,
        follower,
    };
    Ok((prepared, options))
}

/// The functions whose calls are to be recorded.
fn functions(args: &RecordArgs) -> Result<Option<FunctionPatterns>, Failure> {
    if args.functions.is_empty() {
        return Ok(None);
    }
    if args.guard == GuardMode::Off {
        return Err(Failure::misuse(
            "--functions gets the addresses of functions by the guard, but --guard=off has none: leave one of them out",
        ));
    }
    if args.deep {
        return Err(Failure::misuse(
            "--deep and --functions have recorders of their own: leave one of them out",
        ));
    }
    let patterns = FunctionPatterns::parse(&args.functions).map_err(Failure::misuse)?;
    Ok(Some(match args.arguments {
        true => patterns.with_arguments(),
        false => patterns,
    }))
}

/// The byte engine for the command. Its files go into the store.
fn engine(home: &Home, run: &str, implicit: bool) -> Result<session::SimulatorOptions, Failure> {
    let engine = ByteEngine::find()?;
    let directory = home.bytes_dir(run);
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(&directory).map_err(|error| {
        Failure::not_found(format!("cannot create {}: {error}", directory.display()))
    })?;
    engine.recorded(&directory, implicit)
}

/// Waits until no process of the run is recorded any more and the run is in the store, and takes
/// the verdict from there.
fn wait_for_verdict(home: &Home, recorded: &mut session::RecordingResult) -> Result<(), Failure> {
    while session::is_recording(&home.part_path(&recorded.run)) {
        std::thread::sleep(WAIT_STEP);
    }
    let current = CurrentStore::open(Some(home.dir()))?;
    let details = query::details(&current.store, &recorded.run)?;
    recorded.complete = Some(details.summary.complete);
    recorded.lost = details.summary.lost;
    recorded.reasons = details.summary.incomplete_because;
    recorded.warnings = details.warnings;
    recorded.still_recording = false;
    Ok(())
}

/// Waits until the contents of the run are stored.
fn wait_for_contents(home: &Home) -> Result<(), Failure> {
    store_contents(&mut CurrentStore::open(Some(home.dir()))?);
    Ok(())
}

/// Checks the name of a run: it must not look like an option or like two words.
pub fn check_name(name: &str) -> Result<(), Failure> {
    if !backstory_store::is_run_name(name) {
        return Err(Failure::misuse(format!(
            "{name:?} cannot be the name of a run: give 1 to 200 characters, without spaces and without `-` at the beginning"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_word() {
        assert!(check_name("nightly-2").is_ok() && check_name("größe").is_ok());
        for bad in ["", "-x", "a b", "a\nb"] {
            assert!(check_name(bad).is_err(), "{bad:?}");
        }
    }
}
