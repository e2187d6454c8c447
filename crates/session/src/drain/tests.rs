//! Tests of the drainer.

use super::*;
use backstory_abi::op;
use backstory_arena::{Arena, ChunkWriter, RecordSink};
use backstory_eventlog::Log;
use backstory_eventlog::event::Op;
use backstory_eventlog::record::RecordBuilder;
use backstory_eventlog::run::RunHeader;
use backstory_sys as sys;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::AtomicU32;

pub(super) struct TestArena {
    _dir: tempfile::TempDir,
    pub(super) path: PathBuf,
    pub(super) stock: Arc<ChunkSupply>,
    pub(super) drainer: Drainer,
}

impl Drop for TestArena {
    fn drop(&mut self) {
        self.stock.arena.remove();
    }
}

fn place() -> TestArena {
    place_with(0)
}

/// The same for an arena with these flags.
pub(super) fn place_with(flags: u32) -> TestArena {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let log = Writer::create(&path, &RunHeader::default()).unwrap();
    let id = format!(
        "test-{}-{}",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    );
    let stock = ChunkSupply::new(Arena::create(&id, flags).unwrap());
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

pub(super) fn killed(place: &TestArena) -> Vec<i32> {
    let log = Log::open(&place.path).unwrap();
    let pid = |e: backstory_eventlog::event::Event| match e.op {
        Op::Kill { pid, .. } => Some(pid),
        _ => None,
    };
    log.events().filter_map(pid).collect()
}

/// Takes a chunk as a recorder would, with one record in it.
pub(super) fn take(place: &TestArena, pid: u32, tid: u32, epoch: u64, number: i32) -> usize {
    let mut builder = RecordBuilder::new();
    take_for(place, (pid, tid, epoch), kill_record(&mut builder, number))
}

/// The same with this record.
fn take_for(place: &TestArena, (pid, tid, epoch): (u32, u32, u64), record: &[u8]) -> usize {
    let arena = &place.stock.arena;
    let index = arena.take().unwrap();
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

pub(super) fn dead() -> u32 {
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
fn a_record_that_is_whole_in_a_later_piece_is_no_damage() {
    let mut place = place();
    place.drainer.append_pieces();
    let (mut builder, arena) = (RecordBuilder::new(), &place.stock.arena);
    let index = take(&place, std::process::id(), std::process::id(), 1, 7);
    let record = kill_record(&mut builder, 8).to_vec();
    let mut header = arena.chunk_header(index);
    let end = header.next as usize;
    header.next += record.len() as u64;
    // Only the size is there yet.
    arena.write(index, end, &record[..2]);
    arena.write(index, 0, &header.to_bytes());
    place.drainer.drain_all(DurablePart::Whole).unwrap();
    assert_eq!(place.drainer.undecoded().count(), 1, "it may stay so");
    place.stock.arena.write(index, end, &record);
    place.drainer.drain_all(DurablePart::Whole).unwrap();
    assert_eq!(place.drainer.undecoded().next(), None);
}

#[test]
fn a_record_that_its_owner_never_finished_is_damage_once() {
    let mut place = place();
    place.drainer.append_pieces();
    let (pid, arena) = (dead(), &place.stock.arena);
    let index = take(&place, pid, pid, 1, 7);
    let mut header = arena.chunk_header(index);
    let end = header.next as usize;
    header.next += abi::Record::SIZE as u64;
    arena.write(index, end, &[abi::Record::SIZE as u8, 0]);
    arena.write(index, 0, &header.to_bytes());
    place.drainer.drain_all(DurablePart::Whole).unwrap();
    place.drainer.drain_all(DurablePart::Whole).unwrap();
    let said: Vec<String> = place.drainer.undecoded().collect();
    assert!(
        said.len() == 1 && said[0].contains("1 operations"),
        "{said:?}"
    );
}

/// Appends a record to a chunk as its owner would.
fn add(place: &TestArena, index: usize, operation: u16) {
    let (mut builder, arena) = (RecordBuilder::new(), &place.stock.arena);
    builder.start(operation, backstory_sys::clock::counter());
    let record = builder.string(b"/file").result(3).finish();
    let at = arena.chunk_header(index).next as usize;
    arena.write(index, at, record);
    arena.set_next(index, at + record.len());
}

#[test]
fn a_call_waits_for_records_that_explain_a_content_alone() {
    use DurablePart::{Explanations, Whole};
    let mut place = place();
    place.drainer.append_pieces();
    let due = |place: &mut TestArena, part| place.drainer.drain_all(part).unwrap();
    let index = take(&place, std::process::id(), std::process::id(), 1, 7);
    assert!(due(&mut place, Explanations), "the log is new");
    assert!(!due(&mut place, Explanations));
    for operation in [op::STAT, op::CLOSE, op::CLOSE_RANGE, op::ACCESS] {
        add(&place, index, operation);
        assert!(!due(&mut place, Explanations), "{operation}");
    }
    assert!(due(&mut place, Whole), "these records are in the log");
    assert!(!due(&mut place, Whole));
    for operation in [op::OPEN, op::READ, op::RENAME, op::DUP, u16::MAX] {
        add(&place, index, op::CLOSE);
        add(&place, index, operation);
        add(&place, index, op::CLOSE);
        assert!(due(&mut place, Explanations), "{operation}");
        assert!(!due(&mut place, Whole), "{operation}");
    }
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
        scope.spawn(|| run(&place.stock, &drainer, Asking::Possible));
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
        backstory_testkit::need::skipped(name, &format!("needs a mount namespace: {made:?}"));
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
        backstory_testkit::need::skipped("a log on a full disk", "needs /dev/full");
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

#[test]
fn a_secret_that_goes_on_in_a_chunk_of_a_lower_index_is_not_logged() {
    let mut place = place();
    let arena = Arc::clone(&place.stock);
    let id = std::process::id();
    let mut builder = RecordBuilder::new();
    let mut variables = |text: &[&[u8]], goes_on: bool| {
        builder.start(op::ENV, backstory_sys::clock::counter());
        if goes_on {
            builder.more();
        }
        for one in text {
            builder.string(one);
        }
        builder.result(0).finish().to_vec()
    };
    let earlier = take_for(&place, (id, id, 1), &variables(&[b"A=1"], false));
    let begun = take_for(
        &place,
        (id, id, 1),
        &variables(&[b"MY_TOKEN=0123456789"], true),
    );
    arena.arena.set(&arena.arena.header().full, earlier);
    place.drainer.pass(ChunkSelection::Finished);
    let rest = take_for(&place, (id, id, 1), &variables(&[b"abcdef", b"Z=9"], false));
    assert!(rest < begun, "{rest} {begun}");
    place.drainer.pass(ChunkSelection::All);
    place.drainer.drain_all(DurablePart::Whole).unwrap();
    let log = std::fs::read(&place.path).unwrap();
    let has = |text: &[u8]| log.windows(text.len()).any(|part| part == text);
    assert!(has(b"Z=9"));
    assert!(!has(b"abcdef"), "it belongs to a secret");
}

#[test]
fn a_chunk_that_is_appended_again_holds_no_secret_either() {
    if !Path::new("/dev/full").exists() {
        backstory_testkit::need::skipped("a log on a full disk", "needs /dev/full");
        return;
    }
    let mut place = place();
    place.drainer.append_pieces();
    let owner = (std::process::id(), std::process::id(), 1);
    let mut builder = RecordBuilder::new();
    builder
        .start(op::ENV, backstory_sys::clock::counter())
        .more();
    let begun = builder.string(b"MY_TOKEN=0123456789").result(0).finish();
    let first = take_for(&place, owner, begun);
    let arena = &place.stock.arena;
    arena.set(&arena.header().full, first);
    place.drainer.pass(ChunkSelection::All);
    let full = Writer::reopen("/dev/full").unwrap();
    let log = std::mem::replace(&mut place.drainer.log, full);
    builder.start(op::ENV, backstory_sys::clock::counter());
    let rest = builder.string(b"abcdef").string(b"Z=9").result(0).finish();
    take_for(&place, owner, rest);
    place.drainer.drain_all(DurablePart::Whole).unwrap_err();
    place.drainer.log = log;
    place.drainer.drain_all(DurablePart::Whole).unwrap();
    let log = std::fs::read(&place.path).unwrap();
    let has = |text: &[u8]| log.windows(text.len()).any(|part| part == text);
    assert!(has(b"Z=9"));
    assert!(!has(b"abcdef"), "it belongs to a secret");
}
