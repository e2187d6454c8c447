//! A store in a bucket as one side of an exchange.
//!
//! Archives are checked by the code that receives them into a directory: each passes through a
//! [`ScratchStore`].

use backstory_ordering::SmallSort;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use backstory_contents::WorkMeter;
use backstory_files::Digest;
use tempfile::TempDir;

use crate::incoming::{Accepted, Incoming, conflict};
use crate::message::{self, PAGE};
use crate::parcel::ReceivedLog;
use crate::peer::{Expected, Peer, check_expected};
use crate::{Error, Parcel, Result, RunEntry, outgoing};

use super::account::Account;
use super::address::BucketAddress;
use super::notes::Notes;
use super::objects::{self, Objects, RunObjects};
use super::scratch_store::ScratchStore;

/// A store in a bucket.
pub struct BucketPeer {
    address: BucketAddress,
    objects: Objects,
    /// Files of this process, which are removed at its end.
    scratch: TempDir,
    receives: bool,
    selected: Option<HashSet<String>>,
    /// The stored contents of the run that was asked for last, by digest.
    contents_of: Option<(String, Vec<(Digest, u64)>)>,
}

impl BucketPeer {
    /// Reaches a bucket with the keys of the user. Unless `receives`, nothing is written.
    ///
    /// # Errors
    /// [`Error::Refused`] without keys. The bucket itself is reached by the first request.
    pub fn open(address: &BucketAddress, receives: bool) -> Result<BucketPeer> {
        let account = Account::of_process(address)?;
        let scratch = tempfile::Builder::new()
            .prefix("backstory-bucket.")
            .tempdir();
        let scratch = scratch.map_err(Error::io("make a directory in", &std::env::temp_dir()))?;
        Ok(BucketPeer {
            address: address.clone(),
            objects: Objects::new(address, account, scratch.path()),
            scratch,
            receives,
            selected: None,
            contents_of: None,
        })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn of_run(&self, run: &str) -> Result<RunObjects> {
        message::check_run(run)?;
        self.objects.of_run(run)
    }

    /// The annotations and signatures in these objects.
    fn read_notes(&self, run: &str, names: &[String]) -> Result<Notes> {
        let mut notes = Notes::default();
        for name in names {
            let file = self.file("notes");
            // Another push may have merged it into its own, and removed it.
            if self.objects.get(name, &file)? {
                notes.add(run, &ScratchStore::new(self.scratch.path())?.read(&file)?);
            }
        }
        Ok(notes)
    }

    /// Writes annotations and signatures beside a run, merged with those that are there. Returns
    /// whether something is new.
    fn merge_notes(&self, run: &str, there: &[String], parcel: &Parcel) -> Result<bool> {
        let mut merged = self.read_notes(run, there)?;
        merged.add(run, parcel);
        let texts = merged.texts(run);
        let name = texts.name(run);
        if there == [name.clone()] || texts.is_empty() {
            return Ok(false);
        }
        let file = self.file("notes");
        archive_in(&file, |out| {
            outgoing::archive(out, |writer| {
                outgoing::write_notes(writer, run, &texts.lines, &texts.signatures)
            })
        })?;
        self.objects.put(&[(name.clone(), file)])?;
        let merged: Vec<String> = there.iter().filter(|old| **old != name).cloned().collect();
        self.objects.remove(&merged)?;
        Ok(true)
    }

    /// Writes the contents of a scratch store as objects.
    fn put_contents(&self, scratch: &ScratchStore, digests: &[Digest]) -> Result<()> {
        let contents = scratch.contents()?;
        for part in digests.chunks(PAGE) {
            let mut files = Vec::new();
            for digest in part {
                let file = self.file(&digest.to_string());
                archive_in(&file, |out| {
                    outgoing::archive(out, |writer| {
                        outgoing::write_contents(
                            writer,
                            &contents,
                            [*digest],
                            &WorkMeter::default(),
                        )
                    })
                })?;
                files.push((objects::content(digest), file));
            }
            let done = self.objects.put(&files);
            files
                .iter()
                .for_each(|(_, file)| drop(fs::remove_file(file)));
            done?;
        }
        Ok(())
    }

    /// Writes a run: the list of its contents, its annotations, and its log last. Returns whether
    /// it is new.
    fn put_run(&self, parcel: &Parcel, log: &ReceivedLog) -> Result<bool> {
        let run = &log.run;
        let there = self.of_run(run)?;
        let digest = log.digest.to_string();
        if let Some((other, _)) = &there.log {
            return match *other == digest {
                true => Ok(false),
                false => Err(conflict(run, other, &digest)),
            };
        }
        let files = self.file("files");
        let lines: String = sorted(outgoing::stored(&parcel.learned))
            .iter()
            .map(|(digest, size)| format!("{digest} {size}\n"))
            .collect();
        fs::write(&files, lines).map_err(Error::io("write", &files))?;
        self.objects.put(&[(objects::files(run, &digest), files)])?;
        self.merge_notes(run, &there.notes, parcel)?;
        let archive = self.file("run");
        archive_in(&archive, |out| {
            outgoing::archive(out, |writer| {
                outgoing::write_received(writer, parcel, log, ("", ""))
            })
        })?;
        let size = fs::metadata(&log.file.path)
            .map_err(Error::io("read", &log.file.path))?
            .len();
        self.objects
            .put(&[(objects::log(run, &digest, size), archive)])?;
        Ok(true)
    }

    /// The stored contents of a run, which were listed when it was pushed.
    fn listed_contents(&self, run: &str) -> Result<Vec<(Digest, u64)>> {
        let (digest, _) = self.of_run(run)?.log.ok_or_else(|| self.absent(run))?;
        let file = self.file("files");
        if !self.objects.get(&objects::files(run, &digest), &file)? {
            return Err(Error::Refused(format!(
                "the list of the contents of run {run} is gone from {}",
                self.address
            )));
        }
        let text = fs::read_to_string(&file).map_err(Error::io("read", &file))?;
        let entry = |line: &str| {
            let (digest, size) = line.split_once(' ')?;
            Some((digest.parse().ok()?, size.parse().ok()?))
        };
        let listed: Option<Vec<_>> = text.lines().map(entry).collect();
        let damaged = || {
            Error::Refused(format!(
                "the list of the contents of run {run} at {} is damaged",
                self.address
            ))
        };
        Ok(sorted(listed.ok_or_else(damaged)?))
    }

    fn absent(&self, run: &str) -> Error {
        Error::Refused(format!("there is no run {run} at {}", self.address))
    }
}

/// In the order of their digests, each once.
fn sorted(mut contents: Vec<(Digest, u64)>) -> Vec<(Digest, u64)> {
    contents.sort_small();
    contents.dedup_by_key(|(digest, _)| *digest);
    contents
}

/// Writes an archive into a file.
fn archive_in(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let file = File::create(path).map_err(Error::io("write", path))?;
    let mut out = BufWriter::new(file);
    write(&mut out)?;
    out.flush().map_err(Error::io("write", path))
}

impl Peer for BucketPeer {
    fn select(&mut self, options: &[String]) -> Result<()> {
        self.objects.begin(self.receives)?;
        if options.is_empty() {
            return Ok(());
        }
        let run = |option: &String| option.strip_prefix("--run=").map(str::to_owned);
        let runs: Option<HashSet<String>> = options.iter().map(run).collect();
        let runs = runs.ok_or_else(|| {
            Error::Refused("a bucket has no database that finds runs by conditions: choose them by their ids with --run, or pull all".to_owned())
        })?;
        runs.iter()
            .try_for_each(|run| message::check_run(run))
            .map_err(|_| {
                Error::Refused("a bucket finds runs by their ids of 8 characters only".to_owned())
            })?;
        self.selected = Some(runs);
        Ok(())
    }

