//! `store import`: adds runs from a file that `store export` wrote.
//!
//! Nothing in the file is trusted. A name must be the id of a run or a digest. A content must have
//! its digest. A log must be the resolved log of the run that its name says. Runs and facts that
//! the store has already stay as they are.
//!
//! If the import is killed at any moment, it has added some contents and perhaps some runs, each
//! completely. A second import adds the rest.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use backstory_contents::Contents;
use backstory_contents::WorkMeter;
use backstory_contents::transfer::{Kind, Reader, Section};
use backstory_eventlog::Log;
use backstory_store::annotations::{self, AnnotationRecord};
use backstory_store::facts::{self, DirectorySnapshot, Fact, Journal, JournalRecord};
use backstory_store::{self as store, Home, Label, Store, open_store};

use super::keep_lock;
use crate::args::store::StoreImportArgs;
use crate::commands::{Outcome, answer};
use crate::error::{Failure, chain};
use crate::index::{self, Busy};
use crate::json::{self, Value};
use crate::text::progress::{Progress, Unit};

/// Facts and labels are read into memory. No export has more than this.
const MOST: u64 = 1 << 30;

/// Adds the runs of the file to the store.
pub fn run(args: StoreImportArgs, store: Option<&Path>) -> Outcome {
    let home = Home::locate(store)?;
    let mut database = open_store(&home)?;
    let lock = keep_lock(&home)?;
    store::catch_up(&home, &mut database)?;
    let meter = WorkMeter::default();
    let progress = Progress::metered("importing", &meter, Unit::Bytes);
    let mut import = Import {
        contents: Contents::create(&home.contents_dir())?,
        home,
        learned: Vec::new(),
        labels: Vec::new(),
        said: Vec::new(),
        new: Vec::new(),
        known: Vec::new(),
    };
    let done = import.read(&args.file, &meter, &database);
    import.sweep();
    done.map_err(|error| {
        Failure::not_found(format!(
            "cannot import {}: {}",
            args.file.display(),
            chain(&*error)
        ))
    })?;
    import.learn(&mut database)?;
    drop(lock);
    index::bring_up_to_date(&import.home, &mut database, Busy::Wait, true)
        .map_err(|error| Failure::not_found(chain(&error)))?;
    import.label(&mut database)?;
    progress.end();
    answer(|out| match args.json {
        true => json::object(
            out,
            vec![
                ("runs", Value::array(&import.new)),
                ("known", Value::array(&import.known)),
            ],
        ),
        false => {
            writeln!(out, "imported: {}", list(&import.new))?;
            match import.known.is_empty() {
                true => Ok(()),
                false => writeln!(out, "in the store already: {}", list(&import.known)),
            }
        }
    })
}

fn list(runs: &[String]) -> String {
    match runs.is_empty() {
        true => "nothing".to_owned(),
        false => runs.join(" "),
    }
}

type Problem = Box<dyn std::error::Error + Send + Sync>;

struct Import {
    home: Home,
    contents: Contents,
    learned: Vec<JournalRecord>,
    labels: Vec<(String, String)>,
    said: Vec<AnnotationRecord>,
    /// Runs that are new in the store.
    new: Vec<String>,
    /// Runs that the store had already.
    known: Vec<String>,
}

impl Import {
    /// Reads the file at `path`. `meter` counts its bytes.
    fn read(
        &mut self,
        path: &Path,
        meter: &WorkMeter,
        database: &dyn Store,
    ) -> Result<(), Problem> {
        let file = File::open(path)?;
        meter.expect(file.metadata()?.len());
        let mut reader = Reader::new(BufReader::new(meter.reading(file)))?;
        let mut logs: Vec<(String, PathBuf)> = Vec::new();
        let (dir, mut number) = (self.home.runs_dir(), 0);
        loop {
            number += 1;
            let beside = dir.join(format!("import.{}.{number}", std::process::id()));
            let place = |section: &Section| -> io::Result<File> {
                let bounded =
                    matches!(section.kind, Some(Kind::Log | Kind::Content)) || section.size <= MOST;
                if !bounded {
                    return Err(io::Error::other("it has more facts than any store"));
                }
                new_file(&beside)
            };
            let Some((section, mut file)) = reader.next(place)? else {
                break;
            };
            file.rewind()?;
            match section.kind {
                Some(Kind::Content) => self.content(&section.name, &mut file)?,
                Some(Kind::Facts) => self.learned.extend(facts::from_bytes(&all(&mut file)?)),
                Some(Kind::Label) => self.labels.push((section.name, text(&mut file)?)),
                Some(Kind::Annotations) => {
                    let said = annotations::from_lines(&all(&mut file)?).into_iter();
                    self.said.extend(said);
                }
                Some(Kind::Log) => {
                    check_id(&section.name)?;
                    logs.push((section.name, beside));
                    continue;
                }
                None => {}
            }
            fs::remove_file(&beside)?;
        }
        self.contents.sync()?;
        // All runs are checked before the first is added.
        for (id, beside) in &logs {
            self.check_log(id, beside)?;
        }
        // The facts about a run's files come before the run, or the indexer would look for the
        // files on this machine.
        let ids: Vec<String> = logs.iter().map(|(id, _)| id.clone()).collect();
        self.write_facts(&ids, database)?;
        for (id, beside) in logs {
            match self.home.log_path(&id).exists() {
                true => self.known.push(id),
                false => {
                    fs::rename(&beside, self.home.log_path(&id))?;
                    self.new.push(id);
                }
            }
        }
        Ok(())
    }

