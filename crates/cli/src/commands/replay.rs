//! `replay`: runs a recorded command again in an empty root, and compares the outputs with the
//! recorded ones.

mod attempt_results;
mod attempts;
mod copies;
mod deep;
mod deep_report;
mod deviations;
mod directory;
mod fed_bytes;
mod inside;
pub mod logged;
mod missing_program;
mod record_ends;
mod report;
mod request_attempts;
mod request_outputs;
mod series;
mod shallow_command;
pub mod sightings;
mod tool_choice;
pub mod under_engine;

use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use backstory_contents::Contents;
use backstory_export::unfinished::CleanupPath;
use backstory_files::Digest;
use backstory_replay::plan::{self, Deviations, Plan, Stdin};
use backstory_replay::verdict;
use backstory_store::annotations::{self, AnnotationRecord};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

pub use deviations::variables;
pub use inside::{enter, inside};

use directory::{FED, NEXT, PLAN, RESULT, STORE, clear, directory};

use super::Outcome;
use super::contents::store_contents;
use crate::args::replay::ReplayArgs;
use crate::current_store::CurrentStore;
use crate::ending::{self, AtWork, Workers};
use crate::error::{Failure, chain, complain};
use crate::text::progress::Progress;

/// The result that the process inside reports.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Played {
    /// Why the replay failed.
    failure: Option<String>,
    /// The program that is not there, if the replay failed for that.
    missing: Option<Vec<u8>>,
    /// The command's exit status, as `record` reports it.
    status: i32,
    /// Why the command could not be started.
    not_started: Option<String>,
    /// Id of the run that the replay recorded, if any.
    recorded: Option<String>,
    /// How long the command ran, in ns.
    took: u64,
    /// How the program behaved against the deep log, if it was fed from it.
    reconstruction: Option<backstory_reconstruct::verdict::Reconstruction>,
    /// The files that the command left.
    left: Vec<backstory_replay::root::results::ReplayedFile>,
}

/// How the process inside runs the command.
#[derive(Debug, Serialize, Deserialize)]
struct ReplayRequest {
    plan: Plan,
    record: bool,
    /// How the program is fed from the deep log; `None` for a replay without.
    deep: Option<deep::DeepRequest>,
    /// Further attempts may begin in copies of the started program. Standard input asks for them.
    #[serde(default)]
    may_copy: bool,
}

/// Replays a run. Exits with 1 if an output differs.
pub fn run(args: ReplayArgs, store: Option<&Path>) -> Outcome {
    let deviations = deviations::of(&args)?;
    ending::watch(Workers::Killed);
    let prepared = Prepared::new(&args, deviations, store)?;
    let own = directory(args.output_dir.as_deref(), &prepared.run)?;
    let requests = &args.reconstruction.request;
    match (&prepared.deep, &requests[..]) {
        (Some(deep), [(number, last)]) if number == last => {
            let deep = Some(deep.only(*number));
            prepared.once(&args, deep, own)?.print(args.json)
        }
        (Some(deep), [_, ..]) => series::run(&prepared, deep, &args, &own),
        (deep, _) => prepared.once(&args, deep.clone(), own)?.print(args.json),
    }
}

/// A run that can be replayed.
struct Prepared {
    current: CurrentStore,
    run: String,
    /// How the program is fed from the deep log; `None` for a replay without.
    deep: Option<deep::DeepRequest>,
    plan: Plan,
    /// The same without the user's changes, if there are any, and a request is to run again.
    unchanged: Option<Plan>,
    /// True if the user changed nothing.
    faithful: bool,
    recorded_status: Option<i32>,
    starts: RefCell<copies::Starts>,
}

