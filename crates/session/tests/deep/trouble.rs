//! The deep log of runs in which something goes wrong.

use crate::deep::bytes::{compiled, deep_log};
use crate::harness::{Run, alive, eventually, kill, others};
use backstory_abi::deep;
use backstory_deep::{Call, DeepLog};
use backstory_testkit::need::needs;
use std::fs;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::process::Stdio;

/// The bytes of standard input that `read` gave the processes whose arguments contain a word.
fn bytes_read(log: &DeepLog, word: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for process in log.processes() {
        let calls: Vec<_> = log.process_calls(process.epoch).collect();
        let begins = calls.iter().find(|call| call.number == deep::BEGIN);
        let words = begins.and_then(|call| call.section(deep::WORDS, 0));
        let words = String::from_utf8_lossy(words.unwrap_or_default()).into_owned();
        if words.split('\0').any(|w| w == word) {
            let reads = calls.iter().filter(|call| (call.number, call.fd) == (0, 0));
            for call in reads {
                bytes.extend(call.entered_at(1).unwrap_or_default());
            }
        }
    }
    bytes
}

#[test]
fn a_deep_log_cut_at_any_byte_has_the_calls_before_the_cut() {
    let run = Run::new(&["--deep", "full"]);
    let script = "for i in 1 2 3 4 5 6; do head -c 30000 /dev/urandom | cat - >/dev/null; done";
    assert!(run.shell(script).status.success());
    run.log();
    let path = run.path(&format!("{}.deep", run.id));
    let whole = fs::read(&path).unwrap();
    let count = |log: &DeepLog| {
        let processes = log.processes().iter();
        processes
            .map(|p| log.process_calls(p.epoch).count())
            .sum::<usize>()
    };
    let all = count(&deep_log(&run));
    let (cut, mut before) = (run.path("cut.deep"), 0);
    for length in (0..whole.len()).step_by(whole.len() / 150) {
        fs::write(&cut, &whole[..length]).unwrap();
        let log = DeepLog::open(&cut).unwrap();
        let calls = count(&log);
        assert!(log.damage().no_end && calls >= before, "{length}: {calls}");
        before = calls;
    }
    assert!(all >= before && before > all / 2, "{before} of {all}");
    // One damaged chunk costs its own calls.
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 0x55;
    fs::write(&cut, &damaged).unwrap();
    let log = DeepLog::open(&cut).unwrap();
    assert!(log.damage().bytes > 0 && count(&log) > 0);
}

/// A program that goes through all forms of calls, much faster than the disk.
const LOUD: &str = "head -c 3000000 /dev/zero | cat - | cat - | wc -c >got; cat got";

#[test]
fn on_a_full_disk_the_program_goes_on_and_the_run_says_that_it_is_shallow() {
    if !needs("a full disk", &["unshare", "mount"]) {
        return;
    }
    let run = Run::new(&["--deep", "full"]);
    // The limit of file sizes is inherited: it holds for the deep log, and not for pipes.
    let loud = "head -c 60000000 /dev/urandom | cat - | wc -c";
    let recording = run.command(&["bash", "-c", loud]);
    let mut limited = std::process::Command::new("bash");
    limited
        .args(["-c", "trap '' XFSZ; ulimit -f 2000; exec \"$@\"", "limited"])
        .arg(recording.get_program())
        .args(recording.get_args())
        .current_dir(run.dir.path());
    let output = limited.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "60000000");
    let end = run.log().end().unwrap().clone();
    assert_eq!(end.exit, Some(0));
    let said = &end.warnings;
    assert!(
        said.iter()
            .any(|w| w.contains("are shallow from some moment on: cannot append to deep log")),
        "{said:?}"
    );
    assert!(end.incomplete_because.is_empty(), "{end:?}");
    let log = deep_log(&run);
    assert_eq!(log.damage().bytes, 0);
    assert!(log.processes().len() >= 3);
    let whole = log.programs().iter().filter(|one| one.is_whole).count();
    assert!(whole < log.programs().len());
}

