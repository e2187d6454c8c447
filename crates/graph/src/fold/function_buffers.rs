//! Calls of functions that share a buffer (`record --arguments`).
//!
//! A call that read something can have put it where its pointers lead. If a later call has a
//! pointer to the same memory, an attribute of it names the first one: `buffer of NAME`. A call
//! between them that read nothing can have copied the content on: what its pointers led to is
//! behind all of its pointers then.
//!
//! The log shows no content of memory, and no memory that is freed. So such a join is only
//! possible. It adds no edge: the edges through the memory of the process lead to both calls
//! anyway, and to all others that read something before.
//!
//! A child by fork has a copy of its parent's memory. So it begins with what was filled there until
//! then, up to its next program.
//!
//! Invariant: a call is named only if its pointer can change the data, and if it has ended.

use std::collections::BTreeSet;
use std::rc::Rc;

use backstory_eventlog::event::{Bytes, Pid, ValuePointer};
use rustc_hash::FxHashMap;

use crate::address_table::ProcessTables;

/// The most calls that an attribute names.
const NAMED: usize = 4;

/// The calls that can have filled a buffer, the newest last.
#[derive(Debug, Clone, Default)]
pub(super) struct Fillers {
    calls: Vec<Rc<[u8]>>,
    /// There were more of them.
    others: bool,
}

impl Fillers {
    fn add(&mut self, call: &Rc<[u8]>) {
        self.calls.retain(|one| one != call);
        self.calls.push(call.clone());
        if self.calls.len() > NAMED {
            self.calls.remove(0);
            self.others = true;
        }
    }

    fn join(&mut self, other: &Fillers) {
        other.calls.iter().for_each(|call| self.add(call));
        self.others |= other.others;
    }

    /// `possibly filled by read_table() in plot.c:10 path="a.csv"; ...`
    fn text(&self) -> Vec<u8> {
        let names: Vec<&[u8]> = self.calls.iter().map(|call| &**call).collect();
        let others: &[u8] = if self.others { b"; others" } else { b"" };
        [b"possibly filled by ", &*names.join(&b"; "[..]), others].concat()
    }
}

/// The pointers of a call.
#[derive(Debug, Clone)]
struct CallPointers {
    name: Rc<[u8]>,
    pointers: Vec<ValuePointer>,
    /// For each parameter that shares memory with an earlier call.
    taken: Vec<(Bytes, Fillers)>,
    /// The call read something.
    read: bool,
}

/// The filled buffers of the processes.
pub(super) type FilledBuffers = ProcessTables<Fillers>;

/// The pointers of a process's calls.
#[derive(Debug, Clone, Default)]
pub(super) struct ProcessBuffers {
    /// Calls that have not returned.
    calls: FxHashMap<u64, CallPointers>,
    /// Those that have returned since the last look, in their order.
    returned: Vec<u64>,
}

impl ProcessBuffers {
    /// A call has these arguments.
    pub(super) fn begin(
        &mut self,
        call: u64,
        function: &[u8],
        arguments: &[Bytes],
        pointers: &[ValuePointer],
        (filled, pid): (&FilledBuffers, Pid),
    ) {
        if pointers.is_empty() {
            return;
        }
        let mut taken = Vec::new();
        for pointer in pointers {
            let mut all = Fillers::default();
            let found = filled.overlapping(pid, pointer.address, pointer.bytes);
            found.for_each(|fillers| all.join(fillers));
            if !all.calls.is_empty() {
                taken.push((pointer.name.clone(), all));
            }
        }
        let call_pointers = CallPointers {
            name: named(function, arguments, pointers),
            pointers: pointers.to_vec(),
            taken,
            read: false,
        };
        self.calls.insert(call, call_pointers);
    }

    /// A call will return this pointer.
    pub(super) fn result(&mut self, call: u64, function: &[u8], pointers: &[ValuePointer]) {
        let results = pointers.iter().map(|pointer| ValuePointer {
            is_constant: false,
            ..pointer.clone()
        });
        let mut results = results.peekable();
        if results.peek().is_none() {
            return;
        }
        let known = self.calls.entry(call).or_insert_with(|| CallPointers {
            name: function.into(),
            pointers: Vec::new(),
            taken: Vec::new(),
            read: false,
        });
        known.pointers.extend(results);
    }

    /// A call has read something.
    pub(super) fn read(&mut self, call: u64) {
        if let Some(one) = self.calls.get_mut(&call) {
            one.read = true;
        }
    }

    /// A call has returned. The next [`ProcessBuffers::settle`] takes it in.
    pub(super) fn returned(&mut self, call: u64) {
        if self.calls.contains_key(&call) {
            self.returned.push(call);
        }
    }

    /// The calls that have returned can have filled their buffers.
    pub(super) fn settle(&mut self, filled: &mut FilledBuffers, pid: Pid) {
        for call in std::mem::take(&mut self.returned) {
            let Some(call) = self.calls.remove(&call) else {
                continue;
            };
            let mut came = Fillers::default();
            match call.read {
                true => came.add(&call.name),
                false => call.taken.iter().for_each(|(_, one)| came.join(one)),
            }
            if came.calls.is_empty() {
                continue;
            }
            for to in call.pointers.iter().filter(|one| !one.is_constant) {
                let filled = filled.of(pid);
                let mut all = filled.at(to.address).cloned().unwrap_or_default();
                all.join(&came);
                filled.set(to.address, to.bytes, all);
            }
        }
    }

    /// The attributes of a call, each as its name and its value.
    pub(super) fn attributes(&self, call: u64) -> Vec<(Vec<u8>, Vec<u8>)> {
        let taken = self.calls.get(&call).map(|call| &call.taken);
        let attributes = taken.into_iter().flatten();
        let attributes =
            attributes.map(|(name, by)| ([b"buffer of ", &**name].concat(), by.text()));
        attributes.collect()
    }
}

/// A call by its function, and by those of its arguments that tell it apart. Addresses do not, and
/// neither does the old content of the buffer that it fills.
fn named(function: &[u8], arguments: &[Bytes], pointers: &[ValuePointer]) -> Rc<[u8]> {
    let filled = pointers.iter().filter(|one| !one.is_constant);
    let filled: BTreeSet<&[u8]> = filled.map(|one| &*one.name).collect();
    let mut text = function.to_vec();
    for argument in arguments {
        let at = argument.iter().position(|&byte| byte == b'=');
        let name = &argument[..at.unwrap_or(0)];
        let is_address = argument[name.len()..].starts_with(b"=0x");
        if !is_address && !filled.contains(name) {
            text.push(b' ');
            text.extend_from_slice(argument);
        }
    }
    text.into()
}
