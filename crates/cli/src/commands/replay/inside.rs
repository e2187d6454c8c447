//! The two processes of a replay that run in namespaces of their own.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use backstory_contents::WorkMeter;
use backstory_reconstruct::RecordedRun;
use backstory_reconstruct::engine::AttemptSource;
use backstory_replay::root::{self, OWN, results::RootSnapshot};
use backstory_session as session;
use backstory_store::{Home, open_store};
use rustix::process::{Signal, set_parent_process_death_signal};

use super::copies::Asker;
use super::{PLAN, Played, RESULT, ReplayRequest, STORE};
use crate::commands::Outcome;
use crate::error::{Failure, chain};
use crate::index::{self, Busy};
use crate::recording_options;
use crate::text::progress::{Progress, Unit};

/// The first process: leaves the machine's namespaces and starts the second in them.
pub fn enter(own: &Path) -> Outcome {
    orphaned();
    let result = job(&own.join(PLAN)).and_then(|job| {
        root::enter(&job.plan).map_err(|error| refused(error, job.deep.is_some()))?;
        // By the link in /proc: the path of the program may lead elsewhere in another root.
        let mut second = Command::new("/proc/self/exe");
        let status = second
            .arg0("backstory")
            .arg("replay-inside")
            .arg(own)
            .status()?;
        Ok(status.code().unwrap_or(1))
    });
    match result {
        Ok(status) => Ok(status as u8),
        Err(failure) => tell(&own.join(RESULT), &failed(failure.line)),
    }
}

/// The failure of the first process, with what to do. A container image of the run has no record
/// that feeds its programs.
fn refused(error: backstory_replay::Error, is_deep: bool) -> Failure {
    if !matches!(error, backstory_replay::Error::NoNamespace { .. }) {
        return error.into();
    }
    let advice = match is_deep {
        true => "`backstory doctor` names the setting that allows it",
        false => "`backstory export oci` makes a container image of the run instead",
    };
    Failure::not_found(format!("{error}: {advice}"))
}

/// The second process: the first one of a pid namespace. It builds the root, runs the command and
/// collects its files.
pub fn inside(own: &Path) -> Outcome {
    orphaned();
    let job = job(&own.join(PLAN))?;
    // The deep log is outside of the root.
    let recorded = match &job.deep {
        Some(deep) => match deep.load(own) {
            Ok(recorded) => Some(recorded),
            Err(failure) => return tell(&own.join(RESULT), &failed(failure.line)),
        },
        None => None,
    };
    // The place of the result depends on how far the replay came.
    let meter = WorkMeter::default();
    let progress = Progress::metered("building the root of the replay", &meter, Unit::Things);
    let built = root::build(&job.plan, own, &meter);
    // Its thread must have ended before the process enters a namespace of users.
    progress.end();
    if let Err(error) = built {
        let played = failed(chain(&error));
        return tell(&own.join(RESULT), &played)
            .or_else(|_| tell(&Path::new(OWN).join(RESULT), &played));
    }
    let played = play(&job, recorded).unwrap_or_else(|failure| failed(failure.line));
    tell(&Path::new(OWN).join(RESULT), &played)
}

fn failed(line: String) -> Played {
    Played {
        failure: Some(line),
        ..Played::default()
    }
}

/// Ends with the process that started the replay. With the second process all processes inside end.
fn orphaned() {
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
}

fn job(path: &Path) -> Result<ReplayRequest, Failure> {
    let fail = |error: std::io::Error| {
        Failure::not_found(format!("cannot read {}: {error}", path.display()))
    };
    let text = fs::read(path).map_err(fail)?;
    serde_json::from_slice(&text).map_err(|error| fail(error.into()))
}

fn tell(path: &Path, played: &Played) -> Outcome {
    let text = serde_json::to_vec(played).map_err(Failure::not_found)?;
    let mut file = fs::File::create(path)?;
    file.write_all(&text)?;
    Ok(0)
}

fn play(job: &ReplayRequest, recorded: Option<RecordedRun>) -> Result<Played, Failure> {
    let plan = &job.plan;
    let snapshot = RootSnapshot::take(plan)?;
    // Fed from the deep log, only the program becomes the user: its supervisor chooses the numbers
    // of processes.
    if recorded.is_none() {
        root::become_user(plan)?;
    }
    let began = Instant::now();
    let mut played = match (&job.deep, recorded) {
        (Some(deep), Some(recorded)) => {
            let attempts = match job.may_copy {
                true => Some(Box::new(Asker::new(plan)?) as Box<dyn AttemptSource>),
                false => None,
            };
            deep.play(plan, recorded, attempts)?
        }
        _ if job.record => record(job)?,
        _ => plain(job)?,
    };
    if played.took == 0 {
        played.took = began.elapsed().as_nanos() as u64;
    }
    let meter = WorkMeter::default();
    let progress = Progress::metered("reading the outputs of the replay", &meter, Unit::Bytes);
    played.left = snapshot.collect(&meter)?;
    progress.end();
    Ok(played)
}

/// Runs the command as a child, without recording.
fn plain(job: &ReplayRequest) -> Result<Played, Failure> {
    use std::os::unix::process::ExitStatusExt;
    let mut argv = job
        .plan
        .argv
        .iter()
        .map(|arg| std::ffi::OsString::from_vec(arg.clone()));
    let name = argv.next().unwrap_or_default();
    let mut played = Played::default();
    match Command::new(&name).args(argv).status() {
        Ok(status) => {
            let signal = status.signal().map(|signal| 128 + signal);
            played.status = status.code().or(signal).unwrap_or(125);
        }
        Err(error) => {
            let absent = error.kind() == std::io::ErrorKind::NotFound;
            played.status = if absent { 127 } else { 126 };
            played.not_started = Some(format!("{}: {error}", name.display()));
        }
    }
    Ok(played)
}

/// Records the command into a store of its own, and indexes the run here: only a process inside
/// sees which versions the paths lead to.
fn record(job: &ReplayRequest) -> Result<Played, Failure> {
    let home = Home::locate(Some(&Path::new(OWN).join(STORE))).map_err(Failure::not_found)?;
    let id = home.new_run_id();
    let began = Instant::now();
    let argv = job.plan.argv.iter();
    let recorded = session::record(session::Options {
        command: argv.map(|arg| OsString::from_vec(arg.clone())).collect(),
        name: Some(format!("replay-of-{}", job.plan.run)),
        ..recording_options::of_store(&home, id)
    })
    .map_err(Failure::not_found)?;
    let took = began.elapsed().as_nanos() as u64;
    let mut store = open_store(&home)?;
    // A replay whose run cannot be indexed has succeeded all the same.
    let indexed = index::bring_up_to_date(&home, &mut store, Busy::Wait, false).is_ok();
    Ok(Played {
        status: recorded.status(),
        not_started: recorded.refusal.clone(),
        recorded: indexed.then(|| recorded.run.clone()),
        took,
        ..Played::default()
    })
}
