//! Archives of runs that come into a store: what is checked, and how a run becomes visible.
//!
//! Nothing in an archive is trusted. A name must be the id of a run or a digest. A content must
//! have its digest. A log must be the resolved log of the run that its name says. Runs and facts
//! that the store has already stay as they are.
//!
//! Invariant: contents come first, then facts, then the log gets its name. A process that is killed
//! at any moment leaves contents, perhaps facts, and complete runs. The same archive adds the rest.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read, Seek};

use backstory_contents::transfer::{Kind, Reader, Section};
use backstory_contents::{Contents, WorkMeter};
use backstory_eventlog::Log;
use backstory_files::{Digest, regular};
use backstory_store::annotation_history::{self, StampedAnnotation};
use backstory_store::facts::{DirectorySnapshot, Journal, JournalRecord};
use backstory_store::{self as store, Home, Store, is_run_id};

use crate::parcel::{Parcel, Place, ReceivedLog, Waiting};
use crate::signature::{self, AllowedSigners};
use crate::temporary_file::TemporaryFile;
use crate::{Error, Result};

/// Most bytes of facts, which are read into memory.
const MOST_FACTS: u64 = 256 << 20;
/// Most bytes of the annotations of a run, and of its label.
const MOST_ANNOTATIONS: u64 = 16 << 20;
/// Most sections without a content in an archive.
const MOST_SECTIONS: u64 = 100_000;
/// Contents are stored together once they have this many bytes.
const BATCH: u64 = 16 << 20;
/// A content of this size or more waits in a file instead of memory.
const LARGE: u64 = 256 << 10;
/// Bytes of the disk that a receiver leaves free.
const LEFT_FREE: u64 = 1 << 20;

/// The result of adding an archive.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// Runs that are new in the store.
    pub added: Vec<String>,
    /// Runs that the store had already.
    pub known: Vec<String>,
    /// Contents that the archive's runs refer to and the store does not have. Nothing was added.
    pub lacking: Vec<Digest>,
    /// Annotations that are new.
    pub annotations: u64,
}

/// A store that receives archives.
pub struct Incoming<'a> {
    home: &'a Home,
    contents: Contents,
    signers: Option<&'a AllowedSigners>,
    meter: WorkMeter,
}

