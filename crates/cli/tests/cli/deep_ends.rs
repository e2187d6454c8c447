//! `replay --deep` compares how programs end: with which status, or by which signal.

use backstory_testkit::need::needs;

use super::Place;
use super::deep_equal::{program_writes_again, writer};
use super::deep_replay::recorded_program;

/// Writes the same bytes in each case, and then ends as its variables say. With an argument, a
/// child of it does so, and it does not look at how the child ended.
const ENDING: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static int has(const char *name)
{
    const char *value = getenv(name);
    return value && *value;
}
static void late(void)
{
    if (has("LATE")) abort();
}
int main(int count, char **words)
{
    pid_t child = count > 1 ? fork() : 0;
    if (child != 0) {
        waitpid(child, 0, 0);
        return 0;
    }
    atexit(late);
    puts("begun");
    fflush(stdout);
    if (has("CRASH")) abort();
    if (has("LATE")) exit(0);
    return has("STATUS") ? 3 : 0;
}
"#;

/// Where such a program was recorded. `None`: there is no compiler.
fn recorded(line: &str) -> Option<Place> {
    recorded_program("", "ending", ENDING, line)
}

/// A replay with another variable differs, and the report has these parts.
fn differs(place: &Place, variable: &str, parts: &[&str]) {
    let Some(answer) = place.again(&[variable]) else {
        return;
    };
    assert_eq!(answer.status, 1, "{answer:?}");
    for part in [&["different: ", "another end of process"], parts].concat() {
        assert!(answer.err.contains(part), "{part}: {answer:?}");
    }
}

#[test]
fn a_signal_in_the_place_of_an_exit_is_a_difference_also_in_a_child() {
    for (line, came) in [
        ("RECORD ./ending | cat > out", "came     signal 6"),
        ("RECORD ./ending child | cat > out", "came     a signal"),
    ] {
        let Some(place) = recorded(line) else { return };
        place.is_equal_again();
        differs(&place, "--env=CRASH=1", &[came]);
    }
}

#[test]
fn a_signal_that_a_program_handled_before_does_not_end_it_at_a_read_behind_its_record() {
    if !needs("a program that handles a signal", &["python3"]) {
        return;
    }
    let script = r#"
import os, signal
signal.signal(signal.SIGUSR1, lambda *_: None)
os.kill(os.getpid(), signal.SIGUSR1)
signal.signal(signal.SIGUSR1, signal.SIG_DFL)
os.read(0, 100)
if os.environ.get("MORE"): os.read(0, 100)
"#;
    let place = Place::new();
    place.write_aged("script.py", script);
    place.deep("echo line | RECORD python3 script.py");
    let Some(answer) = place.again(&["--env=MORE=1"]) else {
        return;
    };
    let is_behind = answer.err.contains("a read behind the recorded input");
    assert!(is_behind && !answer.err.contains("signal 10"), "{answer:?}");
}

#[test]
fn another_status_of_the_command_is_a_difference() {
    if let Some(place) = recorded("RECORD ./ending | cat > out") {
        let parts = ["recorded status 0", "came     status 3"];
        differs(&place, "--env=STATUS=1", &parts);
    }
}

#[test]
fn a_program_that_failed_in_the_record_fails_again_or_is_different() {
    let Some(place) = recorded("CRASH=1 RECORD ./ending | cat > out") else {
        return;
    };
    place.is_equal_again();
    let parts = ["recorded signal 6", "came     status 0"];
    differs(&place, "--env=CRASH=", &parts);
}

/// The exit is recorded before the handlers run.
#[test]
fn a_program_that_failed_in_a_handler_of_its_exit_is_equal_if_it_does_so_again() {
    let Some(place) = recorded("LATE=1 RECORD ./ending | cat > out") else {
        return;
    };
    place.is_equal_again();
}

/// Waits for input, which comes when its child has ended. The child works for a while before it
/// executes its last program.
const LATE_CHILD: &str = r#"
import os, select, signal
class Ended(Exception):
    pass
def ended(*_):
    raise Ended
signal.signal(signal.SIGCHLD, ended)
try:
    if os.fork() == 0:
        os.getuid(); sum(range(20_000_000))
        os.execv("/bin/true", ["true"])
    select.select([0], [], [])
    print("input", flush=True)
