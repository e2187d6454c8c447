//! `record --deep --time exact`: a program that runs again takes the recorded times.

use super::Place;
use super::deep_replay::compiled;
use backstory_abi::{CHUNK_SIZE, Chunk, DeepRecord, deep};
use backstory_deep::DeepLog;
use std::path::{Path, PathBuf};

/// Records a shell line with exact time.
pub(super) fn record(place: &Place, line: &str) {
    place.deep_with("--outputs full --time exact --contents=lazy", line);
}

#[test]
fn a_program_that_prints_times_prints_them_again() {
    let place = Place::new();
    let script = r#"
import datetime, os, resource, time
clocks = [time.CLOCK_REALTIME, time.CLOCK_MONOTONIC, time.CLOCK_MONOTONIC_RAW, time.CLOCK_BOOTTIME,
          time.CLOCK_PROCESS_CPUTIME_ID, time.CLOCK_THREAD_CPUTIME_ID]
for n in range(300):
    print([time.clock_gettime_ns(clock) for clock in clocks], datetime.datetime.now())
time.sleep(0.01)
print(time.time_ns(), time.perf_counter_ns(), time.process_time_ns(), os.times())
print(resource.getrusage(resource.RUSAGE_SELF))
child = os.fork()
print(os.getpid(), time.time_ns(), flush=True)
if child: os.waitpid(child, 0)
"#;
    place.write_aged("times.py", script);
    record(&place, "RECORD python3 times.py > out");
    place.is_equal_again();
}

#[test]
fn a_run_of_unit_tests_prints_its_duration_again() {
    let place = Place::new();
    let script = r#"
import time, unittest
class Slow(unittest.TestCase):
    def test_slow(self): time.sleep(0.02); sum(range(300_000))
unittest.main()
"#;
    place.write_aged("slow.py", script);
    record(&place, "RECORD python3 slow.py 2> out");
    place.is_equal_again();
}

/// Each of four threads takes its own times. The order of the threads does not decide about it.
const THREADS: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <time.h>
enum { THREADS = 4, TIMES = 300 };
static struct timespec taken[THREADS][TIMES][2];
static void *take(void *own)
{
    struct timespec(*to)[2] = own, pause = {0, 1000};
    for (int n = 0; n < TIMES; n++) {
        clock_gettime(CLOCK_REALTIME, &to[n][0]);
        clock_gettime(CLOCK_MONOTONIC, &to[n][1]);
        if (n % 50 == 0)
            nanosleep(&pause, 0);
    }
    return 0;
}
int main(void)
{
    pthread_t threads[THREADS];
    for (int t = 0; t < THREADS; t++)
        pthread_create(&threads[t], 0, take, taken[t]);
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], 0);
    for (int t = 0; t < THREADS; t++)
        for (int n = 0; n < TIMES; n++)
            printf("%d %ld %ld\n", t, taken[t][n][0].tv_nsec, taken[t][n][1].tv_nsec);
    return 0;
}
"#;

#[test]
fn each_thread_takes_its_own_times_again() {
    let place = Place::new();
    if compiled(&place, "-pthread", "threads", THREADS) {
        record(&place, "RECORD ./threads > out");
        place.is_equal_again();
    }
}

/// Every second thread takes times and its number. The others make no call.
const NUMBERED: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
enum { THREADS = 24 };
static struct timespec taken[THREADS][2];
static long numbers[THREADS];
static void *take(void *own)
{
    long t = (long)own;
    if (t % 2) {
        clock_gettime(CLOCK_REALTIME, &taken[t][0]);
        numbers[t] = syscall(SYS_gettid);
        clock_gettime(CLOCK_MONOTONIC, &taken[t][1]);
    }
    return 0;
}
int main(void)
{
    pthread_t threads[THREADS];
    for (long t = 0; t < THREADS; t++) {
        pthread_create(&threads[t], 0, take, (void *)t);
        usleep(3000);
    }
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], 0);
    for (int t = 0; t < THREADS; t++)
        printf("%d %ld %ld %ld\n", t, numbers[t], taken[t][0].tv_nsec, taken[t][1].tv_nsec);
    return 0;
}
"#;

#[test]
fn threads_keep_their_numbers_and_times_when_other_programs_took_numbers_between() {
    let place = Place::new();
    if compiled(&place, "-pthread", "numbered", NUMBERED) {
        place.write_aged("busy", "");
        let others = "(while test -e busy; do /bin/true; done) &";
        record(
            &place,
            &format!("{others} RECORD ./numbered > out; rm busy; wait"),
        );
        place.is_equal_again();
    }
}

/// Takes the time by each function of libc, and asks for its processor.
const FUNCTIONS: &str = r#"
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static volatile long in_handler;
static void handler(int signal)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    in_handler = now.tv_nsec;
}
int main(void)
{
    struct timeval day;
    struct timespec now;
    signal(SIGUSR1, handler);
    for (int n = 0; n < 2000; n++) {
        gettimeofday(&day, 0);
        timespec_get(&now, TIME_UTC);
        if (n % 100 == 0)
            raise(SIGUSR1);
        printf("%ld %ld.%06ld %ld %ld %d %ld\n", (long)time(0), (long)day.tv_sec, (long)day.tv_usec,
               now.tv_nsec, (long)clock(), sched_getcpu(), in_handler);
    }
    return 0;
}
"#;

#[test]
fn all_functions_of_libc_for_time_are_exact() {
    let place = Place::new();
    if compiled(&place, "", "functions", FUNCTIONS) {
        record(&place, "RECORD ./functions > out");
        place.is_equal_again();
    }
}

