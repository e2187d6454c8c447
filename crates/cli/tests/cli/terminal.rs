//! At a terminal: keys, job control and the window's size work as without backstory. Everything is
//! typed into an interactive shell twice, alone and recorded. In the shell, `$R` stands before the
//! command.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use backstory_testkit::need;

use super::Place;

/// No step takes longer, on any machine.
const LONG: Duration = Duration::from_secs(120);

/// A shell at a terminal of its own (made by `script`), and everything shown there.
struct Terminal {
    place: Place,
    script: Child,
    keyboard: ChildStdin,
    screen: Arc<Mutex<String>>,
    /// Number of bytes of the screen that were read.
    seen: usize,
    /// Name of the scene, for failure messages.
    what: &'static str,
}

impl Terminal {
    fn new(recorded: bool) -> Terminal {
        let place = Place::new();
        let mut command = place.stage.command("script");
        let before = if recorded {
            format!("{} record --", place.path("../bin/backstory"))
        } else {
            String::new()
        };
        let mut script = command
            .args(["-qfec", "bash --norc --noprofile -i", "/dev/null"])
            .current_dir(place.work())
            .env("BACKSTORY_STORE", place.stage.store())
            .envs([("R", before.as_str()), ("PS1", "% "), ("TERM", "dumb")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (keyboard, mut shown) = (script.stdin.take().unwrap(), script.stdout.take().unwrap());
        let screen = Arc::new(Mutex::new(String::new()));
        let copy = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(n @ 1..) = shown.read(&mut bytes) {
                copy.lock()
                    .unwrap()
                    .push_str(&String::from_utf8_lossy(&bytes[..n]));
            }
        });
        let mut terminal = Terminal {
            place,
            script,
            keyboard,
            screen,
            seen: 0,
            what: if recorded { "recorded" } else { "alone" },
        };
        terminal.shows("% ");
        terminal
    }

    fn type_in(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until this text is shown, after all texts waited for before.
    #[track_caller]
    fn shows(&mut self, words: &str) -> String {
        let until = Instant::now() + LONG;
        loop {
            let screen = self.screen.lock().unwrap().clone();
            if let Some(at) = screen[self.seen..].find(words) {
                let shown = screen[self.seen..self.seen + at].to_owned();
                self.seen += at + words.len();
                return shown;
            }
            assert!(
                Instant::now() < until,
                "{}: no {words:?} in\n{screen}",
                self.what
            );
            std::thread::yield_now();
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.script.kill();
        let _ = self.script.wait();
    }
}

/// Plays the scene alone and recorded.
fn both(scene: impl Fn(&mut Terminal)) {
    if !need::needs("a terminal", &["script", "bash"]) {
        return;
    }
    for recorded in [false, true] {
        scene(&mut Terminal::new(recorded));
    }
}

#[test]
fn an_interrupt_ends_the_command_and_the_loop_it_stands_in() {
    both(|terminal| {
        terminal.type_in("for i in 1 2 3; do $R sh -c 'echo turn-$0; exec sleep 100' $i; done\n");
        terminal.shows("turn-1");
        terminal.type_in("\x03");
        terminal.shows("% ");
        terminal.type_in("echo st-$?\n");
        let between = terminal.shows("st-130");
        assert!(!between.contains("turn-"), "{}: {between}", terminal.what);
    });
}

#[test]
fn a_command_that_handles_the_interrupt_decides_itself() {
    both(|terminal| {
        terminal.type_in(
            "$R sh -c 'trap \"exit 5\" INT; echo go\"\"es; while :; do sleep 0.01; done'; echo st-$?\n",
        );
        terminal.shows("goes");
        terminal.type_in("\x03");
        terminal.shows("st-5");
    });
}

#[test]
fn the_shell_reports_a_quit_command() {
    both(|terminal| {
        terminal.type_in("ulimit -c 0; $R sh -c 'echo go\"\"es; exec sleep 100'\n");
        terminal.shows("goes");
        terminal.type_in("\x1c");
        terminal.shows("Quit");
        terminal.type_in("echo st-$?\n");
        terminal.shows("st-131");
    });
}

#[test]
fn a_stopped_command_is_a_job_that_can_be_continued() {
    both(|terminal| {
        terminal.type_in("$R sh -c 'echo go\"\"es; read line; echo got-$line; exit 3'\n");
        terminal.shows("goes");
        terminal.type_in("\x1a");
        terminal.shows("Stopped");
        terminal.type_in("jobs\n");
        terminal.shows("Stopped");
        terminal.type_in("fg; echo st-$?\n");
        terminal.shows("sh -c");
        terminal.type_in("this\n");
        terminal.shows("got-this");
        terminal.shows("st-3");
    });
}

#[test]
fn a_command_in_the_background_stops_when_it_reads_from_the_terminal() {
    both(|terminal| {
        terminal.type_in("$R sh -c 'read line; echo got-$line' &\n");
        terminal.type_in("until jobs | grep Stopped; do :; done\n");
        terminal.shows("Stopped");
        terminal.type_in("fg; echo st-$?\n");
        terminal.type_in("this\n");
        terminal.shows("got-this");
        terminal.shows("st-0");
    });
}

#[test]
fn the_command_learns_of_the_windows_new_size() {
    both(|terminal| {
        terminal.type_in("tty; echo is-\"\"it\n");
        let tty = terminal.shows("is-it");
        let tty = tty
            .lines()
            .find(|l| l.starts_with("/dev/"))
            .unwrap()
            .to_owned();
        terminal.type_in(
            "$R bash -c 'trap \"stty size; exit 3\" WINCH; echo go\"\"es; while :; do sleep 0.01; done'; echo st-$?\n",
        );
        terminal.shows("goes");
        let mut resize = terminal.place.stage.command("stty");
        // Only one of them, which is one change. Two would be two changes, and the command may
        // learn of the first before the second.
        let done = resize.args(["-F", &tty, "rows", "33"]).status();
        assert!(done.unwrap().success());
        terminal.shows("33 ");
        terminal.shows("st-3");
    });
}

#[test]
fn answers_are_coloured_at_a_terminal_only() {
    if !need::needs("a terminal", &["script", "bash"]) {
        return;
    }
    let mut terminal = Terminal::new(true);
    terminal.type_in(
        "export TERM=xterm; echo 1 > a; $R cp a b; ${R% record --} of b; echo is-\"\"it\n",
    );
    assert!(terminal.shows("is-it").contains("\x1b["));
    terminal.type_in("NO_COLOR=1 ${R% record --} of b; echo is-\"\"it\n");
    assert!(!terminal.shows("is-it").contains("\x1b["));
}
