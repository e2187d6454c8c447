//! The programs and libraries of a deep run whose code makes system calls by itself.
//!
//! A recorder sees the calls that pass through functions of libc. In: a run. Out: the files with an
//! instruction that enters the kernel. Whether a program executed it is not known: the record would
//! lack that call. Absent: static programs, which are shallow anyway, files that are gone or were
//! changed since, and code that is made while a program runs.

use std::collections::BTreeSet;
use std::io::Read;

use backstory_abi::PRELOAD_NAME;
use backstory_deep::shared_code::is_shared_code;
use backstory_eventlog::event::Bytes;
use backstory_files::Ident;
use backstory_plain::{Object, find_certain_entry};
use backstory_query as query;
use backstory_query::answer::{Access, FileUse};
use backstory_store::Store;
use backstory_workflow::paths::to_path;

use crate::error::Failure;

/// Bytes of the largest file that is read.
const LARGEST: u64 = 512 << 20;
/// Most files that are read.
const MOST: usize = 500;

/// The files of a run with such code, by path.
pub fn files(store: &dyn Store, run: &str) -> Result<Vec<Bytes>, Failure> {
    let used = query::files(store, run)?;
    let mut looked_at = BTreeSet::new();
    let mut found = Vec::new();
    for file in used.iter().filter(|file| may_be_code(file)) {
        if looked_at.len() == MOST {
            break;
        }
        let is_new = looked_at.insert(&file.path);
        if is_new && makes_calls(file) {
            found.push(file.path.clone());
        }
    }
    Ok(found)
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

/// True if the file is here as it was, and has an instruction that enters the kernel.
fn makes_calls(file: &FileUse) -> bool {
    let Some(version) = &file.ident else {
        return false;
    };
    code_of(&file.path, version).is_some_and(|bytes| {
        Object::parse(&bytes).is_ok_and(|object| {
            let is_shallow = object.interpreter.is_none() && !is_library(file);
            !is_shallow && find_certain_entry(&object).is_some()
        })
    })
}

/// The content of this version of a file.
fn code_of(path: &[u8], version: &Ident) -> Option<Vec<u8>> {
    let file = query::open_version(to_path(path), version)?;
    let mut bytes = Vec::new();
    file.take(LARGEST).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
