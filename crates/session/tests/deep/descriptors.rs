//! The deep log knows descriptors also where the recorder asks the kernel late or not at all.

use crate::deep::bytes::deep_log;
use crate::harness::{Run, text};
use backstory_abi::deep::{DESCRIPTOR, IDENT};
use backstory_deep::Call;
use backstory_deep::call_numbers::FORK;
use backstory_testkit::need::needs;
use std::fs::{self, File};
use std::io::{Seek, SeekFrom};
use std::process::Stdio;

const PYTHON: &str = "/usr/bin/python3";
const READ: u16 = 0;
/// The type bits of the mode of a directory.
const DIRECTORY: i64 = 0o40_000;
/// A position that is left out.
const UNKNOWN: u64 = u64::MAX;

/// The inode in a fact about a descriptor.
fn inode(fact: &Call) -> u64 {
    let ident = fact.section(IDENT, 0).unwrap();
    u64::from_le_bytes(*ident[8..].first_chunk().unwrap())
}

#[test]
fn an_accepted_connection_has_its_inode_in_the_log_before_another_process_can_use_it() {
    if !needs("a server that forks", &[PYTHON]) {
        return;
    }
    let script = "
import os, socket
listener = socket.socket(); listener.bind(('127.0.0.1', 0)); listener.listen()
def connected():
    client = socket.create_connection(listener.getsockname())
    server, _ = listener.accept()
    client.send(b'question'); server.recv(1)
    return client, server
for end in connected(): end.close()
client, server = connected()
if os.fork() == 0: server.recv(1); os._exit(0)
os.wait()
print(server.fileno(), os.fstat(server.fileno()).st_ino)";
    let run = Run::new(&["--deep", "full"]);
    let output = run.record(&[PYTHON, "-I", "-S", "-c", script]);
    assert!(output.status.success(), "{output:?}");
    let told = text(&output.stdout);
    let (fd, wanted) = told.trim().split_once(' ').unwrap();
    let (fd, wanted): (i32, u64) = (fd.parse().unwrap(), wanted.parse().unwrap());
    run.log();
    let log = deep_log(&run);
    let processes: Vec<Vec<Call>> = log
        .processes()
        .iter()
        .map(|process| log.process_calls(process.epoch).collect())
        .collect();
    let [parent, child] = processes.as_slice() else {
        panic!("{}", processes.len());
    };
    let facts = |calls: &[Call]| -> Vec<u64> {
        let facts = calls.iter().filter(|call| call.number == DESCRIPTOR);
        facts.filter(|fact| fact.fd == fd).map(inode).collect()
    };
    // The first connection had the same descriptor. No other process could have it.
    assert_eq!(facts(parent), [wanted]);
    assert_eq!(facts(child), [wanted]);
    let described = parent
        .iter()
        .position(|call| (call.number, call.fd) == (DESCRIPTOR, fd));
    let forked = parent.iter().position(|call| FORK.contains(&call.number));
    assert!(described.unwrap() < forked.unwrap());
}

#[test]
fn a_listed_directory_has_its_absolute_path_in_the_log() {
    if !needs("a program that lists directories", &[PYTHON]) {
        return;
    }
    let script = "
import os
top = os.path.realpath('.')
os.makedirs('one/two'); os.symlink('one', 'link')
one = os.open('one', os.O_RDONLY)
for name in 'one', 'link': os.listdir(name)
os.chdir('link'); os.listdir('.')
os.listdir(os.open('two', os.O_RDONLY, dir_fd=one))
print(top)";
    let run = Run::new(&["--deep", "full"]);
    let output = run.record(&[PYTHON, "-I", "-S", "-c", script]);
    assert!(output.status.success(), "{output:?}");
    let told = text(&output.stdout);
    let top = told.trim();
    run.log();
    let log = deep_log(&run);
    let calls: Vec<Call> = log.process_calls(log.processes()[0].epoch).collect();
    let facts = calls
        .iter()
        .filter(|call| (call.number, call.result) == (DESCRIPTOR, DIRECTORY));
    let names = facts.filter_map(|fact| fact.path()?.strip_prefix(top.as_bytes()));
    let names: Vec<String> = names.map(text).collect();
    assert_eq!(names, ["/one", "/one", "/one", "/one/two"]);
}

#[test]
fn the_positions_of_a_file_are_known_from_the_log() {
    if !needs("a program that reads files", &[PYTHON]) {
        return;
    }
    let script = "
import os, sys
os.pread(0, 10, 20)
moved = os.open(sys.argv[1], os.O_RDONLY); os.lseek(moved, 100, os.SEEK_SET); os.read(moved, 10)
fresh = os.open(sys.argv[1], os.O_RDONLY); os.pread(fresh, 10, 500); os.read(fresh, 10)
print(moved, fresh)";
    let run = Run::new(&["--deep", "full", "--contents", "off"]);
    let path = run.path("file");
    fs::write(&path, [b'x'; 1000]).unwrap();
    let mut input = File::open(&path).unwrap();
    input.seek(SeekFrom::Start(7)).unwrap();
    let words = [PYTHON, "-I", "-S", "-c", script, path.to_str().unwrap()];
    let recording = run.command(&words).stdin(Stdio::from(input)).output();
    let output = recording.unwrap();
    assert!(output.status.success(), "{output:?}");
    let told = text(&output.stdout);
    let (moved, fresh) = told.trim().split_once(' ').unwrap();
    let (moved, fresh): (i32, i32) = (moved.parse().unwrap(), fresh.parse().unwrap());
    run.log();
    let log = deep_log(&run);
    let calls: Vec<Call> = log.process_calls(log.processes()[0].epoch).collect();
    let last = |number: u16, fd: i32| {
        let mut of_it = calls.iter().rev();
        of_it
            .find(|call| (call.number, call.fd) == (number, fd))
            .unwrap()
            .b
    };
    // The position before the first use. Where the log has the call that opened the file, and the
    // first use does not move it, the calls tell it.
    assert_eq!(last(DESCRIPTOR, 0), 7);
    assert_eq!(last(DESCRIPTOR, moved), 100);
    assert_eq!(last(DESCRIPTOR, fresh), UNKNOWN);
    // A read has its position, and 1.
    assert_eq!(last(READ, moved), 101);
    assert_eq!(last(READ, fresh), 1);
}
