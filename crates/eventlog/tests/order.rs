//! Events come in a sensible order, whatever the order of chunks and clocks.

use crate::common;
use backstory_abi::{Chunk, F_CHILD, SPAWN_POPEN, SPAWN_POSIX, SPAWN_SYSTEM, SPAWN_VFORK, op};
use backstory_eventlog::event::{Event, Op, Outcome, Spawn, UNNUMBERED, Via};
use common::{Scratch, ThreadStream};

fn brief(events: &[Event]) -> Vec<(u32, i64, String)> {
    events
        .iter()
        .map(|e| (e.pid, e.time, name(&e.op)))
        .collect()
}

fn name(op: &Op) -> String {
    match op {
        Op::Open { path, .. } => String::from_utf8_lossy(path).into_owned(),
        Op::Close { fd } => format!("close {fd}"),
        Op::Exec { path, .. } => format!("exec {}", String::from_utf8_lossy(path)),
        Op::Fork { .. } => "fork".to_owned(),
        Op::Start { .. } => "start".to_owned(),
        Op::Exit { status, .. } => format!("exit {status}"),
        other => format!("{other:?}")
            .split([' ', '{'])
            .next()
            .unwrap_or("")
            .to_owned(),
    }
}

fn open<'a>(stream: &'a mut ThreadStream, time: u64, path: &str) -> &'a mut ThreadStream {
    stream.record(op::OPEN, time, |b| {
        b.fd(-100).result(3).string(path.as_bytes());
    })
}

fn start(stream: &mut ThreadStream, time: u64, pid: i32, forked: bool) {
    stream.record(op::START, time, |b| {
        b.fd(pid).aux(forked.into()).result(0);
    });
}

#[test]
fn threads_are_merged_by_time_and_keep_their_own_order() {
    let mut log = Scratch::new();
    let (mut a, mut b) = (ThreadStream::new(1, 10, 10), ThreadStream::new(2, 20, 20));
    open(&mut a, 1, "a1");
    open(&mut a, 5, "a5");
    // A clock that went back within a thread does not change the order of the thread's operations.
    open(&mut a, 4, "a4");
    open(&mut b, 2, "b2");
    open(&mut b, 6, "b6");
    log.add(&b).add(&a);
    let names: Vec<String> = log.events().iter().map(|e| name(&e.op)).collect();
    assert_eq!(names, ["a1", "b2", "a5", "a4", "b6"]);
    let times: Vec<i64> = log.events().iter().map(|e| e.time).collect();
    assert_eq!(times, [1, 2, 5, 5, 6]);
}

#[test]
fn chunks_of_a_thread_are_taken_by_number_not_by_place() {
    let mut log = Scratch::new();
    let chunk = |seq| {
        ThreadStream::of(Chunk {
            epoch: 1,
            pid: 10,
            tid: 10,
            seq,
            ..Chunk::default()
        })
    };
    let (mut first, mut second) = (chunk(0), chunk(1));
    open(&mut first, 1, "one");
    open(&mut second, 2, "two");
    log.add(&second).add(&first);
    assert_eq!(
        brief(&log.events()),
        [(10, 1, "one".into()), (10, 2, "two".into())]
    );
}

#[test]
fn a_chunk_appended_again_counts_once_as_it_was_last() {
    let mut log = Scratch::new();
    let mut stream = ThreadStream::new(1, 10, 10);
    open(&mut stream, 1, "one");
    log.add(&stream);
    open(&mut stream, 2, "two");
    log.add(&stream);
    assert_eq!(
        brief(&log.events()),
        [(10, 1, "one".into()), (10, 2, "two".into())]
    );
}

