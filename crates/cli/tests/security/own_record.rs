//! A recorded program attacks its own record, and those of earlier runs. Each test is a line of the
//! table in `docs/security.md`.

use std::path::PathBuf;

use crate::oracle::common;
use backstory_testkit::answer::{self, Show};
use backstory_testkit::need::needs;
use backstory_testkit::oracle::{Bench, Case, program, watch};
use backstory_testkit::procs::eventually;
use backstory_testkit::user::User;
use serde_json::Value;
use std::time::Duration;

/// An earlier run, which is sealed, and then a run of `hostile MODE` in the same store.
struct Attacked {
    bench: Bench,
    store: PathBuf,
    first: String,
    /// The line that `hostile` prints before it is done, if there is one.
    reached: Option<usize>,
    status: Option<i32>,
    /// The shell that started it went on.
    went_on: bool,
    stderr: String,
}

impl Attacked {
    fn by(mode: &str) -> Option<Attacked> {
        const FIRST: Case = program("attacked", &["cp", "a", "copy"]);
        if !needs("hostile", &["gcc"]) {
            return None;
        }
        let bench = common::bench(User::ordinary());
        let (outcome, store) = bench.recorded(&FIRST, &["--name", "first"]).unwrap();
        assert_eq!(outcome.code(), 0);
        bench.ask(&store, &["store", "seal", "--all"]).unwrap();
        let first = bench.ask(&store, &["show", "--json", "first"]).unwrap();
        let first: Value = serde_json::from_slice(&first).unwrap();
        let directory = bench.stage().path().join("work/attacked");
        let runs = store.join("runs").display().to_string();
        let line = format!("$FIX/hostile {mode} 1 {runs}; echo then; : >later; exit 7");
        let mut command = bench.stage().backstory(&["record", "--name", "attack"]);
        command
            .args(["--", "sh", "-c", &line])
            .env("BACKSTORY_STORE", &store);
        let outcome = watch(&mut command, &directory).unwrap();
        let text = String::from_utf8_lossy(&outcome.stdout).into_owned();
        let reached = text.lines().find_map(|line| line.strip_prefix("reached "));
        Some(Attacked {
            first: first["run"].as_str().unwrap().to_owned(),
            reached: reached.map(|many| many.parse().unwrap()),
            status: outcome.status.and_then(|status| status.code()),
            went_on: text.contains("done\nthen\n"),
            stderr: String::from_utf8_lossy(&outcome.stderr).into_owned(),
            bench,
            store,
        })
    }

    /// The command had its own status, and the shell went on after the attack.
    fn command_went_on(&self) {
        assert_eq!(
            (self.status, self.went_on),
            (Some(7), true),
            "{}",
            self.stderr
        );
    }

    fn show(&self) -> Result<Show, String> {
        let told = self.bench.ask(&self.store, &["show", "--json", "attack"]);
        let told = told.map_err(|error| error.to_string())?;
        Ok(answer::read(&told).unwrap())
    }

    /// `show` finds no run of this name.
    fn is_gone(&self) {
        let why = self.show().err().unwrap_or_default();
        assert!(why.contains("attack"), "{why}");
    }

    /// The report of `store verify --evidence`.
    fn verified(&self) -> Value {
        let mut command =
            self.bench
                .stage()
                .backstory(&["store", "verify", "--evidence", "--json"]);
        let output = command
            .env("BACKSTORY_STORE", &self.store)
            .output()
            .unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
    }

    /// The earlier run is as it was sealed.
    fn first_is_intact(&self) {
        let report = self.verified();
        assert_eq!(report["sound"], true, "{report}");
        assert_eq!(
            report["intact"],
            serde_json::json!([self.first]),
            "{report}"
        );
    }
}

