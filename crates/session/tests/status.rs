//! `record` represents the command: status, signals, streams, directory, descriptors.

#![allow(clippy::unwrap_used)]

use super::harness;
use harness::{MODES, Run, gone, text};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn exits_with_the_commands_status() {
    for guard in MODES {
        let run = Run::new(&["--guard", guard]);
        let out = run.shell("echo out; echo err >&2; exit 7");
        assert_eq!(out.status.code(), Some(7));
        assert_eq!(
            (text(&out.stdout), text(&out.stderr)),
            ("out\n".into(), "err\n".into())
        );
        let log = run.log();
        let end = log.end().unwrap();
        assert_eq!(
            (end.exit, end.signal, end.not_started),
            (Some(7), None, None)
        );
        assert_eq!(end.incomplete_because, Vec::<String>::new());
        assert_eq!(
            log.header().command,
            [&b"sh"[..], b"-c", b"echo out; echo err >&2; exit 7"]
        );
        assert!(gone(&run.events()).contains(&(7 << 8)));
        run.assert_tidy();
    }
}

#[test]
fn a_signal_is_128_and_its_number() {
    for guard in MODES {
        let run = Run::new(&["--guard", guard]);
        assert_eq!(run.shell("kill -TERM $$").status.code(), Some(143));
        assert_eq!(run.log().end().unwrap().signal, Some(15));
    }
}

#[test]
fn a_missing_command_is_127_and_a_run() {
    for guard in MODES {
        for (name, why) in [
            ("no-such-command", "no such command in PATH"),
            ("/no/such/command", "No such file or directory"),
        ] {
            let run = Run::new(&["--guard", guard]);
            let out = run.record(&[name]);
            assert_eq!(out.status.code(), Some(127));
            assert_eq!(text(&out.stderr), format!("backstory: {name}: {why}\n"));
            let log = run.log();
            assert_eq!(log.end().unwrap().not_started, Some(libc::ENOENT));
            assert_eq!(log.end().unwrap().exit, None);
            run.assert_tidy();
        }
    }
}

#[test]
fn a_command_that_cannot_be_executed_is_126() {
    for guard in MODES {
        let run = Run::new(&["--guard", guard]);
        std::fs::write(run.path("plain"), "text").unwrap();
        let out = run.record(&["./plain"]);
        assert_eq!(out.status.code(), Some(126));
        assert_eq!(
            text(&out.stderr),
            "backstory: ./plain: it may not be executed\n"
        );
        assert_eq!(run.log().end().unwrap().not_started, Some(libc::EACCES));
    }
}

#[test]
fn a_script_without_interpreter_line_runs_in_the_shell() {
    for guard in MODES {
        let run = Run::new(&["--guard", guard]);
        let script = run.path("script");
        backstory_testkit::program::write(&script, b"echo \"$1\"; exit 3").unwrap();
        let out = run.record(&["./script", "a b"]);
        assert_eq!(
            (out.status.code(), text(&out.stdout)),
            (Some(3), "a b\n".into())
        );
    }
}

#[test]
fn own_failures_before_the_start_are_125_and_the_command_does_not_run() {
    for guard in MODES {
        let run = Run::new(&["--guard", guard]);
        std::fs::create_dir(run.part_path()).unwrap();
        let out = run.shell("touch ran");
        assert_eq!(out.status.code(), Some(125));
        assert!(
            text(&out.stderr).contains("cannot create"),
            "{}",
            text(&out.stderr)
        );
        assert!(!run.path("ran").exists());
        assert!(!run.arena_path().exists());
    }
}

#[test]
fn input_passes_through() {
    for guard in MODES {
        let run = Run::new(&["--guard", guard]);
        let mut child = run
            .command(&["wc", "-c"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(&[b'x'; 100_000])
            .unwrap();
        let out = child.wait_with_output().unwrap();
        assert_eq!(text(&out.stdout), "100000\n");
    }
}

/// Signals, mask, descriptors and directory as `/proc` shows them from within, with and without
/// recording.
#[test]
fn the_command_inherits_what_we_were_given() {
    for guard in MODES {
        const SHOW: &str = "cat /proc/self/status | grep -E '^(Sig(Ign|Blk|Cgt)|Umask|Seccomp|NoNewPrivs)'; \
                            ls -l /proc/self/fd | sed 's/.*[0-9][0-9]:[0-9][0-9] //' | grep -v /proc/; pwd; ulimit -a; ps -o pgid=,sid=,tty= -p $$";
        for prefix in [
            "",
            "trap '' HUP PIPE INT; ",
            "exec 7</dev/null; ",
            "exec <&-; ",
            "exec 9>x; cd /; umask 027; ulimit -Sn 99; ulimit -Sf 12345; ",
        ] {
            let mut native = Command::new("sh");
            native.args(["-c", &format!("{prefix}exec sh -c \"$0\""), SHOW]);
            let here = tempfile::tempdir().unwrap();
            let native = silent_in(here.path(), &mut native).output().unwrap();
            let run = Run::new(&["--guard", guard]);
            let recorded = run.command(&["sh", "-c", SHOW]);
            let mut shell = Command::new("sh");
            shell
                .args(["-c", &format!("{prefix}exec \"$@\""), "sh"])
                .arg(recorded.get_program())
                .args(recorded.get_args());
            let recorded = silent_in(here.path(), &mut shell).output().unwrap();
            let strip = |bytes: &[u8]| -> Vec<String> {
                text(bytes)
                    .lines()
                    // Pipes have other numbers, and the filter is visible.
                    .filter(|l| {
                        !l.contains("pipe:")
                            && !l.starts_with("Seccomp")
                            && !l.starts_with("NoNewPrivs")
                    })
                    .map(str::to_owned)
                    .collect()
            };
            assert_eq!(
                strip(&recorded.stdout),
                strip(&native.stdout),
                "after {prefix:?}"
            );
            assert_eq!(
                text(&recorded.stderr),
                text(&native.stderr),
                "after {prefix:?}"
            );
        }
    }
}

fn silent_in<'c>(directory: &Path, command: &'c mut Command) -> &'c mut Command {
    command.current_dir(directory).stdin(Stdio::null())
}

/// The alarm is due long after the start of any recording. The command shortens it.
#[test]
fn a_pending_alarm_is_the_commands() {
    for guard in MODES {
        let run = Run::new(&["--guard", guard]);
        let shorten = "exit 9 if !alarm 1; sleep 600";
        let recorded = run.command(&["perl", "-e", shorten]);
        let status = Command::new("perl")
            .args(["-e", "alarm 3600; exec @ARGV"])
            .arg(recorded.get_program())
            .args(recorded.get_args())
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(128 + libc::SIGALRM));
        assert_eq!(status.signal(), None);
        assert_eq!(run.log().end().unwrap().signal, Some(libc::SIGALRM));
    }
}
