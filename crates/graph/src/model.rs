//! The graph's nodes and edges, as the fold emits them.
//!
//! Ids are dense within one run and start at 0; a store makes them global. Every id is announced (`Sink::entity`, `Sink::activity`)
//! before an edge names it. Activities and entities may be announced early and completed later by a second call with the same id.

use backstory_eventlog::event::{Bytes, Pid, Time, Via};
use backstory_files::Ident;

/// An exec epoch (or an activity nested in one) of this run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ActivityId(pub u32);

/// A file version, pipe, socket, listing, missing path … of this run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntityId(pub u32);

/// From when to when, inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Interval {
    /// Earliest moment.
    pub start: Time,
    /// Latest moment.
    pub end: Time,
}

/// Whether something happened or only could have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Certainty {
    /// It could have: opened for it and never observed, or the outcome is unknown.
    Possible,
    /// It happened.
    Seen,
}

/// One exec epoch of one process.
#[derive(Debug, Clone, PartialEq)]
pub struct Activity {
    /// Its id.
    pub id: ActivityId,
    /// The activity that started it (forked it, or the epoch before an exec); none for the first.
    pub parent: Option<ActivityId>,
    /// Process id.
    pub pid: Pid,
    /// 0 for what runs between fork and exec, then 1 for the first program; the run's command starts at 1.
    pub epoch: u32,
    /// Absolute path of the program, if known.
    pub exec_path: Option<Bytes>,
    /// Arguments.
    pub argv: Vec<Bytes>,
    /// Environment if it differs from the parent's: variables set and variables gone.
    pub env_set: Vec<Bytes>,
    /// Names of variables the parent had and this one has not.
    pub env_unset: Vec<Bytes>,
    /// Current directory when it began.
    pub cwd: Bytes,
    /// From its exec (or fork) to its end.
    pub interval: Interval,
    /// Exit status, if the process exited in this epoch and it is known.
    pub exit: Option<i32>,
    /// Signal that ended it.
    pub signal: Option<i32>,
    /// True if the epoch ended by an exec into the next one.
    pub execed: bool,
    /// Whether its look-ups (stat, access, readlink) are known: a recorder was in the process.
    pub lookups_known: bool,
    /// Who saw it begin.
    pub via: Via,
}

/// What sort of thing an entity is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum EntityKind {
    File,
    Directory,
    Symlink,
    Pipe,
    Socket,
    /// A path that was looked for and was not there.
    Missing,
    /// A character or block device, `/proc`, `/sys`: not a file whose content has versions.
    Device,
    /// Memory file, shared memory.
    Memory,
}

/// One content state of a thing.
#[derive(Debug, Clone, PartialEq)]
pub struct Entity {
    /// Its id.
    pub id: EntityId,
    /// What it is.
    pub kind: EntityKind,
    /// Absolute path as first named in this run (for pipes and sockets a descriptive name: `pipe:3`, `tcp:127.0.0.1:80`).
    pub path: Bytes,
    /// Further names it was used by.
    pub aliases: Vec<Bytes>,
    /// What was done by each name: by `path` first, then by the aliases in their order. Empty if there is no alias, or if it is not
    /// known what was done by which name (runs that were indexed before schema 4).
    pub by_name: Vec<ByName>,
    /// 0 for the state before the run, then 1, 2 … for each new version made in the run.
    pub version: u32,
    /// The version before this one of the same file, if this run saw it.
    pub previous: Option<EntityId>,
    /// Identity, if it was taken while (or so that) it certainly belonged to this version.
    pub ident: Option<Ident>,
    /// True if this version is what the file system held when the run ended.
    pub last: bool,
}

/// What was done to an entity by one of its names, by any activity: sets of [`Relation::bit`]s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ByName {
    /// What happened.
    pub seen: u16,
    /// What could have happened; what did happen may be in here as well.
    pub possible: u16,
}

impl ByName {
    /// Adds one relation. True if that was news.
    pub fn add(&mut self, relation: Relation, certainty: Certainty) -> bool {
        let set = match certainty {
            Certainty::Seen => &mut self.seen,
            Certainty::Possible => &mut self.possible,
        };
        let before = std::mem::replace(set, *set | relation.bit());
        before != *set
    }

