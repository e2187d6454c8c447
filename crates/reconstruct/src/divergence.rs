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
    /// The name of the volatile part that it lies in.
    pub volatile: Option<String>,
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
    }
}

/// Bytes as text with escapes, in quotes.
pub fn quoted(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes.escape_ascii())
}
