//! No call hangs: when the supervisor dies or stops, every waiting call goes on.

use crate::stage::{Told, call, guarded, spec};
use backstory_arena::RecordSink;
use backstory_guard::{GuardSettings, Receivers, SharedBuffers, continue_all, continue_received};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

struct Nowhere;

impl RecordSink for Nowhere {
    fn append(&mut self, _: &[u8]) {}
}

fn open_hosts() -> i64 {
    call(
        libc::SYS_open,
        [c"/etc/hosts".as_ptr() as usize, 0, 0, 0, 0],
    )
}

/// Runs `act` in a child process that is killed afterwards.
fn in_a_process_that_dies(act: impl FnOnce()) {
    // SAFETY: the child makes nothing but system calls on memory that it has, then ends at once.
    match unsafe { libc::fork() } {
        0 => {
            act();
            // SAFETY: ends this process as a crash would.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        }
        child => {
            let mut status = 0;
            // SAFETY: waits for our own child.
            assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
            assert!(libc::WIFSIGNALED(status));
        }
    }
}

#[test]
fn a_call_that_a_dead_supervisor_had_received_goes_on() {
    let (listener, run) = guarded(spec(), open_hosts).unwrap();
    let shared = SharedBuffers::create().unwrap();
    let caller = std::thread::spawn(run);
    in_a_process_that_dies(|| {
        let _ = shared.receive(listener.as_fd(), 2);
    });
    assert!(!caller.is_finished());
    assert_eq!(continue_received(listener.as_fd(), &shared), 1);
    assert!(caller.join().unwrap() > 0);
    assert_eq!(
        continue_received(listener.as_fd(), &shared),
        0,
        "nobody waits twice"
    );
    assert_eq!(continue_all(listener.as_fd(), &shared), 0);
}

#[test]
fn a_supervisor_killed_after_its_response_does_no_harm() {
    let (listener, run) = guarded(spec(), || (open_hosts(), open_hosts())).unwrap();
    let shared = SharedBuffers::create().unwrap();
    let keeper: OwnedFd = listener.try_clone().unwrap();
    let caller = std::thread::spawn(run);
    in_a_process_that_dies(|| {
        if let Ok(call) = shared.receive(listener.as_fd(), 0) {
            let answer = libc::seccomp_notif_resp {
                id: call.id,
                val: 0,
                error: 0,
                flags: 1,
            };
            let request = libc::SECCOMP_IOCTL_NOTIF_SEND;
            // SAFETY: one structure of the type that the request names.
            unsafe { libc::ioctl(std::os::fd::AsRawFd::as_raw_fd(&listener), request, &answer) };
        }
    });
    assert_eq!(continue_received(keeper.as_fd(), &shared), 0);
    drop(listener);
    assert_eq!(continue_all(keeper.as_fd(), &shared), 1);
    let (first, second) = caller.join().unwrap();
    assert!(first > 0 && second > 0);
}

#[test]
fn processes_outlive_receivers_that_stop() {
    let (done, wait) = std::sync::mpsc::channel::<()>();
    let (listener, run) = guarded(spec(), move || {
        let first = open_hosts();
        wait.recv().unwrap();
        (first, open_hosts())
    })
    .unwrap();
    let keeper = listener.try_clone().unwrap();
    let shared = Arc::new(SharedBuffers::create().unwrap());
    let receivers = Receivers::start(
        listener,
        shared.clone(),
        GuardSettings::default(),
        || Nowhere,
        Arc::new(Told::default()),
    )
    .unwrap();
    let caller = std::thread::spawn(run);
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert!(!receivers.ended());
    assert!(receivers.stop());
    let keeper = std::thread::spawn(move || continue_all(keeper.as_fd(), &shared));
    done.send(()).unwrap();
    let (first, second) = caller.join().unwrap();
    assert!(first > 0 && second > 0);
    assert!(keeper.join().unwrap() >= 1);
}

/// Kills its process at the nth record.
struct Deadly(Arc<AtomicU32>);

impl RecordSink for Deadly {
    fn append(&mut self, _: &[u8]) {
        if self.0.fetch_sub(1, Ordering::AcqRel) == 1 {
            // SAFETY: ends this process as a crash would.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        }
    }
}

#[test]
fn no_call_waits_for_ever_after_its_supervisor_was_killed() {
    let rounds = 12;
    let (listener, run) = guarded(spec(), || {
        let threads: Vec<_> = (0..3)
            .map(|_| std::thread::spawn(|| (0..400).filter(|_| open_and_close()).count()))
            .collect();
        threads
            .into_iter()
            .map(|t| t.join().unwrap())
            .sum::<usize>()
    })
    .unwrap();
    let shared = Arc::new(SharedBuffers::create().unwrap());
    let callers = std::thread::spawn(run);
    let mut rescued = 0;
    for round in 0..rounds {
        let (for_child, map) = (listener.try_clone().unwrap(), shared.clone());
        in_a_process_that_dies(|| {
            let deadline = Arc::new(AtomicU32::new(5 + round * 7));
            let sink = || Deadly(deadline.clone());
            let hooks = Arc::new(Told::default());
            let _running = Receivers::start(for_child, map, GuardSettings::default(), sink, hooks);
            loop {
                std::thread::park();
            }
        });
        rescued += continue_received(listener.as_fd(), &shared);
    }
    assert!(rescued >= rounds as usize, "{rescued}");
    let keeper = std::thread::spawn(move || continue_all(listener.as_fd(), &shared));
    assert_eq!(callers.join().unwrap(), 3 * 400, "a call failed");
    assert!(keeper.join().unwrap() > 0);
}

fn open_and_close() -> bool {
    let fd = open_hosts();
    // SAFETY: a descriptor that was opened here, or a number that is not open.
    unsafe { libc::close(fd as i32) };
    fd > 0
}