except Ended:
    print("ended", flush=True)
os.read(0, 9)
"#;

#[test]
fn a_wait_is_over_when_a_child_has_ended_that_executed_another_program() {
    if !needs("a child that executes a program", &["python3"]) {
        return;
    }
    let place = Place::new();
    place.write_aged("late.py", LATE_CHILD);
    let late = "for n in $(seq 600); do grep -qs ended out && break; sleep 0.05; done; echo late";
    place.deep(&format!("({late}) | RECORD python3 late.py > out"));
    assert_eq!(place.out(), "ended\n");
    place.is_equal_again();
}

/// Makes children that end at once, and calls that the kernel lets no signal interrupt. The handler
/// has no `SA_RESTART`, as that of dash.
const MANY_ENDS: &str = r#"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static void handler(int signal) { (void)signal; }
int main(void)
{
    struct sigaction ended = {.sa_handler = handler};
    int made = 0, interrupted = 0;
    sigaction(SIGCHLD, &ended, 0);
    for (int i = 0; i < 100; i++) {
        pid_t child = fork();
        if (child == 0) _exit(0);
        made += child > 0;
        for (int j = 0; j < 20; j++)
            interrupted += getppid() < 0;
    }
    while (wait(0) > 0 || errno == EINTR)
        ;
    printf("%d made, %d interrupted\n", made, interrupted);
    return 0;
}
"#;

#[test]
fn a_child_that_ends_interrupts_no_call_that_the_kernel_would_not_interrupt() {
    program_writes_again("", "ends", MANY_ENDS, "100 made, 0 interrupted\n");
}

/// Lets a child end, and makes the next one meanwhile. The handler of the end lets another process
/// make a child, and waits for that. The numbers of all children are printed. A third process makes
/// many calls, so that the supervisor receives those of the others late.
const CREATES_IN_BETWEEN: &str = r#"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static int ask[2], answer[2], go[2][2];
static volatile sig_atomic_t ended;
static void handler(int signal)
{
    int child = 0;
    (void)signal;
    while (write(ask[1], "x", 1) < 0 && errno == EINTR)
        ;
    while (read(answer[0], &child, sizeof child) < 0 && errno == EINTR)
        ;
    ended++;
}
static void other(void)
{
    char byte;
    int busy = fork();
    for (int i = 0; busy == 0 && i < 50000; i++) getppid();
    if (busy == 0) _exit(0);
    while (read(ask[0], &byte, 1) == 1 && byte == 'x') {
        int child = fork();
        if (child == 0) _exit(0);
        waitpid(child, 0, 0);
        if (write(answer[1], &child, sizeof child) < 0) break;
    }
    waitpid(busy, 0, 0);
    _exit(0);
}
static int waiting(const int *go)
{
    char byte;
    int child = fork();
    if (child == 0) _exit(read(go[0], &byte, 1) != 1);
    return child;
}
int main(void)
{
    struct sigaction action = {.sa_handler = handler};
    int children[101];
    if (pipe(ask) || pipe(answer) || pipe(go[0]) || pipe(go[1])) return 1;
    if (fork() == 0) other();
    sigaction(SIGCHLD, &action, 0);
    children[0] = waiting(go[0]);
    for (int i = 1; i <= 100; i++) {
        if (write(go[(i - 1) % 2][1], "x", 1) != 1) return 2;
        for (volatile int wait = i * 2000; wait > 0; wait--)
            ;
        children[i] = waiting(go[i % 2]);
        while (ended < i)
            ;
        waitpid(children[i - 1], 0, 0);
    }
    if (write(go[0][1], "x", 1) != 1) return 2;
    while (ended <= 100)
        ;
    signal(SIGCHLD, SIG_DFL);
    if (write(ask[1], "e", 1) != 1) return 2;
    while (wait(0) > 0)
        ;
    for (int i = 0; i <= 100; i++) printf("%d\n", children[i]);
    return 0;
}
"#;

#[test]
fn a_child_has_its_number_if_a_signal_and_another_process_came_before_it() {
    let Some(place) = writer("", "between", CREATES_IN_BETWEEN) else {
        return;
    };
    assert_eq!(place.out().lines().count(), 101);
    place.is_equal_again();
}
