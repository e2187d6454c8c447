//! `replay --deep`: threads move bytes in the recorded order, and children end in it.

use backstory_testkit::need::needs;

use super::Place;
use super::deep_replay::{compiled, recorded_program, replayed_program};
use super::deep_time::record;

/// The thread that was made first comes last. Sleeps take no time in a replay.
const TURNS: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
enum { THREADS = 4 };
static char got[THREADS];
static void *take_turn(void *own)
{
    long number = (long)own;
    char line[32];
    usleep(40000 * (THREADS - number));
    if (read(0, &got[number], 1) != 1)
        return 0;
    int length = snprintf(line, sizeof line, "%ld has %c\n", number, got[number]);
    return write(1, line, length) == length ? own : 0;
}
int main(void)
{
    pthread_t threads[THREADS];
    for (long t = 0; t < THREADS; t++)
        pthread_create(&threads[t], 0, take_turn, (void *)t);
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], 0);
    return 0;
}
"#;

#[test]
fn threads_read_and_write_in_the_recorded_order() {
    let line = "printf abcd | RECORD ./turns | cat > out";
    let Some(place) = recorded_program("-pthread", "turns", TURNS, line) else {
        return;
    };
    // On a busy machine the order of the record may be another one. It is the same again.
    let out = place.out();
    assert_eq!(out.lines().count(), 4, "{out}");
    if let Some(answer) = place.again(&[]) {
        assert!(answer.err.contains("equal: 1 program"), "{answer:?}");
    }
}

/// A thread computes, and writes into a pipe behind that. The first thread waits for this byte.
const WOKEN: &str = r#"
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static int ends[2];
static volatile int made;
static void *compute(void *own)
{
    for (volatile int n = 0; n < 10000000; n++)
        ;
    made++;
    return write(ends[1], "x", 1) == 1 ? own : 0;
}
int main(void)
{
    char byte;
    if (pipe(ends))
        return 1;
    for (int round = 0; round < 4; round++) {
        pthread_t thread;
        struct pollfd end = {ends[0], POLLIN, 0};
        pthread_create(&thread, 0, compute, 0);
        int ready = round % 2 ? poll(&end, 1, -1) : 1;
        long length = read(ends[0], &byte, 1);
        printf("%d %ld %d\n", ready, length, made);
        pthread_join(thread, 0);
    }
    return 0;
}
"#;

#[test]
fn a_thread_gets_the_bytes_of_another_one_when_they_are_written() {
    let line = "RECORD ./woken > out";
    let Some(place) = recorded_program("-pthread", "woken", WOKEN, line) else {
        return;
    };
    assert_eq!(place.out(), "1 1 1\n1 1 2\n1 1 3\n1 1 4\n");
    if let Some(answer) = place.again(&[]) {
        assert!(answer.err.contains("equal: 1 program"), "{answer:?}");
    }
}

#[test]
fn a_server_in_a_thread_gets_a_request_when_its_client_has_sent_it() {
    if !needs("a server in a thread", &["python3"]) {
        return;
    }
    let script = r#"
import socket, threading
server = socket.create_server(("127.0.0.1", 0))
def serve():
    connection, _ = server.accept()
    while connection.recv(100): connection.sendall(b"%d" % number)
thread = threading.Thread(target=serve)
thread.start()
client = socket.create_connection(server.getsockname())
for number in range(40):
    client.sendall(b"?")
    print(client.recv(100))
    sum(range(20000))
client.close()
thread.join()
"#;
    let place = Place::new();
    place.write_aged("both.py", script);
    record(&place, "RECORD python3 both.py > out");
    place.is_equal_again();
}

