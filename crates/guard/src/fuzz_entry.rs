//! Entry point for the fuzzers in `fuzz/`: handles a notification that no kernel sent.

use crate::arguments::Arguments;
use crate::call_records::{caller_ids, write_call};
use crate::caller_files::CallerFiles;
use crate::callers::Callers;
use crate::conclude::conclude;
use crate::conclusion::Conclusion;
use crate::decode::decode;
use crate::environment::SeenEnvironments;
use crate::hash::fingerprint;
use crate::memory::ProcessMemory;
use crate::mounts::MountTable;
use crate::notification_buffers::Notification;
use crate::path_resolver::PathResolver;
use crate::record_writer::RecordWriter;
use crate::table::Abi;
use backstory_arena::RecordSink;
use backstory_sys as sys;
use std::cell::OnceCell;
use std::sync::Arc;

/// Collects the records.
struct Bytes<'a>(&'a mut Vec<u8>);

impl RecordSink for Bytes<'_> {
    fn append(&mut self, record: &[u8]) {
        self.0.extend_from_slice(record);
    }
}

/// The records that the guard would write for a call that the calling thread does not make.
///
/// Pointers among `args` are read in this process. The file system is read and never changed. The
/// result is empty if the call is not watched, or if its arguments cannot be read.
pub fn call(arch: u32, nr: u32, args: [u64; 6]) -> Vec<u8> {
    let mut records = Vec::new();
    let abi = Abi::of(arch, nr);
    let Some((abi, shape)) = abi.and_then(|abi| Some((abi, abi.row(nr)?.guard.shape()?))) else {
        return records;
    };
    let (Ok(callers), tid, now) = (Callers::new(), sys::gettid(), sys::clock::counter()) else {
        return records;
    };
    let Ok(caller) = callers.meet(tid, now) else {
        return records;
    };
    let mut memory = ProcessMemory::of(tid);
    let mut arguments = Arguments {
        args: &args,
        memory: &mut memory,
        caller: &caller,
        callers: &callers,
        cwd: OnceCell::new(),
    };
    let Ok(decoded) = decode(shape, abi, &mut arguments) else {
        return records;
    };
    let notification = Notification {
        id: 1,
        tid,
        nr,
        arch,
        ip: 0,
        args,
    };
    let mut resolver = PathResolver::new(MountTable::new(Arc::default()), false);
    let mut files = CallerFiles {
        resolver: &mut resolver,
        callers: &callers,
        caller: &caller,
        now,
        since: None,
        prior: None,
        readonly_mount: None,
        removed_link: None,
    };
    let conclusion =
        conclude(&decoded, &mut files).unwrap_or_else(|_| Conclusion::unknown(&decoded));
    let stamp = (
        fingerprint(&notification, &decoded),
        caller_ids(&caller, &notification),
    );
    let mut out = RecordWriter::new(Bytes(&mut records));
    write_call(
        &mut out,
        stamp,
        &decoded,
        &conclusion,
        &SeenEnvironments::default(),
    );
    drop(out);
    records
}