impl Prepared {
    fn new(
        args: &ReplayArgs,
        mut deviations: Deviations,
        store: Option<&Path>,
    ) -> Result<Prepared, Failure> {
        let mut current = CurrentStore::open(store)?;
        let run = current.run(args.run.as_deref())?;
        let deep = match args.deep {
            true => Some(deep::request(&current, &run, args, &mut deviations)?),
            false => None,
        };
        store_contents(&mut current);
        let progress = Progress::start("planning the replay");
        let contents = current.home.contents_dir();
        let logged = logged::logged(&current.home, &run);
        let plan = |deviations: &Deviations| {
            let contents = contents.clone();
            plan::plan(&current.store, contents, &run, deviations, &logged)
        };
        let unchanged = match &deep {
            Some(_) if !args.reconstruction.request.is_empty() && !deviations.is_faithful() => {
                let unchanged = plan(&deviations.without_changes());
                let searches = args.reconstruction.tries > 1;
                let told = unchanged.inspect_err(|error| {
                    if searches {
                        complain(&missing_program::searched_changed(error));
                    }
                });
                told.ok()
            }
            _ => None,
        };
        let plan = plan(&deviations);
        let mut plan = plan.map_err(|error| missing_program::lacking(error, deep.as_ref()))?;
        if let Some(deep) = &deep {
            let other = missing_program::other_build(&plan, deep, &deviations);
            plan.notes.extend(other);
        }
        progress.end();
        let details = backstory_query::details(&current.store, &run)?;
        Ok(Prepared {
            faithful: deviations.is_faithful(),
            recorded_status: super::run_summary::status(&details.summary),
            current,
            run,
            deep,
            plan,
            unchanged,
            starts: RefCell::default(),
        })
    }

    /// Runs the plan in a directory, compares the outputs, and keeps the verdict.
    fn once(
        &self,
        args: &ReplayArgs,
        deep: Option<deep::DeepRequest>,
        own: PathBuf,
    ) -> Result<report::Report<'_>, Failure> {
        let source = deep.clone();
        let mut played = self.played(args, deep, &own)?;
        if let (Some(source), Some(result)) = (&source, &mut played.reconstruction) {
            source.find_origins(result)?;
        }
        let progress = Progress::start("comparing the outputs");
        let request = played.reconstruction.as_ref();
        let outputs = match (&source, request.and_then(|r| r.request.as_ref())) {
            (Some(source), Some(request)) => Some(source.outputs(request)?),
            _ => None,
        };
        let concerns = |path: &[u8]| outputs.as_ref().is_none_or(|outputs| outputs.has(path));
        let store = &self.current.store;
        let mut verdict = verdict::judge(store, &self.plan, &played.left, concerns)?;
        if let Some(outputs) = &outputs {
            outputs.keep_in(&mut verdict);
        }
        let place = (&self.current, self.run.as_str());
        if let Some(source) = &source {
            record_ends::judge_all(place, source, (request, self.faithful), &mut verdict)?;
        }
        if let Some(found) = &mut played.reconstruction {
            found.files = deep_report::file_counts(&verdict);
        }
        progress.end();
        let mut looked_for = untouched(&own, &played, &self.plan);
        looked_for.extend(program_here(&played, &self.plan));
        let report = report::Report {
            plan: &self.plan,
            faithful: self.faithful,
            recorded_status: self.recorded_status,
            untouched: looked_for,
            played,
            verdict,
            directory: own,
        };
        // The verdict is printed even if the store cannot be written.
        let said = AnnotationRecord::Set(report.kept().annotation(&self.run));
        if let Err(error) = annotations::append(&self.current.home, &[said]) {
            complain(&format!("the verdict is not stored: {}", chain(&error)));
        }
        Ok(report)
    }

    /// Runs the plan in a directory. Only the outputs stay there.
    fn played(
        &self,
        args: &ReplayArgs,
        deep: Option<deep::DeepRequest>,
        own: &Path,
    ) -> Result<Played, Failure> {
        let leaving = CleanupPath::at(own);
        // A replay that is killed leaves its directory to the next one, which removes directories
        // without a lock.
        let lock = File::open(own)?;
        let _ = flock(&lock, FlockOperation::NonBlockingLockExclusive);
        let played = match self.attempted(args, deep, own) {
            Ok(played) => played,
            Err(failure) => {
                clear(own);
                return Err(failure);
            }
        };
        for name in [FED, NEXT, PLAN, RESULT] {
            let _ = fs::remove_file(own.join(name));
        }
        let _ = fs::remove_dir(own.join("root"));
        drop((leaving, lock));
        Ok(played)
    }

    /// Runs the plan. If the user changed something, what a request needs is found without that.
    fn attempted(
        &self,
        args: &ReplayArgs,
        deep: Option<deep::DeepRequest>,
        own: &Path,
    ) -> Result<Played, Failure> {
        if let Some(deep) = deep.as_ref().filter(|deep| deep.has_request())
            && args.reconstruction.tries > 1
            && let Some(plan) = match self.faithful {
                true => deep.is_changed().then_some(&self.plan),
                false => self.unchanged.as_ref(),
            }
        {
            let how = (args, &mut *self.starts.borrow_mut());
            let needed = attempts::needed(&self.current, own, plan, deep, how)?;
            return attempts::with_needed(&self.current, own, &self.plan, deep, (needed, args));
        }
        // Another program or other input says nothing about the recorded time.
        let is_recorded = |deep: &deep::DeepRequest| self.faithful && !deep.is_changed();
        let searches = |deep: &deep::DeepRequest| deep.has_request() || is_recorded(deep);
        let most = match deep.as_ref().is_none_or(searches) {
            true => args.reconstruction.tries,
            false => 1,
        };
        let how = (most, args, &mut *self.starts.borrow_mut());
        attempts::play(&self.current, own, &self.plan, deep, how)
    }
}

