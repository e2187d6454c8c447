//! The words for the nodes and edges of the graph: kinds of entities, relations, and reasons why an
//! activity informs another.
//!
//! Invariant: every output takes its words from these tables. `word` is part of the fixed
//! interfaces (JSON, database exports). The other columns are for people.
//!
//! Absent on purpose: other languages, and the layout of outputs.

use crate::model::{EntityKind, Informed, Relation};

impl EntityKind {
    /// The word for the kind, in JSON and in exports.
    pub fn word(self) -> &'static str {
        match self {
            EntityKind::File => "file",
            EntityKind::Directory => "directory",
            EntityKind::Symlink => "symlink",
            EntityKind::Pipe => "pipe",
            EntityKind::Socket => "socket",
            EntityKind::Missing => "missing",
            EntityKind::Device => "device",
            EntityKind::Memory => "memory",
            EntityKind::Resource => "resource",
        }
    }
}

/// The words for a relation between an activity and an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RelationWords {
    /// In JSON: `"how": "read"`.
    pub word: &'static str,
    /// The act, between the activity and the entity: "ran" in "make ran cc".
    pub active: &'static str,
    /// The act, between the entity and the activity: "run by" in "cc run by make".
    pub passive: &'static str,
    /// On an arrow of an exported graph.
    pub label: &'static str,
}

impl Relation {
    /// The words for the relation.
    pub fn words(self) -> RelationWords {
        let row = |word, active, passive, label| RelationWords {
            word,
            active,
            passive,
            label,
        };
        #[rustfmt::skip]
        let words = match self {
            Relation::Read => row("read", "read", "read by", "read"),
            Relation::Execute => row("exec", "ran", "run by", "executed"),
            Relation::Stat => row("stat", "looked at", "looked at by", "looked at"),
            Relation::List => row("dir", "listed", "listed by", "listed"),
            Relation::Missing => row("missing", "did not find", "not found by", "missed"),
            Relation::Link => row("link", "followed", "followed by", "followed"),
            Relation::Write => row("write", "wrote", "written by", "wrote"),
            Relation::Delete => row("delete", "removed", "removed by", "deleted"),
            Relation::Rename => row("rename", "renamed to", "renamed by", "renamed"),
            Relation::Meta => row("meta", "changed the attributes of", "attributes changed by", "changed"),
            Relation::Make => row("make", "made", "made by", "made"),
        };
        words
    }
}

/// The words for why one activity informs another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InformedWords {
    /// In JSON: `"how": "fork"`.
    pub word: &'static str,
    /// In front of the activity that informs, read towards causes.
    pub cause: &'static str,
    /// In front of the activity that is informed, read towards effects.
    pub effect: &'static str,
    /// On an arrow of an exported graph.
    pub label: &'static str,
}

impl Informed {
    /// The words for the reason.
    pub fn words(self) -> InformedWords {
        let row = |word, cause, effect, label| InformedWords {
            word,
            cause,
            effect,
            label,
        };
        match self {
            Informed::Fork => row("fork", "started by", "started", "forked"),
            Informed::Exec => row("exec", "started by", "started", "became"),
            Informed::Wait => row("wait", "waited for", "awaited by", "ended for"),
            Informed::Signal => row("signal", "signalled by", "signalled", "signalled"),
        }
    }
}

/// The kind with this word.
pub fn kind(word: &str) -> Option<EntityKind> {
    EntityKind::ALL.into_iter().find(|kind| kind.word() == word)
}

/// The relation with this label.
pub fn relation(label: &str) -> Option<Relation> {
    Relation::ALL
        .into_iter()
        .find(|relation| relation.words().label == label)
}

/// The reason with this label.
pub fn informed(label: &str) -> Option<Informed> {
    Informed::ALL
        .into_iter()
        .find(|why| why.words().label == label)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_relations_share_a_word() {
        let words: HashSet<_> = Relation::ALL.iter().map(|one| one.words().word).collect();
        assert_eq!(words.len(), Relation::ALL.len());
    }
}
