//! Set-user-id programs in a recorded shell behave as in a bare one. The broker gives a privilege
//! only where the bare shell would have given it.

use super::RecordedShell;
use super::behaviour::same_screens_with;
use super::terminal::Terminal;
use backstory_testkit::need::{needs, skipped};
use backstory_testkit::program;
use rustix::process::geteuid;
use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Compiles the test program into a directory: `gain` with a set-user-id bit of root, `plain`
/// without, and a script with the bit. False if that is not possible here.
fn prepare(directory: &Path) -> bool {
    if !geteuid().is_root() {
        skipped(
            "set-user-id programs in a recorded shell",
            "needs root to make one",
        );
        return false;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../session/tests/programs/gain.c");
    let gain = directory.join("gain");
    let built = Command::new("cc")
        .args(["-D_GNU_SOURCE", "-O1", "-o"])
        .args([&gain, &source])
        .status();
    assert!(built.unwrap().success());
    program::copy(&gain, &directory.join("plain")).unwrap();
    program::write(
        &directory.join("script"),
        b"#!/bin/sh\nid -u >/dev/null && ./gain ids\n",
    )
    .unwrap();
    for name in ["gain", "script"] {
        set_permissions(directory.join(name), Permissions::from_mode(0o4755)).unwrap();
    }
    true
}

fn same(shell: &str, keys: impl Fn(&Terminal)) {
    if needs("set-user-id programs", &["cc"]) {
        same_screens_with(shell, "", prepare, keys);
    }
}

/// Privileges, statuses, pipes and redirections, in every shell.
fn programs(terminal: &Terminal) {
    terminal.line("./gain ids");
    terminal.line("$PWD/gain exit 0");
    terminal.line("sh -c './gain ids; exec ./gain ids'");
    terminal.line("env ./gain exit 7");
    terminal.line("echo text | ./gain copy | cat");
    terminal.line("./gain copy <input.txt >copied.txt; cat copied.txt");
    terminal.line("sh -c './gain exit 9; echo $?; ./gain signal 15; echo $?'");
    terminal.line("./gain signal 10");
    terminal.line("sh -c 'exec 5>five.txt; ./gain write 5'; cat five.txt");
    terminal.line("yes | ./gain copy | head -n 1");
    terminal.line("sh -c 'umask 27; nice -n 3 ./gain state'");
    terminal.line("env MINE=1 LD_PRELOAD= sh -c 'trap \"\" HUP; ulimit -n 100; ./gain state <&-'");
    let counts = "p=$!; until test -e ready; do sleep 0.1; done; kill -USR1 $p; kill -USR2 $p";
    terminal.line(&format!(
        "sh -c './gain count 2 & {counts}; wait'; rm -f ready"
    ));
}

/// The program as the terminal names it: by its first argument.
const NAME: &str = "./gain";

/// Keys that stop, continue and interrupt.
fn jobs(terminal: &Terminal) {
    terminal.run("./gain wait", NAME);
    terminal.key("C-c");
    terminal.run("./gain wait", NAME);
    terminal.key("C-z");
    terminal.line("jobs");
    terminal.run("fg", NAME);
    terminal.key("C-z");
    terminal.background();
    terminal.run("fg", NAME);
    terminal.key("C-\\");
    terminal.run("./gain copy", NAME);
    terminal.enter("typed");
    terminal.wait("the echo of gain", |screen| {
        screen.matches("typed").count() == 2
    });
    terminal.key("C-d");
    terminal.run("./gain wait | cat", NAME);
    terminal.key("C-z");
    terminal.run("fg", NAME);
    terminal.key("C-c");
    terminal.line("jobs");
}

/// Callers that are restricted, and get no privilege natively either.
fn refusals(terminal: &Terminal) {
    for how in ["nothing", "nnp", "filter"] {
        terminal.line(&format!("./plain restricted {how} ./gain ids"));
        let below = format!("./plain restricted {how} /bin/sh -c '(./gain ids); env ./gain ids'");
        terminal.line(&below);
    }
    terminal.line("./gain ids");
    terminal.line("./script");
}

#[test]
fn a_set_user_id_program_in_bash_shows_the_same_screen() {
    same("bash", |terminal| {
        programs(terminal);
        jobs(terminal);
        refusals(terminal);
        // Without its argument, `wait` names the job only if it finds it running.
        let ready = "until test -e ready; do sleep 0.1; done";
        terminal.line(&format!("./gain count 1 & {ready}; kill -USR1 %1; wait $!"));
        terminal.line("./gain exit 5 & wait $!; echo $?");
        terminal.line("./gain copy <(echo substituted) </dev/null; exec 7<input.txt");
        terminal.line("./gain state");
    });
}

#[test]
fn a_set_user_id_program_in_zsh_shows_the_same_screen() {
    same("zsh", |terminal| {
        programs(terminal);
        jobs(terminal);
        refusals(terminal);
    });
}

#[test]
fn a_set_user_id_program_in_fish_shows_the_same_screen() {
    same("fish", |terminal| {
        programs(terminal);
        jobs(terminal);
        refusals(terminal);
    });
}

/// `passwd` and `chage` read the shadow file; `su` asks at the terminal.
#[test]
fn programs_of_the_distribution_that_gain_a_privilege_show_the_same_screen() {
    let wanted = &["passwd", "chage", "su"];
    // No wrong password in the log of a user's own machine.
    if !geteuid().is_root() || !needs("programs that gain a privilege", wanted) {
        return;
    }
    same_screens_with(
        "bash",
        "",
        |_| true,
        |terminal| {
            terminal
                .line("passwd -S; echo $?; chage -l $(id -un) | tail -n 3; head -n 1 /etc/shadow");
            let asks = |times: usize| {
                terminal.wait("the question of su", |screen| {
                    screen.matches("Password:").count() == times && screen.ends_with("Password:")
                });
            };
            terminal.enter("su -c id; echo $?");
            asks(1);
            terminal.line("wrong");
            terminal.enter("su");
            asks(2);
            terminal.key("C-c");
        },
    );
}

#[test]
fn a_restricted_caller_gains_nothing() {
    if !needs(
        "refused callers",
        &["tmux", "cc", "setpriv", "unshare", "strace"],
    ) {
        return;
    }
    let shell = RecordedShell::start("bash");
    if !prepare(&shell.directory) {
        return;
    }
    let terminal = &shell.terminal;
    terminal.line("./gain ids");
    terminal.wait("the privilege", |screen| {
        screen.contains("root 1, caller is root 0")
    });
    for caller in [
        "setpriv --no-new-privs",
        "setpriv --no-new-privs sh -c '(./gain ids)' x",
        "./plain restricted undone",
        "./plain restricted filter",
        "./plain restricted landlock",
        "strace -f -o /dev/null",
        "strace -f -o /dev/null sh -c './gain ids' x",
        "prlimit --rttime=1000000",
    ] {
        terminal.line(&format!("{caller} ./gain ids"));
        let screen = terminal.screen();
        let last = &screen[screen.rfind(caller).unwrap_or(0)..];
        assert!(
            last.contains("root 0, caller is root 0"),
            "{caller}:\n{screen}"
        );
    }
    // Root of its own user namespace only.
    terminal
        .line("unshare -r cat /etc/shadow; unshare -r sh -c './gain copy </etc/shadow'; echo end");
    let screen = terminal.screen();
    assert!(!screen.contains("root:"), "{screen}");
}

#[test]
fn a_run_says_that_a_program_ran_outside_of_the_recording() {
    if !needs("a set-user-id program in a run", &["tmux", "cc"]) {
        return;
    }
    let shell = RecordedShell::start("bash");
    if !prepare(&shell.directory) {
        return;
    }
    shell.terminal.line("./gain exit 4");
    shell.terminal.line("setpriv --no-new-privs ./gain ids");
    shell.terminal.leave();
    shell.at_rest();
    let lines = shell.lines();
    assert_eq!(lines[0], ("./gain exit 4".to_owned(), 4));
    let runs: Vec<serde_json::Value> =
        serde_json::from_str(&shell.ask(&["log", "--json"])).unwrap();
    let of = |text: &str| {
        let run = runs.iter().find(|run| run["line"]["text"] == text).unwrap();
        let id = run["run"].as_str().unwrap();
        let shown = shell.ask(&["show", "--json", id]);
        serde_json::from_str::<serde_json::Value>(&shown).unwrap()
    };
    let brokered = of("./gain exit 4");
    assert_eq!(brokered["complete"], false, "{brokered}");
    let text = brokered.to_string();
    assert!(
        text.contains("./gain ran outside of the recording"),
        "{text}"
    );
    assert!(text.contains("gain"), "the execution is recorded");
    assert!(
        !text.contains("\"client\"") && !text.contains("/client"),
        "{text}"
    );
    let refused = of("setpriv --no-new-privs ./gain ids");
    assert_eq!(refused["complete"], true, "{refused}");
}
