//! `replay --deep`: sleeps that a signal ended in the record last until the signal comes again.
//! Signals interrupt no other calls than in the record.

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

/// A timer rings in waits for a socket. Prints how each ended, and how often the handler has run.
const RINGS_IN_A_WAIT: &str = r#"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
static volatile sig_atomic_t rang;
static void ring(int signal) { (void)signal; rang++; }
static int by_epoll(int fd, int ms)
{
    struct epoll_event one = {.events = EPOLLIN};
    int set = epoll_create1(0);
    epoll_ctl(set, EPOLL_CTL_ADD, fd, &one);
    return epoll_wait(set, &one, 1, ms);
}
static int by_select(int fd, int ms)
{
    struct timeval time = {ms / 1000, ms % 1000 * 1000};
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    return select(fd + 1, &set, NULL, NULL, &time);
}
static int by_poll(int fd, int ms)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};
    return poll(&one, 1, ms);
}
int main(void)
{
    int (*waits[])(int, int) = {by_epoll, by_select, by_poll}, pair[2];
    struct sigaction action = {.sa_handler = ring};
    struct itimerval soon = {.it_value = {0, 200000}};
    sigaction(SIGALRM, &action, NULL);
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    for (int n = 0; n < 3; n++) {
        setitimer(ITIMER_REAL, &soon, NULL);
        int result = waits[n](pair[0], 3000);
        printf("%d %d %d ", result, result < 0 && errno == EINTR, rang);
        printf("%d\n", waits[n](pair[0], 10));
    }
    return 0;
}
"#;

#[test]
fn a_wait_for_a_socket_lasts_until_the_timer_that_interrupted_it() {
    let text = "-1 1 1 0\n-1 1 2 0\n-1 1 3 0\n";
    program_writes_again("", "rings", RINGS_IN_A_WAIT, text);
}

/// A timer rings while a child reads, and its handler has `SA_RESTART`. The parent then works and
/// kills the child, and does not wait for it.
const READS_ON: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static int rang[2];
static void ring(int signal) { (void)signal; (void)!write(rang[1], "r", 1); }
int main(void)
{
    struct sigaction rings = {.sa_handler = ring, .sa_flags = SA_RESTART};
    int silent[2];
    char byte;
    (void)!pipe(rang);
    (void)!pipe(silent);
    pid_t child = fork();
    if (child == 0) {
        sigaction(SIGALRM, &rings, 0);
        alarm(1);
        if (read(silent[0], &byte, 1) < 0)
            (void)!write(1, "interrupted\n", 12);
        _exit(0);
    }
    (void)!read(rang[0], &byte, 1);
    for (volatile long i = 0; i < 300000000; i++)
        ;
    kill(child, SIGKILL);
    puts("killed");
    return 0;
}
"#;

#[test]
fn a_read_that_the_kernel_made_again_behind_a_handler_goes_on() {
    program_writes_again("", "reads", READS_ON, "killed\n");
}

/// Takes the time while a timer rings a thousand times in a second.
const RINGS_OFTEN: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>
static void ring(int signal) { (void)signal; }
int main(void)
{
    struct sigaction rings = {.sa_handler = ring};
    struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    struct timespec exact;
    struct timeval now;
    int failed = 0;
    sigaction(SIGALRM, &rings, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 5000; i++) {
        failed += clock_gettime(CLOCK_MONOTONIC, &exact) != 0;
        failed += gettimeofday(&now, NULL) != 0;
        failed += time(NULL) < 0;
    }
    setitimer(ITIMER_REAL, &never, NULL);
    printf("%d failed\n", failed);
    return 0;
}
"#;

#[test]
fn a_signal_lets_no_question_for_the_time_fail() {
    program_writes_again("", "often", RINGS_OFTEN, "0 failed\n");
}
