//! `replay --deep` of a whole run: what libc does inside itself, and what is known of one file.

use backstory_testkit::need::needs;

use super::Place;
use super::deep_equal::{
    SCRIPT, program_is_equal_again, program_writes_again, recorded_script, script_is_equal_again,
};
use super::deep_replay::{compiled, recorded_program};

#[test]
fn a_child_reads_the_pipes_of_its_parent_in_the_place_of_streams_that_nobody_used() {
    let script = r#"
import os, subprocess, sys
os.isatty(0), os.isatty(1)
child = "import os; os.isatty(0); data = os.read(0, 100); os.write(1, data[:2]); os.write(1, data[::-1])"
done = subprocess.run([sys.executable, "-c", child], input=b"recorded", capture_output=True)
sys.stderr.write(repr(done.stdout))
"#;
    let line = "RECORD /usr/bin/python3 script.py < /dev/null 2> out | cat";
    recorded_script(script, line).is_equal_again();
}

#[test]
fn a_socket_that_first_could_not_connect_connects_to_another_address() {
    let script = r#"
import socket
server, client = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
server.bind("served")
server.listen()
try: client.connect("missing")
except OSError as error: print(error)
client.connect("served")
print("connected")
"#;
    recorded_script(script, "RECORD /usr/bin/python3 script.py | cat > out").is_equal_again();
}

#[test]
fn a_look_up_of_a_user_by_libc_takes_no_socket_of_the_program() {
    let script = r#"
import pwd, socket
print(pwd.getpwuid(0).pw_name)
server, client = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
server.bind("served")
server.listen()
client.connect("served")
client.close()
print(server.accept()[0].recv(9))
"#;
    recorded_script(script, "RECORD /usr/bin/python3 script.py | cat > out").is_equal_again();
}

#[test]
fn a_child_uses_the_directory_and_the_file_that_its_parent_passed() {
    let script = r#"
import os, socket
one, two = socket.socketpair()
if os.fork() == 0:
    one.close()
    _, fds, _, _ = socket.recv_fds(two, 1, 4)
    data = os.read(fds[0], 100)
    made = os.open("made", os.O_WRONLY | os.O_CREAT, dir_fd=fds[1])
    os.write(made, data)
    print(os.path.basename(os.readlink(f"/proc/self/fd/{made}")), data, sorted(os.listdir(fds[1])), flush=True)
    os._exit(0)
os.mkdir("inner")
fds = [os.open("script.py", os.O_RDONLY), os.open("inner", os.O_RDONLY | os.O_DIRECTORY)]
socket.send_fds(one, [b"x"], fds)
for fd in fds: os.close(fd)
print(os.wait()[1])
"#;
    script_is_equal_again(script);
}

#[test]
fn a_child_writes_into_the_open_file_that_its_parent_passed_and_uses_too() {
    let script = r#"
import os, socket
one, two = socket.socketpair()
if os.fork() == 0:
    one.close()
    _, fds, _, _ = socket.recv_fds(two, 1, 4)
    for fd in fds: os.write(fd, b"child\n")
    os._exit(0)
fds = [os.open("written", os.O_WRONLY | os.O_CREAT), os.memfd_create("memory")]
socket.send_fds(one, [b"x"], fds)
print(os.wait()[1])
os.write(fds[0], b"parent\n")
print(open("written").read(), os.pread(fds[1], 100, 0))
"#;
    script_is_equal_again(script);
}

#[test]
fn a_directory_with_entries_that_the_program_did_not_use_is_not_empty_again() {
    let script = r#"
import os
os.mkdir("new")
for act in [lambda: os.rmdir("full"), lambda: os.rename("new", "full"), lambda: os.rmdir("new")]:
    try: print(act())
    except OSError as error: print(error.strerror)
"#;
    let place = Place::new();
    std::fs::create_dir_all(place.path("full/unused")).unwrap();
    place.write_aged("script.py", script);
    place.deep(SCRIPT);
    assert_eq!(
        place.out(),
        "Directory not empty\nDirectory not empty\nNone\n"
    );
    place.is_equal_again();
}

