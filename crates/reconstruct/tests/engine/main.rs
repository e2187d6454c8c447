//! Programs run again against records that were written by hand.
//!
//! The engine forks, so its process has one thread: this test has its own `main`.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod calls;
mod executions;
mod threads;

use backstory_deep::Call;
use backstory_reconstruct::RecordedRun;
use backstory_reconstruct::divergence::DivergenceKind;
use backstory_reconstruct::engine::{Options, reconstruct};
use backstory_reconstruct::time::RecordedClock;
use backstory_reconstruct::verdict::{Likeness, Reconstruction};
use backstory_reconstruct::window::end_at_gaps;
use calls::*;
use executions::*;
use libc::{S_IFCHR, S_IFIFO, S_IFSOCK};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use threads::*;

fn run_with(programs: Vec<(u32, Vec<Call>)>, options: &Options) -> Reconstruction {
    let all = programs.into_iter().enumerate();
    let all = all.map(|(at, (pid, calls))| (at as u64 + 1, pid, 0, calls.into_iter()));
    reconstruct(RecordedRun::arrange(all), options, || Ok(())).unwrap()
}

fn run(calls: Vec<Call>) -> Reconstruction {
    run_with(vec![(0, calls)], &Options::default())
}

fn program(name: &str) -> Option<String> {
    let mut all = ["/usr/bin", "/bin"]
        .iter()
        .map(|dir| format!("{dir}/{name}"));
    let found = all.find(|path| Path::new(path).exists());
    if found.is_none() {
        backstory_testkit::need::skipped("reconstructed programs", &format!("needs {name}"));
    }
    found
}

fn cat(input: &[&[u8]], output: &[u8]) -> Vec<Call> {
    let mut calls = vec![
        begin("/bin/cat", &["cat"], "/"),
        descriptor(0, 1, S_IFIFO, "pipe:[7]"),
    ];
    calls.extend(input.iter().map(|bytes| read(0, bytes)));
    calls.push(read(0, b""));
    calls.push(descriptor(1, 2, S_IFIFO, "pipe:[8]"));
    calls.push(write(1, output));
    calls.push(exit(0));
    calls
}

fn a_program_gets_its_recorded_input_and_its_output_is_equal() {
    let result = run(cat(&[b"one\n", b"two\n"], b"one\ntwo\n"));
    assert_eq!(result.likeness(), Likeness::Equal, "{result:?}");
    assert_eq!(result.output, b"one\ntwo\n");
    assert_eq!(result.status, Some(0));
    assert_eq!(result.processes[0].entered, 8);
}

fn other_output_is_found_with_both_contexts() {
    let mut calls = cat(&[b"one\n"], b"one\n");
    calls.retain(|call| call.number != libc::SYS_write as u16);
    calls.insert(calls.len() - 1, write_full(1, b"once"));
    let result = run(calls);
    assert_eq!(result.likeness(), Likeness::Different);
    let found = result.first_difference().unwrap();
    assert_eq!(found.kind, DivergenceKind::OtherOutput);
    assert_eq!((found.position, found.within), (2, 1));
    assert_eq!(found.recorded, "\"ce\"");
    assert_eq!(found.came, "\"e\\n\"");
    assert!(
        found.calls.last().unwrap().starts_with("write(1"),
        "{found:?}"
    );
}

fn missing_output_is_found() {
    let result = run(cat(&[b"one\n"], b"one\ntwo\n"));
    let found = result.first_difference().unwrap();
    assert_eq!(found.kind, DivergenceKind::LessOutput, "{found:?}");
}

fn another_status_is_found() {
    let mut calls = cat(&[b"one\n"], b"one\n");
    *calls.last_mut().unwrap() = exit(3);
    let result = run(calls);
    let found = result.first_difference().unwrap();
    assert_eq!(found.kind, DivergenceKind::OtherEnd, "{found:?}");
    assert_eq!(found.recorded, "status 3");
}

fn a_signal_in_the_place_of_a_status_is_found() {
    let words = ["sh", "-c", "kill -ABRT $$"];
    let result = run(vec![begin("/bin/sh", &words, "/"), exit(0)]);
    let found = result.first_difference().unwrap();
    assert_eq!(found.kind, DivergenceKind::OtherEnd, "{found:?}");
    assert_eq!((&*found.recorded, &*found.came), ("status 0", "signal 6"));
}

