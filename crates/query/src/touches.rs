//! `who`: every process that touched a file, in all runs.
//!
//! A path means the files that had it when they were recorded, and the present file by its
//! identity, under whichever name it was recorded.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backstory_eventlog::event::Bytes;
use backstory_graph::lineage::generates;
use backstory_graph::model::{
    ActivityId, Certainty, Entity, EntityId, EntityKind, Interval, Relation,
};
use backstory_store::{ActivityKey, EntityKey, ReadGuard, RunKey, Store, Stream, VersionMatch};

use crate::answer::{Access, Derivation, FileTouch};
use crate::files::word;
use crate::history::moved_with_directory;
use crate::peers::{MeantEnd, is_address, meant_ends};
use crate::root::{Asked, at_address, no_peer};
use crate::runs::record;
use crate::{Error, Result, now};

/// Which touches are wanted.
#[derive(Debug, Clone, Default)]
pub struct Touches {
    /// Also those of processes that only looked the file up.
    pub lookups: bool,
    /// In this run only: its id.
    pub run: Option<String>,
}

/// The processes that touched a file, one run after the other, the newest run first. So an answer
/// of one screen does not read the whole store, and a long one is never in memory as a whole.
pub struct TouchSearch<'s> {
    store: &'s dyn Store,
    _one_state: ReadGuard<'s>,
    left: VersionsByRun,
    lookups: bool,
    /// The processes so far that only looked the file up, and are left out.
    pub looked: usize,
}

