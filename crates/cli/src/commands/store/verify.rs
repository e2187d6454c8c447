//! `store verify`: reads everything in the store and lists what is damaged.
//!
//! Each damage is reported once, and with it what can be done. Nothing is changed, except that
//! finished runs are indexed first if the database is intact.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use backstory_deep::DeepLog;
use backstory_eventlog::Log;
use backstory_files::Digest;
use backstory_pipeline::report;
use backstory_store::{
    self as store, ActivityKey, DatabaseFiles, GraphStore, Home, MemoryStore, RunRecord, Store,
    StoreEngine, broken_rule, examine,
};

use super::{Outcome, answer, open_contents};
use crate::args::store::StoreVerifyArgs;
use crate::current_store::CurrentStore;
use crate::error::{Failure, chain, one_line};
use crate::index;
use crate::json::{self, Value};
use crate::text::progress::{Progress, Unit};
use crate::text::words::counted;

/// The repair of damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Repair {
    /// The database can be made again from the logs.
    Rebuild,
    /// The part is lost.
    Nothing,
    /// The next command repairs it.
    Itself,
}

/// One damaged file, or one damaged part of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct DamagedPart {
    path: PathBuf,
    /// The content that is damaged.
    digest: Option<Digest>,
    what: String,
    repair: Repair,
}

/// Verifies the store.
pub fn run(args: StoreVerifyArgs, chosen: Option<&Path>) -> Outcome {
    let home = Home::open_to_read(&Home::directory(chosen)?)?;
    let mut damaged = Damaged::default();
    let runs = damaged.of_database(&home)?;
    damaged.of_logs(&home)?;
    damaged.of_contents(&home)?;
    let sound = damaged.0.is_empty();
    answer(|out| match args.json {
        true => json::lines(out, damaged.0.iter().map(fields)),
        false if sound => writeln!(
            out,
            "all contents are intact, and so are the database and the logs of {}",
            counted(runs, "run", "runs")
        ),
        false => text(&damaged.0, out),
    })?;
    Ok(u8::from(!sound))
}

fn fields(part: &DamagedPart) -> Value {
    Value::Object(vec![
        ("path", part.path.display().to_string().as_str().into()),
        ("digest", part.digest.into()),
        ("what", part.what.as_str().into()),
        ("rebuilt_by", rebuilt_by(part.repair).into()),
    ])
}

/// The command that repairs the damage.
fn rebuilt_by(repair: Repair) -> Option<&'static str> {
    (repair == Repair::Rebuild).then_some("backstory store rebuild")
}

fn text(damaged: &BTreeSet<DamagedPart>, out: &mut impl Write) -> std::io::Result<()> {
    for part in damaged {
        let content = part.digest.map(|digest| format!("content {digest}, "));
        let content = content.unwrap_or_default();
        writeln!(out, "{}: {content}{}", part.path.display(), part.what)?;
    }
    if damaged.iter().any(|part| part.repair == Repair::Rebuild) {
        writeln!(
            out,
            "`backstory store rebuild` makes the database again from the logs"
        )?;
    }
    if damaged.iter().any(|part| part.repair == Repair::Nothing) {
        writeln!(
            out,
            "a damaged log or content cannot be made again: restore the file from a backup, or record again"
        )?;
    }
    Ok(())
}

/// All damage that was found, without repetitions.
#[derive(Default)]
struct Damaged(BTreeSet<DamagedPart>);

impl Damaged {
    fn add(&mut self, path: &Path, what: impl Into<String>, repair: Repair) {
        self.0.insert(DamagedPart {
            path: path.to_owned(),
            digest: None,
            what: one_line(&what.into()),
            repair,
        });
    }