#[test]
fn a_file_has_one_identity_by_its_relative_name_its_path_and_its_descriptor() {
    // `rmtree` fails if the status by a name in its directory and by the descriptor differ.
    let script = r#"
import os, shutil
top = os.path.abspath("top")
for _ in range(2):
    os.makedirs("top/below/deep")
    shutil.rmtree(top)
    os.makedirs("top/below/deep")
    print(os.path.isdir(top + "/below"), os.stat("top").st_ino == os.stat(top).st_ino)
    shutil.rmtree("top")
"#;
    script_is_equal_again(script);
}

#[test]
fn a_program_reads_what_its_child_wrote_into_the_pipe_of_popen() {
    let script = r#"
import ctypes
libc = ctypes.CDLL(None)
libc.popen.restype = ctypes.c_void_p
libc.fgets.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p]
libc.pclose.argtypes = [ctypes.c_void_p]
stream = libc.popen(b"echo $$; od -An -N4 /dev/urandom", b"r")
line = ctypes.create_string_buffer(100)
for n in range(2):
    libc.fgets(line, 100, stream)
    print(n, line.value)
print(libc.pclose(stream))
"#;
    script_is_equal_again(script);
}

#[test]
fn a_reader_finds_what_the_writer_had_done_before() {
    let script = r#"
import subprocess, sys
child = """
import sys
for line in sys.stdin:
    with open("told", "a") as f: f.write(line)
    print("done", flush=True)
"""
with subprocess.Popen([sys.executable, "-c", child], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
    for n in range(20):
        p.stdin.write(b"%d\n" % n)
        p.stdin.flush()
        answer = p.stdout.readline()
        with open("told") as f: print(answer, f.read().split())
"#;
    script_is_equal_again(script);
}

#[test]
fn a_sleep_in_poll_or_select_is_no_wait_for_descriptors() {
    let script = r#"
import os, select
r, w = os.pipe()
for sleep in [lambda: select.select([], [], [], 0.01), lambda: select.poll().poll(10)]:
    sleep()
    before = select.select([r], [], [], 0)[0]
    os.write(w, b"x")
    print(before == [], select.select([r], [], [], 10)[0] == [r], os.read(r, 1))
"#;
    script_is_equal_again(script);
}

#[test]
fn a_pipe_is_full_again_at_the_recorded_byte() {
    let script = r#"
import os
r, w = os.pipe()
os.set_blocking(w, False)
for length in [9999, 73, 7574]:
    sent = []
    try:
        while len(sent) < 5000: sent.append(os.write(w, b"x" * length))
    except BlockingIOError: pass
    print(len(sent), sum(sent), len(os.read(r, 1 << 20)))
"#;
    script_is_equal_again(script);
}

/// Sends messages in groups until there is no room, and then receives half of them.
const MANY_MESSAGES: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
enum { MANY = 1024 };
static struct mmsghdr all[MANY];
int main(void)
{
    struct iovec part = {"four", 4};
    int pair[2];
    char got[8];
    for (int i = 0; i < MANY; i++) {
        all[i].msg_hdr.msg_iov = &part;
        all[i].msg_hdr.msg_iovlen = 1;
    }
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair) != 0)
        return 1;
    for (int round = 0; round < 3; round++) {
        int sent = 0, some = 0, received = 0;
        while (sent < MANY && (some = sendmmsg(pair[0], all + sent, MANY - sent, 0)) > 0)
            sent += some;
        int is_full = some < 0 && errno == EAGAIN;
        while (received < sent / 2 && recv(pair[1], got, sizeof got, 0) == 4)
            received++;
        printf("%d %d %d\n", sent, is_full, received);
    }
    return 0;
}
"#;

#[test]
fn a_group_of_messages_ends_again_where_there_was_no_room() {
    let place = Place::new();
    if !compiled(&place, "", "many", MANY_MESSAGES) {
        return;
    }
    place.deep("RECORD ./many > out");
    let told = place.out();
    let full = told.lines().filter(|line| line.contains(" 1 "));
    assert_eq!(full.count(), 3, "{told}");
    place.is_equal_again();
}

