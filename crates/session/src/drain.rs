//! Moves chunks from the arena into the log and frees them.
//!
//! Invariant: a chunk is zeroed only after the kernel has its bytes (`Writer::chunk` returned), and
//! only if its owner will append no more. The owner has declared that, or is dead. A drainer that
//! dies between the two steps leaves the chunk in both places. Readers take the later copy.

mod executed;
mod other_roots;
pub(crate) mod privileges;
mod shared_chunk;
mod undecoded;
mod unwatched;

use crate::clock;
use crate::redact::Secrets;
use backstory_abi as abi;
use backstory_arena::Arena;
use backstory_arena::ChunkSupply;
use backstory_eventlog::frame::FrameKind;
use backstory_eventlog::run::RunEnd;
use backstory_eventlog::{Error as LogError, Writer};
use backstory_sys::{self as sys, Pid};
use privileges::Privileges;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use undecoded::Undecoded;
use unwatched::Unwatched;

/// Pause between two passes while chunks arrive.
const BUSY: Duration = Duration::from_millis(8);
/// Pause while chunks are used up faster than they can be added.
const SCARCE: Duration = Duration::from_millis(1);
/// Longest pause.
const IDLE: Duration = Duration::from_millis(250);
/// Longest pause without a guard. A thread that finds no chunk then cannot ask for one, and retries
/// for a fraction of a second only.
const UNASKED: Duration = Duration::from_millis(50);
/// Interval between two readings of the clocks, in nanoseconds.
const CLOCK_EVERY: i64 = 60 * 1_000_000_000;

/// The chunks that a pass takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChunkSelection {
    /// Chunks whose owner will append no more.
    Finished,
    /// All chunks, because recording ends now.
    All,
}

/// The only writer of a run's log.
pub(crate) struct Drainer {
    stock: Arc<ChunkSupply>,
    log: Writer,
    scratch: Vec<u8>,
    /// Secrets that must not reach the log.
    secrets: Secrets,
    /// Programs that lost a privilege by being recorded.
    privileges: Privileges,
    /// Programs that neither recorder nor guard observed.
    unwatched: Unwatched,
    /// Gaps that the records themselves report.
    undecoded: Undecoded,
    /// Records that could not be appended.
    lost: u64,
    /// Numbers of records in the chunks that can be taken back from the log, the latest chunk last.
    /// The log keeps as many of them as it can.
    recent: VecDeque<u64>,
    /// The first write error, as a message.
    failed: Option<String>,
    clock_due: i64,
}

impl Drainer {
    /// A drainer that appends to `log` and removes `secrets`. Appends a reading of the clocks.
    pub(crate) fn new(stock: Arc<ChunkSupply>, log: Writer, secrets: Secrets) -> Drainer {
        let mut drainer = Drainer {
            stock,
            log,
            scratch: Vec::new(),
            secrets,
            privileges: Privileges::default(),
            unwatched: Unwatched::new(),
            undecoded: Undecoded::default(),
            lost: 0,
            recent: VecDeque::new(),
            failed: None,
            clock_due: 0,
        };
        drainer.clock();
        drainer
    }

    /// The same, reporting programs that lost a privilege.
    pub(crate) fn with_privileges(self, privileges: Privileges) -> Drainer {
        Drainer { privileges, ..self }
    }

    /// The programs that neither recorder nor guard observed, in a sentence.
    pub(crate) fn unwatched(&self) -> Option<String> {
        self.unwatched.reason()
    }

    /// Gaps that the drained records report, in sentences.
    pub(crate) fn undecoded(&self) -> impl Iterator<Item = String> {
        self.undecoded.reasons()
    }

    /// Programs that lost a privilege, in sentences.
    pub(crate) fn privileges_lost(&self) -> &[String] {
        self.privileges.told()
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
        self.clock_due = backstory_sys::clock::monotonic() + CLOCK_EVERY;
    }