    fn runs(&mut self, after: Option<&str>) -> Result<Vec<RunEntry>> {
        let Some(selected) = &self.selected else {
            return self.objects.runs(after, PAGE);
        };
        let mut wanted: Vec<&String> = selected.iter().collect();
        wanted.retain(|run| after.is_none_or(|after| run.as_str() > after));
        wanted.sort_small();
        let mut page = Vec::new();
        for run in wanted.into_iter().take(PAGE) {
            let entry = self.objects.of_run(run)?.entry(run);
            page.push(entry.ok_or_else(|| self.absent(run))?);
        }
        Ok(page)
    }

    fn contents_of(&mut self, run: &str, after: Option<&Digest>) -> Result<Vec<(Digest, u64)>> {
        if self.contents_of.as_ref().is_none_or(|(of, _)| of != run) {
            self.contents_of = Some((run.to_owned(), self.listed_contents(run)?));
        }
        let stored = self.contents_of.iter().flat_map(|(_, stored)| stored);
        let behind = stored.filter(|(digest, _)| after.is_none_or(|after| digest > after));
        Ok(behind.take(PAGE).copied().collect())
    }

    fn lacking(&mut self, digests: &[Digest]) -> Result<Vec<Digest>> {
        let present = self.objects.has_contents(digests)?;
        let both = digests.iter().zip(present);
        Ok(both
            .filter(|(_, present)| !present)
            .map(|(digest, _)| *digest)
            .collect())
    }