impl<'a> Incoming<'a> {
    /// Begins to receive. With `signers`, a run without a signature of one of them is refused.
    pub fn new(home: &'a Home, signers: Option<&'a AllowedSigners>) -> Result<Incoming<'a>> {
        Ok(Incoming {
            home,
            contents: Contents::create(&home.contents_dir())?,
            signers,
            meter: WorkMeter::default(),
        })
    }

    /// Counts the bytes of contents and logs.
    pub fn metered(mut self, meter: &WorkMeter) -> Incoming<'a> {
        self.meter = meter.clone();
        self
    }

    /// Reads an archive. Its contents are stored; the rest is only checked.
    pub fn read(&self, archive: impl Read) -> Result<Parcel> {
        let mut parcel = Parcel::default();
        let mut waiting: Vec<(Digest, Waiting)> = Vec::new();
        let (mut bytes, mut sections) = (0, 0);
        let mut reader = Reader::new(archive).map_err(unreadable)?;
        loop {
            let place = |section: &Section| -> io::Result<MeteredPlace<'_>> {
                let place = self.place(section).map_err(io::Error::other)?;
                let counted = matches!(section.kind, Some(Kind::Content | Kind::Log));
                Ok(MeteredPlace {
                    place,
                    meter: counted.then_some(&self.meter),
                })
            };
            let Some((section, place)) = reader.next(place).map_err(unreadable)? else {
                break;
            };
            match (section.kind, place.place) {
                (Some(Kind::Content), place) => {
                    let (digest, found) = place.content(&section)?;
                    bytes += section.size;
                    parcel.contents += 1;
                    waiting.push((digest, found));
                    if bytes >= BATCH {
                        bytes = 0;
                        self.store_contents(std::mem::take(&mut waiting))?;
                    }
                    continue;
                }
                (kind, place) => parcel.add(kind, section.name, place)?,
            }
            sections += 1;
            if sections > MOST_SECTIONS {
                return Err(Error::Refused(format!(
                    "the archive has more than {MOST_SECTIONS} sections"
                )));
            }
        }
        self.store_contents(waiting)?;
        for log in &parcel.logs {
            self.check_log(log, &parcel)?;
        }
        Ok(parcel)
    }

    /// Where a section goes while its checksum is not known yet.
    fn place(&self, section: &Section) -> Result<Place> {
        let most = match section.kind {
            Some(Kind::Content | Kind::Log) => u64::MAX,
            Some(Kind::Facts) => MOST_FACTS,
            Some(Kind::Annotations | Kind::Label) => MOST_ANNOTATIONS,
            Some(Kind::Signatures) => signature::LONGEST,
            None => return Ok(Place::Nowhere),
        };
        if section.size > most {
            return Err(Error::Refused(format!(
                "a section has {} bytes, and at most {most} are accepted",
                section.size
            )));
        }
        let in_file = section.kind == Some(Kind::Log)
            || (section.kind == Some(Kind::Content) && section.size >= LARGE);
        if !in_file {
            return Ok(Place::Memory(Vec::new()));
        }
        let free = rustix::fs::statvfs(self.home.dir())
            .map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize));
        if section.size.saturating_add(LEFT_FREE) > free {
            return Err(Error::Refused(format!(
                "{} bytes do not fit onto the disk of {}, which has {free} free",
                section.size,
                self.home.dir().display()
            )));
        }
        Ok(Place::File(TemporaryFile::new(self.home)?))
    }

    /// Stores contents, all of them or an error. Their digests were checked.
    fn store_contents(&self, waiting: Vec<(Digest, Waiting)>) -> Result<()> {
        for (digest, one) in waiting {
            let (found, _) = match one {
                Waiting::Memory(bytes) => self.contents.put(&mut bytes.as_slice())?,
                Waiting::File(mut file) => {
                    let rewound = file.file.rewind();
                    rewound.map_err(Error::io("read", &file.path))?;
                    self.contents.put(&mut file.file)?
                }
            };
            if found != digest {
                return Err(Error::Refused(format!(
                    "a content in it has the digest {found} instead of {digest}"
                )));
            }
        }
        Ok(self.contents.sync()?)
    }

    /// Checks that a log is of the run in its name, and can be indexed without looking at files of
    /// this machine.
    fn check_log(&self, log: &ReceivedLog, parcel: &Parcel) -> Result<()> {
        let run = &log.run;
        let opened = Log::open(&log.file.path).map_err(|_| {
            Error::Refused(format!(
                "the log of run {run} in it is not a log of backstory"
            ))
        })?;
        if opened.header().id != *run {
            let other = opened.header().id.escape_default().to_string();
            return Err(Error::Refused(format!(
                "the log of run {run} in it is of run '{other}'"
            )));
        }
        if !opened.resolved() {
            return Err(Error::Refused(format!(
                "run {run} in it was never indexed: index the run where it was recorded, and export it again"
            )));
        }
        let Some(signers) = self.signers else {
            return Ok(());
        };
        let statement = signature::statement(run, &log.digest, &parcel.learned);
        let none = Vec::new();
        let signatures = parcel.signatures.get(run).unwrap_or(&none);
        match (
            signers.signer(&statement, signatures)?,
            signatures.is_empty(),
        ) {
            (Some(_), _) => Ok(()),
            (None, true) => Err(not_signed()),
            (None, false) => Err(Error::Refused(
                "it has no valid signature of an allowed signer".to_owned(),
            )),
        }
    }

    /// Adds the runs of an archive to the store, or reports the contents that they lack. With
    /// `whole`, no further contents follow, and a fact about a content that is not there is left
    /// out. The caller holds the lock for adding facts.
    pub fn add(&self, parcel: Parcel, database: &mut dyn Store, whole: bool) -> Result<Accepted> {
        let mut accepted = Accepted::default();
        store::catch_up(self.home, database)?;
        let mut new = Vec::new();
        for log in parcel.logs {
            match self.is_known(&log)? {
                true => accepted.known.push(log.run),
                false => new.push(log),
            }
        }
        let fresh = fresh_facts(&parcel.learned, &new, database)?;
        let absent = self.absent(&fresh)?;
        if !absent.is_empty() && !whole {
            accepted.lacking = absent.into_iter().collect();
            return Ok(accepted);
        }
        let is_true = |record: &JournalRecord| match record {
            JournalRecord::Fact(fact) if fact.availability.is_stored() => {
                fact.digest.is_some_and(|digest| !absent.contains(&digest))
            }
            _ => true,
        };
        let fresh: Vec<_> = fresh.into_iter().filter(is_true).collect();
        Journal::open(&self.home.facts_path())?.append(&fresh)?;
        for log in new {
            log.file.rename(&self.home.log_path(&log.run))?;
            accepted.added.push(log.run);
        }
        if !accepted.added.is_empty() {
            let dir = self.home.runs_dir();
            let synced = File::open(&dir).and_then(|dir| dir.sync_all());
            synced.map_err(Error::io("sync", &dir))?;
        }
        for (run, signatures) in parcel.signatures {
            if self.home.log_path(&run).exists() {
                signature::add(self.home, &run, signatures)?;
            }
        }
        store::catch_up(self.home, database)?;
        Ok(accepted)
    }

    /// Merges annotations of runs that the store has. Returns how many are new.
    pub fn annotate(&self, mut annotations: Vec<StampedAnnotation>) -> Result<u64> {
        let known: HashMap<String, bool> = annotations
            .iter()
            .map(|one| one.run.clone())
            .map(|run| {
                let known = is_run_id(&run) && self.home.log_path(&run).exists();
                (run, known)
            })
            .collect();
        annotations.retain(|one| known.get(&one.run) == Some(&true));
        Ok(annotation_history::merge(self.home, annotations)?.added)
    }

    /// True if the store has the same log already. Another log with the same id is an error.
    fn is_known(&self, log: &ReceivedLog) -> Result<bool> {
        let here = self.home.log_path(&log.run);
        let mut file = match regular::open(&here) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(Error::io("read", &here)(error)),
        };
        let (digest, _) =
            backstory_contents::digest_of(&mut file).map_err(Error::io("read", &here))?;
        match digest == log.digest {
            true => Ok(true),
            false => Err(conflict(
                &log.run,
                &digest.to_string(),
                &log.digest.to_string(),
            )),
        }
    }

    /// The contents that facts call stored, and the store does not have.
    fn absent(&self, learned: &[JournalRecord]) -> Result<HashSet<Digest>> {
        let mut absent = HashSet::new();
        for record in learned {
            if let JournalRecord::Fact(fact) = record
                && let (true, Some(digest)) = (fact.availability.is_stored(), fact.digest)
                && !self.contents.has(&digest)?
            {
                absent.insert(digest);
            }
        }
        Ok(absent)
    }
}