    /// Adds all relations of another name.
    pub fn join(&mut self, other: ByName) {
        self.seen |= other.seen;
        self.possible |= other.possible;
    }
}

/// How an activity and an entity are related, or an activity and an activity. Stores keep the numbers: only ever appended to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Relation {
    /// Data was read (or mapped readable).
    Read = 0,
    /// It was executed, or loaded as its interpreter or library by the kernel or the loader.
    Execute = 1,
    /// Its existence or metadata was looked at.
    Stat = 2,
    /// A directory's entries were listed.
    List = 3,
    /// It was looked for and was not there.
    Missing = 4,
    /// A link's text was read.
    Link = 5,
    /// Content was written: generated.
    Write = 6,
    /// It was removed.
    Delete = 7,
    /// It came to this name (the entity) by a rename: generated without new content.
    Rename = 8,
    /// Mode, owner, times or attributes were changed.
    Meta = 9,
    /// A directory, link or node was made.
    Make = 10,
}

impl Relation {
    /// True if information flows from the entity to the activity (PROV *used*), false if from the activity to the entity (*generated*).
    pub fn is_use(self) -> bool {
        use Relation::*;
        matches!(self, Read | Execute | Stat | List | Missing | Link)
    }

    /// All of them, each at the place of its number.
    pub const ALL: [Relation; 11] = {
        use Relation::*;
        [
            Read, Execute, Stat, List, Missing, Link, Write, Delete, Rename, Meta, Make,
        ]
    };

    /// Its number, as stores keep it.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// Its bit in a set of relations, as stores keep it.
    pub fn bit(self) -> u16 {
        1 << self.number()
    }
}

/// Activity – entity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Edge {
    /// Who.
    pub activity: ActivityId,
    /// What.
    pub entity: EntityId,
    /// How.
    pub relation: Relation,
    /// Earliest and latest moment the information can have flowed.
    pub interval: Interval,
    /// Seen or possible.
    pub certainty: Certainty,
    /// Who saw it.
    pub via: Via,
}

/// Why one activity informed another without a file between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Informed {
    /// It was its parent at fork.
    Fork,
    /// It was the epoch before an exec.
    Exec,
    /// It waited for its exit status.
    Wait,
    /// It sent it a signal.
    Signal,
}

/// Activity → activity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Inform {
    /// Who informed.
    pub from: ActivityId,
    /// Who was informed.
    pub to: ActivityId,
    /// How.
    pub why: Informed,
    /// When.
    pub time: Time,
}

/// A version made from another without an activity's memory between them (rename, link, copy in the kernel).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Derived {
    /// The new one.
    pub entity: EntityId,
    /// What it was made from.
    pub from: EntityId,
    /// By whom.
    pub activity: ActivityId,
    /// When.
    pub time: Time,
}

/// Where the fold puts what it concludes, in an order in which nothing is named before it is announced.
pub trait Sink {
    /// What can go wrong when storing.
    type Error;
    /// A new activity, or the completed form of one announced before.
    fn activity(&mut self, activity: &Activity) -> Result<(), Self::Error>;
    /// A new entity, or the completed form of one announced before.
    fn entity(&mut self, entity: &Entity) -> Result<(), Self::Error>;
    /// An edge, once per (activity, entity, relation): intervals of repeats are joined before.
    fn edge(&mut self, edge: &Edge) -> Result<(), Self::Error>;
    /// Activity informed activity.
    fn inform(&mut self, inform: &Inform) -> Result<(), Self::Error>;
    /// Version derived from version.
    fn derived(&mut self, derived: &Derived) -> Result<(), Self::Error>;
    /// An extended record: kind, payload, and the activity it belongs to.
    fn extended(
        &mut self,
        activity: ActivityId,
        time: Time,
        kind: &[u8],
        payload: &[u8],
    ) -> Result<(), Self::Error>;
    /// Something the fold knows it does not know, for `incomplete_because` (a sentence for people).
    fn unknown(&mut self, reason: &str) -> Result<(), Self::Error>;
    /// Whether an earlier run made a file just as this identity says. Asked only of what changed last so shortly before this run that
    /// the file system's coarse clock does not tell whether it was before.
    fn made_before(&self, _ident: &Ident) -> bool {
        false
    }
}