impl<'s> TouchSearch<'s> {
    /// A search for the processes that touched the file at `path`.
    ///
    /// Errors: [`Error::NotFound`] if no run has seen the path, [`Error::NoPeer`] if it is an
    /// address that no run has seen.
    pub fn new(store: &'s dyn Store, path: &Path, wanted: &Touches) -> Result<TouchSearch<'s>> {
        let one_state = store.reading()?;
        let only = match &wanted.run {
            Some(run) => Some(record(store, run)?.key),
            None => None,
        };
        let mut left = versions(store, path)?;
        left.retain(|run, _| only.is_none_or(|only| run.0 == only));
        let given = path.as_os_str().as_bytes();
        // A host that no run has seen is no file of that name.
        let is_host = !host_ends(given).is_empty() && !path.exists();
        if left.is_empty() && (is_address(given) || is_host) {
            return Err(no_peer(given));
        }
        if left.is_empty() {
            return Err(Error::NotFound(Asked::new(path)?.absolute));
        }
        Ok(TouchSearch {
            store,
            _one_state: one_state,
            left,
            lookups: wanted.lookups,
            looked: 0,
        })
    }

    /// The processes of the next run, the latest first. `None` after the last run.
    pub fn next_run(&mut self) -> Result<Option<Vec<FileTouch>>> {
        let Some((Reverse(run), entities)) = self.left.pop_first() else {
            return Ok(None);
        };
        let mut here = in_run(self.store, run, &entities)?;
        if !self.lookups {
            let before = here.len();
            here.retain(|touch| !is_lookup(touch));
            self.looked += before - here.len();
        }
        here.sort_by_key(|touch| Reverse((touch.interval.end, touch.id)));
        Ok(Some(here))
    }

    /// The number of processes in the runs that are left. Those that only looked the file up count,
    /// too: only the acts of each process would tell them apart.
    pub fn processes_left(&self) -> Result<usize> {
        let mut processes = 0;
        for entities in self.left.values() {
            let mut here = BTreeSet::new();
            for key in entities {
                let touching = self.store.touching(*key)?;
                here.extend(touching.into_iter().map(|(activity, _)| activity));
            }
            processes += here.len();
        }
        Ok(processes)
    }
}

/// The processes that touched a version, under any name and in any run that knows it. The newest
/// run comes first, and in a run the latest. Also how many others only looked it up.
pub fn version_touches(
    store: &dyn Store,
    version: EntityKey,
    wanted: &Touches,
) -> Result<(Vec<FileTouch>, usize)> {
    let one_state = store.reading()?;
    let mut by_run = VersionsByRun::new();
    let mut keys = vec![version];
    if let Some(ident) = store.entity(version)?.ident {
        keys.extend(store.same(&ident, VersionMatch::Any)?);
    }
    for key in keys {
        by_run.entry(Reverse(key.run())).or_default().insert(key);
    }
    let mut search = TouchSearch {
        store,
        _one_state: one_state,
        left: by_run,
        lookups: wanted.lookups,
        looked: 0,
    };
    let mut found = Vec::new();
    while let Some(here) = search.next_run()? {
        found.extend(here);
    }
    Ok((found, search.looked))
}

/// Versions by run, the latest run first.
type VersionsByRun = BTreeMap<Reverse<RunKey>, BTreeSet<EntityKey>>;

/// The versions of the file in each run, the latest run first. An address means its connections. A
/// host without a port means all connections with it.
fn versions(store: &dyn Store, path: &Path) -> Result<VersionsByRun> {
    let given = path.as_os_str().as_bytes();
    let mut keys = Vec::new();
    if is_address(given) {
        keys = at_address(store, given, None)?;
    } else {
        let asked = Asked::new(path)?;
        for name in asked.names() {
            keys.extend(store.at_path(name)?);
        }
        if let Some(ident) = now::ident(&asked.absolute, false) {
            keys.extend(store.same(&ident, VersionMatch::Any)?);
        }
        if keys.is_empty() {
            keys = with_host(store, given)?;
        }
    }
    let mut by_run = VersionsByRun::new();
    for key in keys {
        by_run.entry(Reverse(key.run())).or_default().insert(key);
    }
    Ok(by_run)
}

/// The ends that a host means, given with or without a port. None if it is no host.
fn host_ends(given: &[u8]) -> Vec<MeantEnd> {
    meant_ends(std::str::from_utf8(given).unwrap_or_default())
}

/// The connections with a host, given as an address with or without a port.
fn with_host(store: &dyn Store, host: &[u8]) -> Result<Vec<EntityKey>> {
    let mut keys = Vec::new();
    for end in host_ends(host) {
        for kind in ["tcp", "udp"] {
            let prefix = match end {
                MeantEnd::Port(address) => {
                    let at = format!("{kind}:{address}");
                    keys.extend(at_address(store, at.as_bytes(), None)?);
                    continue;
                }
                MeantEnd::Host(IpAddr::V4(host)) => format!("{kind}:{host}:"),
                MeantEnd::Host(IpAddr::V6(host)) => format!("{kind}:[{host}]:"),
            };
            keys.extend(store.below(prefix.as_bytes(), &|_| true)?);
        }
    }
    Ok(keys)
}

/// True if the process did no more than look the file up.
fn is_lookup(touch: &FileTouch) -> bool {
    let look = |access: &Access| {
        matches!(
            access,
            Access::Stat | Access::Dir | Access::Missing | Access::Link
        )
    };
    touch.access.iter().all(look) && touch.to.is_empty() && touch.from.is_empty()
}

/// The touches of one run, one for each process, in no order.
fn in_run(
    store: &dyn Store,
    run: RunKey,
    entities: &BTreeSet<EntityKey>,
) -> Result<Vec<FileTouch>> {
    let Some(record) = store.run_by_key(run)? else {
        return Ok(Vec::new());
    };
    let mut activities: BTreeSet<ActivityId> = BTreeSet::new();
    for key in entities {
        activities.extend(store.touching(*key)?.iter().map(|(activity, _)| *activity));
    }
    let mut names = EntityNames::new(store, run);
    let mut found = Vec::new();
    for activity in activities {
        let key = ActivityKey::new(run, activity);
        let stream = store.stream(key)?;
        if let Some(touch) = Acts::of(&stream, entities, &mut names)? {
            found.push(FileTouch {
                run: record.header.id.clone(),
                run_name: record.name.clone(),
                id: key.0,
                activity: store.activity(key)?,
                path: names.get(touch.entity)?.path.clone(),
                possible: touch.possible(),
                access: touch.access.into_keys().collect(),
                certainty: touch.certainty,
                interval: touch.interval,
                to: touch.to.into_iter().collect(),
                from: touch.from.into_iter().collect(),
            });
        }
    }
    Ok(found)
}

/// The acts of one process on the file.
struct Acts {
    entity: EntityId,
    access: BTreeMap<Access, Certainty>,
    certainty: Certainty,
    interval: Interval,
    to: BTreeSet<(Derivation, Bytes)>,
    from: BTreeSet<(Derivation, Bytes)>,
}

impl Acts {
    fn of(
        stream: &Stream,
        entities: &BTreeSet<EntityKey>,
        names: &mut EntityNames<'_>,
    ) -> Result<Option<Acts>> {
        let run = names.run;
        let is_it = |entity: EntityId| entities.contains(&EntityKey::new(run, entity));
        let mut acts: Option<Acts> = None;
        for edge in stream.edges.iter().filter(|edge| is_it(edge.entity)) {
            let acts = acts.get_or_insert_with(|| Acts::begun(edge.entity, edge.interval));
            let access = acts.access.entry(word(edge.relation));
            let access = access.or_insert(edge.certainty);
            *access = (*access).max(edge.certainty);
            acts.certainty = acts.certainty.max(edge.certainty);
            acts.extend(edge.interval);
            if edge.relation == Relation::Make {
                let made = names.get(edge.entity)?;
                if is_hard_link(made) {
                    acts.to.insert((Derivation::Linked, made.path.clone()));
                }
            }
        }
        for derived in &stream.derived {
            let (is_new, is_old) = (is_it(derived.entity), is_it(derived.from));
            if is_new == is_old {
                continue;
            }
            let interval = Interval {
                start: derived.time,
                end: derived.time,
            };
            let how = match moved_with_directory(names.store, run, stream, derived)? {
                true => Derivation::Renamed,
                false => derivation(stream, derived.entity),
            };
            let own = if is_new { derived.entity } else { derived.from };
            let acts = acts.get_or_insert_with(|| Acts::begun(own, interval));
            acts.certainty = acts.certainty.max(made_for_certain(stream, derived.entity));
            acts.extend(interval);
            let own_path = names.get(own)?.path.clone();
            let (list, other) = match is_new {
                true => (&mut acts.from, derived.from),
                false => (&mut acts.to, derived.entity),
            };
            // A version of the same file, written in place, has the same name.
            let other = names.get(other)?.path.clone();
            if other != own_path {
                list.insert((how, other));
            }
        }
        Ok(acts)
    }

