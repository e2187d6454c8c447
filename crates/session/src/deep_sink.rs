//! Moves chunks of deep records into the deep log, in the background.
//!
//! In: chunks that the drainer has copied out of the arena. Out: the file `ID.deep`.
//!
//! Invariants:
//!
//! - A chunk is freed only after the kernel has its bytes. A process that takes over finds it in
//!   the arena otherwise. A chunk may then be in the file twice.
//! - The queue is bounded. While it is full, and the arena is full of deep chunks, the recorded
//!   threads wait for chunks.
//! - The queue's lock is the only one. No file is written and no chunk is freed while it is held.
//! - Chunks reach the file in the order in which they were passed on, also after a failure.
//! - The drainer's thread never waits for the disk because of deep chunks, except at the run's end.
//! - If the deep log cannot be written, recorders stop writing deep records. The run goes on. Of
//!   the chunks that are there by then, the file gets the small ones and the starts of programs.

use crate::clock;
use crate::deep_mark::DeepMark;
use backstory_abi as abi;
use backstory_arena::ChunkSupply;
use backstory_deep::{Compression, DeepEnd, DeepHeader, DeepWriter, last_part};
use backstory_eventlog::Reason;
use backstory_eventlog::run::RunHeader;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Most chunks that wait for the disk: 16 MB.
const MOST: usize = 256;
/// Most buffers that are kept: 2 MB.
const SPARE: usize = MOST / 8;
/// With more chunks waiting than this, they are compressed less.
const MANY: usize = MOST / 4;

/// With more chunks in a second than this, they are compressed less, too: 4 MB.
const FAST: u32 = 64;
const SECOND: Duration = Duration::from_secs(1);
/// Readings of the clocks are so far apart at least.
const BETWEEN_READINGS: Duration = Duration::from_millis(100);

/// The deep log of a run that is to have one.
#[derive(Debug, Clone)]
pub(crate) struct DeepPlan {
    path: PathBuf,
    header: DeepHeader,
}

impl DeepPlan {
    /// The deep log of the run with this header. `None` if the run is not recorded deeply. `log` is
    /// the path of the finalized log.
    pub(crate) fn of(header: &RunHeader, log: &Path) -> Option<DeepPlan> {
        let outputs = header.modes.deep?;
        let now = clock::point();
        Some(DeepPlan {
            path: log.with_extension("deep"),
            header: DeepHeader {
                run: header.id.clone(),
                boot_id: header.boot_id.clone(),
                outputs: outputs.to_string(),
                references: header.modes.stores_contents(),
                counter: now.counter,
                real: now.real,
            },
        })
    }
}

/// A chunk on its way to the file.
struct WaitingChunk {
    index: usize,
    bytes: Vec<u8>,
    /// Bytes that it has in the arena.
    used: usize,
    /// Its owner appends no more: it is to be freed.
    finished: bool,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<WaitingChunk>,
    /// The thread writes a chunk.
    is_writing: bool,
    /// Buffers of chunks that were written. New memory would have to be cleared by the kernel.
    spare: Vec<Vec<u8>>,
    closing: bool,
    failed: Option<String>,
    /// The file gets nothing more, not even a small chunk.
    has_no_room: bool,
}

impl Queue {
    /// True if the file takes no chunk whole.
    fn has_ended(&self) -> bool {
        self.failed.is_some()
    }

    /// Adds the last part of a chunk. Returns the chunk if it has none, or if there is no room.
    fn add_last(&mut self, mut chunk: WaitingChunk) -> Option<WaitingChunk> {
        let has_room = !self.has_no_room && self.waiting.len() < MOST;
        let Some(part) = has_room.then(|| last_part(&chunk.bytes)).flatten() else {
            return Some(chunk);
        };
        chunk.bytes = part;
        self.waiting.push_back(chunk);
        None
    }
}

/// The queue, and the arena whose recorders stop after an error.
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
    stock: Arc<ChunkSupply>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, queue: MutexGuard<'a, Queue>) -> MutexGuard<'a, Queue> {
        let waited = self.changed.wait(queue);
        waited.unwrap_or_else(PoisonError::into_inner)
    }

    /// The deep log has ended: recorders write no more deep records. `has_no_room`: the file gets
    /// nothing more. Otherwise it gets the last parts of chunks, until that fails, too.
    fn fail(&self, error: &backstory_deep::Error, has_no_room: bool) {
        let flags = &self.stock.arena.header().flags;
        flags.fetch_or(abi::ARENA_SHALLOW, Ordering::AcqRel);
        let mut queue = self.lock();
        queue.failed.get_or_insert_with(|| error.to_string());
        queue.has_no_room |= has_no_room;
        // Under the same lock, so that no later chunk comes before them.
        let waiting = std::mem::take(&mut queue.waiting).into_iter();
        let left: Vec<_> = waiting.filter_map(|chunk| queue.add_last(chunk)).collect();
        drop(queue);
        left.iter().for_each(|chunk| self.free(chunk));
        self.changed.notify_all();
    }

    /// Queues the last part of a chunk behind the end of the deep log, or frees the chunk.
    fn queue_last(&self, chunk: WaitingChunk) {
        let left = self.lock().add_last(chunk);
        left.iter().for_each(|chunk| self.free(chunk));
        self.changed.notify_all();
    }

    fn free(&self, chunk: &WaitingChunk) {
        if chunk.finished {
            self.stock.arena.give_back(chunk.index, chunk.used);
            self.stock.deliver();
        }
    }
}

