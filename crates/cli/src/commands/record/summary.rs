//! The end of a recorded run, for programs (`--json-summary`) and in one line (`--stats`).

use std::fs;
use std::path::Path;
use std::time::Duration;

use backstory_query as query;
use backstory_session as session;
use backstory_store::Home;

use crate::commands::run_summary;
use crate::current_store::CurrentStore;
use crate::error::Failure;
use crate::json::{self, Value};
use crate::text::when;
use crate::text::words::{counted, grouped};

/// The line of `--stats`. It has no numbers of processes and files if processes of the run are
/// still being recorded.
pub fn stats(home: &Home, recorded: &session::RecordingResult, took: Duration) -> String {
    let mut parts = vec![format!("{} elapsed", seconds(took.as_nanos() as i64))];
    if let Some(usage) = recorded.usage {
        parts.extend([
            format!("{} user", seconds(usage.user)),
            format!("{} system", seconds(usage.system)),
            format!("{} peak memory", when::size(usage.peak_memory)),
        ]);
    }
    let summary = || {
        let current = CurrentStore::open(Some(home.dir()))?;
        let details = query::details(&current.store, &recorded.run)?;
        Ok::<_, Failure>(details.summary)
    };
    if !recorded.still_recording
        && let Ok(run) = summary()
    {
        parts.extend([
            counted(run.processes as usize, "process", "processes"),
            format!("{} read", counted(run.files_read as usize, "file", "files")),
            format!("{} written", grouped(run.files_written as usize)),
        ]);
    }
    format!("run {}: {}", recorded.run, parts.join(", "))
}

fn seconds(ns: i64) -> String {
    format!("{:.2} s", ns as f64 / 1e9)
}

/// Checks before the command runs, which may take hours, that the summary can be written.
///
/// # Errors
///
/// It is a directory, or is in none.
pub fn check_summary(path: &Path) -> Result<(), Failure> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if path.is_dir() || !parent.is_dir() {
        return Err(Failure::misuse(format!(
            "cannot write the summary to {}: give a file in an existing directory",
            path.display()
        )));
    }
    Ok(())
}

/// Writes the summary. It is written in place, because FILE may be a pipe or `/dev/fd/3`.
///
/// # Errors
///
/// It cannot be written.
pub fn write_summary(
    path: &Path,
    name: Option<String>,
    recorded: &session::RecordingResult,
) -> std::io::Result<()> {
    let mut text = Vec::new();
    json::object(
        &mut text,
        vec![
            ("run", (&recorded.run).into()),
            ("name", name.as_ref().into()),
            ("exit", recorded.status().into()),
            ("signal", recorded.signal.into()),
            ("complete", recorded.complete.into()),
            ("lost", recorded.lost.into()),
            ("incomplete_because", Value::array(&recorded.reasons)),
            ("warnings", Value::array(&recorded.warnings)),
            ("still_recording", recorded.still_recording.into()),
            ("usage", run_summary::usage(recorded.usage.as_ref())),
        ],
    )?;
    fs::write(path, &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_has_the_end_of_the_run() {
        let dir = std::env::temp_dir().join(format!("backstory-summary-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let path = dir.join("s.json");
        let recorded = session::RecordingResult {
            run: "abc".into(),
            signal: Some(15),
            complete: Some(true),
            ..Default::default()
        };
        write_summary(&path, Some("n".into()), &recorded).unwrap();
        let read: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(
            (&read["run"], &read["exit"], &read["lost"]),
            (&"abc".into(), &143.into(), &0.into())
        );
        fs::remove_dir_all(&dir).unwrap();
    }
}
