//! A stage with a server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use backstory_testkit::database_server::DatabaseServer;
use backstory_testkit::database_watcher::DatabaseWatcher;
use backstory_testkit::mariadb::MariadbServer;
use backstory_testkit::postgres::PostgresServer;
use backstory_testkit::procs::eventually;
use backstory_testkit::stage::Stage;
use backstory_testkit::unfinished_run;
use backstory_testkit::user::User;
use serde_json::Value;

/// The longest wait for what a watch or a server does, on a machine however busy.
pub const PATIENCE: Duration = Duration::from_secs(120);

pub type PostgresPlace = DatabasePlace<PostgresServer>;
pub type MariadbPlace = DatabasePlace<MariadbServer>;

/// A stage with a server, and a directory for recorded commands.
pub struct DatabasePlace<S> {
    pub server: S,
    pub stage: Stage,
    pub work: PathBuf,
}

impl<S: DatabaseServer> DatabasePlace<S> {
    /// `None`, with a notice, where no server is installed.
    pub fn new(what: &str, settings: &[&str]) -> Option<DatabasePlace<S>> {
        let binary = Path::new(env!("CARGO_BIN_EXE_backstory"));
        let stage = Stage::of(User::ordinary(), binary).unwrap();
        let server = S::begin(what, &stage, settings).unwrap()?;
        let work = stage.directory("work").unwrap();
        Some(DatabasePlace {
            server,
            stage,
            work,
        })
    }

    /// The same with a watch that began when the database had an empty table `a` with the key `id`.
    pub fn watched_table(what: &str) -> Option<(DatabasePlace<S>, DatabaseWatcher)> {
        let place = Self::new(what, &[])?;
        place.query("CREATE TABLE a (id int PRIMARY KEY)");
        let watch = place.watched();
        Some((place, watch))
    }

    /// Executes statements.
    pub fn query(&self, text: &str) -> String {
        self.server.execute(&self.stage, text).unwrap()
    }

    /// Begins to watch the database.
    pub fn watched(&self) -> DatabaseWatcher {
        self.server.watched(&self.stage, &[]).unwrap()
    }

    /// Records a shell line, in which `$SQL` connects to the database, and `$LOCAL` through the
    /// server's socket file.
    pub fn record(&self, line: &str) {
        succeeded(&self.recorded(line).output().unwrap());
    }

    fn recorded(&self, line: &str) -> Command {
        self.with_clients(self.stage.record(&["sh", "-c", line]))
    }

    /// A command that knows the clients, and the gate of [`DatabasePlace::through_gate`].
    fn with_clients(&self, mut command: Command) -> Command {
        command
            .current_dir(&self.work)
            .env("SQL", self.server.client())
            .env("LOCAL", self.server.local_client())
            .env("GATE", "until [ -e open ]; do sleep 0.01; done");
        command
    }

    /// Records a shell line that waits at one place, with `eval "$GATE"`. Before it goes on, the
    /// watch has recorded a statement that begins so, and its client. Then `meanwhile` is called.
    pub fn record_gated(&self, line: &str, statement: &str, meanwhile: impl FnOnce()) {
        self.through_gate(self.recorded(line), statement, meanwhile);
    }

    /// The same for a shell line that is not recorded.
    pub fn execute_gated(&self, line: &str, statement: &str, meanwhile: impl FnOnce()) {
        let mut shell = self.stage.command("sh");
        shell.args(["-c", line]);
        self.through_gate(self.with_clients(shell), statement, meanwhile);
    }

    fn through_gate(&self, mut command: Command, statement: &str, meanwhile: impl FnOnce()) {
        let gate = self.work.join("open");
        let text = format!("\"text\":\"{statement}");
        let child = command.stdout(Stdio::piped()).spawn().unwrap();
        let has_record = eventually(PATIENCE, || self.has_record(&text));
        meanwhile();
        fs::write(&gate, "").unwrap();
        let output = child.wait_with_output().unwrap();
        fs::remove_file(gate).unwrap();
        assert!(has_record, "{text}");
        succeeded(&output);
    }

    /// Waits until the records of the watch have a text.
    pub fn wait_for_record(&self, text: &str) {
        assert!(eventually(PATIENCE, || self.has_record(text)), "{text}");
    }

    /// True if the records of a run that goes on have a text.
    fn has_record(&self, text: &str) -> bool {
        unfinished_run::has_text(&self.stage.store(), text)
    }

    /// Makes a file for recorded commands.
    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.work.join(name), text).unwrap();
    }

    /// The reasons why the last run is not complete.
    pub fn reasons(&self) -> String {
        let show = self.json(&["show"]);
        show["incomplete_because"].to_string()
    }

    /// The last run is not complete, and a reason has these words.
    #[track_caller]
    pub fn has_reason(&self, words: &str) {
        let reasons = self.reasons();
        assert!(reasons.contains(words), "no {words} in {reasons}");
    }

    /// Ends a watch, whose run is complete.
    #[track_caller]
    pub fn ends_complete(&self, watch: DatabaseWatcher) {
        let said = watch.end().unwrap();
        assert!(!said.contains("not complete"), "{said} {}", self.reasons());
    }

    /// The lineage of a row has a name or command with these words.
    #[track_caller]
    pub fn row_has(&self, table: &str, key: &str, words: &str) {
        let row = self.lineage(&["--table", table, "--key", key]);
        let has_words = row.iter().any(|node| node.contains(words));
        assert!(has_words, "no {words} in {row:?}");
    }

    /// The answer of `backstory ARGS… --json`.
    pub fn json(&self, args: &[&str]) -> Value {
        let mut command = self.stage.backstory(args);
        let output = command
            .current_dir(&self.work)
            .arg("--json")
            .output()
            .unwrap();
        succeeded(&output);
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The answer of `backstory ARGS…` as text.
    pub fn text(&self, args: &[&str]) -> String {
        let output = self.stage.backstory(args).current_dir(&self.work).output();
        let output = output.unwrap();
        succeeded(&output);
        String::from_utf8(output.stdout).unwrap()
    }

    /// The messages of `backstory ARGS…`, whether it has an answer or not.
    pub fn said(&self, args: &[&str]) -> String {
        let output = self.stage.backstory(args).current_dir(&self.work).output();
        String::from_utf8(output.unwrap().stderr).unwrap()
    }

    /// The names and commands of the nodes of a lineage.
    pub fn lineage(&self, args: &[&str]) -> Vec<String> {
        let answer = self.json(&[&["of", "--level", "all"], args].concat());
        let nodes = answer["nodes"].as_array().unwrap().iter();
        let name = |node: &Value| match node["path"].as_str() {
            Some(path) => path.to_owned(),
            None => {
                let words = node["argv"].as_array().into_iter().flatten();
                let words: Vec<&str> = words.filter_map(Value::as_str).collect();
                words.join(" ")
            }
        };
        nodes.map(name).collect()
    }
}

impl PostgresPlace {
    /// Waits until the server's log has a text. The server writes it in the background.
    pub fn wait_for_line(&self, text: &str) {
        let is_there = || {
            let files = fs::read_dir(self.server.log_directory()).unwrap();
            let mut logs = files.map(|file| fs::read_to_string(file.unwrap().path()).unwrap());
            logs.any(|log| log.contains(text))
        };
        assert!(
            eventually(PATIENCE, is_there),
            "the server's log lacks {text}"
        );
    }
}

#[track_caller]
pub fn succeeded(output: &Output) {
    assert!(output.status.success(), "{output:?}");
}

/// True if the name or command of a node ends so.
pub fn has(nodes: &[String], end: &str) -> bool {
    nodes.iter().any(|node| node.ends_with(end))
}
