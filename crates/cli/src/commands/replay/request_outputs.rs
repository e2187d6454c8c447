//! The files of a request that ran again: those that it wrote, and not those of other parts of the
//! run.
//!
//! Invariant: a path below a linked directory is known by both of its spellings: the one that the
//! program passed, and that of the kernel. The verdict has either.

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

/// The same if the record has too many files to say whose each one is.
const UNNAMED: &str = "the record opens too many files to name those of the request";

/// The files of the requests of a run.
pub struct RequestOutputs {
    /// Those that the request wrote, or one that was fed for it.
    own: HashSet<Vec<u8>>,
    /// Those that other parts of the run wrote, which did not run again.
    others: HashSet<Vec<u8>>,
    /// The request, or one that was fed for it, wrote more files. Any file may be one of these.
    has_more: bool,
}

impl RequestOutputs {
    /// The files of the requests of a log, of which this one ran again.
    pub fn of(log: &ReadLog, request: &RequestVerdict) -> RequestOutputs {
        let directories = directories(&log.run);
        let spellings = spellings(&log.run, &directories);
        let fed: HashSet<&usize> = request.fed.iter().collect();
        let (mut own, mut others) = (HashSet::new(), HashSet::new());
        let mut has_more = false;
        for (number, one) in (1..).zip(&log.requests) {
            let ran = number == request.number || fed.contains(&number);
            has_more |= ran && one.wrote_more;
            let set = match ran {
                true => &mut own,
                false if request.is_client => continue,
                false => &mut others,
            };
            for path in written(&directories, one) {
                set.extend(spellings.get(&path).into_iter().flatten().cloned());
                set.insert(path);
            }
        }
        let later = match request.is_client {
            true => written_behind(&log.run, &directories, request.number),
            false => written_between(&log.run, &directories, |number| {
                number == request.number || fed.contains(&number)
            }),
        };
        others.extend(later);
        RequestOutputs {
            own,
            others,
            has_more,
        }
    }

    /// True for a file that the request wrote, or may have written, or one that was fed for it.
    pub fn has(&self, path: &[u8]) -> bool {
        self.has_more || self.own.contains(path)
    }

    /// Leaves its files in the verdict. If others wrote such a file, too, and it differs, its state
    /// is unknown. The same holds for a file that it may have written.
    pub fn keep_in(&self, verdict: &mut Verdict) {
        verdict.outputs.retain(|output| self.has(&output.path));
        for output in &mut verdict.outputs {
            let differs = !matches!(output.state, OutputState::Identical);
            if differs && self.others.contains(&output.path[..]) {
                output.state = OutputState::Unknown(SHARED.to_owned());
            } else if differs && !self.own.contains(&output.path[..]) {
                output.state = OutputState::Unknown(UNNAMED.to_owned());
            }
        }
    }
}

/// The files that programs of a run opened and wrote themselves. Only these processes ran again,
/// and `first` is the one that the replay started. A file that this one was started with is no file
/// of the root: the bytes for it are compared as those of a stream.
pub fn written_by(run: &RecordedRun, first: u32, ran: &HashSet<u32>) -> HashSet<Vec<u8>> {
    let directories = directories(run);
    let starts = |process: &RecordedProcess| process.pid == first && process.start.by_exec;
    let at = run.processes.iter().position(starts).unwrap_or(0);
    let programs = run.processes.get(at..).unwrap_or_default();
    let given: HashSet<usize> = programs.first().map_or_else(HashSet::new, |process| {
        let inherited = process.inherited.iter().map(|(_, id, _)| *id);
        inherited
            .chain(process.held.iter().map(|(_, id)| *id))
            .collect()
    });
    let mut all = HashSet::new();
    for process in programs.iter().filter(|one| ran.contains(&one.pid)) {
        let own = process.used().filter(|id| !given.contains(id));
        let files = own.map(|id| &run.resources[id]);
        for file in files.filter(|file| file.is_written && file.is_opened_file()) {
            all.insert(file.link.clone());
            all.insert(absolute(&directories, process.epoch, &file.name));
        }
    }
    all
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
    let paths = request.written.iter();
    paths
        .map(|path| absolute(directories, request.epoch, path))
        .collect()
}

/// The absolute path that a process passed.
fn absolute(directories: &HashMap<u64, &[u8]>, epoch: u64, path: &[u8]) -> Vec<u8> {
    let directory = directories.get(&epoch).copied().unwrap_or(b"/");
    normal(&Path::new(OsStr::from_bytes(directory)).join(OsStr::from_bytes(path)))
}