#[test]
fn a_child_comes_after_its_fork_even_if_its_clock_is_behind() {
    let mut log = Scratch::new();
    let (mut parent, mut child) = (ThreadStream::new(1, 10, 10), ThreadStream::new(2, 11, 11));
    start(&mut parent, 1_000, 10, false);
    parent.record(op::FORK, 2_000, |b| {
        b.result(11);
    });
    open(&mut parent, 3_000, "parent");
    start(&mut child, 1_990, 11, true);
    open(&mut child, 1_995, "child");
    log.add(&child).add(&parent).clock(0).clock(10_000_000);
    let expected = [
        (10, 1_000, "start".into()),
        (10, 2_000, "fork".into()),
        (11, 2_000, "start".into()),
        (11, 2_000, "child".into()),
        (10, 3_000, "parent".into()),
    ];
    assert_eq!(brief(&log.events()), expected);
}

#[test]
fn a_program_comes_after_its_exec_even_if_its_clock_is_behind() {
    let mut log = Scratch::new();
    let (mut before, mut after) = (ThreadStream::new(1, 10, 10), ThreadStream::new(2, 10, 10));
    start(&mut before, 1_000, 10, false);
    before.record(op::EXEC, 2_000, |b| {
        b.string(b"/bin/x");
    });
    start(&mut after, 1_999, 10, false);
    log.add(&after).add(&before).clock(0).clock(10_000_000);
    let expected = [
        (10, 1_000, "start".into()),
        (10, 2_000, "exec /bin/x".into()),
        (10, 2_000, "start".into()),
    ];
    assert_eq!(brief(&log.events()), expected);
}

#[test]
fn a_chain_of_execs_is_not_taken_for_clocks_that_differ() {
    let mut log = Scratch::new();
    // The first exec was not logged, so the second start's cause is not the first one's.
    let mut streams: Vec<ThreadStream> = (1..=3)
        .map(|epoch| ThreadStream::new(epoch, 10, 10))
        .collect();
    for (i, stream) in streams.iter_mut().enumerate() {
        let time = 1_000 + 1_000 * i as u64;
        start(stream, time, 10, false);
        open(stream, time + 1, &format!("file {i}"));
        stream.record(op::EXEC, time + 2, |b| {
            b.string(b"next");
        });
    }
    streams.iter().rev().for_each(|l| {
        log.add(l);
    });
    log.clock(0).clock(10_000_000);
    let names: Vec<String> = log.events().iter().map(|e| name(&e.op)).collect();
    let once = |i: usize| {
        [
            "start".to_owned(),
            format!("file {i}"),
            "exec next".to_owned(),
        ]
    };
    assert_eq!(names, [once(0), once(1), once(2)].concat());
    assert!(log.events().windows(2).all(|w| w[0].time < w[1].time));
}

#[test]
fn a_thread_comes_after_its_process_has_started() {
    let mut log = Scratch::new();
    let (mut main, mut thread) = (ThreadStream::new(1, 10, 10), ThreadStream::new(1, 10, 11));
    start(&mut main, 100, 10, false);
    open(&mut thread, 99, "thread");
    log.add(&thread).add(&main);
    assert_eq!(
        brief(&log.events()),
        [(10, 100, "start".into()), (10, 100, "thread".into())]
    );
}

