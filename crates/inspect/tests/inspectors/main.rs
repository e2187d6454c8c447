//! The inspectors, each in a real worker, with samples that the format's own tools made.

#![allow(clippy::unwrap_used)]

mod component_filters;
mod components;
mod damaged_databases;
mod format_questions;
mod formats;
mod hostile;
mod malformed;
mod parts;
mod plugins;
mod row_changes;
mod schemas;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use backstory_inspection::{Answer, Catalogue, InspectionWorker, Question, Trouble};
use serde_json::Value;

/// The built worker.
fn worker() -> InspectionWorker {
    InspectionWorker::at(PathBuf::from(env!("CARGO_BIN_EXE_backstory-inspect")))
}

/// Asks the inspector that takes the file.
fn ask(name: &str, first: &[u8], second: Option<&[u8]>) -> Result<Answer, Trouble> {
    let all = Catalogue::built_in();
    let entry = all.choose(name.as_bytes(), first).unwrap();
    ask_entry(&entry.name, name, first, second)
}

/// Asks this inspector.
fn ask_entry(
    inspector: &str,
    name: &str,
    first: &[u8],
    second: Option<&[u8]>,
) -> Result<Answer, Trouble> {
    let all = Catalogue::built_in();
    let mut entries = all.entries().iter();
    let entry = entries.find(|entry| entry.name == inspector).unwrap();
    let question = Question {
        name: name.as_bytes(),
        first,
        second,
        key: &[],
    };
    worker().ask(entry, &question)
}

/// Samples of all formats, made once.
struct Samples {
    directory: tempfile::TempDir,
    expected: Value,
}

impl Samples {
    /// `None`, with a line that says so, if the libraries are not installed.
    fn made() -> Option<&'static Samples> {
        static MADE: OnceLock<Option<Samples>> = OnceLock::new();
        MADE.get_or_init(Samples::make).as_ref()
    }

    fn make() -> Option<Samples> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let python = root.join("../../.venv/inspect/bin/python");
        if !python.exists() {
            backstory_testkit::need::skipped(
                "samples of file formats",
                "needs .venv/inspect (scripts/setup test)",
            );
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let made = Command::new(python)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .arg(root.join("tests/inspectors/samples.py"))
            .arg(directory.path())
            .output()
            .unwrap();
        assert!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stderr)
        );
        let expected = std::fs::read(directory.path().join("expected.json")).unwrap();
        Some(Samples {
            expected: serde_json::from_slice(&expected).unwrap(),
            directory,
        })
    }

    /// Each sample: the format, what is expected, and the two contents.
    fn each(&self) -> impl Iterator<Item = Sample<'_>> {
        let all = self.expected.as_object().unwrap().iter();
        all.map(|(format, expected)| {
            let read = |side: &str| {
                let name = expected[side].as_str().unwrap();
                std::fs::read(self.directory.path().join(name)).unwrap()
            };
            Sample {
                format,
                expected,
                name: expected["old"].as_str().unwrap(),
                old: read("old"),
                new: read("new"),
            }
        })
    }
}

struct Sample<'s> {
    format: &'s str,
    expected: &'s Value,
    name: &'s str,
    old: Vec<u8>,
    new: Vec<u8>,
}
