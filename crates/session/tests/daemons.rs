//! The prompt never waits for daemons; the record does.

#![allow(clippy::unwrap_used)]

use super::harness;
use harness::{MODES, Run, eventually, gone, text};

/// Leaves a process behind that ends with 9 when `go` is made.
const LEAVE: &str = "setsid sh -c 'touch started; while [ -e started -a ! -e go ]; do sleep 0.01; done; exit 9' \
                     </dev/null >/dev/null 2>&1 & while [ ! -e started ]; do sleep 0.01; done; echo left";

#[test]
fn daemons_are_recorded_until_they_end() {
    for guard in MODES {
        let run = Run::new(&["--guard", guard]);
        let out = run.shell(LEAVE);
        assert_eq!(
            (out.status.code(), text(&out.stdout)),
            (Some(0), "left\n".into())
        );
        assert!(run.recorded().contains("still_recording: true"));
        assert!(run.part_path().exists(), "recording goes on");
        std::fs::write(run.path("go"), "").unwrap();
        assert!(
            gone(&run.events()).contains(&(9 << 8)),
            "{:?}",
            gone(&run.events())
        );
        assert_eq!(run.reasons(), Vec::<String>::new());
        run.assert_tidy();
    }
}

#[test]
fn detaching_ends_the_record_not_the_daemon() {
    for guard in MODES {
        let run = Run::new(&["--guard", guard, "--detach-after", "0.05"]);
        assert_eq!(run.shell(LEAVE).status.code(), Some(0));
        let reasons = run.reasons();
        // The shell, and the sleep that it may be waiting for.
        assert!(
            reasons[0].contains("still running when recording stopped"),
            "{reasons:?}"
        );
        std::fs::write(run.path("go"), "").unwrap();
        eventually("the arena is gone", || !run.arena_path().exists());
    }
}

#[test]
fn readers_of_our_output_see_its_end_when_the_command_closes_it() {
    for guard in MODES {
        let run = Run::new(&["--guard", guard]);
        let script = "echo out; exec >&- 2>/dev/null; touch closed; while [ -e closed -a ! -e go ]; do sleep 0.01; done";
        let mut child = run
            .command(&["sh", "-c", script])
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = String::new();
        std::io::Read::read_to_string(&mut child.stdout.take().unwrap(), &mut out).unwrap();
        assert_eq!(out, "out\n");
        assert!(
            child.try_wait().unwrap().is_none(),
            "the command still runs"
        );
        std::fs::write(run.path("go"), "").unwrap();
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn the_background_command_finds_the_finalized_log_and_comes_last() {
    for guard in MODES {
        let run = Run::new(&["--guard", guard, "--after"]);
        let mut command = run.command(&[]);
        // `--after` takes a command, so `--` and the program follow it.
        let script = format!(
            "test -e {0} && {{ nice; ps -o class= -p $$; ionice; }} > {0}.new && mv {0}.new {0}.after",
            run.log_path().display()
        );
        let words: Vec<_> = command.get_args().map(|w| w.to_owned()).collect();
        command = std::process::Command::new(command.get_program());
        command
            .args(&words[..words.len() - 1])
            .arg(script)
            .args(["--", "true"]);
        assert!(command.status().unwrap().success());
        let result = format!("{}.after", run.log_path().display());
        eventually("it was done", || {
            std::fs::read_to_string(&result).is_ok_and(|r| !r.is_empty())
        });
        let priority = std::fs::read_to_string(&result).unwrap();
        let words: Vec<&str> = priority.split_whitespace().collect();
        assert_eq!(words, ["19", "IDL", "idle"], "for processors and for disks");
    }
}

#[test]
fn the_prompt_does_not_wait_for_a_daemon() {
    for guard in MODES {
        let run = Run::new(&["--guard", guard, "--detach-after", "600"]);
        let gate = run.path("gate");
        let made = std::process::Command::new("mkfifo").arg(&gate).status();
        assert!(made.unwrap().success());
        run.shell(&format!(
            "(read line < {}) >/dev/null 2>&1 &",
            gate.display()
        ));
        assert!(
            !run.log_path().exists(),
            "the daemon still waits at the gate"
        );
        std::fs::write(&gate, "go\n").unwrap();
        eventually("the daemon ends, and the run with it", || {
            run.log_path().exists()
        });
    }
}
