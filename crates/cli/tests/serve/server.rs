//! A place with files and a store, and a server over it.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use backstory_testkit::http::{self, HttpAnswer};
use backstory_testkit::program;
use serde_json::Value;

/// A directory with files, and a store.
pub struct ServedPlace {
    directory: tempfile::TempDir,
    program: PathBuf,
}

impl ServedPlace {
    /// An empty place.
    pub fn new() -> ServedPlace {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("work")).unwrap();
        ServedPlace {
            directory,
            program: env!("CARGO_BIN_EXE_backstory").into(),
        }
    }

    /// An empty place whose program has no worker beside it.
    pub fn without_worker() -> ServedPlace {
        let mut place = ServedPlace::new();
        let program = place.directory.path().join("bin/backstory");
        std::fs::create_dir(program.parent().unwrap()).unwrap();
        program::copy(&place.program, &program).unwrap();
        place.program = program;
        place
    }

    /// Makes the worker beside the program this script of a shell.
    pub fn replace_worker(&self, script: &str) {
        let worker = self.program.with_file_name("backstory-inspect");
        let script = format!("#!/bin/sh\n{script}\n");
        program::write(&worker, script.as_bytes()).unwrap();
    }

    /// True if the workspace's build has left the worker beside the program.
    pub fn has_worker(&self) -> bool {
        program::worker_beside(&self.program, &self.program, "backstory-inspect").unwrap()
    }

    /// The path of a file.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.directory
            .path()
            .canonicalize()
            .unwrap()
            .join("work")
            .join(name)
    }

    /// The store.
    pub fn store(&self) -> PathBuf {
        self.directory.path().join("store")
    }

    /// Writes a file.
    pub fn write(&self, name: impl AsRef<Path>, text: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// `backstory ARGS…` in the place.
    pub fn backstory(&self, args: &[impl AsRef<OsStr>]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args).current_dir(self.path(""));
        // A shell looks at the directory that this names, which is one of a work tree here.
        command.env("PWD", self.path(""));
        command.env("BACKSTORY_STORE", self.store());
        command
    }

    /// Records a command, waits for all of its processes, and brings the store up to date.
    pub fn record(&self, argv: &[impl AsRef<OsStr>]) {
        let mut command = self.backstory(&["record", "--wait", "--contents", "all", "--"]);
        let status = command.args(argv).stderr(Stdio::null()).status().unwrap();
        assert!(status.success(), "{status:?}");
        let indexed = self.backstory(&["index", "--wait"]).status().unwrap();
        assert!(indexed.success(), "{indexed:?}");
    }

    /// Records a line of a shell as one of the four ranks of Slurm's job 71.0.
    pub fn record_rank(&self, rank: u32, line: &str) {
        let mut command = self.backstory(&["record", "--wait", "--", "sh", "-c", line]);
        let place = [("JOB_ID", 71), ("STEP_ID", 0), ("STEP_NUM_TASKS", 4)];
        for (name, value) in place.into_iter().chain([("PROCID", rank)]) {
            command.env(format!("SLURM_{name}"), value.to_string());
        }
        command.stderr(Stdio::null()).status().unwrap();
        let indexed = self.backstory(&["index", "--wait"]).status().unwrap();
        assert!(indexed.success(), "{indexed:?}");
    }

    /// Starts a server.
    pub fn serve(&self, args: &[&str]) -> Server {
        let mut command = self.backstory(&["serve"]);
        command
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let out = child.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("http://127.0.0.1:");
        let address = address.unwrap_or_else(|| panic!("no address: {line:?}"));
        let (port, rest) = address.split_once('/').unwrap();
        let token = rest.split("token=").nth(1).unwrap().to_owned();
        Server {
            child,
            port: port.parse().unwrap(),
            token,
            address: line.trim().to_owned(),
        }
    }
}

/// A running server. It is killed when dropped.
pub struct Server {
    child: Child,
    /// Its port.
    pub port: u16,
    /// Its token.
    pub token: String,
    /// The address that it printed.
    pub address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// The header that admits a program.
    pub fn bearer(&self) -> String {
        format!("Bearer {}", self.token)
    }

    /// A request with the token.
    pub fn ask(&self, method: &str, route: &str, headers: &[(&str, &str)]) -> HttpAnswer {
        let bearer = self.bearer();
        let mut all = vec![("Authorization", bearer.as_str())];
        all.extend(headers);
        http::request(self.port, method, &format!("/api/v1{route}"), &all).unwrap()
    }

    /// An answer that must be a success.
    pub fn get(&self, route: &str) -> Value {
        let answer = self.ask("GET", route, &[]);
        assert_eq!(answer.status, 200, "{route}: {}", answer.text());
        answer.json()
    }

    /// The id of the version that the newest event of a path left.
    pub fn version(&self, path: &Path) -> String {
        let view = self.get(&format!("/file?path={}", encoded(path)));
        let events = view["events"].as_array().unwrap();
        let mut versions = events.iter().filter_map(|event| event["version"].as_str());
        versions.next().unwrap().to_owned()
    }
}

/// A path in a URL.
pub fn encoded(path: impl AsRef<Path>) -> String {
    use std::os::unix::ffi::OsStrExt;
    let bytes = path.as_ref().as_os_str().as_bytes().iter();
    bytes.map(|byte| format!("%{byte:02X}")).collect()
}