    fn begun(entity: EntityId, interval: Interval) -> Acts {
        Acts {
            entity,
            access: BTreeMap::new(),
            certainty: Certainty::Possible,
            interval,
            to: BTreeSet::new(),
            from: BTreeSet::new(),
        }
    }

    /// The acts that were not observed.
    fn possible(&self) -> Vec<Access> {
        let acts = self.access.iter();
        let possible = acts.filter(|(_, certainty)| **certainty == Certainty::Possible);
        possible.map(|(access, _)| *access).collect()
    }

    fn extend(&mut self, by: Interval) {
        self.interval.start = self.interval.start.min(by.start);
        self.interval.end = self.interval.end.max(by.end);
    }
}

/// The certainty that a process made a derived version. A version that it possibly wrote comes from
/// the version before.
fn made_for_certain(stream: &Stream, entity: EntityId) -> Certainty {
    let edges = stream.edges.iter();
    let made = edges.filter(|edge| edge.entity == entity && generates(edge.relation));
    let certainty = made.map(|edge| edge.certainty).max();
    certainty.unwrap_or(Certainty::Seen)
}

/// How a process derived a version: by what else it did to that version.
fn derivation(stream: &Stream, entity: EntityId) -> Derivation {
    let does = |wanted: Relation| {
        let mut edges = stream.edges.iter();
        edges.any(|edge| edge.entity == entity && edge.relation == wanted)
    };
    if does(Relation::Rename) {
        Derivation::Renamed
    } else if does(Relation::Make) {
        Derivation::Linked
    } else {
        Derivation::Copied
    }
}

/// True for a further name of a file, which is an entity of its own: the version under its name
/// before precedes it.
fn is_hard_link(entity: &Entity) -> bool {
    entity.kind == EntityKind::File && entity.previous.is_some()
}

/// The entities of a run that are named in the answer.
struct EntityNames<'s> {
    store: &'s dyn Store,
    run: RunKey,
    known: HashMap<EntityId, Entity>,
}

impl<'s> EntityNames<'s> {
    fn new(store: &'s dyn Store, run: RunKey) -> EntityNames<'s> {
        EntityNames {
            store,
            run,
            known: HashMap::new(),
        }
    }

    fn get(&mut self, id: EntityId) -> Result<&Entity> {
        if !self.known.contains_key(&id) {
            let entity = self.store.entity(EntityKey::new(self.run, id))?;
            self.known.insert(id, entity);
        }
        Ok(&self.known[&id])
    }
}
