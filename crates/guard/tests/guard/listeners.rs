//! Several filters in one run: each has receivers of its own.

use crate::stage::{Log, NOWHERE, Told, call, guarded, spec};
use backstory_abi::{MAGIC_FILTERED, MAGIC_WHICH, op};
use backstory_guard::{GuardSettings, PreparedReceivers, Receivers, SharedBuffers, continue_all};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::channel;

/// The settings of a filter that joins.
fn settings() -> GuardSettings {
    GuardSettings {
        gate: Some(NOWHERE),
        joins_later: true,
        ..GuardSettings::default()
    }
}

fn buffers() -> Arc<SharedBuffers> {
    let (buffers, _) = SharedBuffers::create_in_file().unwrap();
    Arc::new(buffers)
}

fn receivers(listener: OwnedFd, log: &Log, told: &Arc<Told>) -> Receivers {
    let log = log.clone();
    let make_sink = move || log.clone();
    Receivers::start(listener, buffers(), settings(), make_sink, told.clone()).unwrap()
}

fn prepared(log: &Log) -> PreparedReceivers<Log> {
    let log = log.clone();
    let hooks = Arc::<Told>::default();
    PreparedReceivers::new(settings(), move || log.clone(), hooks).unwrap()
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

#[test]
fn prepared_receivers_serve_a_filter_that_is_installed_later() {
    let log = Log::default();
    let (first, second) = (prepared(&log), prepared(&log));
    for (prepared, path) in [(first, c"/etc/hosts"), (second, c"/etc/group")] {
        let (listener, run) = guarded(spec(), move || open(path)).unwrap();
        let receivers = prepared.start(listener, buffers()).unwrap();
        assert!(run() > 0);
        end(receivers);
    }
    let seen = log.all();
    let opened = seen.iter().filter(|seen| seen.record.op == op::OPEN);
    let opened: Vec<&str> = opened.map(|seen| seen.string(0)).collect();
    assert_eq!(opened, ["/etc/hosts", "/etc/group"]);
}

#[test]
fn prepared_receivers_end_if_there_never_is_a_filter() {
    prepared(&Log::default()).cancel();
}

#[test]
fn the_exit_of_an_adopted_process_is_logged_although_its_thread_starts_with_the_end() {
    let log = Log::default();
    let (listener, run) = guarded(spec(), || open(c"/etc/hosts")).unwrap();
    let receivers = prepared(&log).start(listener, buffers()).unwrap();
    let mut child = std::process::Command::new("true").spawn().unwrap();
    receivers.adopt(child.id());
    child.wait().unwrap();
    assert!(run() > 0);
    end(receivers);
    let ends = log.all();
    let ends = ends.iter().filter(|seen| seen.record.op == op::GONE);
    let ends: Vec<u32> = ends.map(|seen| seen.caller.pid).collect();
    assert!(ends.contains(&child.id()), "{ends:?}");
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