#[test]
fn after_the_death_of_the_supervisor_the_keeper_goes_on_with_the_deep_log() {
    for guard in ["on", "off"] {
        let run = Run::new(&["--deep", "full", "--guard", guard]);
        let script = "printf before | cat - ; touch started; while ! test -e go; do sleep 0.01; done; printf after | cat -";
        let mut launcher = run
            .command(&["sh", "-c", script])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        eventually("the command runs", || run.path("started").exists());
        let (_, supervisor) = others(launcher.id());
        kill(supervisor, libc::SIGKILL);
        fs::write(run.path("go"), "").unwrap();
        assert_eq!(launcher.wait().unwrap().code(), Some(0));
        run.log();
        let log = deep_log(&run);
        let read = bytes_read(&log, "-");
        let read = String::from_utf8_lossy(&read);
        assert!(read.contains("before") && read.contains("after"), "{read}");
        assert!(log.end().is_some());
    }
}

#[test]
fn a_supervisor_that_is_stopped_makes_programs_wait_and_loses_nothing() {
    let run = Run::new(&["--deep", "full"]);
    let script = "touch started; while ! test -e go; do sleep 0.01; done; head -c 40000000 /dev/zero | cat - | wc -c >got";
    let mut launcher = run
        .command(&["sh", "-c", script])
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the command runs", || run.path("started").exists());
    let (_, supervisor) = others(launcher.id());
    kill(supervisor, libc::SIGSTOP);
    fs::write(run.path("go"), "").unwrap();
    // The keeper continues it.
    assert_eq!(launcher.wait().unwrap().code(), Some(0));
    run.log();
    let log = deep_log(&run);
    assert_eq!(log.end().unwrap().records_lost, 0);
    assert_eq!(bytes_read(&log, "-").len(), 40_000_000);
}

#[test]
fn calls_for_which_no_memory_became_free_are_counted_and_leave_a_gap() {
    let run = Run::new(&["--deep", "full"]);
    // A disk that does not respond: a pipe that no process reads yet.
    let path = run.path(&format!("{}.deep", run.id));
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    let script = "head -c 150000000 /dev/zero | cat - | wc -c >got.new; mv got.new got";
    let launcher = run
        .command(&["sh", "-c", script])
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the program ends", || run.path("got").exists());
    let deep_log = fs::read(&path).unwrap();
    let ended = launcher.wait_with_output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(
        fs::read_to_string(run.path("got")).unwrap().trim(),
        "150000000"
    );
    let end = run.log().end().unwrap().clone();
    let said = end.warnings.concat();
    assert!(
        said.contains("calls are missing in the deep log"),
        "{end:?}"
    );
    let copy = run.path("copy.deep");
    fs::write(&copy, deep_log).unwrap();
    let log = DeepLog::open(&copy).unwrap();
    assert!(log.end().unwrap().records_lost > 0);
    let whole = log.programs().iter().filter(|p| p.is_whole).count();
    assert!(whole < log.programs().len(), "{:?}", log.programs());
}

/// A disk that does not respond: a pipe at the path of a deep log, from which the test reads.
struct SlowDisk {
    reader: fs::File,
    read: Vec<u8>,
}

impl SlowDisk {
    fn of(run: &Run) -> SlowDisk {
        let path = run.path(&format!("{}.deep", run.id));
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let mut options = fs::OpenOptions::new();
        options.read(true).custom_flags(libc::O_NONBLOCK);
        SlowDisk {
            reader: options.open(&path).unwrap(),
            read: Vec::new(),
        }
    }

    /// Reads until `is_over`.
    fn go_on(&mut self, what: &str, is_over: impl Fn() -> bool) {
        eventually(what, || {
            let over = is_over();
            // Without a writer, or with one that has not written: an error, or nothing.
            let _ = self.reader.read_to_end(&mut self.read);
            over
        });
    }

    fn log(&self, run: &Run) -> DeepLog {
        let copy = run.path("copy.deep");
        fs::write(&copy, &self.read).unwrap();
        DeepLog::open(&copy).unwrap()
    }
}

/// More than a pipe has room for, compressed or not.
const LARGE: &str = "head -c 3000000 /dev/urandom | tee copy | cat - >/dev/null";

/// The log has its end without a reason, and the deep log in the pipe has all bytes.
fn assert_whole(run: &Run, disk: &SlowDisk) {
    let end = run.log().end().unwrap().clone();
    assert_eq!(end.incomplete_because, Vec::<String>::new());
    assert_eq!(end.warnings, Vec::<String>::new());
    let log = disk.log(run);
    assert!(log.end().is_some());
    let copy = fs::read(run.path("copy")).unwrap();
    assert!(bytes_read(&log, "-") == copy, "other bytes");
}

