//! The chain of seals: files in `DIR/evidence`, that other programs can verify, too.
//!
//! ```text
//! DIR/evidence/000003-7hx2k9qa.seal    the statement
//! DIR/evidence/000003-7hx2k9qa.sig     its signature, in the armored form of OpenSSH
//! DIR/evidence/000003-7hx2k9qa.tsr     its time stamp: a reply of RFC 3161
//! DIR/evidence/000003-7hx2k9qa.items   the facts, contents and annotations behind `items`
//! DIR/evidence/head                    number and digest of the last seal
//! DIR/evidence/lock                    locked (flock) by the process that adds a seal, and shared
//!                                      by those that compare runs with their seals
//! ```
//!
//! Before the first seal there is no such file. Then a process that removes runs, and the one that
//! makes the first seal, lock the directory of the store.
//!
//! The digest of a seal is the BLAKE3 digest of its statement, signature and time stamp, one after
//! the other.
//!
//! Invariant: a statement gets its name after all other files of its seal are durable, and `head`
//! names it after that. A process that dies in between leaves a chain that goes on.

use backstory_ordering::SmallSort;
use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use backstory_files::{Digest, regular};
use backstory_store::Home;

use crate::seal::{LONGEST, Seal, read};
use crate::statement::Subject;
use crate::{Error, Result};

/// The last seal of a chain, as `head` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Its number. 0 if the chain is empty.
    pub number: u64,
    /// Its digest.
    pub digest: Digest,
}

impl Head {
    const EMPTY: Head = Head {
        number: 0,
        digest: Digest([0; 32]),
    };
}

impl std::fmt::Display for Head {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.number, self.digest)
    }
}

impl std::str::FromStr for Head {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Head, String> {
        let parts = text.trim_end().split_once(':');
        parts
            .and_then(|(number, digest)| {
                Some(Head {
                    number: number.parse().ok()?,
                    digest: digest.parse().ok()?,
                })
            })
            .ok_or_else(|| "it is no NUMBER:DIGEST, as `store seal` prints it".to_owned())
    }
}

/// The chain of a store.
#[derive(Debug, Clone)]
pub struct Chain {
    dir: PathBuf,
}

impl Chain {
    /// The chain of a store, which may be empty.
    pub fn of(home: &Home) -> Chain {
        Chain {
            dir: home.dir().join("evidence"),
        }
    }

    /// True if a seal was made in this store.
    pub fn exists(&self) -> bool {
        self.dir.is_dir()
    }

    /// The directory of the chain.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The path of the file that names the last seal.
    pub fn head_path(&self) -> PathBuf {
        self.dir.join("head")
    }

    /// What `head` says. `None` if there is no such file.
    pub fn head(&self) -> Result<Option<Head>> {
        let path = self.head_path();
        let Some(bytes) = read(&path, LONGEST)? else {
            return Ok(None);
        };
        let head = String::from_utf8_lossy(&bytes).parse();
        head.map(Some)
            .map_err(|what: String| Error::damaged(&path, what))
    }

    /// The paths of the statements in the order of their numbers.
    pub fn paths(&self) -> Result<Vec<(u64, String, PathBuf)>> {
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Error::io("list", &self.dir)(error)),
        };
        let mut found = Vec::new();
        for entry in entries {
            let path = entry.map_err(Error::io("list", &self.dir))?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            let parts = name
                .and_then(|name| name.strip_suffix(".seal"))
                .and_then(|name| name.split_once('-'));
            if let Some((number, run)) = parts
                && let Ok(number) = number.parse()
            {
                found.push((number, run.to_owned(), path));
            }
        }
        found.sort_small();
        Ok(found)
    }

    /// Reads one seal.
    pub fn seal(&self, path: &Path) -> Result<Seal> {
        Seal::open(path)
    }

    /// The runs whose last seal says that they were there.
    pub fn sealed_runs(&self) -> Result<BTreeSet<String>> {
        let mut runs = BTreeSet::new();
        for (_, run, path) in self.paths()? {
            match self.readable(&path)?.statement.subject {
                Subject::Removed => runs.remove(&run),
                Subject::Run(_) => runs.insert(run),
                Subject::Forgot(_) => continue,
            };
        }
        Ok(runs)
    }

    /// The runs whose last seal is not signed.
    pub fn unsigned_runs(&self) -> Result<BTreeSet<String>> {
        let mut runs = BTreeSet::new();
        for (_, run, path) in self.paths()? {
            let statement = self.readable(&path)?.statement;
            match (statement.subject, statement.key) {
                (Subject::Forgot(_), _) => continue,
                (_, Some(_)) => runs.remove(&run),
                (_, None) => runs.insert(run),
            };
        }
        Ok(runs)
    }

    /// Reads one seal. A damaged one is an error that names the remedy.
    fn readable(&self, path: &Path) -> Result<Seal> {
        self.seal(path).map_err(|error| self.with_remedy(error))
    }

    /// Keeps the chain, and the runs that it names, as they are until the returned file is dropped.
    /// `None` if the chain may only be read.
    pub fn hold(&self) -> Option<File> {
        if let Ok(Some(first)) = self.before_first() {
            return Some(first);
        }
        let lock = regular::open(self.dir.join("lock")).ok()?;
        lock.lock_shared().ok()?;
        Some(lock)
    }

    /// Keeps other processes from making the first seal until the returned file is dropped. `None`
    /// if there is a chain.
    pub fn before_first(&self) -> Result<Option<File>> {
        if self.exists() {
            return Ok(None);
        }
        let store = self.dir.parent().unwrap_or(&self.dir);
        let lock = File::open(store).map_err(Error::io("open", store))?;
        // NFS does not lock directories. There the first seal does not wait.
        let _ = lock.lock();
        // Another process may have made it in the meantime.
        Ok((!self.exists()).then_some(lock))
    }

    /// Opens the chain for a new seal, and waits for other processes that add one, or that remove
    /// runs.
    pub fn extend(&self) -> Result<OpenChain> {
        let _first = self.before_first()?;
        let made = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.dir);
        made.map_err(Error::io("create", &self.dir))?;
        let path = self.dir.join("lock");
        let lock = regular::open_private(&path).map_err(Error::io("open", &path))?;
        lock.lock().map_err(Error::io("lock", &path))?;
        let last = self.end().map_err(|error| self.with_remedy(error))?;
        Ok(OpenChain {
            dir: self.dir.clone(),
            last,
            _lock: lock,
        })
    }

    /// The end of the chain that the next seal names.
    fn end(&self) -> Result<Head> {
        let named = self.head()?.unwrap_or(Head::EMPTY);
        // Each seal must be there and readable: the next one says which runs are sealed.
        let mut found = Head::EMPTY;
        for (_, _, path) in self.paths()? {
            let seal = self.seal(&path)?;
            let statement = &seal.statement;
            // A note about a removal would else hide the seals that are missing before it.
            if (statement.number, statement.before)
                != (found.number.saturating_add(1), found.digest)
            {
                let what = format!("it does not follow seal {} as it is", found.number);
                return Err(Error::damaged(&path, what));
            }
            found = Head {
                number: statement.number,
                digest: seal.digest(),
            };
        }
        // A process that died after the statement and before `head` left one more.
        if found != named && found.number != named.number.saturating_add(1) {
            let what = format!(
                "the chain ends with seal {}, and its head names seal {}",
                found.number, named.number
            );
            return Err(Error::damaged(&self.head_path(), what));
        }
        Ok(found)
    }

    /// An error of a damaged chain, with what the user can do.
    fn with_remedy(&self, error: Error) -> Error {
        let Error::Damaged { .. } = error else {
            return error;
        };
        let what = format!(
            "the chain of seals is damaged: {error}; `backstory store verify --evidence` says more; \
             move the directory away to go on without these seals"
        );
        Error::damaged(&self.dir, what)
    }
}

