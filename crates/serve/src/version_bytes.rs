//! The content of a version: from the store of contents, else from the file itself if it still is
//! that version.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backstory_contents::{Contents, Object};
use backstory_graph::model::EntityKind;
use backstory_query as query;
use backstory_store::EntityKey;
use backstory_store::facts::Availability;

use crate::problem::{Answer, Problem};
use crate::readers::Reading;

/// An open content.
pub struct VersionBytes {
    /// The path of the version.
    pub path: Vec<u8>,
    /// Its size.
    pub size: u64,
    source: Source,
}

enum Source {
    Stored(Object),
    Present(File),
}

impl VersionBytes {
    /// Opens the content of a version.
    ///
    /// # Errors
    ///
    /// A problem `not_kept`, if it is stored nowhere and the file has changed since.
    pub fn open(reading: &Reading<'_>, key: EntityKey) -> Answer<VersionBytes> {
        let store = reading.store;
        let entity = store.entity(key)?;
        let name = String::from_utf8_lossy(&entity.path).into_owned();
        if entity.kind != EntityKind::File {
            let kind = entity.kind.word();
            return Err(Problem::not_kept(format!(
                "{name} is a {kind}: it has no content of its own"
            )));
        }
        let Some(ident) = entity.ident else {
            return Err(Problem::not_kept(format!(
                "the content of {name} is not known: its identity could not be taken in time"
            )));
        };
        let opened = |source, size| VersionBytes {
            path: entity.path.to_vec(),
            size,
            source,
        };
        let known = query::known(store, Some(&ident))?;
        if let Some((Some(digest), held)) = &known
            && held.is_stored()
        {
            let contents = Contents::open(&reading.home.contents_dir());
            let object = contents.and_then(|contents| contents.read(digest));
            match object {
                Ok(object) => {
                    let size = object.size();
                    return Ok(opened(Source::Stored(object), size));
                }
                // The file may still be there.
                Err(
                    backstory_contents::Error::NotKept(_)
                    | backstory_contents::Error::Elsewhere { .. },
                ) => {}
                Err(error) => return Err(Problem::failed(error.to_string())),
            }
        }
        for path in std::iter::once(&entity.path).chain(&entity.aliases) {
            let path = Path::new(OsStr::from_bytes(path));
            if let Some(file) = query::open_version(path, &ident) {
                return Ok(opened(Source::Present(file), ident.size.max(0) as u64));
            }
        }
        let why = match known.map(|(_, held)| held) {
            Some(Availability::Missing(why)) => why,
            Some(Availability::Package(package)) => format!(
                "it is in the package {} {}, and the file has changed since",
                package.name, package.version
            ),
            _ => "it was not stored, and the file has changed since".to_owned(),
        };
        Err(Problem::not_kept(format!(
            "the content of this version of {name} is not available: {why}"
        )))
    }

    /// All bytes, or `None` if there are more than `most`.
    pub fn read_all(mut self, most: u64) -> Answer<Option<Vec<u8>>> {
        if self.size > most {
            return Ok(None);
        }
        let mut bytes = Vec::with_capacity(self.size as usize);
        let read = self.by_ref().take(most + 1).read_to_end(&mut bytes);
        read.map_err(|error| self.failed(&error))?;
        Ok((bytes.len() as u64 <= most).then_some(bytes))
    }

    /// Skips bytes.
    pub fn skip(&mut self, count: u64) -> Answer<()> {
        if let Source::Present(file) = &mut self.source {
            use std::io::{Seek, SeekFrom};
            let moved = file.seek(SeekFrom::Current(count as i64));
            return moved.map(drop).map_err(|error| self.failed(&error));
        }
        let skipped = io::copy(&mut self.by_ref().take(count), &mut io::sink());
        skipped.map(drop).map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &io::Error) -> Problem {
        let name = String::from_utf8_lossy(&self.path);
        Problem::failed(format!("cannot read the content of {name}: {error}"))
    }
}

impl Read for VersionBytes {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.source {
            Source::Stored(object) => object.read(buffer),
            Source::Present(file) => file.read(buffer),
        }
    }
}
