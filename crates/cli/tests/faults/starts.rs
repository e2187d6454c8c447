//! The start: a recording process is stopped or killed at any point before the command runs. No
//! process waits for ever. The command runs, or is prevented from running.

use super::common;
use backstory_testkit::answer::{self, Show};
use backstory_testkit::need::say;
use backstory_testkit::oracle::{Bench, Case, sh};
use backstory_testkit::procs::{alive, eventually, kill, resume, stop};
use backstory_testkit::user::User;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(120);
/// How often a point that was passed too early is tried again.
const TRIES: usize = 3;

const COMMAND: Case = sh("start", "echo x >ran; echo whole; exit 5");

/// The progress of a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Point {
    /// The launcher has forked the keeper.
    Keeper,
    /// The keeper has forked the supervisor.
    Supervisor,
    /// The filter is on the thread that starts the command.
    Filter,
    /// The command's process exists; it may have executed already.
    Command,
}

/// The kind of harm, and the processes harmed.
#[derive(Debug, Clone, Copy)]
enum Harm {
    StopsSupervisor,
    StopsKeeper,
    StopsBoth,
    KillsSupervisor,
    KillsKeeper,
    KillsBoth,
}

impl Harm {
    const ALL: [Harm; 6] = [
        Harm::StopsSupervisor,
        Harm::StopsKeeper,
        Harm::StopsBoth,
        Harm::KillsSupervisor,
        Harm::KillsKeeper,
        Harm::KillsBoth,
    ];

    fn stops(self) -> bool {
        matches!(
            self,
            Harm::StopsSupervisor | Harm::StopsKeeper | Harm::StopsBoth
        )
    }

    /// Harms the processes that exist. The keeper comes first, or it would see the effect on the
    /// supervisor.
    fn is_done(self, there: &There) {
        let keeper = !matches!(self, Harm::StopsSupervisor | Harm::KillsSupervisor);
        let supervisor = !matches!(self, Harm::StopsKeeper | Harm::KillsKeeper);
        let victims = there.keeper.filter(|_| keeper).into_iter();
        for pid in victims.chain(there.supervisor.filter(|_| supervisor)) {
            // It may have ended because of the other.
            let _ = if self.stops() { stop(pid) } else { kill(pid) };
        }
    }
}

/// The processes that exist.
#[derive(Debug, Default)]
struct There {
    keeper: Option<u32>,
    supervisor: Option<u32>,
    filter: bool,
    command: bool,
}

impl There {
    /// Reads `/proc`, which is faster than listing all processes. Otherwise the start would be
    /// over.
    fn of(launcher: u32) -> There {
        let keeper = child(launcher);
        let supervisor = keeper.and_then(child);
        There {
            keeper,
            supervisor,
            filter: supervisor
                .is_some_and(|pid| threads(pid).iter().any(|thread| is_filtered(thread))),
            command: supervisor.and_then(child).is_some(),
        }
    }

    fn reached(&self, point: Point) -> bool {
        match point {
            Point::Keeper => self.keeper.is_some(),
            Point::Supervisor => self.supervisor.is_some(),
            Point::Filter => self.filter || self.command,
            Point::Command => self.command,
        }
    }
}

fn threads(pid: u32) -> Vec<std::path::PathBuf> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    tasks
        .into_iter()
        .flatten()
        .flatten()
        .map(|t| t.path())
        .collect()
}

fn child(pid: u32) -> Option<u32> {
    threads(pid).iter().find_map(|thread| {
        let children = fs::read_to_string(thread.join("children")).ok()?;
        children.split_whitespace().next()?.parse().ok()
    })
}

fn is_filtered(thread: &Path) -> bool {
    fs::read_to_string(thread.join("status")).is_ok_and(|status| status.contains("Seccomp:\t2"))
}

/// True if the process is left of the recording. One that has become the indexer may get no
/// processor on a busy machine.
fn records(pid: u32) -> bool {
    let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    alive(pid) && !line.contains("\0index\0")
}

/// True once the recording is over, or hopeless.
fn ends(launcher: &mut Child) -> bool {
    eventually(PATIENCE, || launcher.try_wait().unwrap().is_some())
}

/// Harms one start. Returns false if the point was passed before that.
fn harmed(bench: &Bench, guard: &str, point: Point, harm: Harm) -> bool {
    let what = format!("guard {guard}: {harm:?} at {point:?}");
    let (mut launcher, directory, store) = bench
        .started_with(&COMMAND, &["--guard", guard, "--contents", "off"])
        .unwrap();
    let ran = directory.join("ran");
    let mut there = There::of(launcher.id());
    while !there.reached(point) && !ran.exists() && launcher.try_wait().unwrap().is_none() {
        there = There::of(launcher.id());
    }
    let in_time = there.reached(point) && !ran.exists();
    if in_time {
        harm.is_done(&there);
    }
    if !ends(&mut launcher) {
        let left = There::of(launcher.id());
        for pid in [Some(launcher.id()), left.keeper, left.supervisor]
            .into_iter()
            .flatten()
        {
            let _ = kill(pid);
        }
        panic!("{what}: hangs, with {left:?}");
    }
    let status = launcher.wait().unwrap();
    let (mut out, mut err) = (String::new(), String::new());
    launcher
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut out)
        .unwrap();
    launcher
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut err)
        .unwrap();
    let ended = (status.code(), out.as_str(), ran.exists());
    if ended == (Some(125), "", false) && !harm.stops() {
        let line = err
            .strip_prefix("backstory: ")
            .and_then(|e| e.strip_suffix('\n'));
        assert!(
            line.is_some_and(|line| !line.contains('\n') && line.contains("start")),
            "{what}: {err:?}"
        );
    } else {
        assert_eq!(ended, (Some(5), "whole\n", true), "{what}: {err:?}");
        assert!(!harm.stops() || err.is_empty(), "{what}: {err:?}");
    }
    let everybody = there.keeper.into_iter().chain(there.supervisor);
    if harm.stops() {
        // The launcher continues a stopped keeper as long as it runs. The signal may have come
        // after its end, where only the sender of the signal can continue the process.
        everybody.clone().for_each(|pid| drop(resume(pid)));
    }
    assert!(
        eventually(PATIENCE, || everybody.clone().all(|pid| !records(pid))),
        "{what}: of {there:?} a process is left"
    );
    if ran.exists() {
        let show: Show = answer::read(&bench.ask(&store, &["show", "--json"]).unwrap()).unwrap();
        assert!(show.complete || !harm.stops(), "{what}: {show:?}");
    }
    in_time
}

#[test]
fn a_start_that_is_stopped_or_cut_off_at_any_point_never_hangs() {
    let bench = common::bench(User::ordinary());
    let mut late = Vec::new();
    for (guard, points) in [
        (
            "on",
            &[
                Point::Keeper,
                Point::Supervisor,
                Point::Filter,
                Point::Command,
            ][..],
        ),
        ("off", &[Point::Keeper, Point::Supervisor, Point::Command]),
    ] {
        for &point in points {
            for harm in Harm::ALL {
                if !(0..TRIES).any(|_| harmed(&bench, guard, point, harm)) {
                    late.push(format!("{harm:?} at {point:?} (guard {guard})"));
                }
            }
        }
    }
    if !late.is_empty() {
        say(&format!("starts: always over before {}", late.join(", ")));
    }
}