#[test]
fn a_vfork_childs_operations_are_its_own() {
    let mut log = Scratch::new();
    let mut stream = ThreadStream::new(1, 10, 10);
    open(&mut stream, 1, "before");
    stream.record(op::VFORK, 2, |b| {
        b.arg(SPAWN_VFORK).result(0);
    });
    stream.record(op::CLOSE, 3, |b| {
        b.fd(7).result(0);
    });
    // The child spawns in its turn.
    stream.record(op::VFORK, 4, |b| {
        b.arg(SPAWN_POSIX).result(0);
    });
    stream.record(op::EXEC, 5, |b| {
        b.string(b"/inner");
    });
    stream.record(op::VFORKED, 6, |b| {
        b.result(12);
    });
    stream.record(op::EXEC, 7, |b| {
        b.string(b"/outer");
    });
    stream.record(op::VFORKED, 8, |b| {
        b.result(11);
    });
    open(&mut stream, 9, "after");
    log.add(&stream);
    let events = log.events();
    let expected = [
        (10, 1, "before".into()),
        (10, 2, "fork".into()),
        (11, 3, "close 7".into()),
        (11, 4, "fork".into()),
        (12, 5, "exec /inner".into()),
        (11, 7, "exec /outer".into()),
        (10, 9, "after".into()),
    ];
    assert_eq!(brief(&events), expected);
    assert_eq!(events[1].outcome, Outcome::Done(11));
    assert_eq!(
        events[1].op,
        Op::Fork {
            flags: 0,
            spawn: Some(Spawn::Vfork)
        }
    );
    assert_eq!(events[3].outcome, Outcome::Done(12));
    assert_eq!(
        events[3].op,
        Op::Fork {
            flags: 0,
            spawn: Some(Spawn::Posix)
        }
    );
    assert_eq!(events[5].outcome, Outcome::Unknown);
    assert_eq!((events[2].tid, events[6].tid), (11, 10));
}

#[test]
fn a_vfork_may_span_chunks() {
    let mut log = Scratch::new();
    let chunk = |seq| {
        ThreadStream::of(Chunk {
            epoch: 1,
            pid: 10,
            tid: 10,
            seq,
            ..Chunk::default()
        })
    };
    let (mut first, mut second) = (chunk(0), chunk(1));
    first.record(op::VFORK, 1, |_| {});
    open(&mut second, 2, "child");
    second.record(op::VFORKED, 3, |b| {
        b.result(11);
    });
    log.add(&first).add(&second);
    assert_eq!(
        brief(&log.events()),
        [(10, 1, "fork".into()), (11, 2, "child".into())]
    );
}

#[test]
fn a_failed_vfork_is_a_failed_fork() {
    let mut log = Scratch::new();
    let mut stream = ThreadStream::new(1, 10, 10);
    stream.record(op::VFORK, 1, |_| {});
    stream.record(op::VFORKED, 2, |b| {
        b.result(-11);
    });
    open(&mut stream, 3, "after");
    log.add(&stream);
    let events = log.events();
    assert_eq!(
        brief(&events),
        [(10, 1, "fork".into()), (10, 3, "after".into())]
    );
    assert_eq!(events[0].outcome, Outcome::Done(-11));
}

#[test]
fn the_child_of_a_vfork_that_never_came_back_is_found_by_its_parent() {
    let mut log = Scratch::new();
    let (mut parent, mut guard) = (ThreadStream::new(1, 10, 10), ThreadStream::guard(0));
    parent.record(op::VFORK, 1, |_| {});
    parent.record(op::EXEC, 2, |b| {
        b.string(b"/bin/sleep");
    });
    guard.record(op::BORN, 3, |b| {
        b.fd(11)
            .arg(10)
            .result(0)
            .string(b"/bin/sleep")
            .string(b"/");
    });
    log.add(&parent).add(&guard);
    let events = log.events();
    assert_eq!(
        brief(&events)[..2],
        [(10, 1, "fork".into()), (11, 2, "exec /bin/sleep".into())]
    );
    assert_eq!(events[0].outcome, Outcome::Done(11));

    // No observer saw it: the call's outcome is unknown, and no process is invented.
    let mut log = Scratch::new();
    log.add(&parent);
    let events = log.events();
    assert_eq!(
        brief(&events),
        [(10, 1, "fork".into()), (10, 2, "exec /bin/sleep".into())]
    );
    assert_eq!(events[0].outcome, Outcome::Unknown);
}

