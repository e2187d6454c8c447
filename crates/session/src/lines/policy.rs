//! Which lines of a shell are not recorded, and of which only the line is.
//!
//! In: the user's policy, and a line's text and directory. Out: how the line is recorded.
//!
//! Invariant: a line that could be private is. The text is cut into commands without regard to
//! quotes, so that a quoted `;` can only make a line private that is not.
//!
//! Absent: the files that a program reads by itself. A private directory concerns lines in it, and
//! lines that name it.

use std::path::{Path, PathBuf};

/// The user's policy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinePolicy {
    /// Absolute paths of directories whose lines are not recorded.
    pub private_directories: Vec<PathBuf>,
    /// Patterns of commands whose lines are not recorded.
    pub private_commands: Vec<String>,
    /// Patterns of commands of which only the line is recorded.
    pub noise: Vec<String>,
    /// The home directory, which `~` stands for.
    pub home: Option<PathBuf>,
    /// While a file is there, no line is recorded.
    pub paused: Option<PathBuf>,
}

/// Patterns of commands whose lines are never recorded: they say what the user wants forgotten.
const ALWAYS_PRIVATE: [&str; 2] = ["backstory forget", "*/backstory forget"];

/// How a line is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineVerdict {
    /// With all operations.
    Whole,
    /// Its text, directory, status and times.
    OnlyLine,
    /// Not at all.
    Private,
}

impl LinePolicy {
    /// True if no line that begins now, in this directory, is recorded.
    pub(crate) fn excludes(&self, directory: &[u8]) -> bool {
        let paused = self.paused.as_ref();
        paused.is_some_and(|file| file.exists())
            || self.private_directories.iter().any(|private| {
                let below = directory.strip_prefix(bytes(private));
                below.is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
            })
    }

    /// How a line with this text is recorded. A leading space says that it is not.
    pub(crate) fn judge(&self, text: &[u8]) -> LineVerdict {
        let private = text.first() == Some(&b' ')
            || self.names_private_directory(text)
            || commands(text).any(|command| {
                matches_any(&self.private_commands, command)
                    || matches_any(&ALWAYS_PRIVATE, command)
            });
        if private {
            return LineVerdict::Private;
        }
        let mut commands = commands(text).peekable();
        let noise = commands.peek().is_some()
            && !text.contains(&b'>')
            && commands.all(|command| matches_any(&self.noise, command));
        match noise {
            true => LineVerdict::OnlyLine,
            false => LineVerdict::Whole,
        }
    }

    /// True if a word of the text begins with a private directory.
    fn names_private_directory(&self, text: &[u8]) -> bool {
        self.private_directories.iter().any(|private| {
            let whole = bytes(private).to_vec();
            let in_home = self.home.as_ref().and_then(|home| {
                let below = private.strip_prefix(home).ok()?;
                Some([b"~/", bytes(below)].concat())
            });
            [Some(whole), in_home]
                .into_iter()
                .flatten()
                .any(|name| contains_name(text, &name))
        })
    }
}

fn bytes(path: &Path) -> &[u8] {
    use std::os::unix::ffi::OsStrExt;
    path.as_os_str().as_bytes()
}

/// True if the text has the name of a directory, and the name goes on with a component or ends.
fn contains_name(text: &[u8], name: &[u8]) -> bool {
    let mut found = text.windows(name.len()).enumerate();
    found.any(|(at, window)| {
        let next = text.get(at + name.len());
        let ends = next.is_none_or(|byte| !byte.is_ascii_alphanumeric() && !b"-_.".contains(byte));
        window == name && ends
    })
}

/// Words that stand before a command.
const BEFORE: &[&[u8]] = &[
    b"!", b"do", b"elif", b"else", b"if", b"then", b"time", b"until", b"while",
];

/// The commands of a line, each from its first word on.
fn commands(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| b";|&(){}`\n".contains(byte))
        .map(without_what_stands_before)
        .filter(|command| !command.is_empty())
}

/// A command without reserved words and assignments before it.
fn without_what_stands_before(mut command: &[u8]) -> &[u8] {
    loop {
        command = command.trim_ascii();
        let end = command.iter().position(u8::is_ascii_whitespace);
        let Some(end) = end else {
            return command;
        };
        let word = &command[..end];
        if !BEFORE.contains(&word) && !word.contains(&b'=') {
            return command;
        }
        command = &command[end..];
    }
}