/// Writes the deep log of one run.
pub(crate) struct DeepSink {
    shared: Arc<Shared>,
    plan: DeepPlan,
    /// Why the recording ended before its programs did.
    cut_because: Option<String>,
    /// Returns the writer when the queue is closed and empty.
    worker: Option<JoinHandle<Option<DeepWriter>>>,
}

impl DeepSink {
    /// A sink without a thread: most runs have a chunk of deep records only once a program runs.
    pub(crate) fn new(plan: DeepPlan, stock: Arc<ChunkSupply>) -> DeepSink {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            changed: Condvar::new(),
            stock,
        });
        DeepSink {
            shared,
            plan,
            cut_because: None,
            worker: None,
        }
    }

    /// True if a chunk can be passed on without waiting.
    pub(crate) fn has_room(&self) -> bool {
        self.shared.lock().waiting.len() < MOST
    }

    /// True if the file lacks a chunk that was passed on.
    pub(crate) fn is_busy(&self) -> bool {
        let queue = self.shared.lock();
        queue.is_writing || !queue.waiting.is_empty()
    }

    /// Takes a chunk, and frees it once the kernel has it if it is `finished`. Waits while the
    /// queue is full. `bytes` becomes a buffer without a meaning.
    pub(crate) fn push(&mut self, index: usize, bytes: &mut Vec<u8>, finished: bool) {
        self.start();
        let mut queue = self.shared.lock();
        let spare = queue.spare.pop().unwrap_or_default();
        let used = bytes.len();
        let chunk = WaitingChunk {
            index,
            bytes: std::mem::replace(bytes, spare),
            used,
            finished,
        };
        while queue.waiting.len() >= MOST && !queue.has_ended() {
            queue = self.shared.wait(queue);
        }
        if queue.has_ended() {
            drop(queue);
            return self.shared.queue_last(chunk);
        }
        queue.waiting.push_back(chunk);
        drop(queue);
        self.shared.changed.notify_all();
    }

    fn start(&mut self) {
        if self.worker.is_some() || self.shared.lock().has_ended() {
            return;
        }
        let (shared, plan) = (Arc::clone(&self.shared), self.plan.clone());
        let started = std::thread::Builder::new()
            .name("deep".into())
            .stack_size(512 << 10)
            .spawn(move || work(&shared, &plan));
        match started {
            Ok(worker) => self.worker = Some(worker),
            Err(source) => {
                let error = backstory_deep::Error::Io {
                    operation: "start a thread for",
                    path: self.plan.path.clone(),
                    source,
                };
                self.shared.fail(&error, true);
            }
        }
    }

    /// Why processes are shallow from some moment on, as far as it is known now.
    pub(crate) fn reasons(&self) -> Vec<Reason> {
        let failed = self.shared.lock().failed.clone();
        let shallow = failed.map(|error| Reason::DeepEnded { error });
        let lost = self.records_lost();
        let gap = (lost > 0).then_some(Reason::DeepLost { records: lost });
        shallow.into_iter().chain(gap).collect()
    }

    /// Programs may have gone on without a recording, for this reason. The end of the file says so.
    pub(crate) fn ends_early(&mut self, why: &Reason) {
        self.cut_because = Some(why.to_string());
    }

    fn records_lost(&self) -> u64 {
        let arena = self.shared.stock.arena.header();
        arena.deep_lost.load(Ordering::Acquire)
    }

    /// Marks the file as one that only has to be finished. `None` if it may not become whole with
    /// so many more chunks, or if it cannot be marked. The launcher must then wait for the deep
    /// log, too.
    pub(crate) fn mark_ending(&self, more: usize) -> Option<DeepMark> {
        let waiting = self.shared.lock().waiting.len();
        let bytes = (waiting + more) as u64 * u64::from(abi::CHUNK_SIZE);
        if !self.reasons().is_empty() {
            return None;
        }
        DeepMark::set(&self.plan.path).filter(|mark| mark.has_room(bytes))
    }

    /// Waits until all chunks are in the file, and ends it.
    pub(crate) fn finish(&mut self) {
        self.start();
        self.shared.lock().closing = true;
        self.shared.changed.notify_all();
        let writer = self.worker.take().and_then(|worker| worker.join().ok());
        let shallow = self.shared.lock().failed.clone();
        let now = clock::point();
        let end = DeepEnd {
            counter: now.counter,
            real: now.real,
            records_lost: self.records_lost(),
            shallow_because: shallow
                .map(|error| Reason::DeepEnded { error }.to_string())
                .or_else(|| self.cut_because.clone()),
        };
        if let Some(Err(error)) = writer.flatten().map(|mut writer| writer.end(&end)) {
            let mut queue = self.shared.lock();
            queue.failed.get_or_insert_with(|| error.to_string());
        }
    }
}

