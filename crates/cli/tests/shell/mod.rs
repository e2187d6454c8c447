//! `backstory shell`: each command line is a run of its own, and the shell behaves as a bare one.
//!
//! The shells run in terminals of tmux, as an ordinary user.
#![allow(clippy::unwrap_used)]

mod behaviour;
mod crowd;
mod editing;
mod ends;
mod lines;
mod login;
mod policy;
mod privileged;
mod remote;
mod sudo;
mod terminal;

use backstory_testkit::stage::Stage;
use std::path::PathBuf;
use terminal::Terminal;

/// A recorded shell in a terminal.
struct RecordedShell {
    /// Dropped first: its socket lies in the stage.
    terminal: Terminal,
    stage: Stage,
    directory: PathBuf,
}

impl RecordedShell {
    fn start(shell: &str) -> RecordedShell {
        RecordedShell::configured(shell, "")
    }

    /// The same, with a configuration file of the user.
    fn configured(shell: &str, config: &str) -> RecordedShell {
        let stage = Stage::new(env!("CARGO_BIN_EXE_backstory")).unwrap();
        let directory = stage.directory("work").unwrap();
        std::fs::write(directory.join("input.txt"), "hello\n").unwrap();
        let configuration = stage.path().join("home/.config/backstory");
        std::fs::create_dir_all(&configuration).unwrap();
        std::fs::write(configuration.join("config.toml"), config).unwrap();
        let program = stage.path().join("bin/backstory");
        let line = format!("{} shell -- {shell}", program.display());
        let terminal = Terminal::start(&stage, "recorded", &directory, &line, "");
        terminal.ready();
        RecordedShell {
            stage,
            terminal,
            directory,
        }
    }

    /// What `backstory ARGS…` prints.
    fn ask(&self, args: &[&str]) -> String {
        let out = self
            .stage
            .backstory(args)
            .current_dir(&self.directory)
            .output()
            .unwrap();
        assert!(out.status.success(), "{args:?}: {out:?}");
        String::from_utf8(out.stdout).unwrap()
    }

    /// Waits until all runs are in the database.
    fn at_rest(&self) {
        self.ask(&["index", "--wait"]);
    }

    /// The texts of the recorded lines, oldest first, with exit statuses.
    fn lines(&self) -> Vec<(String, i64)> {
        let runs: Vec<serde_json::Value> =
            serde_json::from_str(&self.ask(&["log", "--json"])).unwrap();
        let mut lines: Vec<_> = runs
            .iter()
            .filter_map(|run| {
                let text = run["line"]["text"].as_str()?.to_owned();
                let number = run["line"]["number"].as_i64()?;
                Some((number, text, run["exit"].as_i64().unwrap_or(-1)))
            })
            .collect();
        lines.sort();
        lines
            .into_iter()
            .map(|(_, text, exit)| (text, exit))
            .collect()
    }
}
