//! `replay --deep --with valgrind`: Valgrind runs in the program's own process, and makes calls of
//! its own.

use backstory_testkit::need::needs;

use super::deep_replay::recorded_program;

/// A program with a pipe. Its child by `fork` has another one, and sends a byte back.
const PIPES: &str = r#"
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    int ours[2], own[2];
    char byte = 'x';
    if (pipe(ours) != 0)
        return 1;
    if (fork() == 0) {
        if (pipe(own) != 0 || write(own[1], "z", 1) != 1 || read(own[0], &byte, 1) != 1)
            _exit(2);
        _exit(write(ours[1], &byte, 1) == 1 ? 0 : 3);
    }
    if (read(ours[0], &byte, 1) != 1)
        return 4;
    wait(NULL);
    printf("%c\n", byte);
    return 0;
}
"#;

#[test]
fn the_lock_of_valgrind_takes_no_pipe_of_the_program_or_of_its_child() {
    if !needs("a replay under valgrind", &["valgrind"]) {
        return;
    }
    let Some(place) = recorded_program("", "pipes", PIPES, "RECORD ./pipes > out") else {
        return;
    };
    let Some(answer) = place.again(&["--with", "valgrind"]) else {
        return;
    };
    assert_eq!(answer.status, 0, "{answer:?}");
    for part in ["equal: 2 programs", "ERROR SUMMARY: 0 errors"] {
        assert!(answer.err.contains(part), "{part}: {answer:?}");
    }
}
