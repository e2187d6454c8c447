//! One file for each format.

mod dot;
mod make;
mod shell;

pub use dot::Dot;
pub use make::Make;
pub use shell::Shell;

use backstory_graph::model::{Informed, Relation};
use backstory_query::answer::Flow;

use crate::View;
use crate::view::Entity;

/// The word for an arrow.
fn word(flow: Flow) -> &'static str {
    match flow {
        Flow::Used(relation) | Flow::Generated(relation) => match relation {
            Relation::Read => "read",
            Relation::Execute => "executed",
            Relation::Stat => "looked at",
            Relation::List => "listed",
            Relation::Missing => "missed",
            Relation::Link => "followed",
            Relation::Write => "wrote",
            Relation::Delete => "deleted",
            Relation::Rename => "renamed",
            Relation::Meta => "changed",
            Relation::Make => "made",
        },
        Flow::Derived => "derived",
        Flow::Same | Flow::Alike => "same",
        Flow::Informed(why) => match why {
            Informed::Fork => "forked",
            Informed::Exec => "became",
            Informed::Wait => "ended for",
            Informed::Signal => "signalled",
        },
    }
}

/// True for the arrows from who began something to what began.
fn starts(flow: Flow) -> bool {
    matches!(flow, Flow::Informed(Informed::Fork | Informed::Exec))
}

/// A file as a person names it: from where the run was, with its version if there were several.
fn entity_label(view: &View, entity: &Entity) -> String {
    let path = String::from_utf8_lossy(view.shown(&entity.path)).into_owned();
    match entity.version {
        0 | 1 => path,
        version => format!("{path} (version {version})"),
    }
}