    /// Drains the chunks selected by `which`. Returns their number.
    pub(crate) fn pass(&mut self, which: ChunkSelection) -> usize {
        if backstory_sys::clock::monotonic() > self.clock_due {
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
                || (abandoned(&stock.arena, header, &newest)
                    && !self.has_other_writer(*index, &newest));
            if finished || which == ChunkSelection::All {
                self.append(*index, finished);
                drained += 1;
            }
        }
        drained
    }

    /// True if a child on the dead owner's memory may still append.
    fn has_other_writer(&mut self, index: usize, newest: &HashMap<Pid, u64>) -> bool {
        self.stock.arena.contents(index, &mut self.scratch);
        shared_chunk::has_other_writer(&self.scratch, newest)
    }

    fn append(&mut self, index: usize, give_back: bool) {
        let stock = Arc::clone(&self.stock);
        let mut bytes = std::mem::take(&mut self.scratch);
        stock.arena.contents(index, &mut bytes);
        if give_back {
            stock.leaves(&bytes);
        }
        if bytes.len() > abi::Chunk::SIZE {
            self.secrets.scrub(&mut bytes);
            self.privileges.look(&bytes);
            if self.stock.arena.header().flags.load(Ordering::Relaxed) & abi::ARENA_GUARDED == 0 {
                self.unwatched.look(&bytes);
            }
            self.undecoded.look(&bytes);
            let result = self.log.chunk(&bytes);
            let count = records(&bytes);
            match self.note(result) {
                true => self.remember(count),
                false => self.lost += count,
            }
        }
        if give_back {
            stock.arena.give_back(index, bytes.len());
        }
        self.scratch = bytes;
    }

    /// Number of operations known to be lost so far.
    pub(crate) fn lost(&self) -> u64 {
        let arena = self.stock.arena.header();
        self.lost.saturating_add(arena.lost.load(Ordering::Acquire))
    }

    /// The reason why the log is not whole. `None` if it is.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    fn remember(&mut self, records: u64) {
        if self.recent.len() == Writer::RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(records);
    }

    /// Appends the last frames, and returns the `end` that is in the log. The end of a run matters
    /// more than its last operations. On a full disk the last chunks are taken back to make room,
    /// and `end` is computed again, because it must report that loss.
    pub(crate) fn finish(&mut self, end: impl Fn(&Drainer) -> RunEnd) -> RunEnd {
        let clock = clock::point();
        loop {
            let told = end(self);
            let written = self.log.clock(clock).and_then(|()| self.log.end(&told));
            if self.note(written) || !self.take_back_chunk() {
                return told;
            }
        }
    }

    /// Takes the last chunk back from the log, with the clock readings after it. Returns false if
    /// no chunk is left.
    fn take_back_chunk(&mut self) -> bool {
        loop {
            match self.log.take_back() {
                Ok(Some(FrameKind::Chunk)) => break,
                Ok(Some(_)) => (),
                Ok(None) | Err(_) => return false,
            }
        }
        self.lost += self.recent.pop_back().unwrap_or_default();
        true
    }

    /// Makes the log durable (fdatasync(2)).
    pub(crate) fn sync(&mut self) {
        let result = self.log.sync();
        self.note(result);
    }
}

/// Detects the first process of another pid namespace by its number. From then on the owner of a
/// chunk is trusted only if it was announced.
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
    arena
        .header()
        .flags
        .load(std::sync::atomic::Ordering::Acquire)
        & abi::ARENA_PIDNS
        != 0
}

/// The owner's process id in the supervisor's pid namespace, if it can be known.
fn host_pid(arena: &Arena, header: &abi::Chunk) -> Option<Pid> {
    match header.host_pid {
        0 if foreign_pids(arena) => None,
        0 => Some(header.pid as Pid),
        pid => Some(pid as Pid),
    }
}

/// The latest recorder start of each process. An `execve` abandons the chunks of the former
/// program.
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

