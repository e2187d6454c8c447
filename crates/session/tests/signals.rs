//! Signals and job control behave as without backstory.

#![allow(clippy::unwrap_used)]

use super::harness;
use harness::{MODES, Run, child_named, eventually, kill, others};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// A command that appends a line to `got` for every signal, until it gets SIGUSR2. It is not a
/// shell: a shell that starts a program by vfork cannot stop. A signal to the group then stops the
/// child before its exec, also without backstory.
const LISTEN: &str = "sub say_ { open F, '>>', 'got'; print F \"$_[0]\\n\"; close F } \
                      $SIG{TERM} = sub { say_('term') }; $SIG{USR1} = sub { say_('usr1') }; $SIG{USR2} = sub { exit 4 }; \
                      open F, '>', 'started'; close F; sleep 1 while 1";

fn listening(run: &Run) -> Child {
    let mut command = run.command(&["perl", "-e", LISTEN]);
    let child = command
        .process_group(0)
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the command runs", || run.path("started").exists());
    child
}

fn got(run: &Run) -> String {
    std::fs::read_to_string(run.path("got")).unwrap_or_default()
}

fn state(pid: u32) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.chars().next().unwrap()
}

#[test]
fn a_signal_to_the_launcher_alone_reaches_the_command() {
    for guard in MODES {
        let run = Run::new(&["--guard", guard]);
        let mut launcher = listening(&run);
        kill(launcher.id(), libc::SIGTERM);
        eventually("the command got it", || got(&run) == "term\n");
        kill(launcher.id(), libc::SIGUSR1);
        eventually("the command got it", || got(&run) == "term\nusr1\n");
        kill(launcher.id(), libc::SIGUSR2);
        assert_eq!(launcher.wait().unwrap().code(), Some(4));
    }
}

#[test]
fn a_signal_to_the_group_reaches_the_command_once() {
    for guard in MODES {
        let run = Run::new(&["--guard", guard]);
        let mut launcher = listening(&run);
        for _ in 0..5 {
            std::fs::write(run.path("got"), "").unwrap();
            let group = format!("-{}", launcher.id());
            assert!(
                Command::new("/bin/kill")
                    .args(["-TERM", "--", &group])
                    .status()
                    .unwrap()
                    .success()
            );
            eventually("the command got it", || got(&run) == "term\n");
            // Signals to the launcher alone are passed on in order: a second one would have arrived
            // before this one.
            kill(launcher.id(), libc::SIGUSR1);
            eventually("it got the next", || got(&run).ends_with("usr1\n"));
            assert_eq!(got(&run), "term\nusr1\n");
        }
        kill(launcher.id(), libc::SIGUSR2);
        assert_eq!(launcher.wait().unwrap().code(), Some(4));
    }
}

#[test]
fn the_launcher_stops_and_goes_on_with_the_command() {
    for guard in MODES {
        let run = Run::new(&["--guard", guard]);
        let mut launcher = listening(&run);
        let (_, supervisor) = others(launcher.id());
        let command = child_named(supervisor, "perl").unwrap();
        for signal in [libc::SIGSTOP, libc::SIGTSTP] {
            kill(command, signal);
            eventually("the command stops", || state(command) == 'T');
            eventually("the launcher stops", || state(launcher.id()) == 'T');
            kill(launcher.id(), libc::SIGCONT);
            eventually("the command goes on", || state(command) != 'T');
            eventually("the launcher goes on", || state(launcher.id()) != 'T');
        }
        let group = format!("-{}", launcher.id());
        for (signal, stopped) in [
            ("-STOP", true),
            ("-CONT", false),
            ("-STOP", true),
            ("-CONT", false),
        ] {
            assert!(
                Command::new("/bin/kill")
                    .args([signal, "--", &group])
                    .status()
                    .unwrap()
                    .success()
            );
            for pid in [command, launcher.id()] {
                eventually("all of the group stop and go on", || {
                    (state(pid) == 'T') == stopped
                });
            }
        }
        for _ in 0..20 {
            std::thread::sleep(std::time::Duration::from_millis(1));
            assert!(
                state(launcher.id()) != 'T',
                "the launcher stopped once more"
            );
        }
        kill(command, libc::SIGSTOP);
        eventually("the launcher stops", || state(launcher.id()) == 'T');
        kill(command, libc::SIGCONT);
        eventually("the launcher goes on", || state(launcher.id()) != 'T');
        kill(launcher.id(), libc::SIGUSR2);
        assert_eq!(launcher.wait().unwrap().code(), Some(4));
    }
}

