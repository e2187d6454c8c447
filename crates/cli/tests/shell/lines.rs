//! Each command line is a run.

use super::RecordedShell;
use backstory_testkit::need::needs;

/// Types the same lines into a shell, and checks its runs.
fn each_line_is_a_run(shell: &str) {
    if !needs("the lines of a shell", &["tmux", shell]) {
        return;
    }
    let recorded = RecordedShell::start(shell);
    let terminal = &recorded.terminal;
    terminal.line("cat input.txt > a.txt");
    terminal.line("cat a.txt | tr a-z A-Z > b.txt");
    terminal.line(" echo secret > private.txt");
    terminal.line("false");
    terminal.line("sh -c 'sleep 0.5; cat b.txt > c.txt' &");
    terminal.line("mkdir -p d && cd d");
    terminal.line("echo 2 > ../e.txt");
    terminal.line("wait");
    terminal.leave();
    let lines = recorded.lines();
    let expected = [
        ("cat input.txt > a.txt", 0),
        ("cat a.txt | tr a-z A-Z > b.txt", 0),
        ("false", 1),
        ("sh -c 'sleep 0.5; cat b.txt > c.txt' &", 0),
        ("mkdir -p d && cd d", 0),
        ("echo 2 > ../e.txt", 0),
        ("wait", 0),
    ];
    let expected = expected.map(|(text, exit)| (text.to_owned(), exit));
    assert_eq!(lines[..expected.len()], expected, "{}", terminal.screen());
    for (file, line) in [
        ("a.txt", "cat input.txt > a.txt"),
        ("b.txt", "cat a.txt | tr a-z A-Z > b.txt"),
        ("c.txt", "cat b.txt > c.txt"),
        ("e.txt", "echo 2 > ../e.txt"),
    ] {
        let origin = recorded.ask(&["of", file]);
        assert!(origin.contains(line), "{file}: {origin}");
    }
    let origin = recorded.ask(&["of", "c.txt"]);
    assert!(origin.contains("tr a-z A-Z"), "the line before: {origin}");
    assert!(!recorded.ask(&["log", "--json"]).contains("secret"));
}

#[test]
fn each_line_of_bash_is_a_run() {
    each_line_is_a_run("bash");
}

#[test]
fn each_line_of_zsh_is_a_run() {
    each_line_is_a_run("zsh");
}

#[test]
fn each_line_of_fish_is_a_run() {
    each_line_is_a_run("fish");
}

#[test]
fn a_line_of_bash_has_any_form() {
    if !needs("the forms of a line", &["tmux", "bash"]) {
        return;
    }
    let recorded = RecordedShell::start("bash");
    let terminal = &recorded.terminal;
    let forms = [
        "(cd / && ls > /dev/null)",
        "f() { cat \"$1\"; }",
        "echo 1 > a; f a > b",
        "for i in 1 2; do echo $i; done > c",
        "set -x",
        "true",
        "set +x",
        "true",
        "true",
        "HISTCONTROL=ignoreboth",
        "true",
        "cat <(echo sub) > d",
    ];
    for form in forms {
        terminal.line(form);
    }
    terminal.line(" : not recorded");
    terminal.leave();
    let lines = recorded.lines();
    let texts: Vec<&str> = lines.iter().map(|line| line.0.as_str()).collect();
    assert_eq!(texts[..forms.len()], forms, "{}", terminal.screen());
    assert_eq!(
        texts.len(),
        forms.len() + 1,
        "and the one that leaves: {texts:?}"
    );
    for file in ["b", "d"] {
        let origin = recorded.ask(&["of", file]);
        assert!(origin.contains("complete"), "{origin}");
    }
}
