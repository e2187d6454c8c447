//! `replay --deep` of processes that share their descriptors, have numbers of their own, or search
//! for the programs that they execute.

use backstory_testkit::need::{needs, skipped};

use super::Place;
use super::deep_equal::{is_equal, program_is_equal_again, program_writes_again};
use super::deep_replay::compiled;

/// A child in the same table of descriptors opens a file under a number that was used before.
const OPENED_ASIDE: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
static char stack[65536] __attribute__((aligned(16)));
static int passed = -1;
static int opens(void *name)
{
    passed = open(name, O_WRONLY | O_CREAT, 0644);
    return passed < 0;
}
int main(void)
{
    int own = open("own", O_WRONLY | O_CREAT, 0644), status = 1;
    if (write(own, "own\n", 4) != 4 || close(own) != 0)
        return 1;
    int flags = CLONE_FILES | CLONE_VM | CLONE_VFORK | SIGCHLD;
    pid_t child = clone(opens, stack + sizeof stack, flags, "passed");
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0 || passed != own)
        return 2;
    return write(passed, "passed\n", 7) != 7;
}
"#;

#[test]
fn a_program_writes_to_the_file_that_a_child_opened_in_its_table_of_descriptors() {
    let place = Place::new();
    if !compiled(&place, "", "aside", OPENED_ASIDE) {
        return;
    }
    place.deep("RECORD ./aside");
    place.forget_everything();
    let Some(report) = place.report(&[], 0) else {
        return;
    };
    let found = &report["reconstruction"];
    // The recorder logs no call of the child.
    assert_eq!(found["verdict"], "equal-where-recorded", "{found:#}");
    let outputs = report["outputs"].as_array().unwrap();
    let are_identical = outputs.iter().all(|one| one["state"] == "identical");
    assert!(outputs.len() == 2 && are_identical, "{report:#}");
}

/// A child without a record, and behind it one in a pid namespace of its own. The recorder logs the
/// making of neither.
const TWO_UNANNOUNCED: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static char stack[65536] __attribute__((aligned(16)));
static int opens(void *name)
{
    return open(name, O_WRONLY | O_CREAT, 0644) < 0;
}
static int fails(pid_t child)
{
    int status = 1;
    return child < 0 || waitpid(child, &status, 0) != child || status != 0;
}
int main(void)
{
    int flags = CLONE_VM | CLONE_VFORK | SIGCHLD;
    if (fails(clone(opens, stack + sizeof stack, flags, "aside")))
        return 1;
    struct clone_args args = {.flags = CLONE_NEWUSER | CLONE_NEWPID, .exit_signal = SIGCHLD};
    pid_t child = syscall(SYS_clone3, &args, sizeof args);
    if (child == 0)
        _exit(write(1, "inside\n", 7) != 7);
    return fails(child);
}
"#;

#[test]
fn a_child_without_a_record_is_not_taken_for_one_in_another_pid_namespace() {
    let place = Place::new();
    if !compiled(&place, "", "two", TWO_UNANNOUNCED)
        || !makes_namespaces(&place, "./two && rm aside")
    {
        return;
    }
    place.deep("RECORD ./two | cat > out");
    place.forget_everything();
    let Some(report) = place.report(&[], 0) else {
        return;
    };
    let found = &report["reconstruction"];
    let verdict = found["verdict"].as_str().unwrap();
    assert!(verdict.starts_with("equal"), "{found:#}");
    // The program and its child in the other namespace.
    assert_eq!(found["processes"].as_array().unwrap().len(), 2, "{found:#}");
}

/// True if a shell line can make a pid namespace here.
fn makes_namespaces(place: &Place, line: &str) -> bool {
    let answer = place.shell(line);
    if answer.status != 0 {
        skipped("a pid namespace", &answer.err);
    }
    answer.status == 0
}

#[test]
fn programs_in_a_new_pid_namespace_run_again_under_the_number_that_their_maker_knows() {
    let place = Place::new();
    let alone = "unshare -Urpf";
    if !needs("a pid namespace", &["unshare"])
        || !makes_namespaces(&place, &format!("{alone} true"))
    {
        return;
    }
    place.write_aged("a", "alpha\n");
    place.write_aged("b", "beta\n");
    let script = "/bin/cat a >one; /bin/cat b >two; echo $$";
    place.deep(&format!("RECORD {alone} sh -c '{script}' > out"));
    place.forget_everything();
    let Some(report) = place.report(&[], 0) else {
        return;
    };
    let found = &report["reconstruction"];
    assert_eq!(found["verdict"], "equal", "{found:#}");
    // The shell, and the child that executed it.
    let processes = found["processes"].as_array().unwrap();
    let shell = processes.iter().find(|one| {
        let program = one["program"].as_str().unwrap();
        program.ends_with("sh")
    });
    let pid = &shell.unwrap()["pid"];
    let same = processes.iter().filter(|one| one["pid"] == *pid);
    assert!(pid.as_u64() > Some(1) && same.count() == 2, "{found:#}");
}