/// How many chunks came in a second.
struct Pace {
    since: Instant,
    chunks: u32,
    was_fast: bool,
}

impl Pace {
    fn new() -> Pace {
        Pace {
            since: Instant::now(),
            chunks: 0,
            was_fast: false,
        }
    }

    /// Counts a chunk. True if this second or the one before has more than [`FAST`]: the recorded
    /// programs then need the processors themselves.
    fn is_fast(&mut self) -> bool {
        let elapsed = self.since.elapsed();
        if elapsed >= SECOND {
            self.was_fast = self.chunks > FAST && elapsed < 2 * SECOND;
            (self.since, self.chunks) = (Instant::now(), 0);
        }
        self.chunks += 1;
        self.was_fast || self.chunks > FAST
    }
}

/// Writes chunks until the queue is closed and empty, or the file cannot be written. Behind a
/// failure, it writes the last parts of chunks.
fn work(shared: &Shared, plan: &DeepPlan) -> Option<DeepWriter> {
    let mut writer = match DeepWriter::open(&plan.path, &plan.header) {
        Ok(writer) => writer,
        Err(error) => {
            shared.fail(&error, true);
            return None;
        }
    };
    let mut pace = Pace::new();
    let mut read_clocks = Instant::now();
    loop {
        let mut queue = shared.lock();
        while queue.waiting.is_empty() && !queue.closing && !queue.has_no_room {
            queue = shared.wait(queue);
        }
        let has_ended = queue.has_ended();
        let are_many = queue.waiting.len() > MANY;
        let Some(chunk) = queue.waiting.pop_front() else {
            return Some(writer);
        };
        let compression = match pace.is_fast() || are_many {
            true => Compression::Hurried,
            false => Compression::Usual,
        };
        queue.is_writing = true;
        drop(queue);
        shared.changed.notify_all();
        let mut written = match has_ended {
            true => writer.last_chunk(&chunk.bytes),
            false => written_whole(&mut writer, &chunk.bytes, compression),
        };
        if read_clocks.elapsed() >= BETWEEN_READINGS && written.is_ok() {
            read_clocks = Instant::now();
            written = writer.clock(clock::point());
        }
        shared.free(&chunk);
        let mut queue = shared.lock();
        queue.is_writing = false;
        if queue.spare.len() < SPARE {
            queue.spare.push(chunk.bytes);
        }
        drop(queue);
        if let Err(error) = written {
            shared.fail(&error, has_ended || !error.leaves_room());
        }
    }
}

/// Writes a chunk. If the disk lacks the room for all of it, the file gets its last part.
fn written_whole(
    writer: &mut DeepWriter,
    chunk: &[u8],
    compression: Compression,
) -> Result<(), backstory_deep::Error> {
    let written = writer.chunk(chunk, compression);
    if let Err(error) = &written
        && error.leaves_room()
        && let Some(part) = last_part(chunk)
    {
        // The next part fails as well.
        let _ = writer.last_chunk(&part);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstory_arena::Arena;

    /// Rounds in which a chunk is passed on while the deep log ends.
    const ROUNDS: usize = 20;

    /// A small chunk, so that the file still gets all of it.
    fn small() -> Vec<u8> {
        let head = abi::Chunk {
            magic: abi::CHUNK_MAGIC,
            next: abi::Chunk::SIZE as u64,
            ..abi::Chunk::default()
        };
        head.to_bytes().to_vec()
    }

    fn waiting(index: usize) -> WaitingChunk {
        let bytes = small();
        WaitingChunk {
            index,
            used: bytes.len(),
            bytes,
            finished: false,
        }
    }

    #[test]
    fn after_a_failure_earlier_chunks_come_before_later_ones() {
        let id = format!("test-deep-sink-{}", std::process::id());
        let stock = ChunkSupply::new(Arena::create(&id, 0).unwrap());
        let error = backstory_deep::Error::Io {
            operation: "write",
            path: PathBuf::from("log.deep"),
            source: std::io::ErrorKind::StorageFull.into(),
        };
        for _ in 0..ROUNDS {
            let shared = Shared {
                queue: Mutex::default(),
                changed: Condvar::new(),
                stock: Arc::clone(&stock),
            };
            shared.lock().waiting.extend((1..MOST).map(waiting));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !shared.lock().has_ended() {
                        std::thread::yield_now();
                    }
                    shared.queue_last(waiting(MOST));
                });
                shared.fail(&error, false);
            });
            let order: Vec<usize> = shared.lock().waiting.iter().map(|one| one.index).collect();
            assert_eq!(order, (1..=MOST).collect::<Vec<_>>());
        }
        stock.arena.remove();
    }
}
