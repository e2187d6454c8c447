//! `record --deep --fixed-addresses`: a program that runs again has the recorded addresses.

use backstory_testkit::need::{needs, skipped};

use super::deep_equal::{is_equal, program_writes_again};
use super::deep_replay::compiled;
use super::{Answer, Place};

/// True if this machine lets a program have fixed addresses. A container may refuse that
/// (`personality`).
fn may_fix_addresses() -> bool {
    let what = "a record with fixed addresses";
    if !needs(what, &["setarch"]) {
        return false;
    }
    let answer = Place::new().shell("setarch -R true");
    if answer.status != 0 {
        skipped(what, &answer.err);
    }
    answer.status == 0
}

/// Records a shell line with fixed addresses.
fn record(place: &Place, line: &str) {
    place.deep_with("--outputs full --fixed-addresses --contents=lazy", line);
}

/// The answer if the run is not equal again.
fn differing(place: &Place, more: &[&str]) -> Option<Answer> {
    place.again(more).filter(|answer| !is_equal(answer))
}

/// Prints addresses: of code, of small and large memory, and of threads and their memory.
const ADDRESSES: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static void *look(void *none)
{
    printf("%p %p %p\n", (void *)pthread_self(), malloc(100), malloc(16));
    return none;
}
int main(void)
{
    printf("%p %p %p %p\n", (void *)main, (void *)printf, malloc(100), malloc(1 << 20));
    for (int n = 0; n < 3; n++) {
        pthread_t thread;
        pthread_create(&thread, 0, look, 0);
        pthread_join(thread, 0);
    }
    return 0;
}
"#;

#[test]
fn code_memory_and_threads_have_the_same_addresses() {
    let place = Place::new();
    if may_fix_addresses() && compiled(&place, "-pthread", "addresses", ADDRESSES) {
        record(&place, "RECORD ./addresses > out");
        place.is_equal_again();
        let shown = place.json(&["show", "deep", "--json"]);
        assert_eq!(shown["modes"]["fixed_addresses"], true);
        let shown = place.run(&["show", "deep", "--verbose"]);
        assert!(shown.out.contains("with fixed addresses"), "{shown:?}");
    }
}

/// Opens streams that it does not get, and prints addresses of memory.
const REFUSED: &str = r#"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    for (int n = 0; n < 3; n++) {
        if (fopen("missing", "r") || errno != ENOENT || fopen("missing", "?") || errno != EINVAL)
            return 1;
        printf("%p %p %p\n", malloc(100), malloc(472), malloc(3000));
    }
    return 0;
}
"#;

#[test]
fn memory_has_the_same_addresses_behind_a_stream_that_libc_refuses() {
    let place = Place::new();
    if may_fix_addresses() && compiled(&place, "", "refused", REFUSED) {
        record(&place, "RECORD ./refused > out");
        place.is_equal_again();
    }
}

/// Prints an address on its stack, and one above it, and a variable.
const STACK: &str = r#"
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **words)
{
    printf("%d %p %p %s\n", count, (void *)&count, (void *)words, getenv("SHOWN"));
    return 0;
}
"#;

#[test]
fn stacks_begin_at_the_same_addresses_and_no_variable_is_added() {
    if !may_fix_addresses() {
        return;
    }
    for line in [
        "SHOWN=yes RECORD ./stack > out",
        "SHOWN=longer-by-some-bytes RECORD ./stack with an argument > out",
        "RECORD env > out",
    ] {
        let place = Place::new();
        if compiled(&place, "", "stack", STACK) {
            record(&place, line);
            place.is_equal_again_with(&[], line);
        }
    }
}