/// The children of a killed parent belong to the supervisor when they are examined.
#[test]
fn the_child_of_a_killed_parent_names_itself() {
    let mut log = Scratch::new();
    let mut parent = ThreadStream::new(1, 10, 10);
    parent.record(op::VFORK, 1, |_| {});
    open(&mut parent, 2, "redirected");
    parent.record(op::EXEC, 3, |b| {
        b.flags(F_CHILD).says(11).string(b"/bin/cp");
    });
    let mut child = ThreadStream::of(Chunk {
        epoch: 2,
        pid: 11,
        tid: 11,
        ppid: 7,
        ..Chunk::default()
    });
    child.record(op::START, 4, |b| {
        b.fd(11).arg(7).result(0);
    });
    open(&mut child, 5, "copy");
    log.add(&parent).add(&child);
    let events = log.events();
    let expected = [
        (10, 1, "fork".into()),
        (11, 2, "redirected".into()),
        (11, 3, "exec /bin/cp".into()),
        (11, 4, "start".into()),
        (11, 5, "copy".into()),
    ];
    assert_eq!(brief(&events), expected);
    assert_eq!(events[0].outcome, Outcome::Done(11));
    assert_eq!(events[2].outcome, Outcome::Unknown);
}

#[test]
fn records_after_a_spawned_program_are_the_parents_even_if_the_return_was_lost() {
    let mut log = Scratch::new();
    let (mut parent, mut earlier, mut child) = (
        ThreadStream::new(1, 10, 10),
        ThreadStream::guard(0),
        ThreadStream::guard(1),
    );
    let born = |stream: &mut ThreadStream, time, pid| {
        stream.record(op::BORN, time, |b| {
            b.fd(pid).arg(10).result(0).string(b"").string(b"");
        });
    };
    born(&mut earlier, 1, 11);
    born(&mut earlier, 25, 11);
    born(&mut child, 30, 12);
    parent.record(op::VFORK, 20, |_| {});
    parent.record(op::EXEC, 21, |b| {
        b.string(b"/bin/x");
    });
    open(&mut parent, 40, "parent");
    log.add(&parent).add(&earlier).add(&child);
    let events: Vec<_> = brief(&log.events())
        .into_iter()
        .filter(|e| e.2 != "Born")
        .collect();
    let expected = [
        (10, 20, "fork".into()),
        (12, 21, "exec /bin/x".into()),
        (10, 40, "parent".into()),
    ];
    assert_eq!(events, expected);
}

#[test]
fn a_child_without_a_known_id_does_not_count_as_its_parent() {
    let mut parent = ThreadStream::new(1, 10, 10);
    parent.record(op::VFORK, 1, |b| {
        b.arg(SPAWN_POPEN).result(0);
    });
    open(&mut parent, 2, "child");
    parent.record(op::VFORKED, 3, |b| {
        b.result(0);
    });
    open(&mut parent, 4, "parent");
    // It has no known operation, so no process is invented.
    parent.record(op::VFORK, 5, |b| {
        b.arg(SPAWN_SYSTEM).result(0);
    });
    parent.record(op::VFORKED, 6, |b| {
        b.result(0);
    });
    open(&mut parent, 7, "end");
    let mut log = Scratch::new();
    let events = log.add(&parent).events();
    let child = UNNUMBERED + 1;
    let expected = [
        (10, 1, "fork".into()),
        (child, 2, "child".into()),
        (10, 4, "parent".into()),
        (10, 5, "fork".into()),
        (10, 7, "end".into()),
    ];
    assert_eq!(brief(&events), expected);
    assert_eq!(events[0].outcome, Outcome::Done(child as i32));
    assert_eq!(events[3].outcome, Outcome::Unknown);

    // The guard saw it, so its id is known.
    let mut guard = ThreadStream::guard(0);
    guard.record(op::BORN, 2, |b| {
        b.fd(11).arg(10).result(0).string(b"").string(b"");
    });
    assert_eq!(
        brief(&log.add(&guard).events())[1..3],
        [(11, 2, "child".into()), (11, 2, "Born".into())]
    );
}

