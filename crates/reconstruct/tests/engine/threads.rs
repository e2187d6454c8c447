//! Threads of a program run again: their clocks, and the signal that ends them all.

use super::calls::*;
use super::{milliseconds, program};
use backstory_deep::Call;
use backstory_reconstruct::RecordedRun;
use backstory_reconstruct::engine::{Options, reconstruct};
use backstory_reconstruct::time::RecordedClock;
use backstory_reconstruct::verdict::{Likeness, Reconstruction};
use libc::{EINTR, S_IFIFO, SIGINT};
use std::time::Duration;

/// No thread can have this number, so the worker has one of its own.
const WORKER: u32 = 5_000_000;

/// Runs a script of Python again, which has a worker and these recorded calls. `None`: there is no
/// Python.
fn again(script: &str, clock: RecordedClock, calls: Vec<Call>) -> Option<Reconstruction> {
    let python = program("python3")?;
    let words = ["python3", "-I", "-S", "-c", script];
    let mut all = vec![
        timed_at(1, begin(&python, &words, "/")),
        timed_at(2, begin_thread(WORKER)),
    ];
    all.extend(calls);
    let mut run = RecordedRun::arrange([(1, 0, 0, all.into_iter())].into_iter());
    run.clock = clock;
    // A signal that is awaited in vain comes behind the patience.
    let options = Options {
        patience: Duration::from_secs(6),
        ..Options::default()
    };
    Some(reconstruct(run, &options, || Ok(())).unwrap())
}

fn is_equal(result: Option<Reconstruction>, output: &[u8]) {
    let Some(result) = result else { return };
    assert_eq!(result.stopped, None, "{result:?}");
    assert_eq!(result.likeness(), Likeness::Equal, "{result:?}");
    assert_eq!(result.output, output, "{result:?}");
}

/// The pipes that a program reads, writes and polls, in this order.
fn pipes() -> Vec<Call> {
    let all = [(0, "pipe:[7]"), (1, "pipe:[8]"), (3, "pipe:[9]")];
    let pipe = |(fd, link): (i32, &str)| descriptor(fd, 1 + fd as u64, S_IFIFO, link);
    all.map(|one| timed_at(3, pipe(one))).into()
}

/// Runs a script of Python again, in which `BASE` is the second at the counter 0. Counters count
/// milliseconds.
fn again_at_base(script: &str, calls: Vec<Call>) -> Option<Reconstruction> {
    let mut clock = milliseconds();
    let base = clock.from.1 / 1_000_000_000;
    clock.from.1 = base * 1_000_000_000;
    clock.to = Some((1_000_000, (base + 1_000) * 1_000_000_000));
    again(&script.replace("BASE", &base.to_string()), clock, calls)
}

/// A call of the worker, at this time.
fn works(time: u64, call: Call) -> Call {
    timed_at(time, of_thread(WORKER, call))
}

pub fn a_thread_has_the_time_of_its_own_calls_and_sleeps() {
    // The first thread is far ahead while the other one computes, and its waits take no time.
    let script = "
import os, select, threading, time
def work():
    for rest in (0, 2, 0):
        os.read(0, 9); sum(range(1_000_000)); time.sleep(rest)
        os.write(1, b'%d ' % (int(time.time()) - BASE))
worker = threading.Thread(target=work); worker.start()
poll = select.poll(); poll.register(3, select.POLLIN)
while worker.is_alive(): poll.poll(500)
";
    let mut calls = pipes();
    for (came, left, second) in [
        (10_100, 10_200, b"10 "),
        (20_100, 22_200, b"22 "),
        (30_100, 30_200, b"30 "),
    ] {
        calls.push(works(came, read(0, b"x")));
        calls.push(works(left, write_full(1, second)));
    }
    calls.extend([100_000, 200_000].map(|time| timed_at(time, polled(3, 0))));
    calls.push(timed_at(300_000, exit(0)));
    is_equal(again_at_base(script, calls), b"10 22 30 ");
}

pub fn a_thread_that_waited_for_another_one_is_not_at_an_earlier_time() {
    // No call says that the worker waits for the lock.
    let script = "
import os, threading, time
lock = threading.Lock(); lock.acquire()
def work():
    lock.acquire(); os.write(1, b'%d' % (int(time.time()) - BASE))
worker = threading.Thread(target=work); worker.start()
os.read(0, 9); time.sleep(5); lock.release(); worker.join()
os.write(1, b' %d' % (int(time.time()) - BASE))
";
    let mut calls = pipes();
    calls.extend([
        timed_at(10_100, read(0, b"x")),
        works(15_200, write_full(1, b"15")),
        timed_at(15_300, write_full(1, b" 15")),
        timed_at(15_400, exit(0)),
    ]);
    is_equal(again_at_base(script, calls), b"15 15");
}

pub fn threads_that_wait_for_nothing_else_get_the_signal_from_outside() {
    // A program has no handler of a signal that it ignores from its beginning on.
    let outlived = backstory_sys::outlive_interrupts();
    for waits in ["worker.join()", "signal.pause()", "time.sleep(100)"] {
        let script = format!(
            "
import os, signal, threading, time
ended = threading.Event()
def work(): os.write(1, b'works '); ended.wait()
worker = threading.Thread(target=work); worker.start()
try: {waits}
except KeyboardInterrupt: os.write(1, b'ended')
ended.set()
"
        );
        let mut calls = pipes();
        calls.extend([
            works(10, write_full(1, b"works ")),
            timed_at(500, handler(SIGINT)),
            timed_at(501, write_full(1, b"ended")),
            timed_at(502, exit(0)),
        ]);
        is_equal(again(&script, milliseconds(), calls), b"works ended");
    }
    drop(outlived);
}

pub fn a_signal_from_outside_comes_behind_the_work_of_another_thread() {
    let script = "
import os, select, threading
def work(): sum(range(10_000_000)); os.write(1, b'worked')
threading.Thread(target=work).start()
poll = select.poll(); poll.register(3, select.POLLIN)
try:
    while True: poll.poll(100)
except KeyboardInterrupt: os._exit(0)
";
    let mut calls = pipes();
    calls.extend([
        works(300, write_full(1, b"worked")),
        timed_at(400, handler(SIGINT)),
        timed_at(390, polled(3, -i64::from(EINTR))),
        timed_at(402, exit(0)),
    ]);
    is_equal(again(script, milliseconds(), calls), b"worked");
}
