//! How failures reach the user: one line on stderr, and an exit status for the kind of failure.

use std::fmt::Display;
use std::process::ExitCode;

pub use backstory_vocabulary::error_chain as chain;

use crate::text::similar::command_for;

/// Kinds of failure, by exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The subject of the question does not exist, or the question could not be answered.
    NotFound,
    /// The command line is wrong.
    Misuse,
    /// `record` was misused, or failed before its command started.
    Record,
}

impl Status {
    /// The number `main` exits with.
    pub fn code(self) -> u8 {
        match self {
            Status::NotFound => 1,
            Status::Misuse => 2,
            Status::Record => 125,
        }
    }
}

/// A failure in one line: what failed, on what, what to do.
#[derive(Debug)]
pub struct Failure {
    /// The kind.
    pub status: Status,
    /// The line, without `backstory: `. Empty if the reader of a pipe is gone and nothing is
    /// printed.
    pub line: String,
}

impl Failure {
    /// A failure of kind [`Status::NotFound`].
    pub fn not_found(line: impl Display) -> Failure {
        Failure {
            status: Status::NotFound,
            line: one_line(&line.to_string()),
        }
    }

    /// A failure of kind [`Status::Misuse`].
    pub fn misuse(line: impl Display) -> Failure {
        Failure {
            status: Status::Misuse,
            line: one_line(&line.to_string()),
        }
    }

    /// The same failure with the exit status of `record`, which is 125 for all of its own failures.
    pub fn of_record(self) -> Failure {
        Failure {
            status: Status::Record,
            ..self
        }
    }

    /// True if the reader of the answer is gone (`backstory files | head`). This prints no line.
    pub fn is_silent(&self) -> bool {
        self.line.is_empty()
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Failure {
                status: Status::NotFound,
                line: String::new(),
            },
            // The content could not be read. Writing the answer did not fail.
            _ if error
                .get_ref()
                .is_some_and(|inner| inner.is::<backstory_contents::Error>()) =>
            {
                Failure::not_found(error)
            }
            _ => Failure::not_found(format!("cannot write the answer: {error}")),
        }
    }
}

impl From<backstory_answers::Failure> for Failure {
    fn from(failure: backstory_answers::Failure) -> Failure {
        match failure.is_misuse() {
            true => Failure::misuse(failure.line),
            false => Failure::not_found(failure.line),
        }
    }
}

/// The failures that the answers for other programs have, too. They have the same class and wording
/// there.
macro_rules! fails_as_answers {
    ($($error:ty),*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Failure {
                backstory_answers::Failure::from(error).into()
            }
        }
    )*};
}

fails_as_answers!(
    backstory_contents::Error,
    backstory_currency::Error,
    backstory_query::Error,
    backstory_replay::Error,
    backstory_store::Error,
    backstory_workflow::Error
);

impl From<backstory_scene::Error> for Failure {
    fn from(error: backstory_scene::Error) -> Failure {
        use backstory_scene::Error;
        match error {
            Error::Query(error) => error.into(),
            Error::Store(error) => error.into(),
            error => Failure::not_found(chain(&error)),
        }
    }
}

/// A usage error of the parser, in one line.
pub fn usage(error: &clap::Error, command: Option<&str>) -> String {
    use clap::error::{ContextKind, ErrorKind};
    let told = |kind| error.get(kind).map(ToString::to_string);
    let text = error.render().to_string();
    let first = text
        .trim_start_matches("error: ")
        .split("\n\n")
        .next()
        .unwrap_or_default();
    let unknown = error.kind() == ErrorKind::InvalidSubcommand;
    let name = told(ContextKind::InvalidSubcommand);
    // The unknown word may be the command itself, or one of its commands.
    let command = command.filter(|command| !unknown || name.as_deref() != Some(command));
    let common = name.as_deref().filter(|_| unknown && command.is_none());
    let common = common.and_then(command_for).map(str::to_owned);
    let what = match (error.kind(), name) {
        (ErrorKind::MissingRequiredArgument, _) => match told(ContextKind::InvalidArg) {
            Some(_) if command == Some("record") => {
                "the command is missing: backstory record -- CMD ARGS...".to_owned()
            }
            Some(missing) if missing == "<RUN>..." && text.contains("store seal") => {
                "name the runs to seal, or all of them with --all".to_owned()
            }
            // `--key` and `--column` are for tables alone.
            Some(missing) if missing.starts_with("--table <TABLE>,") => {
                "--table <TABLE> is missing".to_owned()
            }
            Some(missing) => format!("{missing} is missing"),
            None => first.to_owned(),
        },
        (_, Some(name)) if unknown => match command {
            Some(command) => format!("{command} has no command {name:?}"),
            None => format!("there is no command {name:?}"),
        },
        _ => first.to_owned(),
    };
    let similar = [
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedArg,
        ContextKind::SuggestedValue,
    ];
    let meant = common.or_else(|| similar.into_iter().find_map(told));
    let meant = meant.map_or(String::new(), |meant| format!(", did you mean {meant}?"));
    let hint = help_of(&text, command);
    format!("{}{meant} (see `{hint}`)", one_line(&what))
}

/// The help about a usage error: of `backstory store migrate`, not of `store`, if that was meant.
/// `text`: the parser's message, with its line `Usage:`.
fn help_of(text: &str, command: Option<&str>) -> String {
    let Some(command) = command else {
        return "backstory --help".to_owned();
    };
    let usage = text.rsplit_once("Usage: ").map_or("", |(_, usage)| usage);
    let is_name = |word: &&str| {
        let mut bytes = word.bytes();
        !word.starts_with('-') && bytes.all(|byte| byte.is_ascii_lowercase() || byte == b'-')
    };
    // The first word is the program.
    let names: Vec<&str> = usage
        .split_whitespace()
        .skip(1)
        .take_while(is_name)
        .collect();
    match names.first() {
        Some(first) if *first == command => format!("backstory {} --help", names.join(" ")),
        _ => format!("backstory {command} --help"),
    }
}

/// Prints the line, if there is one, and returns the exit status.
pub fn report(failure: &Failure) -> ExitCode {
    if !failure.is_silent() {
        complain(&failure.line);
    }
    ExitCode::from(failure.status.code())
}

/// Prints `backstory: LINE` on stderr. A closed stderr is no failure.
pub fn complain(line: &str) {
    use std::io::Write;
    crate::text::progress::clear();
    let text = format!("backstory: {}\n", one_line(line));
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// The text in one line, without control characters.
pub fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words
        .join(" ")
        .chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_one_line_without_control_characters() {
        assert_eq!(Failure::misuse("a\n  b\tc\x1b[31m").line, "a b c?[31m");
    }

    #[test]
    fn a_usage_error_leads_to_the_help_of_the_innermost_command() {
        let text = "error: …\n\nUsage: backstory store migrate --connection <URL> --to <ENGINE>\n";
        assert_eq!(
            help_of(text, Some("store")),
            "backstory store migrate --help"
        );
        assert_eq!(help_of(text, Some("of")), "backstory of --help");
        assert_eq!(help_of("error: …", Some("of")), "backstory of --help");
        assert_eq!(help_of(text, None), "backstory --help");
    }

    #[test]
    fn a_reader_that_is_gone_causes_no_line() {
        let gone = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        assert!(Failure::from(gone).is_silent());
        assert!(!Failure::from(std::io::Error::other("disk")).is_silent());
    }
}
