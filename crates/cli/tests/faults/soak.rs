//! Simulates hours of use in minutes. Random programs of the corpus record into one store, several
//! at a time, while supervisors are killed at random. Beside them one recording lasts all the time.
//! Its keeper and supervisor must not grow.

use super::kills::{Dice, Victim, is_backstory, pids};
use super::{common, corpus, sizes, told};
use backstory_testkit::answer::Show;
use backstory_testkit::need::{find, needs, say};
use backstory_testkit::oracle::{Bench, Case, Outcome, sh};
use backstory_testkit::procs::{children, eventually, kill};
use backstory_testkit::snapshot;
use backstory_testkit::user::User;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

/// The duration, the programs and the mode of the guard: `scripts/soak` sets them.
const MINUTES: &str = "BACKSTORY_SOAK_MINUTES";
const SEED: &str = "BACKSTORY_SOAK_SEED";
const GUARD: &str = "BACKSTORY_SOAK_GUARD";
const WORKERS: u64 = 3;
const PATIENCE: Duration = Duration::from_secs(120);

/// Uses the same files again and again, by programs with and without a recorder, until it is ended.
const LONG: Case = sh(
    "long",
    "while [ ! -e stop ]; do cp a copy; sort b >sorted; cat d/x sorted >>all; $FIX/steady_static 3 >/dev/null || exit 1; rm -f copy all o?; \
     echo x >>rounds; done; echo whole",
);

/// After so many of these rounds, no table of the supervisor grows any more. The largest remembers
/// 10,000 processes. A round has five.
const FULL: u64 = 4_500;

/// The state that all threads of a soak share.
struct Soak {
    store: PathBuf,
    /// An option of `record`.
    guard: String,
    until: Instant,
    runs: AtomicUsize,
    /// Names of runs whose supervisor was killed.
    killed: Mutex<HashSet<String>>,
    wrong: Mutex<Vec<String>>,
}

impl Soak {
    fn goes_on(&self) -> bool {
        Instant::now() < self.until
    }

    fn complain(&self, what: String) {
        say(&format!("soak: {what}"));
        self.wrong.lock().unwrap().push(what);
    }

    fn was_killed(&self, name: &str) -> bool {
        self.killed.lock().unwrap().contains(name)
    }
}

fn number(variable: &str, otherwise: u64) -> u64 {
    let set = std::env::var(variable).ok();
    set.and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// Cases whose tools exist here and that do not depend on other processes.
fn cases() -> Vec<&'static Case> {
    corpus::all()
        .filter(|case| case.gap.is_none() && case.needs.iter().all(|tool| find(tool).is_some()))
        .collect()
}

/// One thread of programs. Each program was run alone once, and must do the same whenever it is
/// recorded.
fn work(soak: &Soak, bench: &Bench, worker: u64, seed: u64) {
    let mut dice = Dice::of(seed * WORKERS + worker);
    let cases = cases();
    let mut alone: HashMap<&str, Outcome> = HashMap::new();
    while soak.goes_on() {
        let case = cases[dice.below(cases.len() as u64) as usize];
        let plain = alone
            .entry(case.name)
            .or_insert_with(|| bench.plain(case).unwrap());
        if plain.status.is_none() {
            continue; // too much for this machine now, recorded or not
        }
        let run = soak.runs.fetch_add(1, Ordering::Relaxed);
        let name = format!("soak-{run}");
        let store = soak.store.to_str().unwrap();
        let (outcome, _) = bench
            .recorded(case, &["--store", store, "--name", &name, &soak.guard])
            .unwrap();
        // Sometimes the question comes later, and finds more than one run to index.
        let show = (dice.below(3) > 0).then(|| told(bench, &soak.store, &name));
        let killed = soak.was_killed(&name);
        let what = format!(
            "{name}: {}{}",
            case.name,
            if killed { ", killed" } else { "" }
        );
        for difference in disturbed(case, plain, &outcome, killed) {
            soak.complain(format!("{what}: {difference}"));
        }
        match show {
            Some(Some(show)) => untrue(case, &show, killed)
                .into_iter()
                .for_each(|why| soak.complain(format!("{what}: {why}"))),
            Some(None) if !killed => soak.complain(format!("{what}: the store does not know it")),
            _ => {}
        }
    }
}