fn a_program_that_ends_before_its_cut_record_does_is_found() {
    let run_with = |script: &str| {
        let calls = timed(vec![
            begin("/bin/sh", &["sh", "-c", script], "/"),
            descriptor(0, 1, S_IFIFO, "pipe:[7]"),
            read(0, b"one\n"),
            read(0, b"two\n"),
            gap(),
            exit(0),
        ]);
        let mut run = RecordedRun::arrange([(1, 0, 0, calls.into_iter())].into_iter());
        end_at_gaps(&mut run);
        reconstruct(run, &Options::default(), || Ok(())).unwrap()
    };
    let behind = run_with("read x; read y; exit 1");
    let likeness = behind.likeness();
    assert_eq!(likeness, Likeness::EqualWhereRecorded, "{behind:?}");
    for (script, came) in [
        ("read x; exit 1", "status 1"),
        ("read x; kill -ABRT $$", "signal 6"),
        ("read x; exec true", "the execution of another program"),
    ] {
        let result = run_with(script);
        let found = result.first_difference();
        let found = found.unwrap_or_else(|| panic!("{script}: {result:?}"));
        assert_eq!(found.kind, DivergenceKind::OtherEnd, "{found:?}");
        assert_eq!(found.came, came, "{found:?}");
    }
}

fn sorting_and_python_come_back() {
    if program("sort").is_some() {
        let mut calls = cat(&[b"c\nb\n", b"a\n"], b"a\nb\nc\n");
        calls[0] = begin("/usr/bin/sort", &["sort"], "/");
        let result = run(calls);
        assert_eq!(result.likeness(), Likeness::Equal, "{result:?}");
    }
    let Some(python) = program("python3") else {
        return;
    };
    let script = "import os, sys; print(os.urandom(4).hex(), os.getpid(), os.isatty(1), sys.stdin.readline().strip(), sep=',')";
    let calls = vec![
        begin(&python, &["python3", "-I", "-S", "-c", script], "/"),
        // Python's own seed for hashes.
        random(&[7; 24], 1),
        random(b"\x01\x02\x03\x04", 0),
        call(libc::SYS_getpid, -1, 4711),
        descriptor(0, 1, S_IFCHR, "/dev/pts/3"),
        read(0, b"typed\n"),
        descriptor(1, 2, S_IFCHR, "/dev/pts/3"),
        write(1, b"01020304,4711,True,typed\n"),
        exit(0),
    ];
    let result = run(calls);
    assert_eq!(
        result.likeness(),
        Likeness::Equal,
        "{result:?} {}",
        result.output.escape_ascii()
    );
}

fn input_of_ones_own_shows_what_the_program_would_have_done() {
    let options = Options {
        inputs: vec![(0, b"other\n".to_vec())],
        ..Options::default()
    };
    let result = run_with(
        vec![(0, cat(&[b"one\n", b"two\n"], b"one\ntwo\n"))],
        &options,
    );
    assert_eq!(result.output, b"other\n");
    assert_eq!(result.likeness(), Likeness::Different);
}

/// Asserts that the patience ends a program with these recorded calls, and that this is reported.
fn ends_by_the_patience(calls: Vec<Call>) {
    let options = Options {
        patience: Duration::from_secs(1),
        ..Options::default()
    };
    let result = run_with(vec![(0, calls)], &options);
    assert!(result.stopped.is_some(), "{result:?}");
    assert_eq!(result.likeness(), Likeness::Different);
}

fn a_program_that_hangs_is_ended_and_reported() {
    let calls = vec![
        begin(
            "/bin/sh",
            &["sh", "-c", "mkfifo f; exec 3<>f; rm f; read x <&3"],
            "/tmp",
        ),
        exit(0),
    ];
    ends_by_the_patience(calls);
}

fn a_program_that_repeats_a_wait_for_ever_is_ended_and_reported() {
    let Some(python) = program("python3") else {
        return;
    };
    // The alarm ends a program that goes on.
    let script = "import select, signal; signal.alarm(30); select.select([0], [], [])";
    let calls = vec![
        begin(&python, &["python3", "-I", "-S", "-c", script], "/"),
        descriptor(0, 1, S_IFIFO, "pipe:[7]"),
        exit(0),
    ];
    ends_by_the_patience(calls);
}

