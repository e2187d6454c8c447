//! Whichever process of the recording dies, the command goes on (or ends as it would have). Its
//! status arrives, and the log is finalized and reports the gaps.

#![allow(clippy::unwrap_used)]

use super::harness;
use harness::{
    MODES, Run, alive, child_named, children, eventually, gone, has_filter, is_stopped, kill,
    others,
};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::process::{Child, Stdio};

const KILL: i32 = libc::SIGKILL;

/// Starts a command that makes `started` when it runs, and ends with 5 when `go` is made.
fn waiting(run: &Run) -> Child {
    waiting_before(run, "true")
}

/// The same command, which executes a line after `go` is made.
fn waiting_before(run: &Run, line: &str) -> Child {
    let script = format!(
        "touch started; while [ -e started -a ! -e go ]; do sleep 0.01; done; {line}; touch ended; exit 5"
    );
    let child = run
        .command(&["sh", "-c", &script])
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the command runs", || run.path("started").exists());
    child
}

fn go(run: &Run) {
    std::fs::write(run.path("go"), "").unwrap();
}

fn finish(run: &Run, mut launcher: Child) -> Option<i32> {
    go(run);
    eventually("the launcher ends", || {
        launcher.try_wait().unwrap().is_some()
    });
    let status = launcher.wait().unwrap();
    assert!(run.path("ended").exists());
    status.code()
}

#[test]
fn a_killed_supervisor_is_replaced_by_the_keeper() {
    for guard in MODES {
        let run = Run::new(&["--guard", guard]);
        let launcher = waiting(&run);
        let (_, supervisor) = others(launcher.id());
        kill(supervisor, KILL);
        assert_eq!(finish(&run, launcher), Some(5));
        let reasons = run.reasons();
        assert!(
            reasons.iter().any(|r| r.contains("the supervisor died")),
            "{reasons:?}"
        );
        assert_eq!(run.log().end().unwrap().exit, Some(5));
        assert!(gone(&run.events()).contains(&(5 << 8)));
        run.assert_tidy();
    }
}

/// The records need far more memory than what is free at the death.
#[test]
fn after_the_death_of_supervisor_or_keeper_too_no_operation_is_lost() {
    for guard in ["off", "on"] {
        for both in [false, true] {
            let run = Run::new(&["--guard", guard]);
            let line = "i=0; while [ $i -lt 40000 ]; do : <started; i=$((i+1)); done";
            let launcher = waiting_before(&run, line);
            let (keeper, supervisor) = others(launcher.id());
            if both {
                kill(keeper, KILL);
            }
            kill(supervisor, KILL);
            assert_eq!(finish(&run, launcher), Some(5));
            let reasons = run.reasons();
            assert!(
                reasons.len() == 1 && reasons[0].starts_with("the supervisor "),
                "{guard} {both}: {reasons:?}"
            );
        }
    }
}

#[test]
fn a_stopped_process_continues() {
    for guard in MODES {
        let run = Run::new(&["--guard", guard]);
        let launcher = waiting(&run);
        let (keeper, supervisor) = others(launcher.id());
        for pid in [supervisor, keeper] {
            kill(pid, libc::SIGSTOP);
        }
        assert_eq!(finish(&run, launcher), Some(5));
        assert_eq!(run.reasons(), Vec::<String>::new());
        run.assert_tidy();
    }
}

#[test]
fn a_stopped_keeper_takes_over_from_a_killed_supervisor() {
    for guard in MODES {
        let run = Run::new(&["--guard", guard]);
        let launcher = waiting(&run);
        let (keeper, supervisor) = others(launcher.id());
        kill(keeper, libc::SIGSTOP);
        kill(supervisor, KILL);
        assert_eq!(finish(&run, launcher), Some(5));
        let mut reasons = run.reasons();
        // With `auto`, a process that needs the filter then cannot get it.
        reasons.retain(|reason| guard != "auto" || !reason.contains("the guard's filter"));
        assert!(
            reasons.len() == 1 && reasons[0].starts_with("the supervisor died"),
            "{reasons:?}"
        );
        run.assert_tidy();
    }
}