#[test]
fn the_spawned_program_comes_after_its_exec_in_the_parents_chunk() {
    let mut log = Scratch::new();
    let (mut parent, mut child) = (ThreadStream::new(1, 10, 10), ThreadStream::new(2, 11, 11));
    start(&mut parent, 1_000, 10, false);
    parent.record(op::VFORK, 2_000, |_| {});
    parent.record(op::EXEC, 3_000, |b| {
        b.string(b"/bin/x");
    });
    parent.record(op::VFORKED, 3_500, |b| {
        b.result(11);
    });
    start(&mut child, 2_990, 11, false);
    log.add(&child).add(&parent).clock(0).clock(10_000_000);
    let names: Vec<_> = brief(&log.events())
        .into_iter()
        .map(|(pid, _, name)| (pid, name))
        .collect();
    assert_eq!(
        names,
        [
            (10, "start".into()),
            (10, "fork".into()),
            (11, "exec /bin/x".into()),
            (11, "start".into())
        ]
    );
}

#[test]
fn the_guard_sees_many_threads_each_in_its_order() {
    let mut log = Scratch::new();
    let (mut first, mut second) = (ThreadStream::guard(0), ThreadStream::guard(1));
    open(first.by(10, 10), 1, "10 first");
    open(first.by(20, 21), 3, "21 first");
    open(first.by(10, 10), 2, "10 second");
    open(second.by(20, 21), 4, "21 second");
    log.add(&first).add(&second);
    let events = log.events();
    let names: Vec<String> = events.iter().map(|e| name(&e.op)).collect();
    assert_eq!(names, ["10 first", "10 second", "21 first", "21 second"]);
    assert!(events.iter().all(|e| e.via == Via::Kernel));
    assert_eq!((events[2].pid, events[2].tid), (20, 21));
}

#[test]
fn the_guards_late_entries_come_when_they_were_made() {
    let mut log = Scratch::new();
    let (mut guard, mut thread) = (ThreadStream::guard(0), ThreadStream::new(1, 20, 20));
    open(guard.by(10, 10), 5, "five");
    open(guard.by(11, 11), 1, "one");
    open(&mut thread, 3, "three");
    let names: Vec<String> = log
        .add(&guard)
        .add(&thread)
        .events()
        .iter()
        .map(|e| name(&e.op))
        .collect();
    assert_eq!(names, ["one", "three", "five"]);
}

#[test]
fn processes_in_another_pid_namespace_have_the_supervisors_numbers() {
    let mut log = Scratch::new();
    let inside = |epoch, pid, ppid, host_pid, taken| {
        ThreadStream::of(Chunk {
            epoch,
            pid,
            tid: pid,
            ppid,
            host_pid,
            taken,
            ..Chunk::default()
        })
    };
    let mut parent = inside(1, 1, 0, 5_001, 1);
    let mut child = inside(2, 7, 1, 5_007, 20);
    start(&mut parent, 1, 1, false);
    parent.record(op::FORK, 10, |b| {
        b.result(7);
    });
    parent.record(op::WAIT, 50, |b| {
        b.result(7);
    });
    start(&mut child, 20, 7, true);
    log.add(&parent).add(&child);
    let events = log.events();
    assert_eq!(
        brief(&events)[..3],
        [
            (5_001, 1, "start".into()),
            (5_001, 10, "fork".into()),
            (5_007, 20, "start".into())
        ]
    );
    assert_eq!(events[1].outcome, Outcome::Done(5_007));
    assert_eq!(events[3].outcome, Outcome::Done(5_007));
    assert_eq!(events[2].tid, 5_007);
}

#[test]
fn a_time_that_no_clock_can_have_shown_does_not_hold_up_the_thread() {
    let mut log = Scratch::new();
    let mut stream = ThreadStream::new(1, 10, 10);
    open(&mut stream, 1, "one");
    open(&mut stream, u64::MAX, "scribbled over");
    open(&mut stream, 3, "three");
    log.clock(0).add(&stream).clock(100);
    let expected = [
        (10, 1, "one".into()),
        (10, 1, "scribbled over".into()),
        (10, 3, "three".into()),
    ];
    assert_eq!(brief(&log.events()), expected);
}