fn a_program_that_makes_calls_for_ever_and_takes_nothing_of_its_record_is_ended_and_reported() {
    let Some(python) = program("python3") else {
        return;
    };
    // Each loop makes another call between its waits. The alarm ends a program that goes on.
    let ticks = "
import ctypes, os, signal, struct
signal.alarm(60)
libc = ctypes.CDLL(None)
timer = libc.timerfd_create(1, 0)
libc.timerfd_settime(timer, 0, struct.pack('4q', 0, 50_000_000, 0, 50_000_000), None)
while True:
    os.read(timer, 8)
    os.getpid()
";
    let polls = "
import os, select, signal
signal.alarm(60)
waits = select.poll()
waits.register(0, 1)
while True:
    waits.poll(50)
    os.getpid()
";
    for script in [ticks, polls] {
        let calls = vec![
            begin(&python, &["python3", "-I", "-S", "-c", script], "/"),
            descriptor(0, 1, S_IFIFO, "pipe:[7]"),
            exit(0),
        ];
        ends_by_the_patience(calls);
    }
}

fn a_program_that_computes_for_longer_than_the_patience_goes_on() {
    let Some(python) = program("python3") else {
        return;
    };
    // It also makes calls that the record does not have.
    let script = "
import os, time
end = time.process_time() + 7
while time.process_time() < end:
    sum(range(100_000))
    os.getppid()
os.write(1, b'computed')
";
    let calls = vec![
        begin(&python, &["python3", "-I", "-S", "-c", script], "/"),
        descriptor(1, 2, S_IFIFO, "pipe:[8]"),
        write(1, b"computed"),
        exit(0),
    ];
    let options = Options {
        patience: Duration::from_secs(1),
        ..Options::default()
    };
    let result = run_with(vec![(0, calls)], &options);
    assert_eq!(result.stopped, None, "{result:?}");
    assert_eq!(result.likeness(), Likeness::Equal, "{result:?}");
}

fn a_signal_that_dumps_memory_ends_a_wait_that_stays() {
    let Some(python) = program("python3") else {
        return;
    };
    // The parent repeats its wait. By the time of the signal, it stays in one.
    let script = "
import os, select, signal, time
if os.fork() == 0:
    time.sleep(1)
    os.kill(os.getppid(), signal.SIGABRT)
    os._exit(0)
select.select([0], [], [])
";
    let calls = vec![
        begin(&python, &["python3", "-I", "-S", "-c", script], "/"),
        descriptor(0, 1, S_IFIFO, "pipe:[7]"),
        exit(0),
    ];
    let options = Options {
        patience: Duration::from_secs(10),
        ..Options::default()
    };
    let result = run_with(vec![(0, calls)], &options);
    assert_eq!(result.stopped, None, "{result:?}");
    let signal = result.status.map(|status| libc::WTERMSIG(status));
    assert_eq!(signal, Some(libc::SIGABRT), "{result:?}");
}

fn a_signal_comes_in_the_read_that_it_interrupted() {
    let Some(python) = program("python3") else {
        return;
    };
    // Python reads again after the handler.
    let script = "import os, signal; \
                  signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b'handled ')); \
                  os.write(1, os.read(0, 9))";
    let calls = vec![
        begin(&python, &["python3", "-I", "-S", "-c", script], "/"),
        descriptor(0, 1, S_IFIFO, "pipe:[7]"),
        handler(libc::SIGUSR1),
        failed_read(0, libc::EINTR),
        descriptor(1, 2, S_IFIFO, "pipe:[8]"),
        write_full(1, b"handled "),
        read(0, b"typed"),
        write_full(1, b"typed"),
        exit(0),
    ];
    let result = run(calls);
    assert_eq!(result.likeness(), Likeness::Equal, "{result:?}");
    assert_eq!(result.output, b"handled typed");
}

/// The clock of counters that count milliseconds, from now on.
fn milliseconds() -> RecordedClock {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now = i64::try_from(now.as_nanos()).unwrap();
    RecordedClock {
        from: (0, now),
        to: Some((1_000_000, now + 1_000_000_000_000)),
    }
}

