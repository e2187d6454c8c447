//! The files of a run, in the words of `files --json`.

use std::collections::BTreeMap;

use backstory_eventlog::event::{Bytes, Via};
use backstory_graph::model::{Certainty, Relation};
use backstory_store::{ActivityKey, Store};

use crate::Result;
use crate::answer::{Access, FileUse};
use crate::runs::{is_path, record};

/// All words, in the order they are listed in.
const WORDS: [Access; 10] = [
    Access::Read,
    Access::Write,
    Access::Delete,
    Access::Rename,
    Access::Exec,
    Access::Stat,
    Access::Dir,
    Access::Missing,
    Access::Link,
    Access::Meta,
];

/// The word for a relation. What is made, is written.
fn word(relation: Relation) -> Access {
    match relation {
        Relation::Read => Access::Read,
        Relation::Execute => Access::Exec,
        Relation::Stat => Access::Stat,
        Relation::List => Access::Dir,
        Relation::Missing => Access::Missing,
        Relation::Link => Access::Link,
        Relation::Write | Relation::Make => Access::Write,
        Relation::Delete => Access::Delete,
        Relation::Rename => Access::Rename,
        Relation::Meta => Access::Meta,
    }
}

/// The words of one path at one certainty.
#[derive(Debug, Clone, Copy, Default)]
struct Words {
    bits: u16,
    /// Those of them that the recorder saw.
    library: u16,
}

/// The paths that a run touched, by path; what is known to have happened to one before what only could have.
pub fn files(store: &dyn Store, run: &str) -> Result<Vec<FileUse>> {
    let key = record(store, run)?.key;
    let mut by_entity: Vec<[Words; 2]> = Vec::new();
    for activity in store.activities(key)? {
        for edge in store.stream(ActivityKey::new(key, activity.id))?.edges {
            let entity = edge.entity.0 as usize;
            if by_entity.len() <= entity {
                by_entity.resize(entity + 1, Default::default());
            }
            let words = &mut by_entity[entity][place(edge.certainty)];
            let bit = 1 << word(edge.relation) as u16;
            words.bits |= bit;
            words.library |= if edge.via == Via::Library { bit } else { 0 };
        }
    }
    let mut by_path: BTreeMap<Bytes, [Words; 2]> = BTreeMap::new();
    for (entity, words) in store.entities(key)?.into_iter().zip(by_entity) {
        for path in std::iter::once(entity.path).chain(entity.aliases).filter(is_path) {
            let all = by_path.entry(path).or_default();
            for (all, new) in all.iter_mut().zip(words) {
                all.bits |= new.bits;
                all.library |= new.library;
            }
        }
    }
    Ok(by_path
        .into_iter()
        .flat_map(|(path, words)| lines(&path, words))
        .collect())
}

fn place(certainty: Certainty) -> usize {
    match certainty {
        Certainty::Seen => 0,
        Certainty::Possible => 1,
    }
}

fn lines(path: &Bytes, mut words: [Words; 2]) -> impl Iterator<Item = FileUse> + use<> {
    // What is known to have happened need not be said to be possible.
    words[1].bits &= !words[0].bits;
    let path = path.clone();
    [(Certainty::Seen, words[0]), (Certainty::Possible, words[1])]
        .into_iter()
        .filter(|(_, words)| words.bits != 0)
        .map(move |(certainty, words)| FileUse {
            path: path.clone(),
            access: WORDS
                .into_iter()
                .filter(|word| words.bits >> *word as u16 & 1 != 0)
                .collect(),
            via: if words.library & words.bits != 0 {
                Via::Library
            } else {
                Via::Kernel
            },
            certainty,
        })
}
