//! `init` in a start-up file, and logins that must not fail.

use super::terminal::Terminal;
use backstory_testkit::need::{needs, skipped};
use backstory_testkit::stage::Stage;

/// The line of a start-up file that makes its shell a recorded one.
fn init(stage: &Stage, shell: &str) -> String {
    let program = stage.path().join("bin/backstory");
    match shell {
        "fish" => format!("{} init fish | source", program.display()),
        _ => format!("eval \"$({} init {shell})\"", program.display()),
    }
}

#[test]
fn the_shell_of_a_start_up_file_has_the_store_that_the_file_names() {
    if !needs("`init` with a store", &["tmux", "bash"]) {
        return;
    }
    let stage = Stage::new(env!("CARGO_BIN_EXE_backstory")).unwrap();
    let directory = stage.directory("work").unwrap();
    let program = stage.path().join("bin/backstory");
    let store = directory.join("an 'other' store");
    let named = format!("\"{}\"", store.display());
    let startup = format!(
        "eval \"$({} --store {named} init bash)\"",
        program.display()
    );
    let terminal = Terminal::start(&stage, "init", &directory, "bash", &startup);
    terminal.ready();
    terminal.line("echo 1 > a");
    terminal.leave();
    let mut asked = stage.backstory(&["of", "a", "--store"]);
    let origin = asked.arg(&store).current_dir(&directory).output().unwrap();
    let origin = String::from_utf8_lossy(&origin.stdout).into_owned();
    assert!(
        origin.contains("echo 1 > a"),
        "{origin} {}",
        terminal.screen()
    );
}

#[test]
fn a_start_up_file_makes_every_interactive_shell_a_recorded_one() {
    for shell in ["bash", "zsh", "fish"] {
        if !needs("`init` in a start-up file", &["tmux", shell]) {
            continue;
        }
        let screens = [false, true].map(|recorded| {
            let stage = Stage::new(env!("CARGO_BIN_EXE_backstory")).unwrap();
            let directory = stage.directory("work").unwrap();
            let startup = match recorded {
                true => init(&stage, shell),
                false => String::new(),
            };
            let terminal = Terminal::start(&stage, "init", &directory, shell, &startup);
            terminal.ready();
            terminal.line("echo 1 > a; echo $SHLVL");
            terminal.line(&format!("{shell} -c 'echo not interactive'"));
            terminal.leave();
            if recorded {
                let mut asked = stage.backstory(&["of", "a"]);
                let origin = asked.current_dir(&directory).output().unwrap();
                let origin = String::from_utf8_lossy(&origin.stdout).into_owned();
                assert!(origin.contains("echo 1 > a"), "{shell}: {origin}");
            }
            terminal.screen()
        });
        assert_eq!(screens[1], screens[0]);
    }
}

#[test]
fn a_shell_with_jobs_is_not_replaced() {
    if !needs("`init` in a shell with jobs", &["tmux", "bash"]) {
        return;
    }
    for shell in ["bash", "zsh", "fish"] {
        if !needs("`init` in a shell with jobs", &[shell]) {
            continue;
        }
        let stage = Stage::new(env!("CARGO_BIN_EXE_backstory")).unwrap();
        let directory = stage.directory("work").unwrap();
        let terminal = Terminal::start(&stage, "jobs", &directory, shell, "");
        terminal.ready();
        terminal.line("sleep 1000 &");
        terminal.line(&init(&stage, shell));
        terminal.line("jobs");
        let screen = terminal.screen();
        assert!(screen.contains("this shell has jobs"), "{screen}");
        assert!(screen.contains("sleep 1000 &\n"), "{screen}");
    }
}

/// Logs in where a recording cannot begin. `within` starts a command line in such a place.
fn logs_in_plainly(what: &str, within: &str) {
    for shell in ["bash", "zsh", "fish"] {
        if !needs(what, &["tmux", "unshare", shell]) {
            continue;
        }
        let stage = Stage::new(env!("CARGO_BIN_EXE_backstory")).unwrap();
        let directory = stage.directory("work").unwrap();
        let mut tried = stage.command("unshare");
        tried.args(["-rm", "mount", "-t", "tmpfs", "tmpfs"]);
        if !tried.arg(&directory).output().unwrap().status.success() {
            skipped(what, "this user cannot make namespaces");
            return;
        }
        let inside = within
            .replace("STORE", stage.store().to_str().unwrap())
            .replace("HOME", stage.path().join("home").to_str().unwrap());
        let line = format!("unshare -rm sh -c '{inside}; exec {shell}'");
        let startup = init(&stage, shell);
        let terminal = Terminal::start(&stage, "login", &directory, &line, &startup);
        terminal.ready();
        terminal.line("echo works");
        terminal.leave();
        let screen = terminal.screen();
        let message = "backstory: this shell is not recorded";
        assert_eq!(screen.matches(message).count(), 1, "{screen}");
        assert_eq!(screen.matches("backstory:").count(), 1, "{screen}");
        assert!(screen.contains("\nworks\n"), "{screen}");
        assert!(screen.contains("ENDED 0"), "{screen}");
    }
}

#[test]
fn a_login_on_a_full_disk_gets_a_plain_shell() {
    let full = "mount -t tmpfs -o size=16k tmpfs STORE; \
                head -c 16384 /dev/zero > STORE/full 2>/dev/null";
    logs_in_plainly("a login on a full disk", full);
}

#[test]
fn a_login_on_a_read_only_home_gets_a_plain_shell() {
    let read_only = "mount -t tmpfs -o ro tmpfs STORE";
    logs_in_plainly("a login on a read-only home", read_only);
}

#[test]
fn a_login_without_shared_memory_gets_a_shell() {
    // The arena and the hooks have another place, or none.
    let what = "a login without /dev/shm";
    for shell in ["bash", "zsh", "fish"] {
        if !needs(what, &["tmux", "unshare", shell]) {
            continue;
        }
        let stage = Stage::new(env!("CARGO_BIN_EXE_backstory")).unwrap();
        let directory = stage.directory("work").unwrap();
        let inside = "mount -t tmpfs -o ro tmpfs /dev/shm";
        let line = format!("unshare -rm sh -c '{inside}; exec {shell}'");
        let startup = init(&stage, shell);
        let terminal = Terminal::start(&stage, "login", &directory, &line, &startup);
        terminal.ready();
        terminal.line("echo works");
        terminal.leave();
        let screen = terminal.screen();
        assert!(screen.contains("\nworks\n"), "{screen}");
        assert!(screen.contains("ENDED 0"), "{screen}");
    }
}
