//! Lines that the user excludes are nowhere in the store.

use super::RecordedShell;
use backstory_testkit::need::needs;
use std::path::Path;

/// True if a file of the store contains the bytes.
fn contains(directory: &Path, wanted: &[u8]) -> bool {
    std::fs::read_dir(directory)
        .unwrap()
        .flatten()
        .any(|entry| {
            let path = entry.path();
            match path.is_dir() {
                true => contains(&path, wanted),
                false => {
                    // A file may be removed meanwhile.
                    let bytes = std::fs::read(&path).unwrap_or_default();
                    bytes.windows(wanted.len()).any(|window| window == wanted)
                }
            }
        })
}

#[test]
fn no_line_is_recorded_if_a_mistake_hides_which_lines_are_private() {
    if !needs("a configuration with a mistake", &["tmux", "bash"]) {
        return;
    }
    let config = "[shell]\nprivate = [\"printf *\"\n";
    let recorded = RecordedShell::configured("bash", config);
    let terminal = &recorded.terminal;
    let program = recorded.stage.path().join("bin/backstory");
    terminal.line("printf by-command > 1");
    terminal.line(&format!("{} resume", program.display()));
    terminal.line("echo recorded > 2");
    terminal.leave();
    let lines: Vec<String> = recorded.lines().into_iter().map(|line| line.0).collect();
    assert_eq!(
        lines,
        ["echo recorded > 2", "exit"],
        "{}",
        terminal.screen()
    );
    recorded.at_rest();
    assert!(!contains(&recorded.stage.store(), b"by-command"));
}

#[test]
fn private_and_paused_lines_leave_nothing_and_noise_leaves_its_line() {
    for shell in ["bash", "zsh", "fish"] {
        if !needs("the policy of a shell", &["tmux", shell]) {
            continue;
        }
        let config =
            "[shell]\nprivate = [\"~/hidden\", \"printf *\"]\nnoise = [\"ls\", \"wc -l\"]\n";
        let recorded = RecordedShell::configured(shell, config);
        let terminal = &recorded.terminal;
        let program = recorded.stage.path().join("bin/backstory");
        let texts = [
            " echo by-space > 1",
            "printf by-command > 2",
            "mkdir -p ~/hidden",
            "cd ~/hidden",
            "echo by-directory > 3",
            "cd ../../work",
            "ls",
            "ls > listing",
            "cat input.txt | wc -l",
        ];
        for text in texts {
            terminal.line(text);
        }
        terminal.line(&format!("{} pause", program.display()));
        terminal.line("echo by-pause > 4");
        terminal.line(&format!("{} resume", program.display()));
        terminal.line("echo recorded > 5");
        terminal.leave();
        let lines: Vec<String> = recorded.lines().into_iter().map(|line| line.0).collect();
        let expected = [
            "ls".to_owned(),
            "ls > listing".to_owned(),
            "cat input.txt | wc -l".to_owned(),
            format!("{} pause", program.display()),
            "echo recorded > 5".to_owned(),
            "exit".to_owned(),
        ];
        assert_eq!(lines, expected, "{shell}: {}", terminal.screen());
        assert!(recorded.ask(&["of", "listing"]).contains("ls > listing"));
        let store = recorded.stage.store();
        recorded.at_rest();
        for secret in ["by-space", "by-command", "by-directory", "by-pause"] {
            assert!(!contains(&store, secret.as_bytes()), "{shell}: {secret}");
        }
        let runs = recorded.ask(&["log", "--json"]);
        let only_line = "the policy of the shell keeps only the line";
        assert_eq!(runs.matches(only_line).count(), 1, "{shell}: {runs}");
        assert!(!recorded.ask(&["log"]).contains("(incomplete"));
    }
}