/// The kernel's paths of opened files, by the paths that programs passed, where the two differ.
fn spellings(
    run: &RecordedRun,
    directories: &HashMap<u64, &[u8]>,
) -> HashMap<Vec<u8>, HashSet<Vec<u8>>> {
    let mut all: HashMap<Vec<u8>, HashSet<Vec<u8>>> = HashMap::new();
    for process in &run.processes {
        let resources = process.used().map(|id| &run.resources[id]);
        for resource in resources.filter(|one| one.is_opened_file() && !one.link.is_empty()) {
            let passed = absolute(directories, process.epoch, &resource.name);
            if passed != resource.link {
                all.entry(passed).or_default().insert(resource.link.clone());
            }
        }
    }
    all
}

/// The absolute paths of the files that the record writes behind a request of a client, in both
/// spellings. All that came before ran again.
fn written_behind(
    run: &RecordedRun,
    directories: &HashMap<u64, &[u8]>,
    number: usize,
) -> HashSet<Vec<u8>> {
    let at = number.checked_sub(1);
    let unit = at.and_then(|at| run.units.get(at).copied().flatten());
    let end = unit.map_or(0, |unit| unit.worked_until);
    let mut all = HashSet::new();
    for process in &run.processes {
        let later = process.used().filter(|id| process.wrote_behind(*id, end));
        for resource in later.map(|id| &run.resources[id]) {
            all.insert(resource.link.clone());
            if resource.is_opened_file() {
                all.insert(absolute(directories, process.epoch, &resource.name));
            }
        }
    }
    all
}

/// The absolute paths of the files that the server's own programs wrote last between the requests
/// that ran again, in both spellings. A database writes pages long after the request that changed
/// them. These programs began before the first request. Their files until then were written again.
/// `ran`: whether a request ran again, by its number.
fn written_between(
    run: &RecordedRun,
    directories: &HashMap<u64, &[u8]>,
    ran: impl Fn(usize) -> bool,
) -> HashSet<Vec<u8>> {
    let units = || run.units.iter().flatten().filter(|unit| !unit.is_client);
    let first = units().map(|unit| unit.began).min().unwrap_or(u64::MAX);
    // In the order of their beginning. Each ends with the last one up to here.
    let mut last = 0;
    let units = (1..).zip(&run.units);
    let again = units.filter_map(|(number, unit)| unit.filter(|_| ran(number)));
    let again = again.map(|unit| {
        last = unit.lasts.max(unit.worked_until).max(last);
        (unit.began, last)
    });
    let again: Vec<(u64, u64)> = again.collect();
    let is_between = |time: u64| {
        let begun = again.partition_point(|(began, _)| *began <= time);
        let before = begun.checked_sub(1).and_then(|at| again.get(at));
        first <= time && before.is_none_or(|(_, until)| *until < time)
    };
    let own = run.processes.iter().filter(|process| process.began < first);
    let mut all = HashSet::new();
    for process in own {
        // The outline of a record has the last write to each file only.
        let last = |id: &usize| process.last_write(*id).is_some_and(is_between);
        let files = process.used().filter(last).map(|id| &run.resources[id]);
        for file in files.filter(|file| file.is_opened_file()) {
            all.insert(file.link.clone());
            all.insert(absolute(directories, process.epoch, &file.name));
        }
    }
    all
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

#[cfg(test)]
mod tests {
    use super::RequestOutputs;
    use backstory_replay::verdict::{OutputState, OutputVerdict, Verdict};
    use std::collections::HashSet;

    /// The states of three files that differ: of the request, of others, and of one of them that
    /// the record does not name. `None`: the file is left out.
    fn states(has_more: bool) -> [Option<OutputState>; 3] {
        let paths: [&[u8]; 3] = [b"/own", b"/of others", b"/unnamed"];
        let outputs = RequestOutputs {
            own: HashSet::from([paths[0].to_vec()]),
            others: HashSet::from([paths[1].to_vec()]),
            has_more,
        };
        let differs = |path: &[u8]| OutputVerdict {
            path: path.into(),
            state: OutputState::Different,
            fed_by: Vec::new(),
        };
        let mut verdict = Verdict {
            outputs: paths.map(differs).into(),
            ..Verdict::default()
        };
        outputs.keep_in(&mut verdict);
        paths.map(|path| {
            let mut all = verdict.outputs.iter();
            let found = all.find(|output| output.path[..] == *path);
            found.map(|output| output.state.clone())
        })
    }

    #[test]
    fn a_file_that_may_be_one_of_the_request_is_not_compared_and_is_said() {
        let unknown = |state: &Option<OutputState>| matches!(state, Some(OutputState::Unknown(_)));
        let [own, of_others, unnamed] = states(true);
        assert_eq!(own, Some(OutputState::Different));
        assert!(unknown(&of_others) && unknown(&unnamed), "{unnamed:?}");
        assert_eq!(states(false), [Some(OutputState::Different), None, None]);
    }
}
