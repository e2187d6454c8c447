//! Versions that no recorded run can explain: an earlier run made another version at the path.
//!
//! In: a store and the graph of one of its runs. Out: the versions which that run found, at whose
//! path an earlier run had left another content. Something outside of all recordings changed or
//! replaced them.
//!
//! Three things explain a version. A recorded run made it. A recorded run made its content
//! elsewhere. Or it was written while a run that wrote the file was in progress: a reader may meet
//! any state in between. A file that no run ever made is a source, and needs no explanation.
//!
//! Many runs use the same paths. The versions at a path are read once for all runs that are
//! compared, and not once for each of them.
//!
//! Invariant: the memory is bounded: only so many paths are kept, and then they are read again.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use backstory_eventlog::event::{Bytes, Time};
use backstory_files::Ident;
use backstory_graph::model::{Entity, EntityId, EntityKind};
use backstory_store::{Result, RunKey, Store, VersionMatch, same_version};

/// The most paths whose outputs are kept. Runs find many files that no run makes.
const PATHS: usize = if cfg!(test) { 100 } else { 100_000 };

/// The outputs of a store's runs, by path. It keeps what it has read.
pub struct RunOutputs<'s> {
    store: &'s dyn Store,
    at_path: HashMap<Bytes, Rc<[Output]>>,
    /// Begin and end of the runs that made outputs. `None`: the store lost the run meanwhile.
    spans: HashMap<RunKey, Option<(Time, Time)>>,
    /// How many versions were read from the store.
    read: usize,
}

/// A version of a file that a run made.
#[derive(Debug, Clone, Copy)]
struct Output {
    run: RunKey,
    ident: Option<Ident>,
}

