//! A PostgreSQL server for a test, of the stage's own user.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::database_directory;
use crate::database_server::{DatabaseServer, checked};
use crate::database_watcher::DatabaseWatcher;
use crate::need::{find, skipped};
use crate::ports::free_port;
use crate::stage::Stage;

const SETTINGS: &str = "listen_addresses = '127.0.0.1'\nwal_level = logical\n\
    logging_collector = on\nlog_destination = jsonlog\nlog_directory = log\nlog_statement = all\n\
    log_duration = on\nlog_connections = on\nlog_disconnections = on\nfsync = off\n\
    lc_messages = C\nshared_buffers = 16MB\n";

/// A running server with the database `bank` of the user `ann`. Dropped, it is stopped.
pub struct PostgresServer {
    programs: PathBuf,
    data: PathBuf,
    /// TCP port on 127.0.0.1.
    pub port: u16,
    user: crate::user::User,
}

/// The directory of the server's programs. Debian puts them beside the search path.
fn programs() -> Option<PathBuf> {
    if let Some(initdb) = find("initdb") {
        return initdb.parent().map(Path::to_owned);
    }
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let mut found: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    found.retain(|directory| directory.join("initdb").exists());
    found.sort_unstable();
    found.pop()
}

impl PostgresServer {
    /// Starts a server in the stage. `None`, with a notice, where none is installed.
    pub fn start(what: &str, stage: &Stage, settings: &str) -> io::Result<Option<PostgresServer>> {
        let (Some(programs), Some(_)) = (programs(), find("psql")) else {
            skipped(what, "needs initdb and psql (package postgresql)");
            return Ok(None);
        };
        let data = stage.path().join("database");
        stage.directory("sockets")?;
        let initdb = programs.join("initdb");
        let options = [
            "-A",
            "trust",
            "-U",
            "ann",
            "--no-sync",
            "--locale=C",
            "--encoding=UTF8",
        ];
        database_directory::fill(stage, &data, (&initdb, &options), |options| {
            stage.directory("database")?;
            let mut command = stage.command(&initdb);
            succeeds(command.args(options).arg("-D").arg(&data))
        })?;
        let port = free_port()?;
        let sockets = stage.path().join("sockets");
        let file = data.join("postgresql.conf");
        let text = fs::read_to_string(&file)?;
        let own = format!(
            "{SETTINGS}port = {port}\nunix_socket_directories = '{}'\n{settings}\n",
            sockets.display()
        );
        fs::write(&file, text + &own)?;
        let server = PostgresServer {
            programs,
            data,
            port,
            user: stage.user(),
        };
        server.control(stage, &["-w", "start"])?;
        server.query(stage, "postgres", "CREATE DATABASE bank")?;
        Ok(Some(server))
    }

    /// Keeps the server, in its stage, until this process ends in whatever way.
    pub fn until_exit(self, stage: Stage) -> io::Result<u16> {
        let text = "read -r _; \"$1\" -D \"$2\" -m immediate -w stop; rm -rf \"$3\"";
        let mut command = Command::new("setsid");
        command
            .args(["sh", "-c", text, "sh"])
            .arg(self.programs.join("pg_ctl"))
            .arg(&self.data)
            .arg(stage.path());
        let stopper = self.user.runs(&mut command).stdin(Stdio::piped());
        let stopper = stopper
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let port = self.port;
        // The end of this process closes the pipe.
        std::mem::forget((self, stage, stopper));
        Ok(port)
    }

    /// `pg_ctl ARGS…`
    pub fn control(&self, stage: &Stage, args: &[&str]) -> io::Result<()> {
        let mut command = stage.command(self.programs.join("pg_ctl"));
        command
            .arg("-D")
            .arg(&self.data)
            .arg("-l")
            .arg(self.data.join("start.log"));
        succeeds(
            command
                .args(args)
                .stdout(Stdio::null())
                .stderr(Stdio::null()),
        )
    }

    /// Executes statements with psql, and returns its output.
    pub fn query(&self, stage: &Stage, database: &str, text: &str) -> io::Result<String> {
        let port = self.port.to_string();
        let args = [
            "-h",
            "127.0.0.1",
            "-p",
            &port,
            "-U",
            "ann",
            "-qAtX",
            "-v",
            "ON_ERROR_STOP=1",
        ];
        let output = stage
            .command("psql")
            .args(args)
            .args(["-c", text, database])
            .output()?;
        checked(&output)?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// A session of psql that stays open.
    pub fn session(&self, stage: &Stage) -> io::Result<PsqlSession> {
        let mut command = stage.command("sh");
        command.args(["-c", &format!("exec {}", self.client())]);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let missing = || io::Error::other("no pipe");
        let answers = BufReader::new(child.stdout.take().ok_or_else(missing)?);
        Ok(PsqlSession { child, answers })
    }

    /// From now on, the server accepts connections through TCP only if they are encrypted.
    pub fn encrypted_alone(&self, stage: &Stage) -> io::Result<()> {
        let rules = "local all all trust\nhostssl all all 127.0.0.1/32 trust\n";
        fs::write(self.data.join("pg_hba.conf"), rules)?;
        self.control(stage, &["reload"])
    }

    /// The directory of the server's files.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The directory of the server's log.
    pub fn log_directory(&self) -> PathBuf {
        self.data.join("log")
    }
}

impl DatabaseServer for PostgresServer {
    fn begin(what: &str, stage: &Stage, settings: &[&str]) -> io::Result<Option<PostgresServer>> {
        PostgresServer::start(what, stage, &settings.join("\n"))
    }

    fn execute(&self, stage: &Stage, text: &str) -> io::Result<String> {
        self.query(stage, "bank", text)
    }

    fn client(&self) -> String {
        format!("psql -h 127.0.0.1 -p {} -U ann -qAtX bank", self.port)
    }

    fn local_client(&self) -> String {
        let sockets = self.data.with_file_name("sockets");
        format!(
            "psql -h {} -p {} -U ann -qAtX bank",
            sockets.display(),
            self.port
        )
    }

    fn executes_file(&self, file: &Path) -> String {
        let client = self.client();
        format!("{client} -v ON_ERROR_STOP=1 -f {}", file.display())
    }

    fn watched(&self, stage: &Stage, options: &[&str]) -> io::Result<DatabaseWatcher> {
        let connection = format!("postgres://ann@127.0.0.1:{}/bank", self.port);
        DatabaseWatcher::begin(stage, "postgres", options, &connection)
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        let mut command = Command::new(self.programs.join("pg_ctl"));
        command
            .arg("-D")
            .arg(&self.data)
            .args(["-m", "immediate", "-w", "stop"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let _ = self.user.runs(&mut command).status();
    }
}

/// A session of psql. Dropped, it ends.
pub struct PsqlSession {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl PsqlSession {
    /// Executes statements without results, and waits until they are done.
    pub fn query(&mut self, text: &str) -> io::Result<()> {
        let missing = || io::Error::other("no pipe");
        let input = self.child.stdin.as_mut().ok_or_else(missing)?;
        writeln!(input, "{text}\n\\echo done")?;
        let mut line = String::new();
        self.answers.read_line(&mut line).map(drop)
    }
}

impl Drop for PsqlSession {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn succeeds(command: &mut Command) -> io::Result<()> {
    checked(&command.output()?)
}
