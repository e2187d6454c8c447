//! Completion and history of zsh and fish behave in a recorded shell as in a bare one.

use super::behaviour::same_screens;
use super::terminal::Terminal;

/// Types text without the Enter key, then presses keys, and waits until the line that is edited
/// shows `wanted`. Then it presses Enter.
fn edit(terminal: &Terminal, text: &str, keys: &[&str], wanted: &str) {
    if !text.is_empty() {
        terminal.keys(&["-l", text]);
        terminal.wait(&format!("the echo of {text:?}"), |screen| {
            last_line(screen).contains(text)
        });
    }
    if !keys.is_empty() {
        terminal.keys(keys);
    }
    terminal.wait(&format!("{wanted:?} after {keys:?}"), |screen| {
        last_line(screen).contains(wanted)
    });
    terminal.key("Enter");
}

fn last_line(screen: &str) -> &str {
    screen.lines().last().unwrap_or_default().trim_end()
}

/// Files with common and with unique beginnings.
fn files(terminal: &Terminal) {
    terminal.line("touch unique-name twin-one twin-two 'with blank'");
}

#[test]
fn completion_and_history_of_zsh_are_those_of_a_bare_shell() {
    let startup = "autoload -Uz compinit && compinit -D -u
_mine() { compadd alpha beta; }
compdef _mine mine
mine() { echo mine $@; }
HISTFILE=~/.zhistory HISTSIZE=100 SAVEHIST=100
setopt hist_ignore_space hist_ignore_all_dups inc_append_history
bindkey -e";
    same_screens("zsh", startup, |terminal| {
        files(terminal);
        edit(terminal, "echo uniq", &["Tab"], "echo unique-name");
        edit(terminal, "echo with", &["Tab"], "echo with\\ blank");
        edit(terminal, "mine al", &["Tab"], "mine alpha");
        edit(terminal, "ls --auth", &["Tab"], "ls --author");
        // The first key completes what both have in common, the second lists them.
        edit(terminal, "echo tw", &["Tab"], "echo twin-");
        terminal.line("echo first");
        terminal.line(" echo hidden");
        terminal.line("echo second");
        terminal.line("echo first");
        edit(terminal, "", &["Up", "Up"], "echo second");
        edit(
            terminal,
            "",
            &["C-r", "u", "n", "i", "q"],
            "bck-i-search: uniq",
        );
        terminal.line("!!");
        terminal.line("echo !$");
        terminal.line("fc -l 1");
        terminal.line("fc -e - first=third");
        terminal.line("cat ~/.zhistory");
    });
}

#[test]
fn completion_and_history_of_fish_are_those_of_a_bare_shell() {
    let startup = "function mine; echo mine $argv; end
complete -c mine -f -a 'alpha beta'";
    same_screens("fish", startup, |terminal| {
        files(terminal);
        edit(terminal, "echo uniq", &["Tab"], "echo unique-name");
        edit(terminal, "echo with", &["Tab"], "echo with\\ blank");
        edit(terminal, "mine al", &["Tab"], "mine alpha");
        terminal.line("echo first");
        terminal.line(" echo hidden");
        terminal.line("echo second");
        edit(terminal, "", &["Up", "Up"], "echo first");
        // Up looks for lines that contain the text.
        edit(terminal, "uniq", &["Up"], "echo unique-name");
        terminal.line("history search --max 7 | cat");
        terminal.line("history delete --exact --case-sensitive 'echo first'");
        terminal.line("history search --contains first | cat");
        // The suggestion is the newest line that begins so.
        terminal.line("set -g fish_autosuggestion_enabled 1");
        terminal.keys(&["-l", "echo sec"]);
        terminal.wait("the suggestion", |screen| {
            last_line(screen).ends_with("echo second")
        });
        terminal.keys(&["C-e"]);
        terminal.key("Enter");
        terminal.line("set -g fish_autosuggestion_enabled 0");
    });
}
