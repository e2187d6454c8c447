//! `replay --deep`: libc chooses the names of temporary files that it chose in the record. The
//! addresses of these programs are other ones in the record, and their times are not exact.

use backstory_testkit::need::needs;

use super::Place;
use super::deep_equal::program_is_equal_again;
use super::deep_replay::{recorded_server, replayed_program};

/// Makes files and directories with names of libc, also in a child. Writes into them, and removes
/// some.
const NAMES: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static void put(int fd, const char *text)
{
    if (write(fd, text, strlen(text)) < 0 || close(fd))
        exit(1);
}
static void make(int removes)
{
    char file[] = "./m_XXXXXX", ending[] = "s_XXXXXX.txt", directory[] = "d_XXXXXX", below[32];
    int one = mkstemp(file), two = mkostemps(ending, 4, O_CLOEXEC | O_APPEND);
    if (one < 0 || two < 0 || !mkdtemp(directory))
        exit(1);
    snprintf(below, sizeof below, "%s/below", directory);
    put(one, file);
    put(two, ending);
    put(open(below, O_WRONLY | O_CREAT, 0644), directory);
    printf("%s %s %s\n", file, ending, directory);
    if (removes && (unlink(file) || unlink(below) || rmdir(directory)))
        exit(1);
}
int main(void)
{
    for (int n = 0; n < 5; n++)
        make(n % 2);
    fflush(stdout);
    if (fork() == 0) {
        make(0);
        exit(0);
    }
    wait(0);
    make(1);
    return 0;
}
"#;

#[test]
fn names_of_mkstemp_mkostemps_and_mkdtemp_come_again_also_in_a_child() {
    program_is_equal_again("", "names", NAMES);
}

/// Two threads make files by the same template, at the same time.
const IN_THREADS: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static char names[2][8][16];
static void *make(void *own)
{
    char (*all)[16] = own;
    for (int n = 0; n < 8; n++) {
        strcpy(all[n], "t_XXXXXX");
        close(mkstemp(all[n]));
    }
    return 0;
}
int main(void)
{
    pthread_t threads[2];
    for (int t = 0; t < 2; t++)
        pthread_create(&threads[t], 0, make, names[t]);
    for (int t = 0; t < 2; t++)
        pthread_join(threads[t], 0);
    for (int t = 0; t < 2; t++)
        for (int n = 0; n < 8; n++) {
            puts(names[t][n]);
            if (unlink(names[t][n]))
                return 1;
        }
    return 0;
}
"#;

#[test]
fn each_thread_gets_the_names_that_it_had() {
    program_is_equal_again("-pthread", "threads", IN_THREADS);
}

/// Answers each request with the name of a temporary file, which libc's function makes.
const NAMER: &str = r#"
import ctypes, os, socket
libc = ctypes.CDLL(None)
LISTEN
for n in range(3):
    c, a = s.accept()
    c.recv(9)
    name = ctypes.create_string_buffer(b"up_XXXXXX")
    os.close(libc.mkstemp(name)); os.unlink(name.value)
    c.sendall(name.value); c.close()
"#;

const NAMER_CLIENT: &str = r#"
CONNECT
for n in range(3):
    c = connect()
    c.sendall(b"give %d" % n); assert c.recv(100).startswith(b"up_"); c.close()
"#;

#[test]
fn a_request_that_is_fed_alone_gets_its_own_name() {
    let what = "a server that names files";
    let Some(place) = recorded_server(what, NAMER, NAMER_CLIENT) else {
        return;
    };
    for part in [&["--request", "2", "--tries", "1"][..], &[]] {
        place.is_equal_again_with(part, "");
    }
}

/// Chooses a name by the time-stamp counter, which no log has, and keeps a copy of it. Says whether
/// the name is still the copy, or with an argument the copy itself.
const OWN: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static char name[] = "own_XXXXXX", copy[sizeof name];
int main(int count, char **words)
{
    unsigned long long random = __builtin_ia32_rdtsc() * 0x9e3779b97f4a7c15ull >> 16;
    for (int n = 0; n < 6; n++, random /= 26)
        name[4 + n] = 'a' + random % 26;
    strcpy(copy, name);
    if (open(name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600) < 0 || unlink(copy))
        return 1;
    puts(count > 1 ? copy : strcmp(name, copy) ? "changed" : "kept");
    return 0;
}
"#;

#[test]
fn a_name_that_a_program_chose_by_itself_stays_and_differs() {
    program_is_equal_again("", "own", OWN);
    let line = "RECORD ./own shown > out";
    if let Some((_, answer)) = replayed_program("", "own", OWN, line) {
        assert_eq!(answer.status, 1, "{answer:?}");
        assert!(answer.err.contains("different: 1 program"), "{answer:?}");
    }
}

#[test]
fn names_of_the_command_mktemp_and_of_lua_come_again() {
    for (program, line) in [
        (
            "mktemp",
            "RECORD sh -c 'f=$(mktemp x.XXXXXXXXXX); d=$(mktemp -d y.XXXXXX.z); echo $f $d; \
             echo $f > $d/in; rm $f' > out",
        ),
        (
            "lua5.4",
            "RECORD lua5.4 -e 'n = os.tmpname() print(n) os.remove(n)' > out",
        ),
    ] {
        if !needs("a program that names temporary files", &[program]) {
            continue;
        }
        let place = Place::new();
        place.deep(line);
        place.is_equal_again_with(&[], program);
    }
}
