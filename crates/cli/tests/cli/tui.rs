//! The views at the terminal: their content over recorded runs, and the real terminal.

use std::time::{Duration, Instant};

use backstory_query::Direction;
use backstory_store::{Home, SqliteStore};
use backstory_testkit::need::needs;
use backstory_testkit::procs::eventually;
use backstory_tui::{Browser, Destination, Reaction, ViewedStore, draw};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::byte_marks::refined_place;
use super::{Answer, Place};

/// A place whose store has a run of two steps, and a failed run.
fn recorded() -> Place {
    let place = Place::new();
    place.write_aged("in", "b\na\n");
    place.write_aged("make.sh", "sort in >middle\ntr a-z A-Z <middle >out\n");
    let args = ["record", "--name", "steps", "--", "sh", "make.sh"];
    assert_eq!(place.run(&args).status, 0);
    assert_eq!(place.run(&["record", "--", "sh", "-c", "exit 7"]).status, 7);
    assert_eq!(place.run(&["index", "--wait"]).status, 0);
    place
}

fn open(place: &Place) -> SqliteStore {
    SqliteStore::open(&Home::open_to_read(&place.stage.store()).unwrap()).unwrap()
}

fn browser<'s>(place: &Place, store: &'s SqliteStore, first: Destination) -> Browser<'s> {
    let bytes = place.stage.store().join("bytes");
    Browser::new(ViewedStore { store, bytes }, first).unwrap()
}

/// The lines of a screen of this size.
fn screen(browser: &mut Browser<'_>, columns: u16, rows: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal.draw(|frame| draw(frame, browser)).unwrap();
    let buffer = terminal.backend().buffer().clone();
    let cells = buffer.content().chunks(usize::from(columns));
    cells
        .map(|line| line.iter().map(|cell| cell.symbol()).collect::<String>())
        .map(|line| line.trim_end().to_owned())
        .collect()
}

fn press(browser: &mut Browser<'_>, code: KeyCode) {
    let reaction = browser.key(KeyEvent::new(code, KeyModifiers::NONE));
    assert_eq!(reaction, Reaction::Draw);
}

fn type_text(browser: &mut Browser<'_>, text: &str) {
    text.chars().for_each(|c| press(browser, KeyCode::Char(c)));
}

/// The only line with all of these texts.
fn line_with<'s>(screen: &'s [String], texts: &[&str]) -> &'s str {
    let mut found = screen
        .iter()
        .filter(|line| texts.iter().all(|text| line.contains(text)));
    match (found.next(), found.next()) {
        (Some(line), None) => line,
        _ => panic!("{texts:?} in\n{}", screen.join("\n")),
    }
}

#[test]
fn the_view_of_runs_shows_what_log_prints() {
    let place = recorded();
    let store = open(&place);
    let mut browser = browser(&place, &store, Destination::Runs);
    let screen = screen(&mut browser, 100, 20);
    assert!(screen[0].starts_with("2 runs"), "{screen:?}");
    for run in place.json(&["log", "--json"]).as_array().unwrap() {
        let ended = match run["exit"].as_i64().unwrap() {
            0 => "ok".to_owned(),
            status => format!("exit {status}"),
        };
        line_with(&screen, &[run["run"].as_str().unwrap(), &ended]);
    }
    line_with(&screen, &["steps", "sh make.sh"]);
}

#[test]
fn a_reader_goes_from_a_run_to_a_file_to_its_lineage_and_back() {
    let place = recorded();
    let store = open(&place);
    let mut browser = browser(&place, &store, Destination::Runs);
    press(&mut browser, KeyCode::Down);
    press(&mut browser, KeyCode::Enter);
    let run = screen(&mut browser, 120, 30);
    assert!(run[0].contains("(steps)"), "{run:?}");
    line_with(&run, &["write", &place.path("out")]);
    press(&mut browser, KeyCode::Tab);
    line_with(&screen(&mut browser, 120, 30), &["tr a-z A-Z"]);
    press(&mut browser, KeyCode::Tab);
    // Only the row of the file is left.
    press(&mut browser, KeyCode::Char('/'));
    type_text(&mut browser, "work/out");
    press(&mut browser, KeyCode::Enter);
    press(&mut browser, KeyCode::Enter);
    let file = screen(&mut browser, 120, 30);
    assert!(file[0].starts_with(&place.path("out")), "{file:?}");
    let run = place.json(&["show", "--json", "steps"]);
    line_with(&file, &["made", run["run"].as_str().unwrap(), "sh make.sh"]);
    press(&mut browser, KeyCode::Tab);
    let lineage = screen(&mut browser, 120, 30);
    let commands = place.json(&["of", "--json", "--level", "step", &place.path("out")]);
    for step in commands["steps"].as_array().unwrap() {
        line_with(&lineage, &["step", step["command"].as_str().unwrap()]);
    }
    line_with(&lineage, &["used", &place.path("in")]);
    // The lineage took the place of the file's view.
    press(&mut browser, KeyCode::Left);
    assert!(screen(&mut browser, 120, 30)[0].contains("(steps)"));
    press(&mut browser, KeyCode::Esc);
    press(&mut browser, KeyCode::Backspace);
    assert!(screen(&mut browser, 120, 30)[0].starts_with("2 runs"));
}

