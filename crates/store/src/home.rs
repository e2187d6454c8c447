//! The store's directory: where it is, and which files it has. Opens no database, so that `record`
//! starts at once.
//!
//! ```text
//! DIR/format          the format number as text
//! DIR/runs/ID.log     a finalized run;  ID.log.part  one that is being recorded
//! DIR/bytes/ID        what the byte engine recorded of a run (docs/formats/bytes.md)
//! DIR/engine          the word of the engine, if it is not SQLite
//! DIR/graph.db        the database of SQLite (and its -wal, -shm); of another engine: graph.redb,
//!                     graph.lsm
//! DIR/index.lock      locked (flock) by the process that indexes
//! DIR/facts.log       the journal of facts about contents
//! DIR/contents        the contents themselves
//! DIR/annotations.log  the journal of tags, parameters, metrics and checkouts
//! DIR/packages.index  the index of this machine's packages
//! DIR/verdicts.index  which programs need no filter
//! DIR/keep.lock       locked (flock) by the process that adds facts or removes contents
//! ```

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use backstory_files::regular;

use crate::{Error, Result};

/// The newest format of the directory that this program knows.
pub const FORMAT: u64 = 1;

/// Crockford's base 32, lower case: no i, l, o, u.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// An opened store directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    dir: PathBuf,
}

impl Home {
    /// Opens the store that `chosen` (`--store`) or the environment names, making it if it is not
    /// there.
    pub fn locate(chosen: Option<&Path>) -> Result<Home> {
        Home::open(&Home::directory(chosen)?)
    }

    /// Where the store is: `chosen`, else `$BACKSTORY_STORE`, else `$XDG_DATA_HOME/backstory`, else
    /// `$HOME/.local/share/backstory`. Empty variables count as unset, a relative `XDG_DATA_HOME`
    /// is ignored as its specification asks.
    pub fn directory(chosen: Option<&Path>) -> Result<PathBuf> {
        Self::directory_from(chosen, |name| std::env::var_os(name).map(PathBuf::from))
    }

    fn directory_from(
        chosen: Option<&Path>,
        var: impl Fn(&str) -> Option<PathBuf>,
    ) -> Result<PathBuf> {
        let var = |name| var(name).filter(|v| !v.as_os_str().is_empty());
        if let Some(dir) = chosen
            .map(Path::to_owned)
            .or_else(|| var("BACKSTORY_STORE"))
        {
            return std::path::absolute(&dir).map_err(|e| Error::io("find the store", &dir, e));
        }
        if let Some(data) = var("XDG_DATA_HOME").filter(|d| d.is_absolute()) {
            return Ok(data.join("backstory"));
        }
        match var("HOME").filter(|d| d.is_absolute()) {
            Some(home) => Ok(home.join(".local/share/backstory")),
            None => Err(Error::NoHome),
        }
    }

    /// Opens the store at `dir` for recording and indexing; makes it, for its owner only, if it is
    /// not there.
    pub fn open(dir: &Path) -> Result<Home> {
        let home = Home {
            dir: dir.to_owned(),
        };
        home.make()?;
        home.check_owner()?;
        home.check_format()?;
        for part in [&home.dir, &home.runs_dir()] {
            rustix::fs::access(
                part,
                rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK,
            )
            .map_err(|e| Error::NotWritable {
                dir: dir.to_owned(),
                reason: io::Error::from(e).to_string(),
            })?;
        }
        Ok(home)
    }

    /// Opens the store at `dir` for questions. Makes nothing and needs no write permission.
    pub fn open_to_read(dir: &Path) -> Result<Home> {
        match fs::metadata(dir) {
            Ok(meta) if !meta.is_dir() => return Err(Error::NotADirectory(dir.to_owned())),
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::NotFound => {
                return Err(Error::NoStore(dir.to_owned()));
            }
            Err(e) if e.kind() == ErrorKind::NotADirectory => {
                return Err(Error::NotADirectory(dir.to_owned()));
            }
            Err(e) => return Err(Error::io("open the store", dir, e)),
        }
        let home = Home {
            dir: dir.to_owned(),
        };
        if home.read_format()?.is_none() {
            return Err(Error::NoStore(dir.to_owned()));
        }
        home.check_format()?;
        Ok(home)
    }

