//! The operations of one side of an exchange.

use std::io::{Read, Write};

use backstory_files::Digest;

use crate::incoming::Accepted;
use crate::{Error, Parcel, Result, RunEntry};

/// The sections that an archive may have.
#[derive(Debug, Clone, Copy)]
pub enum Expected<'a> {
    /// Any sections.
    Anything,
    /// Contents or annotations, and no run.
    NoRun,
    /// This run, with the digest that was listed.
    Run(&'a RunEntry),
}

/// A store that takes part in an exchange.
pub trait Peer {
    /// Offers only the runs that these options of `log` select.
    fn select(&mut self, options: &[String]) -> Result<()>;

    /// At most 1,000 runs behind this one, in the order of their ids.
    fn runs(&mut self, after: Option<&str>) -> Result<Vec<RunEntry>>;

    /// At most 1,000 stored contents of a run behind this one, in the order of their digests, each
    /// with its size in bytes.
    fn contents_of(&mut self, run: &str, after: Option<&Digest>) -> Result<Vec<(Digest, u64)>>;

    /// Those of these contents that the store does not have.
    fn lacking(&mut self, digests: &[Digest]) -> Result<Vec<Digest>>;

    /// Writes an archive with a run, without contents.
    fn write_run(&mut self, run: &str, out: &mut dyn Write) -> Result<()>;

    /// Writes an archive with contents.
    fn write_contents(&mut self, digests: &[Digest], out: &mut dyn Write) -> Result<()>;

    /// Writes an archive with the annotations and signatures of runs.
    fn write_annotations(&mut self, runs: &[String], out: &mut dyn Write) -> Result<()>;

    /// Checks an archive, and adds what it has.
    fn accept(&mut self, archive: &mut dyn Read, expected: Expected<'_>) -> Result<Accepted>;

    /// Brings the database up to date with what came in. Returns one line for each run that cannot
    /// be indexed.
    fn finish(&mut self) -> Result<Vec<String>>;
}

/// Checks that an archive has the run that was asked for, and no other.
pub(crate) fn check_expected(parcel: &Parcel, expected: Expected<'_>) -> Result<()> {
    let mut logs = parcel.digests();
    let fits = match expected {
        Expected::Anything => true,
        Expected::NoRun => logs.next().is_none(),
        Expected::Run(entry) => {
            let first = logs.next();
            let right = first.is_some_and(|(run, digest)| {
                run == entry.run && digest.to_string() == entry.digest
            });
            right && logs.next().is_none()
        }
    };
    match (fits, expected) {
        (true, _) => Ok(()),
        (false, Expected::Run(entry)) => Err(Error::Refused(format!(
            "the archive of run {} has another log than the other side listed",
            entry.run
        ))),
        (false, _) => Err(Error::Refused(
            "a run came that was not asked for".to_owned(),
        )),
    }
}
