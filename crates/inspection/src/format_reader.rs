//! Reads contents in the terms of their format, for every command that compares or shows them.
//!
//! In: a file's name and contents in memory. Out: the difference of two contents, or a view of one.
//! Texts are compared by their lines in this process, as no format is read for that. Every other
//! format is read by the worker.
//!
//! Invariant: a content that crashes its reader, or a missing worker, costs a limited time. The
//! caller gets the reason, and the difference by lines or bytes.

use std::path::PathBuf;
use std::time::Duration;

use backstory_comparison::{ContentDifference, LARGEST, compare, is_text};

use crate::file_parts::{NoPart, PartAnswer, PartName};
use crate::format_answer::{FormatAnswer, NotebookCells, TableRows, TextLines};
use crate::question::{FormatQuestion, Portion};
use crate::row_changes::{DatabaseFiles, RowChanges, RowsWanted};
use crate::worker::printable;
use crate::{Answer, Catalogue, InspectionWorker, InspectorEntry, TableKeys, Trouble};

/// Inspectors whose formats are compared by cells or pixels.
const COMPARED: [&str; 4] = ["arrow", "csv", "image", "parquet"];

/// The inspectors of the files of SQLite.
const DATABASE: &str = "sqlite";
const DATABASE_LOG: &str = "sqlite-wal";

/// Reads contents by their formats.
#[derive(Debug, Clone)]
pub struct FormatReader {
    catalogue: Catalogue,
    keys: TableKeys,
    /// Without a worker: the directory in which it could be installed.
    worker: Result<InspectionWorker, PathBuf>,
}

/// How two contents differ.
#[derive(Debug)]
pub struct ComparedContents {
    /// By cells, pixels or lines. By lines or bytes if there is a `trouble`.
    pub difference: ContentDifference,
    /// Why the format was not read.
    pub trouble: Option<Trouble>,
}

impl From<ContentDifference> for ComparedContents {
    fn from(difference: ContentDifference) -> ComparedContents {
        ComparedContents {
            difference,
            trouble: None,
        }
    }
}

impl FormatReader {
    /// A reader that asks the installed worker.
    pub fn new() -> FormatReader {
        FormatReader::by(InspectionWorker::find())
    }

    /// A reader that asks this worker. Without one: the directory in which it could be installed.
    pub fn by(worker: Result<InspectionWorker, PathBuf>) -> FormatReader {
        FormatReader {
            catalogue: Catalogue::built_in(),
            keys: TableKeys::default(),
            worker,
        }
    }

    /// The same reader, whose worker is killed after this time.
    pub fn within(self, patience: Duration) -> FormatReader {
        FormatReader {
            worker: self.worker.map(|worker| worker.within(patience)),
            ..self
        }
    }

    /// The same reader, which matches rows of tables by these keys.
    pub fn by_keys(self, keys: TableKeys) -> FormatReader {
        FormatReader { keys, ..self }
    }

    /// Compares two contents of the file `name`.
    pub fn compare(&self, name: &[u8], a: &[u8], b: &[u8]) -> ComparedContents {
        self.compare_unless(name, (a, b), || None)
    }

    /// The same. If `refusal` has a reason, the worker is not asked.
    pub fn compare_unless(
        &self,
        name: &[u8],
        (a, b): (&[u8], &[u8]),
        refusal: impl FnOnce() -> Option<Trouble>,
    ) -> ComparedContents {
        if a == b {
            return ContentDifference::Same.into();
        }
        let Some(entry) = self.compared_format(name, a, b) else {
            return compare(a, b).into();
        };
        if a.len().max(b.len()) > LARGEST {
            let large = format!(
                "it has more than {} MiB: `backstory inspect` compares two files by their key",
                LARGEST >> 20
            );
            return ComparedContents {
                difference: compare(a, b),
                trouble: self.unused_key(entry, name, large),
            };
        }
        let read = match refusal() {
            Some(trouble) => Err(trouble),
            None if entry.name == "text" => self.texts(entry, name, a, b).map(Some),
            None => self.difference(entry, name, a, b),
        };
        match read {
            Ok(Some(difference)) => difference.into(),
            // The contents are not what the name promises.
            Ok(None) => ComparedContents {
                difference: compare(a, b),
                trouble: self.unused_key(entry, name, "it is no table with columns".to_owned()),
            },
            Err(trouble) => ComparedContents {
                difference: compare(a, b),
                trouble: Some(trouble),
            },
        }
    }

    /// Says that a chosen key was not used. `None` if the user chose no key.
    fn unused_key(&self, entry: &InspectorEntry, name: &[u8], because: String) -> Option<Trouble> {
        let key = self.keys.of(&entry.name, name);
        (!key.is_empty()).then(|| Trouble::NoKey {
            object: printable(&String::from_utf8_lossy(name)),
            because,
        })
    }