#[test]
fn a_group_of_messages_that_was_not_sent_to_its_end_ends_again_there() {
    let place = Place::new();
    let once = MANY_MESSAGES.replace("while (sent < MANY && (some =", "if ((some =");
    assert_ne!(once, MANY_MESSAGES);
    if !compiled(&place, "", "once", &once) {
        return;
    }
    place.deep("RECORD ./once > out");
    let told = place.out();
    // No call failed, so nothing but the end of each group tells that there was no room.
    assert!(!told.contains(" 1 ") && !told.contains("1024"), "{told}");
    place.is_equal_again();
}

/// Sends messages in groups until a timer interrupts the wait for room, and once more behind that.
const INTERRUPTED_MESSAGES: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
enum { MANY = 1024 };
static struct mmsghdr all[MANY];
static volatile int rang;
static void ring(int signal) { rang += signal == SIGALRM; }
int main(void)
{
    struct iovec part = {"four", 4};
    struct sigaction action = {.sa_handler = ring};
    struct itimerval soon = {.it_value = {.tv_usec = 300000}};
    int pair[2];
    char got[8];
    for (int i = 0; i < MANY; i++) {
        all[i].msg_hdr.msg_iov = &part;
        all[i].msg_hdr.msg_iovlen = 1;
    }
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) != 0 || sigaction(SIGALRM, &action, 0) != 0)
        return 1;
    while (sendmmsg(pair[0], all, 1, MSG_DONTWAIT) == 1)
        ;
    setitimer(ITIMER_REAL, &soon, 0);
    int some = sendmmsg(pair[0], all, MANY, 0);
    printf("%d %d %d\n", some, some < 0 && errno == EINTR, rang);
    int received = recv(pair[1], got, sizeof got, 0) == 4;
    printf("%d %d\n", received, sendmmsg(pair[0], all, 1, 0));
    return 0;
}
"#;

#[test]
fn a_group_of_messages_that_a_signal_interrupted_is_interrupted_again() {
    program_writes_again("", "rings", INTERRUPTED_MESSAGES, "-1 1 1\n1 1\n");
}

#[test]
fn a_write_into_a_full_pipe_ends_again_where_its_reader_went_away() {
    let script = r#"
import os, time
r, w = os.pipe()
child = os.fork()
if child == 0:
    os.close(w)
    time.sleep(0.3)
    os._exit(0)
os.close(r)
print(os.write(w, b"x" * 1000000))
try: print(os.write(w, b"x" * 1000000))
except BrokenPipeError: print("broken")
os.waitpid(child, 0)
"#;
    script_is_equal_again(script);
}

#[test]
fn a_descriptor_that_ioctl_kept_open_is_open_in_another_program() {
    let script = r#"
import fcntl, os, subprocess, termios
r, w = os.pipe()
fcntl.ioctl(w, termios.FIONCLEX)
print(os.get_inheritable(r), os.get_inheritable(w))
subprocess.call(["sh", "-c", f"echo kept >&{w}"], close_fds=False)
print(os.read(r, 10))
fcntl.ioctl(w, termios.FIOCLEX)
print(os.get_inheritable(w))
"#;
    script_is_equal_again(script);
}

#[test]
fn a_child_uses_the_files_and_devices_that_were_moved_before_its_program_began() {
    let script = r#"
import os, subprocess, sys, tempfile
code = 'import sys; sys.stdout.write("got " + sys.stdin.read()); sys.stderr.write("err")'
saved = os.dup(1)
for order in [(0, 1, 2), (0, 2, 1), (1, 2, 0), (2, 1, 0)]:
    files = [tempfile.TemporaryFile() for _ in order]
    for fd, file in enumerate(files): os.dup2(file.fileno(), fd)
    os.write(order[0], b"in")
    os.lseek(order[0], 0, os.SEEK_SET)
    names = dict(zip(["stdin", "stdout", "stderr"], order))
    subprocess.call([sys.executable, "-c", code], **names)
    for fd in order[1:]:
        os.lseek(fd, 0, os.SEEK_SET)
        os.write(saved, os.read(fd, 100) + b"\n")
null = os.open("/dev/null", os.O_RDONLY)
os.close(0)
made = subprocess.run([sys.executable, "-c", code], stdin=null, capture_output=True)
os.write(saved, b"%s %s\n" % (made.stdout, made.stderr))
"#;
    script_is_equal_again(script);
}

