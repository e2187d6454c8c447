//! After a crash of the machine, the surviving log explains the surviving contents
//! (`--durability`).
//!
//! A workload runs on a file system of the test's own. It lists every write, name and barrier of
//! the log's disk and of the data's disk. Each crash point is a prefix of that list, and one of
//! the states that the disks may have then. The workload writes into each sector which files its
//! content came from. So the test knows what an explanation must name.

// clippy allows these in test functions only, but the functions that the tests share need them too.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod block_disks;
mod crash_state;
mod explanation;
mod journal_disk;

use block_disks::BlockDisks;
use crash_state::{CrashPoint, Dice, DiskImage, WriteBack};
use explanation::{Comparison, Renames, compare};
use journal_disk::{JournalDisk, ListedOp};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Threads that crash a run at their points.
const THREADS: usize = 4;

/// Files that are there before the run.
const INPUTS: usize = 6;

/// A recorded workload.
struct RecordedWorkload {
    ops: Vec<ListedOp>,
    /// The operations before the run.
    before: usize,
    data: PathBuf,
    device: u64,
}

/// Compiles the workload. `None` without a compiler.
fn workload() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<(tempfile::TempDir, PathBuf)>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("workload");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/crash/workload.c");
        let compiled = Command::new("gcc")
            .args(["-O1", "-Wall", "-o"])
            .args([&program, &source])
            .status();
        match compiled {
            Ok(status) => assert!(status.success(), "gcc fails"),
            Err(_) => return None,
        }
        Some((directory, program))
    });
    built.as_ref().map(|(_, program)| program.as_path())
}

/// Prints that crashes were not tested. The harness would hide a notice of a test that passes.
fn skipped<T>(why: &str) -> Option<T> {
    backstory_testkit::need::skipped("crashes of the machine", why);
    None
}

/// A mounted [`JournalDisk`].
struct MountedDisk {
    /// Dropped before the directory: it unmounts.
    _session: fuser::BackgroundSession,
    at: tempfile::TempDir,
    disk: JournalDisk,
}

impl Drop for MountedDisk {
    /// A process of the recording may still have the log open, so that a plain unmount would fail.
    fn drop(&mut self) {
        let _ = Command::new("umount")
            .arg("-l")
            .arg(self.at.path())
            .stderr(Stdio::null())
            .status();
    }
}

impl MountedDisk {
    /// `None`, with a notice, where this machine cannot mount.
    fn new() -> Option<MountedDisk> {
        if !Path::new("/dev/fuse").exists() || !rustix::process::geteuid().is_root() {
            return skipped("a file system of the test's own needs /dev/fuse and root");
        }
        let (at, disk) = (tempfile::tempdir().unwrap(), JournalDisk::new());
        match fuser::spawn_mount(disk.clone(), at.path(), &fuser::Config::default()) {
            Ok(session) => Some(MountedDisk {
                disk,
                at,
                _session: session,
            }),
            Err(error) => skipped(&format!("cannot mount here: {error}")),
        }
    }

    fn directory(&self, name: &str) -> PathBuf {
        self.at.path().join(name)
    }
}

/// The directories of a machine.
struct Directories {
    log: PathBuf,
    data: PathBuf,
}

impl Directories {
    /// Records a command in the data's directory. Returns its messages, once the log is finalized.
    fn record(&self, mode: &str, command: &mut dyn FnMut(&mut Command)) -> String {
        let (log, library) = (&self.log, tempfile::tempdir().unwrap());
        let mut session = Command::new(env!("CARGO_BIN_EXE_backstory-session"));
        session
            .arg(log)
            .args(["r", "--durability", mode, "--library"])
            .arg(library.path())
            .arg("--");
        command(&mut session);
        let recorded = session
            .current_dir(&self.data)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&recorded.stderr).into_owned();
        assert!(recorded.status.success(), "{said}");
        let until = Instant::now() + Duration::from_secs(120);
        while !log.join("r.log").exists() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(log.join("r.log").exists(), "the log is not finalized");
        said
    }
}

