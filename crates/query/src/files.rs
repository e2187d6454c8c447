//! The files of a run, in the words of `files --json`.

use std::collections::BTreeMap;

use backstory_eventlog::event::{Bytes, Via};
use backstory_graph::model::{ByName, Certainty, Entity, Relation};
use backstory_store::{ActivityKey, Store};

use crate::Result;
use crate::answer::{Access, FileUse};
use crate::runs::{is_path, record};

/// All words, in the order of output.
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

/// The word for a relation. A file that is made is written.
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

/// The relations to one entity, or by one name of it, at one certainty: sets of [`Relation::bit`]s.
#[derive(Debug, Clone, Copy, Default)]
struct Done {
    bits: u16,
    /// The relations among them that the recorder saw.
    library: u16,
}

impl Done {
    /// The relations in `bits` only.
    fn only(self, bits: u16) -> Done {
        Done {
            bits: self.bits & bits,
            library: self.library & bits,
        }
    }

    /// The same as sets of words.
    fn words(self) -> Words {
        Words {
            bits: words(self.bits),
            library: words(self.library),
        }
    }
}

/// The words for a set of relations.
fn words(bits: u16) -> u16 {
    let there = Relation::ALL
        .into_iter()
        .filter(|relation| bits & relation.bit() != 0);
    there.fold(0, |all, relation| all | 1 << word(relation) as u16)
}

/// The words of one path at one certainty.
#[derive(Debug, Clone, Copy, Default)]
struct Words {
    bits: u16,
    /// The words among them that the recorder saw.
    library: u16,
}

/// The paths that a run touched, by path. For each path, `seen` comes before `possible`.
pub fn files(store: &dyn Store, run: &str) -> Result<Vec<FileUse>> {
    let _one_state = store.reading()?;
    let key = record(store, run)?.key;
    let entities = store.entities(key)?;
    let mut by_entity: Vec<[Done; 2]> = vec![Default::default(); entities.len()];
    for activity in store.activities(key)? {
        for edge in store.stream(ActivityKey::new(key, activity.id))?.edges {
            // In a damaged store the number may name no entity.
            let Some(of) = by_entity.get_mut(edge.entity.0 as usize) else {
                continue;
            };
            let done = &mut of[place(edge.certainty)];
            let bit = edge.relation.bit();
            done.bits |= bit;
            done.library |= if edge.via == Via::Library { bit } else { 0 };
        }
    }
    let mut by_path: BTreeMap<Bytes, [Words; 2]> = BTreeMap::new();
    for (entity, done) in entities.into_iter().zip(by_entity) {
        let by_name = by_name(&entity, done);
        let names = std::iter::once(entity.path)
            .chain(entity.aliases)
            .zip(by_name);
        for (path, done) in names.filter(|(path, _)| is_path(path)) {
            let all = by_path.entry(path).or_default();
            for (all, new) in all.iter_mut().zip(done.map(Done::words)) {
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

/// The relations to an entity, by each of its names. A relation whose name is unknown belongs to
/// the first name. If nothing is known of the names, each relation is possible for each name.
fn by_name(entity: &Entity, done: [Done; 2]) -> Vec<[Done; 2]> {
    let count = 1 + entity.aliases.len();
    if entity.by_name.len() != count {
        return vec![done; count];
    }
    let told = |by: &ByName| by.seen | by.possible;
    let told_of_any = entity.by_name.iter().fold(0, |all, by| all | told(by));
    let [seen, possible] = done;
    // An edge that happened once and was possible another time is seen. By the other name it is
    // still possible.
    let either = Done {
        bits: seen.bits | possible.bits,
        library: seen.library | possible.library,
    };
    let mut names: Vec<[Done; 2]> = entity
        .by_name
        .iter()
        .map(|by| [seen.only(by.seen), either.only(told(by))])
        .collect();
    if let Some(first) = names.first_mut() {
        for (first, all) in first.iter_mut().zip(done) {
            let rest = all.only(!told_of_any);
            first.bits |= rest.bits;
            first.library |= rest.library;
        }
    }
    names
}

fn place(certainty: Certainty) -> usize {
    match certainty {
        Certainty::Seen => 0,
        Certainty::Possible => 1,
    }
}

fn lines(path: &Bytes, mut words: [Words; 2]) -> impl Iterator<Item = FileUse> + use<> {
    // A word that is seen is not repeated as possible.
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
