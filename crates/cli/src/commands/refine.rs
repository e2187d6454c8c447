//! `refine`: replays a run, or the part of it behind a file, under the byte engine, and keeps which
//! bytes came from which.
//!
//! Invariant: the store gets the bytes of a replay only if no output differs from the recorded one.
//! Otherwise they would be the bytes of another execution. An output whose recorded content is
//! unknown cannot be compared: the command says so.
//!
//! A run with a deep log is replayed from that. If its result differs, the run is replayed from
//! contents, as other runs are.

mod from_deep_log;
mod kept_bytes;
mod programs_aside;
mod steps_behind;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use backstory_replay::plan::{self, Deviations, Plan};
use backstory_replay::root::OWN;
use backstory_replay::verdict::{self, OutputState, OutputVerdict, Verdict};
use backstory_vocabulary::counted;

use super::contents::store_contents;
use super::replay::logged::logged;
use super::{Outcome, byte_origins, replay};
use crate::args::refine::RefineArgs;
use crate::byte_engine::ByteEngine;
use crate::current_store::CurrentStore;
use crate::ending::{self, Workers};
use crate::error::{Failure, complain};
use crate::subject::{self, PathNotation};
use crate::text::paths::shown;
use crate::text::progress::Progress;
use steps_behind::{StepsBehind, steps_behind};

/// The engine's output, below the replay's directory.
const BYTES: &str = "bytes";

/// Replays a run under the engine.
pub fn run(args: &RefineArgs, store: Option<&Path>) -> Outcome {
    let engine = ByteEngine::find()?;
    ending::watch(Workers::Killed);
    let mut current = CurrentStore::open(store)?;
    let (run, path) = subject_of(&current, &args.subject)?;
    store_contents(&mut current);
    let refining = Refining {
        current: &current,
        engine: &engine,
        implicit: args.implicit,
        run: &run,
    };
    let request = args.request.map(|number| number as usize);
    if refining.refined_deeply(request, path.as_deref())? {
        return Ok(0);
    }
    let progress = Progress::start("planning the replay");
    // The engine itself, and Valgrind, are files that the run did not use.
    let deviations = Deviations {
        allow_host: true,
        ..Deviations::default()
    };
    let contents = current.home.contents_dir();
    let logged = logged(&current.home, &run);
    let plan = plan::plan(&current.store, contents, &run, &deviations, &logged)?;
    let part = match &path {
        Some(path) => steps_behind(&current.store, &run, path.as_os_str().as_bytes())?,
        None => None,
    };
    progress.end();
    let mut done = false;
    if let Some(part) = &part {
        match refining.once(plan.clone(), Some(part)) {
            Ok(()) => done = true,
            Err(failure) => complain(&format!(
                "the commands behind the file are not enough ({}), so all of the run is replayed",
                failure.line
            )),
        }
    }
    if !done {
        refining.once(plan, None)?;
    }
    let what = match part.filter(|_| done) {
        Some(part) => format!(
            "{} of {} of run {run} are refined",
            part.count,
            counted(part.of, "command", "commands")
        ),
        None => format!("run {run} is refined"),
    };
    complain(&format!("{what}: ask `backstory of PATH --line N`"));
    Ok(0)
}

/// A run, and how it is refined.
struct Refining<'r> {
    current: &'r CurrentStore,
    engine: &'r ByteEngine,
    implicit: bool,
    run: &'r str,
}

impl Refining<'_> {
    /// Replays the run, or a part of it, and keeps the bytes.
    fn once(&self, mut plan: Plan, part: Option<&StepsBehind>) -> Result<(), Failure> {
        let mut words = std::mem::take(&mut plan.argv);
        if let Some(part) = part {
            words = [b"/bin/sh", &b"-e"[..], b"-c", part.script.as_bytes()]
                .map(<[u8]>::to_vec)
                .to_vec();
            plan.expected
                .retain(|output| part.outputs.contains(&output.path));
        }
        let words = words.into_iter().map(OsString::from_vec).collect();
        let output = Path::new(OWN).join(BYTES);
        let command = self.engine.command(&output, self.implicit, words);
        plan.argv = command.into_iter().map(OsString::into_vec).collect();
        let own = tempfile::Builder::new()
            .prefix("refine-")
            .tempdir_in(self.current.home.dir())?;
        fs::create_dir(own.path().join(BYTES))?;
        let left = replay::under(self.current, own.path(), plan.clone())?;
        let verdict = verdict::judge(&self.current.store, &plan, &left, |_| true)?;
        self.check(&verdict)?;
        let made = own.path().join(BYTES);
        let to = self.current.home.bytes_dir(self.run);
        match part {
            Some(_) => kept_bytes::add(&made, &to),
            None => kept_bytes::replace(&made, &to),
        }
        .map_err(|error| Failure::not_found(format!("cannot write {}: {error}", to.display())))?;
        for note in &plan.notes {
            complain(note);
        }
        say_unknown(&verdict);
        Ok(())
    }

    /// Refuses a replay that made other outputs.
    fn check(&self, verdict: &Verdict) -> Result<(), Failure> {
        if verdict.is_identical() {
            return Ok(());
        }
        let differs = |state: &OutputState| {
            !matches!(state, OutputState::Identical | OutputState::Unknown(_))
        };
        let mut outputs = verdict.outputs.iter();
        let first = outputs.find(|output| differs(&output.state));
        let first = first.map_or("an output".to_owned(), |output| shown(&output.path));
        Err(Failure::not_found(format!(
            "run {} is not refined: its replay made another {first}; what was known of its bytes stays as it was",
            self.run
        )))
    }
}

fn say_unknown(verdict: &Verdict) {
    let unknown = |output: &&OutputVerdict| matches!(output.state, OutputState::Unknown(_));
    let unknown: Vec<_> = verdict.outputs.iter().filter(unknown).collect();
    if let Some(first) = unknown.first() {
        complain(&format!(
            "{} could not be compared, because no recorded content is known (first: {})",
            counted(unknown.len(), "output", "outputs"),
            shown(&first.path)
        ));
    }
}

/// The run of that id or name; or a file, with the run that made its newest version, or the run
/// behind its `@`.
fn subject_of(
    current: &CurrentStore,
    subject: &OsStr,
) -> Result<(String, Option<PathBuf>), Failure> {
    let name = subject.to_str().filter(|name| !name.contains('/'));
    if let Some(Ok(run)) = name.map(|name| current.run(Some(name))) {
        return Ok((run, None));
    }
    let (path, run) = match subject::notation(current, subject)? {
        PathNotation::Plain(path) => {
            let run = byte_origins::writer(current, &path)?;
            (path, run)
        }
        PathNotation::OfRun(path, run) => (path, run),
        PathNotation::AtMoment(..) => {
            return Err(Failure::misuse(
                "bytes are known by run: give PATH@RUN instead of a moment",
            ));
        }
    };
    Ok((run, Some(std::path::absolute(path)?)))
}
