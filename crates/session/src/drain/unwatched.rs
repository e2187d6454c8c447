//! Finds the programs that no part of backstory observed. Without the guard these are the programs
//! that take no recorder, and Go programs, whose calls bypass the C library.
//!
//! Program files are examined when executions reach the log, each path once, as in
//! [`super::privileges`]. A relative path starts from the directory that its process changed to. If
//! the process changed to none, the nearest ancestor that did counts, or else the command's
//! directory. A file that is gone is not judged. In another root the programs' own chunks count
//! ([`super::other_roots`]).

use super::executed::{ProgramEvent, each};
use super::other_roots::ProgramsInOtherRoots;
use backstory_eventlog::Reason;
use backstory_eventlog::chunk::ChunkView;
use backstory_files::elf::{self, ElfHead, Segment};
use backstory_files::executable;
use backstory_files::regular;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Most programs that are examined.
const LOOKED_AT: usize = 10_000;
/// Most programs that are named.
const NAMED: usize = 3;
/// Most generations of ancestors that are searched.
const GENERATIONS: usize = 16;
/// Longest chain of scripts that interpret each other (Linux: 5).
const DEPTH: u32 = 5;

/// The programs executed so far.
#[derive(Debug)]
pub(crate) struct Unwatched {
    directory: PathBuf,
    seen: HashSet<Box<[u8]>>,
    named: Vec<String>,
    count: usize,
    /// The directories that each process changed to, in order.
    went: HashMap<u32, Vec<PathBuf>>,
    parents: HashMap<u32, u32>,
    /// Programs by relative path, of processes that changed to no directory.
    relative: HashSet<(u32, Box<[u8]>)>,
    elsewhere: ProgramsInOtherRoots,
}

impl Unwatched {
    /// For a run in the current directory.
    pub(crate) fn new() -> Unwatched {
        Unwatched {
            directory: std::env::current_dir().unwrap_or_default(),
            seen: HashSet::new(),
            named: Vec::new(),
            count: 0,
            went: HashMap::new(),
            parents: HashMap::new(),
            relative: HashSet::new(),
            elsewhere: ProgramsInOtherRoots::default(),
        }
    }

    /// Examines the programs executed in a chunk.
    pub(crate) fn look(&mut self, chunk: &[u8]) {
        let Some((head, _)) = ChunkView::new(chunk) else {
            return;
        };
        let pid = if head.host_pid == 0 {
            head.pid
        } else {
            head.host_pid
        };
        if self.parents.len() < LOOKED_AT {
            self.parents.insert(pid, head.ppid);
        }
        self.elsewhere.heard(pid, head.ppid, head.epoch);
        each(chunk, |told| {
            self.elsewhere.does(pid, head.epoch, told);
            self.hear(pid, head.ppid, told);
        });
    }

    fn hear(&mut self, pid: u32, parent: u32, told: ProgramEvent<'_>) {
        match told {
            ProgramEvent::Directory(now)
                if now.starts_with(b"/") && self.went.len() < LOOKED_AT =>
            {
                let places = self.went.entry(pid).or_default();
                let now = PathBuf::from(OsStr::from_bytes(now));
                if places.last() != Some(&now) && places.len() < LOOKED_AT {
                    places.push(now);
                }
            }
            ProgramEvent::Directory(_) | ProgramEvent::Root | ProgramEvent::Outside(_) => {}
            ProgramEvent::Program(_) | ProgramEvent::Spawned(..) if self.elsewhere.is(pid) => {}
            ProgramEvent::Program(path) | ProgramEvent::Spawned(_, path)
                if path.starts_with(b"/") =>
            {
                self.program(path)
            }
            ProgramEvent::Program(path) | ProgramEvent::Spawned(_, path) => {
                match self.went.get(&pid).and_then(|places| places.last()) {
                    Some(place) => {
                        let file = joined(place, path);
                        self.program(file.as_os_str().as_bytes());
                    }
                    None if self.relative.len() < LOOKED_AT => {
                        self.relative.insert((parent, path.into()));
                    }
                    None => {}
                }
            }
        }
    }

