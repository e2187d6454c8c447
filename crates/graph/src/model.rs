//! The graph's nodes and edges, as the fold gives them to a sink.
//!
//! Ids are dense within one run and start at 0; a store makes them global. The fold announces every
//! id (`Sink::entity`, `Sink::activity`) before an edge names it. A second announcement with the
//! same id replaces the first: the fold announces a node early and completes it later.

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

backstory_vocabulary::vocabulary! {
    /// Whether something happened or only can have happened.
    pub enum Certainty: "certainty" {
        /// It can have happened: the file was open for it, but it was not observed, or the outcome
        /// is unknown.
        Possible = "possible",
        /// It happened.
        Seen = "seen",
    }
}

/// One exec epoch of one process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Activity {
    /// Its id.
    pub id: ActivityId,
    /// The activity that forked it, or the epoch before its exec; `None` for the first activity.
    pub parent: Option<ActivityId>,
    /// Process id.
    pub pid: Pid,
    /// 0 for the epoch between fork and exec, then 1 for the first program. The run's command
    /// starts at 1.
    pub epoch: u32,
    /// Absolute path of the program, if known.
    pub exec_path: Option<Bytes>,
    /// Arguments.
    pub argv: Vec<Bytes>,
    /// Variables that are new or have another value than in the parent's environment.
    pub env_set: Vec<Bytes>,
    /// Names of variables that the parent had and this activity does not have.
    pub env_unset: Vec<Bytes>,
    /// Current directory when it began.
    pub cwd: Bytes,
    /// From its exec (or fork) to its end.
    pub interval: Interval,
    /// Exit status, if the process exited in this epoch and it is known.
    pub exit: Option<i32>,
    /// Signal that ended it.
    pub signal: Option<i32>,
    /// The epoch ended by an exec, or by a mark of the program, which began the next epoch.
    pub execed: bool,
    /// True if the activity's look-ups (stat, access, readlink) are known, because a recorder was
    /// in the process.
    pub lookups_known: bool,
    /// The part of backstory that saw it begin.
    pub via: Via,
}

/// The kind of thing that an entity is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum EntityKind {
    File,
    Directory,
    Symlink,
    Pipe,
    Socket,
    /// A path that a program looked for in vain.
    Missing,
    /// A character or block device, `/proc`, `/sys`: not a file whose content has versions.
    Device,
    /// Memory file, shared memory.
    Memory,
    /// A thing that a source names by itself: a table or a row of a database.
    Resource,
}

impl EntityKind {
    /// All kinds. The index of a kind is its number in imported descriptions.
    pub const ALL: [EntityKind; 9] = {
        use EntityKind::*;
        [
            File, Directory, Symlink, Pipe, Socket, Missing, Device, Memory, Resource,
        ]
    };

    /// Its number in [`EntityKind::ALL`].
    pub fn number(self) -> u8 {
        self as u8
    }
}

/// One content state of a thing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Entity {
    /// Its id.
    pub id: EntityId,
    /// The kind of the thing.
    pub kind: EntityKind,
    /// Absolute path, as the run first named it. Pipes and sockets have a descriptive name:
    /// `pipe:3`, `tcp:127.0.0.1:80`.
    pub path: Bytes,
    /// Further names that programs used.
    pub aliases: Vec<Bytes>,
    /// The relations by each name: first those by `path`, then those by the aliases in their order.
    /// Empty if there is no alias. Also empty if the run was indexed before schema 4, when
    /// backstory did not tell the names apart.
    pub by_name: Vec<ByName>,
    /// 0 for the state before the run; 1, 2 … for each version that the run made.
    pub version: u32,
    /// The version of the same file before this one, if the run used it.
    pub previous: Option<EntityId>,
    /// The file's identity, if it was taken at a time when it certainly belonged to this version.
    pub ident: Option<Ident>,
    /// True if the file system holds this version at the end of the run.
    pub last: bool,
}

/// The relations of all activities to an entity by one of its names: sets of [`Relation::bit`]s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ByName {
    /// Relations that certainly happened.
    pub seen: u16,
    /// Relations that can have happened. A relation that certainly happened may be in this set,
    /// too.
    pub possible: u16,
}

impl ByName {
    /// Adds one relation. True if the set changed.
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

/// How an activity and an entity are related. Stores keep the numbers, so new relations only get
/// new numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Relation {
    /// Data was read (or mapped readable).
    Read = 0,
    /// The file was executed, or the kernel or the dynamic loader loaded it as an interpreter or a
    /// library.
    Execute = 1,
    /// Its existence or metadata was read.
    Stat = 2,
    /// A directory's entries were listed.
    List = 3,
    /// A program looked for it, and it did not exist.
    Missing = 4,
    /// A link's text was read.
    Link = 5,
    /// Content was written to it.
    Write = 6,
    /// Its name was removed.
    Delete = 7,
    /// The entity got this name by a rename: it is generated without new content.
    Rename = 8,
    /// Mode, owner, times or attributes were changed.
    Meta = 9,
    /// A directory, link or node was made.
    Make = 10,
}

