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

use arrow_buffer::Buffer;
use serde::{Deserialize, Serialize};

use crate::columns::{AnswerTable, ExactValues};
use crate::failure::Failure;
use crate::layout::{ColumnLayout, LaidOut};
use crate::question::PathWord;

/// The version whose readers understand the file.
const VERSION: &str = env!("CARGO_PKG_VERSION");

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

#[derive(Serialize, Deserialize)]
struct ReplyHeader {
    version: String,
    outcome: Result<(AnswerFacts, Vec<TableLayout>), Failure>,
}

#[derive(Serialize, Deserialize)]
struct TableLayout {
    columns: Vec<ColumnLayout>,
    exact: BTreeMap<String, ExactValues>,
}

/// The next multiple of 64, at which Arrow's buffers are aligned.
fn aligned(position: usize) -> usize {
    position.next_multiple_of(64)
}

/// Writes an answer, or the failure to answer.
///
/// # Errors
///
/// Those of the writer.
pub fn write(out: &mut impl Write, outcome: Result<Answered, Failure>) -> io::Result<()> {
    let mut body = LaidOut::default();
    let outcome = outcome.and_then(|answered| {
        let mut tables = Vec::new();
        for table in answered.tables {
            tables.push(TableLayout {
                columns: body.add(&table.batch)?,
                exact: table.exact,
            });
        }
        Ok((answered.facts, tables))
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

/// Reads an answer. Its tables share the memory of the file.
///
/// # Errors
///
/// The failure that the program wrote; or that this is no answer of this version.
pub fn read(file: &Buffer) -> Result<Answered, Failure> {
    let damaged = || Failure::of_package("the answer of the program is damaged".to_owned());
    let length = file.first_chunk::<8>().ok_or_else(damaged)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| damaged())?;
    let end = length.checked_add(8).ok_or_else(damaged)?;
    let header = file.get(8..end).ok_or_else(damaged)?;
    let header: ReplyHeader = serde_json::from_slice(header).map_err(|_| damaged())?;
    if header.version != VERSION {
        return Err(Failure::of_package(format!(
            "the program is of version {}, and the package of version {VERSION}: \
             install the package again (pip install --force-reinstall backstory)",
            header.version
        )));
    }
    let (facts, layouts) = header.outcome?;
    let start = aligned(end).min(file.len());
    let body = file.slice(start);
    let mut tables = Vec::new();
    for layout in layouts {
        let batch = crate::layout::batch(&body, layout.columns).map_err(|_| damaged())?;
        tables.push(AnswerTable::new(batch, layout.exact));
    }
    Ok(Answered { facts, tables })
}
