//! The program as users meet it: commands, exit statuses, output, errors. Each test has a store of
//! its own and runs as an ordinary user, even if the suite runs as root.

// A test stops at a failed expectation. The lint exempts only functions that are marked as tests.
#![allow(clippy::unwrap_used)]

mod account;
mod across;
mod ask;
mod attested;
mod background;
mod bad_input;
mod bookkeeping;
mod bucket_server;
mod byte_marks;
mod byte_parts;
mod bytes;
mod changed_since;
mod ci_templates;
mod clock_back;
mod comes_back;
mod connections;
mod containers;
mod contents;
mod contents_elsewhere;
mod copied_files;
mod copier;
mod crowds;
mod currency;
mod deep;
mod deep_addresses;
mod deep_attempts;
mod deep_bytes;
mod deep_changed;
mod deep_clients;
mod deep_clocks;
mod deep_cut;
mod deep_damage;
mod deep_ends;
mod deep_equal;
mod deep_files;
mod deep_gaps;
mod deep_instructions;
mod deep_isolated;
mod deep_listings;
mod deep_lookups;
mod deep_machine;
mod deep_messages;
mod deep_own_calls;
mod deep_passed;
mod deep_processes;
mod deep_replay;
mod deep_sanitizer;
mod deep_sleeps;
mod deep_sockets;
mod deep_sshd;
mod deep_starts;
mod deep_temporary_names;
mod deep_terminal;
mod deep_threads;
mod deep_time;
mod deep_tools;
mod deep_valgrind;
mod deep_when;
mod deep_whole;
mod deviations;
mod diff;
mod disclosed;
mod disclosed_schemas;
mod disclosed_sqlite;
mod doctor;
mod edited;
mod engines;
mod evidence;
mod evidence_tsa;
mod exchange;
mod exchange_bucket;
mod exchange_cut;
mod exchange_hostile;
mod exchange_ssh;
mod export;
mod exported_steps;
mod exported_words;
mod exported_workflows;
mod file_rows;
mod filter_programs;
mod filters;
mod forget;
mod function_buffers;
mod function_builds;
mod function_bytes;
mod function_processes;
mod function_values;
mod functions;
mod generated;
mod git_note;
mod guard_auto;
mod guard_verdicts;
mod history;
mod hostile_formats;
mod hunt;
mod hunt_chains;
mod hunt_endless;
mod hunt_growing;
mod hunt_live;
mod hunt_questions;
mod inspect;
mod inspect_components;
mod interpreter_functions;
mod jobs;
mod jobs_slurm;
mod kept;
mod kinds;
mod lake;
mod launchers;
mod library_functions;
mod library_loading;
mod limits;
mod migrate;
mod names;
mod neo4j;
mod orphans;
mod packages_then;
mod packaging;
mod peers;
mod pipeline;
mod policies;
mod query;
mod reasons;
mod record;
mod recorded_bytes;
mod remote;
mod remote_behaviour;
mod remote_copies;
mod remote_failures;
mod remote_launchers;
mod remote_root;
mod replay;
mod reproducible;
mod rerun;
mod rerun_hazards;
mod rerun_killed;
mod rerun_safety;
mod rerun_work;
mod root;
mod runs;
mod sandboxes;
mod scene;
mod script_statements;
mod search;
mod spade;
mod spade_itself;
mod standards;
mod stopped;
mod stores;
mod subjects;
mod terminal;
mod tool_file;
mod torn;
mod truth;
mod tui;
mod undeclared;
mod undo;
mod unrecorded;
mod whole;
mod written;

use backstory_files::CLOCK_GRANULARITY;
use std::ffi::OsStr;
use std::process::{Command, Output};

use backstory_testkit::stage::Stage;
use serde_json::Value;

/// A fresh stage with a store, and a working directory `work`.
struct Place {
    stage: Stage,
}

impl Place {
    fn new() -> Place {
        let stage = Stage::new(env!("CARGO_BIN_EXE_backstory")).unwrap();
        stage.directory("work").unwrap();
        Place { stage }
    }

    /// Puts the worker that reads formats beside the program. False if it is not built.
    fn has_inspector(&self) -> bool {
        self.has_worker("backstory-inspect")
    }

    /// Puts a worker beside the program. False if it is not built.
    fn has_worker(&self, name: &str) -> bool {
        let built = env!("CARGO_BIN_EXE_backstory").as_ref();
        let program = self.program();
        backstory_testkit::program::worker_beside(built, program.as_ref(), name).unwrap()
    }

    /// The ids of all runs, the newest first.
    fn runs(&self) -> Vec<String> {
        let log = self.json(&["log", "--json"]);
        let all = log.as_array().unwrap().iter();
        all.map(|run| run["run"].as_str().unwrap().to_owned())
            .collect()
    }

    /// A stage for root, if the suite runs as root.
    fn of_root() -> Option<Place> {
        use backstory_testkit::user::User;
        let stage = Stage::of(User::Myself, env!("CARGO_BIN_EXE_backstory").as_ref()).unwrap();
        if User::ordinary() == User::Myself {
            backstory_testkit::need::skipped("a test as root", "the suite was not started as root");
            return None;
        }
        stage.directory("work").unwrap();
        Some(Place { stage })
    }

    fn work(&self) -> std::path::PathBuf {
        self.stage.path().join("work")
    }

    fn path(&self, name: &str) -> String {
        self.work()
            .join(name)
            .into_os_string()
            .into_string()
            .unwrap()
    }

    /// Writes a file into `work`, owned by the stage's user.
    fn write(&self, name: impl AsRef<std::path::Path>, text: &str) {
        let path = self.work().join(name);
        std::fs::write(&path, text).unwrap();
        self.stage.user().owns(&path).unwrap();
    }