/// Sleeps until a signal comes. `prepares`: what it does before.
fn sleeper(python: &str, signal: &str, prepares: &str) -> Call {
    let script = format!(
        "
import os, signal, time
class Ended(Exception): pass
def end(*_): raise Ended
signal.signal(signal.{signal}, end)
{prepares}
try: time.sleep(100)
except Ended: os.write(1, b'ended')
else: os.write(1, b'slept')
"
    );
    begin(python, &["python3", "-I", "-S", "-c", &script], "/")
}

fn a_sleep_lasts_until_the_signal_that_ended_it() {
    let Some(python) = program("python3") else {
        return;
    };
    let timer = "signal.setitimer(signal.ITIMER_REAL, 0.2)";
    for (signal, name, prepares) in [
        (libc::SIGALRM, "SIGALRM", timer),
        // It comes from outside.
        (libc::SIGUSR1, "SIGUSR1", ""),
    ] {
        let calls = vec![
            timed_at(1, sleeper(&python, name, prepares)),
            timed_at(200, handler(signal)),
            timed_at(201, descriptor(1, 1, S_IFIFO, "pipe:[8]")),
            timed_at(202, write_full(1, b"ended")),
            timed_at(203, exit(0)),
        ];
        let mut run = RecordedRun::arrange([(1, 0, 0, calls.into_iter())].into_iter());
        run.clock = milliseconds();
        let result = reconstruct(run, &Options::default(), || Ok(())).unwrap();
        assert_eq!(result.likeness(), Likeness::Equal, "{name}: {result:?}");
    }
}

/// Runs a parent and its child again, and asserts that they are equal. `rang`: when the timer of
/// the parent rang, in ms. `status`: that of the child. `output`: what the parent then writes.
fn family(script: &str, rang: u64, child_ends: Option<Call>, status: i32, output: &[u8]) {
    const PARENT: u32 = 100;
    // No process can have this number, so the child has one of its own.
    const CHILD: u32 = 5_000_000;
    let Some(python) = program("python3") else {
        return;
    };
    let ended = rang + 500;
    let parent = vec![
        timed_at(
            1,
            begin(&python, &["python3", "-I", "-S", "-c", script], "/"),
        ),
        timed_at(10, call(libc::SYS_fork, -1, i64::from(CHILD))),
        timed_at(rang, handler(libc::SIGALRM)),
        timed_at(rang + 1, descriptor(1, 1, S_IFIFO, "pipe:[8]")),
        timed_at(rang + 2, write_full(1, b"rang ")),
        timed_at(ended, waited(CHILD, status)),
        timed_at(ended + 1, write_full(1, output)),
        timed_at(ended + 2, exit(0)),
    ];
    let mut child = vec![timed_at(12, begin_forked())];
    child.extend(child_ends.map(|call| timed_at(ended - 1, call)));
    let all = [
        (1, PARENT, 0, parent.into_iter()),
        (2, CHILD, PARENT, child.into_iter()),
    ];
    let mut run = RecordedRun::arrange(all.into_iter());
    run.clock = milliseconds();
    let result = reconstruct(run, &Options::default(), || Ok(())).unwrap();
    assert_eq!(result.likeness(), Likeness::Equal, "{result:?}");
    assert_eq!(result.output, [b"rang ", output].concat());
}

fn a_sleeping_child_is_killed_when_the_timer_of_its_parent_rang() {
    // With this patience, a process that is killed waits for three seconds, or longer for a timer.
    let script = "
import os, signal, time
def ring(*_): os.write(1, b'rang '); os.kill(child, signal.SIGTERM)
child = os.fork()
if child == 0: time.sleep(100); os._exit(3)
signal.signal(signal.SIGALRM, ring); signal.alarm(4)
os.write(1, b'%d' % os.waitpid(child, 0)[1])
";
    family(script, 4_000, None, libc::SIGTERM, b"15");
}

