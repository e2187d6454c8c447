//! A store of this machine that takes part in an exchange.

use backstory_ordering::SmallSort;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{Read, Write};

use backstory_contents::{Contents, WorkMeter};
use backstory_files::{Digest, regular};
use backstory_store::annotation_history::{self, AnnotationHistory, StampedAnnotation};
use backstory_store::{self as store, Home, Label, RunRecord, Store, is_run_id};

use crate::incoming::{Accepted, Incoming};
use crate::message::{PAGE, short_digest};
use crate::peer::{Expected, Peer, check_expected};
use crate::run_digests::RunDigests;
use crate::signature::{self, AllowedSigners};
use crate::temporary_file::remove_left_files;
use crate::{Error, Result, RunEntry, outgoing};

/// The parts of the program that an exchange needs around it. Errors are lines for the user.
pub trait Upkeep {
    /// The runs that these options of `log` select.
    fn select(
        &mut self,
        home: &Home,
        store: &dyn Store,
        options: &[String],
    ) -> std::result::Result<HashSet<String>, String>;

    /// Indexes the runs that came in. Returns one line for each that cannot be indexed.
    fn index(
        &mut self,
        home: &Home,
        store: &mut dyn Store,
    ) -> std::result::Result<Vec<String>, String>;
}

/// A store of this machine.
pub struct StorePeer<'a> {
    home: Home,
    store: Box<dyn Store>,
    upkeep: Box<dyn Upkeep + 'a>,
    digests: RunDigests,
    history: AnnotationHistory,
    signers: Option<AllowedSigners>,
    /// The store may be changed.
    receives: bool,
    selected: Option<HashSet<String>>,
    /// The ids of the runs, ascending.
    ids: Vec<String>,
    /// The stored contents of the run that was asked for last, by digest.
    contents_of: Option<(String, Vec<(Digest, u64)>)>,
    meter: WorkMeter,
}

impl<'a> StorePeer<'a> {
    /// A store that offers its runs. The database is up to date.
    pub fn new(home: Home, store: Box<dyn Store>, upkeep: impl Upkeep + 'a) -> StorePeer<'a> {
        StorePeer {
            digests: RunDigests::open(&home),
            home,
            store,
            upkeep: Box::new(upkeep),
            history: AnnotationHistory::default(),
            signers: None,
            receives: false,
            selected: None,
            ids: Vec::new(),
            contents_of: None,
            meter: WorkMeter::default(),
        }
    }

    /// Lets the store receive runs. With `signers`, only runs that one of them signed.
    ///
    /// # Errors
    /// A part of the store is a symbolic link, which leads out of it.
    pub fn receiving(mut self, signers: Option<AllowedSigners>) -> Result<StorePeer<'a>> {
        let parts = [
            self.home.runs_dir(),
            self.home.contents_dir(),
            self.home.facts_path(),
            self.home.annotations_path(),
        ];
        for part in parts {
            if fs::symlink_metadata(&part).is_ok_and(|meta| meta.is_symlink()) {
                return Err(Error::Refused(format!(
                    "{} is a symbolic link: a store receives nothing through one",
                    part.display()
                )));
            }
        }
        remove_left_files(&self.home);
        self.signers = signers;
        self.receives = true;
        Ok(self)
    }

