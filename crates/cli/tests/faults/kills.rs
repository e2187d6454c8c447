//! `kill -9` of any part at random moments.

use super::{common, names, told};
use backstory_testkit::need::{needs, say};
use backstory_testkit::oracle::{Bench, Case, program};
use backstory_testkit::procs::{alive, children, eventually, kill};
use backstory_testkit::user::User;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(120);
/// Files that programs with a recorder make. A program that only the guard sees makes one below
/// `s`.
const RECORDED: usize = 12;
const GUARDED: usize = 18;
const LINE: &str = "for i in 0 1 2 3 4 5; do cp /etc/passwd o$i; done; mkdir s; cd s; echo a >a; $FIX/steady_static 18; cd ..; \
                    for i in 6 7 8 9 10 11; do cp /etc/passwd o$i; done; echo whole; exit 3";
/// The command's output if it is not disturbed.
const SAID: &str = "steady ok\nwhole\n";

/// The files that the command makes, below its directory.
fn files() -> Vec<String> {
    let recorded = (0..RECORDED).map(|i| format!("o{i}"));
    recorded
        .chain((0..GUARDED).map(|i| format!("s/o{i}")))
        .collect()
}

/// The files that exist.
fn made(directory: &Path) -> Vec<String> {
    let mut files = files();
    files.retain(|file| directory.join(file).exists());
    files
}
/// Microseconds after which everything has ended on an idle machine.
const LATEST: u64 = 60_000;

/// A generator that gives the same numbers for the same seed for ever.
pub struct Dice(u64);