#[test]
fn logs_with_zeros_in_the_middle_are_lost_if_not_sealed_and_found_if_sealed() {
    let Some(attacked) = Attacked::by("spoil") else {
        return;
    };
    attacked.command_went_on();
    assert_eq!(attacked.reached, Some(2), "both logs");
    let report = attacked.verified();
    assert_eq!(report["sound"], false, "{report}");
    let findings = report["findings"].as_array().unwrap();
    let of_log = findings.iter().find(|one| one["part"] == "log");
    let of_log = of_log.unwrap_or_else(|| panic!("{report}"));
    assert_eq!(of_log["run"], *attacked.first, "{report}");
    assert_eq!(of_log["what"], "was changed", "{report}");
    attacked.is_gone();
}

/// An attack by which the command loses its own log: `record` says so, and the first run stays.
fn is_reported(attack: &str, report: &str) {
    let Some(attacked) = Attacked::by(attack) else {
        return;
    };
    attacked.command_went_on();
    assert_eq!(attacked.reached, Some(1));
    let said = &attacked.stderr;
    assert!(said.contains(report), "{said}");
    attacked.is_gone();
    attacked.first_is_intact();
}

#[test]
fn a_program_that_removes_its_log_is_reported_by_record() {
    is_reported("unlink", "another process removed or replaced the log");
}

#[test]
fn a_program_that_replaces_its_log_is_reported_by_record() {
    is_reported("replace", "another process removed or replaced the log");
}

#[test]
fn a_program_that_kills_the_recording_makes_its_run_incomplete() {
    let Some(attacked) = Attacked::by("kill") else {
        return;
    };
    // The processes that were killed may have taken the command with them.
    let ended = || {
        attacked
            .show()
            .is_ok_and(|told| !told.incomplete_because.is_empty())
    };
    assert!(
        eventually(Duration::from_secs(120), ended),
        "{:?}",
        attacked.show()
    );
    let told = attacked.show().unwrap();
    assert!(!told.complete, "{told:?}");
    let killed = "the recording was killed; operations after that are unknown";
    assert!(
        told.incomplete_because.iter().any(|why| why == killed),
        "{told:?}"
    );
    attacked.first_is_intact();
}

#[test]
fn a_program_that_only_traces_the_recording_changes_nothing() {
    let Some(attacked) = Attacked::by("trace") else {
        return;
    };
    attacked.command_went_on();
    assert!(attacked.reached.is_some());
    let told = attacked.show().unwrap();
    assert!(told.complete, "{told:?}");
    attacked.first_is_intact();
}

#[test]
fn a_forged_gap_makes_the_run_incomplete_and_other_forged_marks_change_no_file() {
    let Some(attacked) = Attacked::by("marks") else {
        return;
    };
    attacked.command_went_on();
    let told = attacked.show().unwrap();
    assert!(!told.complete, "{told:?}");
    let because = &told.incomplete_because;
    let forged = "what ssh started on x is not recorded: ";
    assert!(
        because.iter().all(|why| why.starts_with(forged)),
        "{told:?}"
    );
    assert_eq!(because.len(), 1, "{told:?}");
    // A mark of another process does not say that this run wrote the file.
    let files = attacked
        .bench
        .ask(&attacked.store, &["files", "--json", "attack"]);
    let files: Value = serde_json::from_slice(&files.unwrap()).unwrap();
    let files = files.as_array().unwrap();
    let passwd = files.iter().find(|file| file["path"] == "/etc/passwd");
    let is_written = passwd.is_some_and(|file| file["access"].to_string().contains("write"));
    assert!(!is_written, "{passwd:?}");
    // Nothing in the answers controls the terminal.
    let shown = attacked
        .bench
        .ask(&attacked.store, &["show", "attack"])
        .unwrap();
    assert!(!shown.contains(&0x1b) && !shown.contains(&7));
    attacked.first_is_intact();
}

#[test]
fn a_flood_of_operations_hides_no_later_one() {
    let Some(attacked) = Attacked::by("flood") else {
        return;
    };
    attacked.command_went_on();
    let told = attacked.show().unwrap();
    assert!(told.complete && told.lost == 0, "{told:?}");
    let files = attacked.bench.ask(&attacked.store, &["files", "attack"]);
    let files = String::from_utf8(files.unwrap()).unwrap();
    assert!(files.contains("later"), "{files}");
    attacked.first_is_intact();
}