    /// The remaining unobserved programs. These are programs by relative path that take no recorder
    /// and were not counted under another path, and silent programs in another root.
    fn left(&self) -> Vec<String> {
        let mut found = HashSet::new();
        for (parent, path) in &self.relative {
            let places = self.of_ancestors(*parent);
            let files = places.into_iter().map(|place| joined(place, path));
            let unseen = |file: &PathBuf| !self.seen.contains(file.as_os_str().as_bytes());
            found.extend(
                files
                    .filter(unseen)
                    .find(|file| takes_no_recorder(file, DEPTH)),
            );
        }
        let silent = self.elsewhere.silent().into_iter();
        found.extend(silent.map(|path| PathBuf::from(OsStr::from_bytes(path))));
        let mut found: Vec<String> = found
            .iter()
            .map(|file| file.display().to_string())
            .collect();
        found.sort();
        found
    }

    /// The directories of a process, or of its nearest ancestor with known ones.
    fn of_ancestors(&self, mut pid: u32) -> Vec<&PathBuf> {
        for _ in 0..GENERATIONS {
            if let Some(places) = self.went.get(&pid) {
                return places.iter().chain([&self.directory]).collect();
            }
            let Some(&parent) = self.parents.get(&pid) else {
                break;
            };
            pid = parent;
        }
        vec![&self.directory]
    }

    fn program(&mut self, path: &[u8]) {
        if self.seen.len() >= LOOKED_AT || self.seen.contains(path) {
            return;
        }
        self.seen.insert(path.into());
        let file = joined(&self.directory, path);
        if !takes_no_recorder(&file, DEPTH) {
            return;
        }
        self.count += 1;
        if self.named.len() < NAMED {
            self.named.push(file.display().to_string());
        }
    }

    /// The reason why the run is not complete. `None` if it is.
    pub(crate) fn reason(&self) -> Option<String> {
        let left = self.left();
        let count = self.count + left.len();
        let named: Vec<String> = self.named.iter().cloned().chain(left).take(NAMED).collect();
        let more = count.checked_sub(named.len()).filter(|more| *more > 0);
        let more = more.map_or(String::new(), |more| format!(" and {more} more"));
        let named = named.join(", ");
        let programs = format!("{named}{more}");
        (count > 0).then(|| Reason::Unwatched { programs }.to_string())
    }
}

/// A program's path as a person would write it, without the `.` of `./prog`.
fn joined(place: &Path, path: &[u8]) -> PathBuf {
    place.join(OsStr::from_bytes(path)).components().collect()
}

/// True for a program that the loader puts no recorder into. It has no loader, is for another
/// machine, or has more privilege than its caller. True also for a Go program, whose calls the
/// recorder hardly sees.
fn takes_no_recorder(file: &Path, depth: u32) -> bool {
    let mut head = Vec::new();
    let opened = regular::open(file);
    let Ok(meta) = opened.and_then(|file| {
        let meta = file.metadata()?;
        file.take(executable::HEAD as u64).read_to_end(&mut head)?;
        Ok(meta)
    }) else {
        return false;
    };
    if head.starts_with(b"#!") {
        return depth > 0
            && executable::interpreter(&head).is_some_and(|name| {
                takes_no_recorder(Path::new(OsStr::from_bytes(name)), depth - 1)
            });
    }
    let raised = meta.mode() & 0o4000 != 0 && meta.uid() != rustix::process::geteuid().as_raw();
    head.starts_with(b"\x7fELF") && (raised || !has_loader(&head) || is_go(&head))
}

/// True if the beginning of a program names a loader for this machine. Headers that lie elsewhere
/// count as naming one.
fn has_loader(head: &[u8]) -> bool {
    let is_loader = |segment: Option<Segment>| segment.is_none_or(|s| s.kind == elf::INTERPRETER);
    ElfHead::new(head)
        .filter(|elf| elf.is_wide() && elf.machine() == Some(elf::X86_64))
        .is_some_and(|elf| elf.segments().any(is_loader))
}