    fn write_run(&mut self, run: &str, out: &mut dyn Write) -> Result<()> {
        let there = self.of_run(run)?;
        let name = there.log_name(run).ok_or_else(|| self.absent(run))?;
        let archive = self.file("run");
        if !self.objects.get(&name, &archive)? {
            return Err(self.absent(run));
        }
        let scratch = ScratchStore::new(self.scratch.path())?;
        let parcel = scratch.read(&archive)?;
        let notes = self.read_notes(run, &there.notes)?.texts(run);
        let log = parcel.logs.iter().find(|log| log.run == run);
        let log = log.ok_or_else(|| self.absent(run))?;
        outgoing::archive(out, |writer| {
            outgoing::write_received(writer, &parcel, log, (&notes.lines, &notes.signatures))
        })
    }

    fn write_contents(&mut self, digests: &[Digest], out: &mut dyn Write) -> Result<()> {
        let scratch = ScratchStore::new(self.scratch.path())?;
        let wanted: Vec<_> = digests
            .iter()
            .map(|digest| (objects::content(digest), self.file(&digest.to_string())))
            .collect();
        let found = self.objects.get_all(&wanted)?;
        for ((_, file), (digest, found)) in wanted.iter().zip(digests.iter().zip(found)) {
            if !found {
                return Err(Error::Refused(format!(
                    "the content {digest} is gone from {}",
                    self.address
                )));
            }
            scratch.read(file)?;
            let _ = fs::remove_file(file);
        }
        let contents = scratch.contents()?;
        outgoing::archive(out, |writer| {
            let digests = digests.iter().copied();
            outgoing::write_contents(writer, &contents, digests, &WorkMeter::default())
        })
    }

    fn write_annotations(&mut self, runs: &[String], out: &mut dyn Write) -> Result<()> {
        let mut all = Vec::new();
        for run in runs {
            let there = self.of_run(run)?;
            all.push((run, self.read_notes(run, &there.notes)?.texts(run)));
        }
        outgoing::archive(out, |writer| {
            all.iter().try_for_each(|(run, texts)| {
                outgoing::write_notes(writer, run, &texts.lines, &texts.signatures)
            })
        })
    }

    fn accept(&mut self, archive: &mut dyn Read, expected: Expected<'_>) -> Result<Accepted> {
        if !self.receives {
            return Err(Error::Refused(format!(
                "the store {} is offered for reading only",
                self.address
            )));
        }
        let scratch = ScratchStore::new(self.scratch.path())?;
        let parcel = Incoming::new(&scratch.home, None)?.read(archive)?;
        check_expected(&parcel, expected)?;
        let came = scratch.digests()?;
        self.put_contents(&scratch, &came)?;
        let mut accepted = Accepted::default();
        let came: HashSet<Digest> = came.into_iter().collect();
        let mut needed: Vec<Digest> = Vec::new();
        if !parcel.logs.is_empty() {
            let stored = outgoing::stored(&parcel.learned).into_iter();
            needed.extend(
                stored
                    .map(|(digest, _)| digest)
                    .filter(|digest| !came.contains(digest)),
            );
        }
        accepted.lacking = self.lacking(&needed)?;
        if !accepted.lacking.is_empty() {
            return Ok(accepted);
        }
        for log in &parcel.logs {
            let list = match self.put_run(&parcel, log)? {
                true => &mut accepted.added,
                false => &mut accepted.known,
            };
            list.push(log.run.clone());
        }
        let mut noted: Vec<&String> = parcel.annotations.iter().map(|one| &one.run).collect();
        noted.extend(parcel.signatures.keys());
        noted.sort_small();
        noted.dedup();
        for run in noted
            .into_iter()
            .filter(|run| !accepted.added.contains(run))
        {
            let there = self.of_run(run)?;
            if there.log.is_some() && self.merge_notes(run, &there.notes, &parcel)? {
                accepted.annotations += 1;
            }
        }
        Ok(accepted)
    }

    fn finish(&mut self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }
}
