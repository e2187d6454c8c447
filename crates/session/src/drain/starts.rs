//! With `--guard=auto`: programs that announced themselves without a chunk (`struct bs_start`).
//!
//! In: the memory that recorders fill in, and chunks of recorders that had to log their libraries.
//! Out: the chunks that those recorders would have written, and the sets of libraries that
//! recorders may refer to.
//!
//! Invariants:
//!
//! - A start is freed only after the log has its chunk. A drainer that dies in between leaves the
//!   start in both places. Readers take the later copy.
//! - A set that is in use is never changed, because starts refer to it.
//! - Every program of the run can write to this memory, so nothing in it is trusted.

use backstory_abi::{self as abi, op};
use backstory_arena::Arena;
use backstory_eventlog::chunk::{ChunkBuilder, ChunkView, SkippedRecords};
use backstory_eventlog::record::{RawRecord, RecordBuilder};
use backstory_sys::{self as sys, Pid};
use std::collections::HashMap;
use std::mem::{offset_of, size_of};
use std::sync::atomic::{AtomicU64, Ordering};

const WORD: usize = size_of::<u64>();
const SETS: usize = offset_of!(abi::Programs, sets) / WORD;
const SET: usize = size_of::<abi::LibrarySet>() / WORD;
const STARTS: usize = offset_of!(abi::Programs, starts) / WORD;
const START: usize = size_of::<abi::Start>() / WORD;
/// Bytes of a chunk in which a recorder's first records are.
const BEGINNING: usize = 4096;

/// A program that announced itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Start {
    place: usize,
    state: u64,
    pub(super) epoch: u64,
    time: u64,
    ppid: u32,
    set: u32,
}

impl Start {
    pub(super) fn pid(self) -> Pid {
        (self.state >> 32) as Pid
    }

    /// The chunk that the program's recorder would have written. `None` if the entry is damaged.
    pub(super) fn chunk(self, arena: &Arena) -> Option<Vec<u8>> {
        let names = set(arena.table()?, self.set as usize)?;
        let pid = self.pid();
        let mut chunk = ChunkBuilder::new(abi::Chunk {
            pid: pid as u32,
            tid: pid as u32,
            epoch: self.epoch,
            taken: self.time,
            ppid: self.ppid,
            ..abi::Chunk::default()
        });
        let mut record = RecordBuilder::new();
        record.start(op::START, self.time).fd(pid);
        let started = record.arg(self.ppid as i32).result(0).finish();
        let mut fits = chunk.push(started);
        for name in names.split_inclusive(|byte| *byte == 0) {
            let name = name.strip_suffix(&[0])?;
            record.start(op::LOAD, self.time).string(name).result(0);
            fits &= chunk.push(record.finish());
        }
        record.start(op::OPEN, self.time).fd(libc::AT_FDCWD);
        record.arg(libc::O_RDONLY | libc::O_CLOEXEC);
        record.string(abi::LOADER_CACHE.as_bytes());
        fits &= chunk.push(record.result(abi::LOADER_DESCRIPTOR).finish());
        record.start(op::CLOSE, self.time);
        fits &= chunk.push(record.fd(abi::LOADER_DESCRIPTOR).result(0).finish());
        fits.then(|| chunk.bytes().to_vec())
    }

    /// Frees the entry, once the log has its chunk.
    pub(super) fn free(self, arena: &Arena) {
        if let Some(words) = arena.table() {
            let state = &words[self.place];
            // A failure means that a program wrote to the entry.
            let _ = state.compare_exchange(self.state, 0, Ordering::AcqRel, Ordering::Relaxed);
        }
    }
}

/// The names of a set, each with its NUL. `None` if the set is free or damaged.
fn set(words: &[AtomicU64], index: usize) -> Option<Vec<u8>> {
    if index >= abi::LIBRARY_SETS as usize {
        return None;
    }
    let words = &words[SETS + index * SET..][..SET];
    let used = usize::try_from(words[0].load(Ordering::Acquire)).ok()?;
    let bytes = words[1..]
        .iter()
        .flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes());
    let mut names: Vec<u8> = bytes.collect();
    let whole = used > 0 && used <= names.len() && names[used - 1] == 0;
    names.truncate(used);
    whole.then_some(names)
}

/// The starts that recorders have filled in. An entry whose process died before that is freed.
pub(super) fn filled(arena: &Arena) -> Vec<Start> {
    let mut filled = Vec::new();
    if arena.header().flags.load(Ordering::Relaxed) & abi::ARENA_AUTO == 0 {
        return filled;
    }
    let Some(words) = arena.table() else {
        return filled;
    };
    for index in 0..abi::STARTS as usize {
        let place = STARTS + index * START;
        let entry = &words[place..][..START];
        let state = entry[0].load(Ordering::Acquire);
        if state == 0 {
            continue;
        }
        let [epoch, time, rest] = [1, 2, 3].map(|at: usize| entry[at].load(Ordering::Relaxed));
        let start = Start {
            place,
            state,
            epoch,
            time,
            ppid: rest as u32,
            set: (rest >> 32) as u32,
        };
        if state & u64::from(u32::MAX) == abi::START_FILLED {
            filled.push(start);
        } else if !sys::thread_exists(start.pid(), start.pid()) {
            start.free(arena);
        }
    }
    filled
}