#[test]
fn a_timer_interrupts_writes_again_at_the_recorded_byte() {
    // The first write has taken a part of its bytes, and the second one none.
    let script = r#"
import os, signal
r, w = os.pipe()
sent, seen = [], []
def handler(number, frame):
    seen.append((sum(sent), len(os.read(r, 1 << 20)) if seen else 0))
signal.signal(signal.SIGALRM, handler)
while sum(sent) < 100000:
    signal.alarm(1)
    sent.append(os.write(w, b"x" * (100000 - sum(sent))))
signal.alarm(0)
print(sent, seen)
"#;
    script_is_equal_again(script);
}

#[test]
fn a_timer_interrupts_a_read_again() {
    // The bytes that end the second read come from the handler.
    let script = r#"
import os, signal
r, w = os.pipe()
def handler(number, frame):
    print("handled", number, flush=True)
    os.write(w, b"late")
signal.signal(signal.SIGALRM, handler)
signal.alarm(1)
print(os.read(r, 100))
"#;
    script_is_equal_again(script);
}

#[test]
fn a_file_keeps_one_identity_while_it_grows() {
    let script = r#"
import os
def same(fd): return os.fstat(fd).st_ino == os.stat("data").st_ino
with open("data", "wb", buffering=0) as f:
    fd, found = f.fileno(), []
    for n in range(20):
        found.append(same(fd))
        f.write(os.urandom(1)[:1] * (1 + n % 3))
        if n % 4 == 0: os.fstat(fd)
        if n % 5 == 0: os.stat("data")
    found.append(same(fd))
print(found)
"#;
    script_is_equal_again(script);
}

#[test]
fn a_path_has_the_status_of_its_next_file_although_libc_looked_at_directories() {
    let script = r#"
import os, shutil
base = os.path.abspath("base")
os.mkdir("used")
for n in range(4):
    os.makedirs(base + "/inner/deeper")
    with open(base + "/file", "w") as f: f.write("x")
    # No number is used again.
    os.link(base + "/file", f"used/{n}")
    for name in ["", "/file", "/inner"]: print(os.stat(base + name).st_ino)
    shutil.rmtree(base)
    for k in range(4): os.mkdir(f"used/{n}-{k}")
"#;
    script_is_equal_again(script);
}

#[test]
fn a_database_of_sqlite_is_written_again() {
    if !needs("a database that is written again", &["sqlite3"]) {
        return;
    }
    let place = Place::new();
    let rows = "create table t(a unique, b); insert into t values (1, 2), (3, 4);\n";
    place.write_aged("rows.sql", &format!("{rows}update t set b = 5;\n.dump\n"));
    place.deep("RECORD sh -c 'sqlite3 data.db < rows.sql' > out");
    if let Some(answer) = place.again(&[]) {
        assert!(answer.err.contains("equal: 2 programs"), "{answer:?}");
    }
}

/// Records a shell line deeply in a directory with the files `a` and `b`, and the directories that
/// are given. Without all of them, the line runs again with equal outputs.
#[track_caller]
fn line_runs_again(line: &str, directories: &[&str]) {
    recorded_line(line, directories).is_equal_again_with(&[], line);
}

/// Where such a line was recorded.
fn recorded_line(line: &str, directories: &[&str]) -> Place {
    let place = Place::new();
    place.write_aged("a", "alpha\n");
    place.write_aged("b", "beta\n");
    for directory in directories {
        std::fs::create_dir_all(place.path(directory)).unwrap();
    }
    place.deep(line);
    place.forget_everything();
    place
}

#[test]
fn a_child_writes_to_the_output_that_its_shell_had_before_a_redirection() {
    let lines = [
        "cat b >first; exec cat a",
        "cat b >first; cat a; cat b >>first; echo one; cat b",
        "cat b >&2; echo one >&2; exec 5>&1; cat b >&5; { cat a; cat b; } >&2; cat b",
        "cat b >first; (cat a; echo sub); cat none 2>&1; cat none; echo last",
    ];
    for (shell, line) in lines.iter().flat_map(|line| [("sh", line), ("bash", line)]) {
        let command = format!("RECORD {shell} -c '{line}; true'");
        line_runs_again(&format!("{command} > out 2> errors < /dev/null"), &[]);
        line_runs_again(&format!("{{ {command} 2>&1; }} | cat"), &[]);
    }
}