impl MountedDisk {
    fn directories(&self) -> Directories {
        Directories {
            log: self.directory("log"),
            data: self.directory("data"),
        }
    }
}

/// Records the workload on a new disk. `None`, with a notice, where this machine cannot.
fn record(mode: &str, seed: u64, steps: usize) -> Option<RecordedWorkload> {
    let program = workload().or_else(|| skipped("no gcc here"))?;
    let mounted = MountedDisk::new()?;
    let ops = || mounted.disk.ops();
    Some(record_in(
        mounted.directories(),
        &ops,
        mode,
        program,
        seed,
        steps,
    ))
}

/// Records the workload on two new disks with ext4. `None`, with a notice, where this machine
/// cannot.
fn record_on_blocks(mode: &str, seed: u64, steps: usize) -> Option<RecordedWorkload> {
    let program = workload().or_else(|| skipped("no gcc here"))?;
    let disks = BlockDisks::new()?;
    let [log, data] = disks.directories();
    let ops = || disks.ops();
    let directories = Directories { log, data };
    Some(record_in(directories, &ops, mode, program, seed, steps))
}

fn record_in(
    directories: Directories,
    ops: &dyn Fn() -> Vec<ListedOp>,
    mode: &str,
    program: &Path,
    seed: u64,
    steps: usize,
) -> RecordedWorkload {
    let data = directories.data.clone();
    let device = std::fs::metadata(&data).unwrap().dev();
    for input in 0..INPUTS {
        let file = data.join(format!("in{input}"));
        std::fs::write(&file, format!("input {input}\n")).unwrap();
        std::fs::File::open(&file).unwrap().sync_all().unwrap();
    }
    let before = ops().len();
    let said = directories.record(mode, &mut |session| {
        session
            .arg(program)
            .args([seed.to_string(), steps.to_string()]);
    });
    assert_eq!(said, "");
    RecordedWorkload {
        ops: ops(),
        before,
        data,
        device,
    }
}

impl RecordedWorkload {
    /// Crashes at so many points.
    fn crash(&self, points: usize, write_back: WriteBack, seed: u64) -> Comparison {
        self.crash_with(points, seed, Renames::Explained, |ops, dice| {
            CrashPoint::after(ops).state(write_back, dice)
        })
    }

    /// Crashes at so many points. ext4 recovers both disks.
    fn crash_blocks(&self, points: usize, seed: u64) -> Comparison {
        let state = block_disks::surviving_files;
        self.crash_with(points, seed, Renames::MayBeMissing, state)
    }

    /// Each point has its own dice, so that the order of the points does not matter. Threads share
    /// the points: a mount or an unmount mostly waits for the kernel.
    fn crash_with(
        &self,
        points: usize,
        seed: u64,
        renames: Renames,
        state: impl Fn(&[ListedOp], &mut Dice) -> DiskImage + Sync,
    ) -> Comparison {
        let next = AtomicUsize::new(0);
        let span = self.ops.len() - self.before;
        let crash = |point: usize| {
            // The numbers of neighbours must not be alike.
            let start = (seed << 32) + point as u64;
            let mut dice = Dice(start.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            // The points are spread over all operations.
            let within = point * span / points + dice.below(span / points + 1);
            let end = self.before + 1 + within.min(span - 1);
            let image = state(&self.ops[..end], &mut dice);
            let mut found = compare(&image, &self.data, self.device, renames);
            for what in &mut found.unexplained {
                *what = format!("after operation {end}: {what}");
            }
            found
        };
        let some = || {
            let mut found = Comparison::default();
            loop {
                match next.fetch_add(1, Ordering::Relaxed) {
                    point if point < points => found.add(crash(point)),
                    _ => return found,
                }
            }
        };
        let mut all = Comparison::default();
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(some)).collect();
            for thread in threads {
                all.add(thread.join().unwrap());
            }
        });
        all
    }
}

/// Crashes runs of this mode at so many points in all, which must all be explained.
#[track_caller]
fn is_explained(mode: &str, write_back: WriteBack, runs: u64, points: usize, steps: usize) {
    all_explained(mode, runs, points, |seed, points| {
        Some(record(mode, seed, steps)?.crash(points, write_back, seed))
    });
}

