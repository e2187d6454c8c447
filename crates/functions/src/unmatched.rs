//! Patterns of libraries that recorded no function, and what to do about it.

use std::fmt;

use crate::exports::UnredirectedReason;

/// A pattern that recorded no function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmatchedPattern {
    /// The pattern of the file.
    pub file: String,
    /// The pattern of the function.
    pub name: String,
    /// The reason in the first file that has the name, and its path. `None`: no process loaded one.
    pub reason: Option<(UnredirectedReason, String)>,
}

impl fmt::Display for UnmatchedPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnmatchedPattern { file, name, reason } = self;
        write!(f, "--functions {file}:{name} recorded nothing: ")?;
        let Some((reason, path)) = reason else {
            return write!(
                f,
                "no dynamically linked program loaded a library of this name; `backstory files` lists the libraries of the run"
            );
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
            UnredirectedReason::ChosenAtLoad => write!(
                f,
                "{path} chooses the code of the function when it is loaded (IFUNC); name a function that calls it"
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

    #[test]
    fn a_pattern_without_functions_says_the_reason_and_the_remedy() {
        let reasons = [
            (UnredirectedReason::NoFunction, "nm -D"),
            (UnredirectedReason::NotExported, "backstory cc"),
            (UnredirectedReason::ChosenAtLoad, "IFUNC"),
            (UnredirectedReason::ReturnsElsewhere, "switches stacks"),
            (UnredirectedReason::OfTheRuntime, "ltrace"),
        ];
        let unmatched = |reason| UnmatchedPattern {
            file: "libz.so".into(),
            name: "x*".into(),
            reason,
        };
        for (reason, word) in reasons {
            let text = unmatched(Some((reason, "/lib/libz.so.1".into()))).to_string();
            assert!(text.contains(word), "{text}");
            assert!(text.contains("--functions libz.so:x*"), "{text}");
        }
        let absent = unmatched(None).to_string();
        assert!(absent.contains("backstory files"), "{absent}");
    }
}
