//! The table of verdicts: shared memory in which recorders look programs and libraries up.
//!
//! In: verdicts of the classifier. Out: a table in the form of `struct bs_verdicts`
//! (`backstory_abi.h`).
//!
//! Invariants:
//!
//! - A verdict is about one content: another content has another state, so it is not found.
//! - Recorders read while the supervisor writes. The verdict of an entry is written last, and an
//!   entry is never changed.
//! - The verdicts about programs and about loads hold for one state of the loader's cache, which
//!   the table names.
//!
//! Absent on purpose: the removal of an entry. A full table takes no more, and what is not found is
//! asked for.

use crate::symbols::InnerActs;
use backstory_abi::{
    VERDICT_ALONE, VERDICT_CONNECTS, VERDICT_KIND, VERDICT_LIBRARY, VERDICT_LOADED, VERDICT_LOADS,
    VERDICT_NOT, VERDICT_PROGRAM, VERDICT_TRIES, VERDICTS, VERDICTS_MAGIC, reads_hash,
};
use backstory_files::Ident;
use std::sync::atomic::{AtomicU64, Ordering};

/// Words of an entry.
const ENTRY: usize = 6;
/// Words before the first entry: the magic number and padding, then the entry of the cache.
const HEAD: usize = 2 + ENTRY;

/// The verdict about a library that a process loads, as recorders see it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LoadVerdict {
    /// The acts inside libc of the library, and of those that it needs. `None`: it is not plain.
    pub plain: Option<InnerActs>,
    /// It needs none but the C library.
    pub alone: bool,
    /// The hash of the only path at which the loader's cache has its name, or
    /// [`NO_PATH`](backstory_abi::NO_PATH).
    pub path: u32,
}

impl LoadVerdict {
    /// The low half of its number in the table of verdicts.
    pub fn bits(self) -> u32 {
        let alone = if self.alone { VERDICT_ALONE } else { 0 };
        (VERDICT_LOADED | alone | encoded_acts(self.plain)) as u32
    }

    /// Its number in the table of verdicts.
    fn number(self) -> u64 {
        u64::from(self.path) << 32 | u64::from(self.bits())
    }
}

/// The two kinds of verdicts about a file. It can have both, and a [`LoadVerdict`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VerdictKind {
    /// A program with the libraries that it needs.
    Program,
    /// A library alone.
    Library,
}

impl VerdictKind {
    fn bits(self) -> u64 {
        match self {
            VerdictKind::Program => VERDICT_PROGRAM,
            VerdictKind::Library => VERDICT_LIBRARY,
        }
    }
}

/// A verdict as a number: what a plain file may do, or `None` if it is not plain.
pub(crate) fn encoded(kind: VerdictKind, plain: Option<InnerActs>) -> u64 {
    kind.bits() | encoded_acts(plain)
}

/// The same without the kind.
pub(crate) fn encoded_acts(plain: Option<InnerActs>) -> u64 {
    let bits = |acts: InnerActs| {
        let connects = if acts.connects { VERDICT_CONNECTS } else { 0 };
        connects | if acts.loads { VERDICT_LOADS } else { 0 }
    };
    plain.map_or(VERDICT_NOT, bits)
}

/// The verdict of such a number. `None`: the number is of no verdict.
pub(crate) fn decoded(verdict: u64) -> Option<(VerdictKind, Option<InnerActs>)> {
    let kinds = [VerdictKind::Program, VerdictKind::Library];
    let kind = kinds
        .into_iter()
        .find(|kind| kind.bits() == verdict & VERDICT_KIND)?;
    let acts = InnerActs {
        connects: verdict & VERDICT_CONNECTS != 0,
        loads: verdict & VERDICT_LOADS != 0,
    };
    let plain = (verdict & VERDICT_NOT == 0).then_some(acts);
    (encoded(kind, plain) == verdict).then_some((kind, plain))
}

/// The table, in memory that may be shared.
#[derive(Debug, Clone, Copy)]
pub struct VerdictTable<'a>(&'a [AtomicU64]);

impl<'a> VerdictTable<'a> {
    /// Words of memory that a table takes.
    pub const WORDS: usize = HEAD + ENTRY * VERDICTS as usize;