#[test]
fn children_of_a_process_that_a_call_by_number_put_into_a_pid_namespace_run_again() {
    let source = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fixtures/programs/pidns.c"
    );
    for how in ["clone3", "unshare"] {
        let place = Place::new();
        let source = std::fs::read_to_string(source).unwrap();
        let line = format!("./pidns {how} && rm first child*");
        if !compiled(&place, "-D_GNU_SOURCE", "pidns", &source) || !makes_namespaces(&place, &line)
        {
            return;
        }
        place.deep(&format!("RECORD ./pidns {how}"));
        place.forget_everything();
        if let Some(answer) = place.again(&[]) {
            let all = answer.err.contains("equal: 5 programs");
            assert!(is_equal(&answer) && all, "{how}: {answer:?}");
        }
    }
}

/// Prints what a program learns of its process group and session.
const MEMBERSHIP: &str = "\
import os
print(os.getpgrp() == os.getpid(), os.getpgid(0), os.getsid(0), os.getpid())
";

#[test]
fn setsid_forks_where_it_led_its_group_in_the_record_and_nowhere_else() {
    if !needs("a program in a session of its own", &["python3", "setsid"]) {
        return;
    }
    let leads = "import os; os.setpgid(0, 0); \
                 os.execvp(\"setsid\", [\"setsid\", \"-w\", \"python3\", \"groups.py\"])";
    for command in [
        "setsid -w python3 groups.py".to_owned(),
        format!("python3 -c '{leads}'"),
    ] {
        let place = Place::new();
        place.write_aged("groups.py", MEMBERSHIP);
        place.deep(&format!("RECORD {command} | cat > out"));
        place.is_equal_again_with(&[], &command);
    }
}

/// Its children get connections as their input and output. Nothing was read from the first one
/// before.
const SPAWNS: &str = "
import socket, subprocess
listener = socket.create_server(('127.0.0.1', 0))
for number in range(2):
    client = socket.create_connection(listener.getsockname())
    client.sendall(b'question')
    server, _ = listener.accept()
    if number: server.recv(2)
    subprocess.run(['head', '-c', '4'], stdin=server, stdout=server)
    server.close()
    print(client.recv(99))
";

#[test]
fn a_program_has_the_connection_that_its_parent_accepted_as_its_input() {
    if !needs("a server that runs programs", &["python3", "head"]) {
        return;
    }
    let place = Place::new();
    place.write_aged("spawns.py", SPAWNS);
    place.deep("RECORD python3 spawns.py > out");
    assert_eq!(place.out(), "b'ques'\nb'esti'\n");
    place.is_equal_without_its_files();
}

/// The first program of this name in `PATH` has no interpreter, so the kernel refuses to execute
/// it. It is in the root of the replay, as the run also reads it.
const REFUSED: &str = r#"mkdir a b && printf '#!/missing\n' > a/tool && cat > b/tool << 'END'
#!/bin/sh
echo $1
END
chmod +x a/tool b/tool"#;

#[test]
fn a_program_that_the_kernel_refused_to_execute_does_not_count_as_started() {
    // The program itself and a child of it search through `PATH`.
    for search in ["exec env tool found", "tool found; :"] {
        let place = Place::new();
        assert_eq!(place.shell(REFUSED).status, 0);
        let path = "export PATH=$PWD/a:$PWD/b:$PATH";
        let script = format!("cat a/tool > seen; {path}; {search}");
        place.deep(&format!("RECORD sh -c '{script}' > out"));
        assert_eq!(place.out(), "found\n");
        place.is_equal_again_with(&[], search);
    }
}

/// Children that each read from a pipe of their own. All of them wait before the first one is fed,
/// and they are fed in another order than they were made.
const FED: &str = r#"
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
enum { CHILDREN = 40, STEP = 7 };
static int feed[CHILDREN][2], ready[2];
static int child(int own)
{
    char text[16], byte;
    int length = snprintf(text, sizeof text, "%d\n", own);
    if (write(ready[1], "r", 1) != 1 || read(feed[own][0], &byte, 1) != 1)
        return 1;
    return write(1, text, length) != length;
}
int main(void)
{
    pid_t children[CHILDREN];
    char byte;
    if (pipe(ready))
        return 1;
    for (int n = 0; n < CHILDREN; n++)
        if (pipe(feed[n]))
            return 1;
    for (int n = 0; n < CHILDREN; n++)
        if ((children[n] = fork()) == 0)
            _exit(child(n));
    for (int n = 0; n < CHILDREN; n++)
        if (read(ready[0], &byte, 1) != 1)
            return 2;
    for (int n = 0, status; n < CHILDREN; n++) {
        int next = n * STEP % CHILDREN;
        if (write(feed[next][1], "x", 1) != 1 || waitpid(children[next], &status, 0) < 0 || status)
            return 3;
    }
    return 0;
}
"#;

#[test]
fn more_waiting_calls_than_are_all_looked_at_end_in_the_recorded_order() {
    let order = (0..40).map(|n| format!("{}\n", n * 7 % 40));
    program_writes_again("", "fed", FED, &order.collect::<String>());
}

/// system(3) without a command executes a shell that does nothing.
const ASKS: &str = r#"
#include <stdlib.h>
int main(void)
{
    return !system(NULL) || system("echo one") || system("echo two");
}
"#;

#[test]
fn a_program_that_asked_whether_there_is_a_shell_executes_its_commands_again() {
    program_is_equal_again("", "asks", ASKS);
}
