//! The text of a seal: what is signed, and what the next seal names by its digest.
//!
//! ```text
//! backstory seal 1
//! number 3
//! before BLAKE3 of the seal before; 64 zeros in the first
//! at 1790000000000000000
//! run 7hx2k9qa                or: removed 7hx2k9qa, or: forgot 7hx2k9qa
//! log BLAKE3                  the parts, in the order of `PART_WORDS`
//! …
//! items BLAKE3                also after forgot: the facts that the run lost
//! key SHA256:…                the signer's key, or none
//! tsa URL                     the time-stamping authority, or none
//! ```
//!
//! Invariant: a text has one reading. Another order, a further line or a missing newline is damage.

use std::fmt::Write as _;

use backstory_files::Digest;
use backstory_store::is_run_id;

/// The first line.
const HEADING: &str = "backstory seal 1";

/// The words of the parts of a run, in the order of their lines.
pub const PART_WORDS: [&str; 9] = [
    "log",
    "deep",
    "bytes",
    "record",
    "processes",
    "files",
    "edges",
    "notes",
    "items",
];

/// The digests of the parts of a run. `None` for a part that the run does not have.
pub type Parts = [Option<Digest>; PART_WORDS.len()];

/// The statement about the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// The run was so.
    Run(Box<Parts>),
    /// The run was removed by `rm`, `forget` or `gc`.
    Removed,
    /// Contents of the run were removed by `forget` or a limit of the store. The digest is that of
    /// the list of its facts about them.
    Forgot(Digest),
}

/// A seal, without its signature and time stamp.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Its number in the chain, from 1.
    pub number: u64,
    /// The digest of the seal before it. Zeros in the first.
    pub before: Digest,
    /// When it was made, in ns since 1970, by the machine's clock.
    pub at: i64,
    /// The run's id.
    pub run: String,
    /// The statement about the run.
    pub subject: Subject,
    /// The fingerprint of the key that signs it.
    pub key: Option<String>,
    /// The address of the authority that stamps it.
    pub tsa: Option<String>,
}

impl Statement {
    /// The text.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{HEADING}\nnumber {}\nbefore {}\nat {}\n",
            self.number, self.before, self.at
        );
        // Writing to a string cannot fail.
        let mut line = |word: &str, value: &str| {
            let _ = writeln!(text, "{word} {value}");
        };
        match &self.subject {
            Subject::Removed => line("removed", &self.run),
            Subject::Forgot(list) => {
                line("forgot", &self.run);
                line(LIST, &list.to_string());
            }
            Subject::Run(parts) => {
                line("run", &self.run);
                for (word, part) in PART_WORDS.iter().zip(parts.iter()) {
                    match part {
                        Some(digest) => line(word, &digest.to_string()),
                        None => line(word, NONE),
                    }
                }
            }
        }
        line("key", self.key.as_deref().unwrap_or(NONE));
        line("tsa", self.tsa.as_deref().unwrap_or(NONE));
        text
    }

    /// Reads a text. The error is a phrase for a message about the file.
    pub fn parse(text: &str) -> Result<Statement, String> {
        let mut lines = Lines(text.lines(), 1);
        if lines.0.next() != Some(HEADING) {
            return Err(format!("it does not begin with the line `{HEADING}`"));
        }
        let number = lines.number("number")?;
        let before = lines.digest("before")?;
        let at = lines.number("at")?;
        let (word, run) = lines.pair()?;
        let (run, subject) = match word {
            "removed" => (run.to_owned(), Subject::Removed),
            "forgot" => (run.to_owned(), Subject::Forgot(lines.digest(LIST)?)),
            "run" => {
                let run = run.to_owned();
                let mut parts: Parts = Default::default();
                for (word, part) in PART_WORDS.iter().zip(parts.iter_mut()) {
                    *part = match lines.value(word)? {
                        NONE => None,
                        value => Some(value.parse().map_err(|_| lines.wrong(word))?),
                    };
                }
                (run, Subject::Run(Box::new(parts)))
            }
            _ => return Err(lines.wrong("run")),
        };
        if !is_run_id(&run) {
            return Err(lines.wrong("run"));
        }
        let option = |value: &str| (value != NONE).then(|| value.to_owned());
        let key = option(lines.value("key")?);
        let tsa = option(lines.value("tsa")?);
        let statement = Statement {
            number,
            before,
            at,
            run,
            subject,
            key,
            tsa,
        };
        // Spaces, signs and leading zeros would be other texts for the same statement.
        match statement.text() == text {
            true => Ok(statement),
            false => Err("it is not in the form that backstory writes".to_owned()),
        }
    }
}

const NONE: &str = "none";
/// The word of the digest of a list of items.
const LIST: &str = PART_WORDS[PART_WORDS.len() - 1];

/// The lines of a text that are left, and the number of the last one.
struct Lines<'t>(std::str::Lines<'t>, usize);

impl<'t> Lines<'t> {
    fn pair(&mut self) -> Result<(&'t str, &'t str), String> {
        self.1 += 1;
        let line = self.0.next().and_then(|line| line.split_once(' '));
        line.ok_or_else(|| format!("line {} is missing or has one word only", self.1))
    }

    fn value(&mut self, word: &str) -> Result<&'t str, String> {
        match self.pair()? {
            (found, value) if found == word => Ok(value),
            _ => Err(self.wrong(word)),
        }
    }

    fn number<N: std::str::FromStr>(&mut self, word: &str) -> Result<N, String> {
        self.value(word)?.parse().map_err(|_| self.wrong(word))
    }

    fn digest(&mut self, word: &str) -> Result<Digest, String> {
        self.value(word)?.parse().map_err(|_| self.wrong(word))
    }

    fn wrong(&self, word: &str) -> String {
        format!("line {} is not a line `{word}`", self.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn statement() -> Statement {
        let mut parts = [Some(Digest([7; 32])); PART_WORDS.len()];
        parts[1] = None;
        Statement {
            number: 3,
            before: Digest([1; 32]),
            at: 5,
            run: "7hx2k9qa".to_owned(),
            subject: Subject::Run(Box::new(parts)),
            key: Some("SHA256:abc".to_owned()),
            tsa: None,
        }
    }

    #[test]
    fn a_statement_is_read_as_it_was_written() {
        let mut one = statement();
        assert_eq!(Statement::parse(&one.text()), Ok(one.clone()));
        for subject in [Subject::Removed, Subject::Forgot(Digest([9; 32]))] {
            one.subject = subject;
            assert_eq!(Statement::parse(&one.text()), Ok(one.clone()));
        }
    }

    proptest! {
        #[test]
        fn a_statement_with_a_changed_byte_is_another_one_or_none(at in 0usize..1000, byte: u8) {
            let text = statement().text().into_bytes();
            let mut changed = text.clone();
            let at = at % changed.len();
            changed[at] = byte;
            prop_assume!(changed != text);
            if let Ok(read) = Statement::parse(&String::from_utf8_lossy(&changed)) {
                prop_assert_ne!(read, statement());
            }
        }
    }
}
