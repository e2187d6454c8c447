//! `replay --deep --with`: a tool of the user, and the program that it runs.

use backstory_testkit::need::{find, needs, skipped};
use backstory_testkit::ports::free_port;

use super::deep_replay::compiled;
use super::{Answer, Place};

/// Prints its input.
const COPY: &str = r#"
#include <unistd.h>
static int copy(char *line)
{
    ssize_t length = read(0, line, 100);
    return length > 0 && write(1, line, (size_t)length) == length ? 0 : 1;
}
int main(void)
{
    char line[100];
    return copy(line);
}
"#;

#[test]
fn a_debugger_stops_in_a_program_that_the_user_named_by_a_relative_path() {
    let place = Place::new();
    if !needs("a deep replay under gdb", &["gdb"]) || !compiled(&place, "", "server", COPY) {
        return;
    }
    place.deep("echo one | RECORD ./server > out");
    let tool = "gdb -q -batch -ex 'break copy' -ex run -ex 'print 6 * 7' -ex continue";
    let Some(answer) = place.again(&["--patience", "10", "--with", tool]) else {
        return;
    };
    assert_eq!(answer.status, 0, "{answer:?}");
    assert!(answer.err.contains("equal: 1 program"), "{answer:?}");
    for part in ["Breakpoint 1, copy", "= 42"] {
        assert!(answer.out.contains(part), "{part}: {answer:?}");
    }
}

/// Reads a word from its child, which computes until its parent waits.
const PARENT: &str = r#"
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static int in_child(int end)
{
    return write(end, "word", 4) == 4 ? 0 : 1;
}
int main(void)
{
    int ends[2];
    char bytes[10] = "";
    if (pipe(ends))
        return 1;
    pid_t child = fork();
    if (child == 0) {
        // From its first call on, the replay knows that the parent waits for it.
        getppid();
        for (volatile long rest = 1000000000; rest > 0; rest--) {
        }
        _exit(in_child(ends[1]));
    }
    int status = read(ends[0], bytes, 9) == 4 ? 0 : 2;
    printf("%s\n", bytes);
    return waitpid(child, NULL, 0) == child ? status : 3;
}
"#;

#[test]
fn a_debugger_of_all_programs_stops_in_a_child_whose_parent_waits_for_it() {
    let what = "a debugger of several programs";
    let place = Place::new();
    if !needs(what, &["gdb", "timeout"]) || !compiled(&place, "", "parent", PARENT) {
        return;
    }
    place.deep("RECORD ./parent > out");
    // A debugger that waits for the parent in vain is ended after a minute.
    let line = "timeout -s INT -k 5 60 \"$B\" replay deep --deep --output-dir ../home/again \
                --with \"gdb -q -batch -ex 'set detach-on-fork off' -ex 'break in_child' \
                -ex 'set schedule-multiple on' -ex run -ex 'print 6 * 7' -ex continue \
                -ex 'inferior 1' -ex continue\" < /dev/null";
    let answer = place.shell(line);
    if answer.err.contains("namespace") {
        return skipped(what, &answer.err);
    }
    for part in ["in_child (", "= 42"] {
        assert!(answer.out.contains(part), "{part}: {answer:?}");
    }
    assert!(answer.err.contains("equal: "), "{answer:?}");
}

/// Answers one client, and waits for another one. At its end, it sends the signal to its group, as
/// Apache does.
const GROUP: &str = r#"
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
static void end(int number)
{
    signal(number, SIG_IGN);
    kill(0, number);
    _exit(0);
}
int main(void)
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof own;
    char bytes[100];
    int server = socket(AF_INET, SOCK_STREAM, 0);
    signal(SIGTERM, end);
    if (bind(server, (struct sockaddr *)&own, length) || listen(server, 5) ||
        getsockname(server, (struct sockaddr *)&own, &length))
        return 1;
    FILE *port = fopen("port.new", "w");
    fprintf(port, "%d", ntohs(own.sin_port));
    if (fclose(port) || rename("port.new", "port"))
        return 2;
    for (int number = 0; number < 2; number++) {
        int client = accept(server, 0, 0);
        ssize_t got = read(client, bytes, sizeof bytes);
        if (got > 0 && write(client, bytes, (size_t)got) != got)
            return 3;
        close(client);
    }
    return 0;
}
"#;

/// Has an answer, and then makes a connection without a request.
const CLIENT: &str = r#"
import os, socket, time
while not os.path.exists("port"): time.sleep(0.01)
def connect(): return socket.create_connection(("127.0.0.1", int(open("port").read())))
with connect() as c:
    c.sendall(b"one"); assert c.recv(100) == b"one"
with connect(): pass
"#;

/// A script of a user: replays a request under a tool that reports at the end, and goes on.
const SCRIPT: &str = r#"
"$B" replay deep --deep --request 1 --tries 1 --output-dir "$1" \
    --with "sh -c '\"\$0\" \"\$@\"; echo reported >&2'"
echo "status $? alive"
"#;

