//! An archive that was read, before it is added to the store.

use std::collections::HashMap;
use std::io::{self, Seek};

use backstory_contents::transfer::{Kind, Section};
use backstory_files::Digest;
use backstory_store::annotation_history::{AnnotationHistory, StampedAnnotation};
use backstory_store::facts::{self, JournalRecord};
use backstory_store::is_run_id;

use crate::signature;
use crate::temporary_file::TemporaryFile;
use crate::{Error, Result};

/// The part of an archive that is not stored yet: everything but contents.
#[derive(Debug, Default)]
pub struct Parcel {
    pub(crate) logs: Vec<ReceivedLog>,
    pub(crate) learned: Vec<JournalRecord>,
    pub(crate) signatures: HashMap<String, Vec<String>>,
    /// Name and note of each run: the name, a line feed, the note.
    pub labels: Vec<(String, String)>,
    /// Annotations of the runs.
    pub annotations: Vec<StampedAnnotation>,
    /// Contents that the archive has.
    pub contents: u64,
}

/// The log of a run, complete in a file without its name.
#[derive(Debug)]
pub struct ReceivedLog {
    pub run: String,
    pub digest: Digest,
    pub file: TemporaryFile,
}

impl Parcel {
    /// The runs whose logs the archive has.
    pub fn runs(&self) -> Vec<String> {
        self.logs.iter().map(|log| log.run.clone()).collect()
    }

    /// The run and the digest of each log.
    pub fn digests(&self) -> impl Iterator<Item = (&str, &Digest)> {
        self.logs.iter().map(|log| (log.run.as_str(), &log.digest))
    }
}

/// A content that was received and checked.
pub enum Waiting {
    Memory(Vec<u8>),
    File(TemporaryFile),
}

/// Where a section is while it is read.
pub enum Place {
    Memory(Vec<u8>),
    File(TemporaryFile),
    Nowhere,
}

impl io::Write for Place {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Place::Memory(memory) => memory.write(bytes),
            Place::File(file) => file.file.write(bytes),
            Place::Nowhere => Ok(bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Place {
    /// A content, if its bytes have the digest in the section's name.
    pub fn content(self, section: &Section) -> Result<(Digest, Waiting)> {
        let name = section.name.escape_default().to_string();
        let wanted: Digest = section.name.parse().map_err(|_| {
            Error::Refused(format!("'{name}' in it cannot be the digest of a content"))
        })?;
        let (found, one) = match self {
            Place::Memory(bytes) => {
                let digest = Digest(*blake3::hash(&bytes).as_bytes());
                (digest, Waiting::Memory(bytes))
            }
            Place::File(mut file) => (digest_of(&mut file)?, Waiting::File(file)),
            Place::Nowhere => return Err(Error::Refused("a content in it is of no kind".into())),
        };
        match found == wanted {
            true => Ok((wanted, one)),
            false => Err(Error::Refused(format!(
                "a content in it has the digest {found} instead of {wanted}"
            ))),
        }
    }

    fn bytes(self) -> Vec<u8> {
        match self {
            Place::Memory(bytes) => bytes,
            _ => Vec::new(),
        }
    }
}

fn digest_of(file: &mut TemporaryFile) -> Result<Digest> {
    let read = file
        .file
        .rewind()
        .and_then(|()| backstory_contents::digest_of(&mut file.file));
    Ok(read.map_err(Error::io("read", &file.path))?.0)
}

impl Parcel {
    /// Adds a section that is no content.
    pub(crate) fn add(&mut self, kind: Option<Kind>, name: String, place: Place) -> Result<()> {
        if matches!(
            kind,
            Some(Kind::Log | Kind::Label | Kind::Annotations | Kind::Signatures)
        ) {
            check_id(&name)?;
        }
        match (kind, place) {
            (Some(Kind::Log), Place::File(mut file)) => {
                let digest = digest_of(&mut file)?;
                self.logs.push(ReceivedLog {
                    run: name,
                    digest,
                    file,
                });
            }
            (Some(Kind::Facts), place) => self.learned.extend(facts::from_bytes(&place.bytes())),
            (Some(Kind::Label), place) => {
                let text = String::from_utf8(place.bytes()).map_err(|_| {
                    Error::Refused(format!("the label of run {name} in it is no text"))
                })?;
                self.labels.push((name, text));
            }
            (Some(Kind::Annotations), place) => {
                let history = AnnotationHistory::from_lines(&place.bytes());
                self.annotations.extend(history.of_run(&name).cloned());
            }
            (Some(Kind::Signatures), place) => {
                self.signatures
                    .insert(name, signature::blocks(&place.bytes()));
            }
            _ => {}
        }
        Ok(())
    }
}

/// Checks that a name is the id of a run, and so no path.
fn check_id(name: &str) -> Result<()> {
    match is_run_id(name) {
        true => Ok(()),
        false => Err(Error::Refused(format!(
            "'{}' in it cannot be the id of a run",
            name.escape_default()
        ))),
    }
}