/// Takes the time where only `write` and `exit_group` are allowed.
const LIMITED: &str = r#"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int main(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {5, rules};
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        return 77;
    for (int n = 0; n < 3; n++)
        clock_gettime(CLOCK_REALTIME, &now);
    write(1, now.tv_sec > 1000 ? "done\n" : "fail\n", 5);
    syscall(SYS_exit_group, 0);
}
"#;

#[test]
fn a_program_that_limits_its_calls_takes_the_time_without_one() {
    let place = Place::new();
    if !compiled(&place, "", "limited", LIMITED) {
        return;
    }
    record(&place, "RECORD ./limited > out || test $? = 77");
    let out = place.out();
    assert!(["", "done\n"].contains(&out.as_str()), "{out}");
}

/// Asks the kernel for a limit that it refuses, in one thread or more, and prints the time.
const REFUSED: &str = r#"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static int tries;
static void *try(void *unused)
{
    struct sock_fprog none = {0, 0};
    struct timespec now;
    for (int n = 0; n < tries; n++) {
        if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &none) == 0)
            exit(3);
        clock_gettime(CLOCK_REALTIME, &now);
    }
    return unused;
}
int main(int count, char **arguments)
{
    pthread_t threads[2];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int more = count > 2 ? 2 : 0;
    tries = atoi(arguments[1]);
    for (int t = 0; t < more; t++)
        pthread_create(&threads[t], 0, try, 0);
    try(0);
    for (int t = 0; t < more; t++)
        pthread_join(threads[t], 0);
    puts("done");
    return 0;
}
"#;

#[test]
fn threads_whose_limits_are_refused_go_on_together() {
    let place = Place::new();
    if !compiled(&place, "-pthread", "refused", REFUSED) {
        return;
    }
    record(&place, "RECORD ./refused 20000 together > out");
    assert_eq!(place.out(), "done\n");
}

#[test]
fn a_program_whose_limit_is_refused_says_that_its_later_times_are_missing() {
    let place = Place::new();
    if !compiled(&place, "-pthread", "refused", REFUSED) {
        return;
    }
    record(&place, "RECORD ./refused 3 > out");
    let path = deep_log(&place);
    if times(&path).is_empty() {
        return; // The kernel does not let the recorder change its functions.
    }
    let log = DeepLog::open(path).unwrap();
    let calls = log.process_calls(log.processes()[0].epoch);
    let told = calls.filter(|call| call.number == deep::UNTIMED).count();
    assert_eq!(told, 1);
    if let Some(answer) = place.again(&[]) {
        assert!(
            answer.err.contains("its later times are missing"),
            "{answer:?}"
        );
    }
}

pub(super) fn deep_log(place: &Place) -> PathBuf {
    let runs = std::fs::read_dir(place.stage.store().join("runs")).unwrap();
    let mut files = runs.map(|entry| entry.unwrap().path());
    files
        .find(|path| path.extension().is_some_and(|e| e == "deep"))
        .unwrap()
}

/// The recorded times of the first process, in order.
fn times(log: &Path) -> Vec<i64> {
    let log = DeepLog::open(log).unwrap();
    let calls = log.process_calls(log.processes()[0].epoch);
    let times = calls.filter(|call| call.number == deep::CLOCK);
    times.map(|call| call.result).collect()
}

/// Takes the time so often that its record has many chunks.
const OFTEN: &str = r#"
#include <time.h>
int main(void)
{
    struct timespec now;
    for (int n = 0; n < 40000; n++)
        clock_gettime(CLOCK_REALTIME, &now);
    return 0;
}
"#;

#[test]
fn damage_of_a_chunk_costs_only_the_times_in_it() {
    let place = Place::new();
    if !compiled(&place, "", "often", OFTEN) {
        return;
    }
    record(&place, "RECORD ./often");
    let path = deep_log(&place);
    let all = times(&path);
    if all.is_empty() {
        return; // The kernel does not let the recorder change its functions.
    }
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x55;
    let damaged = place.work().join("damaged.deep");
    std::fs::write(&damaged, bytes).unwrap();
    let left = times(&damaged);
    let in_chunk = (CHUNK_SIZE as usize - Chunk::SIZE) / DeepRecord::SIZE;
    assert_eq!(all.len() - left.len(), in_chunk);
    let before = (0..left.len()).take_while(|&n| left[n] == all[n]).count();
    assert_eq!(left[before..], all[before + in_chunk..]);
}

#[test]
fn exact_time_needs_a_deep_record() {
    let place = Place::new();
    let answer = place.run(&["record", "--time=exact", "--", "true"]);
    assert!(
        answer.status != 0 && answer.err.contains("add --deep"),
        "{answer:?}"
    );
}

/// Asks the kernel by number: for random bytes, a position, and what is ready.
const BY_NUMBER: &str = r#"
#define _GNU_SOURCE
#include <poll.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>
int main(void) {
    unsigned char random[8];
    struct pollfd input = {0, POLLIN, 0};
    struct timespec now, none = {0, 0};
    struct tms ticks;
    syscall(SYS_getrandom, random, sizeof random, 0);
    long ready = syscall(SYS_poll, &input, 1, 10000);
    syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
    for (unsigned n = 0; n < sizeof random; n++) printf("%02x", random[n]);
    printf(" %ld %d %ld.%09ld", ready, input.revents, (long)now.tv_sec, now.tv_nsec);
    ready = syscall(SYS_ppoll, &input, 1, &none, 0, 8);
    printf(" %ld %ld %ld\n", ready, syscall(SYS_getppid), syscall(SYS_times, &ticks));
}
"#;

#[test]
fn what_a_program_asks_the_kernel_by_number_comes_again() {
    let place = Place::new();
    if !compiled(&place, "", "by_number", BY_NUMBER) {
        return;
    }
    record(&place, "echo input | RECORD ./by_number > out");
    place.is_equal_again();
}
