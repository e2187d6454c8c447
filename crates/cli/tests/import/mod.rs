//! Logs of other tools become runs that answer like those that backstory recorded itself.

// A test stops at a failed expectation. The lint exempts only functions that are marked as tests.
#![allow(clippy::unwrap_used)]

mod agreement;
mod audit;
mod bad_input;
mod bpftrace;
mod documents;
mod gaps;
mod hostile;
mod lifetime;
mod literal;
mod measured;
mod nextflow;
mod perf;
mod probe;
mod repeated;
mod round_trip;
mod size;
mod spade;

use backstory_testkit::need;
use backstory_testkit::stage::Stage;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Output;

/// A stage with a store, and a working directory `work`.
struct Desk {
    stage: Stage,
}

impl Desk {
    fn new() -> Desk {
        let stage = Stage::new(env!("CARGO_BIN_EXE_backstory")).unwrap();
        stage.directory("work").unwrap();
        Desk { stage }
    }

    /// A stage, if strace is here.
    fn with_strace(what: &str) -> Option<Desk> {
        need::needs(what, &["strace"]).then(Desk::new)
    }

    fn work(&self) -> PathBuf {
        self.stage.path().join("work")
    }

    /// Writes a file into `work`.
    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.work().join(name);
        std::fs::write(&path, bytes).unwrap();
        self.stage.user().owns(&path).unwrap();
        path
    }

    /// Runs a shell line in `work`.
    fn shell(&self, line: &str) -> Output {
        let mut shell = self.stage.command("sh");
        shell
            .args(["-c", line])
            .current_dir(self.work())
            .output()
            .unwrap()
    }

    /// Runs a shell line below strace. The log is `trace.log` beside `work`.
    fn trace(&self, options: &str, line: &str) -> PathBuf {
        let log = self.stage.path().join("trace.log");
        let mut strace = self.stage.command("strace");
        strace.args(options.split_whitespace()).arg("-o").arg(&log);
        strace.args(["sh", "-c", line]).current_dir(self.work());
        strace.output().unwrap();
        log
    }

    fn backstory(&self, args: &[&str]) -> Output {
        let mut command = self.stage.backstory(args);
        command.current_dir(self.work()).output().unwrap()
    }

    /// Imports files of strace, which must succeed.
    #[track_caller]
    fn import(&self, files: &[PathBuf], options: &[&str]) -> String {
        let mut args = vec!["import", "strace"];
        args.extend(files.iter().map(|file| file.to_str().unwrap()));
        args.extend(options);
        let output = self.backstory(&args);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    #[track_caller]
    fn json(&self, args: &[&str]) -> Value {
        let output = self.backstory(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The reasons why the latest run is not complete.
    fn reasons(&self) -> String {
        self.json(&["show", "--json"])["incomplete_because"].to_string()
    }

    /// Files below `runs` of the store.
    fn runs(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.stage.store().join("runs")) else {
            return Vec::new();
        };
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    }
}