/// Crashes as many runs at so many points in all, and checks that all contents are explained.
/// `crash` records and crashes one run at so many points: `None` if the machine cannot do it.
#[track_caller]
fn all_explained(
    mode: &str,
    runs: u64,
    points: usize,
    crash: impl Fn(u64, usize) -> Option<Comparison>,
) {
    let mut compared = 0;
    for seed in 0..runs {
        let Some(found) = crash(seed, points / runs as usize) else {
            return;
        };
        let wrong = found.unexplained;
        let few = &wrong[..wrong.len().min(10)];
        assert!(wrong.is_empty(), "{} unexplained: {few:#?}", wrong.len());
        compared += found.compared;
    }
    eprintln!("{mode}: {points} crashes, {compared} contents");
    assert!(compared > points, "hardly any content survives");
}

#[test]
fn with_ordered_a_content_that_a_call_made_durable_is_explained_after_a_crash() {
    is_explained("ordered", WriteBack::ByAge, 2, 200, 40);
}

#[test]
fn with_sync_each_write_is_explained_after_a_crash() {
    is_explained("sync", WriteBack::Anytime, 2, 200, 40);
}

#[test]
fn with_after_a_crash_leaves_contents_that_no_log_explains() {
    if let Some(run) = record("after", 0, 40) {
        let found = run.crash(100, WriteBack::ByAge, 0).unexplained;
        assert!(!found.is_empty(), "the test cannot find a violation");
    }
}

/// Crashes the block writes of runs of this mode at so many points in all, which must all be
/// explained.
#[track_caller]
fn is_explained_on_blocks(mode: &str, runs: u64, points: usize, steps: usize) {
    let about = format!("{mode}, block writes of ext4");
    all_explained(&about, runs, points, |seed, points| {
        Some(record_on_blocks(mode, seed, steps)?.crash_blocks(points, seed))
    });
}

#[test]
fn what_ext4_recovers_from_any_order_of_block_writes_is_explained() {
    for mode in ["ordered", "sync"] {
        is_explained_on_blocks(mode, 1, 30, 40);
    }
}

#[test]
fn with_after_ext4_recovers_contents_that_no_log_explains() {
    if let Some(run) = record_on_blocks("after", 0, 40) {
        let found = run.crash_blocks(30, 0).unexplained;
        assert!(!found.is_empty(), "the test cannot find a violation");
    }
}

#[test]
fn a_disk_of_the_log_that_hangs_delays_a_call_and_is_reported() {
    let Some(mounted) = MountedDisk::new() else {
        return;
    };
    let (out, disk) = (mounted.directory("data").join("out"), mounted.disk.clone());
    disk.hang();
    let until = Instant::now() + Duration::from_secs(120);
    let watch = std::thread::spawn(move || {
        let goes_on = || std::fs::read_to_string(&out).is_ok_and(|text| text == "text\nmore\n");
        while !goes_on() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        let went_on = goes_on();
        // The disk still hangs: the log could not even be appended to.
        disk.go_on();
        went_on
    });
    let said = mounted.directories().record("ordered", &mut |session| {
        session.args(["sh", "-c", "echo text >out; sync out; echo more >>out"]);
    });
    assert!(watch.join().unwrap(), "the command waits for the disk");
    let reason = "the log was not durable before the results: the disk of the log did not respond";
    assert!(said.contains(reason), "{said}");
}

#[test]
#[ignore = "takes minutes"]
fn ten_thousand_crash_points_are_explained() {
    is_explained("ordered", WriteBack::ByAge, 10, 10_000, 100);
    is_explained("sync", WriteBack::Anytime, 10, 10_000, 100);
}

#[test]
#[ignore = "takes minutes"]
fn ten_thousand_crash_points_of_block_writes_with_ordered_are_explained() {
    is_explained_on_blocks("ordered", 10, 10_000, 100);
}

#[test]
#[ignore = "takes minutes"]
fn ten_thousand_crash_points_of_block_writes_with_sync_are_explained() {
    is_explained_on_blocks("sync", 10, 10_000, 100);
}
