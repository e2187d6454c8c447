//! Facts about the run's rings: how they were set up, and what was logged of them lately.

use super::ring_memory::RingSetup;
use crate::caller::MOMENT;
use crate::record_writer::RecordFields;
use backstory_abi::op;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Set-ups remembered. A ring whose own set-up was forgotten is still understood if all others have
/// one form.
const SETUPS: usize = 1024;
/// Entries of a thread's own table of registered rings.
pub(super) const TABLE_SIZE: usize = 16;
/// Uses of descriptors remembered, so that they are not logged again and again.
const USES: usize = 4096;

/// All rings of the run.
#[derive(Debug, Default)]
pub(crate) struct Rings(Mutex<RingFacts>);

#[derive(Debug, Default)]
struct RingFacts {
    /// By process, oldest first.
    setups: VecDeque<(u32, RingSetup)>,
    /// By thread: the descriptors of the rings in its own table.
    tables: HashMap<u32, [Option<i32>; TABLE_SIZE]>,
    /// By process: the names of what could not be decoded.
    marked: HashSet<(u32, &'static str)>,
    /// By process, descriptor and operation: when the use was last logged.
    uses: HashMap<(u32, i32, u16), u64>,
}

impl Rings {
    fn lock(&self) -> MutexGuard<'_, RingFacts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets the process id: it is met for the first time, so what is known belongs to an earlier
    /// process.
    pub(crate) fn forget(&self, pid: u32) {
        let mut facts = self.lock();
        if !facts.setups.is_empty() || !facts.marked.is_empty() {
            facts.setups.retain(|known| known.0 != pid);
            facts.marked.retain(|known| known.0 != pid);
            facts.tables.remove(&pid);
        }
    }

    pub(super) fn add_setup(&self, pid: u32, setup: RingSetup) {
        let mut facts = self.lock();
        if facts.setups.len() == SETUPS {
            facts.setups.pop_front();
        }
        if !facts.setups.contains(&(pid, setup)) {
            facts.setups.push_back((pid, setup));
        }
    }

    /// The set-ups of a process's rings. A process without its own has its rings from another: then
    /// those of all.
    pub(super) fn setups(&self, pid: u32) -> Vec<RingSetup> {
        let facts = self.lock();
        let select = |own: bool| {
            let known = facts
                .setups
                .iter()
                .filter(move |known| !own || known.0 == pid);
            known.map(|known| known.1).collect::<Vec<_>>()
        };
        Some(select(true))
            .filter(|own| !own.is_empty())
            .unwrap_or_else(|| select(false))
    }

    /// True if no undecodable operation of this name was logged for this process before.
    pub(crate) fn first_mark(&self, pid: u32, what: &'static str) -> bool {
        self.lock().marked.insert((pid, what))
    }

    /// True if the same use of a descriptor was logged a moment ago.
    pub(super) fn logged_lately(&self, pid: u32, fields: &RecordFields, time: u64) -> bool {
        if !matches!(fields.op, op::READ | op::WRITE) {
            return false;
        }
        let mut facts = self.lock();
        if facts.uses.len() >= USES {
            facts.uses.clear();
        }
        let before = facts.uses.insert((pid, fields.fd, fields.op), time);
        let lately = before.is_some_and(|before| time < before + MOMENT);
        if lately && let Some(before) = before {
            facts.uses.insert((pid, fields.fd, fields.op), before);
        }
        lately
    }

    /// A descriptor is closed: its number means another file from now on.
    pub(super) fn closed(&self, pid: u32, fd: i32) {
        let mut facts = self.lock();
        for op in [op::READ, op::WRITE] {
            facts.uses.remove(&(pid, fd, op));
        }
    }

    /// The descriptor of the ring at an index of a thread's own table.
    pub(super) fn registered(&self, tid: u32, index: u64) -> Option<i32> {
        let table = *self.lock().tables.get(&tid)?;
        *table.get(usize::try_from(index).ok()?)?
    }

    /// A thread registers a ring in its own table, or removes one (`None`). For the index
    /// `u32::MAX` the kernel takes the first that is free.
    pub(super) fn register(&self, tid: u32, index: u32, ring: Option<i32>) {
        let mut facts = self.lock();
        let table = facts.tables.entry(tid).or_default();
        let index = match index {
            u32::MAX => table.iter().position(Option::is_none),
            index => Some(index as usize),
        };
        if let Some(entry) = index.and_then(|index| table.get_mut(index)) {
            *entry = ring;
        }
    }
}
