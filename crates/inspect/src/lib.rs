//! The inspectors: what is inside of a file of a known format, and what changed in it.
//!
//! In: a file's name, and one or two contents in memory. Out: [`FileFacts`] of one content, or
//! [`FileChanges`] between two: plain sentences, and the same as JSON. Or a view of one content, or
//! the difference of two, in a form that formats share.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`facts`] | the form of facts that all formats share |
//! | [`changes`] | compares the facts of two contents |
//! | `formats` | one file for each format |
//! | `parts` | finds the bytes of a cell or a member |
//! | `tables`, `pixels` | compare tables and images, whatever they are stored in |
//! | `text_encoding` | decodes texts |
//! | [`sandbox`] | takes this process's rights away |
//! | [`plugin`] | starts a user's inspector in place of this process |
//! | [`components`] | runs a user's inspector that is a WebAssembly component |
//! | [`worker`] | the start of a worker, and how its answer leaves it |
//!
//! Invariant: an inspector reads nothing but the bytes that it is given. It may crash or run
//! forever on hostile bytes; the caller in crate `inspection` limits that. Absent: files, stores,
//! and the choice of an inspector.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod assignment;
pub mod changes;
pub mod components;
mod expression_types;
pub mod expressions;
pub mod facts;
mod formats;
mod parts;
mod pixels;
pub mod plugin;
pub mod sandbox;
pub mod schemas;
mod tables;
mod text_encoding;
mod visible;
pub mod worker;

pub use backstory_inspection::file_parts::PartName;
pub use changes::FileChanges;
pub use facts::FileFacts;
pub use formats::{by_name, names};

use backstory_comparison::FormatDifference;
use backstory_inspection::Answer;
use backstory_inspection::file_parts::{NoPart, PartAnswer};
use backstory_inspection::format_answer::{FormatAnswer, NotebookCells, TableRows, TextLines};
use backstory_inspection::question::{
    FormatQuestion, Portion, QuestionHead, ReadFormatQuestion, ReadQuestion,
};
use backstory_inspection::row_changes::{DatabaseFiles, RowChanges, RowsWanted};

/// A content of a file, with the file's name.
#[derive(Debug, Clone, Copy)]
pub struct NamedContent<'c> {
    /// The name or path.
    pub name: &'c str,
    /// All bytes.
    pub bytes: &'c [u8],
    /// The columns that the user chose as the key of a table's rows.
    pub key: &'c [String],
}

/// Why a content cannot be read as the format that its name or first bytes promise.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UnreadableContent(pub String);

impl UnreadableContent {
    /// From the error of a reader.
    pub fn of(error: impl std::fmt::Display) -> UnreadableContent {
        UnreadableContent(error.to_string())
    }
}

/// The result of reading a content.
pub type Read<T> = Result<T, UnreadableContent>;

