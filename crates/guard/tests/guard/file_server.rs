//! A file server in user space that is itself recorded.
//!
//! The guard must not wait for the server when it looks up one of its files for another process.
//! The server may be waiting for the guard.

use crate::stage::{Outcome, call, watch};
use backstory_abi::op;
use std::ffi::CString;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Opcodes of the kernel's protocol (`<linux/fuse.h>`).
mod code {
    pub const LOOKUP: u32 = 1;
    pub const FORGET: u32 = 2;
    pub const GETATTR: u32 = 3;
    pub const OPEN: u32 = 14;
    pub const READ: u32 = 15;
    pub const RELEASE: u32 = 18;
    pub const FLUSH: u32 = 25;
    pub const INIT: u32 = 26;
    pub const INTERRUPT: u32 = 36;
}

fn words(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

/// `struct fuse_attr` of the root directory or of an empty file.
fn attributes(node: u32) -> Vec<u8> {
    let mode = if node == 1 {
        libc::S_IFDIR | 0o755
    } else {
        libc::S_IFREG | 0o644
    };
    words(&[
        node, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 512, 0,
    ])
}

/// The server's reply or its errno. `None` where the kernel expects no reply.
fn answer(opcode: u32, node: u32) -> Option<Result<Vec<u8>, i32>> {
    Some(Ok(match opcode {
        code::INIT => words(&[7, 31, 0, 0, 0, 4096, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        code::LOOKUP => {
            // A watched call of the server. A guard that waits for the server would never receive
            // it.
            assert!(std::fs::read("/etc/hosts").is_ok());
            [words(&[2, 0, 0, 0, 0, 0, 0, 0, 0, 0]), attributes(2)].concat()
        }
        code::GETATTR => [words(&[0; 4]), attributes(node)].concat(),
        code::OPEN => words(&[0; 4]),
        code::READ | code::RELEASE | code::FLUSH => Vec::new(),
        code::FORGET | code::INTERRUPT => return None,
        _ => return Some(Err(libc::ENOSYS)),
    }))
}

fn serve(device: &std::fs::File) {
    use std::io::{Read, Write};
    let (mut input, mut device) = (vec![0; 1 << 17], device);
    while let Ok(n) = device.read(&mut input) {
        let word = |at: usize| u32::from_le_bytes(input[at..at + 4].try_into().unwrap());
        assert!(n >= 40);
        let Some(reply) = answer(word(4), word(16)) else {
            continue;
        };
        let (body, error) = reply.map_or_else(|e| (Vec::new(), -e), |body| (body, 0));
        let head = [16 + body.len() as u32, error as u32, word(8), word(12)];
        let _ = device.write(&[words(&head), body].concat());
    }
}

fn c(text: &str) -> CString {
    CString::new(text).unwrap()
}

/// Mounts a server of this process at `dir`. False if that is not possible here.
fn mount(dir: &Path, private: bool) -> bool {
    if private && call(libc::SYS_unshare, [libc::CLONE_NEWNS as usize, 0, 0, 0, 0]) != 0 {
        return false;
    }
    let Ok(device) = std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/fuse")
    else {
        return false;
    };
    if private {
        let flags = (libc::MS_REC | libc::MS_PRIVATE) as usize;
        call(libc::SYS_mount, [0, c"/".as_ptr() as usize, 0, flags, 0]);
    }
    let options = c(&format!(
        "fd={},rootmode=40000,user_id=0,group_id=0",
        device.as_raw_fd()
    ));
    let (source, kind, target) = (c"test", c"fuse", c(dir.to_str().unwrap()));
    let [source, target, kind, options] =
        [source, &target, kind, &options].map(|text| text.as_ptr() as usize);
    let mounted = call(libc::SYS_mount, [source, target, kind, 0, options]) == 0;
    // The server is a process: if it hangs and is killed, the kernel gives up on its mount.
    // SAFETY: the child serves and ends, without unwinding.
    match unsafe { libc::fork() } {
        0 => {
            serve(&device);
            // SAFETY: ends the child.
            unsafe { libc::_exit(0) }
        }
        server => SERVER.store(server, Ordering::Release),
    }
    mounted
}

/// The process of the server under test.
static SERVER: AtomicI32 = AtomicI32::new(0);

/// Breaks the deadlock that the test is about, if it happens: it kills the server, and every call
/// on its mount fails.
fn watchdog() -> Sender<()> {
    let (alive, ended) = channel::<()>();
    std::thread::spawn(move || {
        if ended.recv_timeout(Duration::from_secs(120)) == Err(RecvTimeoutError::Timeout) {
            // SAFETY: a process that this test made and has not waited for.
            unsafe { libc::kill(SERVER.load(Ordering::Acquire), libc::SIGKILL) };
        }
    });
    alive
}

/// `None`: file servers cannot be mounted here.
fn read_through_a_server(private: bool) -> Option<(String, Outcome<bool>)> {
    let dir = tempfile::tempdir().unwrap();
    let alive = watchdog();
    let base = dir.path().to_owned();
    let outcome = watch(move || {
        if !mount(&base, private) {
            return false;
        }
        let target = c(base.to_str().unwrap());
        let read = (0..5).all(|i| {
            std::fs::read(base.join(format!("file{i}"))).is_ok_and(|text| text.is_empty())
        });
        // Unmounting ends the server.
        assert_eq!(
            call(
                libc::SYS_umount2,
                [target.as_ptr() as usize, libc::MNT_DETACH as usize, 0, 0, 0]
            ),
            0
        );
        let (mut status, server) = (0, SERVER.load(Ordering::Acquire));
        // SAFETY: waits for a child of this process.
        assert_eq!(unsafe { libc::waitpid(server, &mut status, 0) }, server);
        assert!(read && status == 0, "the server was waited for: {status:x}");
        true
    });
    drop(alive);
    if !outcome.result {
        backstory_testkit::need::skipped("calls on a file server", "cannot mount one here");
        return None;
    }
    Some((dir.path().to_str().unwrap().to_owned(), outcome))
}

#[test]
fn a_recorded_file_server_is_not_waited_for() {
    for private in [false, true] {
        let Some((dir, outcome)) = read_through_a_server(private) else {
            return;
        };
        for i in 0..5 {
            assert_eq!(
                outcome.of(op::OPEN, &format!("{dir}/file{i}")).len(),
                1,
                "private: {private}"
            );
        }
        assert!(
            outcome.of(op::OPEN, "/etc/hosts").len() >= 5,
            "the server's own calls are seen"
        );
    }
}
