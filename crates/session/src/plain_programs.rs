//! The verdicts of a run with `--guard=auto`: which programs need no filter.
//!
//! In: the command, and open files from processes that found no verdict in the table. Out:
//! verdicts, entries of the table, what is kept for later runs, and whether what earlier runs kept
//! was right.
//!
//! Invariants:
//!
//! - A verdict is in the table only if another content of the file would be another entry.
//! - A file of verdicts with a wrong one is removed only after the log has the reason.

use backstory_arena::ChunkSupply;
use backstory_eventlog::Reason;
use backstory_files::{Ident, now};
use backstory_plain::symbols::InnerActs;
use backstory_plain::{Classifier, Examined, ExaminedLoad, VerdictKind, VerdictTable};
use backstory_preserve::LoadedFiles;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The programs that a run knows.
#[derive(Clone)]
pub(crate) struct KnownPrograms {
    classifier: Arc<Mutex<Classifier>>,
    /// The command's own program, if there is one.
    command: Option<Arc<Examined>>,
    /// A verdict of an earlier run was found to be wrong.
    was_misled: Arc<AtomicBool>,
}

impl KnownPrograms {
    /// Begins with the program that the command executes.
    pub(crate) fn begin(mut classifier: Classifier, command: &Path) -> KnownPrograms {
        let command = classifier.command(command).ok().map(Arc::new);
        KnownPrograms {
            classifier: Arc::new(Mutex::new(classifier)),
            command,
            was_misled: Arc::default(),
        }
    }

    /// True if the command needs no filter at its start.
    pub(crate) fn starts_plain(&self) -> bool {
        let command = self.command.as_deref();
        command.is_some_and(|command| command.verdict.is_ok())
    }

    /// The reason that the run is not complete until [`KnownPrograms::confirm`] has found none.
    /// `None`: this run believed no earlier one that a file is plain.
    pub(crate) fn unconfirmed(&self) -> Option<Reason> {
        let believed = self.classifier().believed();
        (!believed.is_empty()).then(|| Reason::wrong_verdicts(&believed))
    }

    /// Classifies the files again that this run believed an earlier one to be plain. Returns the
    /// reason why the run is not complete, if a verdict about one is wrong.
    pub(crate) fn confirm(&self) -> Option<Reason> {
        let wrong = self.classifier().confirm();
        if wrong.is_empty() {
            return None;
        }
        self.was_misled.store(true, Ordering::Release);
        Some(Reason::wrong_verdicts(&wrong))
    }

    /// Keeps the verdicts for later runs in this file. The user does not wait for it. If a verdict
    /// of an earlier run was wrong, the file is removed.
    pub(crate) fn keep(&self, path: &Path) {
        // Without the file, the next run classifies its programs anew.
        let _ = match self.was_misled.load(Ordering::Acquire) {
            false => self.classifier().keep(path),
            true => std::fs::remove_file(path),
        };
    }

    /// Finds the files that the loader reads when a program is executed. `None`: it is not plain.
    pub(crate) fn loaded_files(&self) -> LoadedFiles {
        let known = self.clone();
        Box::new(move |program| {
            let examined = known.classifier().command(program).ok()?;
            examined.verdict.is_ok().then_some(examined.libraries)
        })
    }

    /// Finds the files that the loader reads when a process loads a library by its path. `None`: it
    /// is not plain.
    pub(crate) fn files_of_load(&self) -> LoadedFiles {
        let known = self.clone();
        Box::new(move |library| {
            let mut file = backstory_files::regular::open(library).ok()?;
            let path = library.as_os_str().as_bytes();
            let load = known.classifier().load(&mut file, library, path);
            load.verdict.plain.map(|_| load.needed)
        })
    }

    fn classifier(&self) -> MutexGuard<'_, Classifier> {
        let lock = self.classifier.lock();
        lock.unwrap_or_else(PoisonError::into_inner)
    }
}