#[test]
fn an_event_loop_answers_its_threads_before_a_peer_goes_on() {
    if !needs("an event loop with threads", &["python3"]) {
        return;
    }
    // A client uses two connections in turn. The kernel's object tells the loop of each answer.
    let script = r#"
import os, queue, select, socket, threading
server = socket.create_server(("127.0.0.1", 0))
if os.fork() == 0:
    jobs, done, woken = queue.SimpleQueue(), queue.SimpleQueue(), os.eventfd(0)
    def work():
        while True:
            connection, question = jobs.get()
            sum(range(50_000))
            done.put((connection, b"answer to " + question))
            os.eventfd_write(woken, 1)
    threading.Thread(target=work, daemon=True).start()
    loop, connections, served = select.epoll(), {}, open("served", "wb", 0)
    for awaited in (server, woken): loop.register(awaited, select.EPOLLIN)
    while True:
        for fd, _ in loop.poll():
            if fd == server.fileno():
                connection = server.accept()[0]
                connections[connection.fileno()] = connection
                loop.register(connection, select.EPOLLIN)
            elif fd == woken:
                os.eventfd_read(woken)
                connection, answer = done.get()
                served.write(answer + b"\n")
                connection.sendall(answer)
            elif question := connections[fd].recv(100):
                jobs.put((connections[fd], question))
            else:
                connections.pop(fd).close()
                if not connections: os._exit(0)
def ask(connection, question):
    connection.sendall(question)
    return connection.recv(100)
kept = socket.create_connection(server.getsockname())
for n in range(4):
    print(ask(kept, b"kept %d" % n))
    with socket.create_connection(server.getsockname()) as other:
        for m in range(2): print(ask(other, b"other %d.%d" % (n, m)))
kept.close()
os.wait()
"#;
    let place = Place::new();
    place.write_aged("both.py", script);
    record(&place, "RECORD python3 both.py > out");
    place.is_equal_again();
}

