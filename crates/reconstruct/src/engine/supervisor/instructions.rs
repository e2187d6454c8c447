//! Instructions that ask the processor (`record --time exact`): each gets the recorded answer.
//!
//! They are no calls. So each of them becomes one when the program begins: its place gets a jump to
//! code that makes the call [`ASKED`]. In the record, the recorder did the same in its constructor.
//!
//! The moment is a little earlier than that. The loader protects the tables of the first library
//! before it relocates the program, whose own resolvers (IFUNC) run then. The record lacks the
//! answers that these got.

use super::executing::is_loader;
use super::processes::Role;
use super::{Response, Supervisor};
use crate::engine::caller::{NotifiedCall, auxiliary_value};
use crate::engine::filter::ASKED;
use backstory_abi::deep;
use backstory_instructions::{Answering, Redirection};
use backstory_sys::mappings::Mapping;
use backstory_sys::{self as sys, clock};
use libc::*;
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;

impl Supervisor {
    /// `mprotect`. The dynamic loader protects tables of addresses when it has mapped libraries. No
    /// constructor of these has run yet. Other calls are the program's own, which may be many.
    pub(super) fn protected(&mut self, call: &NotifiedCall) -> Response {
        let executes = |tid| std::fs::read_link(format!("/proc/{tid}/exe"));
        // Valgrind answers these instructions itself.
        let is_free = || !executes(call.tid).is_ok_and(|program| is_loader(&program));
        if call.args[2] == PROT_READ as u64 && self.is_of_loader(call) && is_free() {
            let code = Answering::by_call(ASKED as u32);
            let request = Redirection {
                pid: call.tid,
                answers: &code,
                except: None,
                may_write: true,
                still_waits: &|| sys::still_waits(self.listener.as_fd(), call.id),
            };
            // Otherwise the program executes the instructions themselves, and its output differs.
            let _ = self.redirector.redirect(&request);
        }
        Response::Continue
    }

    /// True if the dynamic loader makes the call.
    fn is_of_loader(&mut self, call: &NotifiedCall) -> bool {
        let group = self.group_of(call);
        let Some(process) = self.live.get_mut(&group) else {
            return true;
        };
        let loader = process.loader.get_or_insert_with(|| loader_of(call.tid));
        loader.contains(&call.behind)
    }

    /// A redirected instruction. A program without a record executes it, too, if it was forked from
    /// one that has a record.
    pub(super) fn asked(&mut self, call: &NotifiedCall) -> io::Result<Response> {
        let registers = call.args[1];
        let put = |at: u64, value: u32| call.put(registers + at, &u64::from(value).to_le_bytes());
        let group = self.group_of(call);
        let index = match self.live.get(&group).map(|process| process.role) {
            Some(Role::Program(index)) => Some((index, self.recorded_thread(call.tid, index))),
            _ => None,
        };
        match call.args[0] {
            deep::CPUID_INSTRUCTION => {
                let leaf = call.word(registers + Answering::RAX)? as u32;
                let subleaf = call.word(registers + Answering::RCX)? as u32;
                let known = index.and_then(|(index, thread)| {
                    self.matchers[index].identity(thread, leaf, subleaf)
                });
                let [a, b, c, d] = known.unwrap_or_else(|| {
                    self.lacks_answer(index);
                    clock::processor_identity(leaf, subleaf)
                });
                put(Answering::RAX, a)?;
                put(Answering::RBX, b)?;
                put(Answering::RCX, c)?;
                put(Answering::RDX, d)?;
            }
            kind => {
                let known = index.and_then(|(index, thread)| self.matchers[index].counter(thread));
                let (counter, processor) = known.unwrap_or_else(|| {
                    self.lacks_answer(index);
                    (clock::counter(), 0)
                });
                put(Answering::RAX, counter as u32)?;
                put(Answering::RDX, (counter >> 32) as u32)?;
                if kind == deep::RDTSCP {
                    put(Answering::RCX, processor)?;
                }
            }
        }
        Ok(Response::Value(0))
    }

    /// The verdict says that an answer was not recorded.
    fn lacks_answer(&mut self, program: Option<(usize, u32)>) {
        let why = "it asked the processor more often than in the record";
        if let Some((index, _)) = program {
            let gap = &mut self.matchers[index].rest.gap;
            gap.get_or_insert_with(|| why.to_owned());
        }
    }
}

/// The addresses of the dynamic loader of a program. All are, if it is not known.
fn loader_of(tid: u32) -> Range<u64> {
    let maps = std::fs::read(format!("/proc/{tid}/maps")).unwrap_or_default();
    let base = auxiliary_value(tid, AT_BASE).unwrap_or(0);
    let loader = Mapping::of_files(&maps).find(|one| one.contains(base));
    let Some(loader) = loader else {
        return 0..u64::MAX;
    };
    let parts = Mapping::of_files(&maps);
    let parts = parts.filter(|one| (one.inode, one.name) == (loader.inode, loader.name));
    let end = parts.map(|one| one.end).max();
    loader.start..end.unwrap_or(loader.end)
}