    fn content(&self, name: &str, file: &mut File) -> Result<(), Problem> {
        let wanted: backstory_files::Digest = name.parse()?;
        let (found, _) = self.contents.put(file)?;
        match found == wanted {
            true => Ok(()),
            false => {
                Err(format!("a content in it has the digest {found} instead of {wanted}").into())
            }
        }
    }

    /// Checks that a log is of the run in its name, and can be indexed without looking at files of
    /// this machine.
    fn check_log(&self, id: &str, path: &Path) -> Result<(), Problem> {
        let log = Log::open(path)?;
        if log.header().id != id {
            return Err(
                format!("the log of run {id} in it is of run '{}'", log.header().id).into(),
            );
        }
        if !log.resolved() {
            return Err(format!(
                "run {id} in it was never indexed: index the run where it was recorded, and export it again"
            )
            .into());
        }
        let here = self.home.log_path(id);
        if here.exists() {
            let (ours, theirs) = (Log::open(&here)?, log.header());
            let same = (
                ours.header().started,
                &ours.header().boot_id,
                &ours.header().command,
            ) == (theirs.started, &theirs.boot_id, &theirs.command);
            if !same {
                return Err(format!(
                    "the store already has another run {id}: remove that one with `backstory rm {id}` first"
                )
                .into());
            }
        }
        Ok(())
    }

    /// Appends new facts to the journal whose contents the store has.
    fn write_facts(&mut self, runs: &[String], database: &dyn Store) -> Result<(), Problem> {
        let mut fresh = Vec::new();
        for run in runs {
            if database.directory_snapshot(run)?.is_some() {
                continue;
            }
            let told = self
                .learned
                .iter()
                .find(|one| matches!(one, JournalRecord::Run(r) if r.run == *run));
            fresh.push(told.cloned().unwrap_or_else(|| {
                JournalRecord::Run(DirectorySnapshot {
                    run: run.clone(),
                    entries: Vec::new(),
                })
            }));
        }
        for one in &self.learned {
            let JournalRecord::Fact(fact) = one else {
                continue;
            };
            if database.fact(&fact.ident)?.is_none() && self.is_true(fact)? {
                fresh.push(one.clone());
            }
        }
        Journal::open(&self.home.facts_path())?.append(&fresh)?;
        Ok(())
    }

    /// True if the store has the content that the fact says is stored.
    fn is_true(&self, fact: &Fact) -> Result<bool, Problem> {
        match (fact.availability.is_stored(), fact.digest) {
            (true, Some(digest)) => Ok(self.contents.has(&digest)?),
            (true, None) => Ok(false),
            _ => Ok(true),
        }
    }

    fn learn(&self, database: &mut dyn Store) -> Result<(), Failure> {
        Ok(store::catch_up(&self.home, database)?)
    }

    /// Names and notes of the runs that are new.
    fn label(&mut self, database: &mut dyn Store) -> Result<(), Failure> {
        for (run, label) in self.labels.iter().filter(|(run, _)| self.new.contains(run)) {
            let (name, note) = label.split_once('\n').unwrap_or((label, ""));
            if !name.is_empty() && crate::commands::record::check_name(name).is_ok() {
                database.set_label(run, Label::Name, Some(name))?;
            }
            if !note.is_empty() {
                database.set_label(run, Label::Note, Some(note))?;
            }
        }
        // Of the runs that the store had already, the owner's annotations stay.
        self.said.retain(|record| match record {
            AnnotationRecord::Set(one) => self.new.contains(&one.run) && one.value.is_some(),
            AnnotationRecord::Forgotten { .. } => false,
        });
        if !self.said.is_empty() {
            annotations::append(&self.home, &self.said)?;
        }
        Ok(())
    }

    /// Removes temporary files.
    fn sweep(&self) {
        let ours = format!("import.{}.", std::process::id());
        for entry in fs::read_dir(self.home.runs_dir())
            .into_iter()
            .flatten()
            .flatten()
        {
            if entry
                .file_name()
                .to_str()
                .is_some_and(|name| name.starts_with(&ours))
            {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

fn new_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

fn all(file: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn text(file: &mut File) -> Result<String, Problem> {
    Ok(String::from_utf8(all(file)?)?)
}

/// Checks that a name is the id of a run, and so no path: 8 characters of Crockford's base 32.
fn check_id(name: &str) -> Result<(), Problem> {
    let right =
        |byte: u8| byte.is_ascii_digit() || (byte.is_ascii_lowercase() && !b"ilou".contains(&byte));
    match name.len() == 8 && name.bytes().all(right) {
        true => Ok(()),
        false => Err(format!(
            "'{}' in it cannot be the id of a run",
            name.escape_default()
        )
        .into()),
    }
}