/// The kernel reports no continuation of a process that has ended since.
#[test]
fn the_launcher_ends_with_a_command_that_ends_while_both_are_stopped() {
    for guard in MODES {
        for ending in [&[libc::SIGKILL][..], &[libc::SIGUSR2, libc::SIGCONT]] {
            let run = Run::new(&["--guard", guard]);
            let mut launcher = listening(&run);
            let (_, supervisor) = others(launcher.id());
            let command = child_named(supervisor, "perl").unwrap();
            kill(command, libc::SIGSTOP);
            eventually("the launcher stops", || state(launcher.id()) == 'T');
            for signal in ending {
                kill(command, *signal);
            }
            eventually("the launcher ends", || {
                launcher.try_wait().unwrap().is_some()
            });
        }
    }
}

/// A job without children: a shell that starts a program by vfork cannot stop, see [`LISTEN`].
const TERMINAL_JOB: &str =
    r#"$| = 1; $SIG{INT} = sub { print "int\n"; exit 6 }; print "ready\n"; sleep 1 while 1"#;

/// An interactive shell on a terminal of its own: Ctrl-Z stops the job, `fg` continues it, Ctrl-C
/// ends it.
#[test]
fn job_control_on_a_terminal() {
    for guard in MODES {
        let run = Run::new(&["--guard", guard]);
        let script = run.path("terminal.py");
        std::fs::write(&script, PTY).unwrap();
        let recorded = run.command(&["perl", "-e", TERMINAL_JOB]);
        let mut words: Vec<String> = vec![recorded.get_program().to_str().unwrap().into()];
        words.extend(
            recorded
                .get_args()
                .map(|w| format!("'{}'", w.to_str().unwrap().replace('\'', "'\\''"))),
        );
        let Ok(out) = Command::new("python3")
            .arg(&script)
            .arg(words.join(" "))
            .output()
        else {
            backstory_testkit::need::skipped("signals of a terminal", "needs python3");
            return;
        };
        let text = harness::text(&out.stdout);
        assert!(
            out.status.success(),
            "{text}\n{}",
            harness::text(&out.stderr)
        );
    }
}

const PTY: &str = r#"
import os, pty, sys, time, select, signal
pid, fd = pty.fork()
if pid == 0:
    os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
seen = ""
def expect(what):
    global seen
    end = time.time() + 120
    while what not in seen:
        if time.time() > end:
            print("no %r in %r" % (what, seen)); os.kill(pid, 9); sys.exit(1)
        if select.select([fd], [], [], 0.1)[0]:
            seen += os.read(fd, 4096).decode(errors="replace")
    seen = seen.split(what, 1)[1]
def send(text): os.write(fd, text.encode())
def in_front(whose):
    end = time.time() + 120
    while not whose(os.tcgetpgrp(fd)):
        if time.time() > end:
            print("never in front"); os.kill(pid, 9); sys.exit(1)
        time.sleep(0.001)
send("PS1='prom''pt> '\n"); expect("prompt> ")
send(sys.argv[1] + "\n"); expect("ready\r")
send("\x1a"); expect("Stopped"); expect("prompt> ")
send("echo still $((40+2))\n"); expect("still 42"); expect("prompt> ")
send("fg\n"); in_front(lambda group: group != pid)
send("\x03"); expect("int\r"); expect("prompt> ")
send("echo status $?\n"); expect("status 6"); expect("prompt> ")
send("exit\n")
os.waitpid(pid, 0)
"#;
