//! The tables of a run: one for each version of a file.
//!
//! Invariant: a file is read once in a run, however many processes run it.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use crate::elf::{CodeFile, Function};
use crate::exports::{PatternFinding, UnredirectedReason};
use crate::patterns::{FunctionPatterns, is_of_library};
use crate::ran_programs::{Interpreter, RanPrograms};
use crate::table;
use crate::unmatched::UnmatchedPattern;

/// The most bytes of a file that is read.
const MOST_BYTES: u64 = 1 << 31;
/// Numbers from here on are those of interpreted functions.
const MOST_NUMBER: u64 = 1 << 31;

/// The table of a file.
#[derive(Debug)]
pub struct FileTable {
    /// The table, as recorders map it.
    pub memory: OwnedFd,
    /// Each function with its number.
    pub functions: Vec<(u32, Function)>,
}

/// The identity of a file and of its content.
type FileKey = (u64, u64, u64, i64, i64);

/// The tables of a run.
#[derive(Debug)]
pub struct FunctionCatalogue {
    patterns: FunctionPatterns,
    files: HashMap<FileKey, Option<Arc<FileTable>>>,
    next: u64,
    /// The findings of the patterns, each with the path of the file.
    findings: Vec<(PatternFinding, String)>,
    /// The patterns that recorded a function.
    recorded: BTreeSet<usize>,
    /// For a pattern, the path of the first file that has such functions without instrumentation.
    not_instrumented: HashMap<usize, String>,
    ran: RanPrograms,
}

impl FunctionCatalogue {
    /// A catalogue without files.
    pub fn new(patterns: FunctionPatterns) -> FunctionCatalogue {
        FunctionCatalogue {
            patterns,
            files: HashMap::new(),
            next: 1,
            findings: Vec::new(),
            recorded: BTreeSet::new(),
            not_instrumented: HashMap::new(),
            ran: RanPrograms::default(),
        }
    }

    /// The patterns for which no compiled function was recorded so far.
    pub fn unmatched(&self) -> Vec<UnmatchedPattern> {
        let unmatched = self.patterns.all().filter_map(|(index, file, name)| {
            let of_library = file.filter(|file| is_of_library(file));
            let mut found = self.findings.iter().filter(|(one, _)| one.index == index);
            let recorded = match of_library {
                Some(_) => found.clone().any(|(one, _)| one.functions > 0),
                None => self.recorded.contains(&index),
            };
            let reason = match of_library {
                Some(_) => found.next().map(|(one, path)| (one.reason, path.clone())),
                None => (self.not_instrumented.get(&index))
                    .map(|path| (UnredirectedReason::NotInstrumented, path.clone())),
            };
            (!recorded).then(|| UnmatchedPattern {
                index,
                file: file.map(str::to_owned),
                name: name.to_owned(),
                reason,
                ran: self.ran.clone(),
            })
        });
        unmatched.collect()
    }

    /// The table of a file, and whether it is new in this run. `None` if the file has no code.
    ///
    /// # Errors
    /// The file cannot be read, or there is no memory for the table.
    pub fn table(
        &mut self,
        path: &Path,
        file: &mut File,
    ) -> io::Result<Option<(Arc<FileTable>, bool)>> {
        let facts = file.metadata()?;
        let key = (
            facts.dev(),
            facts.ino(),
            facts.size(),
            facts.mtime(),
            facts.mtime_nsec(),
        );
        if let Some(known) = self.files.get(&key) {
            return Ok(known.clone().map(|table| (table, false)));
        }
        let made = match facts.size() <= MOST_BYTES {
            true => self.make(path, file)?.map(Arc::new),
            false => None,
        };
        self.files.insert(key, made.clone());
        Ok(made.map(|table| (table, true)))
    }

    fn make(&mut self, path: &Path, file: &mut File) -> io::Result<Option<FileTable>> {
        let mut bytes = Vec::new();
        file.take(MOST_BYTES).read_to_end(&mut bytes)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let full = path.to_string_lossy();
        if !is_of_library(&name) {
            self.ran.add(&full, &name);
        }
        let is_interpreter = Interpreter::of_file(&name).is_some();
        let Some(code) = CodeFile::read(&bytes, &name, &self.patterns) else {
            return Ok(None);
        };
        if self.next + code.size >= MOST_NUMBER {
            return Ok(None);
        }
        let first = self.next as u32;
        self.next += code.size;
        let findings = code.findings.iter().cloned();
        self.findings
            .extend(findings.map(|one| (one, full.clone().into_owned())));
        let libraries = self.patterns.files();
        for (&index, &recorded) in &code.matched {
            if recorded {
                self.recorded.insert(index);
            } else if !is_interpreter {
                // A function of an interpreter itself is not the one that its program has.
                let known = self.not_instrumented.entry(index);
                known.or_insert_with(|| full.clone().into_owned());
            }
        }
        let memory = table::memory_file(&table::bytes(&code, first, libraries))?;
        let numbered = code.functions.into_iter().map(|function| {
            let number = first + (function.address - code.low) as u32;
            (number, function)
        });
        Ok(Some(FileTable {
            memory,
            functions: numbered.collect(),
        }))
    }
}
