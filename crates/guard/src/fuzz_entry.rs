//! A notification that never was, for the fuzzers: see `the fuzz targets`.

use super::ask::Ask;
use super::caller::Callers;
use super::conclude::Context;
use super::decode::Arguments;
use super::memory::Memory;
use super::mounts::Mounts;
use super::record_writer::RecordWriter;
use super::resolve::Resolver;
use super::shared::Notification;
use super::table::Abi;
use super::write::{Environments, fingerprint, who, write};
use backstory_arena::RecordSink;
use backstory_sys::kernel as sys;
use std::cell::OnceCell;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// The records, one after the other.
struct Bytes<'a>(&'a mut Vec<u8>);

impl RecordSink for Bytes<'_> {
    fn append(&mut self, record: &[u8]) {
        self.0.extend_from_slice(record);
    }
}

/// What the guard would log of a call that the calling thread does not make: pointers among `args` are read as they are in this
/// process. Looks at the file system, never changes it. Empty: the call is not watched, or its arguments can't be read.
pub fn call(arch: u32, nr: u32, args: [u64; 6]) -> Vec<u8> {
    let mut records = Vec::new();
    let abi = Abi::of(arch, nr);
    let Some((abi, shape)) = abi.and_then(|abi| Some((abi, abi.row(nr)?.guard.shape()?))) else {
        return records;
    };
    let (Ok(callers), tid, now) = (Callers::new(), sys::gettid(), sys::now()) else {
        return records;
    };
    let Ok(caller) = callers.meet(tid, now) else {
        return records;
    };
    let mut memory = Memory::of(tid);
    let mut arguments = Arguments {
        args: &args,
        memory: &mut memory,
        caller: &caller,
        callers: &callers,
        cwd: OnceCell::new(),
    };
    let Ok(ask) = Ask::read(shape, abi, &mut arguments) else {
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
    let mut resolver = Resolver::new(Mounts::new(Arc::new(AtomicU64::new(0))), false);
    let mut cx = Context {
        resolver: &mut resolver,
        callers: &callers,
        caller: &caller,
        now,
        since: None,
        ahead: None,
        asked: None,
    };
    let conclusion = ask.conclude(&mut cx).unwrap_or_else(|_| ask.unknown());
    let stamp = (
        fingerprint(&notification, &ask),
        who(&caller, &notification),
    );
    let mut out = RecordWriter::new(Bytes(&mut records));
    write(&mut out, stamp, &ask, &conclusion, &Environments::default());
    drop(out);
    records
}