    fn make(&self) -> Result<()> {
        match fs::metadata(&self.dir) {
            Ok(meta) if !meta.is_dir() => return Err(Error::NotADirectory(self.dir.clone())),
            Ok(_) if self.runs_dir().is_dir() => return Ok(()),
            _ => {}
        }
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(self.runs_dir())
            .map_err(|e| match e.kind() {
                ErrorKind::NotADirectory | ErrorKind::AlreadyExists => {
                    Error::NotADirectory(self.dir.clone())
                }
                _ => Error::NotWritable {
                    dir: self.dir.clone(),
                    reason: e.to_string(),
                },
            })
    }

    /// Checks that both directories belong to this user.
    fn check_owner(&self) -> Result<()> {
        for part in [&self.dir, &self.runs_dir()] {
            let owner = fs::metadata(part)
                .map_err(|e| Error::io("look at", part, e))?
                .uid();
            if owner != rustix::process::geteuid().as_raw() {
                return Err(Error::NotYours {
                    dir: self.dir.clone(),
                    owner,
                });
            }
        }
        Ok(())
    }

    fn read_format(&self) -> Result<Option<u64>> {
        let path = self.dir.join("format");
        match regular::read(&path) {
            Ok(text) => {
                let number = std::str::from_utf8(&text)
                    .ok()
                    .and_then(|t| t.trim().parse().ok());
                number.map(Some).ok_or(Error::BadFormat(path))
            }
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Error::io("read", &path, e)),
        }
    }

    fn check_format(&self) -> Result<()> {
        match self.read_format()? {
            Some(found) if found > FORMAT => Err(Error::NewerFormat {
                dir: self.dir.clone(),
                found,
                known: FORMAT,
            }),
            Some(_) => Ok(()),
            None => self.write_format(),
        }
    }

    fn write_format(&self) -> Result<()> {
        self.replace_file("format", format!("{FORMAT}\n").as_bytes(), false)
    }

    /// Writes a small file of the directory beside and renames it, so that no process ever reads
    /// half of it. With `synced`, a power cut does not change that.
    pub(crate) fn replace_file(&self, name: &str, text: &[u8], synced: bool) -> Result<()> {
        let path = self.dir.join(name);
        let write = |file: &mut fs::File| {
            file.write_all(text)?;
            if synced { file.sync_all() } else { Ok(()) }
        };
        regular::replace(&path, write)
            .and_then(|()| match synced {
                true => fs::File::open(&self.dir)?.sync_all(),
                false => Ok(()),
            })
            .map_err(|e| match e.kind() {
                ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Error::NotWritable {
                    dir: self.dir.clone(),
                    reason: e.to_string(),
                },
                _ => Error::io("write", &path, e),
            })
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where the logs are.
    pub fn runs_dir(&self) -> PathBuf {
        self.dir.join("runs")
    }

    /// The finalized log of a run.
    pub fn log_path(&self, run: &str) -> PathBuf {
        self.runs_dir().join(format!("{run}.log"))
    }

    /// The log of a run that is being recorded, or whose recorder was killed.
    pub fn part_path(&self, run: &str) -> PathBuf {
        self.runs_dir().join(format!("{run}.log.part"))
    }

    /// The deep log of a run that was recorded with `--deep`.
    pub fn deep_log_path(&self, run: &str) -> PathBuf {
        self.runs_dir().join(format!("{run}.deep"))
    }

    /// The directory with the byte engine's files of a run.
    pub fn bytes_dir(&self, run: &str) -> PathBuf {
        self.dir.join("bytes").join(run)
    }

    /// The database of the SQLite store.
    pub fn database_path(&self) -> PathBuf {
        self.dir.join("graph.db")
    }

    /// Locked (`flock`) by the process that indexes.
    pub fn lock_path(&self) -> PathBuf {
        self.dir.join("index.lock")
    }

    /// The journal of facts about contents.
    pub fn facts_path(&self) -> PathBuf {
        self.dir.join("facts.log")
    }

    /// The journal of annotations.
    pub fn annotations_path(&self) -> PathBuf {
        self.dir.join("annotations.log")
    }

    /// Where contents are.
    pub fn contents_dir(&self) -> PathBuf {
        self.dir.join("contents")
    }

    /// Locked (`flock`) by the process that adds facts about contents or removes contents.
    pub fn keep_lock_path(&self) -> PathBuf {
        self.dir.join("keep.lock")
    }

    /// The index of the packages of this machine. It can be removed.
    pub fn packages_path(&self) -> PathBuf {
        self.dir.join("packages.index")
    }

    /// The verdicts about programs that `--guard=auto` keeps. It can be removed.
    pub fn verdicts_path(&self) -> PathBuf {
        self.dir.join("verdicts.index")
    }

    /// The journals of shipments to lakes. The package backstory-lake writes them.
    pub fn lakes_dir(&self) -> PathBuf {
        self.dir.join("lakes")
    }

    /// The copies of logs that come through pipes, until they are imported.
    pub fn pipes_dir(&self) -> PathBuf {
        self.dir.join("pipes")
    }

    /// The files that were preserved while a run was recorded, until they are stored.
    pub fn kept_dir(&self, run: &str) -> PathBuf {
        self.runs_dir().join(format!("{run}.kept"))
    }

    /// A new run id that no log here has: 8 characters.
    pub fn new_run_id(&self) -> String {
        loop {
            let id = random_run_id();
            if !self.log_path(&id).exists() && !self.part_path(&id).exists() {
                return id;
            }
        }
    }

    /// Runs whose logs are finalized, in the order in which their files were changed last.
    pub fn finalized(&self) -> Result<Vec<String>> {
        self.logs(".log")
    }

    /// Runs being recorded, or whose recorder was killed, in the same order.
    pub fn unfinished(&self) -> Result<Vec<String>> {
        self.logs(".log.part")
    }

    fn logs(&self, suffix: &str) -> Result<Vec<String>> {
        self.logs_but(suffix, |_| false)
    }

    /// Runs whose logs have this suffix, except those in `out`, in the same order.
    pub(crate) fn logs_but(&self, suffix: &str, out: impl Fn(&str) -> bool) -> Result<Vec<String>> {
        let dir = self.runs_dir();
        let fail = |e| Error::io("list", &dir, e);
        let entries = match fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(fail(e)),
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(fail)?;
            let name = entry.file_name();
            let id = name.to_str().and_then(|n| n.strip_suffix(suffix));
            let Some(id) = id.filter(|id| !id.is_empty() && !out(id)) else {
                continue;
            };
            // A log that was removed in between is no longer there to be indexed.
            let Ok(meta) = entry.metadata() else { continue };
            found.push((meta.modified().unwrap_or(UNIX_EPOCH), id.to_owned()));
        }
        found.sort();
        Ok(found.into_iter().map(|(_, id)| id).collect())
    }
}