/// As [`play_fed`], behind [`feed`].
fn play(
    current: &CurrentStore,
    own: &Path,
    plan: Plan,
    deep: Option<deep::DeepRequest>,
    how: (bool, bool),
) -> Result<Played, Failure> {
    if let Some(deep) = &deep {
        feed(own, deep)?;
    }
    play_fed(current, own, plan, deep, how)
}

/// Writes the part of the run that is fed, if one request runs again. The deep log is read for it,
/// under a bar.
fn feed(own: &Path, deep: &deep::DeepRequest) -> Result<(), Failure> {
    match deep.part()? {
        Some(part) => {
            private_file(&own.join(FED), &part).map_err(|error| failed_to("plan", &error))
        }
        None => Ok(()),
    }
}

fn failed_to(what: &str, error: &io::Error) -> Failure {
    Failure::not_found(format!("cannot {what} the replay: {error}"))
}

/// Starts a process that builds the root and runs the command there, and waits for it. `record`:
/// the command is recorded. `quiet`: its output goes to standard error.
fn play_fed(
    current: &CurrentStore,
    own: &Path,
    plan: Plan,
    deep: Option<deep::DeepRequest>,
    how: (bool, bool),
) -> Result<Played, Failure> {
    let stdin = match &deep {
        Some(deep) if deep.has_tool() => Stdio::inherit(),
        Some(_) => Stdio::null(),
        None => stdin(current, &plan)?,
    };
    let (record, quiet) = how;
    let request = ReplayRequest {
        plan,
        record,
        deep,
        may_copy: false,
    };
    let mut started = Started::new(own, &request, stdin, quiet)?;
    let status = started.wait()?;
    started.result(own, status)
}

/// The same for the first of several attempts. Further ones may begin in copies of the program.
/// Returns the process that holds it, if it was copied.
fn play_first(
    own: &Path,
    plan: Plan,
    deep: deep::DeepRequest,
    quiet: bool,
) -> Result<(Played, Option<copies::Holder>), Failure> {
    let (channel, inside) = UnixStream::pair()?;
    let request = ReplayRequest {
        plan,
        record: false,
        deep: Some(deep),
        may_copy: true,
    };
    let started = Started::new(own, &request, OwnedFd::from(inside).into(), quiet)?;
    copies::Holder::first(started, channel, own)
}

/// A process that builds the root and runs the command there.
struct Started {
    child: Child,
    at_work: Option<AtWork>,
    /// The build id that the program had when it was recorded.
    build: Option<String>,
}

impl Started {
    fn new(
        own: &Path,
        request: &ReplayRequest,
        stdin: Stdio,
        quiet: bool,
    ) -> Result<Started, Failure> {
        let fail = |what: &str, error: io::Error| failed_to(what, &error);
        let text = serde_json::to_vec(request).map_err(|error| fail("plan", error.into()))?;
        private_file(&own.join(PLAN), &text).map_err(|error| fail("plan", error))?;
        let program = std::env::current_exe().map_err(|error| fail("start", error))?;
        let mut command = Command::new(program);
        command
            .arg("replay-enter")
            .arg(own)
            .env_clear()
            .stdin(stdin);
        if quiet {
            // Where the command would print is where the report goes.
            command.stdout(io::stderr().as_fd().try_clone_to_owned()?);
        }
        let env = request.plan.env.iter().cloned();
        command
            .envs(env.map(|(name, value)| (OsString::from_vec(name), OsString::from_vec(value))));
        let child = command.spawn().map_err(|error| fail("start", error))?;
        let build = request.deep.as_ref().and_then(deep::DeepRequest::build);
        Ok(Started {
            at_work: Some(AtWork::of(&child)),
            build: build.map(str::to_owned),
            child,
        })
    }

