//! The supply of free chunks: a thread that needs a chunk waits here until the drainer has freed
//! one.
//!
//! Invariant: no thread waits here for longer than [`PATIENCE`]. A disk that makes no progress can
//! slow a program down, but never stop it.

use crate::arena::Arena;
use crate::record_sink::RecordSink;
use backstory_abi as abi;
use backstory_sys::clock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Longest wait for a free chunk.
const PATIENCE: Duration = Duration::from_secs(2);

/// The arena of this process, and the threads that wait for its chunks.
pub struct ChunkSupply {
    /// The arena.
    pub arena: Arena,
    wishes: Mutex<SupplyRequests>,
    asked: Condvar,
    delivered: Condvar,
    guard_chunks: AtomicU32,
    leaving: OnceLock<LeavingHook>,
    regular: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

/// A callback that receives the bytes of a chunk.
type LeavingHook = Box<dyn Fn(&[u8]) + Send + Sync>;

#[derive(Default)]
struct SupplyRequests {
    waiting: u32,
    /// Values that are dropped when chunks have been drained.
    guests: Vec<Box<dyn Send>>,
    /// The drainer has work beside the chunks.
    news: bool,
    stopped: bool,
}

impl ChunkSupply {
    /// A supply from a mapped arena.
    pub fn new(arena: Arena) -> Arc<ChunkSupply> {
        Arc::new(ChunkSupply {
            arena,
            wishes: Mutex::default(),
            asked: Condvar::new(),
            delivered: Condvar::new(),
            guard_chunks: AtomicU32::new(0),
            leaving: OnceLock::new(),
            regular: OnceLock::new(),
        })
    }

    fn wishes(&self) -> MutexGuard<'_, SupplyRequests> {
        self.wishes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a chunk is free. Returns false if [`PATIENCE`] was exceeded.
    pub fn wait_for_chunk(&self) -> bool {
        let until = Instant::now() + PATIENCE;
        let mut wishes = self.wishes();
        wishes.waiting += 1;
        self.asked.notify_all();
        let mut asked = false;
        let free = loop {
            if self.arena.any_free() {
                break true;
            }
            let left = until.saturating_duration_since(Instant::now());
            // The drainer's report may be older than this request.
            if left.is_zero() || wishes.stopped || asked && self.arena.is_dry() {
                break false;
            }
            asked = true;
            let waited = self.delivered.wait_timeout(wishes, left);
            wishes = waited.unwrap_or_else(PoisonError::into_inner).0;
        };
        wishes.waiting -= 1;
        free
    }

    /// Drops `guest` once chunks have been drained, or at once if there is no drainer. Does not
    /// wait.
    pub fn ask(&self, guest: Box<dyn Send>) {
        let mut wishes = self.wishes();
        if wishes.stopped {
            drop(wishes);
            return drop(guest);
        }
        wishes.guests.push(guest);
        self.asked.notify_all();
    }

    /// Ends the drainer's pause, or its next one.
    pub fn wake(&self) {
        self.wishes().news = true;
        self.asked.notify_all();
    }

    /// Registers a callback that sees every chunk before it leaves the arena. Only the first
    /// registration counts.
    pub fn on_leaving(&self, hook: LeavingHook) {
        let _ = self.leaving.set(hook);
    }

    /// Reports a chunk that is about to leave the arena.
    pub fn leaves(&self, chunk: &[u8]) {
        if let Some(hook) = self.leaving.get() {
            hook(chunk);
        }
    }

    /// Registers a callback for each pass of the drainer, at least four times a second. Only the
    /// first registration counts.
    pub fn look_regularly(&self, look: Box<dyn Fn() + Send + Sync>) {
        let _ = self.regular.set(look);
    }

    /// Reports the end of a pass of the drainer.
    pub fn looked(&self) {
        if let Some(look) = self.regular.get() {
            look();
        }
    }

    /// Number of threads that wait for a chunk.
    pub fn asking(&self) -> usize {
        let wishes = self.wishes();
        wishes.guests.len() + wishes.waiting as usize
    }

    /// Pauses the drainer. The pause ends early if a thread waits for a chunk, or for
    /// [`ChunkSupply::wake`]. Returns false once there is nothing to drain any more.
    pub fn pause(&self, at_most: Duration) -> bool {
        let mut wishes = self.wishes();
        if wishes.waiting == 0 && wishes.guests.is_empty() && !wishes.news && !wishes.stopped {
            let waited = self.asked.wait_timeout(wishes, at_most);
            wishes = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        wishes.news = false;
        !wishes.stopped
    }

    /// Wakes the waiting threads, because chunks may have become free.
    pub fn deliver(&self) {
        let mut wishes = self.wishes();
        let guests = std::mem::take(&mut wishes.guests);
        if wishes.waiting > 0 {
            self.delivered.notify_all();
        }
        drop(wishes);
        drop(guests); // outside the lock: their destructors may do anything
    }

    /// Ends the drainer, or declares that no drainer exists. From now on no thread waits for
    /// chunks.
    pub fn stop(&self) {
        let mut wishes = self.wishes();
        wishes.stopped = true;
        let guests = std::mem::take(&mut wishes.guests);
        drop(wishes);
        drop(guests);
        self.asked.notify_all();
        self.delivered.notify_all();
    }
}

/// Writes the supervisor's records into chunks of its own. Their header has thread 0.
pub struct ChunkWriter {
    stock: Arc<ChunkSupply>,
    current: Option<(usize, usize)>,
}

impl ChunkWriter {
    /// A writer without a chunk.
    pub fn new(stock: Arc<ChunkSupply>) -> ChunkWriter {
        ChunkWriter {
            stock,
            current: None,
        }
    }

    /// The chunk and the offset for a record of this length.
    fn place(&mut self, length: usize) -> Option<(usize, usize)> {
        if let Some((index, at)) = self.current {
            if at + length <= abi::CHUNK_SIZE as usize {
                return Some((index, at));
            }
            self.release();
        }
        if abi::Chunk::SIZE + length > abi::CHUNK_SIZE as usize {
            return None;
        }
        let index = self.take()?;
        let header = abi::Chunk {
            magic: abi::CHUNK_MAGIC,
            index: index as u32,
            pid: std::process::id(),
            taken: clock::counter(),
            seq: self.stock.guard_chunks.fetch_add(1, Ordering::Relaxed),
            next: abi::Chunk::SIZE as u64,
            ..abi::Chunk::default()
        };
        self.stock.arena.write(index, 0, &header.to_bytes());
        self.current = Some((index, abi::Chunk::SIZE));
        self.current
    }

    /// Adding chunks is tried before waiting. A receiver must not wait for the disk while memory is
    /// left.
    fn take(&self) -> Option<usize> {
        let arena = &self.stock.arena;
        if let Some(index) = arena.take() {
            return Some(index);
        }
        if arena.grow(8) == 0 && !self.stock.wait_for_chunk() {
            return None;
        }
        arena.take()
    }

    fn release(&mut self) {
        if let Some((index, _)) = self.current.take() {
            let arena = &self.stock.arena;
            arena.set(&arena.header().full, index);
        }
    }
}

impl RecordSink for ChunkWriter {
    fn append(&mut self, record: &[u8]) {
        let Some((index, at)) = self.place(record.len()) else {
            self.stock.arena.add_lost(1);
            return;
        };
        let end = at + record.len();
        self.stock.arena.write(index, at, record);
        self.stock.arena.set_next(index, end);
        self.current = Some((index, end));
    }
}

impl Drop for ChunkWriter {
    fn drop(&mut self) {
        self.release();
    }
}