/// True if the text has the form of a run's id: 8 characters of Crockford's base 32 in lower case.
/// Such a text is the name of one file in a directory, and no other path.
pub fn is_run_id(text: &str) -> bool {
    text.len() == 8 && text.bytes().all(|byte| ALPHABET.contains(&byte))
}

/// True if the text can be the name of a run: 1 to 200 bytes, without spaces, and not like an
/// option.
pub fn is_run_name(text: &str) -> bool {
    let odd = |c: char| c.is_control() || c.is_whitespace();
    (1..=200).contains(&text.len()) && !text.starts_with('-') && !text.chars().any(odd)
}

/// An id for a run, of 40 random bits. If the kernel has none: bits of the clock and the process
/// id.
pub fn random_run_id() -> String {
    let mut bytes = [0u8; 8];
    let got = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::NONBLOCK);
    if !matches!(got, Ok(8)) {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_nanos() as u64;
        bytes = (now ^ (u64::from(std::process::id()) << 20))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .to_be_bytes();
    }
    run_id_of(u64::from_be_bytes(bytes))
}

/// The id that the first 40 of these bits make.
pub fn run_id_of(bits: u64) -> String {
    (0..8)
        .map(|i| ALPHABET[(bits >> (59 - 5 * i)) as usize & 31] as char)
        .collect()
}

#[cfg(test)]
mod tests;
