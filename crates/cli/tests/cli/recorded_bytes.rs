//! `record --bytes`: a command under the byte engine is recorded as without it.

use std::collections::BTreeSet;

use backstory_testkit::need::skipped;
use serde_json::Value;

use super::Place;
use super::bytes::engine;
use super::deep_replay::compiled;

/// Threads, children of each kind, calls that bypass libc, a mapped file, and a last `exec`.
const MANY: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static void *thread(void *none) {
    int fd = open("thread.out", O_CREAT | O_WRONLY, 0600);
    if (write(fd, "x", 1) != 1)
        exit(9);
    close(fd);
    return none;
}
static void copy(const char *to) {
    char bytes[9];
    int in = open("in.csv", O_RDONLY), out = open(to, O_CREAT | O_WRONLY, 0600);
    if (read(in, bytes, 9) != 9 || write(out, bytes, 9) != 9)
        exit(9);
}
int main(void) {
    pthread_t other;
    int status;
    pthread_create(&other, NULL, thread, NULL);
    pthread_join(other, NULL);
    if (fork() == 0) {
        copy("child.out");
        _exit(3);
    }
    wait(&status);
    if (vfork() == 0) {
        execl("/bin/cat", "a cat", "in.csv", NULL);
        _exit(4);
    }
    wait(&status);
    char *sort[] = {"sort", "-r", "in.csv", NULL};
    pid_t child;
    posix_spawnp(&child, "sort", NULL, NULL, sort, environ);
    waitpid(child, &status, 0);
    if (system("wc -l < in.csv > wc.out") || system("./static") < 0)
        return 8;
    int fd = open("map.out", O_CREAT | O_RDWR, 0600);
    if (ftruncate(fd, 100))
        return 7;
    char *map = mmap(NULL, 100, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    strcpy(map, "mapped");
    munmap(map, 100);
    long raw = syscall(SYS_openat, AT_FDCWD, "raw.out", O_CREAT | O_WRONLY, 0600);
    if (write(raw, "y", 1) != 1 || rename("thread.out", "renamed.out"))
        return 6;
    execl("/nonexistent/x", "x", NULL);
    execl("/bin/sh", "sh", "-c", "echo done > done.out", NULL);
    return 1;
}
"#;

/// Without a recorder, so that the guard alone sees it.
const STATIC: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(void) {
    char bytes[9];
    int in = open("in.csv", O_RDONLY), out = open("static.out", O_CREAT | O_WRONLY, 0600);
    if (read(in, bytes, 9) != 9 || write(out, bytes, 9) != 9)
        return 1;
    rename("static.out", "moved.out");
    execl("/bin/cat", "cat", "in.csv", NULL);
    return 1;
}
"#;

/// The processes of a run, and the edges of its graph. Their order does not depend on processes
/// that run at the same time.
fn said(place: &Place, run: &str) -> BTreeSet<String> {
    let shown = place.json(&["show", run, "--json"]);
    let mut said = BTreeSet::new();
    for field in ["command", "complete", "own_inputs", "own_outputs"] {
        said.insert(format!("{field} {}", shown[field]));
    }
    for process in place
        .json(&["processes", run, "--json"])
        .as_array()
        .unwrap()
    {
        let fields = [
            "exec_path",
            "argv",
            "exit",
            "signal",
            "cwd",
            "env_set",
            "env_unset",
        ];
        let fields = fields.map(|field| process[field].to_string());
        said.insert(format!("process {}", fields.join(" ")));
    }
    let edges = "SELECT p.command, f.path, f.version, e.how, e.certainty, e.via FROM edges e \
        JOIN files f ON f.file = e.file JOIN processes p ON p.process = e.process";
    let rows = place.json(&["query", "--json", edges]);
    for row in rows.as_array().unwrap() {
        said.insert(format!("edge {row}"));
    }
    said
}

#[test]
fn a_command_under_the_byte_engine_is_recorded_as_without_it() {
    let (alone, under) = (Place::new(), Place::new());
    let Some(engine) = engine(&under) else {
        return;
    };
    for (place, name, options) in [(&alone, "alone", ""), (&under, "under", "--bytes")] {
        place.write_aged("in.csv", "3,cedar,30\n1,ash,10\n");
        if !compiled(place, "-pthread", "many", MANY)
            || !compiled(place, "-static", "static", STATIC)
        {
            return;
        }
        for made in ["many", "static"] {
            place.age(made);
        }
        let ran = place.shell(&format!(
            "env {engine} $B record {options} --wait --name {name} -- ./many"
        ));
        assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{ran:?}");
    }
    let relative = |place: &Place, name: &str| -> BTreeSet<String> {
        let said = said(place, name);
        let work = place.work().to_string_lossy().into_owned();
        // The number of a pipe differs from run to run.
        let same = |one: &String| match one.split_once("pipe:[") {
            Some((before, after)) => {
                let after = after.trim_start_matches(|digit: char| digit.is_ascii_digit());
                format!("{before}pipe:[{after}")
            }
            None => one.replace(&work, "WORK"),
        };
        said.iter().map(same).collect()
    };
    let (expected, found) = (relative(&alone, "alone"), relative(&under, "under"));
    assert!(expected.len() > 30, "{expected:#?}");
    let missing: Vec<_> = expected.difference(&found).collect();
    let more: Vec<_> = found.difference(&expected).collect();
    assert!(
        missing.is_empty() && more.is_empty(),
        "missing {missing:#?}, more {more:#?}"
    );
    let shown = under.json(&["show", "under", "--json"]);
    assert_eq!(shown["modes"]["byte_engine"], true);
    let copied = under.run(&["of", "child.out", "--bytes", "0-8"]).out;
    assert!(copied.contains("copied from in.csv, bytes 0-8"), "{copied}");
    let moved = under.run(&["of", "moved.out", "--bytes", "0-8"]).out;
    assert!(moved.contains("copied from in.csv, bytes 0-8"), "{moved}");
}

#[test]
fn a_program_under_the_byte_engine_gets_the_environment_and_arguments_of_the_user() {
    let place = Place::new();
    let Some(engine) = engine(&place) else {
        return;
    };
    let command = "sh -c 'env; exec env'";
    let set = format!("env -i PATH=/usr/bin:/bin HOME=/nonexistent {engine} LD_PRELOAD=");
    let store = place.stage.store();
    let run = |options: &str| {
        let answer = place.shell(&format!(
            "{set} $B --store {} record {options} -- {command}",
            store.display()
        ));
        assert_eq!((answer.status, answer.err.as_str()), (0, ""), "{answer:?}");
        answer.out
    };
    let alone = run("");
    assert_eq!(run("--bytes"), alone);
    assert!(alone.contains("LD_PRELOAD=\n"), "{alone}");
}

/// Reads a file, and writes a line of its own and all that it read.
const REPORT: &str = r#"
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
static int fd;
__attribute__((noinline)) void write_head(const char *text) {
    if (write(fd, text, strlen(text)) < 0)
        _exit(1);
}
__attribute__((noinline)) void write_rows(const char *rows) {
    if (write(fd, rows, strlen(rows)) < 0)
        _exit(1);
}
int main(void) {
    char bytes[100] = {0};
    if (read(open("in.csv", O_RDONLY), bytes, 99) < 0)
        return 1;
    fd = open("out.txt", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    write_head("head\n");
    write_rows(bytes);
    return 0;
}
"#;

#[test]
fn files_functions_and_bytes_of_one_run_are_in_one_graph() {
    let place = Place::new();
    let Some(engine) = engine(&place) else {
        return;
    };
    place.write_aged("in.csv", "1,ash\n2,birch\n");
    place.write_aged("report.c", REPORT);
    let built = place.run(&["cc", "--compiler=gcc", "-g", "-o", "report", "report.c"]);
    if built.status != 0 {
        return skipped("functions and bytes", "no gcc");
    }
    let ran = place.shell(&format!(
        "env {engine} $B record --bytes --functions 'write_*' --arguments -- ./report"
    ));
    assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{ran:?}");
    let graph = place.run(&["of", "out.txt"]).out;
    for part in [
        "write_head() in report.c:6",
        "write_rows() in report.c:10",
        "in.csv",
    ] {
        assert!(graph.contains(part), "{part}: {graph}");
    }
    let bytes: Value = place.json(&["of", "out.txt", "--line", "2", "--json"]);
    assert_eq!(bytes["sources"][0]["copied"][0], serde_json::json!([0, 5]));
    assert_eq!(bytes["possible"], serde_json::json!([]), "{bytes}");
    let writer = &bytes["written_by"][0];
    assert_eq!(writer["functions"][0]["name"], "write_rows");
    let call = writer["calls"][0][0].as_str().unwrap();
    assert!(call.starts_with("write_rows() in report.c:10"), "{bytes}");
}

const ROWS: &str = r#"
#include <string.h>
#include <unistd.h>
void write_rows(int fd, const char *rows) {
    if (write(fd, rows, strlen(rows)) < 0)
        _exit(1);
}
"#;

const COPY: &str = r#"
#include <fcntl.h>
#include <unistd.h>
void write_rows(int fd, const char *rows);
__attribute__((noinline)) int copy_rows(const char *from, const char *to) {
    char bytes[100] = {0};
    if (read(open(from, O_RDONLY), bytes, 99) < 0)
        return 1;
    write_rows(open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600), bytes);
    return 0;
}
int main(void) { return copy_rows("in.csv", "out.txt") + 1 - 1; }
"#;

#[test]
fn functions_of_a_library_that_was_not_compiled_anew_are_recorded_with_bytes() {
    let place = Place::new();
    let Some(engine) = engine(&place) else {
        return;
    };
    place.write_aged("in.csv", "1,ash\n2,birch\n");
    place.write("rows.c", ROWS);
    place.write("copy.c", COPY);
    let build = "gcc -g -O1 -shared -fPIC -o librows.so rows.c && \
                 gcc -g -O1 -o copy copy.c -L. -lrows -Wl,-rpath,\"$PWD\"";
    assert_eq!(place.shell(build).status, 0);
    let ran = place.shell(&format!(
        "env {engine} $B record --bytes --functions 'librows.so:write_*' --arguments -- ./copy"
    ));
    assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{ran:?}");
    let graph = place.run(&["of", "out.txt"]).out;
    for part in ["write_rows() in rows.c:4", "in.csv"] {
        assert!(graph.contains(part), "{part}: {graph}");
    }
    let bytes: Value = place.json(&["of", "out.txt", "--line", "2", "--json"]);
    assert_eq!(bytes["sources"][0]["copied"][0], serde_json::json!([6, 13]));
    // The engine finds the callers behind the address to which a redirected call returns.
    let writer = &bytes["written_by"][0];
    for (at, name) in [(0, "write_rows"), (1, "copy_rows"), (2, "main")] {
        assert_eq!(writer["functions"][at]["name"], name, "{bytes}");
    }
    let call = writer["calls"][0][0].as_str().unwrap();
    assert!(call.starts_with("write_rows() in rows.c:4"), "{bytes}");
}