/// The differences of a recorded command from the same command alone.
fn disturbed(case: &Case, plain: &Outcome, recorded: &Outcome, killed: bool) -> Vec<String> {
    if killed && recorded.code() == 125 {
        return Vec::new(); // killed before the command could be started, which is reported
    }
    let mut lines = Vec::new();
    if recorded.code() != plain.code() {
        let said = String::from_utf8_lossy(&recorded.stderr).into_owned();
        lines.push(format!(
            "status {} became {}: {said}",
            plain.code(),
            recorded.code()
        ));
    }
    if !case.restless {
        if recorded.stdout != plain.stdout {
            let text = String::from_utf8_lossy(&recorded.stdout).into_owned();
            lines.push(format!("printed something else: {text}"));
        }
        lines.extend(snapshot::differences(&plain.files, &recorded.files));
    }
    lines
}

/// The false statements in a run's own report.
fn untrue(case: &Case, show: &Show, killed: bool) -> Vec<String> {
    let expected = |why: &&String| !case.marked.iter().any(|mark| why.starts_with(mark));
    let mut lines = Vec::new();
    if show.complete != show.incomplete_because.is_empty() {
        lines.push(format!("complete and not: {show:?}"));
    }
    if !killed {
        let unexpected = show.incomplete_because.iter().filter(expected);
        lines.extend(unexpected.map(|why| format!("not complete: {why}")));
    }
    lines
}

/// The name that a launcher was given.
fn name_of(launcher: u32) -> Option<String> {
    let line = std::fs::read(format!("/proc/{launcher}/cmdline")).ok()?;
    let words: Vec<&[u8]> = line.split(|b| *b == 0).collect();
    let at = words.iter().position(|word| *word == b"--name")?;
    String::from_utf8(words.get(at + 1)?.to_vec()).ok()
}

/// Kills a supervisor of one of the recordings now and then.
fn strike(soak: &Soak, seed: u64) {
    let mut dice = Dice::of(seed ^ 0xdead);
    while soak.goes_on() {
        sleep(Duration::from_millis(dice.below(800)));
        let fronts: Vec<(u32, String)> = children(std::process::id())
            .into_iter()
            .filter_map(|launcher| Some((launcher, name_of(launcher)?)))
            .collect();
        if fronts.is_empty() {
            continue;
        }
        let (launcher, name) = &fronts[dice.below(fronts.len() as u64) as usize];
        // Once a run. If its supervisor is gone, the command is the keeper's child, and runs
        // backstory's own code until it executes its program.
        for victim in pids(*launcher, Victim::Supervisor) {
            // Stored before the kill, because a later check must know.
            if is_backstory(victim) && soak.killed.lock().unwrap().insert(name.clone()) {
                let _ = kill(victim);
            }
        }
    }
}

/// Keeper and supervisor of a recording that has begun.
fn beside(launcher: u32) -> Option<[u32; 2]> {
    let ours = |of: u32| children(of).into_iter().find(|pid| is_backstory(*pid));
    let keeper = ours(launcher)?;
    Some([keeper, ours(keeper)?])
}

/// The rounds that the long recording has made.
fn rounds(directory: &Path) -> u64 {
    let lines = std::fs::metadata(directory.join("rounds"));
    lines.map_or(0, |lines| lines.len() / 2)
}

/// Measures keeper and supervisor of the long recording, until the time is over. It begins when
/// their tables of processes are full. Returns where they grew.
fn measure(soak: &Soak, long: &Child, directory: &Path) -> Vec<String> {
    let mut found = None;
    assert!(eventually(PATIENCE, || {
        found = beside(long.id());
        found.is_some()
    }));
    let both = found.unwrap();
    let mut histories = [
        sizes::History::new("keeper"),
        sizes::History::new("supervisor"),
    ];
    while soak.goes_on() && rounds(directory) < FULL {
        sleep(Duration::from_secs(1));
    }
    if !soak.goes_on() {
        let made = rounds(directory);
        return vec![format!(
            "too short: {made} of {FULL} rounds of the long recording"
        )];
    }
    while soak.goes_on() {
        for (history, pid) in histories.iter_mut().zip(both) {
            history.look(pid);
        }
        sleep(Duration::from_secs(1));
    }
    histories.iter().for_each(|history| say(&history.summary()));
    histories.iter().flat_map(sizes::History::growth).collect()
}

