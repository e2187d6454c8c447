//! The words for what activities do to entities, read in either direction.

use backstory_graph::model::{Informed, Relation};
use backstory_query::answer::Flow;

/// Which way a lineage is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// `of`: towards causes.
    Of,
    /// `uses`: towards effects.
    Uses,
}

/// What precedes the name of the node that a link leads to.
pub fn step(flow: &Flow, direction: Direction) -> &'static str {
    match (flow, direction) {
        (Flow::Used(relation), Direction::Of) => did(*relation),
        (Flow::Used(relation), Direction::Uses) => done(*relation),
        (Flow::Generated(relation), Direction::Of) => done(*relation),
        (Flow::Generated(relation), Direction::Uses) => did(*relation),
        (Flow::Derived, Direction::Of) => "from",
        (Flow::Derived, Direction::Uses) => "became",
        (Flow::Same, _) => "same as",
        (Flow::Alike, _) => "same content as",
        (Flow::Informed(how), Direction::Of) => match how {
            Informed::Fork | Informed::Exec => "started by",
            Informed::Wait => "waited for",
            Informed::Signal => "signalled by",
        },
        (Flow::Informed(how), Direction::Uses) => match how {
            Informed::Fork | Informed::Exec => "started",
            Informed::Wait => "awaited by",
            Informed::Signal => "signalled",
        },
    }
}

/// What an activity did to an entity.
pub fn did(relation: Relation) -> &'static str {
    match relation {
        Relation::Read => "read",
        Relation::Execute => "ran",
        Relation::Stat => "looked at",
        Relation::List => "listed",
        Relation::Missing => "did not find",
        Relation::Link => "followed",
        Relation::Write => "wrote",
        Relation::Delete => "removed",
        Relation::Rename => "renamed to",
        Relation::Meta => "changed the attributes of",
        Relation::Make => "made",
    }
}

/// What was done to an entity by an activity.
fn done(relation: Relation) -> &'static str {
    match relation {
        Relation::Read => "read by",
        Relation::Execute => "run by",
        Relation::Stat => "looked at by",
        Relation::List => "listed by",
        Relation::Missing => "not found by",
        Relation::Link => "followed by",
        Relation::Write => "written by",
        Relation::Delete => "removed by",
        Relation::Rename => "renamed by",
        Relation::Meta => "attributes changed by",
        Relation::Make => "made by",
    }
}

/// The name of a signal that programs are killed by.
pub fn signal(number: i32) -> Option<&'static str> {
    const NAMES: [&str; 15] = [
        "SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE",
        "SIGKILL", "SIGUSR1", "SIGSEGV", "SIGUSR2", "SIGPIPE", "SIGALRM", "SIGTERM",
    ];
    let index = usize::try_from(number).ok()?.checked_sub(1)?;
    match number {
        24 => Some("SIGXCPU"),
        25 => Some("SIGXFSZ"),
        31 => Some("SIGSYS"),
        _ => NAMES.get(index).copied(),
    }
}