    /// Waits while the command runs. A signal that ends the replay also ends the command, whose
    /// files must be removed. The command of a further attempt must not inherit that the signal is
    /// ignored.
    fn while_it_runs<T>(&mut self, waits: impl FnOnce() -> T) -> T {
        let outlived = backstory_sys::outlive_interrupts();
        let found = waits();
        drop(outlived);
        found
    }

    /// Waits for the end of the process.
    fn wait(&mut self) -> Result<Option<ExitStatus>, Failure> {
        let outlived = backstory_sys::outlive_interrupts();
        let status = self.child.wait();
        drop(outlived);
        self.at_work = None;
        status
            .map(Some)
            .map_err(|error| failed_to("wait for", &error))
    }

    fn was_killed(status: Option<ExitStatus>) -> Failure {
        let how = status.map_or_else(String::new, |status| format!(" ({status})"));
        Failure::not_found(format!("the replay was killed before it had finished{how}"))
    }

    /// The result that the process has reported. `status`: of its end, if it has ended.
    fn result(&self, own: &Path, status: Option<ExitStatus>) -> Result<Played, Failure> {
        let read = fs::read(own.join(RESULT))
            .ok()
            .and_then(|text| serde_json::from_slice::<Played>(&text).ok());
        match read {
            Some(Played {
                failure: Some(line),
                missing,
                ..
            }) => Err(Failure::not_found(match missing {
                Some(program) => {
                    let words = missing_program::words(&program, self.build.as_deref());
                    format!("{line}; {words}")
                }
                None => line,
            })),
            Some(played) => Ok(played),
            None => Err(Started::was_killed(status)),
        }
    }
}

/// Makes a file that no other user can read.
fn private_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)
}

/// Runs a plan, whose command was changed, without recording. Returns the files that it left. The
/// command's output goes to standard error.
pub fn under(
    current: &CurrentStore,
    own: &Path,
    plan: Plan,
) -> Result<Vec<backstory_replay::root::results::ReplayedFile>, Failure> {
    let played = play(current, own, plan, None, (false, true))?;
    match played.not_started {
        Some(why) => Err(Failure::not_found(format!("the replay failed: {why}"))),
        None => Ok(played.left),
    }
}

/// The standard input of the recorded run.
fn stdin(current: &CurrentStore, plan: &Plan) -> Result<Stdio, Failure> {
    Ok(match &plan.stdin {
        Stdin::Inherited => Stdio::inherit(),
        Stdin::Empty => Stdio::null(),
        Stdin::Stored(digest) => {
            let mut object =
                Contents::open(&current.home.contents_dir())?.read(&Digest(*digest))?;
            let mut file: File = tempfile::tempfile()?;
            io::copy(&mut object, &mut file)?;
            file.rewind()?;
            file.into()
        }
    })
}

/// Files of this machine that the replay looked for, but the recorded run did not use. They are
/// known only if the replay was recorded.
fn untouched(own: &Path, played: &Played, plan: &Plan) -> Vec<Vec<u8>> {
    use backstory_query::answer::Access;
    let Some(run) = &played.recorded else {
        return Vec::new();
    };
    let Ok(current) = CurrentStore::open(Some(&own.join(STORE))) else {
        return Vec::new();
    };
    let Ok(files) = backstory_query::files(&current.store, run) else {
        return Vec::new();
    };
    let missing = files
        .into_iter()
        .filter(|file| file.access.contains(&Access::Missing));
    let here = missing.filter(|file| {
        fs::symlink_metadata(OsStr::from_bytes(&file.path)).is_ok()
            && !plan.missing.contains(&file.path.to_vec())
    });
    here.map(|file| file.path.to_vec()).collect()
}

/// The path on this machine of a program that could not be started, because the recorded run did
/// not use it.
fn program_here(played: &Played, plan: &Plan) -> Option<Vec<u8>> {
    let name = plan.argv.first().filter(|_| played.not_started.is_some())?;
    let search = plan.env.iter().find(|(name, _)| name == b"PATH");
    let mut directories: Vec<&[u8]> = match (name.contains(&b'/'), search) {
        (true, _) => vec![&plan.cwd],
        (false, search) => search.map_or(Vec::new(), |(_, dirs)| {
            dirs.split(|&byte| byte == b':').collect()
        }),
    };
    directories.retain(|directory| directory.starts_with(b"/"));
    let mut paths = directories
        .into_iter()
        .map(|directory| Path::new(OsStr::from_bytes(directory)).join(OsStr::from_bytes(name)));
    let found = paths.find(|path| path.is_file())?;
    Some(found.into_os_string().into_vec())
}