/// True if a note of the program names Go's linker.
fn is_go(head: &[u8]) -> bool {
    /// The name and the type of the note: Go's build id.
    const NAME: &[u8] = b"Go\0\0";
    const BUILD: &[u8] = &[4, 0, 0, 0];
    let is_its = |note: &[u8]| note[..4] == *BUILD && note[8..12] == *BUILD && note[12..] == *NAME;
    ElfHead::new(head).is_some_and(|elf| {
        let notes = elf.segments().flatten().filter(|s| s.kind == elf::NOTE);
        notes
            .filter_map(|segment| elf.bytes(segment))
            .any(|notes| notes.windows(16).any(is_its))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(class: u8, kinds: &[u32]) -> Vec<u8> {
        let mut head = vec![0; 64 + 56 * kinds.len()];
        head[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', class, 1]);
        head[18] = elf::X86_64 as u8;
        (head[32], head[54], head[56]) = (64, 56, kinds.len() as u8);
        for (n, kind) in kinds.iter().enumerate() {
            head[64 + 56 * n..][..4].copy_from_slice(&kind.to_le_bytes());
        }
        head
    }

    /// A chunk in which a process changes to these directories and then executes this program.
    fn chunk(pid: u32, ppid: u32, directories: &[&Path], program: &str) -> Vec<u8> {
        use backstory_abi::{self as abi, op};
        let head = abi::Chunk {
            magic: abi::CHUNK_MAGIC,
            pid,
            tid: pid,
            ppid,
            ..abi::Chunk::default()
        };
        let mut chunk = backstory_eventlog::chunk::ChunkBuilder::new(head);
        let mut record = backstory_eventlog::record::RecordBuilder::new();
        for directory in directories {
            record.start(op::CHDIR, 1).result(0);
            record
                .string(b"somewhere")
                .string(directory.as_os_str().as_bytes());
            assert!(chunk.push(record.finish()));
        }
        record.start(op::EXEC, 2);
        record.string(program.as_bytes());
        assert!(chunk.push(record.finish()));
        chunk.bytes().to_vec()
    }

    #[test]
    fn a_relative_name_is_looked_for_where_its_process_or_its_ancestor_was() {
        let dir = tempfile::tempdir().unwrap();
        let (own, other) = (dir.path().join("own"), dir.path().join("other"));
        for place in [&own, &other] {
            std::fs::create_dir(place).unwrap();
            std::fs::write(place.join("fixed"), program(2, &[1, 6])).unwrap();
        }
        let own_fixed = own.join("fixed").display().to_string();
        let reason = |chunks: &[Vec<u8>]| {
            let mut unwatched = Unwatched::new();
            chunks.iter().for_each(|chunk| unwatched.look(chunk));
            unwatched.reason().unwrap_or_default()
        };
        let itself = reason(&[chunk(7, 6, &[&other, &own], "./fixed")]);
        assert!(
            itself.contains("/own/fixed") && !itself.contains("/other"),
            "{itself}"
        );
        let parent = chunk(7, 6, &[&own], "/bin/none");
        let shell = chunk(8, 7, &[], "/bin/none");
        let child = chunk(9, 8, &[], "fixed");
        // A child's chunk may come before its parent's.
        let inherited = reason(&[child.clone(), shell, parent]);
        assert!(inherited.contains(&own_fixed), "{inherited}");
        assert_eq!(reason(&[child]), "", "nobody went anywhere");
    }

    #[test]
    fn programs_without_a_loader_for_this_machine_are_named_once() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, bytes: &[u8]| {
            let path = dir.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        };
        let own = std::env::current_exe().unwrap();
        let dynamic = file("dynamic", &program(2, &[1, 6, 3]));
        let fixed = file("static", &program(2, &[1, 6]));
        let small = file("small", &program(1, &[1, 3]));
        let script = file("script", format!("#! {} -x\n", fixed.display()).as_bytes());
        let other = file("other", b"#!/bin/sh\n");
        let cut = file("cut", b"\x7fELF");
        let mut go = program(2, &[1, 3, elf::NOTE as u32]);
        let note = go.len() as u8;
        (go[64 + 2 * 56 + 8], go[64 + 2 * 56 + 32]) = (note, 20);
        go.extend([
            4, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, b'G', b'o', 0, 0, 1, 2, 3, 4,
        ]);
        assert!(has_loader(&go) && is_go(&go) && !is_go(&go[..go.len() - 20]));
        let go = file("go", &go);
        let mut unwatched = Unwatched::new();
        for path in [&own, &dynamic, &other, &dir.path().join("none")] {
            unwatched.program(path.as_os_str().as_bytes());
        }
        assert_eq!(unwatched.reason(), None);
        for path in [&fixed, &fixed, &small, &script, &cut, &go] {
            unwatched.program(path.as_os_str().as_bytes());
        }
        let reason = unwatched.reason().unwrap();
        assert!(
            reason.contains("/static, ") && reason.ends_with("/script and 2 more did was recorded"),
            "{reason}"
        );
    }
}