/// Reads one format. Its name, version, and the files that it takes stand in `inspectors.toml` of
/// crate `inspection`.
pub trait Inspector: Sync {
    /// The facts about one content.
    ///
    /// # Errors
    /// The content is not of this format, or damaged.
    fn facts(&self, content: NamedContent<'_>) -> Read<FileFacts>;

    /// The changes from one content to the other: by default, the facts that differ.
    ///
    /// # Errors
    /// One of the contents is not of this format, or damaged.
    fn changes(&self, old: NamedContent<'_>, new: NamedContent<'_>) -> Read<FileChanges> {
        let side = |which: &str, content| {
            self.facts(content)
                .map_err(|error| UnreadableContent(format!("the {which} content: {error}")))
        };
        Ok(changes::between(
            &side("first", old)?,
            &side("second", new)?,
        ))
    }

    /// The difference by cells or pixels. `None` if the contents are not what their names promise,
    /// or if the format has neither.
    ///
    /// # Errors
    /// One of the contents is damaged, or too large to be compared.
    fn difference(
        &self,
        _old: NamedContent<'_>,
        _new: NamedContent<'_>,
    ) -> Read<Option<FormatDifference>> {
        Ok(None)
    }

    /// The text, as UTF-8.
    ///
    /// # Errors
    /// The format has no text, or the content is damaged. The same holds for the other views.
    fn text(&self, _content: NamedContent<'_>) -> Read<Vec<u8>> {
        Err(without("text"))
    }

    /// Lines of the text.
    ///
    /// # Errors
    /// As [`Inspector::text`].
    fn lines(&self, _content: NamedContent<'_>, _part: Portion) -> Read<TextLines> {
        Err(without("lines"))
    }

    /// Rows of the table.
    ///
    /// # Errors
    /// As [`Inspector::text`].
    fn rows(&self, _content: NamedContent<'_>, _part: Portion) -> Read<TableRows> {
        Err(without("rows"))
    }

    /// Cells of the notebook.
    ///
    /// # Errors
    /// As [`Inspector::text`].
    fn cells(&self, _content: NamedContent<'_>, _part: Portion) -> Read<NotebookCells> {
        Err(without("cells"))
    }

    /// Width and height of the image.
    ///
    /// # Errors
    /// As [`Inspector::text`].
    fn size(&self, _content: NamedContent<'_>) -> Read<(u32, u32)> {
        Err(without("size"))
    }

    /// Rows that changed between two states of a database's files.
    ///
    /// # Errors
    /// As [`Inspector::text`].
    fn row_changes(
        &self,
        _wanted: &RowsWanted,
        _older: DatabaseFiles<'_>,
        _newer: DatabaseFiles<'_>,
    ) -> Read<RowChanges> {
        Err(without("rows that change"))
    }

    /// Where a cell or a member is.
    ///
    /// # Errors
    /// The format has no such parts, or the file has no such part, or the content is damaged.
    fn part(&self, _content: NamedContent<'_>, _name: &PartName) -> PartAnswer {
        Err(NoPart::OtherKind)
    }
}

fn without(view: &str) -> UnreadableContent {
    UnreadableContent(format!("its format has no {view} to show"))
}

fn not_built(inspector: &str) -> String {
    format!("this worker was built without the inspector {inspector}")
}

/// Answers a question.
pub fn answer(question: &ReadQuestion<'_>) -> Answer {
    let head = &question.head;
    let mut answer = empty(head);
    let Some(inspector) = by_name(&head.inspector) else {
        answer.error = Some(not_built(&head.inspector));
        return answer;
    };
    let content = |bytes| NamedContent {
        name: &head.name,
        bytes,
        key: &head.key,
    };
    let read = match *question.contents {
        [one] => inspector
            .facts(content(one))
            .map(|facts| answer.facts = facts.json()),
        [old, new] => inspector
            .changes(content(old), content(new))
            .map(|changes| {
                answer.sentences = changes.sentences();
                answer.changes = changes.json();
            }),
        _ => Err(UnreadableContent("there is nothing to inspect".to_owned())),
    };
    answer.error = read.err().map(|error| shown(&error.to_string()));
    answer
}

/// Answers a question about the form of contents.
pub fn answer_format(question: &ReadFormatQuestion<'_>) -> FormatAnswer {
    let head = &question.head;
    let Some(inspector) = by_name(&head.inspector) else {
        return unreadable(&not_built(&head.inspector));
    };
    let content = |bytes| NamedContent {
        name: &head.name,
        bytes,
        key: &head.key,
    };
    use FormatQuestion::{Cells, Difference, Lines, Part, RowChanges, Rows, Size, Text};
    let read = match (head.question, &question.contents[..]) {
        (Difference, [old, new]) => inspector
            .difference(content(old), content(new))
            .map(FormatAnswer::Difference),
        (Text, [one]) => inspector
            .text(content(one))
            .map(|text| FormatAnswer::Text((&text[..]).into())),
        (Lines(part), [one]) => inspector.lines(content(one), part).map(FormatAnswer::Lines),
        (Rows(part), [one]) => inspector.rows(content(one), part).map(FormatAnswer::Rows),
        (Cells(part), [one]) => inspector.cells(content(one), part).map(FormatAnswer::Cells),
        (Size, [one]) => inspector
            .size(content(one))
            .map(|(width, height)| FormatAnswer::Size(width, height)),
        (RowChanges, [wanted, states @ ..]) => {
            row_changes(inspector, wanted, states).map(FormatAnswer::RowChanges)
        }
        (Part, [name, one]) => part(inspector, name, content(one)),
        _ => Err(wrong_number()),
    };
    read.unwrap_or_else(|error| unreadable(&error.to_string()))
}

fn wrong_number() -> UnreadableContent {
    UnreadableContent("the question has another number of contents".to_owned())
}

/// Reads the name of a part, and finds its place.
fn part(inspector: &dyn Inspector, name: &[u8], content: NamedContent<'_>) -> Read<FormatAnswer> {
    let name: PartName = serde_json::from_slice(name).map_err(UnreadableContent::of)?;
    match inspector.part(content, &name) {
        Err(NoPart::Unreadable(why)) => Err(UnreadableContent(why)),
        answer => Ok(FormatAnswer::Part(answer)),
    }
}

/// Reads the parts of a question about changed rows.
fn row_changes(inspector: &dyn Inspector, wanted: &[u8], states: &[&[u8]]) -> Read<RowChanges> {
    let wanted: RowsWanted = serde_json::from_slice(wanted).map_err(UnreadableContent::of)?;
    let [database, log, journal, newer @ ..] = states else {
        return Err(wrong_number());
    };
    let older = DatabaseFiles {
        database,
        log,
        journal,
    };
    let [database, log, journal] = newer else {
        return Err(wrong_number());
    };
    let newer = DatabaseFiles {
        database,
        log,
        journal,
    };
    inspector.row_changes(&wanted, older, newer)
}

/// An answer that says why contents cannot be read.
pub fn unreadable(why: &str) -> FormatAnswer {
    FormatAnswer::Unreadable(shown(why))
}

/// An answer that says why a question gets no other one.
pub fn refusal(head: &QuestionHead, why: &str) -> Answer {
    Answer {
        error: Some(shown(why)),
        ..empty(head)
    }
}

fn shown(error: &str) -> String {
    visible::cut(error, 300)
}

fn empty(head: &QuestionHead) -> Answer {
    Answer {
        inspector: head.inspector.clone(),
        version: head.version,
        facts: serde_json::Map::new(),
        sentences: Vec::new(),
        changes: serde_json::Map::new(),
        error: None,
    }
}