fn a_killed_child_waits_for_its_killer_as_long_as_the_patience_allows() {
    const PARENT: u32 = 100;
    // No process can have this number, so the child has one of its own.
    const CHILD: u32 = 5_000_000;
    let Some(python) = program("python3") else {
        return;
    };
    // A process outside the run killed the child, and none does now.
    let script = "
import os, time
child = os.fork()
if child == 0: time.sleep(100); os._exit(3)
os.write(1, b'%d' % os.waitpid(child, 0)[1])
";
    let words = ["python3", "-I", "-S", "-c", script];
    let parent = vec![
        timed_at(1, begin(&python, &words, "/")),
        timed_at(10, call(libc::SYS_fork, -1, i64::from(CHILD))),
        timed_at(500, waited(CHILD, libc::SIGTERM)),
        timed_at(501, descriptor(1, 1, S_IFIFO, "pipe:[8]")),
        timed_at(502, write_full(1, b"15")),
        timed_at(503, exit(0)),
    ];
    let child = vec![timed_at(12, begin_forked())];
    let all = [
        (1, PARENT, 0, parent.into_iter()),
        (2, CHILD, PARENT, child.into_iter()),
    ];
    let mut run = RecordedRun::arrange(all.into_iter());
    run.clock = milliseconds();
    let options = Options {
        patience: Duration::from_secs(1),
        ..Options::default()
    };
    let result = reconstruct(run, &options, || Ok(())).unwrap();
    assert_eq!(result.stopped, None, "{result:?}");
    assert_eq!(result.likeness(), Likeness::Equal, "{result:?}");
    assert_eq!(result.output, b"15");
}

fn a_child_sleeps_until_the_timer_of_its_parent_rang_before() {
    let script = "
import os, signal, time
def ring(*_): os.write(1, b'rang ')
child = os.fork()
if child == 0: time.sleep(0.6); os._exit(3)
signal.signal(signal.SIGALRM, ring); signal.setitimer(signal.ITIMER_REAL, 0.2)
os.write(1, b'%d' % os.waitpid(child, 0)[1])
";
    family(script, 220, Some(exit(3)), 3 << 8, b"768");
}

fn a_child_has_the_user_that_its_parent_had_when_it_was_made() {
    let Some(python) = program("python3") else {
        return;
    };
    // The child waits without a call.
    let script = "
import mmap, os
has_changed = mmap.mmap(-1, 8)
os.write(1, b'user ')
if os.fork() == 0:
    while not has_changed[0]: pass
    os.write(1, b'%d' % os.getuid()); os._exit(0)
os.setuid(7); has_changed[0] = 1
os.wait()
";
    let user = std::fs::metadata("/proc/self").unwrap().uid().to_string();
    let last = std::fs::read_to_string("/proc/sys/kernel/ns_last_pid").unwrap_or_default();
    let (own, child) = (10, last.trim().parse::<u32>().unwrap_or(1000) + 100);
    let of_parent = vec![
        begin(&python, &["python3", "-I", "-S", "-c", script], "/"),
        descriptor(1, 1, S_IFIFO, "pipe:[8]"),
        write_full(1, b"user "),
        call(libc::SYS_fork, -1, i64::from(child)),
        exit(0),
    ];
    let of_child = vec![
        begin_forked(),
        descriptor(1, 1, S_IFIFO, "pipe:[8]"),
        write_full(1, user.as_bytes()),
        exit(0),
    ];
    let all = [(1, own, 0, of_parent), (2, child, own, of_child)];
    let all = all.map(|(epoch, pid, parent, calls)| (epoch, pid, parent, calls.into_iter()));
    let run = RecordedRun::arrange(all.into_iter());
    let result = reconstruct(run, &Options::default(), || Ok(())).unwrap();
    assert_eq!(result.likeness(), Likeness::Equal, "{result:?}");
    assert_eq!(result.output, format!("user {user}").as_bytes());
}

fn a_program_that_is_gone_is_an_error() {
    let calls = vec![begin("/nonexistent/program", &["program"], "/"), exit(0)];
    let run = RecordedRun::arrange([(1, 0, 0, calls.into_iter())].into_iter());
    let error = reconstruct(run, &Options::default(), || Ok(())).unwrap_err();
    assert!(
        error.to_string().contains("/nonexistent/program"),
        "{error}"
    );
}

/// A server whose other thread writes the answer, and wakes the loop by a pipe.
const POOL: &str = r#"
import os, select, threading
loop, (woken, wakes) = select.epoll(), os.pipe()
loop.register(0, select.EPOLLIN); loop.register(woken, select.EPOLLIN)
def work():
    sum(range(3_000_000)); os.write(wakes, b"x")
while True:
    for fd, _ in loop.poll():
        if fd == woken:
            os.read(woken, 1); os.write(0, b"answer")
        elif not os.read(0, 100):
            os._exit(0)
        else:
            threading.Thread(target=work).start()
"#;

