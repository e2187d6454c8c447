//! How a mount ends: by a signal, in use, killed.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::process::{Child, Command, Stdio};

use backstory_testkit::need::needs;
use backstory_testkit::procs::{eventually, kill};
use backstory_testkit::stage::Stage;
use backstory_testkit::user::User;

use crate::mount::messages::Messages;
use crate::mount::mounted::{FurtherMount, MountedDirectory, PATIENCE, mounted};

fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

#[test]
fn a_signal_unmounts_and_ends_the_run() {
    for by in [rustix::process::Signal::INT, rustix::process::Signal::TERM] {
        let Some(mut mounted) = mounted("a signal to a mount", &[]) else {
            return;
        };
        fs::write(mounted.at.join("file"), "text").unwrap();
        signal(mounted.server.id(), by);
        assert!(mounted.server.wait().unwrap().success());
        assert!(!mounted.is_mounted());
        let show = mounted.answer(&["show", "--json"]);
        assert!(show.contains("\"complete\": true"), "{show}");
    }
}

#[test]
fn a_mount_in_use_says_so_and_goes_on() {
    let Some(mut mounted) = mounted("a mount in use", &[]) else {
        return;
    };
    let messages = mounted.later_messages();
    let held = fs::File::create(mounted.at.join("held")).unwrap();
    signal(mounted.server.id(), rustix::process::Signal::TERM);
    let said = messages.line();
    assert!(said.contains("is in use and stays mounted"), "{said}");
    fs::write(mounted.at.join("after"), "text").unwrap();
    drop(held);
    assert!(mounted.unmount().success());
    let files = mounted.answer(&["files", "--json"]);
    assert!(files.contains("/after"), "{files}");
}

#[test]
fn a_mount_that_is_mounted_elsewhere_too_says_so_and_ends_with_it() {
    let Some(mut mounted) = mounted("a mount at two places", &[]) else {
        return;
    };
    let messages = mounted.later_messages();
    let other = mounted.stage.directory("other").unwrap();
    let bound = FurtherMount::at(&other, &[OsStr::new("--bind"), mounted.at.as_os_str()]);
    signal(mounted.server.id(), rustix::process::Signal::TERM);
    let said = messages.line();
    assert!(said.contains("is mounted elsewhere, too"), "{said}");
    bound.unmount();
    assert!(mounted.server.wait().unwrap().success());
}

#[test]
fn a_signal_leaves_another_mount_at_the_place_alone() {
    let Some(mut mounted) = mounted("a signal to a mount below another one", &[]) else {
        return;
    };
    let messages = mounted.later_messages();
    let memory = ["-t", "tmpfs", "memory"].map(OsStr::new);
    let device = || fs::metadata(&mounted.at).unwrap().dev();
    let other = mounted.stage.directory("other").unwrap();
    let server = mounted.server.id();

    // The other mount hides that of the server.
    let over = FurtherMount::at(&mounted.at, &memory);
    let hiding = device();
    signal(server, rustix::process::Signal::TERM);
    let said = messages.line();
    assert!(said.contains("another mount hides it"), "{said}");
    assert_eq!(device(), hiding);
    over.unmount();

    // The other mount comes after that of the server.
    let bound = FurtherMount::at(&other, &[OsStr::new("--bind"), mounted.at.as_os_str()]);
    signal(server, rustix::process::Signal::TERM);
    let said = messages.line();
    assert!(said.contains("is mounted elsewhere, too"), "{said}");
    let later = FurtherMount::at(&mounted.at, &memory);
    let following = device();
    signal(server, rustix::process::Signal::TERM);
    let said = messages.line();
    assert!(said.contains("is mounted elsewhere, too"), "{said}");
    assert_eq!(device(), following);
    later.unmount();
    bound.unmount();
    assert!(mounted.server.wait().unwrap().success());
}

#[test]
fn a_killed_server_loses_nothing_that_was_acknowledged() {
    let Some(mut mounted) = mounted("a killed server of a mount", &[]) else {
        return;
    };
    for number in 0..200 {
        fs::write(
            mounted.at.join(format!("file{number}")),
            format!("{number}"),
        )
        .unwrap();
    }
    kill(mounted.server.id()).unwrap();
    mounted.server.wait().unwrap();
    let dead = fs::metadata(&mounted.at).map(|of| of.ino());
    assert_eq!(
        dead.unwrap_err().raw_os_error(),
        Some(rustix::io::Errno::NOTCONN.raw_os_error())
    );
    for number in 0..200 {
        let behind = fs::read_to_string(mounted.behind.join(format!("file{number}")));
        assert_eq!(behind.unwrap(), format!("{number}"));
    }
    let files = mounted.answer(&["files", "--json"]);
    for number in 0..200 {
        assert!(files.contains(&format!("/file{number}\"")), "{number}");
    }
    let show = mounted.answer(&["show", "--json"]);
    assert!(
        show.contains("\"complete\": false") && show.contains("was killed"),
        "{show}"
    );
}