#[test]
fn the_launcher_answers_before_the_deep_log_is_written() {
    let run = Run::new(&["--deep", "full"]);
    let mut disk = SlowDisk::of(&run);
    let launcher = run
        .command(&["sh", "-c", LARGE])
        .stdin(Stdio::null())
        .spawn();
    let mut launcher = launcher.unwrap();
    eventually("the launcher answers", || {
        launcher.try_wait().unwrap().is_some()
    });
    assert!(run.part_path().exists() && !run.log_path().exists());
    // The log has its end from now on, even if its writers die.
    let part = backstory_eventlog::Log::open(run.part_path()).unwrap();
    assert_eq!(part.end().unwrap().exit, Some(0));
    disk.go_on("the log is finalized", || run.log_path().exists());
    assert_whole(&run, &disk);
    run.assert_tidy();
}

/// Records a command until the launcher answers. Returns the ids of the keeper and the supervisor.
fn answered(run: &Run) -> (u32, u32) {
    let script = format!("touch started; while ! test -e go; do sleep 0.01; done; {LARGE}");
    let launcher = run
        .command(&["sh", "-c", &script])
        .stdin(Stdio::null())
        .spawn();
    let mut launcher = launcher.unwrap();
    eventually("the command runs", || run.path("started").exists());
    let writers = others(launcher.id());
    fs::write(run.path("go"), "").unwrap();
    eventually("the launcher answers", || {
        launcher.try_wait().unwrap().is_some()
    });
    writers
}

#[test]
fn a_deep_log_that_only_has_to_be_finished_survives_the_death_of_its_writers() {
    for is_last in [false, true] {
        let run = Run::new(&["--deep", "full"]);
        let mut disk = SlowDisk::of(&run);
        let (keeper, supervisor) = answered(&run);
        if is_last {
            kill(keeper, libc::SIGKILL);
            eventually("the keeper is gone", || !alive(keeper));
        }
        kill(supervisor, libc::SIGKILL);
        std::thread::scope(|scope| {
            if is_last {
                eventually("no process records", || {
                    !backstory_session::is_recording(&run.part_path())
                });
                let (arena, part, log) = (run.arena_path(), run.part_path(), run.log_path());
                scope.spawn(move || backstory_session::recover(Some(&arena), &part, &log).unwrap());
            }
            disk.go_on("the log is finalized", || run.log_path().exists());
        });
        assert_whole(&run, &disk);
        run.assert_tidy();
    }
}

#[test]
fn a_deep_log_that_recovery_cannot_finish_leaves_a_word_in_the_log() {
    let run = Run::new(&["--deep", "full"]);
    let disk = SlowDisk::of(&run);
    let (keeper, supervisor) = answered(&run);
    kill(keeper, libc::SIGKILL);
    eventually("the keeper is gone", || !alive(keeper));
    kill(supervisor, libc::SIGKILL);
    eventually("no process records", || {
        !backstory_session::is_recording(&run.part_path())
    });
    // A directory is no file to append to.
    drop(disk);
    let deep = run.path(&format!("{}.deep", run.id));
    fs::remove_file(&deep).unwrap();
    fs::create_dir(&deep).unwrap();
    let arena = run.arena_path();
    backstory_session::recover(Some(&arena), &run.part_path(), &run.log_path()).unwrap();
    let end = run.log().end().unwrap().clone();
    assert_eq!(end.exit, Some(0));
    let said = end.warnings.join(" ");
    assert!(said.contains("are shallow from some moment on"), "{said}");
    run.assert_tidy();
}

#[test]
fn a_program_that_went_on_behind_a_killed_recording_is_not_whole() {
    let run = Run::new(&["--deep", "full", "--guard", "off"]);
    let script = "touch started; while ! test -e go; do sleep 0.01; done; touch ended";
    let launcher = run
        .command(&["sh", "-c", script])
        .stdin(Stdio::null())
        .spawn();
    let mut launcher = launcher.unwrap();
    eventually("the command runs", || run.path("started").exists());
    let (keeper, supervisor) = others(launcher.id());
    // None of them can take over from another one.
    let recorders = [launcher.id(), keeper, supervisor];
    for signal in [libc::SIGSTOP, libc::SIGKILL] {
        recorders.iter().for_each(|pid| kill(*pid, signal));
    }
    launcher.wait().unwrap();
    eventually("no process records", || {
        !backstory_session::is_recording(&run.part_path())
    });
    let arena = run.arena_path();
    backstory_session::recover(Some(&arena), &run.part_path(), &run.log_path()).unwrap();
    fs::write(run.path("go"), "").unwrap();
    eventually("the command ends", || run.path("ended").exists());
    let log = deep_log(&run);
    let why = log.end().unwrap().shallow_because.clone().unwrap();
    assert!(why.contains("the recording was killed"), "{why}");
    let programs = log.programs();
    let is_shell = |path: &Vec<u8>| path.ends_with(b"/sh");
    let mut shells = programs
        .iter()
        .filter(|one| one.program.as_ref().is_some_and(is_shell));
    assert!(shells.next().is_some_and(|shell| !shell.is_whole));
}

