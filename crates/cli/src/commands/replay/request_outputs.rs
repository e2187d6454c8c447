//! The files of a request that ran again: those that it wrote, and not those of other parts of the
//! run.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use backstory_deep::Request;
use backstory_reconstruct::process::RecordedProcess;
use backstory_reconstruct::verdict::RequestVerdict;
use backstory_reconstruct::{ReadLog, RecordedRun};
use backstory_replay::verdict::{OutputState, Verdict};

/// Why a file cannot be compared.
const SHARED: &str = "parts of the run that did not run again wrote it, too";

/// The files of the requests of a run.
pub struct RequestOutputs {
    /// Those that the request wrote, or one that was fed for it.
    own: HashSet<Vec<u8>>,
    /// Those that other parts of the run wrote, which did not run again.
    others: HashSet<Vec<u8>>,
}

impl RequestOutputs {
    /// The files of the requests of a log, of which this one ran again.
    pub fn of(log: &ReadLog, request: &RequestVerdict) -> RequestOutputs {
        let directories = directories(&log.run);
        let fed: HashSet<&usize> = request.fed.iter().collect();
        let (mut own, mut others) = (HashSet::new(), HashSet::new());
        for (number, one) in (1..).zip(&log.requests) {
            let ran = number == request.number || fed.contains(&number);
            let paths = written(&directories, one);
            if ran {
                own.extend(paths);
            } else if !request.is_client {
                others.extend(paths);
            }
        }
        if request.is_client {
            others = written_behind(&log.run, request.number);
        }
        RequestOutputs { own, others }
    }

    /// True for a file that the request wrote, or one that was fed for it.
    pub fn has(&self, path: &[u8]) -> bool {
        self.own.contains(path)
    }

    /// Leaves its files in the verdict. If others wrote such a file, too, and it differs, its state
    /// is unknown.
    pub fn keep_in(&self, verdict: &mut Verdict) {
        verdict.outputs.retain(|output| self.has(&output.path));
        for output in &mut verdict.outputs {
            let differs = !matches!(output.state, OutputState::Identical);
            if differs && self.others.contains(&output.path[..]) {
                output.state = OutputState::Unknown(SHARED.to_owned());
            }
        }
    }
}

/// The directory of each process, by its epoch. A forked process has the directory of its program.
fn directories(run: &RecordedRun) -> HashMap<u64, &[u8]> {
    let mut started = run.processes.iter().filter(|p| p.start.by_exec);
    let first = started.next().map(|process| &process.start.directory[..]);
    let mut all = HashMap::new();
    for RecordedProcess { epoch, start, .. } in &run.processes {
        let own = Some(&start.directory[..]).filter(|own| !own.is_empty());
        all.insert(*epoch, own.or(first).unwrap_or(b"/"));
    }
    all
}

/// The absolute paths of the files that a request wrote.
fn written(directories: &HashMap<u64, &[u8]>, request: &Request) -> Vec<Vec<u8>> {
    let directory = directories.get(&request.epoch).copied().unwrap_or(b"/");
    let absolute = |path: &Vec<u8>| {
        let path = Path::new(OsStr::from_bytes(directory)).join(OsStr::from_bytes(path));
        normal(&path)
    };
    request.written.iter().map(absolute).collect()
}

/// The absolute paths of the files that the record writes behind a request of a client. All that
/// came before ran again.
fn written_behind(run: &RecordedRun, number: usize) -> HashSet<Vec<u8>> {
    let at = number.checked_sub(1);
    let unit = at.and_then(|at| run.units.get(at).copied().flatten());
    let end = unit.map_or(0, |unit| unit.worked_until);
    let streams = run.processes.iter().flat_map(|process| &process.streams);
    let later = streams.filter(|(_, one)| one.output.moves().any(|(time, _)| time > end));
    later
        .map(|(id, _)| run.resources[*id].link.clone())
        .collect()
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