impl Dice {
    /// Numbers from this seed. The first numbers of neighbouring seeds are alike, and are skipped.
    pub fn of(seed: u64) -> Dice {
        let mut dice = Dice(seed);
        (0..4).for_each(|_| _ = dice.below(2));
        dice
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % end
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Victim {
    Supervisor,
    Keeper,
    Both,
    Launcher,
    Command,
    Child,
    Indexer,
}

const VICTIMS: [Victim; 7] = [
    Victim::Supervisor,
    Victim::Keeper,
    Victim::Both,
    Victim::Launcher,
    Victim::Command,
    Victim::Child,
    Victim::Indexer,
];

pub fn is_backstory(pid: u32) -> bool {
    std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe.ends_with("bin/backstory"))
}

/// The processes to kill now, as far as they exist.
pub fn pids(launcher: u32, victim: Victim) -> Vec<u32> {
    let keeper = children(launcher);
    let supervisor: Vec<u32> = keeper.iter().flat_map(|k| children(*k)).collect();
    let command: Vec<u32> = supervisor.iter().flat_map(|s| children(*s)).collect();
    match victim {
        Victim::Launcher => vec![launcher],
        Victim::Keeper => keeper,
        Victim::Supervisor | Victim::Indexer => supervisor,
        Victim::Both => [keeper, supervisor].concat(),
        Victim::Command => command,
        Victim::Child => command.iter().flat_map(|c| children(*c)).collect(),
    }
}

/// One recording with one kill, in a store that has one good run.
fn strike(bench: &Bench, store: &Path, seed: u64, latest: u64) {
    let mut dice = Dice::of(seed);
    let victim = VICTIMS[dice.below(VICTIMS.len() as u64) as usize];
    let moment = Duration::from_micros(dice.below(latest));
    let what = format!("seed {seed}: {victim:?} after {moment:?}");
    let name = format!("k{seed}");
    let directory = bench.stage().directory(&format!("work/{name}")).unwrap();
    let mut command = bench
        .stage()
        .backstory(&["record", "--name", &name, "--", "sh", "-c", LINE]);
    command
        .env("BACKSTORY_STORE", store)
        .current_dir(&directory);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let launcher = child.id();
    let mut late = Vec::new();
    if victim == Victim::Indexer {
        let all = |late: &mut Vec<u32>| {
            *late = pids(launcher, Victim::Both);
            late.len() == 2
        };
        eventually(PATIENCE, || all(&mut late) || !alive(launcher));
    } else {
        // Not to wait for an event: chance chooses the moment.
        std::thread::sleep(moment);
        late = pids(launcher, victim);
    }
    let mut text = String::new();
    if victim == Victim::Indexer {
        child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        std::thread::sleep(moment / 10);
    }
    for pid in &late {
        // It may have ended by itself, and its number may belong to another process by now.
        if victim != Victim::Indexer || is_backstory(*pid) {
            let _ = kill(*pid);
        }
    }
    if victim != Victim::Indexer {
        child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
    }
    let status = child.wait().unwrap();
    let undisturbed = matches!(
        victim,
        Victim::Supervisor | Victim::Keeper | Victim::Both | Victim::Indexer
    );
    // If the process that should start the command is dead, the command is not started, and that is
    // reported.
    let made = made(&directory).len();
    if undisturbed && !(status.code() == Some(125) && made == 0) {
        assert_eq!(
            (status.code(), text.as_str(), made),
            (Some(3), SAID, files().len()),
            "{what}"
        );
    }
    if victim == Victim::Launcher {
        assert!(
            status.signal() == Some(9) || status.code() == Some(3),
            "{what}: {status:?}"
        );
    }
    assert!(
        eventually(PATIENCE, || late.iter().all(|pid| !alive(*pid))),
        "{what}: somebody is left"
    );
    truthful(bench, store, &name, &directory, &what);
}

/// Asserts that the store answers, and that the run's own report is true.
fn truthful(bench: &Bench, store: &Path, name: &str, directory: &Path, what: &str) {
    // A remaining process may still be finalizing the log. Each question finishes an abandoned one.
    let finalized = || {
        bench.ask(store, &["log"]).unwrap();
        let logs = std::fs::read_dir(store.join("runs")).unwrap().flatten();
        logs.filter(|e| e.path().extension().is_some_and(|e| e == "part"))
            .count()
            == 0
    };
    assert!(
        eventually(PATIENCE, finalized),
        "{what}: the log is never finalized"
    );
    let Some(show) = told(bench, store, name) else {
        return; // killed before there was a log: no report is expected
    };
    assert_eq!(
        show.complete,
        show.incomplete_because.is_empty(),
        "{what}: {show:?}"
    );
    let told = bench.ask(store, &["files", "--json", name]).unwrap();
    let mut missing = made(directory);
    missing.retain(|file| !names(&told, directory, file));
    assert!(
        missing.is_empty() || !show.complete,
        "{what}: complete, but {missing:?} are missing: {show:?}"
    );
}

/// Microseconds that an undisturbed recording takes on this machine at its present load. Asserts
/// that it makes and records all its files.
fn takes(bench: &Bench, store: &Path) -> u64 {
    let directory = bench.stage().directory("work/undisturbed").unwrap();
    let words = ["record", "--name", "undisturbed", "--", "sh", "-c", LINE];
    let mut command = bench.stage().backstory(&words);
    command
        .env("BACKSTORY_STORE", store)
        .current_dir(&directory);
    let began = Instant::now();
    let output = command.output().unwrap();
    let took = began.elapsed();
    assert_eq!(
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout)
        ),
        (Some(3), SAID.into())
    );
    assert_eq!(made(&directory), files());
    truthful(bench, store, "undisturbed", &directory, "undisturbed");
    assert!(told(bench, store, "undisturbed").unwrap().complete);
    LATEST.max(took.as_micros() as u64)
}

fn run(seeds: impl Iterator<Item = u64>) {
    if !needs("kills", &["musl-gcc"]) {
        return;
    }
    let bench = common::bench(User::ordinary());
    const FIRST: Case = program("earlier", &["cp", "a", "copy"]);
    let (_, store) = bench.recorded(&FIRST, &["--name", "first"]).unwrap();
    let before = bench.files(&store, "first").unwrap();
    let latest = takes(&bench, &store);
    for seed in seeds {
        strike(&bench, &store, seed, latest);
        assert_eq!(bench.files(&store, "first").unwrap(), before, "seed {seed}");
    }
    assert!(told(&bench, &store, "first").unwrap().complete);
    assert_eq!(bench.files(&store, "first").unwrap(), before);
}

#[test]
fn after_a_kill_at_any_moment_the_store_opens_and_the_run_is_truthful() {
    run(0..50);
}

/// Continues where it was interrupted: a file in the build directory holds the next seed.
#[test]
#[ignore = "minutes: with make test-all"]
fn a_thousand_kills_later_every_store_opens_and_every_run_is_truthful() {
    let next = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kills.next");
    let from = std::fs::read_to_string(&next)
        .ok()
        .and_then(|n| n.trim().parse().ok())
        .unwrap_or(1_000);
    say(&format!("kills: seeds {from} to 1999"));
    run((from..2_000).inspect(|seed| {
        let _ = std::fs::write(&next, seed.to_string());
    }));
    let _ = std::fs::remove_file(&next);
}
