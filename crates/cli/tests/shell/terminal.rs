//! A terminal in which a shell runs: keys go in, the screen comes out.

use backstory_testkit::stage::Stage;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The prompt of every shell under test.
pub const PROMPT: &str = "READY>";

/// How long a screen is waited for. A busy machine needs some of it.
const PATIENCE: Duration = Duration::from_secs(120);

/// A terminal of tmux with a server of its own.
pub struct Terminal {
    socket: PathBuf,
    is_zsh: bool,
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.close();
    }
}

impl Terminal {
    /// Starts a command line of `/bin/sh` in a new terminal, as the stage's user. `startup` is
    /// added to the start-up files of all shells.
    pub fn start(
        stage: &Stage,
        name: &str,
        directory: &Path,
        line: &str,
        startup: &str,
    ) -> Terminal {
        let terminal = Terminal {
            socket: stage.path().join(format!("{name}.tmux")),
            is_zsh: line.ends_with("zsh"),
        };
        write_startup_files(stage, startup);
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

    /// Types a line, without waiting for its end.
    pub fn enter(&self, text: &str) {
        self.keys(&["-l", text]);
        self.keys(&["Enter"]);
    }

    /// Types the first of several lines, and waits for the prompt of the next.
    pub fn first(&self, text: &str) {
        let before = self.screen().lines().count();
        self.enter(text);
        self.wait(&format!("a continuation after {text:?}"), |screen| {
            screen.lines().count() > before && screen.ends_with('>')
        });
    }

    /// Types a line, and waits until its program has the terminal. The last program of a pipeline
    /// starts later: without it, a key reaches a part of the pipeline only.
    pub fn run(&self, text: &str, program: &str) {
        self.enter(text);
        self.runs(program);
        let Some((_, last)) = text.rsplit_once("| ") else {
            return;
        };
        self.wait(&format!("{last} in the foreground"), |_| {
            let format = "#{pane_pid}";
            let shell = self.tmux(&["display-message", "-p", format]).output();
            let shell = String::from_utf8_lossy(&shell.unwrap().stdout).into_owned();
            let group = stat(shell.trim(), 5);
            let all = std::fs::read_dir("/proc").unwrap().flatten();
            let mut all = all.filter_map(|entry| entry.file_name().into_string().ok());
            all.any(|pid| {
                let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
                name.is_ok_and(|name| name.trim() == last) && stat(&pid, 2) == group
            })
        });
    }

    /// Waits until a program has the terminal and is not stopped: `fg` gives it the terminal first,
    /// and a `SIGCONT` discards the stop signal of a key that was pressed before it.
    pub fn runs(&self, program: &str) {
        self.wait(&format!("{program} in the foreground"), |_| {
            let format = "#{pane_pid} #{pane_current_command}";
            let shown = self.tmux(&["display-message", "-p", format]).output();
            let shown = String::from_utf8_lossy(&shown.unwrap().stdout).into_owned();
            let Some((shell, name)) = shown.trim().split_once(' ') else {
                return false;
            };
            // Fields of /proc/PID/stat behind the name: the state is the first, `tpgid` the sixth.
            name == program
                && stat(shell, 5).is_some_and(|group| stat(&group, 0).is_some_and(|s| s != "T"))
        });
    }

    /// Presses a key, and waits for the next prompt.
    pub fn key(&self, key: &str) {
        let before = self.prompts();
        self.keys(&[key]);
        self.wait(&format!("a prompt after {key}"), |_| {
            self.prompts() > before
        });
    }

    /// Types a line, and waits for the next prompt.
    pub fn line(&self, text: &str) {
        let before = self.prompts();
        self.enter(text);
        self.wait(&format!("a prompt after {text:?}"), |_| {
            self.prompts() > before
        });
    }

    /// Lets the stopped job go on in the background, and waits for the next prompt.
    ///
    /// Zsh loses its prompt if the signal of a job that goes on interrupts the output. That happens
    /// without a recording, too. So zsh shows its prompt after that signal here.
    pub fn background(&self) {
        self.line(match self.is_zsh {
            true => "bg; while ps T -o stat= | grep -q ^T; do :; done",
            false => "bg",
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
            let in_time = Instant::now() < until;
            assert!(in_time, "{what}:\n{}\n{}", self.screen(), self.processes());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The processes of the terminal, and what each waits for.
    fn processes(&self) -> String {
        let format = "#{pane_tty}";
        let shown = self.tmux(&["display-message", "-p", format]).output();
        let shown = String::from_utf8_lossy(&shown.unwrap().stdout).into_owned();
        let columns = "pid,ppid,pgid,tpgid,stat,wchan:24,pending,blocked,args";
        let listed = Command::new("ps")
            .args(["-t", shown.trim(), "-ww", "-o", columns])
            .output();
        let listed = listed.map_or_else(
            |error| error.to_string(),
            |listed| String::from_utf8_lossy(&listed.stdout).into_owned(),
        );
        format!("{}:\n{listed}", self.socket.display())
    }

    /// Waits for the first prompt.
    pub fn ready(&self) {
        self.wait("the first prompt", |screen| screen.contains(PROMPT));
    }

    /// Closes the terminal.
    pub fn close(&self) {
        let _ = self.tmux(&["kill-server"]).output();
    }

    /// Leaves the shell, and waits for its end.
    pub fn leave(&self) {
        self.enter("exit");
        self.ended();
    }

    /// Waits for the end of the shell.
    pub fn ended(&self) {
        self.wait("the end of the shell", |screen| screen.contains("ENDED"));
    }
}

/// The start-up files of all shells, with the same prompt. `more` is added to each.
fn write_startup_files(stage: &Stage, more: &str) {
    let home = stage.path().join("home");
    // Without the second directory, fish reads all manual pages in the background.
    let fish = [".config/fish", ".local/share/fish/generated_completions"];
    for directory in fish {
        std::fs::create_dir_all(home.join(directory)).unwrap();
    }
    let files = [
        (".bashrc", "PS1='READY>'\n"),
        (".zshrc", "PS1='READY>'\nunsetopt prompt_sp notify\n"),
        (
            ".config/fish/config.fish",
            // A suggestion in grey may stay on the screen behind a line that is typed fast.
            "set -g fish_greeting\nset -g fish_autosuggestion_enabled 0\nfunction fish_prompt\n  echo -n 'READY>'\nend\n\
             function fish_right_prompt\nend\n",
        ),
    ];
    for (file, content) in files {
        // Another shell of the stage may be reading it.
        let new = home.join(format!("{file}.new"));
        std::fs::write(&new, format!("{content}{more}\n")).unwrap();
        stage.user().owns(&new).unwrap();
        std::fs::rename(new, home.join(file)).unwrap();
    }
    let above = [".config", ".local", ".local/share", ".local/share/fish"];
    for directory in fish.iter().chain(&above) {
        stage.user().owns(&home.join(directory)).unwrap();
    }
}

/// A field of /proc/PID/stat, counted behind the program's name (proc_pid_stat(5)).
fn stat(pid: &str, field: usize) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(field).map(str::to_owned)
}