    /// Runs git in `work`, and returns what it printed.
    fn git(&self, args: &[&str]) -> String {
        let mut git = self.stage.command("git");
        git.current_dir(self.work())
            .args(["-c", "user.name=n", "-c", "user.email=e"]);
        let output = git.args(args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Writes a program into `work`, owned by the stage's user, and waits as `write_aged` does.
    fn write_program(&self, name: &str, text: &str) {
        let path = self.work().join(name);
        backstory_testkit::program::write(&path, text.as_bytes()).unwrap();
        self.stage.user().owns(&path).unwrap();
        self.age(name);
    }

    /// The same as `write`, and waits until the file is older than the granularity of the file
    /// system's clock. A younger file may have been changed after it was read.
    fn write_aged(&self, name: &str, text: &str) {
        self.write(name, text);
        self.age(name);
    }

    /// A place with files and their directories. Each is older than the granularity of the clock.
    fn with_files(files: &[(&str, &str)]) -> Place {
        let place = Place::new();
        for (name, text) in files {
            if let Some((directory, _)) = name.rsplit_once('/') {
                place.stage.directory(&format!("work/{directory}")).unwrap();
            }
            place.write(name, text);
        }
        files.iter().for_each(|(name, _)| place.age(name));
        place
    }

    /// Waits until a file is older than the granularity of the clock that stamps files.
    fn age(&self, name: &str) {
        use std::os::unix::fs::MetadataExt;
        use std::time::{Duration, SystemTime};
        let of = std::fs::metadata(self.work().join(name)).unwrap();
        let since = Duration::new(of.ctime() as u64, of.ctime_nsec() as u32);
        let changed = of.modified().unwrap().max(SystemTime::UNIX_EPOCH + since);
        while changed
            .elapsed()
            .is_ok_and(|age| age <= Duration::from_nanos(CLOCK_GRANULARITY.cast_unsigned()))
        {
            std::thread::yield_now();
        }
    }

    /// Waits until all runs have ended, daemons included.
    fn finalized(&self) {
        let part = |entry: std::io::Result<std::fs::DirEntry>| {
            entry.unwrap().path().extension() == Some(OsStr::new("part"))
        };
        while std::fs::read_dir(self.stage.store().join("runs"))
            .unwrap()
            .any(part)
        {
            std::thread::yield_now();
        }
    }

    /// Waits until no process indexes the store in the background, nor will do so at the end of a
    /// run.
    fn quiet(&self) {
        let program = std::path::PathBuf::from(self.program());
        let is_of_a_run = |entry: std::io::Result<std::fs::DirEntry>| {
            let process = entry.unwrap().path();
            let text = |name: &str| std::fs::read_to_string(process.join(name)).unwrap_or_default();
            // The supervisor or the keeper becomes the process that indexes.
            std::fs::read_link(process.join("exe")).is_ok_and(|exe| exe == program)
                && (text("comm").starts_with("backstory-") || text("cmdline").contains("\0index\0"))
        };
        while std::fs::read_dir("/proc").unwrap().any(is_of_a_run) {
            std::thread::yield_now();
        }
    }

    /// `backstory ARGS…` in `work`.
    fn command(&self, args: &[impl AsRef<OsStr>]) -> Command {
        let mut command = self.stage.backstory(args);
        command.current_dir(self.work());
        command
    }

    fn run(&self, args: &[impl AsRef<OsStr>]) -> Answer {
        Answer::of(self.command(args).output().unwrap())
    }

    /// Records a shell line, which must succeed without a message of backstory. Returns the run's
    /// id.
    fn record(&self, line: &str) -> String {
        self.record_with(line, &[])
    }

    /// The same with these variables in the environment.
    fn record_with(&self, line: &str, variables: &[(&str, &str)]) -> String {
        // Not where the line works: the program may list the directory.
        let summary = self.stage.path().join("summary.json");
        let summary = summary.to_str().unwrap().to_owned();
        let args = ["record", "--json-summary", &summary, "--", "sh", "-c", line];
        let mut command = self.command(&args);
        command.envs(variables.iter().copied());
        let answer = Answer::of(command.output().unwrap());
        assert_eq!((answer.status, answer.err.as_str()), (0, ""), "{line}");
        let text = std::fs::read(&summary).unwrap();
        std::fs::remove_file(&summary).unwrap();
        let read: Value = serde_json::from_slice(&text).unwrap();
        read["run"].as_str().unwrap().to_owned()
    }

    /// The JSON answer to a question.
    fn json(&self, args: &[&str]) -> Value {
        let answer = self.run(args);
        assert_eq!((answer.status, answer.err.as_str()), (0, ""), "{args:?}");
        serde_json::from_str(&answer.out)
            .unwrap_or_else(|error| panic!("{args:?}: {error}\n{}", answer.out))
    }
}

/// The output of a command, and its end.
#[derive(Debug)]
struct Answer {
    status: i32,
    out: String,
    err: String,
}

impl Answer {
    fn of(output: Output) -> Answer {
        use std::os::unix::process::ExitStatusExt;
        let status = output
            .status
            .code()
            .unwrap_or_else(|| -output.status.signal().unwrap());
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Answer {
            status,
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }

    /// Asserts an empty stdout, one line `backstory: …` on stderr with all of `words`, and this
    /// status.
    #[track_caller]
    fn is_error(&self, status: i32, words: &[&str]) {
        assert_eq!((self.status, self.out.as_str()), (status, ""), "{self:?}");
        assert!(
            self.err.starts_with("backstory: ") && self.err.lines().count() == 1,
            "{self:?}"
        );
        for word in words {
            assert!(self.err.contains(word), "no {word:?} in {self:?}");
        }
    }
}