    /// Begins a table in memory that is zero. `None`: there is too little memory.
    pub fn begin(words: &'a [AtomicU64], cache: Ident) -> Option<VerdictTable<'a>> {
        let words = words.get(..Self::WORDS)?;
        put(&words[2..HEAD], cache, VERDICT_LIBRARY);
        words[0].store(VERDICTS_MAGIC, Ordering::Release);
        Some(VerdictTable(words))
    }

    /// A table that was begun. `None`: this memory has no table.
    pub fn of(words: &'a [AtomicU64]) -> Option<VerdictTable<'a>> {
        let words = words.get(..Self::WORDS)?;
        let begun = words[0].load(Ordering::Acquire) == VERDICTS_MAGIC;
        begun.then_some(VerdictTable(words))
    }

    /// The entries at which a content may be, in order.
    fn slots(self, file: Ident) -> impl Iterator<Item = &'a [AtomicU64]> {
        let first = reads_hash(file.dev as u32, file.ino) >> 40;
        (0..u64::from(VERDICT_TRIES)).map(move |n| {
            let index = (first + n) % u64::from(VERDICTS);
            &self.0[HEAD + ENTRY * index as usize..][..ENTRY]
        })
    }

    /// Adds a verdict: what a plain file may do, or `None` if it is not plain. False: there is no
    /// room. Of one table, only one thread may add verdicts.
    pub fn insert(self, file: Ident, kind: VerdictKind, plain: Option<InnerActs>) -> bool {
        self.insert_number(file, encoded(kind, plain))
    }

    /// Adds a verdict about a library that a process loads while it runs. False: there is no room.
    pub fn insert_load(self, file: Ident, load: LoadVerdict) -> bool {
        self.insert_number(file, load.number())
    }

    fn insert_number(self, file: Ident, verdict: u64) -> bool {
        if self.find(file, verdict & VERDICT_KIND).is_some() {
            return true;
        }
        let free = self
            .slots(file)
            .find(|slot| slot[ENTRY - 1].load(Ordering::Acquire) == 0);
        free.inspect(|slot| put(slot, file, verdict)).is_some()
    }

    /// Whether a content is plain. `None`: unknown.
    pub fn get(self, file: Ident, kind: VerdictKind) -> Option<bool> {
        let verdict = self.find(file, kind.bits())?;
        Some(verdict & VERDICT_NOT == 0)
    }

    /// The verdict of this kind about a content, as a number.
    fn find(self, file: Ident, kind: u64) -> Option<u64> {
        for slot in self.slots(file) {
            let verdict = slot[ENTRY - 1].load(Ordering::Acquire);
            if verdict == 0 {
                return None;
            }
            let found: [u64; ENTRY - 1] = std::array::from_fn(|n| slot[n].load(Ordering::Relaxed));
            if found == numbers(file) && verdict & VERDICT_KIND == kind {
                return Some(verdict);
            }
        }
        None
    }
}

fn numbers(file: Ident) -> [u64; ENTRY - 1] {
    [
        file.dev,
        file.ino,
        file.size.cast_unsigned(),
        file.mtime.cast_unsigned(),
        file.ctime.cast_unsigned(),
    ]
}

fn put(slot: &[AtomicU64], file: Ident, verdict: u64) {
    for (word, number) in slot.iter().zip(numbers(file)) {
        word.store(number, Ordering::Relaxed);
    }
    slot[ENTRY - 1].store(verdict, Ordering::Release);
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstory_abi::path_hash;

    const ACTS: Option<InnerActs> = Some(InnerActs {
        connects: true,
        loads: true,
    });

    fn memory() -> Vec<AtomicU64> {
        (0..VerdictTable::WORDS)
            .map(|_| AtomicU64::new(0))
            .collect()
    }

    fn file(ino: u64, ctime: i64) -> Ident {
        Ident {
            dev: 0xfe01,
            ino,
            size: 7,
            mtime: 1,
            ctime,
            ..Ident::default()
        }
    }

    #[test]
    fn a_verdict_is_about_one_content_and_one_kind() {
        let memory = memory();
        assert!(VerdictTable::of(&memory).is_none());
        VerdictTable::begin(&memory, file(1, 1)).unwrap();
        let table = VerdictTable::of(&memory).unwrap();
        assert!(table.insert(file(2, 5), VerdictKind::Program, ACTS));
        assert!(table.insert(file(2, 5), VerdictKind::Library, None));
        assert_eq!(table.get(file(2, 5), VerdictKind::Program), Some(true));
        assert_eq!(table.get(file(2, 5), VerdictKind::Library), Some(false));
        assert_eq!(table.get(file(2, 6), VerdictKind::Program), None, "changed");
        let larger = Ident {
            size: 8,
            ..file(2, 5)
        };
        assert_eq!(table.get(larger, VerdictKind::Program), None);
        assert_eq!(table.get(file(3, 5), VerdictKind::Program), None);
    }

    #[test]
    fn a_verdict_about_a_load_is_beside_the_others_and_names_a_path() {
        let memory = memory();
        let table = VerdictTable::begin(&memory, file(1, 1)).unwrap();
        let load = LoadVerdict {
            plain: ACTS,
            alone: true,
            path: path_hash(b"printf"),
        };
        assert!(table.insert_load(file(2, 5), load));
        assert!(table.insert(file(2, 5), VerdictKind::Library, ACTS));
        assert!(table.insert_load(file(2, 5), LoadVerdict::default()));
        assert!(table.insert_load(file(2, 6), LoadVerdict::default()));
        let bits = VERDICT_LOADED | VERDICT_ALONE | VERDICT_CONNECTS | VERDICT_LOADS;
        let found = table.find(file(2, 5), VERDICT_LOADED);
        assert_eq!(found, Some(0x156b_2bb8 << 32 | bits));
        let other = table.find(file(2, 6), VERDICT_LOADED);
        assert_eq!(other, Some(VERDICT_LOADED | VERDICT_NOT));
        assert_eq!(table.get(file(2, 5), VerdictKind::Library), Some(true));
    }

    #[test]
    fn a_full_table_takes_no_more_and_forgets_nothing() {
        let memory = memory();
        let table = VerdictTable::begin(&memory, file(1, 1)).unwrap();
        let files = (2..20_000).map(|inode| file(inode, 1));
        let taken: Vec<Ident> = files
            .filter(|file| {
                let plain = ACTS.filter(|_| file.ino % 2 == 0);
                table.insert(*file, VerdictKind::Program, plain)
            })
            .collect();
        assert!(
            taken.len() > 700 && taken.len() <= VERDICTS as usize,
            "{}",
            taken.len()
        );
        for file in taken {
            assert_eq!(
                table.get(file, VerdictKind::Program),
                Some(file.ino % 2 == 0)
            );
        }
        assert!(VerdictTable::begin(&memory[1..], file(1, 1)).is_none());
    }
}