#[test]
fn a_shell_enters_directories_of_which_it_used_no_file() {
    let line = "cd empty/inner && pwd; cd ../..; mkdir made && cd made && echo in && cd ../other && echo $PWD";
    line_runs_again(
        &format!("RECORD sh -c '{line}' > out"),
        &["empty/inner", "other"],
    );
}

#[test]
fn a_writer_whose_reader_has_gone_ends_by_the_broken_pipe_again() {
    line_runs_again("{ RECORD yes; true; } | head -n 1", &[]);
    for shell in ["sh", "bash"] {
        for line in [
            "yes | head -n 3",
            "yes | head -n 3 >first; echo $? >&2; cat a",
            "(yes; echo $? >&2) | head -n 2; (trap \"\" PIPE; yes; echo $? >&2) | head -n 2",
        ] {
            let command = format!("RECORD {shell} -c '{line}'");
            line_runs_again(&format!("{command} > out 2> errors"), &[]);
        }
    }
}

#[test]
fn outputs_to_devices_and_to_closed_descriptors_are_those_of_the_record() {
    for shell in ["sh", "bash"] {
        for line in [
            "cat a >/dev/null; cat b >/dev/null 2>&1; cat none 2>/dev/null; echo end",
            "cat a >&- 2>&-; cat b; exec <&- >sub; cat b; cat",
            "cat a >/dev/shm/backstory-$$; mv /dev/shm/backstory-$$ back; cat back",
        ] {
            line_runs_again(
                &format!("RECORD {shell} -c '{line}; true' > out 2> errors"),
                &[],
            );
        }
    }
}

/// Sets the position of streams, which libc does by a call of its own.
const SEEKS: &str = r#"
#include <stdio.h>
static void tell(FILE *stream)
{
    int set = fseek(stream, 1000, SEEK_SET);
    long at = ftell(stream);
    printf("%d %ld %d\n", set, at, getc(stream));
}
int main(void)
{
    tell(stdin);
    tell(fopen("/dev/zero", "r"));
    tell(popen("echo from a pipe", "r"));
    return 0;
}
"#;

#[test]
fn streams_of_devices_have_a_position_and_those_of_pipes_have_none() {
    let line = "RECORD ./seeks < /dev/null > out";
    let Some(place) = recorded_program("", "seeks", SEEKS, line) else {
        return;
    };
    assert_eq!(place.out(), "0 0 -1\n0 1000 0\n-1 -1 102\n");
    place.is_equal_again();
}

#[test]
fn files_have_the_recorded_status_by_relative_paths_too() {
    let line = "touch made; ls -lsa --full-time . inner; du -s a inner; cd inner; ls -ld ../a .";
    line_runs_again(&format!("RECORD sh -c '{line}' > ../out"), &["inner"]);
    if needs("a program that compares times", &["make"]) {
        let line = "printf \"made: a\\n\\tcat a >made\\n\" >Makefile; make; make; touch a; make";
        line_runs_again(&format!("RECORD sh -c '{line}' > ../out"), &[]);
    }
}

#[test]
fn jobs_in_the_background_end_and_are_killed_as_recorded() {
    for (shell, line) in [
        ("sh", "cat a >one & cat b >two & wait; cat one two"),
        ("bash", "cat a >one & cat b >two & wait; cat one two"),
        ("sh", "sleep 30 & kill $!; wait $!; echo $?"),
        ("bash", "sleep 30 & kill -9 $!; wait $!; echo $?"),
        (
            "bash",
            "coproc cat; echo x >&${COPROC[1]}; read l <&${COPROC[0]}; kill $COPROC_PID; wait; echo $l",
        ),
        ("sh", "timeout 0.2 sleep 30; echo $?"),
    ] {
        let place = recorded_line(&format!("RECORD {shell} -c '{line}' > out 2> errors"), &[]);
        // A job may be killed before it makes a recorded call.
        place.is_alike_again("equal", line);
    }
}

