//! What every store can do, in the graph's own terms.

use std::collections::HashSet;

use backstory_eventlog::event::{Bytes, Time};
use backstory_eventlog::run::{RunEnd, RunHeader};
use backstory_files::Digest;
use backstory_files::Ident;
use backstory_graph::model::{Activity, ActivityId, Derived, Edge, Entity, EntityId, Inform, Sink};

use crate::facts::{DirectorySnapshot, Fact, Learned, Mark};
use crate::{Error, Result};

/// A run's number in this store. Later appended runs have greater numbers; a number is never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunKey(pub u32);

/// An activity of the whole store: its run's number and its id in the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ActivityKey(pub u64);

/// An entity of the whole store: its run's number and its id in the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntityKey(pub u64);

macro_rules! key {
    ($key:ident, $local:ident) => {
        impl $key {
            /// The key of `local` in `run`.
            pub fn new(run: RunKey, local: $local) -> Self {
                $key(u64::from(run.0) << 32 | u64::from(local.0))
            }
            /// Its run.
            pub fn run(self) -> RunKey {
                RunKey((self.0 >> 32) as u32)
            }
            /// Its id in the run.
            pub fn local(self) -> $local {
                $local(self.0 as u32)
            }
        }
    };
}
key!(ActivityKey, ActivityId);
key!(EntityKey, EntityId);

/// How much a run holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct Counts {
    pub activities: u64,
    pub entities: u64,
    pub edges: u64,
    /// Distinct paths of files that were read or executed.
    pub files_read: u64,
    /// Distinct paths of files that were written, made, renamed to or removed.
    pub files_written: u64,
}

/// A run as the store has it.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRecord {
    /// Its number here.
    pub key: RunKey,
    /// As logged. Its name may have been changed since: see `name`.
    pub header: RunHeader,
    /// As logged.
    pub end: RunEnd,
    /// The name it has now.
    pub name: Option<String>,
    /// What its owner wrote about it.
    pub note: Option<String>,
    /// Bytes of the finalized log.
    pub log_bytes: u64,
    /// What the graph knows it does not know (sentences for people), beside `end.incomplete_because`.
    pub unknown: Vec<String>,
    /// How much it holds.
    pub counts: Counts,
}

/// Everything one activity did, in ids of its run, in the order it was appended.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Stream {
    /// What it used and generated.
    pub edges: Vec<Edge>,
    /// Who informed it.
    pub informed_by: Vec<Inform>,
    /// Whom it informed.
    pub informs: Vec<Inform>,
    /// Versions it derived from others.
    pub derived: Vec<Derived>,
}

/// Which entities of an identity are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Those that their run generated.
    Made,
    /// All.
    Any,
}

/// The size of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct Stats {
    pub runs: u64,
    pub counts: Counts,
    /// Bytes of the database at rest.
    pub bytes: u64,
}

/// The part of [`Store::append`]'s caller: puts the run's graph in here.
pub type Body<'a> = dyn FnMut(&mut Appender<'_>) -> Result<()> + 'a;

/// One state of a store, until it is dropped; see [`Store::reading`].
#[derive(Default)]
pub struct Reading<'s> {
    end: Option<Box<dyn FnOnce() + 's>>,
}

impl<'s> Reading<'s> {
    /// One state, which `end` lets go.
    pub fn new(end: impl FnOnce() + 's) -> Reading<'s> {
        Reading {
            end: Some(Box::new(end)),
        }
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            end();
        }
    }
}