/// A chain that this process extends.
#[derive(Debug)]
pub struct OpenChain {
    dir: PathBuf,
    /// The last seal.
    pub last: Head,
    /// Other processes wait for it.
    _lock: File,
}

impl OpenChain {
    /// Adds a seal, durably.
    pub fn add(&mut self, mut seal: Seal, items: &[String]) -> Result<()> {
        let statement = &seal.statement;
        let name = format!("{:06}-{}.seal", statement.number, statement.run);
        seal.path = self.dir.join(name);
        let last = Head {
            number: statement.number,
            digest: seal.digest(),
        };
        let list = items.iter().flat_map(|item| [item.as_str(), "\n"]);
        let list: String = list.collect();
        for (extension, bytes) in [
            (
                "items",
                Some(list.as_bytes()).filter(|list| !list.is_empty()),
            ),
            ("sig", seal.signature.as_deref().map(str::as_bytes)),
            ("tsr", seal.stamp.as_deref()),
        ] {
            let path = seal.file(extension);
            match bytes {
                Some(bytes) => self.write(&path, bytes)?,
                // A process that died before its statement had this name may have left one.
                None => remove_left(&path)?,
            }
        }
        self.write(&seal.path, seal.statement.text().as_bytes())?;
        self.write(&self.dir.join("head"), format!("{last}\n").as_bytes())?;
        self.last = last;
        Ok(())
    }

    /// Writes a file beside and renames it, durably.
    fn write(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        let written = tempfile::NamedTempFile::new_in(&self.dir).and_then(|mut file| {
            file.write_all(bytes)?;
            file.as_file().sync_all()?;
            file.persist(path).map_err(|error| error.error)?;
            File::open(&self.dir)?.sync_all()
        });
        written.map_err(Error::io("write", path))
    }
}

/// Removes a file, if it is there.
fn remove_left(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io("remove", path)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::Statement;

    fn seal(chain: &OpenChain, signature: Option<&str>) -> Seal {
        Seal {
            path: PathBuf::new(),
            statement: Statement {
                number: chain.last.number + 1,
                before: chain.last.digest,
                at: 1,
                run: "7hx2k9qa".to_owned(),
                subject: Subject::Removed,
                key: signature.map(|_| "SHA256:abc".to_owned()),
                tsa: None,
            },
            signature: signature.map(str::to_owned),
            stamp: None,
        }
    }

    #[test]
    fn files_of_a_seal_that_a_killed_process_left_do_not_join_the_next_seal() {
        let tmp = tempfile::tempdir().unwrap();
        let chain = Chain::of(&Home::open(tmp.path()).unwrap());
        let mut open = chain.extend().unwrap();
        let killed = seal(&open, Some("signature"));
        open.add(killed, &["known x".to_owned()]).unwrap();
        let (_, _, path) = chain.paths().unwrap().remove(0);
        fs::remove_file(&path).unwrap();
        fs::remove_file(chain.head_path()).unwrap();
        drop(open);
        let mut open = chain.extend().unwrap();
        let next = seal(&open, None);
        open.add(next, &[]).unwrap();
        assert_eq!(chain.seal(&path).unwrap().signature, None);
        assert!(!path.with_extension("items").exists());
    }
}
