//! A line of a recorded shell starts a command on another machine.

use super::RecordedShell;
use backstory_testkit::need::needs;
use backstory_testkit::ssh_server::SshServer;
use backstory_testkit::stage::{PATH, Stage};
use backstory_testkit::user::User;

#[test]
fn a_line_with_ssh_is_followed_by_the_run_on_the_other_machine() {
    for shell in ["bash", "zsh", "fish"] {
        if !needs("ssh in a recorded shell", &["tmux", shell]) {
            continue;
        }
        let there = Stage::of(User::Myself, env!("CARGO_BIN_EXE_backstory").as_ref()).unwrap();
        let at = there.path().display().to_string();
        let variables =
            format!("SetEnv HOME={at}/home XDG_DATA_HOME={at}/data PATH={at}/bin:{PATH}");
        let what = "ssh in a recorded shell";
        let recorded = RecordedShell::configured(shell, "[shell]\nremote = true\n");
        let Some(server) = SshServer::start_with(what, &recorded.stage, &variables).unwrap() else {
            return;
        };
        let config = server.write_client_config(&recorded.stage).unwrap();
        let line = format!("ssh -F {} box 'echo far > {at}/made'", config.display());
        recorded.terminal.line(&line);
        recorded.terminal.leave();
        let of = recorded.ask(&["of", &format!("{at}/made")]);
        let screen = recorded.terminal.screen();
        assert!(of.contains("echo far"), "{shell}: {of} {screen}");
        assert!(of.contains("started by run "), "{shell}: {of} {screen}");
        let first = recorded.lines().remove(0);
        assert_eq!(first, (line, 0), "{shell}: {screen}");
    }
}
