//! A command as a shell line that can be pasted and does the same: directory, environment,
//! arguments.
//!
//! Quotes are those of POSIX where they suffice. Bytes that cannot be printed (control characters,
//! invalid UTF-8) need `$'…'`, which bash, zsh, ksh and the newest POSIX have.

use backstory_eventlog::event::Bytes;
use backstory_graph::model::Activity;
use backstory_query::answer::RunSummary;
use backstory_redaction as redaction;
pub use backstory_workflow::shell::{quote, quote_name};

/// Variables that a shell sets for each command. They say nothing about the command.
const SHELL_NOISE: [&[u8]; 5] = [b"_", b"PWD", b"OLDPWD", b"SHLVL", b"LINES"];

/// If the changed variables take more bytes than this, they are left out of the line, because they
/// would hide the command.
pub const SHORT: usize = 80;

/// The parts of a command that a shell line needs.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// Program, absolute, if known.
    pub exec_path: Option<&'a [u8]>,
    /// The arguments, with the name of the command as argument 0.
    pub argv: &'a [Bytes],
    /// The directory that it ran in.
    pub cwd: &'a [u8],
    /// Variables that the command had and its parent had not, as `NAME=value`.
    pub env_set: &'a [Bytes],
    /// Variables that its parent had and the command had not.
    pub env_unset: &'a [Bytes],
}

impl<'a> Call<'a> {
    /// The call of a recorded activity.
    pub fn of(activity: &'a Activity) -> Call<'a> {
        Call {
            exec_path: activity.exec_path.as_deref(),
            argv: &activity.argv,
            cwd: &activity.cwd,
            env_set: &activity.env_set,
            env_unset: &activity.env_unset,
        }
    }
}

impl Call<'_> {
    /// The whole line, without `cd` if the command ran in `here`.
    pub fn whole(&self, here: &[u8]) -> String {
        self.line(here, usize::MAX).0
    }

    /// The line, and how many variables were left out of it. All of them are left out if they take
    /// more than `most` bytes.
    pub fn line(&self, here: &[u8], most: usize) -> (String, usize) {
        let mut line = String::new();
        if self.cwd != here && !self.cwd.is_empty() {
            line.push_str(&format!("cd {} && ", quote(self.cwd)));
        }
        let (environment, count) = self.environment();
        let fits = environment.len() <= most;
        if fits {
            line.push_str(&environment);
        }
        line.push_str(&self.words());
        (line, if fits { 0 } else { count })
    }

    /// `VAR=value ` or `env -u GONE VAR=value `, as a prefix, and how many variables that is.
    fn environment(&self) -> (String, usize) {
        let gone: Vec<&[u8]> = self
            .env_unset
            .iter()
            .map(|name| &name[..])
            .filter(|name| !is_noise(name))
            .collect();
        let set: Vec<(&[u8], &[u8])> = self
            .env_set
            .iter()
            .filter_map(|pair| split(pair))
            .filter(|(name, value)| !is_noise(name) && !redaction::is_value_mark(value))
            .collect();
        // The shell cannot assign to some names (`BASH_FUNC_f%%=…`). env(1) can.
        let plain = gone.is_empty() && set.iter().all(|(name, _)| is_name(name));
        let count = gone.len() + set.len();
        let mut prefix = String::from(if plain { "" } else { "env " });
        for name in gone {
            prefix.push_str(&format!("-u {} ", quote(name)));
        }
        for (name, value) in set {
            match plain {
                true => prefix.push_str(&format!(
                    "{}={} ",
                    String::from_utf8_lossy(name),
                    if value.is_empty() {
                        String::new()
                    } else {
                        quote(value)
                    }
                )),
                false => prefix.push_str(&format!("{} ", quote(&[name, b"=", value].concat()))),
            }
        }
        (prefix, count)
    }

    /// The program and its arguments. A source's own activity has neither program nor directory:
    /// its words are for people.
    fn words(&self) -> String {
        if let ([what, text], None, b"") = (self.argv, self.exec_path, self.cwd) {
            let plain = |word: &Bytes| String::from_utf8_lossy(word).into_owned();
            let text: Vec<String> = plain(text).split_whitespace().map(Into::into).collect();
            return format!("{}: {}", plain(what), text.join(" "));
        }
        let rest = || self.argv.iter().skip(1).map(|word| quote(word));
        match (self.exec_path, self.argv.first()) {
            (None, None) => "(a process whose program is not known)".to_owned(),
            (Some(path), None) => quote_name(path),
            (Some(path), Some(name)) if !calls(name) => {
                join(std::iter::once(quote_name(path)).chain(rest()))
            }
            // A source named the activity: no shell runs it.
            (None, Some(name)) if self.argv.len() == 1 && name.contains(&b' ') => plain(name),
            (_, Some(name)) => join(std::iter::once(quote_name(name)).chain(rest())),
        }
    }
}