#[test]
fn a_program_behind_one_without_a_deep_record_runs_again() {
    line_runs_again(
        "printf \"cat b >made\" >t; chmod +x t; RECORD sh -c './t; cat made' > out",
        &[],
    );
    if needs("a static program", &["busybox"]) {
        let line = "busybox sh -c \"/bin/cat b; /bin/cp a made; /bin/cat b\"; cat made";
        let place = recorded_line(&format!("RECORD sh -c '{line}' > out"), &[]);
        place.is_alike_again("equal where it was recorded: ", line);
    }
}

/// Makes a child that copies the parent's memory, by the function `clone` of libc.
const CLONER: &str = r#"
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static char stack[65536] __attribute__((aligned(16)));
static int child(void *name) { execlp("cat", "cat", (char *)name, (char *)0); return 3; }
int main(void) {
    int status;
    pid_t made = clone(child, stack + sizeof stack, SIGCHLD, "a");
    if (waitpid(made, &status, 0) != made) return 1;
    puts("done");
    return status;
}
"#;

#[test]
fn a_child_that_no_recorded_call_made_runs_again() {
    let place = Place::new();
    place.write_aged("a", "alpha\n");
    if !compiled(&place, "", "cloner", CLONER) {
        return;
    }
    place.deep("RECORD ./cloner > out");
    place.is_equal_again();
}

/// Kills a child before its first call. A replay of the calls in between takes longer than the
/// child counts.
const KILLER: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    struct stat about;
    int status;
    pid_t child = fork();
    if (child == 0) {
        for (volatile int n = 0; n < 50000000; n++);
        execl("absent", "absent", (char *)0);
        _exit(5);
    }
    for (int n = 0; n < 3000; n++) stat("a", &about);
    kill(child, SIGKILL);
    if (waitpid(child, &status, 0) != child) return 1;
    printf("%x\n", status);
    return 0;
}
"#;

#[test]
fn a_child_that_was_killed_before_its_first_call_is_killed_again() {
    let place = Place::new();
    place.write_aged("a", "alpha\n");
    if !compiled(&place, "", "killer", KILLER) {
        return;
    }
    place.deep("RECORD ./killer > out");
    place.is_equal_again();
}

/// Executes a static program in a child, and kills it once it has made a file.
const STARTER: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    struct stat about;
    int status;
    pid_t child = fork();
    if (child == 0) {
        execl("./static", "static", (char *)0);
        _exit(5);
    }
    while (stat("made", &about) != 0) usleep(1000);
    kill(child, SIGTERM);
    if (waitpid(child, &status, 0) != child) return 1;
    printf("%x\n", status);
    return 0;
}
"#;

/// Makes a file, and waits for a signal.
const STATIC: &str = r#"
#include <fcntl.h>
#include <unistd.h>
int main(void) {
    close(open("made", O_CREAT | O_WRONLY, 0600));
    pause();
    return 0;
}
"#;

#[test]
fn a_program_without_a_deep_record_runs_again_until_it_is_killed() {
    let place = Place::new();
    let is_static = compiled(&place, "-static", "static", STATIC);
    if !is_static || !compiled(&place, "", "starter", STARTER) {
        return;
    }
    place.deep("RECORD ./starter > out");
    place.is_alike_again("equal", "starter");
}

/// Waits for signals alone. It tells its worker to end when it is asked to end itself, and misses a
/// worker that ends before.
const MASTER: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int asked, ended;
static void handler(int signal) {
    if (signal == SIGTERM) asked = 1; else ended = 1;
}
int main(void) {
    int ends[2];
    char byte;
    sigset_t blocked, none;
    sigemptyset(&none);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigaddset(&blocked, SIGCHLD);
    sigprocmask(SIG_BLOCK, &blocked, 0);
    signal(SIGTERM, handler);
    signal(SIGCHLD, handler);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 1;
    if (fork() == 0) {
        read(ends[1], &byte, 1);
        dprintf(1, "the worker is told\n");
        _exit(0);
    }
    dprintf(1, "%d\n", getpid());
    while (!asked && !ended) sigsuspend(&none);
    if (!asked) {
        dprintf(1, "the worker is gone\n");
        return 2;
    }
    write(ends[0], "x", 1);
    while (!ended) sigsuspend(&none);
    return wait(0) < 0;
}
"#;

