//! `replay --deep`: a run is equal again.
//!
//! In: a place with a deep record, or the source of a program that is recorded first. A test fails
//! at its own line if the replay differs. Invariant: nothing is compared on a machine without
//! namespaces or without a compiler, and a notice says so.

use super::deep_replay::recorded_program;
use super::{Answer, Place};

impl Place {
    /// The deep run is equal again.
    #[track_caller]
    pub(super) fn is_equal_again(&self) {
        self.is_equal_again_with(&[], "");
    }

    /// The same with these options. `about` is in the message if the test fails.
    #[track_caller]
    pub(super) fn is_equal_again_with(&self, more: &[&str], about: &str) {
        if let Some(answer) = self.again(more) {
            assert!(is_equal(&answer), "{about} {more:?}: {answer:?}");
        }
    }

    /// The same without the files of the working directory, which are removed.
    #[track_caller]
    pub(super) fn is_equal_without_its_files(&self) {
        self.forget_everything();
        self.is_equal_again();
    }

    /// The deep run ends with a verdict that begins so, and the replay with status 0.
    #[track_caller]
    pub(super) fn is_alike_again(&self, verdict: &str, about: &str) {
        if let Some(answer) = self.again(&[]) {
            assert!(has_verdict(&answer, verdict), "{about}: {answer:?}");
        }
    }

    /// The content of the file `out`, into which recorded programs write.
    #[track_caller]
    pub(super) fn out(&self) -> String {
        std::fs::read_to_string(self.path("out")).unwrap()
    }
}

/// True for the answer that a run is equal again.
pub(super) fn is_equal(answer: &Answer) -> bool {
    has_verdict(answer, "equal: ")
}

fn has_verdict(answer: &Answer, verdict: &str) -> bool {
    answer.status == 0 && answer.err.lines().any(|line| line.starts_with(verdict))
}

/// A place with the deep record of a C program that wrote into the file `out`. `None`: there is no
/// compiler.
pub(super) fn writer(options: &str, name: &str, source: &str) -> Option<Place> {
    recorded_program(options, name, source, &format!("RECORD ./{name} > out"))
}

/// A C program that writes into a file is equal again.
#[track_caller]
pub(super) fn program_is_equal_again(options: &str, name: &str, source: &str) {
    if let Some(place) = writer(options, name, source) {
        place.is_equal_again();
    }
}

/// The same of a program that wrote this text when it was recorded.
#[track_caller]
pub(super) fn program_writes_again(options: &str, name: &str, source: &str, text: &str) {
    if let Some(place) = writer(options, name, source) {
        assert_eq!(place.out(), text);
        place.is_equal_again();
    }
}

/// The line that records `script.py` as it writes into the file `out`.
pub(super) const SCRIPT: &str = "RECORD /usr/bin/python3 script.py > out";

/// A place with the deep record of a line that executes this script of Python, `script.py`.
pub(super) fn recorded_script(script: &str, line: &str) -> Place {
    let place = Place::new();
    place.write_aged("script.py", script);
    place.deep(line);
    place
}

/// A script of Python that writes into a file is equal again.
#[track_caller]
pub(super) fn script_is_equal_again(script: &str) {
    recorded_script(script, SCRIPT).is_equal_again();
}
