//! The code of a deep run that makes system calls by itself: programs, libraries, and the processes
//! that run them.
//!
//! A recorder sees the calls that pass through functions of libc. In: a run. Out: the files with an
//! instruction that enters the kernel. Whether a program executed it is not known: the record would
//! lack that call. Go programs stand apart: their runtime makes nearly all calls by itself. Absent:
//! static programs, which are shallow anyway, files that are gone or were changed since, and code
//! that is made while a program runs.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::Read;

use backstory_abi::PRELOAD_NAME;
use backstory_deep::shared_code::is_shared_code;
use backstory_eventlog::event::Bytes;
use backstory_files::Ident;
use backstory_plain::{Object, find_certain_entry, is_go};
use backstory_query as query;
use backstory_query::answer::{Access, FileUse, ProcessLine};
use backstory_store::Store;
use backstory_workflow::paths::to_path;

use crate::error::Failure;

/// Bytes of the largest file that is read.
const LARGEST: u64 = 512 << 20;
/// Most files that are read.
const MOST: usize = 500;

/// How the code of a file makes system calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CodeCalls {
    /// Through libc, as far as can be seen.
    LibcAlone,
    /// Perhaps also by an instruction of its own.
    Itself,
    /// By Go's runtime. The file is a program.
    GoRuntime,
}

/// The code of one process that makes calls by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessCode {
    /// It runs a Go program.
    pub is_go: bool,
    /// The other programs and libraries that it runs and that have such code.
    pub files: BTreeSet<Bytes>,
}

impl ProcessCode {
    fn add(&mut self, other: &ProcessCode) {
        self.is_go |= other.is_go;
        self.files.extend(other.files.iter().cloned());
    }
}

/// The code of a run that makes calls by itself.
#[derive(Debug, Default)]
pub struct OwnCalls {
    /// The files with such code, by path. Go programs are not among them.
    pub files: Vec<Bytes>,
    /// By id of the process, as in [`ProcessLine::id`]. Those without such code are absent.
    processes: HashMap<u64, ProcessCode>,
}

impl OwnCalls {
    /// Looks at the files that the processes of a run used.
    pub fn of(store: &dyn Store, run: &str, executed: &[ProcessLine]) -> Result<OwnCalls, Failure> {
        let mut own = OwnCalls::default();
        let mut looked_at = BTreeSet::new();
        let (mut programs, mut libraries) = (HashMap::new(), HashSet::new());
        let used = query::files(store, run)?;
        for file in used.iter().filter(|file| may_be_code(file)) {
            if looked_at.len() == MOST {
                break;
            }
            if !looked_at.insert(&file.path) {
                continue;
            }
            let calls = calls_of(file);
            if calls == CodeCalls::LibcAlone {
                continue;
            }
            if file.access.contains(&Access::Exec) {
                programs.insert(file.path.clone(), calls == CodeCalls::GoRuntime);
            }
            if calls == CodeCalls::Itself {
                own.files.push(file.path.clone());
                libraries.extend(is_library(file).then(|| file.path.clone()));
            }
        }
        if programs.is_empty() && libraries.is_empty() {
            return Ok(own);
        }
        let is_code = |path: &[u8], access| match access {
            Access::Exec => programs.contains_key(path),
            Access::Read => libraries.contains(path),
            _ => false,
        };
        for (process, files) in query::files_by_process(store, run, &is_code)? {
            let code = own.processes.entry(process).or_default();
            for file in files {
                match programs.get(&file) {
                    Some(true) => code.is_go = true,
                    _ => {
                        code.files.insert(file);
                    }
                }
            }
        }
        inherit(&mut own.processes, executed);
        Ok(own)
    }

    /// The code of these processes.
    pub fn of_processes(&self, ids: impl IntoIterator<Item = u64>) -> ProcessCode {
        let mut all = ProcessCode::default();
        for id in ids {
            if let Some(code) = self.processes.get(&id) {
                all.add(code);
            }
        }
        all
    }
}

/// Gives the code of a process to the processes that go on with it. These are children by `fork`,
/// and parts that a program marked. The processes stand in the order of their start.
fn inherit(processes: &mut HashMap<u64, ProcessCode>, executed: &[ProcessLine]) {
    let goes_on = |line: &&ProcessLine| line.activity.epoch == 0 || line.marked;
    for line in executed.iter().filter(goes_on) {
        let parent = line.parent_id.and_then(|parent| processes.get(&parent));
        if let Some(parent) = parent.cloned() {
            processes.entry(line.id).or_default().add(&parent);
        }
    }
}

fn name(path: &[u8]) -> &[u8] {
    let mut parts = path.rsplit(|byte| *byte == b'/');
    parts.next().unwrap_or_default()
}

/// True for a file that was read and has the name of a library.
fn is_library(file: &FileUse) -> bool {
    let name = name(&file.path);
    let is_named = name.ends_with(b".so") || name.windows(4).any(|part| part == b".so.");
    is_named && file.access.contains(&Access::Read)
}

/// True for a program that was executed, and for a library. The recorder is in all programs.
fn may_be_code(file: &FileUse) -> bool {
    let is_recorder = name(&file.path) == PRELOAD_NAME.as_bytes();
    let is_code = file.access.contains(&Access::Exec) || is_library(file);
    is_code && !is_recorder && !is_shared_code(&file.path)
}

/// How a file makes calls, if it is here as it was. A static program is shallow anyway.
fn calls_of(file: &FileUse) -> CodeCalls {
    let version = file.ident.as_ref();
    let Some(bytes) = version.and_then(|version| code_of(&file.path, version)) else {
        return CodeCalls::LibcAlone;
    };
    let Ok(object) = Object::parse(&bytes) else {
        return CodeCalls::LibcAlone;
    };
    match (is_go(&bytes), is_library(file)) {
        (_, false) if object.interpreter.is_none() => CodeCalls::LibcAlone,
        (true, false) => CodeCalls::GoRuntime,
        (true, true) => CodeCalls::Itself,
        (false, _) if find_certain_entry(&object).is_some() => CodeCalls::Itself,
        (false, _) => CodeCalls::LibcAlone,
    }
}

/// The content of this version of a file.
fn code_of(path: &[u8], version: &Ident) -> Option<Vec<u8>> {
    let file = query::open_version(to_path(path), version)?;
    let mut bytes = Vec::new();
    file.take(LARGEST).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