#[test]
fn a_static_program_is_shallow_and_its_dynamic_children_are_deep() {
    let Some(busybox) = backstory_testkit::busybox::busybox() else {
        return;
    };
    let run = Run::new(&["--deep", "digest"]);
    let script = format!("{} true; /bin/echo deep", busybox.display());
    assert!(run.shell(&script).status.success());
    run.log();
    let log = deep_log(&run);
    let programs: Vec<String> = log
        .processes()
        .iter()
        .filter_map(|p| {
            let begin = log.process_calls(p.epoch).next()?;
            let path = begin.section(deep::PATH, 4)?;
            Some(String::from_utf8_lossy(path).into_owned())
        })
        .collect();
    assert!(programs.iter().any(|p| p == "/bin/echo"), "{programs:?}");
    assert!(
        !programs.iter().any(|p| p.contains("busybox")),
        "{programs:?}"
    );
}

#[test]
fn a_run_without_deep_has_no_deep_log() {
    let run = Run::new(&[]);
    assert!(run.shell(LOUD).status.success());
    run.log();
    assert!(!run.path(&format!("{}.deep", run.id)).exists());
}

/// Records the program that limits its own calls. Returns its log.
fn limited(arguments: &[&str]) -> Option<DeepLog> {
    if !needs("a sandbox", &["cc"]) {
        return None;
    }
    let dir = compiled("sandbox", include_str!("../programs/deep_sandbox.c"));
    let program = dir.path().join("sandbox");
    let run = Run::new(&["--deep", "full"]);
    let words = [&[program.to_str().unwrap()], arguments].concat();
    assert!(run.record(&words).status.success());
    run.log();
    Some(deep_log(&run))
}

fn has_written(calls: &[Call], text: &[u8]) -> bool {
    let mut written = calls.iter().filter_map(|call| call.section(deep::LEFT, 1));
    written.any(|bytes| bytes == text)
}

#[test]
fn a_program_that_limits_its_calls_stays_deep() {
    let Some(log) = limited(&[]) else { return };
    let calls: Vec<_> = log.process_calls(log.processes()[0].epoch).collect();
    assert!(has_written(&calls, b"before\n") && has_written(&calls, b"after\n"));
    let pieces = calls.iter().filter_map(|call| call.entered_at(1));
    let pieces: Vec<_> = pieces.filter(|bytes| bytes.len() == 4096).collect();
    assert_eq!(pieces.len(), 200);
    for (number, piece) in pieces.iter().enumerate() {
        assert!(piece.iter().all(|byte| usize::from(*byte) == number));
    }
    // An open descriptor is named before the limit.
    let named = |call: &&Call| call.number == deep::DESCRIPTOR && call.fd == 0;
    assert_eq!(calls.iter().filter(named).count(), 1);
    assert_eq!(calls.last().unwrap().number, 231, "exit_group");
    assert!(log.programs().iter().all(|program| program.is_whole));
}

#[test]
fn a_thread_that_is_made_behind_a_limit_makes_its_process_shallow() {
    let Some(log) = limited(&["thread"]) else {
        return;
    };
    let calls: Vec<_> = log.process_calls(log.processes()[0].epoch).collect();
    assert!(has_written(&calls, b"after\n") && !has_written(&calls, b"behind\n"));
    let last = calls.last().unwrap();
    assert_eq!((last.number, last.a), (deep::SHALLOW, 1), "{last:?}");
}

#[test]
fn a_process_that_shared_its_memory_before_a_limit_is_not_whole() {
    let Some(log) = limited(&["shared"]) else {
        return;
    };
    let epoch = log.processes()[0].epoch;
    let calls: Vec<_> = log.process_calls(epoch).collect();
    assert!(has_written(&calls, b"before\n") && !has_written(&calls, b"after\n"));
    let mut programs = log.programs().into_iter();
    let first = programs.find(|program| program.process.epoch == epoch);
    // The record has the environment, so it is not printed.
    assert!(!first.unwrap().is_whole);
}