/// The shell makes the path of a program that it finds by its name, and executes that in a child of
/// `fork`.
#[test]
fn the_stack_of_a_program_that_a_shell_executes_begins_at_the_same_address() {
    let what = "the stack of a child of a shell";
    if !needs(what, &["dash"]) || !may_fix_addresses() {
        return;
    }
    // A container may refuse the call that tells whether processes share memory.
    let own = std::process::id();
    if let Err(error) = backstory_sys::shares_memory(own, own) {
        return skipped(what, &error.to_string());
    }
    let place = Place::new();
    if compiled(&place, "", "stack", STACK) {
        let line = "RECORD dash -c 'PATH=.:$PATH; echo $(stack) $(SHOWN=yes stack 1 2)' > out";
        record(&place, line);
        place.is_equal_again();
    }
}

#[test]
fn without_a_deep_record_the_option_is_refused() {
    let answer = Place::new().run(&["record", "--fixed-addresses", "--", "true"]);
    answer.is_error(125, &["--fixed-addresses", "add --deep"]);
}

/// Two clients, one after the other. They wait for the server's port, and not for ever. The server
/// has an input that does not end: it would end with that.
const CLIENTS: &str = "mkfifo input && exec 3<>input; \
    { turns=3000; \
      until port=$(sed -n 's/^ACCEPT .*:\\([0-9][0-9]*\\)$/\\1/p' out 2>/dev/null); [ -n \"$port\" ]; do \
        turns=$((turns - 1)); [ $turns -gt 0 ] || exit 1; sleep 0.01; \
      done; \
      for n in 1 2; do echo | openssl s_client -connect 127.0.0.1:$port; done; } > got 2>&1 & ";

const SERVER: &str = "timeout 300 RECORD openssl s_server -accept 127.0.0.1:0 \
    -cert certificate -key key -naccept 2 <&3 > out && wait";

/// A handshake has random numbers of both ends, which OpenSSL makes from addresses, too.
#[test]
#[ignore = "long: up to ten records of a server, as a handshake depends on the second"]
fn handshakes_of_openssl_come_again() {
    let is_there = needs(
        "handshakes that come again",
        &["openssl", "mkfifo", "timeout"],
    );
    if !is_there || !may_fix_addresses() {
        return;
    }
    // A handshake also depends on the second. One that began just before the next second differs.
    let mut tries = Vec::new();
    for _ in 0..10 {
        let place = Place::new();
        let made = place.shell(
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
             -keyout key -out certificate -subj /CN=localhost",
        );
        assert_eq!(made.status, 0, "{made:?}");
        record(&place, &[CLIENTS, SERVER].concat());
        let got = std::fs::read_to_string(place.path("got")).unwrap();
        assert!(got.contains("BEGIN CERTIFICATE"), "{got}");
        let parts = [&[][..], &["--request", "1"]];
        let found: Vec<Answer> = parts
            .iter()
            .filter_map(|more| differing(&place, more))
            .collect();
        if found.is_empty() {
            return;
        }
        tries.push(found);
    }
    panic!("no try was equal: {tries:?}");
}

/// A handler of signals tells the program by a pipe where a value is, as libuv's does.
const TOLD_ITSELF: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
struct watcher { int signals; };
static struct watcher *watcher;
static int ends[2];
static void handle(int signal)
{
    (void)signal;
    if (write(ends[1], &watcher, sizeof watcher) != sizeof watcher)
        _exit(3);
}
int main(void)
{
    struct watcher *found;
    watcher = calloc(1, sizeof *watcher);
    if (!watcher || pipe(ends) || signal(SIGUSR1, handle) == SIG_ERR)
        return 1;
    for (int n = 0; n < 3; n++) {
        raise(SIGUSR1);
        if (read(ends[0], &found, sizeof found) != sizeof found)
            return 2;
        printf("%d signals\n", ++found->signals);
    }
    return 0;
}
"#;

#[test]
fn a_program_reads_the_addresses_that_it_wrote_into_its_own_pipe() {
    // Without fixed addresses, those of the record lead nowhere.
    let text = "1 signals\n2 signals\n3 signals\n";
    program_writes_again("", "itself", TOLD_ITSELF, text);
}