    /// Counts the bytes of contents and logs.
    pub fn metered(mut self, meter: &WorkMeter) -> StorePeer<'a> {
        self.meter = meter.clone();
        self
    }

    /// The directory of the store.
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// True if a new run must have a signature.
    pub fn needs_signatures(&self) -> bool {
        self.signers.is_some()
    }

    /// The text to sign for a run.
    pub fn statement(&mut self, run: &str) -> Result<String> {
        let record = self.record(run)?;
        let learned = outgoing::learned(&self.home, &self.store, &[record])?;
        match self.digests.of(run)? {
            Some((digest, _)) => Ok(signature::statement(run, &digest, &learned)),
            None => Err(Error::Refused(format!("run {run} has no log"))),
        }
    }

    fn record(&self, run: &str) -> Result<RunRecord> {
        if !is_run_id(run) {
            return Err(Error::Protocol("a run's id has 8 characters".to_owned()));
        }
        let found = self.store.run(run)?;
        found.ok_or_else(|| Error::Refused(format!("there is no run {run} in the store")))
    }

    /// Lists the runs anew, and reads the annotations.
    fn list(&mut self) -> Result<()> {
        if self.receives {
            self.adopt_labels()?;
        }
        self.history = AnnotationHistory::of(&self.home)?;
        self.ids = self.home.finalized()?;
        self.ids.retain(|id| is_run_id(id));
        if let Some(selected) = &self.selected {
            self.ids.retain(|id| selected.contains(id));
        }
        self.ids.sort_small();
        Ok(())
    }

    /// Names and notes that an older program gave are in the database alone: they get the oldest
    /// time.
    fn adopt_labels(&mut self) -> Result<()> {
        let history = AnnotationHistory::of(&self.home)?;
        let mut adopted = Vec::new();
        for run in self.store.runs()? {
            let id = &run.header.id;
            let labels = [
                (Label::Name, &run.name, &run.header.name),
                (Label::Note, &run.note, &None),
            ];
            for (label, present, recorded) in labels {
                if present != recorded && history.label(id, label).is_none() {
                    let record = StampedAnnotation::label(id, label, present.as_deref());
                    adopted.push(StampedAnnotation { at: 1, ..record });
                }
            }
        }
        match adopted.is_empty() {
            true => Ok(()),
            false => Ok(annotation_history::merge(&self.home, adopted).map(|_| ())?),
        }
    }

    fn entry(&mut self, run: &str) -> Result<Option<RunEntry>> {
        let Some((digest, bytes)) = self.digests.of(run)? else {
            return Ok(None);
        };
        let annotations: Vec<_> = self.history.of_run(run).collect();
        let annotations = store::annotations::to_lines(&annotations);
        Ok(Some(RunEntry {
            run: run.to_owned(),
            digest: digest.to_string(),
            bytes,
            annotations: short_digest(&annotations),
            signatures: short_digest(&signature::of_run(&self.home, run).concat()),
        }))
    }

    fn contents(&self) -> Result<Option<Contents>> {
        match Contents::open(&self.home.contents_dir()) {
            Ok(contents) => Ok(Some(contents)),
            Err(backstory_contents::Error::None(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Locks the journal of facts until the file is dropped.
    fn lock_facts(&self) -> Result<File> {
        let path = self.home.keep_lock_path();
        let mut options = File::options();
        options.create(true).truncate(false).write(true);
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        regular::open_with(&mut options, &path)
            .and_then(|file| file.lock().map(|()| file))
            .map_err(Error::io("lock", &path))
    }
}

impl Peer for StorePeer<'_> {
    fn select(&mut self, options: &[String]) -> Result<()> {
        if !options.is_empty() {
            let selected = self.upkeep.select(&self.home, &*self.store, options);
            self.selected = Some(selected.map_err(Error::Refused)?);
        }
        Ok(())
    }

    fn runs(&mut self, after: Option<&str>) -> Result<Vec<RunEntry>> {
        if after.is_none() {
            self.list()?;
        }
        let from = after.map_or(0, |after| {
            self.ids.partition_point(|id| id.as_str() <= after)
        });
        let mut page = Vec::new();
        for at in from..self.ids.len() {
            if page.len() == PAGE {
                break;
            }
            let run = self.ids[at].clone();
            page.extend(self.entry(&run)?);
        }
        Ok(page)
    }

    fn contents_of(&mut self, run: &str, after: Option<&Digest>) -> Result<Vec<(Digest, u64)>> {
        if self.contents_of.as_ref().is_none_or(|(of, _)| of != run) {
            let record = self.record(run)?;
            let learned = outgoing::learned(&self.home, &self.store, &[record])?;
            let mut stored = outgoing::stored(&learned);
            stored.sort_small();
            self.contents_of = Some((run.to_owned(), stored));
        }
        let stored = self.contents_of.iter().flat_map(|(_, stored)| stored);
        let behind = stored.filter(|(digest, _)| after.is_none_or(|after| digest > after));
        Ok(behind.take(PAGE).copied().collect())
    }

    fn lacking(&mut self, digests: &[Digest]) -> Result<Vec<Digest>> {
        let Some(contents) = self.contents()? else {
            return Ok(digests.to_vec());
        };
        let mut lacking = Vec::new();
        for digest in digests {
            if !contents.has(digest)? {
                lacking.push(*digest);
            }
        }
        Ok(lacking)
    }

    fn write_run(&mut self, run: &str, out: &mut dyn Write) -> Result<()> {
        let record = self.record(run)?;
        let learned = outgoing::learned(&self.home, &self.store, std::slice::from_ref(&record))?;
        outgoing::archive(out, |writer| {
            outgoing::write_facts(writer, &learned)?;
            outgoing::write_run(writer, &self.home, &self.history, &record, &self.meter)
        })
    }

    fn write_contents(&mut self, digests: &[Digest], out: &mut dyn Write) -> Result<()> {
        let contents = self.contents()?;
        outgoing::archive(out, |writer| match &contents {
            Some(contents) => {
                let digests = digests.iter().copied();
                outgoing::write_contents(writer, contents, digests, &self.meter)
            }
            None => Ok(()),
        })
    }

    fn write_annotations(&mut self, runs: &[String], out: &mut dyn Write) -> Result<()> {
        if !runs.iter().all(|run| is_run_id(run)) {
            return Err(Error::Protocol("a run's id has 8 characters".to_owned()));
        }
        outgoing::archive(out, |writer| {
            runs.iter().try_for_each(|run| {
                outgoing::write_annotations(writer, &self.home, &self.history, run)
            })
        })
    }

    fn accept(&mut self, archive: &mut dyn Read, expected: Expected<'_>) -> Result<Accepted> {
        if !self.receives {
            return Err(Error::Refused(format!(
                "the store {} is offered for reading only",
                self.home.dir().display()
            )));
        }
        let incoming = Incoming::new(&self.home, self.signers.as_ref())?.metered(&self.meter);
        let mut parcel = incoming.read(archive)?;
        check_expected(&parcel, expected)?;
        let annotations = std::mem::take(&mut parcel.annotations);
        let lock = self.lock_facts()?;
        let mut accepted = incoming.add(parcel, &mut *self.store, false)?;
        drop(lock);
        if accepted.lacking.is_empty() {
            accepted.annotations = incoming.annotate(annotations)?;
        }
        Ok(accepted)
    }

    fn finish(&mut self) -> Result<Vec<String>> {
        if !self.receives {
            return Ok(Vec::new());
        }
        let indexed = self.upkeep.index(&self.home, &mut *self.store);
        let problems = indexed.map_err(Error::Refused)?;
        store::catch_up_annotations(&self.home, &mut *self.store)?;
        annotation_history::apply_labels(&self.home, &mut *self.store)?;
        Ok(problems)
    }
}
