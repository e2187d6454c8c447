//! `store import`: what somebody else exported.
//!
//! Nothing in the file is trusted: a name is a run's id or a digest or an error, a content is what its digest names, a log is a resolved log of the
//! run that its name says. What is known here already stays as it is. Killed at any moment it has imported some contents and
//! perhaps some runs, each wholly; importing again does the rest.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use backstory_contents::Contents;
use backstory_contents::transfer::{Kind, Reader, Section};
use backstory_eventlog::Log;
use backstory_store::facts::{self, DirectorySnapshot, Fact, Journal, JournalRecord};
use backstory_store::{self as store, ContentFacts, GraphStore, Home, Label, SqliteStore};

use super::keep_lock;
use crate::args::store::StoreImportArgs;
use crate::commands::{Outcome, answer};
use crate::error::{Failure, chain};
use crate::index::{self, Busy};
use crate::json::{self, Value};
use crate::text::progress::Progress;

/// Facts and labels are held in memory: more than this is no export of ours.
const MOST: u64 = 1 << 30;

/// Takes over what the file holds.
pub fn run(args: StoreImportArgs, store: Option<&Path>) -> Outcome {
    let home = Home::locate(store)?;
    let mut database = SqliteStore::open(&home)?;
    let lock = keep_lock(&home)?;
    store::catch_up(&home, &mut database)?;
    let progress = Progress::start("importing");
    let mut import = Import {
        contents: Contents::create(&home.contents_dir())?,
        home,
        learned: Vec::new(),
        labels: Vec::new(),
        new: Vec::new(),
        known: Vec::new(),
    };
    let done = import.read(&args.file, &database);
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
    /// Runs that are new here.
    new: Vec<String>,
    /// Runs that were here.
    known: Vec<String>,
}

impl Import {
    fn read(&mut self, path: &Path, database: &SqliteStore) -> Result<(), Problem> {
        let mut reader = Reader::new(BufReader::new(File::open(path)?))?;
        let mut logs: Vec<(String, PathBuf)> = Vec::new();
        let (dir, mut number) = (self.home.runs_dir(), 0);
        loop {
            number += 1;
            let beside = dir.join(format!("import.{}.{number}", std::process::id()));
            let place = |section: &Section| -> io::Result<File> {
                let bounded =
                    matches!(section.kind, Some(Kind::Log | Kind::Content)) || section.size <= MOST;
                if !bounded {
                    return Err(io::Error::other("it holds more facts than any store does"));
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
        // All are looked at before the first is taken over.
        for (id, beside) in &logs {
            self.check_log(id, beside)?;
        }
        // What is known of a run's files comes before the run: or we would look for them on this machine.
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
            false => Err(format!("a content in it is {found} and not {wanted}, as it says").into()),
        }
    }

    /// A log that is what its name says, and can be indexed without a look at this machine's files.
    fn check_log(&self, id: &str, path: &Path) -> Result<(), Problem> {
        let log = Log::open(path)?;
        if log.header().id != id {
            return Err(
                format!("the log of run {id} in it is of run '{}'", log.header().id).into(),
            );
        }
        if !log.resolved() {
            return Err(format!(
                "run {id} in it was never indexed; index it where it was recorded, and export it again"
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
                    "run {id} is in the store already, and is another run; `backstory rm {id}` makes room"
                )
                .into());
            }
        }
        Ok(())
    }

    /// Appends to the journal what is new, of which the contents are here.
    fn write_facts(&mut self, runs: &[String], database: &SqliteStore) -> Result<(), Problem> {
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

    /// Nothing is said to be kept that is not.
    fn is_true(&self, fact: &Fact) -> Result<bool, Problem> {
        match (fact.availability.is_stored(), fact.digest) {
            (true, Some(digest)) => Ok(self.contents.has(&digest)?),
            (true, None) => Ok(false),
            _ => Ok(true),
        }
    }

    fn learn(&self, database: &mut SqliteStore) -> Result<(), Failure> {
        Ok(store::catch_up(&self.home, database)?)
    }

    /// Names and notes of the runs that are new.
    fn label(&self, database: &mut SqliteStore) -> Result<(), Failure> {
        for (run, label) in self.labels.iter().filter(|(run, _)| self.new.contains(run)) {
            let (name, note) = label.split_once('\n').unwrap_or((label, ""));
            if !name.is_empty() && crate::commands::record::check_name(name).is_ok() {
                database.set_label(run, Label::Name, Some(name))?;
            }
            if !note.is_empty() {
                database.set_label(run, Label::Note, Some(note))?;
            }
        }
        Ok(())
    }

    /// Removes what was left beside.
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

/// A run's id, and so no path: 8 characters of Crockford's base 32.
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