    /// The format of both contents, if a worker is needed to compare them.
    fn compared_format(&self, name: &[u8], a: &[u8], b: &[u8]) -> Option<&InspectorEntry> {
        let entry = self.catalogue.choose(name, b)?;
        let is_compared = match entry.name.as_str() {
            // A text in UTF-16 is decoded first.
            "text" => !(is_text(a) && is_text(b)),
            name => COMPARED.contains(&name),
        };
        (is_compared && self.catalogue.takes(entry, name, a)).then_some(entry)
    }

    fn difference(
        &self,
        entry: &InspectorEntry,
        name: &[u8],
        a: &[u8],
        b: &[u8],
    ) -> Result<Option<ContentDifference>, Trouble> {
        let found = |answer| match answer {
            FormatAnswer::Difference(found) => Some(found.map(ContentDifference::from)),
            _ => None,
        };
        self.ask(entry, name, FormatQuestion::Difference, &[a, b], found)
    }

    /// Compares texts of which one is not UTF-8. If only the encodings differ, the bytes do.
    fn texts(
        &self,
        entry: &InspectorEntry,
        name: &[u8],
        a: &[u8],
        b: &[u8],
    ) -> Result<ContentDifference, Trouble> {
        let decoded = |content| {
            let text = |answer| match answer {
                FormatAnswer::Text(text) => Some(text.0),
                _ => None,
            };
            self.ask(entry, name, FormatQuestion::Text, &[content], text)
        };
        let (old, new) = (decoded(a)?, decoded(b)?);
        Ok(match old == new {
            true => compare(a, b),
            false => compare(&old, &new),
        })
    }

    /// Lines of a text that is not UTF-8.
    ///
    /// # Errors
    /// The worker is not installed, or gave no answer that may be used.
    pub fn lines(&self, name: &[u8], text: &[u8], part: Portion) -> Result<TextLines, Trouble> {
        self.view(
            "text",
            name,
            FormatQuestion::Lines(part),
            text,
            |answer| match answer {
                FormatAnswer::Lines(lines) => Some(lines),
                _ => None,
            },
        )
    }

    /// Rows of a table of the format `csv` or `parquet`.
    ///
    /// # Errors
    /// As [`FormatReader::lines`].
    pub fn rows(
        &self,
        format: &str,
        name: &[u8],
        table: &[u8],
        part: Portion,
    ) -> Result<TableRows, Trouble> {
        self.view(
            format,
            name,
            FormatQuestion::Rows(part),
            table,
            |answer| match answer {
                FormatAnswer::Rows(rows) => Some(rows),
                _ => None,
            },
        )
    }

    /// Cells of a notebook.
    ///
    /// # Errors
    /// As [`FormatReader::lines`].
    pub fn cells(&self, name: &[u8], file: &[u8], part: Portion) -> Result<NotebookCells, Trouble> {
        self.view(
            "ipynb",
            name,
            FormatQuestion::Cells(part),
            file,
            |answer| match answer {
                FormatAnswer::Cells(cells) => Some(cells),
                _ => None,
            },
        )
    }

    /// Width and height of an image, of which the first bytes may be enough.
    ///
    /// # Errors
    /// As [`FormatReader::lines`].
    pub fn image_size(&self, name: &[u8], image: &[u8]) -> Result<(u32, u32), Trouble> {
        self.view(
            "image",
            name,
            FormatQuestion::Size,
            image,
            |answer| match answer {
                FormatAnswer::Size(width, height) => Some((width, height)),
                _ => None,
            },
        )
    }

    /// Rows of a database of SQLite that changed from one state of its files to another. Without
    /// an older state, only the newer one's write-ahead log tells changes.
    ///
    /// # Errors
    /// As [`FormatReader::lines`].
    pub fn row_changes(
        &self,
        name: &[u8],
        older: Option<DatabaseFiles<'_>>,
        newer: DatabaseFiles<'_>,
        (table, key): (Option<&str>, Option<&str>),
    ) -> Result<RowChanges, Trouble> {
        let rows = RowsWanted {
            has_older: older.is_some(),
            table: table.map(str::to_owned),
            key: key.map(str::to_owned),
            as_one: false,
        };
        self.wanted_rows(name, &rows, older.unwrap_or_default(), newer)
    }

