//! `sudo` and `su` in a recorded shell. An ordinary user's run outside of the recording, and the
//! line says so. Those of root are recorded.

use super::RecordedShell;
use super::behaviour::same_screens_with;
use super::terminal::{PROMPT, Terminal};
use backstory_testkit::need::needs;
use backstory_testkit::private_mounts::PrivateMounts;
use backstory_testkit::stage::Stage;
use backstory_testkit::user::User;
use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Lets the tests' user execute everything by sudo, for this thread and its commands.
fn allow_sudo(what: &str) -> Option<(PrivateMounts, tempfile::TempDir)> {
    if !needs(what, &["sudo", "tmux"]) {
        return None;
    }
    let mounts = PrivateMounts::of_this_thread(what).unwrap()?;
    let User::Other { uid, .. } = User::ordinary() else {
        return None;
    };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("sudoers");
    let rules = format!("Defaults use_pty\nroot ALL=(ALL) ALL\n#{uid} ALL=(ALL) NOPASSWD: ALL\n");
    std::fs::write(&file, rules).unwrap();
    set_permissions(&file, Permissions::from_mode(0o440)).unwrap();
    mounts.replace(Path::new("/etc/sudoers"), &file).unwrap();
    Some((mounts, directory))
}

/// Types a line with `sudo sleep`, and waits until the sleeping process has its own terminal. A key
/// that sudo gets before that is lost, in a bare shell, too.
fn sleeps(terminal: &Terminal, line: &str, seconds: &str) {
    terminal.enter(line);
    let words = format!("sleep\0{seconds}\0");
    terminal.wait("the command of sudo", |_| {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        processes.map(|process| process.path()).any(|process| {
            let read = |file| std::fs::read_to_string(process.join(file)).unwrap_or_default();
            let stat = read("stat");
            let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
            // State, parent, group, session, terminal, group in its foreground.
            let fields: Vec<&str> = fields.split(' ').take(6).collect();
            read("cmdline") == words
                && fields.first() == Some(&"S")
                && fields.get(2) == fields.get(5)
        })
    });
}

/// Results, pipes, an interactive shell of root, and keys.
fn sudo_keys(terminal: &Terminal) {
    terminal.line("sudo -n id -un");
    terminal.line("sudo -n sh -c 'exit 5'; echo $?");
    terminal.line("echo text | sudo -n tee made | cat; stat -c '%U %s' made");
    terminal.line("sudo -n env PS1=\"$PS1\" sh");
    terminal.line("id -un");
    terminal.line("exit 3");
    terminal.line("echo $?");
    sleeps(terminal, "sudo -n sleep 41000", "41000");
    terminal.key("C-c");
    sleeps(terminal, "sudo -n sleep 41001", "41001");
    terminal.key("C-z");
    sleeps(terminal, "fg", "41001");
    terminal.key("C-c");
}

#[test]
fn sudo_in_a_recorded_shell_shows_the_same_screen() {
    let Some(_allowed) = allow_sudo("sudo in a recorded shell") else {
        return;
    };
    same_screens_with("bash", "", |_| true, sudo_keys);
}

#[test]
fn a_line_with_sudo_says_that_it_ran_outside_of_the_recording() {
    let Some(_allowed) = allow_sudo("a recorded line with sudo") else {
        return;
    };
    let shell = RecordedShell::start("bash");
    shell.terminal.line("sudo -n touch root-file");
    shell.terminal.line("cp input.txt copy.txt");
    shell.terminal.leave();
    shell.at_rest();
    assert!(shell.directory.join("root-file").exists());
    let log: serde_json::Value = serde_json::from_str(&shell.ask(&["log", "--json"])).unwrap();
    let of = |text: &str| {
        let mut runs = log.as_array().unwrap().iter();
        runs.find(|run| run["line"]["text"] == text).unwrap()
    };
    let with_sudo = of("sudo -n touch root-file");
    assert_eq!(with_sudo["complete"], false, "{with_sudo}");
    let because = with_sudo["incomplete_because"].to_string();
    let expected = "/usr/bin/sudo ran outside of the recording";
    assert!(because.contains(expected), "{because}");
    assert_eq!(of("cp input.txt copy.txt")["complete"], true);
}

/// The name of the tests' ordinary user.
fn ordinary_name() -> Option<String> {
    let User::Other { uid, .. } = User::ordinary() else {
        return None;
    };
    let id = Command::new("id").args(["-un", &uid.to_string()]).output();
    let name = String::from_utf8(id.unwrap().stdout).unwrap();
    Some(name.trim().to_owned())
}

#[test]
fn what_root_does_by_su_and_sudo_as_another_user_is_recorded() {
    let what = "su and sudo in a recorded shell of root";
    if !needs(what, &["su", "sudo", "tmux"]) {
        return;
    }
    let Some(user) = ordinary_name() else {
        return backstory_testkit::need::skipped(what, "the suite was not started as root");
    };
    let stage = Stage::of(User::Myself, env!("CARGO_BIN_EXE_backstory").as_ref()).unwrap();
    let directory = stage.directory("work").unwrap();
    set_permissions(&directory, Permissions::from_mode(0o777)).unwrap();
    let line = format!("{}/bin/backstory shell -- bash", stage.path().display());
    let terminal = Terminal::start(&stage, "root", &directory, &line, "");
    terminal.ready();
    terminal.line(&format!("export PS1='{PROMPT}'"));
    let su = format!("su -s /bin/sh {user}");
    terminal.line(&su);
    terminal.line("echo text > made");
    terminal.line("cp made second");
    terminal.line("exit");
    let sudo = format!("sudo -n -u {user} cp second third");
    terminal.line(&sudo);
    terminal.leave();
    let ask = |args: &[&str]| {
        let out = stage.backstory(args).current_dir(&directory).output();
        String::from_utf8(out.unwrap().stdout).unwrap()
    };
    ask(&["index", "--wait"]);
    let of = ask(&["of", "third"]);
    for step in ["cp second third", &su, "made second"] {
        assert!(of.contains(step), "{step}: {of}\n{}", terminal.screen());
    }
    let log: serde_json::Value = serde_json::from_str(&ask(&["log", "--json"])).unwrap();
    for text in [su, sudo] {
        let mut runs = log.as_array().unwrap().iter();
        let run = runs.find(|run| run["line"]["text"] == text).unwrap();
        assert_eq!(run["complete"], true, "{run}");
    }
}