/// True if no thread is left that can append to this chunk.
fn abandoned(arena: &Arena, header: &abi::Chunk, newest: &HashMap<Pid, u64>) -> bool {
    let Some(pid) = host_pid(arena, header) else {
        return false;
    };
    // Epoch 0 belongs to the guard, or to a header that its owner is just writing.
    if header.epoch != 0 && newest.get(&pid).is_some_and(|&epoch| epoch > header.epoch) {
        return true;
    }
    // Thread ids of another namespace mean nothing here. The guard's chunks belong to no thread.
    let tid = if header.host_pid == 0 && header.tid != 0 && header.tid < abi::TID_UNTOLD {
        header.tid as Pid
    } else {
        pid
    };
    !sys::thread_exists(pid, tid)
}

/// Number of records in a chunk.
fn records(bytes: &[u8]) -> u64 {
    let mut count = 0;
    let mut at = abi::Chunk::SIZE;
    while let Some(record) = bytes.get(at..).and_then(abi::Record::read) {
        at += usize::from(record.size).max(8);
        count += u64::from(record.size != 0);
    }
    count
}

/// Drains periodically until stopped: often while chunks arrive, rarely otherwise.
pub(crate) fn run(stock: &ChunkSupply, drainer: &Mutex<Drainer>) {
    // The first chunks are added while the command starts, but only where that does not delay it.
    let mut pause = SCARCE;
    let guarded = stock.arena.header().flags.load(Ordering::Relaxed) & abi::ARENA_GUARDED != 0;
    let longest = if guarded { IDLE } else { UNASKED };
    while stock.pause(pause) {
        let drained = drainer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pass(ChunkSelection::Finished);
        let before = stock.arena.chunks();
        stock.arena.keep_stocked();
        // Many processes that start at once fill no chunk for long. Each one that waits needs a
        // chunk.
        stock.arena.grow(stock.asking().saturating_sub(drained));
        let grown = stock.arena.chunks() > before;
        if grown && drained < before / 8 {
            stock.arena.grow(before / 2);
        }
        stock.arena.tell_if_dry(drained);
        stock.deliver();
        stock.looked();
        pause = match drained {
            _ if grown && stock.arena.scarce() => SCARCE,
            0 if grown || stock.arena.is_dry() => BUSY,
            0 => (pause * 2).clamp(BUSY, longest),
            _ if stock.arena.scarce() => SCARCE,
            _ => BUSY,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstory_abi::op;
    use backstory_arena::ChunkWriter;
    use backstory_arena::RecordSink;
    use backstory_eventlog::Log;
    use backstory_eventlog::event::Op;
    use backstory_eventlog::record::RecordBuilder;
    use backstory_eventlog::run::RunHeader;
    use std::path::PathBuf;
    use std::sync::atomic::AtomicU32;

    struct TestArena {
        _dir: tempfile::TempDir,
        path: PathBuf,
        stock: Arc<ChunkSupply>,
        drainer: Drainer,
    }

    impl Drop for TestArena {
        fn drop(&mut self) {
            self.stock.arena.remove();
        }
    }

    fn place() -> TestArena {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let log = Writer::create(&path, &RunHeader::default()).unwrap();
        let id = format!(
            "test-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let stock = ChunkSupply::new(Arena::create(&id, 0).unwrap());
        TestArena {
            _dir: dir,
            path,
            drainer: Drainer::new(Arc::clone(&stock), log, Secrets::default()),
            stock,
        }
    }

    fn kill_record(builder: &mut RecordBuilder, number: i32) -> &[u8] {
        builder
            .start(op::KILL, backstory_sys::clock::counter())
            .fd(number)
            .result(0)
            .finish()
    }

    fn killed(place: &TestArena) -> Vec<i32> {
        let log = Log::open(&place.path).unwrap();
        let pid = |e: backstory_eventlog::event::Event| match e.op {
            Op::Kill { pid, .. } => Some(pid),
            _ => None,
        };
        log.events().filter_map(pid).collect()
    }

    /// Takes a chunk as a recorder would, with one record in it.
    fn take(place: &TestArena, pid: u32, tid: u32, epoch: u64, number: i32) -> usize {
        let arena = &place.stock.arena;
        let index = arena.take().unwrap();
        let mut builder = RecordBuilder::new();
        let record = kill_record(&mut builder, number);
        let header = abi::Chunk {
            magic: abi::CHUNK_MAGIC,
            index: index as u32,
            pid,
            tid,
            epoch,
            taken: backstory_sys::clock::counter(),
            next: (abi::Chunk::SIZE + record.len()) as u64,
            ..abi::Chunk::default()
        };
        arena.write(index, abi::Chunk::SIZE, record);
        arena.write(index, 0, &header.to_bytes());
        index
    }

    fn dead() -> u32 {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        child.id()
    }

    #[test]
    fn everything_written_is_in_the_log_however_long() {
        let mut place = place();
        let mut builder = RecordBuilder::new();
        let mut writer = ChunkWriter::new(Arc::clone(&place.stock));
        for number in 0..10_000 {
            writer.append(kill_record(&mut builder, number));
            if number % 1000 == 0 {
                place.drainer.pass(ChunkSelection::Finished);
            }
        }
        drop(writer);
        place.drainer.pass(ChunkSelection::All);
        assert_eq!(killed(&place), (0..10_000).collect::<Vec<_>>());
        assert_eq!(place.drainer.lost(), 0);
    }

    #[test]
    fn a_dead_owners_chunk_is_drained_and_free_again() {
        let mut place = place();
        let pid = dead();
        let index = take(&place, pid, pid, 1, 7);
        place.drainer.pass(ChunkSelection::Finished);
        assert_eq!(killed(&place), [7]);
        let arena = &place.stock.arena;
        assert!(arena.is_set(&arena.header().free, index));
        let mut bytes = Vec::new();
        arena.contents(index, &mut bytes);
        assert!(bytes.iter().all(|b| *b == 0), "a free chunk is zeroed");
    }

    #[test]
    fn a_dead_owners_shared_chunk_stays_until_the_end() {
        let mut place = place();
        let pid = dead();
        let index = take(&place, pid, pid, 1, 7);
        let arena = &place.stock.arena;
        let at = arena.chunk_header(index).next as usize;
        let mut builder = RecordBuilder::new();
        let record = builder
            .start(op::VFORK, backstory_sys::clock::counter())
            .finish();
        arena.write(index, at, record);
        arena.set_next(index, at + record.len());
        place.drainer.pass(ChunkSelection::Finished);
        assert!(killed(&place).is_empty());
        assert!(
            !place
                .stock
                .arena
                .is_set(&place.stock.arena.header().free, index)
        );
        place.drainer.pass(ChunkSelection::All);
        assert_eq!(killed(&place), [7]);
    }

    #[test]
    fn a_living_owner_keeps_its_chunk_until_it_is_full() {
        let mut place = place();
        let me = std::process::id();
        let index = take(&place, me, me, 1, 7);
        place.drainer.pass(ChunkSelection::Finished);
        assert!(killed(&place).is_empty());
        let arena = &place.stock.arena;
        arena.set(&arena.header().full, index);
        place.drainer.pass(ChunkSelection::Finished);
        assert_eq!(killed(&place), [7]);
    }

    #[test]
    fn a_program_that_was_replaced_has_left_its_chunk() {
        let mut place = place();
        let me = std::process::id();
        take(&place, me, me, 1, 1);
        take(&place, me, me, 2, 2);
        place.drainer.pass(ChunkSelection::Finished);
        assert_eq!(killed(&place), [1]);
    }

    #[test]
    fn a_dead_thread_of_a_living_process_has_left_its_chunk() {
        let mut place = place();
        let tid = std::thread::spawn(|| rustix::thread::gettid().as_raw_nonzero().get())
            .join()
            .unwrap();
        // `join` returns a moment before the kernel has removed the thread.
        while sys::thread_exists(std::process::id() as Pid, tid) {
            std::thread::yield_now();
        }
        take(&place, std::process::id(), tid as u32, 1, 3);
        place.drainer.pass(ChunkSelection::Finished);
        assert_eq!(killed(&place), [3]);
    }

    #[test]
    fn numbers_of_another_pid_namespace_prove_nothing() {
        let mut place = place();
        let pid = dead();
        take(&place, 1, 1, 1, 1); // the first process of a namespace
        let index = take(&place, pid, pid, 2, 2);
        place.drainer.pass(ChunkSelection::Finished);
        assert!(killed(&place).is_empty());
        place.stock.arena.announce(index, pid);
        place.drainer.pass(ChunkSelection::Finished);
        assert_eq!(killed(&place), [2]);
        place.drainer.pass(ChunkSelection::All);
        assert_eq!(killed(&place), [1, 2]);
    }

    #[test]
    fn a_thread_that_waits_for_a_chunk_gets_one() {
        let place = place();
        let arena = &place.stock.arena;
        let pid = dead();
        while let Some(index) = arena.take() {
            arena.write(
                index,
                0,
                &abi::Chunk {
                    magic: abi::CHUNK_MAGIC,
                    pid,
                    tid: pid,
                    epoch: 1,
                    next: 64,
                    ..abi::Chunk::default()
                }
                .to_bytes(),
            );
        }
        let drainer = Mutex::new(Drainer::new(
            Arc::clone(&place.stock),
            Writer::reopen(&place.path).unwrap(),
            Secrets::default(),
        ));
        std::thread::scope(|scope| {
            scope.spawn(|| run(&place.stock, &drainer));
            assert!(place.stock.wait_for_chunk());
            place.stock.stop();
        });
    }

    /// Runs the test of this name again, in a small file system of its own. Returns false if none
    /// can be mounted.
    fn is_run_in_a_small_place(name: &str) -> bool {
        let own = std::env::current_exe().unwrap();
        let script = "mount -t tmpfs -o size=24k none \"$0\" && SMALL_PLACE=$0 exec \"$1\" --exact \"$2\" --nocapture";
        let dir = tempfile::tempdir().unwrap();
        let made = std::process::Command::new("unshare")
            .args(["-rm", "sh", "-c", script])
            .arg(dir.path())
            .arg(own)
            .arg(name)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&made.stdout);
        if !said.contains("running 1 test") {
            println!("SKIPPED: needs a mount namespace: {made:?}");
            return false;
        }
        assert!(made.status.success(), "{said}");
        true
    }

    #[test]
    fn a_full_disk_has_room_for_the_end_of_a_run_whatever_filled_it() {
        let Some(dir) = std::env::var_os("SMALL_PLACE").map(PathBuf::from) else {
            is_run_in_a_small_place(
                "drain::tests::a_full_disk_has_room_for_the_end_of_a_run_whatever_filled_it",
            );
            return;
        };
        let pid = dead();
        // The remainder of the last page has another length each time.
        for length in (0..200).step_by(8) {
            let mut place = place();
            let path = dir.join("log");
            let header = RunHeader {
                command: vec![vec![b'x'; length]],
                ..RunHeader::default()
            };
            place.drainer.log = Writer::create(&path, &header).unwrap();
            for number in 0..300 {
                take(&place, pid, pid, 1, number);
                place.drainer.pass(ChunkSelection::Finished);
            }
            assert!(place.drainer.lost() > 0, "it was full");
            let told = place.drainer.finish(|drainer| RunEnd {
                exit: Some(3),
                lost: drainer.lost(),
                ..RunEnd::default()
            });
            assert_eq!(Log::open(&path).unwrap().end(), Some(&told));
            place.path = path.clone();
            assert_eq!(killed(&place).len() as u64 + told.lost, 300);
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn a_log_that_cannot_be_written_counts_what_it_loses() {
        let Ok(full) = std::fs::OpenOptions::new().append(true).open("/dev/full") else {
            println!("SKIPPED: needs /dev/full");
            return;
        };
        drop(full);
        let mut place = place();
        place.drainer.log = Writer::reopen("/dev/full").unwrap();
        let pid = dead();
        take(&place, pid, pid, 1, 7);
        place.drainer.pass(ChunkSelection::Finished);
        assert_eq!(place.drainer.lost(), 1);
        assert!(place.drainer.failure().unwrap().contains("No space left"));
        assert_eq!(place.stock.arena.owned().len(), 0, "the program can go on");
    }
}