#[test]
fn a_lineage_marks_files_without_a_byte_of_each_other() {
    let Some(place) = refined_place() else {
        return;
    };
    let store = open(&place);
    let lineage = |name: &str, direction| {
        let first = Destination::Lineage(place.work().join(name), direction);
        screen(&mut browser(&place, &store, first), 120, 30)
    };
    let behind = lineage("oa", Direction::Back);
    line_with(&behind, &["used, no byte", &place.path("ib")]);
    line_with(&behind, &["no byte"]);
    line_with(
        &lineage("ib", Direction::Forth),
        &["made, no byte", &place.path("oa")],
    );
    for (name, direction) in [("ia", Direction::Forth), ("mid", Direction::Back)] {
        let other = lineage(name, direction).join("\n");
        assert!(!other.contains("no byte"), "{other}");
    }
}

#[test]
fn a_search_shows_only_the_rows_with_the_text() {
    let place = recorded();
    let store = open(&place);
    let mut browser = browser(&place, &store, Destination::Runs);
    press(&mut browser, KeyCode::Char('/'));
    type_text(&mut browser, "MAKE");
    let found = screen(&mut browser, 100, 20);
    line_with(&found, &["sh make.sh"]);
    assert!(!found.join("\n").contains("exit 7"), "{found:?}");
    line_with(&found, &["/make", "1 of 2"]);
    press(&mut browser, KeyCode::Esc);
    line_with(&screen(&mut browser, 100, 20), &["exit 7", "sh -c"]);
}

#[test]
fn a_file_that_no_run_knows_is_named_in_a_message() {
    let place = recorded();
    let store = open(&place);
    let mut browser = browser(&place, &store, Destination::Runs);
    press(&mut browser, KeyCode::Char('o'));
    type_text(&mut browser, "/no/such/file");
    press(&mut browser, KeyCode::Enter);
    let screen = screen(&mut browser, 100, 20);
    line_with(&screen, &["/no/such/file"]);
    assert!(screen[0].starts_with("2 runs"), "{screen:?}");
}

#[test]
fn no_name_of_a_file_reaches_the_terminal_as_a_control_character() {
    let place = Place::new();
    place.record("printf x >\"$(printf 'red\\033[31m\\nline\\342\\200\\256')\"");
    assert_eq!(place.run(&["index", "--wait"]).status, 0);
    let store = open(&place);
    let run = place.json(&["log", "--json"])[0]["run"]
        .as_str()
        .unwrap()
        .to_owned();
    for first in [
        Destination::RunFiles(run.clone()),
        Destination::RunProcesses(run),
    ] {
        let mut browser = browser(&place, &store, first);
        let screen = screen(&mut browser, 150, 30).join("");
        assert!(screen.contains("red\\033"), "{screen}");
        let unsafe_character = |c: char| c.is_control() || c == '\u{202e}';
        assert!(!screen.chars().any(unsafe_character), "{screen:?}");
    }
}

