//! Reads the tables of a trace.

use super::opens::TraceReader;
use super::rows::{ExecutedProgram, OpenedFile, TracedProgramProcess};
use rusqlite::{Connection, OpenFlags, Row};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Passes all rows on, in the order in which ReproZip wrote them.
pub(super) fn read(path: &Path, reader: &mut TraceReader) -> rusqlite::Result<()> {
    // The file is read as it is: SQLite makes no lock and no journal beside it.
    let mut uri = String::from("file:");
    for byte in std::path::absolute(path)
        .unwrap_or_else(|_| path.to_owned())
        .as_os_str()
        .as_bytes()
    {
        uri.push_str(&format!("%{byte:02X}"));
    }
    uri.push_str("?mode=ro&immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let database = Connection::open_with_flags(uri, flags)?;
    let mut all = database
        .prepare("SELECT id, parent, timestamp, is_thread, exitcode FROM processes ORDER BY id")?;
    let mut rows = all.query([])?;
    while let Some(row) = rows.next()? {
        reader.process(TracedProgramProcess {
            id: row.get(0)?,
            parent: row.get(1)?,
            time: row.get(2)?,
            is_thread: row.get(3)?,
            exit: row.get(4)?,
        });
        full(reader)?;
    }
    let mut all = database.prepare(
        "SELECT process, timestamp, name, argv, workingdir FROM executed_files ORDER BY id",
    )?;
    let mut rows = all.query([])?;
    while let Some(row) = rows.next()? {
        let argv = bytes(row, 3)?;
        let argv = argv.strip_suffix(b"\0").unwrap_or(&argv);
        reader.executed(ExecutedProgram {
            process: row.get(0)?,
            time: row.get(1)?,
            path: bytes(row, 2)?,
            argv: argv.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect(),
            cwd: bytes(row, 4)?,
        });
        full(reader)?;
    }
    reader.begin_opens();
    let mut all = database.prepare(
        "SELECT process, timestamp, name, mode, is_directory FROM opened_files ORDER BY id",
    )?;
    let mut rows = all.query([])?;
    while let Some(row) = rows.next()? {
        reader.opened(&OpenedFile {
            process: row.get(0)?,
            time: row.get(1)?,
            path: bytes(row, 2)?,
            mode: row.get(3)?,
            is_directory: row.get(4)?,
        });
        full(reader)?;
    }
    Ok(())
}

/// Ends the reading of a trace that is too large.
fn full(reader: &TraceReader) -> rusqlite::Result<()> {
    match reader.is_full() {
        true => Err(rusqlite::Error::QueryReturnedNoRows),
        false => Ok(()),
    }
}

/// A text, which need not be UTF-8.
fn bytes(row: &Row<'_>, at: usize) -> rusqlite::Result<Vec<u8>> {
    let value = row.get_ref(at)?;
    value.as_bytes().map(<[u8]>::to_vec).map_err(Into::into)
}
