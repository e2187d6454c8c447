//! The files of a request that ran again: those that it wrote, and not those of other requests.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use backstory_deep::{DeepLog, Request};
use backstory_reconstruct::RecordedRun;
use backstory_reconstruct::verdict::RequestVerdict;
use backstory_replay::verdict::{OutputState, Verdict};

/// Why a file cannot be compared.
const SHARED: &str = "requests that did not run again wrote it, too";

/// Leaves those outputs in the verdict that the request wrote, or one that was fed for it. The
/// state of a file that other requests wrote, too, is unknown.
pub fn keep(log: &DeepLog, run: &RecordedRun, request: &RequestVerdict, verdict: &mut Verdict) {
    let all = log.requests();
    let (mut own, mut others) = (HashSet::new(), HashSet::new());
    for (at, one) in all.iter().enumerate() {
        let number = at + 1;
        let ran = number == request.number || request.fed.contains(&number);
        let paths = written(run, one);
        if ran {
            own.extend(paths);
        } else {
            others.extend(paths);
        }
    }
    verdict
        .outputs
        .retain(|output| own.contains(&output.path[..]));
    for output in &mut verdict.outputs {
        let differs = !matches!(output.state, OutputState::Identical);
        if differs && others.contains(&output.path[..]) {
            output.state = OutputState::Unknown(SHARED.to_owned());
        }
    }
}

/// The absolute paths of the files that a request wrote.
fn written(run: &RecordedRun, request: &Request) -> Vec<Vec<u8>> {
    let mut processes = run.processes.iter();
    let process = processes.find(|process| process.epoch == request.epoch);
    let mut started = run.processes.iter().filter(|p| p.start.by_exec);
    // A forked process has the directory of its program.
    let directory = process
        .filter(|process| !process.start.directory.is_empty())
        .or_else(|| started.next())
        .map_or(&b"/"[..], |process| &process.start.directory);
    let absolute = |path: &Vec<u8>| {
        let path = Path::new(OsStr::from_bytes(directory)).join(OsStr::from_bytes(path));
        normal(&path)
    };
    request.written.iter().map(absolute).collect()
}

/// A path without `.` and `..`.
pub fn normal(path: &Path) -> Vec<u8> {
    use std::path::{Component, PathBuf};
    let mut all = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(all.pop()),
            part => all.push(part),
        }
    }
    all.into_os_string().into_vec()
}