/// Processes that run an executable of this stage.
fn left(place: &Path) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            std::fs::read_link(format!("/proc/{pid}/exe"))
                .is_ok_and(|exe| exe.starts_with(place) && is_backstory(*pid))
        })
        .collect()
}

/// A description of a process, for a failure message.
fn described(pid: u32) -> String {
    let read = |name: &str| std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let [line, stat, waits] = ["cmdline", "stat", "wchan"]
        .map(|name| String::from_utf8_lossy(&read(name)).replace('\0', " "));
    format!("{pid} `{}` waits in `{waits}`: {stat}", line.trim_end())
}

fn soak(length: Duration, seed: u64) {
    let benches: Vec<Bench> = (0..=WORKERS)
        .map(|_| common::bench(User::ordinary()))
        .collect();
    let (bench, others) = benches.split_first().unwrap();
    let soak = Soak {
        store: bench.stage().directory("store/soak").unwrap(),
        guard: format!(
            "--guard={}",
            std::env::var(GUARD).as_deref().unwrap_or("on")
        ),
        until: Instant::now() + length,
        runs: AtomicUsize::new(0),
        killed: Mutex::default(),
        wrong: Mutex::default(),
    };
    let (long, directory, long_store) = bench.started_with(&LONG, &[&soak.guard]).unwrap();
    let grown = scope(|threads| {
        for (other, worker) in others.iter().zip(0..) {
            let soak = &soak;
            threads.spawn(move || work(soak, other, worker, seed));
        }
        threads.spawn(|| strike(&soak, seed));
        measure(&soak, &long, &directory)
    });
    std::fs::write(directory.join("stop"), "").unwrap();
    let said = long.wait_with_output().unwrap();
    let rounds = rounds(&directory);
    let killed = soak.killed.lock().unwrap().len();
    let runs = soak.runs.load(Ordering::Relaxed);
    say(&format!(
        "soak: {runs} runs, {killed} supervisors killed, {rounds} rounds of the long one"
    ));
    assert_eq!(
        (said.status.code(), &*String::from_utf8_lossy(&said.stdout)),
        (Some(0), "whole\n")
    );
    let show: Vec<serde_json::Value> =
        serde_json::from_slice(&bench.ask(&soak.store, &["log", "--json"]).unwrap()).unwrap();
    assert!(
        show.len() <= runs && show.len() + killed >= runs,
        "{} of {runs} runs are told",
        show.len()
    );
    let mut wrong = soak.wrong.into_inner().unwrap();
    wrong.extend(grown);
    let long = bench.ask(&long_store, &["show", "--json"]).unwrap();
    let long: Show = backstory_testkit::answer::read(&long).unwrap();
    if !long.complete {
        wrong.push(format!("the long recording: {long:?}"));
    }
    // The contents of all recordings are still being stored, as long as that takes.
    for store in [&soak.store, &long_store] {
        bench.ask(store, &["index", "--wait"]).unwrap();
    }
    let mut remain = Vec::new();
    eventually(PATIENCE, || {
        remain = benches
            .iter()
            .flat_map(|bench| left(bench.stage().path()))
            .collect();
        remain.is_empty()
    });
    wrong.extend(
        remain
            .into_iter()
            .map(|pid| format!("left: {}", described(pid))),
    );
    assert!(wrong.is_empty(), "seed {seed}:\n{}", wrong.join("\n"));
}

#[test]
#[ignore = "minutes: with make test-all, or scripts/soak --minutes N"]
fn hours_of_use_break_nothing_and_grow_nothing() {
    if needs("soak", &["musl-gcc"]) {
        let minutes = number(MINUTES, 10).clamp(1, 20);
        soak(Duration::from_secs(60 * minutes), number(SEED, 1));
    }
}