/// Classifies the programs of a run.
pub(crate) struct PlainPrograms {
    known: KnownPrograms,
    stock: Arc<ChunkSupply>,
}

impl PlainPrograms {
    /// Begins the table of the run.
    pub(crate) fn begin(known: KnownPrograms, stock: &Arc<ChunkSupply>) -> PlainPrograms {
        let programs = PlainPrograms {
            known,
            stock: Arc::clone(stock),
        };
        let classifier = programs.known.classifier();
        if let Some(words) = stock.arena.table() {
            VerdictTable::begin(words, classifier.cache_ident());
        }
        if let Some(command) = programs.known.command.as_deref() {
            programs.note_program(command);
        }
        drop(classifier);
        programs
    }

    /// 1 if the program is plain, else 0.
    pub(crate) fn program(&self, mut file: File) -> i32 {
        let path = path_of(&file);
        let mut classifier = self.known.classifier();
        let examined = classifier.examine(&mut file, &path);
        self.note_program(&examined);
        examined.verdict.is_ok().into()
    }

    /// Adds the verdicts about a program and its libraries to the table. The caller holds the lock
    /// of the classifier.
    fn note_program(&self, examined: &Examined) {
        let plain = examined.verdict.is_ok();
        for library in examined.libraries.iter().filter(|_| plain) {
            self.note(*library, VerdictKind::Library, Some(InnerActs::default()));
        }
        if let Some(program) = examined.program {
            let plain = plain.then_some(examined.acts);
            self.note(program, VerdictKind::Program, plain);
        }
    }

    /// 1 if the library is plain, else 0.
    pub(crate) fn library(&self, mut file: File) -> i32 {
        let path = path_of(&file);
        let mut classifier = self.known.classifier();
        let plain = classifier.examine_library(&mut file, &path);
        if let Some(library) = plain {
            self.note(library, VerdictKind::Library, Some(InnerActs::default()));
        }
        plain.is_some().into()
    }

    /// The low half of the verdict about a library that a process loads by this path or name. 0: it
    /// is not plain. Then the paths of the files that the loader opens, each with its NUL.
    pub(crate) fn load(&self, file: Option<File>, name: &[u8]) -> (i32, Vec<u8>) {
        let mut classifier = self.known.classifier();
        let load = match file {
            Some(mut file) => {
                let path = path_of(&file);
                Some(classifier.load(&mut file, &path, name))
            }
            None => classifier.load_by_name(name),
        };
        let Some(load) = load else {
            return (0, Vec::new());
        };
        self.note_load(&load);
        if load.verdict.plain.is_none() {
            return (0, Vec::new());
        }
        let mut paths = load.paths.join(&0);
        paths.push(0);
        (load.verdict.bits().cast_signed(), paths)
    }

    /// Adds the verdicts about a library that a process loads, and about those that it needs. The
    /// caller holds the lock of the classifier.
    fn note_load(&self, load: &ExaminedLoad) {
        let plain = load.verdict.plain.is_some();
        let loaded = load.needed.iter().chain(&load.library);
        for library in loaded.filter(|_| plain) {
            self.note(*library, VerdictKind::Library, Some(InnerActs::default()));
        }
        if let (Some(library), Some(table)) = (load.library, self.table())
            && library.changed_before(now())
        {
            table.insert_load(library, load.verdict);
        }
    }

    fn table(&self) -> Option<VerdictTable<'_>> {
        self.stock.arena.table().and_then(VerdictTable::of)
    }

    /// Adds a verdict to the table. The caller holds the lock of the classifier, so no other thread
    /// does this.
    fn note(&self, file: Ident, kind: VerdictKind, plain: Option<InnerActs>) {
        if let (true, Some(table)) = (file.changed_before(now()), self.table()) {
            // A full table takes no more, and the next process asks again.
            table.insert(file, kind, plain);
        }
    }
}

/// The path of an open file, for messages.
fn path_of(file: &File) -> PathBuf {
    std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap_or_default()
}