/// Programs that write at the same time.
const WRITERS: [&str; 4] = ["a", "b", "c", "d"];
/// Files that each of them has made when the server is killed.
const MADE_BEFORE: usize = 50;
/// Files of each, the last ones before the kill, whose origin is asked for.
const ASKED: usize = 5;

/// Makes files from an input of its own. Prints the name of each after its `fsync`, and the error
/// that ends this.
const WRITER: &str = "
import errno, os, sys
writer = sys.argv[1]
number = 0
with open('in-' + writer, 'rb') as source:
    text = source.read()
try:
    while True:
        name = f'{writer}-{number}'
        out = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        for part in (text, name.encode()):
            assert os.write(out, part) == len(part)
        os.fsync(out)
        print(name, flush=True)
        os.close(out)
        number += 1
except OSError as error:
    print(errno.errorcode[error.errno], flush=True)";

fn input_of(writer: &str) -> String {
    format!("the input of {writer}\n")
}

fn start_writer(mounted: &MountedDirectory, writer: &str) -> (Child, Messages) {
    let input = mounted.behind.join(format!("in-{writer}"));
    fs::write(input, input_of(writer)).unwrap();
    let mut command = Command::new("python3");
    let command = command.args(["-c", WRITER, writer]);
    let command = command.current_dir(&mounted.at).stdin(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let printed = Messages::of(child.stdout.take().unwrap());
    (child, printed)
}

/// Kills the server while the programs write. Returns the names of the files whose `fsync` was
/// acknowledged to each.
fn kill_below_writers(mounted: &mut MountedDirectory) -> [Vec<String>; 4] {
    let running = WRITERS.map(|writer| start_writer(mounted, writer));
    let before = |(child, printed): (Child, Messages)| {
        let names: Vec<String> = (0..MADE_BEFORE).map(|_| printed.line()).collect();
        (child, printed, names)
    };
    let running = running.map(before);
    kill(mounted.server.id()).unwrap();
    mounted.server.wait().unwrap();
    running.map(|(mut child, printed, mut names)| {
        names.extend(printed.rest());
        assert!(child.wait().unwrap().success(), "{:?}", names.last());
        let last = names.pop().unwrap();
        // A request that waits for its answer at that moment is aborted.
        assert!(["ENOTCONN", "ECONNABORTED"].contains(&&*last), "{last}");
        names
    })
}

/// Each file is behind the mount with its bytes, and the record has who wrote it from what.
fn assert_explained(mounted: &MountedDirectory, acknowledged: &[Vec<String>; 4]) {
    let place = |name: &str| mounted.behind.join(name).to_str().unwrap().to_owned();
    let files = mounted.answer(&["files", "--json"]);
    let written = files.lines().filter(|line| line.contains("\"write\""));
    let written: HashSet<&str> = written.filter_map(|line| line.split('"').nth(3)).collect();
    for (writer, names) in WRITERS.iter().zip(acknowledged) {
        for name in names {
            let behind = fs::read_to_string(place(name)).unwrap();
            assert_eq!(behind, format!("{}{name}", input_of(writer)));
            assert!(written.contains(&*place(name)), "{name} is not recorded");
        }
        for name in names.iter().rev().take(ASKED) {
            let of = mounted.answer(&["of", "--json", &place(name)]);
            for other in WRITERS {
                let read = of.contains(&format!("/in-{other}\""));
                assert_eq!(read, other == *writer, "{name}: {of}");
            }
        }
    }
}

#[test]
fn a_server_that_is_killed_below_writers_loses_no_acknowledged_fsync() {
    let what = "a server of a mount that is killed below writers";
    if !needs(what, &["python3"]) {
        return;
    }
    for options in [&[][..], &["--passthrough", "on"]] {
        let Some(mut mounted) = mounted(what, options) else {
            return;
        };
        let acknowledged = kill_below_writers(&mut mounted);
        for name in ["in-a", "a-0", "new"] {
            let dead = fs::File::open(mounted.at.join(name)).unwrap_err();
            let expected = rustix::io::Errno::NOTCONN.raw_os_error();
            assert_eq!(dead.raw_os_error(), Some(expected), "{name}");
        }
        assert_explained(&mounted, &acknowledged);
        let show = mounted.answer(&["show", "--json"]);
        assert!(
            show.contains("\"complete\": false") && show.contains("was killed"),
            "{show}"
        );
    }
}

#[test]
fn a_mount_over_a_dead_one_says_so_before_and_after() {
    let Some(mut mounted) = mounted("a mount over a dead one", &[]) else {
        return;
    };
    kill(mounted.server.id()).unwrap();
    mounted.server.wait().unwrap();
    let mut server = mounted
        .stage
        .backstory(&["mount"])
        .args([&mounted.behind, &mounted.at])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let messages = Messages::of(server.stderr.take().unwrap());
    let first = messages.line();
    assert!(first.contains("has a dead mount"), "{first}");
    let second = messages.line();
    assert!(second.contains("records"), "{second}");
    assert!(mounted.shell("echo text > file").status.success());
    signal(server.id(), rustix::process::Signal::TERM);
    let last = messages.line();
    assert!(last.contains("still has a dead mount"), "{last}");
    assert!(last.contains("`umount "), "{last}");
    assert!(server.wait().unwrap().success());
    let files = mounted.answer(&["files", "--json"]);
    assert!(files.contains("/file\""), "{files}");
}

/// Maps a file, then asks the kernel to read it ahead, which it does without the program. An open
/// file would keep the program from ending before its answer.
const READER: &str = "
import ctypes, os, sys
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
PROT_READ, MAP_PRIVATE, MADV_WILLNEED, SIZE = 1, 2, 3, 1 << 16
file = os.open(sys.argv[1], os.O_RDONLY)
at = libc.mmap(None, SIZE, PROT_READ, MAP_PRIVATE, file, 0)
os.close(file)
print('mapped', flush=True)
sys.stdin.readline()
libc.madvise(at, SIZE, MADV_WILLNEED)
print('asked', flush=True)
sys.stdin.readline()";

#[test]
fn a_request_of_a_process_that_has_ended_is_that_of_an_unknown_process() {
    let what = "a request of an ended process";
    let Some(mut mounted) =
        mounted(what, &["--passthrough", "off"]).filter(|_| needs(what, &["python3"]))
    else {
        return;
    };
    let read = vec![b'x'; 1 << 16];
    fs::write(mounted.behind.join("read"), &read).unwrap();
    let mut command = Command::new("python3");
    let command = command.args(["-c", READER]).arg(mounted.at.join("read"));
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut reader = command.spawn().unwrap();
    let printed = Messages::of(reader.stdout.take().unwrap());
    assert_eq!(printed.line(), "mapped");
    let server = mounted.server.id();
    signal(server, rustix::process::Signal::STOP);
    let stat = || fs::read_to_string(format!("/proc/{server}/stat")).unwrap();
    assert!(eventually(PATIENCE, || stat().contains(") T ")));
    reader.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    assert_eq!(printed.line(), "asked");
    reader.kill().unwrap();
    reader.wait().unwrap();
    signal(server, rustix::process::Signal::CONT);
    assert_eq!(fs::read(mounted.at.join("read")).unwrap(), read);
    assert!(mounted.unmount().success());
    let show = mounted.answer(&["show", "--json"]);
    assert!(show.contains("\"complete\": true"), "{show}");
    let processes = mounted.answer(&["processes"]);
    assert!(
        processes.contains("a process whose program is not known"),
        "{processes}"
    );
}

#[test]
fn a_directory_is_not_mounted_inside_itself() {
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_backstory"));
    let stage = Stage::of(User::Myself, binary).unwrap();
    let outer = stage.directory("outer").unwrap();
    let inner = stage.directory("outer/inner").unwrap();
    for pair in [[&outer, &inner], [&inner, &outer]] {
        let output = stage.backstory(&["mount"]).args(pair).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("one contains the other"), "{said}");
    }
    let runs = fs::read_dir(stage.store().join("runs"));
    assert!(
        runs.is_err() || runs.is_ok_and(|runs| runs.count() == 0),
        "no run is left"
    );
}

#[test]
fn a_directory_is_mounted_over_itself() {
    let Some(mut outer) = mounted("a directory mounted over itself", &[]) else {
        return;
    };
    outer.unmount();
    let mut server = outer
        .stage
        .backstory(&["mount"])
        .args([&outer.behind, &outer.behind])
        .spawn()
        .unwrap();
    let device = || fs::metadata(&outer.behind).map(|of| of.dev()).ok();
    let before = fs::metadata(outer.stage.path()).unwrap().dev();
    assert!(eventually(PATIENCE, || device() != Some(before)));
    fs::write(outer.behind.join("a"), "text").unwrap();
    let copied = std::process::Command::new("cp")
        .args([outer.behind.join("a"), outer.behind.join("b")])
        .status()
        .unwrap();
    assert!(copied.success());
    signal(server.id(), rustix::process::Signal::TERM);
    assert!(server.wait().unwrap().success());
    let answer = outer.answer(&["of", "--tree", outer.behind.join("b").to_str().unwrap()]);
    assert!(answer.contains("/a"), "{answer}");
}
