//! Callers with signals ignored or blocked, as daemons, CGI programs and Perl scripts have them.

use std::time::{Duration, Instant};

use backstory_testkit::need;

use crate::{Answer, Place};

/// Runs a line of Perl, which executes `$B record -- LINE` with the signals of the caller.
fn called_by(place: &Place, caller: &str, command: &[&str]) -> Answer {
    let mut perl = place.stage.command("perl");
    perl.current_dir(place.work())
        .env("BACKSTORY_STORE", place.stage.store())
        .args(["-MPOSIX", "-e", caller])
        .args(command);
    Answer::of(perl.output().unwrap())
}

const IGNORES_CHILDREN: &str = "$SIG{CHLD} = 'IGNORE'; exec @ARGV";
const BLOCKS: &str =
    "sigprocmask(SIG_BLOCK, POSIX::SigSet->new(SIGCHLD, SIGUSR1, SIGHUP)); exec @ARGV";

#[test]
fn a_caller_that_ignores_ends_of_children_gets_the_status() {
    let place = Place::new();
    if !need::needs("a caller with its own signals", &["perl"]) {
        return;
    }
    let program = place.program();
    for caller in [IGNORES_CHILDREN, BLOCKS] {
        for (line, status) in [("exit 3", 3), ("kill -TERM $$", 143)] {
            let record = [&*program, "record", "--", "sh", "-c", line];
            let answer = called_by(&place, caller, &record);
            assert_eq!(
                (answer.status, answer.err.as_str()),
                (status, ""),
                "{caller}: {line}"
            );
            let show = place.json(&["show", "--json"]);
            assert_eq!(show["complete"], true, "{show}");
        }
        let asked = called_by(&place, caller, &[&*program, "files", "--json"]);
        assert_eq!((asked.status, asked.err.as_str()), (0, ""), "{caller}");
    }
}

/// The caller's signals reach the command as they are without a recording.
#[test]
fn the_command_has_the_signals_of_the_caller() {
    let place = Place::new();
    if !need::needs("a caller with its own signals", &["perl"]) {
        return;
    }
    let program = place.program();
    let command = ["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"];
    for caller in [
        IGNORES_CHILDREN,
        BLOCKS,
        "$SIG{$_} = 'IGNORE' for qw(CHLD HUP USR2 PIPE TSTP XFSZ); exec @ARGV",
    ] {
        let alone = called_by(&place, caller, &command);
        for guard in ["--guard=on", "--guard=off", "--guard=auto"] {
            let record = [&[&*program, "record", guard, "--"][..], &command].concat();
            let recorded = called_by(&place, caller, &record);
            assert_eq!(recorded.out, alone.out, "{caller} with {guard}");
        }
    }
}

#[test]
fn a_signal_ends_a_recording_below_a_caller_that_ignores_ends_of_children() {
    let place = Place::new();
    if !need::needs("a caller with its own signals", &["perl"]) {
        return;
    }
    let caller = "$SIG{CHLD} = 'IGNORE'; $p = fork; exec @ARGV if !$p; $SIG{CHLD} = 'DEFAULT'; \
                  1 until -e 'ready'; kill 'TERM', $p; waitpid $p, 0; print $? & 127, ' ', $? >> 8";
    let line = "echo > ready; exec sleep 60";
    let began = Instant::now();
    let program = place.program();
    let record = [&*program, "record", "--", "sh", "-c", line];
    let answer = called_by(&place, caller, &record);
    assert_eq!((answer.out.as_str(), answer.err.as_str()), ("0 143", ""));
    assert!(began.elapsed() < Duration::from_secs(50));
}