/// The beginning of a chunk, as far as it concerns the libraries of a program.
#[derive(Debug, PartialEq, Eq)]
enum Beginning {
    /// Nothing more will follow: it is another chunk.
    Other,
    /// The recorder may be writing them.
    Unfinished,
    /// Their names, each with its NUL.
    Libraries(Vec<u8>),
}

fn libraries(chunk: &[u8]) -> Beginning {
    let Some((_, view)) = ChunkView::new(chunk) else {
        return Beginning::Other;
    };
    let mut names = Vec::new();
    let mut at = abi::Chunk::SIZE;
    let mut begun = false;
    while let Some((found, record)) = view.next(at, &mut SkippedRecords::default()) {
        at = found + usize::from(record.size);
        let Some(raw) = RawRecord::parse(view.from(found)) else {
            return Beginning::Other;
        };
        let name = raw.strings()[0];
        match record.op {
            op::START if !begun && record.aux == 0 => begun = true,
            op::LOAD if begun && record.flags & abi::F_CUT == 0 && !name.is_empty() => {
                names.extend_from_slice(name);
                names.push(0);
            }
            op::OPEN if begun && record.result == abi::LOADER_DESCRIPTOR => {
                let fits = !names.is_empty() && names.len() <= abi::LIBRARY_NAMES as usize;
                return match fits && name == abi::LOADER_CACHE.as_bytes() {
                    true => Beginning::Libraries(names),
                    false => Beginning::Other,
                };
            }
            _ => return Beginning::Other,
        }
    }
    Beginning::Unfinished
}

/// Learns the sets of libraries from the chunks of recorders that logged theirs.
#[derive(Debug, Default)]
pub(super) struct LibrarySets {
    /// For each chunk, the recorder whose records were looked at.
    seen: HashMap<usize, u64>,
}

impl LibrarySets {
    /// Looks at chunks that have an owner.
    pub(super) fn look(&mut self, arena: &Arena, owned: &[(usize, abi::Chunk)]) {
        if arena.header().flags.load(Ordering::Relaxed) & abi::ARENA_AUTO == 0 {
            return;
        }
        let mut bytes = [0; BEGINNING];
        for (index, header) in owned {
            let first = header.seq == 0 && header.epoch != 0;
            if !first || self.seen.get(index) == Some(&header.epoch) {
                continue;
            }
            arena.beginning(*index, &mut bytes);
            let found = libraries(&bytes);
            if found == Beginning::Unfinished {
                continue;
            }
            self.seen.insert(*index, header.epoch);
            if let (Beginning::Libraries(names), Some(words)) = (found, arena.table()) {
                publish(words, &names);
            }
        }
    }
}

