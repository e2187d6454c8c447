//! A difference between the recorded execution and the new one, with both contexts.

use crate::output::OutputDifference;
use serde::{Deserialize, Serialize};

/// The kind of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DivergenceKind {
    /// Other bytes left.
    OtherOutput,
    /// Bytes left behind the recorded end.
    MoreOutput,
    /// Recorded output did not come.
    LessOutput,
    /// The program read behind the recorded end.
    MoreInput,
    /// The program requested a connection or a resource that it had not requested before.
    NewRequest,
    /// The program ended in another manner.
    OtherEnd,
    /// A file is not the one that the recorded program read.
    OtherFile,
}

impl DivergenceKind {
    /// The kind in words.
    pub fn words(self) -> &'static str {
        match self {
            DivergenceKind::OtherOutput => "other output",
            DivergenceKind::MoreOutput => "more output",
            DivergenceKind::LessOutput => "less output",
            DivergenceKind::MoreInput => "a read behind the recorded input",
            DivergenceKind::NewRequest => "a request that was not recorded",
            DivergenceKind::OtherEnd => "another end",
            DivergenceKind::OtherFile => "another file",
        }
    }
}

/// A difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Divergence {
    /// Its kind.
    pub kind: DivergenceKind,
    /// The recorded process id.
    pub pid: u32,
    /// The program.
    pub program: String,
    /// The resource or call in words.
    pub object: String,
    /// Position in the input or output of the resource.
    pub position: u64,
    /// The difference lies within so many bytes from the position on; 1 if the byte is known.
    pub within: u64,
    /// The recorded context.
    pub recorded: String,
    /// The context that came.
    pub came: String,
    /// The last calls of the new execution before it, the latest last.
    pub calls: Vec<String>,
    /// True if both contexts differ in digits of a date, a time or a long random number.
    pub volatile: bool,
}

impl Divergence {
    /// Fills in what a difference of outputs has.
    pub fn describe(&mut self, difference: &OutputDifference) {
        self.position = difference.position;
        self.within = difference.within;
        self.came = quoted(&difference.came);
        self.recorded = match &difference.recorded {
            Some(bytes) if bytes.is_empty() => "the end of the output".to_owned(),
            Some(bytes) => quoted(bytes),
            None => format!("{} bytes with another digest", difference.within),
        };
        self.volatile = difference
            .recorded
            .as_ref()
            .is_some_and(|recorded| looks_volatile(recorded, &difference.came));
    }
}

/// Bytes as text with escapes, in quotes.
pub fn quoted(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes.escape_ascii())
}

/// Bytes behind the difference in which a date or time shows.
const CONTEXT: usize = 16;
/// Hexadecimal digits in a row that count as random.
const RANDOM_DIGITS: usize = 6;

/// True if two texts are equal but for digits that are a part of a date, a time, or a long random
/// number. A single counter is no volatile part.
fn looks_volatile(recorded: &[u8], came: &[u8]) -> bool {
    let length = recorded.len().min(came.len());
    let (recorded, came) = (&recorded[..length], &came[..length]);
    let shape = |bytes: &[u8]| -> Vec<u8> {
        let digit = |byte: &u8| byte.is_ascii_hexdigit();
        let one = |byte: &u8| if digit(byte) { b'0' } else { *byte };
        bytes.iter().map(one).collect()
    };
    if !came.first().is_some_and(u8::is_ascii_hexdigit) || shape(recorded) != shape(came) {
        return false;
    }
    let run = came
        .iter()
        .take_while(|byte| byte.is_ascii_hexdigit())
        .count();
    run >= RANDOM_DIGITS || has_time(&came[..length.min(CONTEXT)])
}

/// True if a text has `:dd` or a year as a word.
fn has_time(text: &[u8]) -> bool {
    let digits = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_digit);
    let minute = text.windows(3).any(|at| at[0] == b':' && digits(&at[1..]));
    minute
        || text
            .windows(5)
            .any(|at| at.starts_with(b" 20") && digits(&at[3..]))
}

#[cfg(test)]
mod tests {
    use super::looks_volatile;

    #[test]
    fn dates_and_random_digits_are_volatile_and_counters_are_not() {
        assert!(looks_volatile(b"4 UTC 2026\n", b"5 UTC 2026\n"));
        assert!(looks_volatile(b"9:51:15 GMT", b"8:02:44 GMT"));
        assert!(looks_volatile(b"deadbeef01\n", b"0123456789\n"));
        assert!(!looks_volatile(b"2:2qer", b"1:2qer"));
        assert!(!looks_volatile(b"17\n", b"18\n"));
        assert!(!looks_volatile(b"4 UTC 2026", b"4 of them!"));
    }
}