#[test]
fn a_program_that_waits_for_signals_alone_gets_the_one_from_outside_before_its_children_end() {
    let pid = "pid=$(head -n 1 out 2>/dev/null); test -n \"$pid\"";
    let line = format!(
        "(until {pid}; do sleep 0.05; done; kill $pid) & RECORD ./master | cat > out; wait"
    );
    let Some(place) = recorded_program("", "master", MASTER, &line) else {
        return;
    };
    let out = place.out();
    assert!(out.ends_with("\nthe worker is told\n"), "{out}");
    place.is_equal_again();
}

/// Limits its own system calls to a few, and then copies its input.
const LIMITED: &str = r#"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#define ALLOW(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), \
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
int main(void) {
    char bytes[16];
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_read), ALLOW(SYS_write), ALLOW(SYS_exit_group),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (write(1, "limit\n", 6) != 6 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, 2, &program, 0, 0)) abort();
    for (ssize_t n; (n = read(0, bytes, sizeof bytes)) > 0;)
        if (write(1, bytes, n) != n) abort();
    return 0;
}
"#;

#[test]
fn a_program_that_limits_its_calls_runs_again_behind_the_limit() {
    let place = Place::new();
    if !compiled(&place, "", "limited", LIMITED) {
        return;
    }
    place.write(
        "other.txt",
        "a text of another length than the recorded one\n",
    );
    place.deep("printf 'a text that is longer than one read\n' | RECORD ./limited > out");
    place.is_equal_again();
    let Some(answer) = place.again(&["--feed", "0=other.txt"]) else {
        return;
    };
    // The first byte behind the limit that differs.
    let differs = answer.err.contains("byte 13\n");
    assert!(answer.status == 1 && differs, "{answer:?}");
}

/// Executes programs that cannot be executed, in its own process and in children, and then others.
const REFUSED: &str = r#"
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    char *words[] = {"cat", "a", 0}, *none[] = {0};
    pid_t child;
    int status = 0;
    execve("absent", words, none);
    execve("b", words, none);
    execve("./c", words, none);
    execve("inner", words, none);
    printf("%d", errno);
    printf(" %d", posix_spawn(&child, "/absent", 0, 0, words, none));
    printf(" %d", posix_spawnp(&child, "absent", 0, 0, words, none));
    printf(" %d\n", system("cat b; exit 3"));
    fflush(stdout);
    posix_spawn_file_actions_t into;
    posix_spawn_file_actions_init(&into);
    posix_spawn_file_actions_addopen(&into, 1, "made", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    for (int n = 0; n < 2; n++)
        if (posix_spawnp(&child, "cat", n ? &into : 0, 0, words, none) ||
            waitpid(child, &status, 0) != child) abort();
    return status;
}
"#;

#[test]
fn programs_that_could_not_be_executed_cannot_be_executed_again() {
    let place = Place::new();
    place.write_aged("a", "alpha\n");
    place.write_aged("b", "beta\n");
    place.write_program("c", "neither a program nor a script\n");
    std::fs::create_dir_all(place.path("inner")).unwrap();
    if !compiled(&place, "", "refused", REFUSED) {
        return;
    }
    place.deep("RECORD ./refused > out");
    place.is_equal_without_its_files();
}

#[test]
fn a_command_without_a_deep_record_runs_again_with_the_programs_that_it_executes() {
    if !needs("a static program", &["busybox"]) {
        return;
    }
    let script = "/bin/cat a >made; /bin/cat b | /usr/bin/sort >>made; exit 3";
    let place = Place::new();
    place.write_aged("a", "alpha\n");
    place.write_aged("b", "beta\n");
    place.deep(&format!("RECORD busybox sh -c '{script}'; test $? = 3"));
    place.forget_everything();
    let Some(answer) = place.again(&["--json"]) else {
        return;
    };
    let report: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
    let found = &report["reconstruction"];
    assert_eq!(found["verdict"], "equal-where-recorded", "{found:#}");
    let programs = found["processes"].as_array().unwrap().len();
    assert!(programs == 4 && found["shallow"] == 1, "{found:#}");
    assert_eq!(report["outputs"][0]["state"], "identical", "{report:#}");
    let fed = place.again(&["--feed", "0=/dev/null"]).unwrap();
    let said = fed.err.contains("the deep log has none of the command");
    assert!(fed.status == 2 && said, "{fed:?}");
}

