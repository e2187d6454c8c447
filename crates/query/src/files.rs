//! The files of a run, and the processes that used them, in the words of `files --json`.

use std::collections::{BTreeMap, HashMap, HashSet};

use backstory_eventlog::event::{Bytes, Time, Via};
use backstory_files::Ident;
use backstory_graph::model::{ByName, Certainty, Entity, Relation};
use backstory_store::{ActivityKey, Store};

use crate::Result;
use crate::answer::{Access, FileUse, ProcessFiles};
use crate::file_filter::FileFilter;
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
pub(crate) fn word(relation: Relation) -> Access {
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

/// The use of one path.
#[derive(Debug, Clone, Default)]
struct PathUse {
    words: [Words; 2],
    /// The end of the last operation.
    last: Time,
    /// The newest version that was used, and its number.
    newest: Option<(u32, Option<Ident>)>,
}

/// The paths that a run touched, by path. For each path, `seen` comes before `possible`.
pub fn files(store: &dyn Store, run: &str) -> Result<Vec<FileUse>> {
    files_where(store, run, &FileFilter::default())
}

/// The same for the paths and the processes that a filter accepts.
pub fn files_where(store: &dyn Store, run: &str, filter: &FileFilter) -> Result<Vec<FileUse>> {
    let _one_state = store.reading()?;
    let record = record(store, run)?;
    let (key, header) = (record.key, record.header);
    let entities = store.entities(key)?;
    let mut by_entity: Vec<([Done; 2], Time)> = vec![Default::default(); entities.len()];
    for activity in store.activities(key)? {
        if !filter.accepts_program(&activity) {
            continue;
        }
        for edge in store.stream(ActivityKey::new(key, activity.id))?.edges {
            // In a damaged store the number may name no entity.
            let Some((of, last)) = by_entity.get_mut(edge.entity.0 as usize) else {
                continue;
            };
            let done = &mut of[place(edge.certainty)];
            let bit = edge.relation.bit();
            done.bits |= bit;
            done.library |= if edge.via == Via::Library { bit } else { 0 };
            *last = edge.interval.end.max(*last);
        }
    }
    let mut by_path: BTreeMap<Bytes, PathUse> = BTreeMap::new();
    for (entity, (done, last)) in entities.into_iter().zip(by_entity) {
        let by_name = by_name(&entity, done);
        let version = (entity.version, entity.ident);
        let names = std::iter::once(entity.path)
            .chain(entity.aliases)
            .zip(by_name);
        for (path, done) in names.filter(|(path, _)| is_path(path) && filter.accepts_path(path)) {
            let all = by_path.entry(path).or_default();
            for (all, new) in all.words.iter_mut().zip(done.map(Done::words)) {
                all.bits |= new.bits;
                all.library |= new.library;
            }
            all.last = all.last.max(last);
            if all.newest.is_none_or(|(number, _)| number <= version.0) {
                all.newest = Some(version);
            }
        }
    }
    Ok(by_path
        .into_iter()
        .flat_map(|(path, used)| lines(&path, &used))
        .filter(|used| filter.accepts_access(&used.access))
        .map(|used| FileUse {
            via: header.observer(used.via),
            ..used
        })
        .collect())
}

/// Says whether the file with this path and identity is the user's own.
pub type OwnTest<'f> = dyn Fn(&[u8], Option<&Ident>) -> Result<bool> + 'f;

/// The processes of a run in the order of their ids. Each says whether it used a file that both the
/// filter and `own` accept, and how many bytes it wrote to files.
pub fn process_files(
    store: &dyn Store,
    run: &str,
    filter: &FileFilter,
    own: &OwnTest<'_>,
) -> Result<Vec<ProcessFiles>> {
    let _one_state = store.reading()?;
    let key = record(store, run)?.key;
    let entities = store.entities(key)?;
    let mut accepted: Vec<Option<bool>> = vec![None; entities.len()];
    let mut found = Vec::new();
    for activity in store.activities(key)? {
        let mut used = ProcessFiles {
            id: ActivityKey::new(key, activity.id).0,
            accepted: false,
            written: 0,
        };
        let mut written = HashSet::new();
        if filter.accepts_program(&activity) {
            for edge in store.stream(ActivityKey::new(key, activity.id))?.edges {
                let at = edge.entity.0 as usize;
                let Some(entity) = entities.get(at) else {
                    continue;
                };
                if edge.relation == Relation::Write && written.insert(at) {
                    used.written += entity.ident.map_or(0, |ident| ident.size.max(0) as u64);
                }
                if used.accepted || !filter.accepts_access(&[word(edge.relation)]) {
                    continue;
                }
                used.accepted = match accepted[at] {
                    Some(known) => known,
                    None => {
                        let mut names = std::iter::once(&entity.path).chain(&entity.aliases);
                        let named = names.any(|path| is_path(path) && filter.accepts_path(path));
                        let fits = named && own(&entity.path, entity.ident.as_ref())?;
                        *accepted[at].insert(fits)
                    }
                };
            }
        }
        found.push(used);
    }
    Ok(found)
}

/// Says whether a use of a file with this name is wanted.
pub type UseTest<'f> = dyn Fn(&[u8], Access) -> bool + 'f;

/// The names of the files that each process of a run used in a way that is wanted. The processes
/// are named as in [`ProcessLine::id`](crate::answer::ProcessLine::id). Those without such a file
/// are absent.
pub fn files_by_process(
    store: &dyn Store,
    run: &str,
    is_wanted: &UseTest<'_>,
) -> Result<HashMap<u64, HashSet<Bytes>>> {
    let _one_state = store.reading()?;
    let key = record(store, run)?.key;
    let entities = store.entities(key)?;
    let mut found: HashMap<u64, HashSet<Bytes>> = HashMap::new();
    for activity in store.activities(key)? {
        let process = ActivityKey::new(key, activity.id);
        for edge in store.stream(process)?.edges {
            // In a damaged store the number may name no entity.
            let Some(entity) = entities.get(edge.entity.0 as usize) else {
                continue;
            };
            let access = word(edge.relation);
            let names = std::iter::once(&entity.path).chain(&entity.aliases);
            for name in names.filter(|name| is_wanted(name, access)) {
                found.entry(process.0).or_default().insert(name.clone());
            }
        }
    }
    Ok(found)
}

/// The names of the files that these processes wrote, or may have written, until the date of each
/// process or later. The processes are those of one run, as in
/// [`ProcessLine::id`](crate::answer::ProcessLine::id).
pub fn written_since(
    store: &dyn Store,
    run: &str,
    processes: &HashMap<u64, Time>,
) -> Result<HashSet<Bytes>> {
    let _one_state = store.reading()?;
    let entities = store.entities(record(store, run)?.key)?;
    let mut found = HashSet::new();
    for (process, since) in processes {
        for edge in store.stream(ActivityKey(*process))?.edges {
            let word = word(edge.relation);
            // In a damaged store the number may name no entity.
            if let Some(entity) = entities.get(edge.entity.0 as usize)
                && matches!(word, Access::Write | Access::Rename)
                && edge.interval.end >= *since
            {
                let names = std::iter::once(&entity.path).chain(&entity.aliases);
                found.extend(names.cloned());
            }
        }
    }
    Ok(found)
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

fn lines(path: &Bytes, used: &PathUse) -> impl Iterator<Item = FileUse> + use<> {
    let mut words = used.words;
    let (last, ident) = (used.last, used.newest.and_then(|(_, ident)| ident));
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
            last,
            ident,
        })
}
