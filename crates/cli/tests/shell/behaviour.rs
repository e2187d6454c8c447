//! A recorded shell behaves as a bare one: the same keys give the same screen.

use super::terminal::Terminal;
use backstory_testkit::need::needs;
use backstory_testkit::stage::Stage;

/// Presses the same keys in a bare and in a recorded shell, and compares the screens.
fn same_screens(shell: &str, keys: impl Fn(&Terminal)) {
    if !needs("a shell that behaves as a bare one", &["tmux", shell]) {
        return;
    }
    let screens = [false, true].map(|recorded| {
        let stage = Stage::new(env!("CARGO_BIN_EXE_backstory")).unwrap();
        let directory = stage.directory("work").unwrap();
        let line = match recorded {
            true => format!("{}/bin/backstory shell -- {shell}", stage.path().display()),
            false => shell.to_owned(),
        };
        let terminal = Terminal::start(&stage, "screen", &directory, &line);
        terminal.ready();
        keys(&terminal);
        terminal.leave();
        terminal.screen()
    });
    assert_eq!(screens[1], screens[0]);
}

/// Job control, statuses, and what a shell keeps from line to line.
fn usual_keys(terminal: &Terminal) {
    terminal.line("echo one | cat");
    terminal.line("false");
    terminal.line("cd /usr/bin");
    terminal.line("alias greet='echo hi'");
    terminal.line("greet");
    terminal.keys(&["-l", "cat"]);
    terminal.keys(&["Enter"]);
    terminal.keys(&["-l", "typed"]);
    terminal.keys(&["Enter"]);
    terminal.wait("the echo of cat", |screen| {
        screen.matches("typed").count() == 2
    });
    terminal.keys(&["C-d"]);
    terminal.line("");
    terminal.line("sh -c 'kill -TERM $$'");
    terminal.line("echo done");
}

#[test]
fn bash_shows_the_same_screen() {
    same_screens("bash", |terminal| {
        usual_keys(terminal);
        terminal.line("echo $? ${PIPESTATUS[0]} $_ $- $SHLVL");
        terminal.keys(&["-l", "sleep 1000"]);
        terminal.keys(&["Enter"]);
        terminal.wait("the job", |screen| screen.ends_with("sleep 1000"));
        std::thread::sleep(std::time::Duration::from_millis(300));
        terminal.keys(&["C-z"]);
        terminal.wait("the stop", |screen| screen.ends_with("READY>"));
        terminal.line("jobs");
        terminal.keys(&["-l", "fg"]);
        terminal.keys(&["Enter"]);
        std::thread::sleep(std::time::Duration::from_millis(300));
        terminal.keys(&["C-c"]);
        terminal.wait("the interrupt", |screen| screen.ends_with("READY>"));
        terminal.line("echo $?");
        terminal.line("history | tail -3");
    });
}
