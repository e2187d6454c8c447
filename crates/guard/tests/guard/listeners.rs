//! Several filters in one run: each has receivers of its own.

use crate::stage::{Log, NOWHERE, Told, call, guarded, spec};
use backstory_abi::{MAGIC_FILTERED, MAGIC_WHICH, op};
use backstory_guard::{GuardSettings, Receivers, SharedBuffers, continue_all};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::channel;

fn receivers(listener: OwnedFd, log: &Log, told: &Arc<Told>) -> Receivers {
    let settings = GuardSettings {
        gate: Some(NOWHERE),
        joins_later: true,
        ..GuardSettings::default()
    };
    let (buffers, _) = SharedBuffers::create_in_file().unwrap();
    let log = log.clone();
    Receivers::start(
        listener,
        Arc::new(buffers),
        settings,
        move || log.clone(),
        told.clone(),
    )
    .unwrap()
}

fn end(receivers: Receivers) {
    while !receivers.ended() {
        std::thread::yield_now();
    }
    assert!(receivers.stop());
}

fn open(path: &std::ffi::CStr) -> i64 {
    call(libc::SYS_open, [path.as_ptr() as usize, 0, 0, 0, 0])
}

#[test]
fn each_filter_of_a_run_has_receivers_that_end_with_it() {
    let (log, told) = (Log::default(), Arc::<Told>::default());
    let (go, wait) = channel::<()>();
    let (long, run_long) = guarded(spec(), move || {
        let first = open(c"/etc/hosts");
        wait.recv().unwrap();
        (first, open(c"/etc/passwd"))
    })
    .unwrap();
    let (short, run_short) = guarded(spec(), || open(c"/etc/group")).unwrap();
    let (long, short) = (receivers(long, &log, &told), receivers(short, &log, &told));
    let thread = std::thread::spawn(run_long);
    assert!(run_short() > 0);
    end(short);
    go.send(()).unwrap();
    let (first, second) = thread.join().unwrap();
    assert!(first > 0 && second > 0);
    end(long);
    let opened: Vec<String> = log
        .all()
        .iter()
        .filter(|seen| seen.record.op == op::OPEN)
        .map(|seen| seen.string(0).to_owned())
        .collect();
    for path in ["/etc/hosts", "/etc/group", "/etc/passwd"] {
        assert_eq!(
            opened.iter().filter(|one| *one == path).count(),
            1,
            "{opened:?}"
        );
    }
}

/// The operations that are logged of a process whose filter joins a run.
fn operations(adopted: bool) -> Vec<u16> {
    let (log, told) = (Log::default(), Arc::<Told>::default());
    let (listener, run) = guarded(spec(), || open(c"/etc/hosts")).unwrap();
    let receivers = receivers(listener, &log, &told);
    if adopted {
        receivers.adopt(std::process::id());
    }
    assert!(run() > 0);
    end(receivers);
    log.all().iter().map(|seen| seen.record.op).collect()
}

#[test]
fn a_process_that_joins_is_introduced_and_listed_unless_its_recorder_goes_on() {
    let unknown = operations(false);
    assert!(
        unknown.contains(&op::BORN) && unknown.contains(&op::HOLD),
        "{unknown:?}"
    );
    assert_eq!(operations(true), [op::OPEN]);
}

#[test]
fn a_process_knows_whether_it_has_the_filter() {
    let ask = || {
        call(
            libc::SYS_getpriority,
            [MAGIC_WHICH as usize, MAGIC_FILTERED as usize, 0, 0, 0],
        )
    };
    assert_eq!(ask(), -i64::from(libc::EINVAL));
    let (listener, run) = guarded(spec(), ask).unwrap();
    let receivers = receivers(listener, &Log::default(), &Arc::default());
    assert_eq!(run(), 0);
    end(receivers);
}

#[test]
fn the_keeper_continues_the_calls_of_a_filter_whose_buffers_came_by_a_descriptor() {
    let (listener, run) = guarded(spec(), || open(c"/etc/hosts")).unwrap();
    let (_supervisors, file) = SharedBuffers::create_in_file().unwrap();
    let keepers = SharedBuffers::of_file(file.as_fd()).unwrap();
    let caller = std::thread::spawn(run);
    assert_eq!(continue_all(listener.as_fd(), &keepers), 1);
    assert!(caller.join().unwrap() > 0);
}