#[test]
fn every_view_fits_a_window_of_every_size() {
    let place = recorded();
    let store = open(&place);
    let run = place.json(&["log", "--json"])[1]["run"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = place.work().join("out");
    for first in [
        Destination::Runs,
        Destination::RunFiles(run.clone()),
        Destination::RunProcesses(run),
        Destination::File(path.clone()),
        Destination::Lineage(path, Direction::Back),
    ] {
        let mut browser = browser(&place, &store, first);
        for (columns, rows) in [(1, 1), (2, 3), (10, 4), (300, 2), (3, 100)] {
            let screen = screen(&mut browser, columns, rows);
            assert_eq!(screen.len(), usize::from(rows));
            press(&mut browser, KeyCode::PageDown);
            press(&mut browser, KeyCode::Char('?'));
        }
    }
}

/// A terminal that tmux emulates, with a shell.
struct Window {
    place: Place,
}

impl Window {
    fn new(place: Place) -> Window {
        let window = Window { place };
        let stage = window.place.stage.path().to_owned();
        let shell = format!(
            "env PS1='ready> ' BACKSTORY_STORE={} PATH={}/bin:/usr/bin:/bin sh",
            window.place.stage.store().display(),
            stage.display()
        );
        window.tmux(&[
            "new-session",
            "-d",
            "-s",
            "one",
            "-x",
            "90",
            "-y",
            "20",
            &shell,
        ]);
        window.shows("ready>");
        window
    }

    fn tmux(&self, args: &[&str]) -> Answer {
        let mut command = self.place.stage.command("tmux");
        // The server has a socket of its own, and reads no configuration.
        command.arg("-S").arg(self.place.work().join("..socket"));
        command
            .args(["-f", "/dev/null"])
            .args(args)
            .env("TERM", "xterm");
        Answer::of(command.current_dir(self.place.work()).output().unwrap())
    }

    fn keys(&self, keys: &[&str]) {
        let mut args = vec!["send-keys", "-t", "one"];
        args.extend(keys);
        let answer = self.tmux(&args);
        assert_eq!(answer.status, 0, "{answer:?}");
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-t", "one"]).out
    }

    /// Waits until the screen has a text, and returns the screen.
    fn shows(&self, text: &str) -> String {
        let begun = Instant::now();
        loop {
            let screen = self.screen();
            if screen.contains(text) {
                return screen;
            }
            assert!(
                begun.elapsed() < Duration::from_secs(120),
                "no {text:?} in\n{screen}"
            );
            std::thread::yield_now();
        }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

/// The settings of the terminal, from its line discipline to its modes.
fn settings(window: &Window, name: &str) -> String {
    window.keys(&[&format!("stty -g >{name}; echo done-{name}"), "Enter"]);
    // A key before the prompt would stand before it, too.
    window.shows(&format!("\ndone-{name}\nready>"));
    std::fs::read_to_string(window.place.work().join(name)).unwrap()
}

#[test]
fn the_terminal_is_as_before_after_the_views_have_ended() {
    if !needs("the views at a real terminal", &["tmux"]) {
        return;
    }
    let window = Window::new(recorded());
    let before = settings(&window, "before");
    window.keys(&["backstory tui; echo ended-$?", "Enter"]);
    window.shows("2 runs");
    // The window becomes narrower and less high, and the keys are drawn at its end.
    window.tmux(&["resize-window", "-t", "one", "-x", "60", "-y", "12"]);
    window.keys(&["?"]);
    window.shows("show the next view");
    window.keys(&["x", "Down", "Enter"]);
    window.shows("own files");
    window.keys(&["q"]);
    let after = window.shows("\nended-0\nready>");
    // The screen is as before.
    assert!(
        after.contains("done-before") && !after.contains("own files"),
        "{after}"
    );
    assert_eq!(settings(&window, "after"), before);
    window.keys(&[
        "sh -c 'echo $$ >pid; exec backstory tui'; echo ended-$?",
        "Enter",
    ]);
    window.shows("2 runs");
    let pid = std::fs::read_to_string(window.place.work().join("pid")).unwrap();
    backstory_sys::kill(pid.trim().parse().unwrap(), 15).unwrap();
    window.shows("\nended-143\nready>");
    assert_eq!(settings(&window, "killed"), before);
}

/// The program is held in its handler of the new size until the key was pressed. Both then wait for
/// it at once.
#[test]
fn a_key_pressed_while_the_size_of_the_window_changes_is_not_lost() {
    if !needs("a key during a change of the size", &["tmux", "strace"]) {
        return;
    }
    let window = Window::new(recorded());
    let trace = "-D -qq -f -o trace -e trace=sendto --inject=sendto:delay_exit=2s";
    window.keys(&[&format!("strace {trace} backstory tui"), "Enter"]);
    window.shows("q quit");
    window.tmux(&["resize-window", "-t", "one", "-x", "60", "-y", "12"]);
    let trace = window.place.work().join("trace");
    let is_held = || std::fs::read_to_string(&trace).is_ok_and(|text| text.contains("SIGWINCH"));
    assert!(eventually(Duration::from_secs(120), is_held));
    window.keys(&["?"]);
    window.shows("show the next view");
}

#[test]
fn the_views_stop_and_continue_as_other_programs_do() {
    if !needs("the views at a real terminal", &["tmux"]) {
        return;
    }
    let window = Window::new(recorded());
    window.keys(&["backstory tui", "Enter"]);
    window.shows("2 runs");
    window.keys(&["C-z"]);
    window.shows("Stopped");
    window.keys(&["fg", "Enter"]);
    let screen = window.shows("2 runs");
    assert!(
        screen.contains("q quit") && !screen.contains("Stopped"),
        "{screen}"
    );
    window.keys(&["C-c"]);
    window.shows("Stopped");
}

#[test]
fn what_takes_long_is_shown_on_a_terminal_and_removed_when_it_is_done() {
    if !needs("progress at a real terminal", &["tmux"]) {
        return;
    }
    let window = Window::new(recorded());
    let log = window.place.record("cat in >other");
    assert!(!log.is_empty());
    window.place.quiet();
    // Another process has the lock, and something is to be indexed.
    let store = window.place.stage.store();
    let database = store.join("graph.db");
    std::fs::remove_file(&database).unwrap();
    let lock = std::fs::File::open(store.join("index.lock")).unwrap();
    lock.lock().unwrap();
    window.keys(&["backstory index --wait; echo ended-$?", "Enter"]);
    window.shows("waiting for another backstory process");
    drop(lock);
    let screen = window.shows("\nended-0\nready>");
    assert!(!screen.contains("waiting for another"), "{screen}");
}

#[test]
fn the_views_need_a_terminal() {
    let place = recorded();
    let answer = place.run(&["tui"]);
    assert_eq!((answer.status, answer.out.as_str()), (2, ""));
    assert!(answer.err.contains("needs a terminal"), "{answer:?}");
}
