//! The contents of a view's files.
//!
//! In: recordings, and the directory of the store's contents. Out: each version's content, from the
//! store or from the file itself if it is still the recorded version. Invariant: a content is that
//! of the recorded version, or an error. A changed file is never used in its place.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backstory_contents::{Contents, Error as ContentsError, MeteredRead, WorkMeter};
use backstory_eventlog::event::Bytes;
use backstory_files::Digest;
use backstory_graph::model::EntityKind;
use backstory_query::{Content, RunContents, contents, open_version};
use backstory_store::Store;
use backstory_store::facts::Availability;
use backstory_workflow::recording::Recording;
use data_encoding::HEXLOWER;
use sha1::Digest as _;

use crate::{Error, Result};
use backstory_workflow::shell;

/// The contents of the files of some runs.
#[derive(Debug, Default)]
pub struct FileContents {
    runs: Vec<RunContents>,
    kept: Option<Contents>,
    index: HashMap<(usize, Bytes, u32), usize>,
    /// Bytes of contents that a format reads, and has read.
    pub meter: WorkMeter,
}

/// Checksums of one content, in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub struct Checksums {
    pub size: u64,
    pub sha1: String,
    pub sha256: String,
    pub blake3: String,
}

impl FileContents {
    /// Reads the facts about the contents of these runs. `dir`: the directory of the store's
    /// contents, which may be missing.
    pub fn load(
        store: &dyn Store,
        recordings: &[Recording],
        dir: Option<&Path>,
    ) -> Result<FileContents> {
        let runs = recordings
            .iter()
            .map(|run| Ok(contents(store, &run.details.summary.id)?))
            .collect::<Result<Vec<_>>>()?;
        let kept = match dir.map(Contents::open) {
            Some(Ok(contents)) => Some(contents),
            None | Some(Err(ContentsError::None(_))) => None,
            Some(Err(error)) => return Err(error.into()),
        };
        let mut index = HashMap::new();
        for (run, contents) in runs.iter().enumerate() {
            for (at, content) in contents.files.iter().enumerate() {
                // A link and the file that was used by the link's name are two versions 0 of one
                // path. The content is the file's.
                let key = (run, content.path.clone(), content.version);
                if content.kind == EntityKind::File || !index.contains_key(&key) {
                    index.insert(key, at);
                }
            }
        }
        Ok(FileContents {
            runs,
            kept,
            index,
            meter: WorkMeter::default(),
        })
    }

    /// The files of a run, by its number in the view.
    pub fn run(&self, run: usize) -> &RunContents {
        &self.runs[run]
    }

    /// A version of a file in a run.
    pub fn of(&self, run: usize, path: &[u8], version: u32) -> Option<&Content> {
        let at = *self.index.get(&(run, path.into(), version))?;
        Some(&self.runs[run].files[at])
    }

    /// Opens the content of a version.
    ///
    /// # Errors
    ///
    /// [`Error::NoContent`] if neither the store nor the machine has it any more;
    /// [`Error::Unreadable`] if the stored content is damaged.
    pub fn open<'a>(&'a self, content: &'a Content) -> Result<Box<dyn Read + 'a>> {
        if let (true, Some(digest), Some(kept)) = (
            content.availability.is_stored(),
            &content.digest,
            &self.kept,
        ) {
            let unreadable = |source| Error::Unreadable {
                path: shell::quote(&content.path),
                source: Box::new(source),
            };
            match kept.read(digest) {
                Ok(object) => return Ok(Box::new(Named(object, &content.path))),
                // The store that had it has lost it, but the file may still be this version.
                Err(error @ ContentsError::Elsewhere { .. }) => {
                    let file = live(content).ok_or_else(|| unreadable(error))?;
                    return Ok(Box::new(file));
                }
                Err(error) => return Err(unreadable(error)),
            }
        }
        if let Some(file) = live(content) {
            return Ok(Box::new(file));
        }
        let (why, advice) = match &content.availability {
            Availability::Package(package) => (
                format!(
                    "it belongs to the package {} {} ({}), and the file on this machine is another one or gone",
                    package.name, package.version, package.manager
                ),
                "install that version of the package, or record again with --self-contained",
            ),
            Availability::Missing(why) => (why.clone(), "record again with --contents=lazy"),
            Availability::Stored | Availability::StoredPackage(_) => (
                "this store has no contents".to_owned(),
                "name the store that recorded the run with --store",
            ),
        };
        let path = shell::quote(&content.path);
        Err(Error::NoContent { path, why, advice })
    }

    /// Opens the content of a version, and counts the bytes that are read.
    ///
    /// # Errors
    ///
    /// As [`FileContents::open`].
    pub fn open_metered<'a>(
        &'a self,
        content: &'a Content,
    ) -> Result<MeteredRead<Box<dyn Read + 'a>>> {
        Ok(self.meter.reading(self.open(content)?))
    }

    /// The checksums of a version; `None` if its content is not available. A damaged content is an
    /// error.
    pub fn sums(&self, content: &Content) -> Result<Option<Checksums>> {
        let mut from = match self.open_metered(content) {
            Ok(from) => from,
            Err(Error::NoContent { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let (mut sha1, mut sha256) = (sha1::Sha1::new(), sha2::Sha256::new());
        let mut blake3 = blake3::Hasher::new();
        let (mut buffer, mut size) = (vec![0; 1 << 16], 0);
        loop {
            let got = from.read(&mut buffer)?;
            if got == 0 {
                break;
            }
            size += got as u64;
            sha1.update(&buffer[..got]);
            sha256.update(&buffer[..got]);
            blake3.update(&buffer[..got]);
        }
        Ok(Some(Checksums {
            size,
            sha1: HEXLOWER.encode(&sha1.finalize()),
            sha256: HEXLOWER.encode(&sha256.finalize()),
            blake3: blake3.finalize().to_hex().to_string(),
        }))
    }
}

/// A content whose read errors name the file, since the store knows digests only.
struct Named<'p, R>(R, &'p [u8]);

impl<R: Read> Read for Named<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let named = |error: io::Error| {
            io::Error::new(
                error.kind(),
                format!("what {} held: {error}", shell::quote(self.1)),
            )
        };
        self.0.read(buffer).map_err(named)
    }
}

/// The size of a content in bytes; 0 if its identity is not known.
pub fn content_size(content: &Content) -> u64 {
    let size = content.ident.map(|ident| ident.size);
    size.and_then(|size| u64::try_from(size).ok())
        .unwrap_or_default()
}

/// The digest of a content, if it is known without reading the content.
pub fn digest(content: &Content) -> Option<&Digest> {
    content.digest.as_ref()
}

/// The file itself, if it is still the recorded version.
fn live(content: &Content) -> Option<File> {
    let path = Path::new(std::ffi::OsStr::from_bytes(&content.path));
    open_version(path, &content.ident?)
}
