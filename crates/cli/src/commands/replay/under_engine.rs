//! A run, or a request of it, against its deep log under the byte engine.
//!
//! In: a run with a deep log. Out: whether the result is the recorded one. The store may lack the
//! contents of files: those that the programs read through calls are in the log.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use backstory_reconstruct::read_files::ReadFile;
use backstory_reconstruct::search::Attempt;
use backstory_reconstruct::verdict::{Likeness, Reconstruction};
use backstory_replay::Error;
use backstory_replay::plan::{self, Deviations, Plan};
use backstory_replay::verdict::{self, Verdict};

use super::copies::Starts;
use super::deep::{self, DeepRequest};
use super::logged::logged;
use super::{Played, attempts, directory};
use crate::args::replay::{ReconstructionArgs, ReplayArgs};
use crate::current_store::CurrentStore;
use crate::error::{Failure, chain};

/// The files of the log, below the directory of the replay.
const READ: &str = "read";

/// A run whose programs ran again under the engine, with the recorded result.
pub struct Refined {
    /// The comparison of the files that it left.
    pub verdict: Verdict,
    /// The comparison with the log.
    pub reconstruction: Reconstruction,
    /// Sentences of the plan for the user.
    pub notes: Vec<String>,
}

/// True if the run has a deep log.
pub fn is_deep(current: &CurrentStore, run: &str) -> bool {
    current.home.deep_log_path(run).exists()
}

/// Runs it again in a directory of the store. `tool`: the engine and its options, which writes into
/// an empty directory `bytes` of this directory. An error says how the result differs.
pub fn run(
    current: &CurrentStore,
    own: &Path,
    run: &str,
    request: Option<usize>,
    (tool, bytes): (Vec<Vec<u8>>, &Path),
) -> Result<Refined, Failure> {
    let args = ReplayArgs::deeply(Some(run.to_owned()), ReconstructionArgs::of(request));
    // The engine itself, and Valgrind, are files that the run did not use.
    let mut deviations = Deviations {
        allow_host: true,
        ..Deviations::default()
    };
    let mut source = deep::request(current, run, &args, &mut deviations)?;
    let plan = plan(current, own, run, &source, deviations)?;
    if let Some(number) = request {
        // The search for what the request needs is done without the slow engine.
        let alone = source.only(number);
        let most = args.reconstruction.tries;
        let how = (most, &args, &mut Starts::default());
        let found = attempts::play(current, own, &plan, Some(alone.clone()), how)?;
        let found = alike(found)?;
        let shift = found.shift;
        let served = found.request.unwrap_or_default();
        source = alone.at(&Attempt {
            fed: served.fed,
            shift,
        });
        directory::empty(own);
    }
    fs::create_dir(bytes)?;
    let source = source.under(tool);
    let played = super::play(
        current,
        own,
        plan.clone(),
        Some(source.clone()),
        (false, true),
    )?;
    let left = played.left.clone();
    let reconstruction = alike(played)?;
    let outputs = match &reconstruction.request {
        Some(request) => Some(source.outputs(request)?),
        None => None,
    };
    let concerns = |path: &[u8]| outputs.as_ref().is_none_or(|outputs| outputs.has(path));
    let mut verdict = verdict::judge(&current.store, &plan, &left, concerns)?;
    if let Some(outputs) = &outputs {
        outputs.keep_in(&mut verdict);
    }
    Ok(Refined {
        verdict,
        reconstruction,
        notes: plan.notes,
    })
}

/// The result, if it is the recorded one.
fn alike(mut played: Played) -> Result<Reconstruction, Failure> {
    let Some(found) = played.reconstruction.take() else {
        return Err(Failure::not_found("the programs could not run again"));
    };
    if found.likeness() != Likeness::Different {
        return Ok(found);
    }
    let why = match (&found.stopped, found.first_difference()) {
        (Some(why), _) => why.clone(),
        (None, Some(first)) => format!(
            "{} of {}, {}, byte {} (recorded {}, came {})",
            first.kind.words(),
            first.program,
            first.object,
            first.position,
            first.recorded,
            first.came
        ),
        (None, None) => match found.not_started.first() {
            Some(program) => format!("{program} was not started again"),
            None => "the request was not served to its end".to_owned(),
        },
    };
    Err(Failure::not_found(format!(
        "the replay from the deep log differs: {why}"
    )))
}

/// The plan of the replay. Files come from the deep log where this machine does not have them as
/// they were read.
fn plan(
    current: &CurrentStore,
    own: &Path,
    run: &str,
    source: &DeepRequest,
    mut deviations: Deviations,
) -> Result<Plan, Failure> {
    deviations.inputs = files_of_log(own, &source.read_files()?)?;
    let contents = current.home.contents_dir();
    let logged = logged(&current.home, run);
    loop {
        let contents = contents.clone();
        match plan::plan(&current.store, contents, run, &deviations, &logged) {
            // A process read it, and the graph does not count that as an input of the run.
            Err(Error::NotAnInput(path)) => {
                let before = deviations.inputs.len();
                let is_other = |(old, _): &(PathBuf, PathBuf)| old.as_os_str().as_bytes() != &*path;
                deviations.inputs.retain(is_other);
                if deviations.inputs.len() == before {
                    return Err(Failure::not_found(chain(&Error::NotAnInput(path))));
                }
            }
            plan => return Ok(plan?),
        }
    }
}

/// Writes the files of the log that this machine lacks. Returns each path with the new file.
fn files_of_log(
    own: &Path,
    files: &BTreeMap<Vec<u8>, ReadFile>,
) -> Result<Vec<(PathBuf, PathBuf)>, Failure> {
    let directory = own.join(READ);
    fs::create_dir(&directory)?;
    let mut made = Vec::new();
    for (path, file) in files {
        let path = Path::new(OsStr::from_bytes(path));
        if has(path, file) {
            continue;
        }
        let new = directory.join(made.len().to_string());
        super::private_file(&new, &file.bytes())?;
        made.push((path.to_owned(), new));
    }
    Ok(made)
}

/// True if a file of this machine has the bytes that the programs read.
fn has(path: &Path, file: &ReadFile) -> bool {
    let Ok(now) = File::open(path) else {
        return false;
    };
    file.pieces.iter().all(|(at, then)| {
        let mut bytes = vec![0; then.len()];
        now.read_exact_at(&mut bytes, *at).is_ok() && bytes == *then
    })
}