fn a_peer_that_waits_for_the_answer_closes_after_it() {
    let Some(python) = program("python3") else {
        return;
    };
    let calls = vec![
        begin(&python, &["python3", "-I", "-S", "-c", POOL], "/"),
        descriptor(0, 1, S_IFSOCK, "socket:[9]"),
        read(0, b"question"),
        write_full(0, b"answer"),
        read(0, b""),
        exit(0),
    ];
    let result = run(timed(calls));
    assert_eq!(result.likeness(), Likeness::Equal, "{result:?}");
}

fn the_record_says_which_files_a_program_may_use() {
    let Some(python) = program("python3") else {
        return;
    };
    let script = "import os; print(*[os.access(p, m) for m in (os.W_OK, os.R_OK) for p in ('/bin', '/none')])";
    let calls = vec![
        begin(&python, &["python3", "-I", "-S", "-c", script], "/"),
        access("/bin", libc::W_OK, -i64::from(libc::EACCES)),
        // The file is not there any more, so the record is not about it.
        access("/none", libc::W_OK, 0),
        access("/bin", libc::R_OK, 0),
        descriptor(1, 2, S_IFIFO, "pipe:[8]"),
        write_full(1, b"False False True False\n"),
        exit(0),
    ];
    let result = run(calls);
    assert_eq!(result.likeness(), Likeness::Equal, "{result:?}");
}

fn a_passed_descriptor_reads_what_was_recorded_of_it() {
    let Some(python) = program("python3") else {
        return;
    };
    let script = "import os, socket; s = socket.socket(fileno=0); \
                  m, (fd,), _, _ = socket.recv_fds(s, 9, 1); print(m, os.read(fd, 9))";
    let calls = vec![
        begin(&python, &["python3", "-I", "-S", "-c", script], "/"),
        descriptor(0, 1, S_IFSOCK, "socket:[9]"),
        receive_descriptor(0, b"take", 5),
        descriptor(5, 2, S_IFSOCK, "socket:[10]"),
        read(5, b"bytes"),
        descriptor(1, 3, S_IFIFO, "pipe:[8]"),
        write_full(1, b"b'take' b'bytes'\n"),
        exit(0),
    ];
    let result = run(timed(calls));
    assert_eq!(result.likeness(), Likeness::Equal, "{result:?}");
}

fn a_socket_has_its_name_in_the_file_system_again() {
    let Some(python) = program("python3") else {
        return;
    };
    let script = "import os, socket, sys, tempfile; d = tempfile.mkdtemp(); p = d + '/s'; \
                  s = socket.socket(socket.AF_UNIX); s.bind(p); os.chmod(p, 0o600); \
                  print(os.listdir(d)); os.unlink(p); os.rmdir(d)";
    let calls = vec![
        begin(&python, &["python3", "-I", "-S", "-c", script], "/"),
        unix_socket(3),
        bind(3, "/elsewhere/s"),
        descriptor(1, 3, S_IFIFO, "pipe:[8]"),
        write_full(1, b"['s']\n"),
        exit(0),
    ];
    let result = run(calls);
    assert_eq!(result.likeness(), Likeness::Equal, "{result:?}");
}

fn a_file_with_another_content_than_the_recorded_one_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    let path = file.to_str().unwrap();
    let run_with = |content: &str| {
        std::fs::write(&file, content).unwrap();
        run(vec![
            begin("/bin/cat", &["cat", path], "/"),
            open(path, 3),
            descriptor(3, 1, libc::S_IFREG, path),
            read_of_file(3, 1, 0, b"hello"),
            descriptor(1, 2, S_IFIFO, "pipe:[8]"),
            write(1, b"hello"),
            exit(0),
        ])
    };
    assert_eq!(run_with("hello").other_files, []);
    let found = run_with("other").other_files;
    assert_eq!(found, [(path.to_owned(), 0)]);
}

