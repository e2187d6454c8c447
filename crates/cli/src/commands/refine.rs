//! `refine`: replays a run under the byte engine, and keeps which bytes came from which.
//!
//! Invariant: the store gets the bytes of a replay only if no output differs from the recorded one.
//! Otherwise they would be the bytes of another execution. An output whose recorded content is
//! unknown cannot be compared: the command says so.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use backstory_replay::plan::{self, Deviations};
use backstory_replay::root::OWN;
use backstory_replay::verdict::{self, OutputState, OutputVerdict};
use backstory_vocabulary::counted;

use super::contents::store_contents;
use super::{Outcome, byte_origins, replay};
use crate::args::refine::RefineArgs;
use crate::byte_engine::ByteEngine;
use crate::current_store::CurrentStore;
use crate::ending::{self, Workers};
use crate::error::{Failure, complain};
use crate::text::paths::shown;
use crate::text::progress::Progress;

/// The engine's output, below the replay's directory.
const BYTES: &str = "bytes";

/// Replays a run under the engine.
pub fn run(args: &RefineArgs, store: Option<&Path>) -> Outcome {
    let engine = ByteEngine::find()?;
    ending::watch(Workers::Killed);
    let mut current = CurrentStore::open(store)?;
    let run = run_of(&current, &args.subject)?;
    store_contents(&mut current);
    let progress = Progress::start("planning the replay");
    // The engine itself, and Valgrind, are files that the run did not use.
    let deviations = Deviations {
        allow_host: true,
        ..Deviations::default()
    };
    let contents = current.home.contents_dir();
    let mut plan = plan::plan(&current.store, contents, &run, &deviations)?;
    progress.end();
    let words = plan.argv.drain(..).map(OsString::from_vec).collect();
    let command = engine.command(&Path::new(OWN).join(BYTES), args.implicit, words);
    plan.argv = command.into_iter().map(OsString::into_vec).collect();
    let own = tempfile::Builder::new()
        .prefix("refine-")
        .tempdir_in(current.home.dir())?;
    fs::create_dir(own.path().join(BYTES))?;
    let played = replay::under(&current, own.path(), plan.clone())?;
    let verdict = verdict::judge(&current.store, &plan, &played)?;
    if !verdict.is_identical() {
        let differs = |state: &OutputState| {
            !matches!(state, OutputState::Identical | OutputState::Unknown(_))
        };
        let mut outputs = verdict.outputs.iter();
        let first = outputs.find(|output| differs(&output.state));
        let first = first.map_or("an output".to_owned(), |output| shown(&output.path));
        return Err(Failure::not_found(format!(
            "run {run} is not refined: its replay made another {first}"
        )));
    }
    keep(&current, &own.path().join(BYTES), &run)?;
    for note in &plan.notes {
        complain(note);
    }
    let unknown = |output: &&OutputVerdict| matches!(output.state, OutputState::Unknown(_));
    let unknown: Vec<_> = verdict.outputs.iter().filter(unknown).collect();
    if let Some(first) = unknown.first() {
        complain(&format!(
            "{} could not be compared, because no recorded content is known (first: {})",
            counted(unknown.len(), "output", "outputs"),
            shown(&first.path)
        ));
    }
    complain(&format!(
        "run {run} is refined: ask `backstory of PATH --line N`"
    ));
    Ok(0)
}

/// The run of that id or name, or the run that made the file's newest version.
fn run_of(current: &CurrentStore, subject: &OsStr) -> Result<String, Failure> {
    let name = subject.to_str().filter(|name| !name.contains('/'));
    match name.map(|name| current.run(Some(name))) {
        Some(Ok(run)) => Ok(run),
        _ => byte_origins::writer(current, Path::new(subject)),
    }
}

/// Moves the engine's files into the store, instead of those of an earlier `refine`.
fn keep(current: &CurrentStore, made: &Path, run: &str) -> Result<(), Failure> {
    let to = current.home.bytes_dir(run);
    let fail = |error: std::io::Error| {
        Failure::not_found(format!("cannot write {}: {error}", to.display()))
    };
    let _ = fs::remove_file(made.join("shared"));
    let mut directory = fs::DirBuilder::new();
    directory.recursive(true).mode(0o700);
    directory.create(current.home.bytes_dir("")).map_err(fail)?;
    let _ = fs::remove_dir_all(&to);
    fs::rename(made, &to).map_err(fail)?;
    Ok(())
}
