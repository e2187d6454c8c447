//! A shell ends in any way: the lines that were recorded stay, and are finalized.

use super::RecordedShell;
use backstory_testkit::need::needs;
use std::time::{Duration, Instant};

/// Waits until no run of the store is being recorded, and returns the lines.
fn lines_at_the_end(recorded: &RecordedShell) -> Vec<(String, i64)> {
    let until = Instant::now() + Duration::from_secs(120);
    while recorded.ask(&["log", "--running", "--json"]).trim() != "[]" {
        assert!(Instant::now() < until, "{}", recorded.ask(&["log"]));
        std::thread::sleep(Duration::from_millis(50));
    }
    recorded.lines()
}

#[test]
fn a_killed_shell_leaves_its_lines() {
    if !needs("a killed shell", &["tmux", "bash"]) {
        return;
    }
    for shell in ["bash", "zsh", "fish"] {
        if !needs("a killed shell", &[shell]) {
            continue;
        }
        let recorded = RecordedShell::start(shell);
        let terminal = &recorded.terminal;
        terminal.line("cat input.txt > a.txt");
        let own = if shell == "fish" { "$fish_pid" } else { "$$" };
        terminal.enter(&format!("kill -KILL {own}"));
        terminal.wait("the end", |screen| screen.contains("ENDED 137"));
        let lines = lines_at_the_end(&recorded);
        assert_eq!(lines[0], ("cat input.txt > a.txt".to_owned(), 0));
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert_eq!(lines[1].1, 137, "{lines:?}");
        let origin = recorded.ask(&["of", "a.txt"]);
        assert!(origin.contains("complete"), "{origin}");
    }
}

#[test]
fn a_closed_terminal_ends_its_lines() {
    if !needs("a closed terminal", &["tmux", "bash"]) {
        return;
    }
    let recorded = RecordedShell::start("bash");
    let terminal = &recorded.terminal;
    terminal.line("cat input.txt > a.txt");
    terminal.run("sleep 1000 > b.txt", "sleep");
    terminal.close();
    let lines = lines_at_the_end(&recorded);
    assert_eq!(lines[0], ("cat input.txt > a.txt".to_owned(), 0));
    assert_eq!(lines.len(), 2, "{lines:?}");
    let origin = recorded.ask(&["of", "b.txt"]);
    assert!(origin.contains("sleep 1000"), "{origin}");
}

#[test]
fn a_shell_goes_on_without_its_supervisor() {
    if !needs("a shell without its supervisor", &["tmux", "bash"]) {
        return;
    }
    let recorded = RecordedShell::start("bash");
    let terminal = &recorded.terminal;
    terminal.line("cat input.txt > a.txt");
    // The shell is a child of the supervisor.
    terminal.line("kill -KILL $PPID");
    terminal.line("cat a.txt > b.txt; echo $?");
    terminal.line("cat b.txt");
    terminal.wait("the last line", |screen| screen.contains("hello"));
    terminal.leave();
    assert!(terminal.screen().contains("ENDED 0"));
    let lines = lines_at_the_end(&recorded);
    assert_eq!(lines[0], ("cat input.txt > a.txt".to_owned(), 0));
    let runs = recorded.ask(&["log", "--json"]);
    assert!(runs.contains("the supervisor died"), "{runs}");
    let origin = recorded.ask(&["of", "b.txt"]);
    assert!(origin.contains("cat a.txt"), "{origin}");
}

#[test]
fn a_background_job_outlives_its_line_and_the_shell() {
    if !needs("a job that outlives its shell", &["tmux", "bash"]) {
        return;
    }
    let recorded = RecordedShell::start("bash");
    let terminal = &recorded.terminal;
    let job =
        "(trap '' HUP; until test -e go; do sleep 0.05; done; cat input.txt > late.txt) & disown";
    terminal.line(job);
    terminal.line("cat input.txt > early.txt");
    assert!(recorded.ask(&["of", "early.txt"]).contains("early.txt"));
    terminal.leave();
    std::fs::write(recorded.directory.join("go"), "").unwrap();
    let lines = lines_at_the_end(&recorded);
    assert_eq!(lines[0], (job.to_owned(), 0));
    let origin = recorded.ask(&["of", "late.txt"]);
    assert!(origin.contains("cat input.txt > late.txt"), "{origin}");
}