fn a_program_that_waited_for_a_connection_is_at_the_time_when_it_came() {
    let Some(python) = program("python3") else {
        return;
    };
    let script = "import os, select, socket, time; s = socket.socket(fileno=0); \
                  select.select([s], [], []); t = int(time.time()); c, _ = s.accept(); \
                  os.write(c.fileno(), b'%d' % t)";
    let mut accepted = call(libc::SYS_accept4, 0, 4);
    accepted.time = 500;
    let calls = vec![
        begin(&python, &["python3", "-I", "-S", "-c", script], "/"),
        descriptor(0, 1, S_IFSOCK, "socket:[9]"),
        accepted,
        write_full(4, b"500"),
        exit(0),
    ];
    let mut run = RecordedRun::arrange([(1, 0, 0, calls.into_iter())].into_iter());
    // A counter counts seconds.
    run.clock = RecordedClock {
        from: (0, 0),
        to: Some((1000, 1000 * 1_000_000_000)),
    };
    let result = reconstruct(run, &Options::default(), || Ok(())).unwrap();
    assert_eq!(result.likeness(), Likeness::Equal, "{result:?}");
}

fn a_program_sees_its_recorded_group_and_may_leave_it_as_in_the_record() {
    let Some(python) = program("python3") else {
        return;
    };
    const OWN: i64 = 100;
    // Another process led its group.
    const CALLERS: i64 = 70;
    let script = "
import os, signal
signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b'signalled '))
os.killpg(os.getpgrp(), signal.SIGUSR1)
os.setsid()
os.write(1, b'%d %d' % (os.getpgrp() == os.getpid(), os.getsid(0)))
";
    let calls = vec![
        begin(&python, &["python3", "-I", "-S", "-c", script], "/"),
        call(libc::SYS_getpgrp, -1, CALLERS),
        descriptor(1, 1, S_IFIFO, "pipe:[8]"),
        write_full(1, b"signalled "),
        call(libc::SYS_setsid, -1, OWN),
        call(libc::SYS_getpgrp, -1, OWN),
        call(libc::SYS_getpid, -1, OWN),
        call(libc::SYS_getsid, -1, OWN),
        write_full(1, b"1 100"),
        exit(0),
    ];
    let result = run_with(vec![(OWN as u32, timed(calls))], &Options::default());
    assert_eq!(result.likeness(), Likeness::Equal, "{result:?}");
    assert_eq!(result.output, b"signalled 1 100");
}

fn main() {
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    macro_rules! tests {
        ($($test:ident),* $(,)?) => {
            $(if wanted.as_ref().is_none_or(|wanted| stringify!($test).contains(wanted.as_str())) {
                println!("test {}", stringify!($test));
                $test();
            })*
        };
    }
    tests![
        a_program_gets_its_recorded_input_and_its_output_is_equal,
        other_output_is_found_with_both_contexts,
        missing_output_is_found,
        another_status_is_found,
        a_signal_in_the_place_of_a_status_is_found,
        a_program_that_ends_before_its_cut_record_does_is_found,
        sorting_and_python_come_back,
        input_of_ones_own_shows_what_the_program_would_have_done,
        a_program_that_hangs_is_ended_and_reported,
        a_program_that_repeats_a_wait_for_ever_is_ended_and_reported,
        a_program_that_makes_calls_for_ever_and_takes_nothing_of_its_record_is_ended_and_reported,
        a_program_that_computes_for_longer_than_the_patience_goes_on,
        a_signal_that_dumps_memory_ends_a_wait_that_stays,
        a_signal_comes_in_the_read_that_it_interrupted,
        a_sleep_lasts_until_the_signal_that_ended_it,
        a_sleeping_child_is_killed_when_the_timer_of_its_parent_rang,
        a_killed_child_waits_for_its_killer_as_long_as_the_patience_allows,
        a_child_sleeps_until_the_timer_of_its_parent_rang_before,
        a_child_has_the_user_that_its_parent_had_when_it_was_made,
        an_execution_that_fails_leaves_the_memory_of_its_caller_as_it_was,
        a_program_that_is_gone_is_an_error,
        a_peer_that_waits_for_the_answer_closes_after_it,
        the_record_says_which_files_a_program_may_use,
        a_passed_descriptor_reads_what_was_recorded_of_it,
        a_socket_has_its_name_in_the_file_system_again,
        a_file_with_another_content_than_the_recorded_one_is_named,
        a_program_that_waited_for_a_connection_is_at_the_time_when_it_came,
        a_program_sees_its_recorded_group_and_may_leave_it_as_in_the_record,
        a_thread_has_the_time_of_its_own_calls_and_sleeps,
        a_thread_that_waited_for_another_one_is_not_at_an_earlier_time,
        threads_that_wait_for_nothing_else_get_the_signal_from_outside,
        a_signal_from_outside_comes_behind_the_work_of_another_thread,
    ];
}