/// `--guard=auto`: the supervisor is stopped while processes pass the listeners of their filters to
/// it, and is killed then. If the listeners were lost, `cat` could not load its libraries.
#[test]
fn processes_that_install_a_filter_when_the_supervisor_dies_behave_as_natively() {
    for contents in ["off", "lazy"] {
        let run = Run::new(&["--guard", "auto", "--contents", contents]);
        std::fs::write(run.path("in"), "1\n").unwrap();
        let gate = run.path("gate");
        mknodat(CWD, &gate, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        // A change of limits needs the filter.
        let script = "touch started; read line <gate; for i in 1 2 3; do \
                      (ulimit -c 0; cat in >out$i) & done; wait; touch ended; exit 5";
        let mut command = run.command(&["sh", "-c", script]);
        // cargo sets this one. A program that starts with it needs the filter.
        command.env_remove("LD_LIBRARY_PATH").stdin(Stdio::null());
        let mut launcher = command.spawn().unwrap();
        eventually("the command runs", || run.path("started").exists());
        let (keeper, supervisor) = others(launcher.id());
        let shell = command_of(supervisor);
        if has_filter(shell) {
            kill(launcher.id(), KILL);
            launcher.wait().unwrap();
            let why = "the programs of this machine need the filter";
            return backstory_testkit::need::skipped("a filter as the supervisor dies", why);
        }
        // In this order, none of them continues another one.
        for pid in [launcher.id(), keeper, supervisor] {
            kill(pid, libc::SIGSTOP);
            eventually("it is stopped", || is_stopped(pid));
        }
        std::fs::write(&gate, "\n").unwrap();
        eventually("three processes have filters", || {
            let children = children(shell).into_iter();
            children.filter(|child| has_filter(*child)).count() == 3
        });
        kill(supervisor, KILL);
        for pid in [keeper, launcher.id()] {
            kill(pid, libc::SIGCONT);
        }
        eventually("the launcher ends", || {
            launcher.try_wait().unwrap().is_some()
        });
        assert_eq!(launcher.wait().unwrap().code(), Some(5), "{contents}");
        let copied = [1, 2, 3].map(|i| std::fs::read_to_string(run.path(&format!("out{i}"))));
        let copied = copied.map(Result::unwrap);
        assert_eq!(copied, ["1\n"; 3], "{contents}");
        assert!(run.path("ended").exists(), "{contents}");
        let reasons = run.reasons();
        let says = |what: &str| reasons.iter().any(|reason| reason.contains(what));
        assert!(
            says("the supervisor died") && says("the guard's filter"),
            "{contents}: {reasons:?}"
        );
        run.assert_tidy();
    }
}

#[test]
fn a_killed_keeper_marks_the_run() {
    for guard in MODES {
        let run = Run::new(&["--guard", guard]);
        let launcher = waiting(&run);
        let (keeper, _) = others(launcher.id());
        kill(keeper, KILL);
        // On a busy machine the command would end before the keeper does.
        eventually("the keeper is gone", || !alive(keeper));
        assert_eq!(finish(&run, launcher), Some(5));
        assert_eq!(run.reasons(), ["the keeper died"]);
        run.assert_tidy();
    }
}

#[test]
fn with_both_dead_the_launcher_ends_the_log() {
    for guard in MODES {
        for keeper_first in [true, false] {
            let run = Run::new(&["--guard", guard]);
            let launcher = waiting(&run);
            let (keeper, supervisor) = others(launcher.id());
            let order = if keeper_first {
                [keeper, supervisor]
            } else {
                [supervisor, keeper]
            };
            for pid in order {
                kill(pid, KILL);
            }
            assert_eq!(finish(&run, launcher), Some(5));
            assert!(!run.reasons().is_empty());
            assert_eq!(run.log().end().unwrap().exit, Some(5));
            run.assert_tidy();
        }
    }
}

/// The command, which may not have been executed yet.
fn command_of(supervisor: u32) -> u32 {
    let mut command = None;
    eventually("the command runs", || {
        command = child_named(supervisor, "sh");
        command.is_some()
    });
    command.unwrap()
}

#[test]
fn a_killed_launcher_takes_the_command_with_it_and_the_log_is_finalized() {
    for guard in MODES {
        let run = Run::new(&["--guard", guard]);
        let mut launcher = waiting(&run);
        let (_, supervisor) = others(launcher.id());
        let command = command_of(supervisor);
        kill(launcher.id(), KILL);
        launcher.wait().unwrap();
        eventually("the command is gone", || !alive(command));
        assert_eq!(run.log().end().unwrap().signal, Some(KILL));
        assert!(!run.path("ended").exists());
        eventually("the arena is gone", || !run.arena_path().exists());
    }
}

/// The launcher dies at each moment of the start. A process that lives records.
#[test]
fn a_launcher_that_is_killed_while_it_starts_leaves_no_command() {
    for guard in MODES {
        for delay in 0..30 {
            let run = Run::new(&["--guard", guard]);
            let mut command = run.command(&["sleep", "600"]);
            let mut launcher = command.stdin(Stdio::null()).spawn().unwrap();
            std::thread::sleep(std::time::Duration::from_micros(delay * 500));
            kill(launcher.id(), KILL);
            launcher.wait().unwrap();
            eventually("no process records", || {
                !backstory_session::is_recording(&run.part_path())
            });
            // Without a log, it is left for a while.
            let _ = std::fs::remove_file(run.arena_path());
        }
    }
}

#[test]
fn a_killed_command_is_a_signal() {
    for guard in MODES {
        let run = Run::new(&["--guard", guard]);
        let mut launcher = waiting(&run);
        let (_, supervisor) = others(launcher.id());
        kill(command_of(supervisor), KILL);
        assert_eq!(launcher.wait().unwrap().code(), Some(137));
        assert_eq!(run.log().end().unwrap().signal, Some(KILL));
        run.assert_tidy();
    }
}

#[test]
fn with_all_dead_recovery_finalizes_what_is_there() {
    for guard in MODES {
        let run = Run::new(&["--guard", guard]);
        let mut launcher = waiting(&run);
        let (keeper, supervisor) = others(launcher.id());
        let command = command_of(supervisor);
        assert!(backstory_session::is_recording(&run.part_path()));
        for pid in [launcher.id(), keeper, supervisor] {
            kill(pid, libc::SIGSTOP); // so that none can continue another, or take over from it
        }
        for pid in [supervisor, keeper, launcher.id(), command] {
            kill(pid, KILL);
        }
        launcher.wait().unwrap();
        eventually("all are gone", || {
            ![keeper, supervisor].into_iter().any(alive)
        });
        eventually("nobody records", || {
            !backstory_session::is_recording(&run.part_path())
        });
        let arena = run.arena_path();
        backstory_session::recover(Some(&arena), &run.part_path(), &run.log_path()).unwrap();
        assert_eq!(run.reasons().len(), 1);
        run.assert_tidy();
        assert!(!run.arena_path().exists());
    }
}

/// A store may come from another user, and a log in it may name any file as its arena.
#[test]
fn recovery_removes_no_file_that_a_log_merely_names() {
    let run = Run::new(&[]);
    let precious = run.path("precious");
    std::fs::write(&precious, [0; 8192]).unwrap();
    let header = backstory_eventlog::run::RunHeader {
        id: run.id.clone(),
        boot_id: std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
            .unwrap()
            .trim()
            .to_owned(),
        arena: Some(precious.to_string_lossy().into_owned()),
        ..Default::default()
    };
    backstory_eventlog::Writer::create(run.part_path(), &header).unwrap();
    backstory_session::recover(Some(&precious), &run.part_path(), &run.log_path()).unwrap();
    assert_eq!(std::fs::read(&precious).unwrap(), [0; 8192]);
    assert!(run.log().end().is_some());
}

#[test]
fn a_run_that_is_being_recorded_is_not_recovered() {
    for guard in MODES {
        let run = Run::new(&["--guard", guard]);
        let launcher = waiting(&run);
        let refused = backstory_session::recover(None, &run.part_path(), &run.log_path());
        assert!(
            matches!(
                refused,
                Err(backstory_session::Error::StillRecording { .. })
            ),
            "{refused:?}"
        );
        assert_eq!(finish(&run, launcher), Some(5));
        assert_eq!(run.reasons(), Vec::<String>::new());
    }
}

/// Kills in the middle of watched calls: the remaining process responds to them, and no call fails.
#[test]
fn calls_in_progress_get_a_response_whichever_process_dies() {
    let script = "import os, sys\nopen('started', 'w').close()\n\
                  while not os.path.exists('go'):\n\
                  \tfd = os.open('/etc/hostname', os.O_RDONLY); os.close(fd)\n\
                  \ttry: os.open('/no/such/file', os.O_RDONLY); sys.exit(8)\n\
                  \texcept FileNotFoundError: pass\n\
                  open('ended', 'w').close()\nsys.exit(5)\n";
    for victims in [&["supervisor"][..], &["keeper"], &["keeper", "supervisor"]] {
        let run = Run::new(&["--guard", "strict"]);
        std::fs::write(run.path("script.py"), script).unwrap();
        let Ok(launcher) = run
            .command(&["python3", "script.py"])
            .stdin(Stdio::null())
            .spawn()
        else {
            backstory_testkit::need::skipped("the death of a recording", "needs python3");
            return;
        };
        eventually("the command runs", || run.path("started").exists());
        let (keeper, supervisor) = others(launcher.id());
        let pid = |victim: &&str| match *victim {
            "keeper" => keeper,
            _ => supervisor,
        };
        let dying: Vec<u32> = victims.iter().map(pid).collect();
        dying.iter().for_each(|one| kill(*one, KILL));
        // On a busy machine the command would end before a victim does.
        for one in dying {
            eventually("the victim is gone", || !alive(one));
        }
        assert_eq!(finish(&run, launcher), Some(5), "without {victims:?}");
        assert!(!run.reasons().is_empty(), "without {victims:?}");
        run.assert_tidy();
    }
}

/// `kill -9 %1`: launcher, keeper and command die at once. The supervisor is not in the group and
/// ends the log.
#[test]
fn a_killed_group_leaves_a_finalized_log() {
    for guard in MODES {
        use std::os::unix::process::CommandExt;
        let run = Run::new(&["--guard", guard]);
        let script = "touch started; sleep 600; touch ended";
        let mut command = run.command(&["sh", "-c", script]);
        let mut launcher = command
            .process_group(0)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        eventually("the command runs", || run.path("started").exists());
        let group = rustix::process::Pid::from_raw(launcher.id() as i32).unwrap();
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
        launcher.wait().unwrap();
        assert_eq!(run.log().end().unwrap().signal, Some(KILL));
        eventually("the arena is gone", || !run.arena_path().exists());
    }
}

/// The same, by a program that does so with its first instruction. The supervisor has left the
/// group before.
#[test]
fn a_group_that_is_killed_as_the_program_begins_leaves_a_finalized_log() {
    for guard in MODES {
        use std::os::unix::process::CommandExt;
        let run = Run::new(&["--guard", guard]);
        let Some(program) = killer_of_its_group(&run) else {
            backstory_testkit::need::skipped("a group that is killed", "needs cc");
            return;
        };
        let mut command = run.command(&[&program]);
        let mut launcher = command
            .process_group(0)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        launcher.wait().unwrap();
        assert_eq!(
            run.log().end().unwrap().signal,
            Some(KILL),
            "--guard={guard}"
        );
        eventually("the arena is gone", || !run.arena_path().exists());
    }
}

/// A program without a library, which has the kernel kill its group at once.
fn killer_of_its_group(run: &Run) -> Option<String> {
    let source = "void _start(void) { long r; __asm__ volatile(\"syscall\" : \"=a\"(r) : \"a\"(62L), \"D\"(0L), \"S\"(9L)\
                  : \"rcx\", \"r11\", \"memory\"); for (;;); }";
    let (text, program) = (run.path("killer.c"), run.path("killer"));
    std::fs::write(&text, source).unwrap();
    let mut compiler = std::process::Command::new("cc");
    compiler
        .args(["-O1", "-nostdlib", "-static", "-o"])
        .args([&program, &text]);
    let made = compiler.status().is_ok_and(|status| status.success());
    made.then(|| program.to_str().unwrap().to_owned())
}
