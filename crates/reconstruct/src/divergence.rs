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
        }
    }
}

/// An input that brought bytes into a recorded process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByteOrigin {
    /// The recorded process id.
    pub pid: u32,
    /// The program.
    pub program: String,
    /// The resource in words.
    pub object: String,
    /// Position in what entered the process from it.
    pub position: u64,
    /// Time-stamp counter when they had come.
    pub time: u64,
    /// The request that they belong to, by its number from 1.
    pub request: Option<usize>,
}

/// A difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Divergence {
    /// Its kind.
    pub kind: DivergenceKind,
    /// The recorded process, by its epoch in the log.
    #[serde(default)]
    pub epoch: u64,
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
    /// The last recorded calls of the process before it, the latest last.
    #[serde(default)]
    pub log_calls: Vec<String>,
    /// The name of the volatile part that it lies in.
    pub volatile: Option<String>,
    /// The words in which both sides differ, the recorded one first. Empty if they are not known.
    #[serde(default)]
    pub words: (Vec<u8>, Vec<u8>),
    /// Time-stamp counter when the recorded bytes left.
    #[serde(default)]
    pub time: u64,
    /// Time-stamp counter of the recorded execution at the point that was reached.
    #[serde(default)]
    pub reached: u64,
    /// The recorded input that brought the recorded word, and that which brought the other one.
    #[serde(default)]
    pub origins: (Option<ByteOrigin>, Option<ByteOrigin>),
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
        self.volatile = difference.volatile.clone();
        self.words = difference.words.clone();
        self.time = difference.time;
    }
}

/// Bytes as text with escapes, in quotes.
pub fn quoted(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes.escape_ascii())
}
