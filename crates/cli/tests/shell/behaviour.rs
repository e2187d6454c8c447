//! A recorded shell behaves as a bare one: the same keys give the same screen.

use super::terminal::Terminal;
use backstory_testkit::need::needs;
use backstory_testkit::stage::Stage;
use std::path::Path;

/// Presses the same keys in a bare and in a recorded shell, and compares the screens. `startup` is
/// in the user's start-up files.
pub(super) fn same_screens(shell: &str, startup: &str, keys: impl Fn(&Terminal)) {
    same_screens_with(shell, startup, |_| true, keys);
}

/// The same in directories that `prepare` has filled. It returns false if it cannot.
pub(super) fn same_screens_with(
    shell: &str,
    startup: &str,
    prepare: impl Fn(&Path) -> bool,
    keys: impl Fn(&Terminal),
) {
    if !needs("a shell that behaves as a bare one", &["tmux", shell]) {
        return;
    }
    let screens = [false, true].map(|recorded| {
        let stage = Stage::new(env!("CARGO_BIN_EXE_backstory")).unwrap();
        let directory = stage.directory("work").unwrap();
        std::fs::write(directory.join("input.txt"), "hello\n").unwrap();
        if !prepare(&directory) {
            return String::new();
        }
        let line = match recorded {
            true => format!("{}/bin/backstory shell -- {shell}", stage.path().display()),
            false => shell.to_owned(),
        };
        let name = if recorded { "recorded" } else { "bare" };
        let terminal = Terminal::start(&stage, name, &directory, &line, startup);
        terminal.ready();
        keys(&terminal);
        terminal.leave();
        let screen = terminal.screen();
        let lines: Vec<String> = screen.lines().map(without_process).collect();
        without_numbers(&lines.join("\n"))
    });
    assert!(screens[1] == screens[0], "{}", first_difference(&screens));
}

/// The bare and the recorded screen from two lines above the first line that differs.
fn first_difference([bare, recorded]: &[String; 2]) -> String {
    let same = bare.lines().zip(recorded.lines());
    let from = same.take_while(|(a, b)| a == b).count().saturating_sub(2);
    let part = |screen: &str| {
        let lines: Vec<&str> = screen.lines().skip(from).take(8).collect();
        lines.join("\n")
    };
    let (bare, recorded) = (part(bare), part(recorded));
    format!("from line {from} on, the bare shell shows:\n{bare}\n\nthe recorded:\n{recorded}")
}

/// A line of a new job, `[1] 234`, without the process id. A line of the table of fish's jobs loses
/// it and its share of the processor.
fn without_process(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        [job, id] if job.starts_with('[') && id.parse::<u32>().is_ok() => format!("{job} NNNN"),
        [job, _, share, ..] if share.ends_with('%') => [job, &words[3..].join(" ")].join(" "),
        _ => line.to_owned(),
    }
}

/// The screen with the same digits in each process id.
fn without_numbers(screen: &str) -> String {
    let mut out = String::new();
    let mut digits = String::new();
    for c in screen.chars().chain(['\n']) {
        if c.is_ascii_digit() {
            digits.push(c);
            continue;
        }
        out.push_str(if digits.len() > 3 { "NNNN" } else { &digits });
        digits.clear();
        out.push(c);
    }
    out
}

/// Statuses, pipes, and what a shell keeps from line to line.
fn usual_keys(terminal: &Terminal) {
    terminal.line("echo one | cat");
    terminal.line("false");
    terminal.line("echo 1 $status");
    terminal.line("cd /usr/bin");
    terminal.line("alias greet='echo hi'");
    terminal.line("greet");
    terminal.run("cat", "cat");
    terminal.enter("typed");
    terminal.wait("the echo of cat", |screen| {
        screen.matches("typed").count() == 2
    });
    terminal.key("C-d");
    terminal.line("");
    terminal.line("sh -c 'kill -TERM $$'");
    terminal.line("no-such-program");
    terminal.line("sh -c 'exit 7'");
    terminal.line("echo done");
}