/// The command of a run. A document of another tool may have a name or a line of shell language
/// instead of words, which is not quoted.
pub fn command_of(run: &RunSummary) -> String {
    match &run.command[..] {
        [label] if run.is_imported => plain(label),
        words => self::words(words.iter().map(|word| &word[..])),
    }
}

/// A label on one line, for people.
fn plain(label: &[u8]) -> String {
    let text = String::from_utf8_lossy(label);
    let shown = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if shown.chars().any(char::is_control) {
        return quote(label);
    }
    shown
}

/// Only the arguments: the command line that the user typed after `record --`.
pub fn words<'a>(argv: impl IntoIterator<Item = &'a [u8]>) -> String {
    join(argv.into_iter().map(quote))
}

/// True if a shell runs the same program for `name`. It does not for the `-bash` of a login shell.
/// A base name that differs from the program's is mostly a symbolic link (`sh`, `awk`), which the
/// shell follows, too.
fn calls(name: &[u8]) -> bool {
    !name.is_empty() && !name.starts_with(b"-")
}

fn join(words: impl Iterator<Item = String>) -> String {
    words.collect::<Vec<_>>().join(" ")
}

fn split(pair: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = pair.iter().position(|&byte| byte == b'=')?;
    Some((&pair[..at], &pair[at + 1..]))
}

fn is_noise(name: &[u8]) -> bool {
    SHELL_NOISE.contains(&name)
}

fn is_name(name: &[u8]) -> bool {
    name.first().is_some_and(|byte| !byte.is_ascii_digit())
        && name
            .iter()
            .all(|&byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boxed(words: &[&[u8]]) -> Vec<Bytes> {
        words.iter().map(|word| (*word).into()).collect()
    }

    fn line(argv: &[&[u8]], cwd: &[u8], set: &[&[u8]], unset: &[&[u8]]) -> String {
        let (argv, set, unset) = (boxed(argv), boxed(set), boxed(unset));
        Call {
            exec_path: None,
            argv: &argv,
            cwd,
            env_set: &set,
            env_unset: &unset,
        }
        .whole(b"/here")
    }

    #[test]
    fn a_name_that_a_document_gives_is_not_quoted() {
        let name = b"Run of workflow/packed.cwl#main";
        let text = line(&[name], b"", &[], &[]);
        assert_eq!(text, "Run of workflow/packed.cwl#main");
        assert_eq!(line(&[b"a \x1b[2J"], b"", &[], &[]), r"$'a \033[2J'");
    }

    #[test]
    fn a_plain_command_stays_plain() {
        assert_eq!(
            line(
                &[b"sort", b"-k2,2", b"--key=1", b"a.txt"],
                b"/here",
                &[],
                &[]
            ),
            "sort -k2,2 --key=1 a.txt"
        );
    }

    #[test]
    fn directory_and_environment_come_first() {
        assert_eq!(
            line(&[b"make"], b"/a b", &[b"CC=gcc -m32", b"V=1", b"E="], &[]),
            "cd '/a b' && CC='gcc -m32' V=1 E= make"
        );
        assert_eq!(
            line(&[b"make"], b"/here", &[b"V=1"], &[b"LANG"]),
            "env -u LANG V=1 make"
        );
    }

    #[test]
    fn a_program_with_an_equals_sign_in_its_name_is_no_assignment() {
        assert_eq!(line(&[b"a=b", b"c=d"], b"/here", &[], &[]), "'a=b' c=d");
    }

    #[test]
    fn an_environment_that_would_hide_the_command_is_counted_instead() {
        let (argv, set) = (
            boxed(&[b"cc"]),
            boxed(&[b"COLLECT_GCC_OPTIONS=-O2", b"A=1"]),
        );
        let call = Call {
            exec_path: None,
            argv: &argv,
            cwd: b"",
            env_set: &set,
            env_unset: &[],
        };
        assert_eq!(call.line(b"", 10), ("cc".to_owned(), 2));
        assert_eq!(call.line(b"", 80).1, 0);
    }

    #[test]
    fn an_unknown_secret_is_not_set() {
        assert_eq!(
            line(
                &[b"ls"],
                b"/here",
                &[b"A_TOKEN=<redacted>", b"B_KEY=***", b"C=1"],
                &[]
            ),
            "C=1 ls"
        );
    }

    #[test]
    fn variables_that_a_shell_sets_itself_are_left_out() {
        assert_eq!(
            line(
                &[b"ls"],
                b"/here",
                &[b"_=/bin/ls", b"SHLVL=2", b"PWD=/x"],
                &[b"OLDPWD"]
            ),
            "ls"
        );
    }

    #[test]
    fn a_login_shell_is_called_by_its_path() {
        let argv = boxed(&[b"-bash", b"-c", b"x"]);
        let call = Call {
            exec_path: Some(b"/bin/bash"),
            argv: &argv,
            cwd: b"",
            env_set: &[],
            env_unset: &[],
        };
        assert_eq!(call.whole(b""), "/bin/bash -c x");
    }
}