impl<'s> RunOutputs<'s> {
    /// Nothing is read yet.
    pub fn of_store(store: &'s dyn Store) -> RunOutputs<'s> {
        RunOutputs {
            store,
            at_path: HashMap::new(),
            spans: HashMap::new(),
            read: 0,
        }
    }

    /// The versions of `entities`, which are those of `run`, that nothing explains.
    pub(crate) fn unexplained(
        &mut self,
        run: RunKey,
        entities: &[Entity],
    ) -> Result<HashSet<EntityId>> {
        let _one_state = self.store.reading()?;
        let mut found = HashSet::new();
        for entity in entities {
            let is_found = entity.kind == EntityKind::File && entity.version == 0;
            if let Some(ident) = entity.ident.filter(|_| is_found)
                && self.is_unexplained(run, entity, &ident)?
            {
                found.insert(entity.id);
            }
        }
        Ok(found)
    }

    fn is_unexplained(&mut self, run: RunKey, entity: &Entity, ident: &Ident) -> Result<bool> {
        let outputs = self.outputs(&entity.path)?;
        let earlier = &outputs[outputs.partition_point(|one| one.run >= run)..];
        for one in earlier {
            let is_same = one.ident.is_some_and(|own| same_version(&own, ident));
            if is_same || self.was_running(one.run, ident)? {
                return Ok(false);
            }
        }
        Ok(!earlier.is_empty() && !self.is_made_elsewhere(run, ident)?)
    }

    /// The versions that runs made at a path, those of the run appended last first.
    fn outputs(&mut self, path: &Bytes) -> Result<Rc<[Output]>> {
        if let Some(known) = self.at_path.get(path) {
            return Ok(known.clone());
        }
        let mut found = Vec::new();
        for key in self.store.at_path(path)? {
            self.read += 1;
            let entity = self.store.entity(key)?;
            if entity.version > 0 && entity.kind == EntityKind::File {
                found.push(Output {
                    run: key.run(),
                    ident: entity.ident,
                });
            }
        }
        found.sort_by_key(|one| std::cmp::Reverse(one.run));
        let found: Rc<[Output]> = found.into();
        if self.at_path.len() >= PATHS {
            self.at_path.clear();
        }
        self.at_path.insert(path.clone(), found.clone());
        Ok(found)
    }

    /// True if the version was written while the run was in progress.
    fn was_running(&mut self, run: RunKey, ident: &Ident) -> Result<bool> {
        let span = self.span(run)?;
        Ok(span.is_some_and(|(began, ended)| (began..=ended).contains(&ident.mtime)))
    }

    fn span(&mut self, run: RunKey) -> Result<Option<(Time, Time)>> {
        if let Some(known) = self.spans.get(&run) {
            return Ok(*known);
        }
        let record = self.store.run_by_key(run)?;
        let span = record.map(|record| (record.header.started, record.end.ended));
        self.spans.insert(run, span);
        Ok(span)
    }

    /// True if a recorded run made this version under another name, or its content in another file.
    /// What `run` itself copied from the version, or a run that began later, explains nothing.
    fn is_made_elsewhere(&mut self, run: RunKey, ident: &Ident) -> Result<bool> {
        let store = self.store;
        if !store.same(ident, VersionMatch::Made)?.is_empty() {
            return Ok(true);
        }
        let Some(digest) = store.fact(ident)?.and_then(|fact| fact.digest) else {
            return Ok(false);
        };
        let ended = self.span(run)?.map_or(Time::MAX, |(_, ended)| ended);
        for other in store.with_content(&digest)? {
            for made in store.same(&other, VersionMatch::Made)? {
                let maker = made.run();
                let began = self.span(maker)?.map_or(Time::MAX, |(began, _)| began);
                if maker != run && began <= ended {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use backstory_eventlog::run::{RunEnd, RunHeader};
    use backstory_graph::model::Sink;
    use backstory_store::{GraphStore, MemoryStore};

    use super::*;

    /// A version of a file of this size, without the one before it.
    fn version(id: u32, path: &str, version: u32, size: i64) -> Entity {
        Entity {
            previous: None,
            ident: Some(Ident {
                size,
                ..Ident::default()
            }),
            last: true,
            ..crate::run_graph::tests::version(id, path, version)
        }
    }

    /// Appends a run that finds the output of the run before it, and makes another one. It also
    /// reads a library, which no run makes.
    fn append(store: &mut MemoryStore, number: i64) -> RunKey {
        let header = RunHeader {
            id: format!("run{number:05}"),
            // Nothing was written while a run was in progress.
            started: 1,
            ..RunHeader::default()
        };
        let end = RunEnd {
            ended: 1,
            ..RunEnd::default()
        };
        let mut body = |sink: &mut backstory_store::Appender<'_>| {
            sink.entity(&version(0, "/lib/libc.so", 0, 7))?;
            sink.entity(&version(1, "/out", 0, number))?;
            sink.entity(&version(2, "/out", 1, number + 1))
        };
        store.append(&header, &end, 0, &mut body).unwrap()
    }

    /// The numbers of versions that were read to compare all of so many runs.
    fn read_for(runs: i64) -> usize {
        let mut store = MemoryStore::default();
        let keys: Vec<RunKey> = (0..runs).map(|number| append(&mut store, number)).collect();
        let mut outputs = RunOutputs::of_store(&store);
        for run in keys.iter().rev() {
            let entities = store.entities(*run).unwrap();
            let found = outputs.unexplained(*run, &entities).unwrap();
            assert_eq!(found, HashSet::new(), "{run:?}");
        }
        outputs.read
    }

    #[test]
    fn the_versions_that_are_read_to_compare_runs_grow_with_the_number_of_runs() {
        assert_eq!(read_for(30), 3 * 30);
        assert_eq!(read_for(60), 3 * 60);
    }

    #[test]
    fn endless_new_paths_take_a_bounded_space() {
        let mut store = MemoryStore::default();
        let keys = [0, 1].map(|number| append(&mut store, number));
        let mut outputs = RunOutputs::of_store(&store);
        for number in 0..=PATHS {
            let found = [version(0, &format!("/lib/{number}"), 0, 7)];
            let unexplained = outputs.unexplained(keys[1], &found).unwrap();
            assert_eq!(unexplained, HashSet::new());
        }
        assert_eq!(outputs.at_path.len(), 1);
    }

    #[test]
    fn a_version_that_only_a_later_run_made_is_unexplained() {
        let mut store = MemoryStore::default();
        append(&mut store, 0);
        let keys = [5, 4].map(|number| append(&mut store, number));
        let mut outputs = RunOutputs::of_store(&store);
        for run in keys {
            let entities = store.entities(run).unwrap();
            let found = outputs.unexplained(run, &entities).unwrap();
            assert_eq!(found, HashSet::from([EntityId(1)]), "{run:?}");
        }
    }
}