#[test]
fn a_command_of_another_architecture_is_refused() {
    let source = r#"void _start(void) { __asm__("int $0x80" : : "a"(1), "b"(0)); }"#;
    let options = "-m32 -static -nostdlib";
    let Some(place) = recorded_program(options, "narrow", source, "RECORD ./narrow") else {
        return;
    };
    if let Some(answer) = place.again(&["--patience", "5"]) {
        let said = answer.err.contains("no program with its start");
        assert!(answer.status != 0 && said, "{answer:?}");
    }
}

#[test]
fn pipes_that_only_the_kernel_reads_are_made_again() {
    let programs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/programs");
    for program in ["kernel_copy", "no_copies"] {
        let place = Place::new();
        if !needs("a pipe that only the kernel reads", &["gcc"]) {
            return;
        }
        let built = format!("gcc -o copies {programs}/{program}.c");
        let files = "mkdir d; echo one > a; echo two two > b; echo x > d/x; touch -d @1 a b d/x d";
        let answer = place.shell(&format!("{built} && {{ {files}; }}"));
        assert_eq!(answer.status, 0, "{answer:?}");
        place.deep("RECORD ./copies | cat > out");
        place.is_equal_again_with(&[], program);
    }
}

/// Lets the kernel move bytes of a file to its output.
const SPLICED: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
int main(void)
{
    return splice(open("a", O_RDONLY), 0, 1, 0, 100, 0) == 4 ? 0 : 1;
}
"#;

#[test]
fn the_kernel_moves_bytes_of_a_file_again() {
    let place = Place::new();
    if compiled(&place, "", "spliced", SPLICED) {
        place.write_aged("a", "one\n");
        place.deep("RECORD ./spliced | cat > out");
        place.is_equal_again();
        if let Some(answer) = place.again(&[]) {
            let said = " 0 bytes compared, 4 bytes not compared\n";
            assert!(answer.err.contains(said), "{answer:?}");
        }
    }
}

/// Asks for as many random bytes as the allocator of glibc does, after that has done so.
const RANDOM_NUMBER: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
int main(void)
{
    unsigned long number = 0;
    char *volatile made = malloc(10);
    if (!made || getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number)
        return 1;
    printf("%lx\n", number);
    free(made);
    return 0;
}
"#;

#[test]
fn the_allocator_of_libc_does_not_take_the_random_bytes_of_the_program() {
    program_is_equal_again("", "number", RANDOM_NUMBER);
}

#[test]
fn files_are_opened_again_through_the_names_of_directories_of_the_process() {
    let script = r#"
import os
os.makedirs("d")
with open("d/x", "w") as f: f.write("x\n")
fd = os.open("d", os.O_RDONLY | os.O_DIRECTORY)
for name in [f"/proc/self/fd/{fd}/x", f"/dev/fd/{fd}/x", "/proc/self/cwd/d/x"]:
    with open(name) as f: print(name, f.read())
with open(f"/proc/thread-self/fd/{fd}/new", "w") as f: f.write("new\n")
print(sorted(os.listdir("d")))
"#;
    script_is_equal_again(script);
}

#[test]
fn a_file_has_one_identity_by_its_descriptor_and_through_its_directory_in_proc() {
    let script = r#"
import os
os.makedirs("d")
def ident(of): return of.st_dev, of.st_ino
for n, directory in enumerate(["d", os.path.abspath("d")]):
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    for name in [f"/proc/self/fd/{fd}/x{n}", f"/dev/fd/{fd}/y{n}"]:
        with open(name, "w") as f: f.write("x\n")
        first = ident(os.stat(name))
        with open(name) as f: own = ident(os.fstat(f.fileno()))
        print(first == own == ident(os.stat(name)))
        # Only of an absolute path is it certain that the recorded numbers belong to the file.
        if n: print(own)
"#;
    script_is_equal_again(script);
}
