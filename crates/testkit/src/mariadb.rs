//! A MariaDB server for a test, of the stage's own user.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::database_directory;
use crate::database_server::{DatabaseServer, checked};
use crate::database_watcher::DatabaseWatcher;
use crate::need::{find, needs, skipped};
use crate::ports::free_port;
use crate::procs::eventually;
use crate::stage::Stage;

/// Logs of 96 MB, as the server chooses them, would be copied for each test.
const LOG_SIZE: &str = "--innodb-log-file-size=8M";
const SETTINGS: [&str; 14] = [
    "--bind-address=127.0.0.1",
    "--server-id=1",
    "--log-bin=binlog",
    "--binlog-format=ROW",
    "--plugin-load-add=server_audit",
    "--server_audit_logging=ON",
    "--server_audit_events=CONNECT,QUERY,TABLE",
    "--server_audit_file_rotate_size=100000000",
    "--innodb-buffer-pool-size=16M",
    LOG_SIZE,
    "--innodb-flush-log-at-trx-commit=0",
    "--skip-name-resolve",
    "--key-buffer-size=1M",
    "--aria-pagecache-buffer-size=1M",
];
/// Longest start and end of a server.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running server with the database `bank` of the user `root`. Dropped, it is stopped.
pub struct MariadbServer {
    data: PathBuf,
    /// TCP port on 127.0.0.1.
    pub port: u16,
    settings: Vec<String>,
    child: Option<Child>,
}

impl MariadbServer {
    /// Starts a server in the stage. `None`, with a notice, where none is installed.
    pub fn start(
        what: &str,
        stage: &Stage,
        settings: &[&str],
    ) -> io::Result<Option<MariadbServer>> {
        let tools = ["mariadbd", "mariadb-install-db", "mariadb", "mariadb-admin"];
        if !needs(what, &tools) {
            return Ok(None);
        }
        let data = stage.path().join("database");
        let program = find("mariadbd").ok_or_else(|| io::Error::other("no mariadbd"))?;
        let mut refusal = None;
        let options = [
            "--no-defaults",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            LOG_SIZE,
        ];
        let made = database_directory::fill(stage, &data, (&program, &options), |options| {
            stage.directory("database")?;
            let mut command = stage.command("mariadb-install-db");
            command
                .args(options)
                .arg(format!("--datadir={}", data.display()));
            let output = command.output()?;
            if !output.status.success() {
                refusal = Some(String::from_utf8_lossy(&output.stdout).into_owned());
            }
            checked(&output)
        });
        if let Some(said) = refusal {
            skipped(what, &format!("mariadb-install-db fails: {said}"));
            return Ok(None);
        }
        made?;
        let mut server = MariadbServer {
            data,
            port: free_port()?,
            settings: settings.iter().map(|one| (*one).to_owned()).collect(),
            child: None,
        };
        server.run(stage)?;
        server.query(stage, "", "CREATE DATABASE bank")?;
        Ok(Some(server))
    }

    /// Starts the server, and waits until it answers.
    pub fn run(&mut self, stage: &Stage) -> io::Result<()> {
        let program = find("mariadbd").ok_or_else(|| io::Error::other("no mariadbd"))?;
        let error_log = fs::File::create(self.data.with_file_name("mariadbd.log"))?;
        let mut command = stage.command(program);
        command
            .arg("--no-defaults")
            .args(SETTINGS)
            .arg(format!("--datadir={}", self.data.display()))
            .arg(format!("--tmpdir={}", self.data.display()))
            .arg(format!("--port={}", self.port))
            .arg(format!("--socket={}", self.socket().display()))
            .arg(format!("--pid-file={}", self.data.join("pid").display()))
            .args(&self.settings);
        let child = command.stdout(Stdio::null()).stderr(error_log).spawn()?;
        self.child = Some(child);
        let answers = || {
            if !self.socket().exists() {
                return false;
            }
            let mut command = self.command(stage, "mariadb-admin");
            let output = command.arg("ping").output();
            output.is_ok_and(|output| output.status.success())
        };
        match eventually(PATIENCE, answers) {
            true => Ok(()),
            false => {
                let log = fs::read_to_string(self.data.with_file_name("mariadbd.log"))?;
                Err(io::Error::other(log))
            }
        }
    }

    /// Stops the server, as its manager would.
    pub fn stop(&mut self) -> io::Result<()> {
        let Some(mut child) = self.child.take() else {
            return Ok(());
        };
        if let Some(pid) = Pid::from_raw(child.id() as i32) {
            kill_process(pid, Signal::TERM)?;
        }
        child.wait().map(drop)
    }

    fn command(&self, stage: &Stage, program: &str) -> Command {
        let mut command = stage.command(program);
        command.args(["--no-defaults", "-u", "root", "-h", "127.0.0.1"]);
        command.arg(format!("-P{}", self.port));
        command
    }

    /// Executes statements, and returns the rows of their results.
    pub fn query(&self, stage: &Stage, database: &str, text: &str) -> io::Result<String> {
        let mut command = self.command(stage, "mariadb");
        command.args(["-N", "-e", text]);
        if !database.is_empty() {
            command.arg(database);
        }
        let output = command.output()?;
        checked(&output)?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn socket(&self) -> PathBuf {
        self.data.join("socket")
    }

    /// The directory of the server's files, its logs among them.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Begins to watch the database through the server's socket file.
    pub fn watched_at_socket(&self, stage: &Stage) -> io::Result<DatabaseWatcher> {
        let socket = self.socket();
        let connection = format!("mariadb://root@/bank?socket={}", socket.display());
        DatabaseWatcher::begin(stage, "mariadb", &[], &connection)
    }
}

impl DatabaseServer for MariadbServer {
    fn begin(what: &str, stage: &Stage, settings: &[&str]) -> io::Result<Option<MariadbServer>> {
        MariadbServer::start(what, stage, settings)
    }

    fn execute(&self, stage: &Stage, text: &str) -> io::Result<String> {
        self.query(stage, "bank", text)
    }

    fn client(&self) -> String {
        let port = self.port;
        format!("mariadb --no-defaults --local-infile=1 -u root -h 127.0.0.1 -P {port} -N bank")
    }

    fn local_client(&self) -> String {
        let socket = self.socket();
        format!(
            "mariadb --no-defaults -u root -S {} -N bank",
            socket.display()
        )
    }

    fn executes_file(&self, file: &Path) -> String {
        format!("{} <{}", self.client(), file.display())
    }

    fn watched(&self, stage: &Stage, options: &[&str]) -> io::Result<DatabaseWatcher> {
        let connection = format!("mysql://root@127.0.0.1:{}/bank", self.port);
        DatabaseWatcher::begin(stage, "mariadb", options, &connection)
    }
}

impl Drop for MariadbServer {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