    /// Checks the database, and the graph of every run against its log. Returns the number of runs.
    fn of_database(&mut self, home: &Home) -> Result<usize, Failure> {
        let database = DatabaseFiles::of(home, StoreEngine::of(home)?);
        let path = database.path();
        let progress = Progress::start("checking the database");
        let messages = match examine(home) {
            Ok(messages) => messages,
            Err(error) if is_damage(&error) => vec![chain(&error)],
            Err(error) => return Err(error.into()),
        };
        progress.end();
        if !messages.is_empty() {
            for message in messages {
                self.add(path, message, Repair::Rebuild);
            }
            return Ok(0);
        }
        let current = CurrentStore::open(Some(home.dir()))?;
        let runs = match current.store.runs() {
            Ok(runs) => runs,
            Err(error) => {
                self.add(path, chain(&error), Repair::Rebuild);
                return Ok(0);
            }
        };
        let bytes = runs.iter().map(|run| run.log_bytes).sum();
        let what = format!(
            "checking the graphs of {}",
            counted(runs.len(), "run", "runs")
        );
        let progress = Progress::of(&what, bytes, Unit::Bytes);
        for run in &runs {
            let id = &run.header.id;
            let broken = broken_rule(&current.store, run);
            let broken = broken.unwrap_or_else(|error| Some(chain(&error)));
            let broken = match broken {
                None => self.against_log(&current, run),
                broken => broken,
            };
            progress.done.add(run.log_bytes);
            if let Some(what) = broken {
                self.add(path, format!("run {id}: {what}"), Repair::Rebuild);
            }
        }
        Ok(runs.len())
    }

    /// Folds the log of a run again and compares. `None` if graph and log agree, or if the log
    /// cannot tell: it is missing, or damaged itself.
    fn against_log(&self, current: &CurrentStore, run: &RunRecord) -> Option<String> {
        let id = &run.header.id;
        let log = Log::open(current.home.log_path(id)).ok()?;
        // The filters of today need not be those of that day.
        let records = current.store.extended(run.key).ok()?;
        let is_filtered = records
            .iter()
            .any(|(_, _, kind, _)| **kind == *report::KIND);
        if !log.resolved() || is_filtered {
            return None;
        }
        let mut again = MemoryStore::default();
        index::fold_into(&current.home, id, &mut again, None).ok()?;
        let same = agree(&current.store, run, &again);
        let differs = || {
            "its graph is not the one of its log: it was damaged, or another version of backstory made it"
                .to_owned()
        };
        same.map_or_else(|error| Some(chain(&error)), |same| (!same).then(differs))
    }

    fn of_logs(&mut self, home: &Home) -> Result<(), Failure> {
        for run in home.finalized()? {
            let path = home.log_path(&run);
            match Log::open(&path) {
                Err(error) => self.add(&path, chain(&error), Repair::Nothing),
                Ok(log) => {
                    if let Some(reason) = log.damage().reason() {
                        self.add(&path, reason.to_string(), Repair::Nothing);
                    }
                }
            }
            self.of_deep_log(&home.deep_log_path(&run));
        }
        Ok(())
    }

    /// Checks the deep log of a run whose log is finalized. It is whole by then, if there is one.
    fn of_deep_log(&mut self, path: &Path) {
        if !path.exists() {
            return;
        }
        match DeepLog::open(path) {
            Err(error) => self.add(path, chain(&error), Repair::Nothing),
            Ok(log) => {
                if let Some(damage) = log.damage().words() {
                    self.add(path, damage, Repair::Nothing);
                }
            }
        }
    }

    fn of_contents(&mut self, home: &Home) -> Result<(), Failure> {
        let Some(contents) = open_contents(home)? else {
            return Ok(());
        };
        let size = contents.disk()?;
        let progress = Progress::of("reading all contents", size, Unit::Bytes);
        for damage in contents.verify(&mut |done, _| progress.done.set(done))? {
            let repair = match damage.digest {
                Some(_) => Repair::Nothing,
                None => Repair::Itself,
            };
            self.0.insert(DamagedPart {
                path: damage.path,
                digest: damage.digest,
                what: damage.what,
                repair,
            });
        }
        progress.end();
        Ok(())
    }
}

/// True if the error is about the bytes of the database, not about the right to read it.
pub fn is_damage(error: &store::Error) -> bool {
    use store::Error::{Corrupt, Damaged, Database, NotOurs};
    matches!(
        error,
        Corrupt { .. } | Damaged(_) | Database { .. } | NotOurs(_)
    )
}

/// True if two stores have the same graph of a run.
fn agree(one: &dyn Store, run: &RunRecord, other: &MemoryStore) -> store::Result<bool> {
    let Some(again) = other.run(&run.header.id)? else {
        return Ok(false);
    };
    let activities = one.activities(run.key)?;
    if activities != other.activities(again.key)?
        || one.entities(run.key)? != other.entities(again.key)?
    {
        return Ok(false);
    }
    for activity in activities {
        let stream = one.stream(ActivityKey::new(run.key, activity.id))?;
        if stream != other.stream(ActivityKey::new(again.key, activity.id))? {
            return Ok(false);
        }
    }
    Ok(true)
}