/// True if a pattern is the command or its first words.
fn matches_any(patterns: &[impl AsRef<str>], command: &[u8]) -> bool {
    patterns.iter().any(|pattern| {
        let pattern = pattern.as_ref();
        let words = format!("{pattern} *");
        matches(pattern.as_bytes(), command) || matches(words.as_bytes(), command)
    })
}

/// True if the pattern is the text. `*` stands for anything, and `?` for itself, as in an address:
/// `curl host/?id=*`.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let mut parts = pattern.split(|byte| *byte == b'*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let parts: Vec<&[u8]> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in middle {
        let found = (0..=rest.len()).find(|at| rest[*at..].starts_with(part));
        let Some(at) = found else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::LineVerdict::{OnlyLine, Private, Whole};
    use super::*;

    fn policy() -> LinePolicy {
        let words = |all: &[&str]| all.iter().map(|word| (*word).to_owned()).collect();
        LinePolicy {
            private_directories: vec!["/home/u/.ssh".into()],
            private_commands: words(&["pass *", "gpg --decrypt"]),
            noise: words(&["ls", "git status"]),
            home: Some("/home/u".into()),
            paused: None,
        }
    }

    fn judged(text: &str) -> LineVerdict {
        policy().judge(text.as_bytes())
    }

    #[test]
    fn a_line_that_forgets_is_never_recorded() {
        let policy = LinePolicy::default();
        assert_eq!(policy.judge(b"backstory forget --matching x"), Private);
        assert_eq!(policy.judge(b"cd; backstory forget --last 1m"), Private);
        assert_eq!(policy.judge(b"backstory of x"), Whole);
    }

    #[test]
    fn a_private_command_makes_its_line_private() {
        for text in [
            " anything",
            "pass show mail",
            "cd /; pass show mail | xclip",
            "X=$(pass show mail)",
            "if pass show mail; then :; fi",
            "A=1 B=2 pass show mail",
            "gpg --decrypt",
            "gpg --decrypt file",
            "cat ~/.ssh/config",
            "cat /home/u/.ssh",
            "ls /home/u/.ssh/",
        ] {
            assert_eq!(judged(text), Private, "{text}");
        }
        for text in [
            "passwd x",
            "pass",
            "echo pass show",
            "gpg --decrypt-files",
            "cat /home/u/.sshx",
            "cat ~/.ssh-copy",
        ] {
            assert_eq!(judged(text), Whole, "{text}");
        }
    }

    #[test]
    fn of_noise_only_the_line_is_recorded() {
        for text in [
            "ls",
            "ls -l /tmp",
            "git status",
            "ls; git status -s",
            "time ls",
        ] {
            assert_eq!(judged(text), OnlyLine, "{text}");
        }
        for text in ["ls > files", "lsof", "ls | tee x", "git commit", "", "  "] {
            assert_ne!(judged(text), OnlyLine, "{text}");
        }
    }

    #[test]
    fn a_private_directory_excludes_lines_in_it_and_below() {
        let excludes = |directory: &str| policy().excludes(directory.as_bytes());
        assert!(excludes("/home/u/.ssh"));
        assert!(excludes("/home/u/.ssh/keys"));
        assert!(!excludes("/home/u/.sshx"));
        assert!(!excludes("/home/u"));
    }

    #[test]
    fn nothing_is_recorded_while_the_file_is_there() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut policy = policy();
        policy.paused = Some(file.path().to_owned());
        assert!(policy.excludes(b"/"));
        drop(file);
        assert!(!policy.excludes(b"/"));
    }

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, text, expected) in [
            ("a*c", "abc", true),
            ("a*c", "ac", true),
            ("a*c", "acb", false),
            ("*", "", true),
            ("a*b*c", "a1b2b3c", true),
            ("a*a", "a", false),
            ("abc", "ab", false),
        ] {
            let found = matches(pattern.as_bytes(), text.as_bytes());
            assert_eq!(found, expected, "{pattern} {text}");
        }
    }
}