#[test]
fn threads_get_the_pipes_and_sockets_that_they_made_in_the_record() {
    if !needs("threads that make pipes", &["python3"]) {
        return;
    }
    // Sleeps take no time in a replay, so the threads come in another order.
    let script = r#"
import os, socket, threading, time
lines = [[], []]
def make(number):
    for n in range(5):
        time.sleep(0.02 if number else 0.007)
        read, write = os.pipe()
        one, two = socket.socketpair()
        os.write(write, b"%d %d" % (number, n))
        one.send(b"%d-%d" % (number, n))
        lines[number].append((os.read(read, 100), two.recv(100)))
threads = [threading.Thread(target=make, args=[number]) for number in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(lines)
"#;
    let place = Place::new();
    place.write_aged("make.py", script);
    record(&place, "RECORD python3 make.py > out");
    place.is_equal_again();
}

#[test]
fn an_event_loop_that_threads_wake_ends() {
    if !needs("an event loop", &["python3"]) {
        return;
    }
    let script = r#"
import asyncio
async def main():
    for n in range(40): await asyncio.to_thread(sum, range(100 * (n % 7)))
asyncio.run(main())
print("done")
"#;
    let place = Place::new();
    place.write_aged("loop.py", script);
    record(&place, "RECORD python3 loop.py > out");
    place.is_equal_again();
}

/// A thread waits in short steps for the result of another one. In a replay, these waits take no
/// time, so there are many more than in the record.
const LOOKING: &str = r#"
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static volatile int done;
static void *compute(void *own)
{
    for (volatile int n = 0; n < 200000000; n++)
        ;
    done = 1;
    return own;
}
int main(void)
{
    int ends[2];
    pthread_t thread;
    if (pipe(ends))
        return 1;
    struct pollfd end = {ends[0], POLLIN, 0};
    pthread_create(&thread, 0, compute, 0);
    while (!done)
        poll(&end, 1, 10);
    pthread_join(thread, 0);
    puts("done");
    return 0;
}
"#;

#[test]
fn a_thread_that_waits_for_a_variable_of_another_one_goes_on() {
    let line = "RECORD ./looking > out";
    if let Some((_, answer)) = replayed_program("-pthread", "looking", LOOKING, line) {
        assert!(!answer.err.contains("were ended"), "{answer:?}");
    }
}

/// The writer whose turn it is waits for a lock that the other one has. The order of locks is not
/// recorded, so the replay may differ, but it ends. The test fails only if it does not.
const LOCKED: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *write_lines(void *own)
{
    for (int n = 0; n < 40; n++) {
        usleep(own ? 100 : 3000);
        pthread_mutex_lock(&lock);
        dprintf(1, "%s %d\n", own ? "fast" : "slow", n);
        pthread_mutex_unlock(&lock);
    }
    return own;
}
int main(void)
{
    pthread_t slow, fast;
    pthread_create(&slow, 0, write_lines, 0);
    pthread_create(&fast, 0, write_lines, &fast);
    pthread_join(slow, 0);
    pthread_join(fast, 0);
    return 0;
}
"#;

#[test]
fn a_thread_that_has_the_lock_of_another_one_goes_on() {
    let line = "RECORD ./locked | cat > out";
    if let Some((_, answer)) = replayed_program("-pthread", "locked", LOCKED, line) {
        assert!(!answer.err.contains("were ended"), "{answer:?}");
        let verdicts = ["equal: 1 program", "different"];
        assert!(
            verdicts.iter().any(|one| answer.err.contains(one)),
            "{answer:?}"
        );
    }
}

/// The parent waits in `splice` for bytes that the kernel moves for its child, and for their end.
/// The child makes no call meanwhile.
const MOVES: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>
int main(void)
{
    int ends[2];
    if (pipe(ends) != 0)
        return 1;
    if (fork() == 0) {
        for (volatile long n = 0; n < 100000000; n++)
            ;
        return splice(open("a", O_RDONLY), 0, ends[1], 0, 100, 0) != 4;
    }
    close(ends[1]);
    if (splice(ends[0], 0, 1, 0, 100, 0) != 4)
        return 2;
    return splice(ends[0], 0, 1, 0, 100, 0) != 0;
}
"#;

#[test]
fn a_move_of_bytes_waits_for_a_child() {
    let place = Place::new();
    if !compiled(&place, "-O0", "moves", MOVES) {
        return;
    }
    place.write_aged("a", "one\n");
    place.deep("RECORD ./moves | cat > out");
    if let Some(answer) = place.again(&[]) {
        assert!(answer.err.contains("equal: "), "{answer:?}");
    }
}

/// A server's loop: it learns of the end of its child only while it waits.
const LOOP: &str = r#"
#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int ended;
static void handler(int signal) { ended = signal; }
int main(void)
{
    char buffer[100];
    sigset_t child, none;
    sigemptyset(&none);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, 0);
    signal(SIGCHLD, handler);
    if (fork() == 0) {
        usleep(300000);
        _exit(3);
    }
    for (;;) {
        struct pollfd input = {0, POLLIN, 0};
        int ready = ppoll(&input, 1, 0, &none), status;
        if (ended && waitpid(-1, &status, WNOHANG) > 0)
            dprintf(1, "the child ended: %d\n", WEXITSTATUS(status));
        ended = 0;
        if (ready <= 0)
            continue;
        int length = read(0, buffer, sizeof buffer);
        if (length <= 0)
            return input.fd;
        write(1, buffer, length);
    }
}
"#;

#[test]
fn a_child_ends_before_the_input_that_came_later() {
    let late = "for n in $(seq 600); do grep -qs ended out && break; sleep 0.05; done; echo late";
    let line = format!("(echo early; {late}) | RECORD ./loop | cat > out");
    let Some(place) = recorded_program("", "loop", LOOP, &line) else {
        return;
    };
    assert_eq!(place.out(), "early\nthe child ended: 3\nlate\n");
    if let Some(answer) = place.again(&[]) {
        assert!(answer.err.contains("equal: "), "{answer:?}");
    }
}

/// Learns of the end of its child between the end of the child's output and the next call. With a
/// variable, the child works for longer, and the program waits no longer.
const READER: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int ended;
static void handler(int signal) { ended = signal; }
int main(void)
{
    char buffer[100];
    int ends[2], length, is_slow = getenv("SLOW") != 0;
    signal(SIGCHLD, handler);
    if (pipe(ends) != 0)
        return 1;
    if (fork() == 0) {
        write(ends[1], "work\n", 5);
        close(ends[0]);
        close(ends[1]);
        usleep(300000);
        for (volatile long n = 0; is_slow && n < 300000000; n++)
            ;
        _exit(3);
    }
    close(ends[1]);
    while ((length = read(ends[0], buffer, sizeof buffer)) > 0)
        write(1, buffer, length);
    while (!ended && !is_slow)
        ;
    close(ends[0]);
    dprintf(1, "the child %s\n", ended ? "ended" : "runs");
    return wait(0) < 0;
}
"#;