#[test]
fn a_signal_of_a_program_to_its_group_reaches_neither_its_tool_nor_the_users_script() {
    let what = "a signal to a process group under a tool";
    let place = Place::new();
    if !needs(what, &["python3", "setsid", "script"]) || !compiled(&place, "", "group", GROUP) {
        return;
    }
    place.write_aged("client.py", CLIENT);
    place.write_aged("script.sh", SCRIPT);
    place.deep("python3 client.py & RECORD ./group && wait");
    // Each has a group of its own: if the signal left the replay, it would end this test, too.
    for line in [
        "exec setsid -w sh script.sh ../home/without 2>&1 < /dev/null",
        "exec script -qefc 'sh script.sh ../home/terminal' /dev/null < /dev/null",
    ] {
        let Answer { out, .. } = place.shell(line);
        if out.contains("namespace") {
            return skipped(what, &out);
        }
        for part in ["reported", "equal", "status 0 alive"] {
            assert!(out.contains(part), "{line}: {part}: {out}");
        }
    }
}

/// Passes its own process id and that of a child to the kernel, in calls that are not notified.
const NUMBERED: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        return 1;
    int own = fcntl(ends[0], F_SETOWN, getpid());
    pid_t child = fork();
    while (child == 0)
        pause();
    int other = fcntl(ends[0], F_SETOWN, child);
    kill(child, SIGKILL);
    waitpid(child, 0, 0);
    printf("%d %d\n", own, other);
    return 0;
}
"#;

/// gdb, which runs a program to its end.
const DEBUGGER: &str = "gdb -q -batch -ex run";

/// The replay under each of these tools that is installed succeeds, and says this. `what` is what
/// is tested.
#[track_caller]
fn says_under(place: &Place, what: &str, tools: &[&str], text: &str) {
    for tool in tools {
        let name = tool.split(' ').next().unwrap();
        if !needs(what, &[name]) {
            continue;
        }
        let Some(answer) = place.again(&["--with", tool]) else {
            return;
        };
        let is_said = answer.err.contains(text);
        assert!(answer.status == 0 && is_said, "{tool}: {answer:?}");
    }
}

#[test]
fn a_program_under_a_tool_has_its_recorded_process_id() {
    let place = Place::new();
    if !compiled(&place, "", "numbered", NUMBERED) {
        return;
    }
    place.deep("RECORD ./numbered > out");
    assert_eq!(place.out(), "0 0\n");
    let what = "a process id under a tool";
    let tools = ["env", "perf", "strace", "valgrind", DEBUGGER];
    says_under(&place, what, &tools, "equal: 1 program");
}

#[test]
fn a_program_under_a_tool_has_its_recorded_variables_in_their_order() {
    let place = Place::new();
    // A shell between the tool and the program would not keep a directory that is not there.
    place.deep("Z=\"it's\" A= OLDPWD=/not/there RECORD printenv > out");
    assert!(place.out().contains("Z=it's\n"));
    let tools = ["perf", "strace", DEBUGGER];
    says_under(&place, "variables under a tool", &tools, "equal: 1 program");
}

#[test]
fn a_script_that_env_executes_runs_again_under_a_tool() {
    let place = Place::new();
    place.write_aged("script", "#!/usr/bin/env sh\necho one\n");
    place.deep("chmod +x script && RECORD ./script > out");
    assert_eq!(place.out(), "one\n");
    let tools = ["perf", DEBUGGER];
    says_under(&place, "a script under a tool", &tools, "equal: ");
}

/// One worker, which serves a page.
const NGINX: &str = "daemon off; worker_processes 1; pid t/pid; error_log t/error; events {}
http {
    access_log t/access; client_body_temp_path t/b; proxy_temp_path t/p;
    fastcgi_temp_path t/f; uwsgi_temp_path t/u; scgi_temp_path t/s;
    server { listen 127.0.0.1:PORT; root www; }
}
";

/// Requests the page, and ends the server.
const VISITOR: &str = "for n in $(seq 300); do
    curl -s -o got http://127.0.0.1:PORT/ && break
    sleep 0.1
done
kill -QUIT $(cat t/pid)
";

#[test]
fn nginx_makes_its_worker_and_serves_a_request_under_a_tool() {
    if !needs("nginx under a tool", &["nginx", "curl"]) {
        return;
    }
    let place = Place::new();
    let port = free_port().unwrap().to_string();
    assert_eq!(place.shell("mkdir t www").status, 0);
    for (name, text) in [
        ("www/index.html", "page\n"),
        ("conf", NGINX),
        ("visitor.sh", VISITOR),
    ] {
        place.write_aged(name, &text.replace("PORT", &port));
    }
    let nginx = find("nginx").unwrap();
    let server = format!("RECORD {} -p . -e t/error -c conf", nginx.display());
    place.deep(&format!("sh visitor.sh & {server} && wait"));
    for tool in ["strace -f -o /dev/null", DEBUGGER] {
        let name = tool.split(' ').next().unwrap();
        if !needs("nginx under a tool", &[name]) {
            continue;
        }
        let request = ["--request", "1", "--tries", "1", "--with", tool];
        let Some(answer) = place.again(&request) else {
            return;
        };
        let is_equal = answer.err.contains("equal: 2 programs ran again");
        assert!(answer.status == 0 && is_equal, "{tool}: {answer:?}");
    }
}