/// The facts that the store lacks. A directory snapshot counts for the archive's runs only. A run
/// without one gets an empty one: the indexer would look for its files on this machine.
fn fresh_facts(
    learned: &[JournalRecord],
    new: &[ReceivedLog],
    database: &dyn Store,
) -> Result<Vec<JournalRecord>> {
    let mut fresh = Vec::new();
    if new.is_empty() {
        return Ok(fresh);
    }
    for log in new {
        if database.directory_snapshot(&log.run)?.is_some() {
            continue;
        }
        let of_run =
            |one: &&JournalRecord| matches!(one, JournalRecord::Run(r) if r.run == log.run);
        let snapshot = learned.iter().find(of_run).cloned();
        fresh.push(snapshot.unwrap_or_else(|| {
            JournalRecord::Run(DirectorySnapshot {
                run: log.run.clone(),
                entries: Vec::new(),
            })
        }));
    }
    for record in learned {
        if let JournalRecord::Fact(fact) = record
            && database.fact(&fact.ident)?.is_none()
        {
            fresh.push(record.clone());
        }
    }
    Ok(fresh)
}

/// The refusal of a run without any signature.
pub fn not_signed() -> Error {
    Error::Refused("it is not signed".to_owned())
}

/// The refusal of a run whose id the store has for another log.
pub fn conflict(run: &str, here: &str, there: &str) -> Error {
    let short = |digest: &str| digest.chars().take(12).collect::<String>();
    Error::Refused(format!(
        "the store already has another run {run} (its log is {}, the other one {}): one of them is damaged or forged; `backstory rm {run}` removes the one that the store has",
        short(here),
        short(there)
    ))
}

fn unreadable(error: io::Error) -> Error {
    match error.downcast::<Error>() {
        Ok(error) => error,
        Err(error) => match error.kind() {
            io::ErrorKind::InvalidData | io::ErrorKind::Other | io::ErrorKind::UnexpectedEof => {
                Error::Refused(error.to_string())
            }
            _ => Error::Io {
                doing: "receive",
                object: "an archive of runs".to_owned(),
                source: error,
            },
        },
    }
}

/// Counts the bytes of a section.
struct MeteredPlace<'a> {
    place: Place,
    meter: Option<&'a WorkMeter>,
}

impl io::Write for MeteredPlace<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.place.write(bytes)?;
        self.meter.inspect(|meter| meter.add(written as u64));
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
