//! The verdicts of a run with `--guard=auto`: which programs need no filter.
//!
//! In: open files, from processes that found no verdict in the table. Out: verdicts, and entries of
//! the table.
//!
//! Invariant: a verdict is in the table only if another content of the file would be another entry.

use backstory_arena::ChunkSupply;
use backstory_files::{Ident, now};
use backstory_plain::symbols::InnerActs;
use backstory_plain::{Classifier, VerdictKind, VerdictTable};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Classifies the programs of a run.
pub(crate) struct PlainPrograms {
    classifier: Mutex<Classifier>,
    stock: Arc<ChunkSupply>,
}

impl PlainPrograms {
    /// Begins the table of the run.
    pub(crate) fn begin(classifier: Classifier, stock: &Arc<ChunkSupply>) -> PlainPrograms {
        if let Some(words) = stock.arena.table() {
            VerdictTable::begin(words, classifier.cache_ident());
        }
        PlainPrograms {
            classifier: Mutex::new(classifier),
            stock: Arc::clone(stock),
        }
    }

    /// 1 if the program is plain, else 0.
    pub(crate) fn program(&self, mut file: File) -> i32 {
        let path = path_of(&file);
        let mut classifier = self.classifier();
        let examined = classifier.examine(&mut file, &path);
        let plain = examined.verdict.is_ok();
        for library in examined.libraries.iter().filter(|_| plain) {
            self.note(*library, VerdictKind::Library, Some(InnerActs::default()));
        }
        if let Some(program) = examined.program {
            let plain = plain.then_some(examined.acts);
            self.note(program, VerdictKind::Program, plain);
        }
        plain.into()
    }

    /// 1 if the library is plain, else 0.
    pub(crate) fn library(&self, mut file: File) -> i32 {
        let path = path_of(&file);
        let mut classifier = self.classifier();
        let plain = classifier.examine_library(&mut file, &path);
        if let Some(library) = plain {
            self.note(library, VerdictKind::Library, Some(InnerActs::default()));
        }
        plain.is_some().into()
    }

    fn classifier(&self) -> MutexGuard<'_, Classifier> {
        let lock = self.classifier.lock();
        lock.unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a verdict to the table. The caller holds the lock of the classifier, so no other thread
    /// does this.
    fn note(&self, file: Ident, kind: VerdictKind, plain: Option<InnerActs>) {
        let table = self.stock.arena.table().and_then(VerdictTable::of);
        if let (true, Some(table)) = (file.changed_before(now()), table) {
            // A full table takes no more, and the next process asks again.
            table.insert(file, kind, plain);
        }
    }
}

/// The path of an open file, for messages.
fn path_of(file: &File) -> PathBuf {
    std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap_or_default()
}