    /// Rows of a database of SQLite that differ between two states of its files, whichever
    /// transactions changed them, as the answer of an inspector.
    ///
    /// # Errors
    /// As [`FormatReader::lines`].
    pub fn differing_rows(
        &self,
        name: &[u8],
        older: DatabaseFiles<'_>,
        newer: DatabaseFiles<'_>,
    ) -> Result<Answer, Trouble> {
        let rows = RowsWanted {
            has_older: true,
            as_one: true,
            ..RowsWanted::default()
        };
        let found = self.wanted_rows(name, &rows, older, newer)?;
        let entry = self.entry(DATABASE, name)?;
        let changes = match serde_json::to_value(&found) {
            Ok(serde_json::Value::Object(changes)) => changes,
            _ => serde_json::Map::new(),
        };
        Ok(Answer {
            inspector: entry.name.clone(),
            version: entry.version,
            facts: serde_json::Map::new(),
            sentences: found.sentences(),
            changes,
            error: None,
        })
    }

    /// True for a content that is a database of SQLite, or its write-ahead log.
    pub fn is_of_database(&self, name: &[u8], content: &[u8]) -> bool {
        let format = self.format_of(name, content);
        format.is_some_and(|entry| [DATABASE, DATABASE_LOG].contains(&&*entry.name))
    }

    fn wanted_rows(
        &self,
        name: &[u8],
        rows: &RowsWanted,
        older: DatabaseFiles<'_>,
        newer: DatabaseFiles<'_>,
    ) -> Result<RowChanges, Trouble> {
        let rows = serde_json::to_vec(rows).unwrap_or_default();
        let states = [older.parts(), newer.parts()].concat();
        let parts = [&[&rows[..]][..], &states].concat();
        let entry = self.entry(DATABASE, name)?;
        let found = |answer| match answer {
            FormatAnswer::RowChanges(found) => Some(found),
            _ => None,
        };
        self.ask(entry, name, FormatQuestion::RowChanges, &parts, found)
    }

    /// The inspector that reads a content's format. `None` if no inspector does.
    pub fn format_of(&self, name: &[u8], content: &[u8]) -> Option<&InspectorEntry> {
        self.catalogue.choose(name, content)
    }

    /// Where a cell or a member is in a content of this format.
    ///
    /// # Errors
    /// As [`FormatReader::lines`]. A part that is not there is an answer.
    pub fn part(
        &self,
        entry: &InspectorEntry,
        name: &[u8],
        content: &[u8],
        wanted: &PartName,
    ) -> Result<PartAnswer, Trouble> {
        let text = serde_json::to_vec(wanted).unwrap_or_default();
        let found = |answer| match answer {
            FormatAnswer::Part(found) => Some(found),
            _ => None,
        };
        let answer = self.ask(entry, name, FormatQuestion::Part, &[&text, content], found)?;
        Ok(match answer {
            Ok(place) => Ok(place
                .checked(content.len())
                .ok_or_else(|| Trouble::Refused {
                    inspector: entry.name.clone(),
                    object: printable(&String::from_utf8_lossy(name)),
                    because: "it has bytes that the file does not have".to_owned(),
                })?),
            Err(NoPart::Misnamed(why)) => Err(NoPart::Misnamed(printable(&why))),
            Err(NoPart::Absent(why)) => Err(NoPart::Absent(printable(&why))),
            Err(NoPart::Unreadable(why)) => Err(NoPart::Unreadable(printable(&why))),
            Err(NoPart::OtherKind) => Err(NoPart::OtherKind),
        })
    }

    fn view<T>(
        &self,
        format: &str,
        name: &[u8],
        question: FormatQuestion,
        content: &[u8],
        wanted: impl FnOnce(FormatAnswer) -> Option<T>,
    ) -> Result<T, Trouble> {
        self.ask(
            self.entry(format, name)?,
            name,
            question,
            &[content],
            wanted,
        )
    }

    fn entry(&self, format: &str, name: &[u8]) -> Result<&InspectorEntry, Trouble> {
        let mut entries = self.catalogue.entries().iter();
        let found = entries.find(|entry| entry.name == format);
        found.ok_or_else(|| Trouble::Unreadable {
            inspector: format.to_owned(),
            object: printable(&String::from_utf8_lossy(name)),
            because: "there is no such inspector".to_owned(),
        })
    }

    /// Every question goes through here, and from here to the worker.
    fn ask<T>(
        &self,
        entry: &InspectorEntry,
        name: &[u8],
        question: FormatQuestion,
        contents: &[&[u8]],
        wanted: impl FnOnce(FormatAnswer) -> Option<T>,
    ) -> Result<T, Trouble> {
        match &self.worker {
            Ok(worker) => {
                let key = self.keys.of(&entry.name, name);
                worker.read_format(entry, (name, key), question, contents, wanted)
            }
            Err(directory) => Err(Trouble::no_worker(name, directory.clone())),
        }
    }
}

impl Default for FormatReader {
    fn default() -> FormatReader {
        FormatReader::new()
    }
}
