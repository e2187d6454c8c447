//! A recorded program that attacks the recording harms at most its own run.

use crate::oracle::common;
use backstory_testkit::answer::{self, Show};
use backstory_testkit::need::needs;
use backstory_testkit::oracle::{Bench, Case, program, watch};
use backstory_testkit::user::User;
use std::path::Path;

fn show(bench: &Bench, store: &Path, run: &str) -> Show {
    answer::read(&bench.ask(store, &["show", "--json", run]).unwrap()).unwrap()
}

/// Records `hostile MODE SEED` between two good commands of the same shell, after an earlier run in
/// the same store.
fn attack(bench: &Bench, mode: &str, seed: u32, options: &[&str]) -> (i32, String, Show) {
    const FIRST: Case = program("attacked", &["cp", "a", "copy"]);
    let (outcome, store) = bench.recorded(&FIRST, &["--name", "first"]).unwrap();
    assert_eq!(outcome.code(), 0);
    let before = bench.files(&store, "first").unwrap();
    let log = std::fs::read(first_log(&store)).unwrap();
    let directory = bench.stage().path().join("work/attacked");
    let line = format!("$FIX/hostile {mode} {seed}; echo then; exit 7");
    let mut command = bench.stage().backstory(&["record", "--name", "attack"]);
    command
        .args(options)
        .args(["--", "sh", "-c", &line])
        .env("BACKSTORY_STORE", &store);
    let outcome = watch(&mut command, &directory).unwrap();
    let text = String::from_utf8_lossy(&outcome.stdout).into_owned();
    let told = show(bench, &store, "attack");
    let earlier = show(bench, &store, "first");
    assert!(
        earlier.complete,
        "{mode} {seed}: the earlier run {earlier:?}"
    );
    assert_eq!(bench.files(&store, "first").unwrap(), before);
    let now = std::fs::read(first_log(&store)).unwrap();
    assert!(
        now.starts_with(&log),
        "{mode} {seed}: an earlier log was changed"
    );
    for question in [
        &["files", "--json", "attack"][..],
        &["processes", "attack"],
        &["log", "--raw", "attack"],
    ] {
        bench.ask(&store, question).unwrap();
    }
    (outcome.code(), text, told)
}

/// The log of the run called `first`: the only one of its store that is older than all others.
fn first_log(store: &Path) -> std::path::PathBuf {
    let logs = std::fs::read_dir(store.join("runs"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let logs = logs.filter(|path| path.extension().is_some_and(|e| e == "log"));
    logs.min_by_key(|path| std::fs::metadata(path).unwrap().created().unwrap())
        .unwrap()
}

#[test]
fn a_program_that_overwrites_the_arena_kills_and_hangs_no_process() {
    if !needs("hostile", &["gcc"]) {
        return;
    }
    let bench = common::bench(User::ordinary());
    for (mode, seeds) in [("header", 3), ("chunks", 3), ("bitmaps", 1), ("next", 2)] {
        for seed in 1..=seeds {
            let (code, text, told) = attack(&bench, mode, seed, &[]);
            // The shell that started it shares the arena. It may lose its own operations, but not
            // its life.
            assert_eq!(
                (code, text.as_str()),
                (7, "done\nthen\n"),
                "{mode} {seed}: {told:?}"
            );
        }
    }
}

#[test]
fn an_arena_cut_short_or_made_huge_ends_neither_the_command_nor_the_recording() {
    if !needs("hostile", &["gcc"]) {
        return;
    }
    let bench = common::bench(User::ordinary());
    for mode in ["cut", "grow"] {
        for options in [&[][..], &["--guard=off"]] {
            let (code, text, told) = attack(&bench, mode, 1, options);
            assert!(text.starts_with("done\n"), "{mode}: {text}");
            assert!([7, 135].contains(&code), "{mode}: {code}");
            assert!(mode != "cut" || !told.complete, "{told:?}");
        }
    }
}

#[test]
fn the_recorders_own_calls_with_random_arguments_are_harmless() {
    if !needs("hostile", &["gcc"]) {
        return;
    }
    let bench = common::bench(User::ordinary());
    for seed in 1..=2 {
        let (code, text, _) = attack(&bench, "magic", seed, &[]);
        assert_eq!((code, text.as_str()), (7, "done\nthen\n"));
    }
}
