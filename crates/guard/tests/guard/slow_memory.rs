//! The memory that a call points to may be filled only when it is read, by a thread that itself
//! needs the guard.

#![allow(unsafe_code)]

use crate::stage::{Log, NOWHERE, Seen, Told, call, guarded, spec};
use backstory_abi::op;
use backstory_eventlog::Reason;
use backstory_guard::{GuardSettings, Receivers, SharedBuffers};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::{scope, sleep, spawn};
use std::time::Duration;

const PAGE: usize = 4096;
/// The receivers of a filter, but for the spare one.
const RECEIVERS: usize = 4;
/// `UFFDIO_API`, `UFFDIO_REGISTER`, `UFFDIO_COPY` of `<linux/userfaultfd.h>`.
const HELLO: usize = 0xc018_aa3f;
const REGISTER: usize = 0xc020_aa00;
const COPY: usize = 0xc028_aa03;

/// Pages that this process fills when they are read. `None` if it may not do that.
fn unfilled(pages: usize) -> Option<(usize, usize)> {
    let filler = call(
        libc::SYS_userfaultfd,
        [libc::O_CLOEXEC as usize, 0, 0, 0, 0],
    );
    if filler < 0 {
        backstory_testkit::need::skipped("pages that are filled when they are read", "needs root");
        return None;
    }
    let (filler, flags) = (
        filler as usize,
        (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize,
    );
    let size = pages * PAGE;
    // SAFETY: a new mapping, at an address of the kernel's choice.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), size, 3, flags as i32, -1, 0) } as usize;
    let mut hello = [0xaau64, 0, 0];
    let mut range = [at as u64, size as u64, 1, 0];
    for (ask, with) in [
        (HELLO, hello.as_mut_ptr() as usize),
        (REGISTER, range.as_mut_ptr() as usize),
    ] {
        assert_eq!(call(libc::SYS_ioctl, [filler, ask, with, 0, 0]), 0);
    }
    Some((filler, at))
}

/// Waits until a page that is not filled is read, and returns its address.
fn asked(filler: usize) -> u64 {
    let mut message = [0u64; 4];
    let got = call(
        libc::SYS_read,
        [filler, message.as_mut_ptr() as usize, 32, 0, 0],
    );
    assert_eq!(got, 32);
    message[2] & !(PAGE as u64 - 1)
}

/// Fills a page with a path. False if it was filled already.
fn fill(filler: usize, at: u64) -> bool {
    let mut path = [0u8; PAGE];
    path[..10].copy_from_slice(b"/etc/group");
    let mut copy = [at, path.as_ptr() as u64, PAGE as u64, 0, 0];
    call(
        libc::SYS_ioctl,
        [filler, COPY, copy.as_mut_ptr() as usize, 0, 0],
    ) == 0
}

/// Fills this many pages as they are read, each after a watched call of its own. Before the first,
/// all receivers wait for a page, if there is one for each. Returns how many such calls were made:
/// two threads that wait for one page request it twice.
fn fill_all(filler: usize, pages: usize) -> usize {
    let (mut filled, mut calls) = (0, 0);
    let waiting: Vec<u64> = (0..pages.min(RECEIVERS)).map(|_| asked(filler)).collect();
    let mut waiting = waiting.into_iter();
    while filled < pages {
        let at = waiting.next().unwrap_or_else(|| asked(filler));
        assert!(std::fs::read("/etc/hosts").is_ok());
        filled += usize::from(fill(filler, at));
        calls += 1;
    }
    calls
}

/// How many threads could open a path, and how many calls the filler made.
type Opened = (usize, usize);

/// This many threads each open the path in a page. Returns what came of it, the records and the
/// reports. `None`: not possible here.
fn opened(threads: usize) -> Option<(Opened, Vec<Seen>, Vec<Reason>)> {
    let (listener, run) = guarded(spec(), move || {
        let (filler, at) = unfilled(threads)?;
        let open = |page: usize| call(libc::SYS_openat, [0, at + page * PAGE, 0, 0, 0]) >= 0;
        let opened = scope(|scope| {
            let opens: Vec<_> = (0..threads)
                .map(|page| scope.spawn(move || open(page)))
                .collect();
            let calls = fill_all(filler, threads);
            let opened = opens
                .into_iter()
                .map(|open| usize::from(open.join().unwrap()));
            (opened.sum::<usize>(), calls)
        });
        Some(opened)
    })
    .unwrap();
    let (shared, log, told) = (
        Arc::new(SharedBuffers::create().unwrap()),
        Log::default(),
        Arc::new(Told::default()),
    );
    let watch = GuardSettings {
        gate: Some(NOWHERE),
        ..GuardSettings::default()
    };
    let receivers =
        Receivers::start(listener, shared, watch, || log.clone(), told.clone()).unwrap();
    let (monitor, ended) = (receivers.monitor(), Arc::new(AtomicBool::new(false)));
    let over = ended.clone();
    let looks = spawn(move || {
        while !over.load(Ordering::Acquire) {
            monitor.check();
            sleep(Duration::from_millis(20));
        }
    });
    let opened = run();
    ended.store(true, Ordering::Release);
    looks.join().unwrap();
    while !receivers.ended() {
        std::thread::yield_now();
    }
    assert!(receivers.stop());
    let notes = told.notes.lock().unwrap().clone();
    Some((opened?, log.all(), notes))
}

fn opens_of(seen: &[Seen], path: &str) -> usize {
    seen.iter()
        .filter(|s| s.record.op == op::OPEN && s.string(0) == path)
        .count()
}

#[test]
fn one_receiver_alone_waits_for_a_page_that_the_program_makes() {
    let Some((opened, seen, notes)) = opened(1) else {
        return;
    };
    assert_eq!((opened.0, opens_of(&seen, "/etc/group")), (1, 1));
    assert_eq!(opens_of(&seen, "/etc/hosts"), opened.1);
    assert_eq!(notes, []);
}

#[test]
fn calls_go_on_while_all_receivers_wait_for_pages_and_the_run_says_so() {
    let Some(((opened, calls), seen, notes)) = opened(16) else {
        return;
    };
    assert_eq!(opened, 16);
    assert!(!notes.is_empty() && notes.iter().all(|note| *note == Reason::Unread {}));
    let logged = opens_of(&seen, "/etc/group") + opens_of(&seen, "/etc/hosts");
    // A report does not name its call. On one processor some reports are about the calls that
    // started the threads.
    let known = logged + notes.len();
    assert!(
        (16 + calls..=32 + calls).contains(&known),
        "each call is logged, or told not to be: {known}, {calls}"
    );
}

#[test]
fn a_receiver_that_waits_for_a_page_does_not_delay_the_end() {
    let (say, said) = channel();
    let (listener, run) = guarded(spec(), move || {
        let pages = unfilled(1);
        say.send(pages).unwrap();
        pages.map(|(_, at)| call(libc::SYS_openat, [0, at, 0, 0, 0]) >= 0)
    })
    .unwrap();
    let shared = Arc::new(SharedBuffers::create().unwrap());
    let receivers = Receivers::start(
        listener,
        shared,
        GuardSettings::default(),
        Log::default,
        Arc::new(Told::default()),
    )
    .unwrap();
    let caller = spawn(run);
    let Some((filler, _)) = said.recv().unwrap() else {
        return;
    };
    let at = asked(filler);
    // The page is filled afterwards: a stop that waited for it would not return.
    assert!(!receivers.stop(), "what the call was is not known");
    assert!(fill(filler, at));
    assert_eq!(caller.join().unwrap(), Some(true));
}
