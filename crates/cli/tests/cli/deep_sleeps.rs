//! `replay --deep`: sleeps that a signal ended in the record last until the signal comes again.

use backstory_testkit::need::needs;

use super::Place;
use super::deep_equal::{SCRIPT, program_writes_again, recorded_script};

/// Records a script of Python deeply, which prints this, and runs it again. Its output is equal.
#[track_caller]
fn runs_again(script: &str, expected: &str) {
    if !needs("sleeps that a signal ends", &["python3"]) {
        return;
    }
    let place = recorded_script(script, SCRIPT);
    let out = place.out();
    assert!(out.contains(expected), "{out}");
    place.is_equal_again_with(&[], script);
}

/// Sends a signal to a child that sleeps, and prints what the child has told, and how it ended.
const SENDER: &str = r#"
import signal, subprocess, sys, time
code = """
import select, sys, time
sys.stdout.write("x"); sys.stdout.flush()
SLEEP
print("slept")
"""
# The child would ignore a signal that its parent ignores.
signal.signal(signal.SIGINT, signal.default_int_handler)
p = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
p.stdout.read(1)
# The traceback of the child has the line that it was at.
time.sleep(1)
p.send_signal(signal.SIGNAL)
print(*p.communicate(), p.wait())
"#;

#[test]
fn a_child_sleeps_until_its_parent_sends_the_signal_that_ended_the_sleep() {
    for sleep in ["time.sleep(30)", "select.select([], [], [], 30)"] {
        for (signal, expected) in [("SIGINT", "KeyboardInterrupt"), ("SIGTERM", "b'' b'' -15")] {
            let script = SENDER.replace("SLEEP", sleep).replace("SIGNAL", signal);
            runs_again(&script, expected);
        }
    }
}

#[test]
fn a_child_is_killed_again_when_the_time_of_its_parent_was_up() {
    let script = r#"
import subprocess
p = subprocess.Popen(["sleep", "30"])
try: p.wait(timeout=0.4)
except subprocess.TimeoutExpired: print("late")
print(p.poll())
p.terminate()
print(p.wait())
"#;
    runs_again(script, "late\nNone\n-15\n");
}

#[test]
fn a_child_sleeps_until_the_alarm_that_its_parent_had_before() {
    let script = r#"
import os, signal, time
child = os.fork()
if child == 0:
    time.sleep(0.8)
    os._exit(3)
signal.signal(signal.SIGALRM, lambda *_: os.write(1, b"rang\n"))
signal.setitimer(signal.ITIMER_REAL, 0.2)
os.write(1, b"%d\n" % os.waitpid(child, 0)[1])
"#;
    runs_again(script, "rang\n768\n");
}

#[test]
fn timeout_ends_a_sleep_again_also_behind_the_time_that_a_killed_process_waits() {
    if !needs("programs with a limit of time", &["timeout"]) {
        return;
    }
    for line in [
        "timeout 0.3 sleep 5; echo $?",
        "timeout 4 sleep 30; echo $?",
        // Nothing in the record says that a signal killed this sleep.
        "timeout 4 sh -c \"sleep 30; touch made\"; echo $?",
    ] {
        let place = Place::new();
        place.deep(&format!("RECORD sh -c '{line}' > out 2> errors"));
        assert_eq!(place.out(), "124\n", "{line}");
        place.forget_everything();
        place.is_alike_again("equal", line);
    }
}

/// Says how much of a sleep was left when a timer ended it.
const RUNG: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>
static volatile int rang;
static void ring(int signal) { rang = signal; }
int main(void)
{
    struct timespec length = {30, 0}, rest = {0, 0};
    struct itimerval soon = {.it_value = {.tv_usec = 300000}};
    signal(SIGALRM, ring);
    setitimer(ITIMER_REAL, &soon, 0);
    int result = nanosleep(&length, &rest);
    printf("%d %ld %d\n", result, (long)rest.tv_sec, rang);
    return 0;
}
"#;

#[test]
fn a_sleep_that_a_timer_ended_has_the_same_rest_again() {
    program_writes_again("", "rung", RUNG, "-1 29 14\n");
}
