//! Parts of the memory of processes, each with what is known of it.
//!
//! Invariant: a table has at most [`MOST`] parts. The parts that were set longest ago go first.

use std::collections::BTreeMap;
use std::rc::Rc;

use backstory_eventlog::event::Pid;
use rustc_hash::FxHashMap;

/// The most parts.
const MOST: usize = 1024;

/// Parts of a memory, each with what is known of it.
#[derive(Debug, Clone)]
pub struct AddressTable<T> {
    /// By the first address.
    parts: BTreeMap<u64, Part<T>>,
    /// The most bytes that a part has had.
    longest: u64,
    sets: u64,
}

#[derive(Debug, Clone)]
struct Part<T> {
    bytes: u64,
    /// The number of the last call of [`AddressTable::set`] for it.
    set: u64,
    known: T,
}

impl<T> Default for AddressTable<T> {
    fn default() -> Self {
        AddressTable {
            parts: BTreeMap::new(),
            longest: 0,
            sets: 0,
        }
    }
}

impl<T> AddressTable<T> {
    /// The part that begins at an address: what is known of it.
    pub fn at(&self, address: u64) -> Option<&T> {
        self.parts.get(&address).map(|part| &part.known)
    }

    /// Sets what is known of a part. A part with another first address stays as it is.
    pub fn set(&mut self, address: u64, bytes: u64, known: T) {
        self.sets += 1;
        self.longest = self.longest.max(bytes);
        let before = self.parts.get(&address).map_or(0, |part| part.bytes);
        let part = Part {
            bytes: bytes.max(before),
            set: self.sets,
            known,
        };
        self.parts.insert(address, part);
        if self.parts.len() > MOST {
            let oldest = self.sets - MOST as u64 / 2;
            self.parts.retain(|_, part| part.set > oldest);
        }
    }

    /// The parts that share a byte with a range, by their addresses: what is known of each.
    pub fn overlapping(&self, address: u64, bytes: u64) -> impl Iterator<Item = &T> {
        let first = address.saturating_sub(self.longest);
        let near = self.parts.range(first..address.saturating_add(bytes));
        let meets =
            move |(start, part): &(&u64, &Part<T>)| start.saturating_add(part.bytes) > address;
        near.filter(meets).map(|(_, part)| &part.known)
    }
}

/// The tables of processes, up to their next program. A child shares that of its parent until one
/// of them changes.
#[derive(Debug, Clone)]
pub struct ProcessTables<T>(FxHashMap<Pid, Rc<AddressTable<T>>>);

impl<T> Default for ProcessTables<T> {
    fn default() -> Self {
        ProcessTables(FxHashMap::default())
    }
}

impl<T: Clone> ProcessTables<T> {
    /// A process begins as a copy of its parent, if that is known. A former process with its id
    /// leaves it nothing.
    pub fn begin(&mut self, pid: Pid, parent: Option<Pid>) {
        match parent.and_then(|parent| self.0.get(&parent).cloned()) {
            Some(table) => drop(self.0.insert(pid, table)),
            None => self.forget(pid),
        }
    }

    /// A process has ended, or begins another program.
    pub fn forget(&mut self, pid: Pid) {
        self.0.remove(&pid);
    }

    /// The parts of a process's memory that share a byte with a range: what is known of each.
    pub fn overlapping(&self, pid: Pid, address: u64, bytes: u64) -> impl Iterator<Item = &T> {
        let table = self.0.get(&pid);
        table
            .into_iter()
            .flat_map(move |table| table.overlapping(address, bytes))
    }

    /// The table of a process, to be changed.
    pub fn of(&mut self, pid: Pid) -> &mut AddressTable<T> {
        Rc::make_mut(self.0.entry(pid).or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(table: &AddressTable<char>, address: u64, bytes: u64) -> String {
        table.overlapping(address, bytes).collect()
    }

    #[test]
    fn parts_that_share_a_byte_are_found() {
        let mut table = AddressTable::default();
        for (address, bytes, known) in [(100, 50, 'a'), (160, 1, 'b'), (10, 1000, 'w')] {
            table.set(address, bytes, known);
        }
        assert_eq!(found(&table, 149, 1), "wa");
        assert_eq!(found(&table, 150, 10), "w");
        assert_eq!(found(&table, 150, 11), "wb");
        assert_eq!(found(&table, 1010, 5), "");
        assert_eq!(found(&table, 0, 11), "w");
        table.set(100, 1, 'c');
        assert_eq!(found(&table, 149, 1), "wc");
        assert_eq!(table.at(100), Some(&'c'));
        table.set(u64::MAX, u64::MAX, 'm');
        assert_eq!(found(&table, 5000, u64::MAX), "");
    }

    #[test]
    fn a_child_begins_with_the_parts_of_its_parent_and_with_none_of_a_former_process() {
        let mut tables = ProcessTables::default();
        tables.of(1).set(10, 1, 'a');
        tables.begin(2, Some(1));
        tables.of(1).set(10, 1, 'b');
        tables.of(2).set(20, 1, 'c');
        let of = |tables: &ProcessTables<char>, pid| -> String {
            tables.overlapping(pid, 0, 100).collect()
        };
        assert_eq!((of(&tables, 1), of(&tables, 2)), ("b".into(), "ac".into()));
        // A signal killed process 2, and another one with its id begins.
        tables.begin(2, Some(3));
        assert_eq!(of(&tables, 2), "");
    }

    #[test]
    fn the_parts_set_longest_ago_go_first() {
        let mut table = AddressTable::default();
        for address in 0..10 * MOST as u64 {
            table.set(8 * address, 8, 'x');
            table.set(u64::MAX / 2, 1, 'k');
            assert!(table.parts.len() <= MOST);
        }
        assert_eq!(found(&table, u64::MAX / 2, 1), "k");
        assert_eq!(table.at(0), None);
    }
}
