//! An answer as a file.
//!
//! | part | bytes |
//! | --- | --- |
//! | the length of the header | 8, little endian |
//! | the header, JSON | as many |
//! | zeros, up to a multiple of 64 | less than 64 |
//! | the buffers of the columns, each at a multiple of 64 | the header has their positions |
//!
//! Invariant: a reader refuses a file of another version of backstory, and one whose header names
//! bytes outside it. Both ends are on one machine, so that numbers have the machine's byte order.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use crate::columns::{AnswerTable, ExactValues};
use crate::failure::Failure;
use crate::layout::{ColumnLayout, LaidOut};
use crate::question::PathWord;

/// The version whose readers understand the file.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The answer to a question.
#[derive(Debug, Default)]
pub struct Answered {
    /// The part that is no table.
    pub facts: AnswerFacts,
    /// The tables, in the order that the question has.
    pub tables: Vec<AnswerTable>,
}

impl Answered {
    /// An answer without tables.
    pub fn facts(facts: AnswerFacts) -> Answered {
        Answered {
            facts,
            tables: Vec::new(),
        }
    }

    /// An answer that is one table.
    pub fn table(table: AnswerTable) -> Answered {
        Answered {
            facts: AnswerFacts::None,
            tables: vec![table],
        }
    }
}

/// The part of an answer that is no table.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub enum AnswerFacts {
    /// All is in tables.
    #[default]
    None,
    /// The directory of the store.
    Directory(PathWord),
    /// Ids of runs.
    Runs(Vec<String>),
    /// Yes or no.
    Truth(bool),
    /// Of a lineage, whose tables are its nodes and links.
    Lineage {
        /// The number of nodes that are the subject: the first ones.
        roots: usize,
        /// True if the answer was cut at the requested depth.
        cut: bool,
        /// The subject's entities in the store.
        versions: Vec<u64>,
    },
    /// Of steps, whose tables are the files, the commands between them, and the commands that
    /// started these: the subject's files by index.
    Steps(Vec<u32>),
    /// Of a comparison, whose table has the differences.
    Diff {
        /// The runs of the first side.
        a: Vec<String>,
        /// The runs of the second side.
        b: Vec<String>,
        /// Outputs with the same content on both sides.
        same_outputs: Vec<Vec<u8>>,
        /// Files that cannot be compared, because a content is not known.
        unknown: Vec<Vec<u8>>,
    },
}

/// The header of the file.
#[derive(Serialize, Deserialize)]
pub struct ReplyHeader {
    /// [`VERSION`]
    pub version: String,
    /// The answer without the buffers of its tables, or the failure to answer.
    pub outcome: Result<(AnswerFacts, Vec<TableLayout>), Failure>,
}

/// A table without its buffers.
#[derive(Serialize, Deserialize)]
pub struct TableLayout {
    /// Where the buffers of the columns are.
    pub columns: Vec<ColumnLayout>,
    /// The bytes of the texts that are not UTF-8, by column.
    pub exact: BTreeMap<String, ExactValues>,
}

/// The next multiple of 64, at which Arrow's buffers are aligned.
pub fn aligned(position: usize) -> usize {
    position.next_multiple_of(64)
}

/// Writes an answer, or the failure to answer.
///
/// # Errors
///
/// Those of the writer.
pub fn write(out: &mut impl Write, outcome: Result<Answered, Failure>) -> io::Result<()> {
    let mut body = LaidOut::default();
    let outcome = outcome.map(|answered| {
        let tables = answered.tables.into_iter().map(|table| TableLayout {
            columns: body.add(table.columns),
            exact: table.exact,
        });
        (answered.facts, tables.collect())
    });
    let header = ReplyHeader {
        version: VERSION.to_owned(),
        outcome,
    };
    let header = serde_json::to_vec(&header)?;
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(&header)?;
    let mut written = 8 + header.len();
    let start = aligned(written);
    for (position, buffer) in &body.buffers {
        let gap = start + position - written;
        out.write_all(&[0; 64][..gap])?;
        out.write_all(buffer)?;
        written += gap + buffer.len();
    }
    out.flush()
}
