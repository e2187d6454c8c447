//! Gaps are reported. A real program provokes each reason of `docs/reasons.md`, in `show` and `show
//! --json`. Without its cause the reason is absent.

mod databases;
mod deaths;
mod lacks;
mod logs;
mod programs;

use backstory_eventlog::reason::{ROWS, UNDECODED};

use super::{Answer, Place};

/// The test that provokes each reason.
const PROVOKED: &[(&str, fn())] = &[
    ("NoFilter", lacks::a_missing_filter_is_reported),
    (
        "NoGuard",
        lacks::a_missing_guard_or_drainer_thread_is_reported,
    ),
    (
        "NotDrained",
        lacks::a_missing_guard_or_drainer_thread_is_reported,
    ),
    ("GuardSilent", lacks::a_guard_that_cannot_log_is_reported),
    (
        "KeeperWithoutListener",
        lacks::a_keeper_without_the_listener_is_reported,
    ),
    ("SupervisorDied", deaths::a_dead_supervisor_is_reported),
    ("KeeperDied", deaths::a_dead_keeper_is_reported),
    ("BothDied", deaths::the_death_of_both_is_reported),
    (
        "EndUnseen",
        deaths::a_supervisor_that_dies_before_the_start_is_reported,
    ),
    (
        "Detached",
        deaths::daemons_that_outlive_the_recording_are_reported,
    ),
    ("LogFailed", logs::a_full_disk_is_reported),
    (
        "DeepEnded",
        logs::a_full_disk_makes_a_deep_run_shallow_and_is_reported,
    ),
    (
        "Unordered",
        logs::a_log_that_is_not_durable_before_the_results_is_reported,
    ),
    (
        "LogReplaced",
        logs::a_log_in_whose_place_another_file_was_put_is_reported,
    ),
    (
        "NotFinalized",
        logs::a_log_that_could_not_be_finalized_is_reported_and_found,
    ),
    ("CutShort", programs::truncated_shared_memory_is_reported),
    (
        "Lost",
        lacks::operations_that_could_not_be_logged_are_counted,
    ),
    (
        "TooManyStatements",
        super::disclosed::a_flood_of_statements_ends_in_the_graph_with_a_reason,
    ),
    (
        "Unwatched",
        programs::a_static_program_without_the_guard_is_reported,
    ),
    (
        "WrongVerdict",
        super::guard_verdicts::a_run_that_believed_a_forged_verdict_is_not_complete,
    ),
    ("Unreadable", programs::an_unreadable_program_is_reported),
    (
        "Unread",
        lacks::memory_that_is_filled_too_late_is_reported_and_delays_no_process,
    ),
    ("SlowFileSystem", lacks::a_hanging_file_system_is_reported),
    ("Killed", logs::a_killed_recording_is_reported),
    (
        "ArenaDamaged",
        logs::a_killed_recording_with_damaged_memory_is_reported,
    ),
    ("NoEnd", logs::a_log_that_was_cut_is_reported),
    ("LogDamaged", logs::a_log_that_was_cut_is_reported),
    (
        "DatabaseGap",
        databases::a_gap_of_a_watched_database_is_reported,
    ),
    (
        "StatementsUnparsed",
        databases::a_statement_that_cannot_be_parsed_is_reported,
    ),
    ("ImportGap", logs::gaps_of_an_imported_log_are_reported),
    ("ImportedTimes", logs::gaps_of_an_imported_log_are_reported),
    (
        "RemoteUnrecorded",
        super::remote_failures::a_machine_that_cannot_keep_the_program_runs_the_command_plainly,
    ),
    (
        "RemoteAbsent",
        super::remote_failures::a_run_that_does_not_come_back_is_a_reason_until_it_comes,
    ),
    (
        "Undecoded",
        programs::an_interface_that_cannot_be_decoded_is_reported_by_name,
    ),
    (
        "PrivilegeLost",
        super::bad_input::privileges::a_program_that_loses_its_privilege_is_named,
    ),
    (
        "OtherRecording",
        programs::a_recording_into_another_store_leaves_a_gap,
    ),
    (
        "ListenerRefused",
        programs::a_program_that_was_refused_a_listener_is_reported,
    ),
];

/// Reasons that other tests provoke. Only root can set a machine's clock, and no test may:
/// `clock.rs` of session tests this reason. Only a defect of recording leaves a directory unknown:
/// `directories.rs` of graph tests that reason. Only root can watch a file system: the test
/// `filesystem` provokes its gap. The test `shell` has the terminal that `OnlyLine` needs. A deep
/// log loses records after seconds without a supervisor: `deep` of session tests that reason. Only
/// a recorded shell has a broker: the test `shell` has a program that runs outside.
const SAID_ELSEWHERE: [&str; 6] = [
    "ClockSet",
    "UnknownDirectory",
    "FileSystemGap",
    "OnlyLine",
    "DeepLost",
    "RanOutside",
];

