//! Whichever part is killed at whichever moment, the program goes on undisturbed. The store opens,
//! and the run is reported truthfully.
//!
//! Beside the command stand the launcher (which the test starts), its child the keeper, and the
//! keeper's child the supervisor.

use crate::oracle::common;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::Duration;

use backstory_testkit::answer::{self, FileLine, ProcessLine, Show};
use backstory_testkit::need::needs;
use backstory_testkit::oracle::{Bench, Case, program, sh};
use backstory_testkit::procs::{alive, children, eventually, kill};
use backstory_testkit::strace::Word;
use backstory_testkit::user::User;

const PATIENCE: Duration = Duration::from_secs(120);
/// Files that the interrupted programs make.
const FILES: usize = 300;

const STEADY: Case = program("steady", &["$FIX/steady", "300"]);
const STEADY_STATIC: Case = program("steady-static", &["$FIX/steady_static", "300"]);

struct Started {
    child: Child,
    directory: PathBuf,
    store: PathBuf,
    keeper: u32,
    supervisor: u32,
}

/// Starts the case and waits until it has made file number `made`.
fn start(bench: &Bench, case: &Case, made: usize) -> Started {
    let (child, directory, store) = bench.started(case).expect("the recording starts");
    let file = directory.join(format!("o{made}"));
    assert!(
        eventually(PATIENCE, || file.exists()),
        "the program never made {}",
        file.display()
    );
    let only = |of: u32| {
        *children(of)
            .iter()
            .find(|c| is_backstory(**c))
            .expect("a child of backstory's")
    };
    let keeper = only(child.id());
    let supervisor = only(keeper);
    Started {
        child,
        directory,
        store,
        keeper,
        supervisor,
    }
}

fn is_backstory(pid: u32) -> bool {
    std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe.ends_with("bin/backstory"))
}

/// Waits for the launcher. Returns its status and the command's output.
fn finish(child: &mut Child) -> (ExitStatus, String) {
    let mut text = String::new();
    child
        .stdout
        .take()
        .expect("stdout")
        .read_to_string(&mut text)
        .expect("the command's output");
    (child.wait().expect("the launcher ends"), text)
}

fn show(bench: &Bench, store: &Path) -> Show {
    answer::read(&bench.ask(store, &["show", "--json"]).expect("show answers"))
        .expect("show's JSON")
}

fn files(bench: &Bench, store: &Path) -> Vec<FileLine> {
    answer::read(
        &bench
            .ask(store, &["files", "--json"])
            .expect("files answers"),
    )
    .expect("files' JSON")
}

/// True if the run lists `name` as written.
fn tells_write(lines: &[FileLine], directory: &Path, name: &str) -> bool {
    let path = directory.join(name);
    lines
        .iter()
        .any(|l| l.path.0 == path.as_os_str().as_encoded_bytes() && l.access.contains(&Word::Write))
}

/// Asserts that the program made all its files.
fn assert_undisturbed(directory: &Path, status: ExitStatus, text: &str) {
    assert_eq!((status.code(), text), (Some(0), "steady ok\n"));
    let made = (0..FILES)
        .filter(|i| directory.join(format!("o{i}")).exists())
        .count();
    assert_eq!(made, FILES);
}

#[test]
fn a_command_killed_by_itself_loses_nothing() {
    let bench = common::bench(User::ordinary());
    let case = sh("killed", "cat a >x; cat x >y; kill -9 $$");
    let (outcome, store) = bench.recorded(&case, &[]).expect("a recording");
    assert_eq!(outcome.code(), 137);
    let directory = bench.stage().path().join("work/killed");
    let lines = files(&bench, &store);
    assert!(
        tells_write(&lines, &directory, "x") && tells_write(&lines, &directory, "y"),
        "{lines:?}"
    );
    assert!(show(&bench, &store).complete, "{:?}", show(&bench, &store));
    let processes: Vec<ProcessLine> = answer::read(
        &bench
            .ask(&store, &["processes", "--json"])
            .expect("processes answers"),
    )
    .expect("its JSON");
    assert!(
        processes.iter().any(|p| p.signal == Some(9)),
        "{processes:?}"
    );
}

