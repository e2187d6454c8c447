//! Statements of descriptions: documents of other tools that name activities and entities, instead
//! of system calls.
//!
//! `statement` decodes them. The importer numbers activities and entities from 0,
//! and states each before any relation that names it. Numbers of the graph's own kinds are passed
//! on unchecked, because the graph knows them.

/// A byte string.
type Bytes = Box<[u8]>;
/// ns since 1970.
type Time = i64;

/// The part of an activity that a word is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WordRole {
    /// The next argument, the program's name first.
    Argument = 0,
    /// The absolute path of the program.
    Program = 1,
    /// The directory in which it began.
    Directory = 2,
}

/// A statement of an imported description. The caller's pid of an activity is its process id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Described {
    /// An activity.
    Activity {
        /// Its number.
        number: u32,
        /// The activity that started it.
        parent: Option<u32>,
        /// The number of the program in its process.
        epoch: u32,
        /// Its begin.
        start: Time,
        /// Its end.
        end: Time,
        /// Its status as wait(2) reports it.
        status: Option<i32>,
        /// It is a part of a program's work.
        is_part: bool,
        /// It ended by an exec.
        execed: bool,
    },
    /// A word of an activity.
    Word {
        /// The activity.
        activity: u32,
        /// The part of the activity that the word is.
        role: WordRole,
        /// The word, or a part of it.
        text: Bytes,
        /// The next record continues the word.
        more: bool,
    },
    /// An entity.
    Entity {
        /// Its number.
        number: u32,
        /// The graph's number of its kind.
        kind: u8,
        /// Its version.
        version: u32,
        /// The version before it.
        previous: Option<u32>,
        /// No later version of the name is described.
        last: bool,
        /// Its absolute path, or its name.
        path: Bytes,
    },
    /// A relation of an activity and an entity.
    Edge {
        /// The activity.
        activity: u32,
        /// The entity.
        entity: u32,
        /// The graph's number of the relation.
        relation: u8,
        /// It happened. Otherwise it can have happened.
        is_certain: bool,
        /// The earliest moment.
        start: Time,
        /// The latest moment.
        end: Time,
    },
    /// An activity informed another.
    Inform {
        /// The activity that informs.
        from: u32,
        /// The activity that is informed.
        to: u32,
        /// The graph's number of the reason.
        why: u8,
        /// When.
        time: Time,
    },
    /// An entity was made from another.
    Derived {
        /// The new entity.
        entity: u32,
        /// The entity that it was made from.
        from: u32,
        /// The activity that made it.
        activity: u32,
        /// When.
        time: Time,
    },
    /// An attribute of an activity.
    Note {
        /// The activity.
        activity: u32,
        /// Its name.
        key: Bytes,
        /// Its value.
        value: Bytes,
    },
    /// The place of an activity in a job of a launcher of parallel work.
    Rank {
        /// The activity.
        activity: u32,
        /// A [`JobRank`](crate::job_rank::JobRank) as JSON.
        place: Bytes,
    },
}
