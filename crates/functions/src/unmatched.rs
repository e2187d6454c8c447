//! Patterns of libraries that recorded no function, and what to do about it.

use std::fmt;

use crate::exports::UnredirectedReason;
use crate::patterns::is_of_library;
use crate::ran_programs::RanPrograms;

/// A pattern that recorded no function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmatchedPattern {
    /// The index of the pattern among those of the run.
    pub index: usize,
    /// The pattern of the file, if it has one.
    pub file: Option<String>,
    /// The pattern of the function.
    pub name: String,
    /// The reason in the first file that has the name, and its path. `None`: no process ran one.
    pub reason: Option<(UnredirectedReason, String)>,
    /// The programs that ran.
    pub ran: RanPrograms,
}

impl fmt::Display for UnmatchedPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnmatchedPattern {
            file, name, reason, ..
        } = self;
        match file {
            Some(file) => write!(f, "--functions {file}:{name} recorded nothing: ")?,
            None => write!(f, "--functions {name} recorded nothing: ")?,
        }
        let Some((reason, path)) = reason else {
            return match file.as_deref().is_some_and(is_of_library) {
                true => write!(
                    f,
                    "no dynamically linked program loaded a library of this name; `backstory files` lists the libraries of the run"
                ),
                false => f.write_str(&self.ran.advice(name)),
            };
        };
        match reason {
            UnredirectedReason::NoFunction => write!(
                f,
                "{path} has no such function; `nm -D --defined-only {path}` lists those that it exports"
            ),
            UnredirectedReason::NotExported => write!(
                f,
                "{path} does not export the function; compile the library with `backstory cc` or -finstrument-functions"
            ),
            UnredirectedReason::NotInstrumented => write!(
                f,
                "{path} has the function, but is not instrumented; compile it with `backstory cc` or -finstrument-functions"
            ),
            UnredirectedReason::ChosenAtLoad => write!(
                f,
                "{path} chooses the code of the function when it is loaded (IFUNC), by code that is not in its tables; name a function that calls it"
            ),
            UnredirectedReason::ReturnsElsewhere => write!(
                f,
                "the function in {path} returns twice or switches stacks; name a function that calls it"
            ),
            UnredirectedReason::OfTheRuntime => write!(
                f,
                "functions of {path}, a part of every process, are not redirected; name functions of another library, or use `ltrace`"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unmatched(file: Option<&str>, reason: Option<UnredirectedReason>) -> String {
        let unmatched = UnmatchedPattern {
            index: 0,
            file: file.map(str::to_owned),
            name: "x*".into(),
            reason: reason.map(|reason| (reason, "/lib/libz.so.1".into())),
            ran: RanPrograms::default(),
        };
        unmatched.to_string()
    }

    #[test]
    fn a_pattern_without_functions_says_the_reason_and_the_remedy() {
        let reasons = [
            (UnredirectedReason::NoFunction, "nm -D"),
            (UnredirectedReason::NotExported, "backstory cc"),
            (UnredirectedReason::ChosenAtLoad, "IFUNC"),
            (UnredirectedReason::ReturnsElsewhere, "switches stacks"),
            (UnredirectedReason::OfTheRuntime, "ltrace"),
            (
                UnredirectedReason::NotInstrumented,
                "-finstrument-functions",
            ),
        ];
        for (reason, word) in reasons {
            let text = unmatched(Some("libz.so"), Some(reason));
            assert!(text.contains(word), "{text}");
            assert!(text.contains("--functions libz.so:x*"), "{text}");
        }
        let absent = unmatched(Some("libz.so"), None);
        assert!(absent.contains("backstory files"), "{absent}");
    }

    #[test]
    fn a_pattern_without_a_library_says_how_functions_are_recorded() {
        let absent = unmatched(None, None);
        assert!(
            absent.contains("--functions x* recorded nothing"),
            "{absent}"
        );
        for word in ["backstory cc", "linked dynamically", "its symbols"] {
            assert!(absent.contains(word), "{absent}");
        }
        let program = unmatched(Some("plot"), None);
        assert!(program.contains("plot:x*"), "{program}");
        assert!(!program.contains("loaded a library"), "{program}");
    }
}