#[test]
fn a_killed_child_loses_nothing() {
    let bench = common::bench(User::ordinary());
    let case = sh(
        "child-killed",
        "sh -c 'exec 3>x; echo x >&3; cat a >y; kill -9 $$'; cat b >z",
    );
    let (outcome, store) = bench.recorded(&case, &[]).expect("a recording");
    assert_eq!(outcome.code(), 0);
    let directory = bench.stage().path().join("work/child-killed");
    let lines = files(&bench, &store);
    for name in ["x", "y", "z"] {
        assert!(
            tells_write(&lines, &directory, name),
            "{name} is not told: {lines:?}"
        );
    }
    assert!(show(&bench, &store).complete, "{:?}", show(&bench, &store));
}

#[test]
fn a_killed_supervisor_disturbs_nothing_and_is_reported() {
    let bench = common::bench(User::ordinary());
    for case in [STEADY, STEADY_STATIC] {
        if case.name == "steady-static" && !needs(case.name, &["musl-gcc"]) {
            continue;
        }
        for moment in [3, 77, 150] {
            let mut started = start(&bench, &case, moment);
            kill(started.supervisor).expect("the supervisor is killed");
            let (status, text) = finish(&mut started.child);
            assert_undisturbed(&started.directory, status, &text);
            let show = show(&bench, &started.store);
            assert!(
                !show.complete && !show.incomplete_because.is_empty(),
                "{}: {show:?}",
                case.name
            );
            let lines = files(&bench, &started.store);
            // The supervisor may have held the guard's first chunk. Records of the recorder are
            // never lost.
            let told = (0..FILES)
                .filter(|i| tells_write(&lines, &started.directory, &format!("o{i}")))
                .count();
            let expected = if case.name == "steady" { FILES } else { 1 };
            assert!(
                told >= expected,
                "{}: killed after {moment}, {told} files are told of",
                case.name
            );
        }
    }
}

#[test]
fn a_killed_keeper_disturbs_nothing() {
    let bench = common::bench(User::ordinary());
    for case in [STEADY, STEADY_STATIC] {
        if case.name == "steady-static" && !needs(case.name, &["musl-gcc"]) {
            continue;
        }
        let mut started = start(&bench, &case, 40);
        kill(started.keeper).expect("the keeper is killed");
        let (status, text) = finish(&mut started.child);
        assert_undisturbed(&started.directory, status, &text);
        let show = show(&bench, &started.store);
        let lines = files(&bench, &started.store);
        let told = (0..FILES)
            .filter(|i| tells_write(&lines, &started.directory, &format!("o{i}")))
            .count();
        assert!(
            told == FILES || !show.complete,
            "{}: {told} files are told of, and the run calls itself complete",
            case.name
        );
    }
}

/// The launcher represents the command: killing it has the effects of `kill -9` of the command.
#[test]
fn a_killed_launcher_ends_the_command_and_leaves_a_truthful_run() {
    let bench = common::bench(User::ordinary());
    let mut started = start(&bench, &STEADY, 40);
    kill(started.child.id()).expect("the launcher is killed");
    started.child.wait().expect("the launcher is gone");
    let gone = || !alive(started.supervisor) && !alive(started.keeper);
    assert!(eventually(PATIENCE, gone), "something is left behind");
    let made = (0..FILES)
        .filter(|i| started.directory.join(format!("o{i}")).exists())
        .count();
    let lines = files(&bench, &started.store);
    let told = (0..FILES)
        .filter(|i| tells_write(&lines, &started.directory, &format!("o{i}")))
        .count();
    assert!(
        made < FILES && told >= made,
        "{made} files were made, {told} are told of"
    );
}

#[test]
fn a_run_whose_processes_were_all_killed_is_still_reported() {
    let bench = common::bench(User::ordinary());
    let mut started = start(&bench, &STEADY, 100);
    let command = children(started.supervisor);
    for pid in [started.keeper, started.supervisor, started.child.id()]
        .into_iter()
        .chain(command)
    {
        // One of them may have ended because another was killed.
        let _ = kill(pid);
    }
    started.child.wait().expect("the launcher is gone");
    assert!(eventually(PATIENCE, || !alive(started.supervisor)
        && !alive(started.keeper)));
    let show = show(&bench, &started.store);
    assert!(
        !show.complete && !show.incomplete_because.is_empty(),
        "{show:?}"
    );
    let lines = files(&bench, &started.store);
    assert!(
        tells_write(&lines, &started.directory, "o50"),
        "what was in the arena is lost"
    );
}