/// Programs are interrupted, stopped and continued.
fn job_control(terminal: &Terminal) {
    terminal.run("sleep 1000", "sleep");
    terminal.key("C-c");
    terminal.run("sleep 1001", "sleep");
    terminal.key("C-z");
    terminal.line("jobs");
    terminal.run("fg", "sleep");
    terminal.key("C-z");
    terminal.background();
    terminal.line("jobs");
    terminal.run("fg", "sleep");
    terminal.key("C-c");
    terminal.run("sleep 1002 | cat", "sleep");
    terminal.key("C-z");
    terminal.run("fg", "sleep");
    terminal.key("C-c");
    terminal.line("jobs");
}

/// Lines of several lines, in the syntax of bash and zsh.
fn long_lines(terminal: &Terminal) {
    terminal.keys(&["-l", "abandoned"]);
    terminal.wait("the echo", |screen| screen.ends_with("abandoned"));
    terminal.key("C-c");
    terminal.first("for i in 1 2; do");
    terminal.first("echo $i");
    terminal.line("done");
    terminal.first("cat <<X");
    terminal.first("a heredoc");
    terminal.line("X");
    terminal.first("greeting() {");
    terminal.first("echo hello");
    terminal.line("}");
    terminal.line("greeting");
}

#[test]
fn bash_shows_the_same_screen() {
    same_screens("bash", "", |terminal| {
        usual_keys(terminal);
        terminal.line("false | true; echo ${PIPESTATUS[@]}");
        terminal.line("echo $? ${PIPESTATUS[0]} $_ $- $SHLVL $0");
        long_lines(terminal);
        job_control(terminal);
        terminal.line("echo $?");
        terminal.line("HISTCONTROL=ignoreboth");
        terminal.line(" true");
        terminal.line("true");
        terminal.line("true");
        terminal.line("HISTCONTROL=erasedups");
        terminal.line("false");
        terminal.line("true");
        terminal.line("echo $HISTCONTROL");
        terminal.line("history");
        terminal.keys(&["Up", "Up", "Up"]);
        terminal.key("Enter");
        terminal.keys(&["-l", "ls /usr/bin/basena"]);
        terminal.keys(&["Tab"]);
        terminal.wait("the completion", |screen| screen.contains("basename"));
        terminal.key("Enter");
    });
}

#[test]
fn zsh_shows_the_same_screen() {
    same_screens("zsh", "", |terminal| {
        usual_keys(terminal);
        terminal.line("echo $? $_ $- $SHLVL $0 ${ZDOTDIR-unset}");
        terminal.line("false | true; echo $pipestatus");
        long_lines(terminal);
        job_control(terminal);
        terminal.line("echo $?");
        terminal.line("history");
    });
}

#[test]
fn fish_shows_the_same_screen() {
    same_screens("fish", "", |terminal| {
        usual_keys(terminal);
        terminal.line("false | true; echo $pipestatus $SHLVL");
        terminal.line("for i in 1 2; echo $i; end");
        job_control(terminal);
        terminal.line("echo $status");
    });
}

#[test]
fn the_users_own_hooks_of_bash_run_as_ever() {
    let startup = "count=0
PROMPT_COMMAND='echo prompt $? $((++count))'
PS0='executing
'
trap 'echo leaving $?' EXIT";
    same_screens("bash", startup, |terminal| {
        terminal.line("false");
        terminal.line("true");
        terminal.line("trap 'echo debug $BASH_COMMAND' DEBUG");
        terminal.line("echo 1");
        terminal.line("trap - DEBUG");
        terminal.line("trap -p");
        terminal.line("set -x");
        terminal.line("echo 2");
        terminal.line("set +x");
        terminal.line("set -u");
        terminal.line("echo 3");
    });
}

#[test]
fn the_users_own_hooks_of_zsh_run_as_ever() {
    let startup = "preexec() { echo executing $1; }
precmd() { echo prompt $?; }
zshexit() { echo leaving; }";
    same_screens("zsh", startup, |terminal| {
        terminal.line("false");
        terminal.line("true");
        terminal.line("setopt nounset err_return err_exit");
        terminal.line("true");
        terminal.line("echo 3");
    });
}

#[test]
fn the_users_own_hooks_of_fish_run_as_ever() {
    let startup = "function before --on-event fish_preexec; echo executing $argv; end
function after --on-event fish_postexec; echo executed $status; end";
    same_screens("fish", startup, |terminal| {
        terminal.line("false");
        terminal.line("true");
        terminal.line("false; true &");
    });
}