/// Adds a set, unless it is there or there is no room. Only the drainer does this.
fn publish(words: &[AtomicU64], names: &[u8]) {
    for index in 0..abi::LIBRARY_SETS as usize {
        let place = &words[SETS + index * SET..][..SET];
        if place[0].load(Ordering::Acquire) != 0 {
            if set(words, index).as_deref() == Some(names) {
                return;
            }
            continue;
        }
        for (word, bytes) in place[1..].iter().zip(names.chunks(WORD)) {
            let mut all = [0; WORD];
            all[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_le_bytes(all), Ordering::Relaxed);
        }
        place[0].store(names.len() as u64, Ordering::Release);
        return;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drain::ChunkSelection;
    use crate::drain::tests::{TestArena, dead, killed, place_with, take};
    use backstory_eventlog::Log;
    use backstory_eventlog::event::{Event, Op};

    const LIBRARIES: [&str; 2] = ["/lib/libz.so.1", "/lib/libc.so.6"];

    fn place() -> TestArena {
        place_with(abi::ARENA_AUTO)
    }

    fn words(place: &TestArena) -> &[AtomicU64] {
        place.stock.arena.table().unwrap()
    }

    /// Fills in an entry as a recorder would.
    fn start(place: &TestArena, index: usize, state: u64, pid: u32, epoch: u64, set: u32) {
        let entry = &words(place)[STARTS + index * START..][..START];
        entry[1].store(epoch, Ordering::Relaxed);
        entry[2].store(backstory_sys::clock::counter(), Ordering::Relaxed);
        entry[3].store(u64::from(set) << 32 | 1, Ordering::Relaxed);
        entry[0].store(u64::from(pid) << 32 | state, Ordering::Release);
    }

    fn state(place: &TestArena, index: usize) -> u64 {
        words(place)[STARTS + index * START].load(Ordering::Acquire)
    }

    /// The first chunk of a recorder that logs its libraries.
    fn first_chunk(place: &TestArena, epoch: u64) {
        let mut records = RecordBuilder::new();
        let mut chunk = ChunkBuilder::new(abi::Chunk {
            pid: std::process::id(),
            tid: std::process::id(),
            epoch,
            ..abi::Chunk::default()
        });
        assert!(chunk.push(records.start(op::START, 1).result(0).finish()));
        for name in LIBRARIES {
            let record = records.start(op::LOAD, 1).string(name.as_bytes());
            assert!(chunk.push(record.result(0).finish()));
        }
        let record = records
            .start(op::OPEN, 1)
            .string(abi::LOADER_CACHE.as_bytes());
        assert!(chunk.push(record.result(abi::LOADER_DESCRIPTOR).finish()));
        let arena = &place.stock.arena;
        arena.write(arena.take().unwrap(), 0, chunk.bytes());
    }

    fn events(place: &TestArena, pid: u32) -> Vec<String> {
        let log = Log::open(&place.path).unwrap();
        let text = |event: Event| {
            let told = match event.op {
                Op::Start { .. } => "start".to_owned(),
                Op::Load { path } | Op::Open { path, .. } => {
                    String::from_utf8(path.into_vec()).unwrap()
                }
                Op::Close { .. } => "close".to_owned(),
                other => format!("{other:?}"),
            };
            (event.pid == pid).then_some(told)
        };
        log.events().filter_map(text).collect()
    }

    #[test]
    fn a_start_becomes_the_chunk_that_the_recorder_would_have_written() {
        let mut place = place();
        first_chunk(&place, 1);
        place.drainer.pass(ChunkSelection::Finished);
        let pid = dead();
        start(&place, 7, abi::START_FILLED, pid, 5, 0);
        assert_eq!(place.drainer.pass(ChunkSelection::Finished), 1);
        assert_eq!(state(&place, 7), 0, "the entry is free");
        assert_eq!(
            events(&place, pid),
            [&["start"], &LIBRARIES[..], &[abi::LOADER_CACHE, "close"]].concat()
        );
        assert_eq!(place.drainer.lost(), 0);
    }

    #[test]
    fn a_set_is_published_once_however_often_it_is_logged() {
        let mut place = place();
        for epoch in 1..4 {
            first_chunk(&place, epoch);
            place.drainer.pass(ChunkSelection::Finished);
        }
        let names = LIBRARIES.map(|name| format!("{name}\0")).concat();
        assert_eq!(set(words(&place), 0), Some(names.into_bytes()));
        assert_eq!(set(words(&place), 1), None);
    }

    #[test]
    fn a_start_that_was_not_finished_is_freed_when_its_process_is_gone() {
        let mut place = place();
        start(&place, 0, abi::START_TAKEN, dead(), 5, 0);
        start(&place, 1, abi::START_TAKEN, std::process::id(), 6, 0);
        place.drainer.pass(ChunkSelection::Finished);
        assert_eq!(state(&place, 0), 0);
        assert_ne!(state(&place, 1), 0, "its process may go on");
        assert_eq!(place.drainer.lost(), 0);
    }

    #[test]
    fn a_damaged_start_is_lost() {
        let mut place = place();
        start(&place, 0, abi::START_FILLED, dead(), 5, 0);
        start(&place, 1, abi::START_FILLED, dead(), 6, u32::MAX);
        place.drainer.pass(ChunkSelection::Finished);
        assert_eq!((state(&place, 0), state(&place, 1)), (0, 0));
        assert_eq!(place.drainer.lost(), 2);
    }

    #[test]
    fn the_drainer_survives_any_content() {
        let mut place = place();
        let mut number = 7u64;
        for word in &words(&place)[SETS..] {
            number = number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let word_of_a_name = number.is_multiple_of(3);
            word.store(
                number >> (61 * u64::from(word_of_a_name)),
                Ordering::Relaxed,
            );
        }
        for index in 0..abi::STARTS as usize {
            let entry = &words(&place)[STARTS + index * START];
            entry.store(
                (entry.load(Ordering::Relaxed) << 32) | (1 + index as u64 % 2),
                Ordering::Relaxed,
            );
        }
        place.drainer.pass(ChunkSelection::Finished);
        place.drainer.pass(ChunkSelection::Last);
        assert!(place.drainer.lost() > 0);
    }

    #[test]
    fn a_start_finishes_the_chunk_of_the_program_before() {
        let mut place = place();
        first_chunk(&place, 1);
        place.drainer.pass(ChunkSelection::Finished);
        let me = std::process::id();
        take(&place, me, me, 3, 42);
        place.drainer.pass(ChunkSelection::Finished);
        assert_eq!(killed(&place), Vec::<i32>::new(), "it may go on");
        start(&place, 0, abi::START_FILLED, me, 4, 0);
        place.drainer.pass(ChunkSelection::Finished);
        assert_eq!(killed(&place), [42]);
    }
}
