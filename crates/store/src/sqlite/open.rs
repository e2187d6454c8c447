//! Opens the database: sets the journal mode and checks the schema.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::schema::{self, MIGRATIONS};
use crate::{Error, Result, on_shared_file_system};

/// Bytes of a page of a new database.
const PAGE: i64 = 8192;

/// Bytes that SQLite's log may grow to before the process that commits does a checkpoint.
const LONGEST_LOG: i64 = 64 << 20;

/// How long to wait for another process's transaction.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// How long to wait for another process if nothing depends on it. Other processes wait meanwhile.
pub(super) const LITTLE_PATIENCE: Duration = Duration::from_secs(5);

/// Opens (and makes) the database at `path` in the store `dir`. Out: the number of its schema, too,
/// which may have to be upgraded. 0: it is empty.
pub fn open(dir: &Path, path: &Path) -> Result<(Connection, usize)> {
    if rustix::fs::access(dir, rustix::fs::Access::WRITE_OK).is_err() {
        return Ok((open_read_only(dir, path)?, MIGRATIONS.len()));
    }
    let fail = |doing| move |e| Error::database(doing, path, e);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if path.is_dir() {
        return Err(Error::NotOurs(path.to_owned()));
    }
    make_private(path).map_err(|e| Error::io("make", path, e))?;
    let conn = Connection::open_with_flags(path, flags).map_err(fail("open the store"))?;
    conn.busy_timeout(PATIENCE)
        .map_err(fail("set the timeout"))?;
    let version = {
        // One transaction for all reads: another process may be making the database now.
        let look = conn
            .unchecked_transaction()
            .map_err(fail("open the store"))?;
        schema::check(&look, path, MIGRATIONS.len())?
    };
    set_up(&conn, dir, version == 0).map_err(fail("set up the database"))?;
    Ok((conn, version))
}

/// Makes the database with mode 0600. SQLite would follow the umask, and gives the files beside the
/// database its mode.
fn make_private(path: &Path) -> std::io::Result<()> {
    let made = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    match made {
        Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => Err(e),
        _ => Ok(()),
    }
}

/// A directory that can't be written cannot have the files of a write-ahead log. Without a log in
/// it no process can change the database, so SQLite may take it as immutable.
fn open_read_only(dir: &Path, path: &Path) -> Result<Connection> {
    if !path.exists() {
        return Err(Error::NotWritable {
            dir: dir.to_owned(),
            reason: "it has no database yet, and none can be made".into(),
        });
    }
    let left = fs::metadata(beside(path, "-wal")).is_ok_and(|m| m.len() > 0);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    let uri = uri(
        path,
        if left {
            "mode=ro"
        } else {
            "mode=ro&immutable=1"
        },
    );
    let conn = Connection::open_with_flags(uri, flags)
        .map_err(|e| Error::database("open the store", path, e))?;
    let version = schema::check(&conn, path, MIGRATIONS.len())?;
    if version < MIGRATIONS.len() {
        return Err(Error::NotWritable {
            dir: dir.to_owned(),
            reason: "its database has to be upgraded first".into(),
        });
    }
    Ok(conn)
}

/// The file that SQLite keeps beside a database.
pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

fn uri(path: &Path, parameters: &str) -> PathBuf {
    let mut uri = b"file:".to_vec();
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-".contains(&byte) {
            uri.push(byte);
        } else {
            uri.extend(format!("%{byte:02X}").bytes());
        }
    }
    uri.push(b'?');
    uri.extend(parameters.bytes());
    PathBuf::from(OsString::from_vec(uri))
}

/// The bytes of the database that are mapped: all of a small store. The kernel also maps the pages
/// around each page that is read. In a large store, a question had up to 30 MB of them
/// (docs/performance.md).
const MAPPED: i64 = 8 << 20;

/// The limit of the cache of the other pages. SQLite takes KiB as a negative number.
const CACHED_KIB: i64 = -16_384;

fn set_up(conn: &Connection, dir: &Path, empty: bool) -> rusqlite::Result<()> {
    if empty {
        conn.pragma_update(None, "page_size", PAGE)?;
    }
    let mode = if on_shared_file_system(dir) {
        "DELETE"
    } else {
        "WAL"
    };
    set_journal_mode(conn, mode)?;
    // The graph can be built again from the logs: a commit need not survive a power cut, only leave
    // the database whole.
    conn.pragma_update(None, "synchronous", "NORMAL")?;
    // A large run is appended to the log alone: a question may be waiting for it.
    conn.pragma_update(None, "wal_autocheckpoint", LONGEST_LOG / PAGE)?;
    conn.pragma_update(None, "cache_size", CACHED_KIB)?;
    conn.pragma_update(None, "mmap_size", MAPPED)?;
    conn.pragma_update(None, "temp_store", "MEMORY")
}

/// SQLite does not wait for other processes here, so this function does. Where SQLite can't make a
/// write-ahead log, the rollback journal stays.
fn set_journal_mode(conn: &Connection, mode: &str) -> rusqlite::Result<()> {
    for attempt in 0.. {
        let now: String = conn.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
        if now.eq_ignore_ascii_case(mode) {
            break;
        }
        let set = conn.query_row(&format!("PRAGMA journal_mode = {mode}"), [], |row| {
            row.get::<_, String>(0)
        });
        match set {
            Err(e) if e.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && attempt < 200 => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(e) => return Err(e),
            Ok(_) => break,
        }
    }
    Ok(())
}