#[test]
fn every_reason_is_provoked() {
    let provoked: Vec<&str> = PROVOKED
        .iter()
        .map(|of| of.0)
        .chain(SAID_ELSEWHERE)
        .collect();
    let listed: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
    let missing = |from: &[&str], of: &[&str]| -> Vec<String> {
        let absent = of.iter().filter(|name| !from.contains(*name));
        absent.map(|name| (*name).to_owned()).collect()
    };
    assert_eq!(missing(&provoked, &listed), Vec::<String>::new());
    assert_eq!(missing(&listed, &provoked), Vec::<String>::new());
    let names: Vec<&str> = UNDECODED.iter().map(|of| of.0).collect();
    assert_eq!(missing(&programs::names(), &names), Vec::<String>::new());
}

impl Place {
    /// Where [`Place::summarized`] has summaries written.
    fn summary(&self) -> std::path::PathBuf {
        self.stage.path().join("summary.json")
    }

    /// A shell line as [`Place::shell`] takes it. Each `$B record` in it writes a summary, which
    /// the assertions below compare with `show`.
    fn summarized(&self, line: &str) -> Answer {
        let option = format!("--json-summary {}", self.summary().display());
        self.shell(&line.replace("$B record ", &format!("$B record {option} ")))
    }

    /// The summary of the latest run agrees with `show`, if the run wrote one. Only a run whose
    /// recording goes on, or whose log could not be finalized, may leave the verdict open.
    #[track_caller]
    fn summary_agrees(&self) {
        let Ok(text) = std::fs::read(self.summary()) else {
            return;
        };
        let summary: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let show = self.json(&["show", "--json"]);
        if summary["run"] != show["run"] {
            return;
        }
        if summary["complete"].is_null() {
            let open = summary["still_recording"] == true || summary["warnings"][0].is_string();
            assert!(open, "{summary}");
            return;
        }
        for field in ["complete", "lost", "incomplete_because", "warnings"] {
            assert_eq!(
                summary[field], show[field],
                "{field} of {summary} and {show}"
            );
        }
    }

    /// The latest run is not complete, and this is a reason, for people and for programs.
    #[track_caller]
    fn is_reported(&self, sentence: &str) {
        self.is_shown("incomplete_because", "  because", sentence);
        let json = self.json(&["show", "--json"]);
        assert_eq!(json["complete"], false, "{json}");
        self.summary_agrees();
    }

    /// The latest run is complete, with this warning.
    #[track_caller]
    fn has_warning(&self, sentence: &str) {
        self.is_shown("warnings", "warning", sentence);
        let json = self.json(&["show", "--json"]);
        assert_eq!(json["complete"], true, "{json}");
        self.summary_agrees();
    }

    #[track_caller]
    fn is_shown(&self, field: &str, key: &str, sentence: &str) {
        let json = self.json(&["show", "--json"]);
        let told = json[field].as_array().unwrap();
        let is = |value: &serde_json::Value| value.as_str().unwrap().contains(sentence);
        assert!(told.iter().any(is), "no {sentence:?} in {json}");
        let shown = self.run(&["show"]).out;
        let is = |line: &str| line.starts_with(key) && line.contains(sentence);
        assert!(shown.lines().any(is), "no {sentence:?} in {shown}");
    }

    /// The latest run is complete, and nothing is said of it.
    #[track_caller]
    fn is_complete_without_reasons(&self) {
        let json = self.json(&["show", "--json"]);
        let (none, lost) = (serde_json::json!([]), serde_json::json!(0));
        assert_eq!(
            (&json["complete"], &json["lost"]),
            (&true.into(), &lost),
            "{json}"
        );
        assert_eq!(
            (&json["incomplete_because"], &json["warnings"]),
            (&none, &none),
            "{json}"
        );
        let shown = self.run(&["show"]).out;
        let told = |line: &&str| line.starts_with("  because") || line.starts_with("warning");
        assert_eq!(shown.lines().find(told), None, "{shown}");
        self.summary_agrees();
    }

    /// Records a line by a variation of `$B record`, which must give `sentence`. Recorded as usual,
    /// the line gives no reason.
    #[track_caller]
    fn is_reported_only_with(
        &self,
        around: &str,
        options: &str,
        line: &str,
        sentence: &str,
    ) -> Answer {
        let quoted = line.replace('\'', r"'\''");
        let answer = self.summarized(&format!("{around} $B record {options} -- {line}"));
        self.is_reported(sentence);
        let again = self.summarized(&format!("$B record -- sh -c '{quoted}'"));
        assert_eq!(again.err, "", "{again:?}");
        self.is_complete_without_reasons();
        answer
    }
}
