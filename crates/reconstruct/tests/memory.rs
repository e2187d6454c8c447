//! The memory of a deep log that is read for one of its requests.
#![allow(clippy::unwrap_used, unsafe_code)]

use backstory_abi::{Chunk, DeepRecord, deep};
use backstory_deep::{Compression, DeepEnd, DeepHeader, DeepLog, DeepWriter};
use backstory_reconstruct::ReadLog;
use backstory_reconstruct::engine::Options;
use backstory_testkit::deep_records::{deep_chunk, deep_record};
use libc::c_long;
use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the bytes that are allocated.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: the allocator of the system does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller promises what the system's allocator needs.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller promises what the system's allocator needs.
        unsafe { System.dealloc(at, layout) }
    }
}

/// The most bytes that were allocated at the same time while this ran, without those before.
fn most_bytes<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let before = NOW.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let result = run();
    (result, MOST.load(Ordering::Relaxed) - before)
}

const REQUESTS: usize = 4000;
/// Requests in a chunk.
const OF_CHUNK: usize = 2;

const LISTENER: i32 = 3;
const CONNECTION: i32 = 5;
/// A connection to another server.
const OTHER: i32 = 7;

fn call(number: c_long, time: u64, (fd, result): (i32, usize)) -> DeepRecord {
    DeepRecord {
        call: number as u16,
        time,
        took: 1,
        fd,
        result: result as i64,
        a: 10_000,
        ..DeepRecord::default()
    }
}

/// A server that got these bytes in each of its requests, exchanged them with another server, wrote
/// them into its log, and sent them back.
fn server(directory: &Path, bytes: &[u8]) -> DeepLog {
    let nothing = (deep::ENTERED, &b""[..]);
    let mut begin = call(libc::SYS_read, 50, (-1, 0));
    (begin.call, begin.a) = (deep::BEGIN, deep::BY_EXEC);
    let mut socket = call(libc::SYS_socket, 60, (-1, OTHER as usize));
    (socket.a, socket.b) = (2, 1);
    let address = (deep::ADDRESS, &[2, 0, 0, 80, 127, 0, 0, 1][..]);
    let mut records = vec![
        deep_record(begin, &[nothing]),
        deep_record(socket, &[nothing]),
        deep_record(call(libc::SYS_connect, 70, (OTHER, 0)), &[address]),
    ];
    let path = directory.join("log.deep");
    let mut log = DeepWriter::open(&path, &DeepHeader::default()).unwrap();
    let mut seq = 0;
    for number in 0..REQUESTS {
        let mut time = 1000 * (number as u64 + 1);
        let mut add = |number, (fd, result), section| {
            time += 100;
            records.push(deep_record(call(number, time, (fd, result)), &[section]));
        };
        let moved = bytes.len();
        add(libc::SYS_accept4, (LISTENER, CONNECTION as usize), nothing);
        add(libc::SYS_read, (CONNECTION, moved), (deep::ENTERED, bytes));
        add(libc::SYS_write, (OTHER, moved), (deep::LEFT, bytes));
        add(libc::SYS_read, (OTHER, moved), (deep::ENTERED, bytes));
        add(libc::SYS_write, (1, moved), (deep::LEFT, bytes));
        add(libc::SYS_write, (CONNECTION, moved), (deep::LEFT, bytes));
        add(libc::SYS_close, (CONNECTION, 0), nothing);
        if number % OF_CHUNK == OF_CHUNK - 1 || number == REQUESTS - 1 {
            let head = Chunk {
                pid: 10,
                tid: 10,
                epoch: 1,
                seq,
                ppid: 1,
                ..Chunk::default()
            };
            seq += 1;
            let chunk = deep_chunk(head, &std::mem::take(&mut records));
            log.chunk(&chunk, Compression::Usual).unwrap();
        }
    }
    log.end(&DeepEnd::default()).unwrap();
    DeepLog::open(&path).unwrap()
}

#[test]
fn a_log_that_is_read_for_one_request_takes_two_kilobytes_a_request_whatever_bytes_moved() {
    let directory = tempfile::tempdir().unwrap();
    for length in [16, 4000] {
        let log = server(directory.path(), &vec![b'x'; length]);
        // The even ones are requests to the other server.
        let options = Options {
            request: Some(REQUESTS + 1),
            ..Options::default()
        };
        let ((outline, part), most) = most_bytes(|| {
            let outline = ReadLog::outline(&log);
            let part = outline.part(&log, &options);
            (outline, part.unwrap())
        });
        assert_eq!(outline.requests.len(), 2 * REQUESTS);
        let fed = part.chosen.unwrap().connection;
        let streams = &part.processes[0].streams;
        assert_eq!(streams[&fed].input.remaining(), length as u64);
        // Between two looks at what is not needed, some megabytes gather.
        let bound = 2000 * 2 * REQUESTS + (4 << 20);
        assert!(most < bound, "{most} bytes for {length} in each request");
        drop((log, outline, part));
        std::fs::remove_file(directory.path().join("log.deep")).unwrap();
    }
}
