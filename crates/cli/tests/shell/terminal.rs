//! A terminal in which a shell runs: keys go in, the screen comes out.

use backstory_testkit::stage::Stage;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The prompt of every shell under test.
pub const PROMPT: &str = "READY>";

/// How long a screen is waited for. A busy machine needs some of it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A terminal of tmux with a server of its own.
pub struct Terminal {
    socket: PathBuf,
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.tmux(&["kill-server"]).output();
    }
}

impl Terminal {
    /// Starts a command line of `/bin/sh` in a new terminal, as the stage's user.
    pub fn start(stage: &Stage, name: &str, directory: &Path, line: &str) -> Terminal {
        let terminal = Terminal {
            socket: stage.path().join(format!("{name}.tmux")),
        };
        let home = stage.path().join("home");
        std::fs::write(home.join(".bashrc"), "PS1='READY>'\n").unwrap();
        std::fs::write(home.join(".zshrc"), "PS1='READY>'\nunsetopt prompt_sp\n").unwrap();
        let fish = home.join(".config/fish");
        std::fs::create_dir_all(&fish).unwrap();
        let config = "set -g fish_greeting\nfunction fish_prompt\n  echo -n 'READY>'\nend\n\
                      function fish_right_prompt\nend\n";
        std::fs::write(fish.join("config.fish"), config).unwrap();
        for made in [
            ".bashrc",
            ".zshrc",
            ".config",
            ".config/fish",
            ".config/fish/config.fish",
        ] {
            stage.user().owns(&home.join(made)).unwrap();
        }
        let mut command = stage.command("tmux");
        let socket = terminal.socket.to_str().unwrap();
        command.args(["-S", socket, "-f", "/dev/null", "new-session", "-d"]);
        command.args(["-x", "100", "-y", "50", "-c"]).arg(directory);
        let store = stage.store();
        command.arg(format!(
            "BACKSTORY_STORE={} {line}; echo ENDED $?; exec sleep 1000",
            store.display()
        ));
        let started = command.output().unwrap();
        assert!(started.status.success(), "{started:?}");
        terminal
    }

    fn tmux(&self, args: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&self.socket).args(args);
        command
    }

    /// Types a line, and waits for the next prompt.
    pub fn line(&self, text: &str) {
        let before = self.prompts();
        self.keys(&["-l", text]);
        self.keys(&["Enter"]);
        self.wait(&format!("a prompt after {text:?}"), |_| {
            self.prompts() > before
        });
    }

    /// Presses keys.
    pub fn keys(&self, keys: &[&str]) {
        let mut args = vec!["send-keys"];
        args.extend(keys);
        let sent = self.tmux(&args).output().unwrap();
        assert!(sent.status.success(), "{sent:?}");
    }

    /// The whole screen and what has scrolled off it, without trailing empty lines.
    pub fn screen(&self) -> String {
        let shown = self
            .tmux(&["capture-pane", "-p", "-S", "-"])
            .output()
            .unwrap();
        String::from_utf8_lossy(&shown.stdout).trim_end().to_owned()
    }

    fn prompts(&self) -> usize {
        self.screen().matches(PROMPT).count()
    }

    /// Waits until the screen is as wanted.
    pub fn wait(&self, what: &str, wanted: impl Fn(&str) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !wanted(&self.screen()) {
            assert!(Instant::now() < until, "{what}:\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for the first prompt.
    pub fn ready(&self) {
        self.wait("the first prompt", |screen| screen.contains(PROMPT));
    }

    /// Leaves the shell, and waits for its end.
    pub fn leave(&self) {
        self.keys(&["-l", "exit"]);
        self.keys(&["Enter"]);
        self.wait("the end of the shell", |screen| screen.contains("ENDED"));
    }
}
