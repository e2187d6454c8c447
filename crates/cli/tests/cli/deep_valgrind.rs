//! `replay --deep --with valgrind`: Valgrind runs in the program's own process, and makes calls of
//! its own.

use backstory_testkit::need::needs;

use super::Place;
use super::deep_replay::{compiled, recorded_program};

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

/// A server that opens a list of its memory between two pipes, as Node does. Valgrind opens that
/// list before it has loaded the program.
const OPENS_MAPS: &str = r#"
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
int main(void)
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof own;
    char bytes[100];
    int lock[2], other[2];
    if (pipe(lock) || write(lock[1], "*", 1) != 1)
        return 1;
    int maps = open("/proc/self/maps", O_RDONLY);
    if (maps < 0 || close(maps) || pipe(other) || read(lock[0], bytes, 1) != 1)
        return 2;
    int server = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(server, (struct sockaddr *)&own, length) || listen(server, 5) ||
        getsockname(server, (struct sockaddr *)&own, &length))
        return 3;
    FILE *port = fopen("port.new", "w");
    fprintf(port, "%d", ntohs(own.sin_port));
    if (fclose(port) || rename("port.new", "port"))
        return 4;
    int client = accept(server, 0, 0);
    ssize_t got = read(client, bytes, sizeof bytes);
    return got > 0 && write(client, bytes, (size_t)got) == got ? 0 : 5;
}
"#;

const CLIENT: &str = r#"
import os, socket, time
while not os.path.exists("port"): time.sleep(0.01)
with socket.create_connection(("127.0.0.1", int(open("port").read()))) as c:
    c.sendall(b"one"); assert c.recv(100) == b"one"
"#;

#[test]
fn what_valgrind_opens_to_load_a_program_leaves_out_no_pipe_of_the_program() {
    let place = Place::new();
    let what = "a replay of a request under valgrind";
    if !needs(what, &["valgrind", "python3"]) || !compiled(&place, "", "server", OPENS_MAPS) {
        return;
    }
    place.write_aged("client.py", CLIENT);
    place.deep("python3 client.py & RECORD ./server && wait");
    let request = ["--request", "1", "--tries", "1", "--with", "valgrind"];
    let Some(answer) = place.again(&request) else {
        return;
    };
    assert_eq!(answer.status, 0, "{answer:?}");
    assert!(answer.err.contains("equal: 1 program"), "{answer:?}");
}