#[test]
fn a_child_ends_before_the_end_of_its_output_is_read_if_the_program_then_knew_that() {
    let line = "RECORD ./reader | cat > out";
    let Some(place) = recorded_program("", "reader", READER, line) else {
        return;
    };
    assert_eq!(place.out(), "work\nthe child ended\n");
    for more in [&[][..], &["--env=SLOW=1"]] {
        if let Some(answer) = place.again(more) {
            assert!(answer.err.contains("equal: "), "{more:?}: {answer:?}");
        }
    }
}

/// Waits for input. Its child works for longer than a process may stand still, and ends first.
const LONG_CHILD: &str = r#"
import os, select, signal, time
def ended(*_):
    os.waitpid(-1, 0); os.write(1, b"child\n")
signal.signal(signal.SIGCHLD, ended)
if os.fork() == 0:
    while time.process_time() < 2.5:
        for n in range(100_000): pass
    os._exit(0)
p = select.poll(); p.register(0, select.POLLIN); p.poll()
os.write(1, os.read(0, 100))
"#;

#[test]
fn a_child_that_works_is_waited_for() {
    if !needs("a child that works", &["python3"]) {
        return;
    }
    let place = Place::new();
    place.write_aged("parent.py", LONG_CHILD);
    record(
        &place,
        "(until grep -q child out 2>/dev/null; do sleep 0.01; done; echo line) | \
         RECORD python3 parent.py > out",
    );
    place.is_equal_again();
}

/// A thread computes, and then sets a variable. The first thread looks at it after waits that take
/// much longer.
const COMPUTING: &str = r#"
#include <poll.h>
#include <pthread.h>
#include <unistd.h>
static volatile int done;
static void *compute(void *own)
{
    for (volatile long n = 0; n < 100000000; n++)
        ;
    done = 1;
    return own;
}
int main(void)
{
    pthread_t thread;
    struct pollfd input = {0, POLLIN, 0};
    pthread_create(&thread, 0, compute, 0);
    for (int n = 0; n < 150; n++)
        poll(&input, 1, 20);
    return write(1, done ? "done\n" : "busy\n", 5) != 5;
}
"#;

#[test]
fn waits_take_their_time_while_another_thread_computes() {
    let line = "mkfifo input; sleep 100 > input & RECORD ./computing < input > out; kill $!";
    let Some(place) = recorded_program("-pthread", "computing", COMPUTING, line) else {
        return;
    };
    if let Some(answer) = place.again(&[]) {
        assert!(answer.err.contains("equal: 1 program"), "{answer:?}");
    }
}

/// The process ends while a thread sleeps. Sleeps take no time in a replay.
const LATE: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
static void *look(void *own)
{
    struct stat about;
    usleep(60000000);
    LOOK;
    return write(1, "late\n", 5) == 5 ? own : 0;
}
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, look, 0);
    for (volatile long n = 0; n < 60000000; n++)
        ;
    return write(1, "done\n", 5) != 5;
}
"#;

/// A run of [`LATE`] with this expression is equal again.
fn is_late_and_equal(look: &str) {
    let text = LATE.replace("LOOK", look);
    let line = "RECORD ./late > out";
    if let Some((_, answer)) = replayed_program("-pthread", "late", &text, line) {
        let is_equal = answer.err.contains("equal: 1 program");
        assert!(is_equal, "{look}: {answer:?}");
    }
}

#[test]
fn a_thread_that_looks_for_a_missing_file_behind_its_record_waits_for_the_end_of_its_process() {
    is_late_and_equal("stat(\"/missing\", &about)");
    is_late_and_equal("access(\"/missing\", 0)");
    is_late_and_equal("fopen(\"/missing\", \"r\")");
}

/// glibc loads a library when a thread ends like this. The record lacks it.
#[test]
fn a_thread_may_end_behind_its_record() {
    is_late_and_equal("pthread_exit(&about)");
}
