//! Records a command into a store of its own, and asks for the files of the run.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use backstory_sys as sys;
use serde_json::Value;

use crate::file_systems::existing;
use crate::finding::Finding;

const NAME: &str = "trial";

/// Reads one file and writes another.
const SCRIPT: &str = "read line <in; echo \"$line\" >out";

/// The longest time that the background processes of the trial may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Records a shell that reads a file and writes another. The trial's store lies beside the real
/// one, so that it meets the same file system, mount options and limits.
///
/// The calling process becomes a subreaper, and waits for all its children.
pub fn record(store: &Path, program: &Path) -> Finding {
    sys::become_subreaper();
    let base = existing(store);
    let place = tempfile::Builder::new()
        .prefix(".backstory-doctor-")
        .tempdir_in(&base);
    let place = match place {
        Ok(place) => place,
        Err(error) => {
            return Finding::fails(
                NAME,
                format!("no directory can be made in {}: {error}", base.display()),
                "Nothing was recorded.",
                "See the findings above.",
            );
        }
    };
    let finding = attempt(place.path(), program).unwrap_or_else(|error| {
        Finding::fails(
            NAME,
            format!("the trial could not be made: {error}"),
            "Nothing was recorded.",
            "See the findings above.",
        )
    });
    wait_for_background();
    finding
}

/// Waits for the supervisor and the indexer of the trial, which outlive the prompt. While one of
/// them writes into the store, its directory cannot be removed.
fn wait_for_background() {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        match sys::child_change(None, libc::WEXITED) {
            Ok(Some(_)) => {}
            Ok(None) => std::thread::sleep(Duration::from_millis(1)),
            Err(_no_child_left) => return,
        }
    }
}

fn attempt(place: &Path, program: &Path) -> io::Result<Finding> {
    fs::write(place.join("in"), "line\n")?;
    let backstory = |args: &[&str]| -> io::Result<Output> {
        Command::new(program)
            .args(["--store", "store"])
            .args(args)
            .env_remove("BACKSTORY_STORE")
            .current_dir(place)
            .stdin(Stdio::null())
            .output()
    };
    let recorded = backstory(&["record", "--", "/bin/sh", "-c", SCRIPT])?;
    if !recorded.status.success() || !place.join("out").exists() {
        return Ok(Finding::fails(
            NAME,
            format!("`record` failed: {}", first_line(&recorded.stderr)),
            "No command can be recorded.",
            "See the findings above.",
        ));
    }
    let show = parsed(&backstory(&["show", "--json"])?);
    let files = parsed(&backstory(&["files", "--json", "--all"])?);
    let used = |name: &str, access: &str| {
        let all = files.as_array().map_or(&[][..], Vec::as_slice);
        let found = all.iter().find(|file| {
            let path = file["path"].as_str().unwrap_or_default();
            path.ends_with(&format!("/{name}"))
                && file["access"]
                    .as_array()
                    .is_some_and(|list| list.contains(&access.into()))
        });
        found.and_then(|file| file["via"].as_str().map(str::to_owned))
    };
    let (Some(read), Some(_)) = (used("in", "read"), used("out", "write")) else {
        return Ok(Finding::fails(
            NAME,
            "a file that the recorded command used is missing in the record",
            "Records have gaps.",
            "Report this, with the output of `backstory doctor --json`.",
        ));
    };
    let printed = first_line(&recorded.stderr);
    if show["complete"] != true || !recorded.stderr.is_empty() {
        let reasons = show["incomplete_because"].as_array();
        let reasons: Vec<&str> = reasons
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let why = match reasons.is_empty() {
            true => format!("the recorded shell printed: {printed}"),
            false => reasons.join("; "),
        };
        return Ok(Finding::limited(
            NAME,
            format!("a command was recorded, not completely: {why}"),
            "Runs on this machine are not complete, or not silent.",
            "See the findings above.",
        ));
    }
    let by = match read.as_str() {
        "library" => "the recorder",
        _ => "the guard",
    };
    Ok(Finding::works(
        NAME,
        format!("a command was recorded completely, its files by {by}"),
    ))
}

fn parsed(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

fn first_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.lines().next().unwrap_or_default().to_owned()
}
