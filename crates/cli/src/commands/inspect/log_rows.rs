//! Rows that the transactions in a write-ahead log of SQLite changed.
//!
//! In: a database or its log, as it is now; the other file lies beside it. Out: each transaction
//! with the rows that it changed, as text or JSON.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backstory_files::regular;
use backstory_inspection::FormatReader;
use backstory_inspection::row_changes::{DatabaseFiles, RowChanges, RowStep};
use backstory_inspection::worker::printable;

use super::LISTED;
use crate::error::complain;
use crate::file_inspector;
use crate::json::Value;
use crate::text::style::{Role, Style};

/// The end of a log's name, after the name of its database.
const LOG: &[u8] = b"-wal";

/// The changed rows, if the file is a database with a log beside it, or a log with its database. A
/// trouble is a line on standard error.
pub fn of_files(inspector: &str, path: &[u8], content: &[u8]) -> Option<RowChanges> {
    let beside = |name: &[u8]| regular::read(Path::new(OsStr::from_bytes(name))).ok();
    let (database, log);
    let files = match inspector {
        "sqlite" => {
            log = beside(&[path, LOG].concat()).filter(|log| !log.is_empty())?;
            DatabaseFiles {
                database: content,
                log: &log,
                journal: &[],
            }
        }
        "sqlite-wal" => {
            database = beside(path.strip_suffix(LOG)?)?;
            DatabaseFiles {
                database: &database,
                log: content,
                journal: &[],
            }
        }
        _ => return None,
    };
    match FormatReader::new().row_changes(path, None, files, (None, None)) {
        Ok(found) => Some(found),
        Err(trouble) => {
            complain(&format!("the rows in the log are left out: {trouble}"));
            None
        }
    }
}

/// Writes the changed rows, transaction by transaction.
pub fn write(rows: &RowChanges, full: bool, out: &mut impl Write) -> io::Result<()> {
    let style = Style::of_stdout();
    writeln!(out, "  rows changed by the transactions in the log")?;
    let lines = rows.steps.iter().flat_map(|step| {
        let tables = step.tables.iter();
        let sentences = tables.flat_map(|table| &table.sentences);
        sentences.map(move |sentence| format!("{}  {}", number(step), printable(sentence)))
    });
    let lines: Vec<String> = lines.collect();
    let most = if full { usize::MAX } else { LISTED };
    for line in lines.iter().take(most) {
        writeln!(out, "    {line}")?;
    }
    let left = lines.len().saturating_sub(most);
    if left > 0 {
        let more = format!("    … {left} more (--full)");
        writeln!(out, "{}", style.paint(Role::Dim, &more))?;
    }
    for note in &rows.notes {
        let note = format!("    {}", printable(note));
        writeln!(out, "{}", style.paint(Role::Dim, &note))?;
    }
    Ok(())
}

/// The numbers of the transactions of a step.
fn number(step: &RowStep) -> String {
    match step.transactions {
        Some((first, last)) if first < last => format!("{first}-{last}"),
        Some((first, _)) => first.to_string(),
        None => "before".to_owned(),
    }
}

/// The changed rows as data.
pub fn json(rows: &RowChanges) -> Value {
    let rows = serde_json::to_value(rows).unwrap_or_default();
    file_inspector::json(&rows)
}