/// A home of runs. Object safe; reads take `&self`.
pub trait Store {
    /// Whatever is asked while the answer is kept is asked of one state of the store, and may cost less than if each question
    /// looked for itself whether anything has changed.
    fn reading(&self) -> Result<Reading<'_>> {
        Ok(Reading::default())
    }

    /// Appends a run, atomically: `body` emits its graph. If it or the store fails, the store is as it was.
    fn append(
        &mut self,
        header: &RunHeader,
        end: &RunEnd,
        log_bytes: u64,
        body: &mut Body<'_>,
    ) -> Result<RunKey>;
    /// Removes a run from the graph. Its log is its caller's. False if it is not there.
    fn remove(&mut self, id: &str) -> Result<bool>;
    /// Forgets what runs shared and none refers to any more, atomically. Where runs share nothing, there is nothing to do.
    fn forget_unreferred(&mut self) -> Result<()> {
        Ok(())
    }
    /// Gives the room of what was removed back to the file system. May fail for want of room to do so; then all is as it was.
    fn compact(&mut self) -> Result<()> {
        Ok(())
    }
    /// Gives a run a name, or takes it away.
    fn set_name(&mut self, id: &str, name: Option<&str>) -> Result<()>;
    /// Writes a note on a run, or takes it away.
    fn set_note(&mut self, id: &str, note: Option<&str>) -> Result<()>;

    /// The ids of all runs.
    fn run_ids(&self) -> Result<HashSet<String>>;
    /// All runs, newest (by start) first.
    fn runs(&self) -> Result<Vec<RunRecord>>;
    /// A run by its id.
    fn run(&self, id: &str) -> Result<Option<RunRecord>>;
    /// A run by its number.
    fn run_by_key(&self, key: RunKey) -> Result<Option<RunRecord>>;
    /// The id of a run by its number.
    fn run_id(&self, key: RunKey) -> Result<Option<String>> {
        Ok(self.run_by_key(key)?.map(|record| record.header.id))
    }
    /// Runs that have this name now, newest first.
    fn runs_named(&self, name: &str) -> Result<Vec<RunRecord>>;

    /// The activities of a run in the order of their ids.
    fn activities(&self, run: RunKey) -> Result<Vec<Activity>>;
    /// The entities of a run in the order of their ids.
    fn entities(&self, run: RunKey) -> Result<Vec<Entity>>;
    /// One activity.
    fn activity(&self, key: ActivityKey) -> Result<Activity>;
    /// One entity.
    fn entity(&self, key: EntityKey) -> Result<Entity>;
    /// What an activity did.
    fn stream(&self, key: ActivityKey) -> Result<Stream>;
    /// The activities that used, generated or derived from an entity; `true` if one generated (or removed) it. No order.
    fn touching(&self, key: EntityKey) -> Result<Vec<(ActivityId, bool)>>;
    /// Entities that had this absolute path as their name or an alias, latest appended run first.
    fn at_path(&self, path: &[u8]) -> Result<Vec<EntityKey>>;
    /// Entities of any run that are the same version of the same file ([`same_version`]). No order.
    fn same(&self, ident: &Ident, role: Role) -> Result<Vec<EntityKey>>;
    /// The extended records of a run: activity, time, kind, payload, in the order they were appended.
    fn extended(&self, run: RunKey) -> Result<Vec<(ActivityId, Time, Bytes, Bytes)>>;
    /// How big the store is.
    fn stats(&self) -> Result<Stats>;

    /// Takes in what was learned of contents, atomically, and remembers how far the journal has been read. `anew`: all that was
    /// known before is forgotten first.
    fn learn(&mut self, learned: &[Learned], mark: Mark, anew: bool) -> Result<()>;
    /// How far the journal has been read.
    fn learned(&self) -> Result<Mark>;
    /// What is known of a version's content.
    fn fact(&self, ident: &Ident) -> Result<Option<Fact>>;
    /// All that is known of versions' contents.
    fn facts(&self) -> Result<Vec<Fact>>;
    /// The versions that are known to have this content. No order.
    fn with_content(&self, digest: &Digest) -> Result<Vec<Ident>>;
    /// Runs that wanted contents to be kept (`--contents`) and whose contents have not been looked at yet, oldest first.
    fn runs_without_contents(&self) -> Result<Vec<RunRecord>>;
    /// How a run's paths lay when it had ended; none if its contents have not been looked at.
    fn directory_snapshot(&self, run: &str) -> Result<Option<DirectorySnapshot>>;
}

/// Whether two identities are of one content state of one file. Not by status-change time: `link` and `chmod` change it
/// without touching the content. Birth tells reused inode numbers apart where both know it.
pub fn same_version(a: &Ident, b: &Ident) -> bool {
    let born_together = a.birth == 0 || b.birth == 0 || a.birth == b.birth;
    (a.dev, a.ino, a.size, a.mtime) == (b.dev, b.ino, b.size, b.mtime) && born_together
}

/// Brings what a store knows of contents up to date with the journal.
pub fn catch_up(home: &crate::Home, store: &mut dyn Store) -> Result<()> {
    let before = store.learned()?;
    let (learned, mark, anew) = crate::facts::read_since(&home.facts_path(), before)?;
    match mark == before && learned.is_empty() {
        true => Ok(()),
        false => store.learn(&learned, mark, anew),
    }
}

/// Hands a run's graph to a store. A plain type, so that it can go where a `Sink` of known size is asked for.
pub struct Appender<'a> {
    sink: &'a mut dyn Sink<Error = Error>,
}

impl<'a> Appender<'a> {
    /// Hands everything to `sink`.
    pub fn new(sink: &'a mut dyn Sink<Error = Error>) -> Self {
        Appender { sink }
    }
}

impl Sink for Appender<'_> {
    type Error = Error;
    fn activity(&mut self, activity: &Activity) -> Result<()> {
        self.sink.activity(activity)
    }
    fn entity(&mut self, entity: &Entity) -> Result<()> {
        self.sink.entity(entity)
    }
    fn edge(&mut self, edge: &Edge) -> Result<()> {
        self.sink.edge(edge)
    }
    fn inform(&mut self, inform: &Inform) -> Result<()> {
        self.sink.inform(inform)
    }
    fn derived(&mut self, derived: &Derived) -> Result<()> {
        self.sink.derived(derived)
    }
    fn extended(
        &mut self,
        activity: ActivityId,
        time: Time,
        kind: &[u8],
        payload: &[u8],
    ) -> Result<()> {
        self.sink.extended(activity, time, kind, payload)
    }
    fn unknown(&mut self, reason: &str) -> Result<()> {
        self.sink.unknown(reason)
    }
    fn made_before(&self, ident: &Ident) -> bool {
        self.sink.made_before(ident)
    }
}