impl Relation {
    /// True if information flows from the entity to the activity (PROV *used*), false if from the
    /// activity to the entity (*generated*).
    pub fn is_use(self) -> bool {
        use Relation::*;
        matches!(self, Read | Execute | Stat | List | Missing | Link)
    }

    /// All relations, each at the index of its number.
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

/// An edge between an activity and an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Edge {
    /// The activity.
    pub activity: ActivityId,
    /// The entity.
    pub entity: EntityId,
    /// The relation between them.
    pub relation: Relation,
    /// Earliest and latest moment at which the information can have flowed.
    pub interval: Interval,
    /// Whether it happened or only can have happened.
    pub certainty: Certainty,
    /// The part of backstory that saw it.
    pub via: Via,
}

/// Why one activity informed another without a file between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Informed {
    /// The first forked the second.
    Fork,
    /// The first is the epoch before the exec that began the second.
    Exec,
    /// The second waited for the exit status of the first.
    Wait,
    /// The first sent the second a signal.
    Signal,
}

impl Informed {
    /// All reasons. The index of a reason is its number in imported descriptions.
    pub const ALL: [Informed; 4] = [
        Informed::Fork,
        Informed::Exec,
        Informed::Wait,
        Informed::Signal,
    ];

    /// Its number in [`Informed::ALL`].
    pub fn number(self) -> u8 {
        self as u8
    }
}

/// An edge from one activity to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Inform {
    /// The activity that informs.
    pub from: ActivityId,
    /// The activity that is informed.
    pub to: ActivityId,
    /// The reason.
    pub why: Informed,
    /// When.
    pub time: Time,
}

/// A version that the kernel made from another version, without a program's memory in between. The
/// kernel does so for a rename, a link, or a copy in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Derived {
    /// The new version.
    pub entity: EntityId,
    /// The version that it was made from.
    pub from: EntityId,
    /// The activity that made it.
    pub activity: ActivityId,
    /// When.
    pub time: Time,
}

/// Receives the nodes and edges that the fold derives. A node is announced before an edge names it.
pub trait Sink {
    /// The reason why the sink could not store something.
    type Error;
    /// A new activity, or the completed form of an activity announced before.
    fn activity(&mut self, activity: &Activity) -> Result<(), Self::Error>;
    /// A new entity, or the completed form of one announced before.
    fn entity(&mut self, entity: &Entity) -> Result<(), Self::Error>;
    /// An edge, once per (activity, entity, relation): intervals of repeats are joined before.
    fn edge(&mut self, edge: &Edge) -> Result<(), Self::Error>;
    /// An edge from one activity to another.
    fn inform(&mut self, inform: &Inform) -> Result<(), Self::Error>;
    /// An edge from one version to another.
    fn derived(&mut self, derived: &Derived) -> Result<(), Self::Error>;
    /// An extended record: kind, payload, and the activity it belongs to.
    fn extended(
        &mut self,
        activity: ActivityId,
        time: Time,
        kind: &[u8],
        payload: &[u8],
    ) -> Result<(), Self::Error>;
    /// A fact that the fold could not determine, as a sentence for people. The store reports it
    /// under `incomplete_because`.
    fn unknown(&mut self, reason: &str) -> Result<(), Self::Error>;
    /// Whether an earlier run left a file with exactly this identity. The fold asks only about
    /// files whose last change was very shortly before this run. For these, the file system's
    /// coarse clock does not show whether the change came before the run.
    fn made_before(&self, _ident: &Ident) -> bool {
        false
    }
}

impl<T: Sink + ?Sized> Sink for &mut T {
    type Error = T::Error;

    fn activity(&mut self, activity: &Activity) -> Result<(), Self::Error> {
        (**self).activity(activity)
    }

    fn entity(&mut self, entity: &Entity) -> Result<(), Self::Error> {
        (**self).entity(entity)
    }

    fn edge(&mut self, edge: &Edge) -> Result<(), Self::Error> {
        (**self).edge(edge)
    }

    fn inform(&mut self, inform: &Inform) -> Result<(), Self::Error> {
        (**self).inform(inform)
    }

    fn derived(&mut self, derived: &Derived) -> Result<(), Self::Error> {
        (**self).derived(derived)
    }

    fn extended(
        &mut self,
        activity: ActivityId,
        time: Time,
        kind: &[u8],
        payload: &[u8],
    ) -> Result<(), Self::Error> {
        (**self).extended(activity, time, kind, payload)
    }

    fn unknown(&mut self, reason: &str) -> Result<(), Self::Error> {
        (**self).unknown(reason)
    }

    fn made_before(&self, ident: &Ident) -> bool {
        (**self).made_before(ident)
    }
}
