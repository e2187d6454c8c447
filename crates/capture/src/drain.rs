//! Moves chunks from the arena into the log and gives them back.
//!
//! Invariant: a chunk is zeroed only after the kernel has its bytes (`Writer::chunk` returned) and only when its owner will append
//! no more: the owner said so, or is dead. A drainer that dies between the two leaves the chunk in both places; readers take the
//! later copy.

use crate::arena::Arena;
use crate::clock;
use crate::stock::Stock;
use crate::sys::{self, Pid};
use backstory_abi as abi;
use backstory_eventlog::run::RunEnd;
use backstory_eventlog::{Error as LogError, Writer};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Pause between two passes while chunks come in.
const BUSY: Duration = Duration::from_millis(8);
/// Pause when chunks are used up faster than they can be made.
const SCARCE: Duration = Duration::from_millis(1);
/// Longest pause.
const IDLE: Duration = Duration::from_millis(250);
/// Between two readings of the clocks.
const CLOCK_EVERY: i64 = 60 * 1_000_000_000;

/// Which chunks a pass takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// Those that nobody will append to.
    Finished,
    /// All: recording ends now.
    All,
}

/// The one writer of a run's log.
pub(crate) struct Drainer {
    stock: Arc<Stock>,
    log: Writer,
    scratch: Vec<u8>,
    /// Slots that could not be appended.
    lost: u64,
    /// The first failure to write, for people.
    failed: Option<String>,
    clock_due: i64,
}

impl Drainer {
    /// A drainer that appends to `log`. Writes a reading of the clocks.
    pub(crate) fn new(stock: Arc<Stock>, log: Writer) -> Drainer {
        let mut drainer = Drainer {
            stock,
            log,
            scratch: Vec::new(),
            lost: 0,
            failed: None,
            clock_due: 0,
        };
        drainer.clock();
        drainer
    }

    fn note(&mut self, result: Result<(), LogError>) -> bool {
        if let Err(error) = &result {
            self.failed.get_or_insert_with(|| error.to_string());
        }
        result.is_ok()
    }

    fn clock(&mut self) {
        let result = self.log.clock(clock::point());
        self.note(result);
        self.clock_due = clock::monotonic() + CLOCK_EVERY;
    }

    /// Drains what can be drained. Returns how many chunks were.
    pub(crate) fn pass(&mut self, which: Which) -> usize {
        if clock::monotonic() > self.clock_due {
            self.clock();
        }
        let stock = Arc::clone(&self.stock);
        let owned: Vec<_> = stock
            .arena
            .owned()
            .into_iter()
            .map(|index| (index, stock.arena.chunk_header(index)))
            .filter(|(_, header)| header.magic == abi::CHUNK_MAGIC)
            .collect();
        notice_namespaces(&stock.arena, &owned);
        let newest = newest_epochs(&stock.arena, &owned);
        let mut drained = 0;
        for (index, header) in &owned {
            let finished = stock.arena.is_set(&stock.arena.header().full, *index)
                || abandoned(&stock.arena, header, &newest);
            if finished || which == Which::All {
                self.append(*index, finished);
                drained += 1;
            }
        }
        drained
    }

    fn append(&mut self, index: usize, give_back: bool) {
        let stock = Arc::clone(&self.stock);
        let mut bytes = std::mem::take(&mut self.scratch);
        stock.arena.contents(index, &mut bytes);
        if bytes.len() > abi::Chunk::SIZE {
            let result = self.log.chunk(&bytes);
            if !self.note(result) {
                self.lost += slots(&bytes);
            }
        }
        if give_back {
            stock.arena.give_back(index, bytes.len());
        }
        self.scratch = bytes;
    }

    /// Operations that are known to be lost so far.
    pub(crate) fn lost(&self) -> u64 {
        let arena = self.stock.arena.header();
        self.lost + arena.lost.load(std::sync::atomic::Ordering::Acquire)
    }

    /// Why the log itself is not whole, if it isn't.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// Writes the last frames.
    pub(crate) fn finish(&mut self, end: &RunEnd) {
        self.clock();
        let result = self.log.end(end);
        self.note(result);
    }

    /// Makes the log durable.
    pub(crate) fn sync(&mut self) {
        let result = self.log.sync();
        self.note(result);
    }
}

/// A first process of another pid namespace gives itself away by its number. From then on owners are trusted only if announced.
fn notice_namespaces(arena: &Arena, owned: &[(usize, abi::Chunk)]) {
    if owned
        .iter()
        .any(|(_, h)| h.pid == 1 && h.tid != 0 && h.host_pid == 0)
        && std::process::id() != 1
    {
        let flags = &arena.header().flags;
        flags.fetch_or(abi::ARENA_PIDNS, std::sync::atomic::Ordering::AcqRel);
    }
}

fn foreign_pids(arena: &Arena) -> bool {
    arena.header().flags.load(std::sync::atomic::Ordering::Acquire) & abi::ARENA_PIDNS != 0
}

/// The process as we number it, if we can know.
fn host_pid(arena: &Arena, header: &abi::Chunk) -> Option<Pid> {
    match header.host_pid {
        0 if foreign_pids(arena) => None,
        0 => Some(header.pid as Pid),
        pid => Some(pid as Pid),
    }
}

/// The latest recorder start of each process: an `execve` leaves the chunks of the former program behind.
fn newest_epochs(arena: &Arena, owned: &[(usize, abi::Chunk)]) -> HashMap<Pid, u64> {
    let mut newest = HashMap::new();
    for (_, header) in owned {
        if let Some(pid) = host_pid(arena, header) {
            let epoch = newest.entry(pid).or_insert(header.epoch);
            *epoch = header.epoch.max(*epoch);
        }
    }
    newest
}

/// Nobody is left to append to this chunk.
fn abandoned(arena: &Arena, header: &abi::Chunk, newest: &HashMap<Pid, u64>) -> bool {
    let Some(pid) = host_pid(arena, header) else {
        return false;
    };
    // Epoch 0 is the guard's, or that of a header which its owner is just writing.
    if header.epoch != 0 && newest.get(&pid).is_some_and(|&epoch| epoch > header.epoch) {
        return true;
    }
    // Thread ids of another namespace say nothing here, and the guard's chunks belong to no thread.
    let tid = if header.host_pid == 0 && header.tid != 0 {
        header.tid as Pid
    } else {
        pid
    };
    !sys::thread_exists(pid, tid)
}

/// How many slots a chunk's bytes hold.
fn slots(bytes: &[u8]) -> u64 {
    let mut count = 0;
    let mut at = abi::Chunk::SIZE;
    while let Some(slot) = bytes.get(at..).and_then(abi::Slot::read) {
        at += usize::from(slot.size).max(8);
        count += u64::from(slot.size != 0);
    }
    count
}

/// Drains on a tick until told to stop: often while chunks come in, rarely when nothing happens.
pub(crate) fn run(stock: &Stock, drainer: &Mutex<Drainer>) {
    stock.arena.keep_stocked();
    let mut pause = BUSY;
    while stock.pause(pause) {
        let drained = drainer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pass(Which::Finished);
        stock.arena.keep_stocked();
        stock.deliver();
        pause = match drained {
            0 => (pause * 2).min(IDLE),
            _ if stock.arena.scarce() => SCARCE,
            _ => BUSY,
        };
    }
}
