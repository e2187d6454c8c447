//! The positions of bytes in files and in streams that several processes use.
#![allow(clippy::unwrap_used)]

use backstory_abi::deep;
use backstory_deep::{Call, Section};
use backstory_reconstruct::RecordedRun;
use backstory_reconstruct::read_files::read_files;
use libc::{S_IFIFO, S_IFREG, c_long};

fn call(number: c_long, fd: i32, result: i64, time: u64) -> Call {
    Call {
        number: number as u16,
        fd,
        result,
        time,
        ..Call::default()
    }
}

fn with(mut call: Call, kind: u16, arg: u16, bytes: &[u8]) -> Call {
    call.sections.push(Section {
        kind,
        arg,
        bytes: bytes.to_vec(),
    });
    call
}

/// The fact about a descriptor, with its position before the first use.
fn descriptor(fd: i32, kind: u32, inode: u64, path: &str, position: u64) -> Call {
    let ident = [1u64.to_le_bytes(), inode.to_le_bytes()].concat();
    let mut call = call(c_long::from(deep::DESCRIPTOR), fd, i64::from(kind), 0);
    (call.a, call.b) = (inode, position);
    let call = with(call, deep::IDENT, 0, &ident);
    with(call, deep::PATH, 0, path.as_bytes())
}

fn read(fd: i32, bytes: &[u8], time: u64) -> Call {
    let call = call(libc::SYS_read, fd, bytes.len() as i64, time);
    with(call, deep::ENTERED, 1, bytes)
}

fn arranged(processes: Vec<Vec<Call>>) -> RecordedRun {
    let all = processes.into_iter().enumerate();
    RecordedRun::arrange(all.map(|(at, calls)| {
        let calls: Vec<Call> = calls
            .into_iter()
            .map(|mut call| {
                call.a = call.a.max(1);
                call
            })
            .collect();
        (at as u64 + 1, at as u32 + 10, 1, calls.into_iter())
    }))
}

#[test]
fn processes_that_read_one_pipe_have_positions_in_the_order_of_time() {
    let pipe = || descriptor(0, S_IFIFO, 7, "pipe:[7]", u64::MAX);
    let run = arranged(vec![
        vec![pipe(), read(0, b"aa", 10), read(0, b"dddd", 40)],
        vec![pipe(), read(0, b"bbb", 20), read(0, b"c", 30)],
    ]);
    let of = |process: usize| {
        let streams = run.processes[process].streams.values();
        let pieces = streams.flat_map(|streams| streams.input.pieces());
        pieces.map(|(start, _)| start).collect::<Vec<_>>()
    };
    assert_eq!((of(0), of(1)), (vec![0, 6], vec![2, 5]));
}

#[test]
fn the_pieces_of_a_file_have_the_positions_at_which_they_were_read() {
    let mut known = read(3, b"cd", 30);
    known.b = 3;
    let mut positioned = call(libc::SYS_pread64, 3, 1, 40);
    positioned.b = 9;
    let positioned = with(positioned, deep::ENTERED, 1, b"x");
    let calls = vec![
        descriptor(3, S_IFREG, 8, "/in", 4),
        read(3, b"ef", 10),
        call(libc::SYS_lseek, 3, 0, 15),
        read(3, b"ab", 20),
        // libc may have moved the position, so the record has it.
        known,
        positioned,
        read(3, b"ef", 50),
    ];
    let files = read_files(&arranged(vec![calls]));
    let file = &files[b"/in".as_slice()];
    assert_eq!(file.size, 10);
    assert_eq!(file.bytes(), b"abcdef\0\0\0x");
}

#[test]
fn a_file_that_the_run_wrote_itself_is_none_that_it_found() {
    let mut write = call(libc::SYS_write, 4, 2, 5);
    write = with(write, deep::LEFT, 1, b"ef");
    let calls = vec![
        descriptor(4, S_IFREG, 8, "/made", 0),
        write,
        descriptor(3, S_IFREG, 8, "/made", 0),
        read(3, b"ef", 10),
    ];
    assert!(read_files(&arranged(vec![calls])).is_empty());
}
