//! A store in memory, strict and simple: what the others are compared with.

use std::collections::{BTreeMap, HashSet};

use backstory_eventlog::event::{Bytes, Time};
use backstory_eventlog::run::{RunEnd, RunHeader};
use backstory_files::Digest;
use backstory_files::Ident;
use backstory_graph::model::{
    Activity, ActivityId, Derived, Edge, Entity, EntityId, EntityKind, Inform, Informed, Relation,
    Sink,
};

use crate::api::{Appender, Body, same_version};
use crate::facts::{self, DirectorySnapshot, Learned, Mark};
use crate::{
    ActivityKey, Counts, EntityKey, Error, Result, Role, RunKey, RunRecord, Stats, Store, Stream,
};

/// A store that ends with the process.
#[derive(Debug, Default)]
pub struct MemoryStore {
    runs: BTreeMap<u32, Run>,
    appended: u32,
    contents: Vec<facts::Fact>,
    directory_snapshots: Vec<DirectorySnapshot>,
    mark: Mark,
}

#[derive(Debug, Default)]
struct Run {
    record: Option<RunRecord>,
    id: String,
    activities: Vec<Option<Activity>>,
    entities: Vec<Option<Entity>>,
    /// Edges, informs and derivations in the order they came.
    facts: Vec<Fact>,
    extended: Vec<(ActivityId, Time, Bytes, Bytes)>,
    unknown: Vec<String>,
    /// What earlier runs made; while it is appended.
    earlier: Vec<Ident>,
}

#[derive(Debug, Clone, Copy)]
enum Fact {
    Edge(Edge),
    Inform(Inform),
    Derived(Derived),
}

impl Run {
    fn check(&self, what: &'static str, id: u32, announced: bool) -> Result<()> {
        if announced {
            Ok(())
        } else {
            Err(Error::Unannounced {
                run: self.id.clone(),
                what,
                id: u64::from(id),
            })
        }
    }

    fn check_activity(&self, id: ActivityId) -> Result<()> {
        self.check(
            "activity",
            id.0,
            matches!(self.activities.get(id.0 as usize), Some(Some(_))),
        )
    }

    fn check_entity(&self, id: EntityId) -> Result<()> {
        self.check(
            "entity",
            id.0,
            matches!(self.entities.get(id.0 as usize), Some(Some(_))),
        )
    }

    fn counts(&self) -> Counts {
        use Relation::*;
        let paths = |wanted: &[Relation]| {
            let edges = self.facts.iter().filter_map(|fact| match fact {
                Fact::Edge(edge) if wanted.contains(&edge.relation) => {
                    self.entities[edge.entity.0 as usize].as_ref()
                }
                _ => None,
            });
            edges
                .filter(|e| e.kind == EntityKind::File)
                .map(|e| &e.path)
                .collect::<HashSet<_>>()
                .len() as u64
        };
        let counted = |fact: &&Fact| {
            !matches!(
                fact,
                Fact::Inform(Inform {
                    why: Informed::Exec,
                    ..
                })
            )
        };
        Counts {
            activities: self.activities.len() as u64,
            entities: self.entities.len() as u64,
            edges: self.facts.iter().filter(counted).count() as u64,
            files_read: paths(&[Read, Execute]),
            files_written: paths(&[Write, Make, Rename, Delete]),
        }
    }

    fn versions_made(&self) -> impl Iterator<Item = Ident> {
        let made = self
            .entities
            .iter()
            .flatten()
            .filter(|entity| self.made(entity.id));
        made.filter_map(|entity| entity.ident)
    }

    fn made(&self, id: EntityId) -> bool {
        use Relation::*;
        self.facts.iter().any(|fact| match fact {
            Fact::Edge(edge) => edge.entity == id && matches!(edge.relation, Write | Make | Rename),
            Fact::Derived(derived) => derived.entity == id,
            Fact::Inform(_) => false,
        })
    }
}

impl Sink for Run {
    type Error = Error;

    fn activity(&mut self, activity: &Activity) -> Result<()> {
        let id = activity.id.0 as usize;
        self.activities
            .resize(self.activities.len().max(id + 1), None);
        self.activities[id] = Some(activity.clone());
        Ok(())
    }

    fn entity(&mut self, entity: &Entity) -> Result<()> {
        let id = entity.id.0 as usize;
        self.entities.resize(self.entities.len().max(id + 1), None);
        self.entities[id] = Some(entity.clone());
        Ok(())
    }

    fn edge(&mut self, edge: &Edge) -> Result<()> {
        self.check_entity(edge.entity)?;
        self.check_activity(edge.activity)?;
        self.facts.push(Fact::Edge(*edge));
        Ok(())
    }

    fn inform(&mut self, inform: &Inform) -> Result<()> {
        self.check_activity(inform.from)?;
        self.check_activity(inform.to)?;
        self.facts.push(Fact::Inform(*inform));
        Ok(())
    }

    fn derived(&mut self, derived: &Derived) -> Result<()> {
        self.check_entity(derived.from)?;
        self.check_entity(derived.entity)?;
        self.check_activity(derived.activity)?;
        self.facts.push(Fact::Derived(*derived));
        Ok(())
    }

    fn extended(
        &mut self,
        activity: ActivityId,
        time: Time,
        kind: &[u8],
        payload: &[u8],
    ) -> Result<()> {
        self.check_activity(activity)?;
        self.extended
            .push((activity, time, kind.into(), payload.into()));
        Ok(())
    }

    fn unknown(&mut self, reason: &str) -> Result<()> {
        if !self.unknown.iter().any(|known| known == reason) {
            self.unknown.push(reason.to_owned());
        }
        Ok(())
    }

    fn made_before(&self, ident: &Ident) -> bool {
        self.earlier.iter().any(|made| same_version(made, ident))
    }
}

impl MemoryStore {
    fn at(&self, run: RunKey) -> Result<&Run> {
        self.runs
            .get(&run.0)
            .ok_or_else(|| Error::NoRun(format!("number {}", run.0)))
    }

    fn change(&mut self, id: &str, change: impl FnOnce(&mut RunRecord)) -> Result<()> {
        let record = self
            .runs
            .values_mut()
            .filter_map(|run| run.record.as_mut())
            .find(|record| record.header.id == id);
        record
            .map(change)
            .ok_or_else(|| Error::NoRun(id.to_owned()))
    }

    fn find(&self, mut wanted: impl FnMut(&Run, &Entity) -> bool) -> Vec<EntityKey> {
        let mut found = Vec::new();
        for (number, run) in self.runs.iter().rev() {
            for entity in run.entities.iter().flatten() {
                if wanted(run, entity) {
                    found.push(EntityKey::new(RunKey(*number), entity.id));
                }
            }
        }
        found
    }
}

impl Store for MemoryStore {
    fn append(
        &mut self,
        header: &RunHeader,
        end: &RunEnd,
        log_bytes: u64,
        body: &mut Body<'_>,
    ) -> Result<RunKey> {
        if self.run(&header.id)?.is_some() {
            return Err(Error::Exists(header.id.clone()));
        }
        let mut run = Run {
            id: header.id.clone(),
            earlier: self.runs.values().flat_map(Run::versions_made).collect(),
            ..Run::default()
        };
        body(&mut Appender::new(&mut run))?;
        run.earlier = Vec::new();
        for (id, activity) in run.activities.iter().enumerate() {
            run.check("activity", id as u32, activity.is_some())?;
        }
        for (id, entity) in run.entities.iter().enumerate() {
            run.check("entity", id as u32, entity.is_some())?;
        }
        self.appended += 1;
        let key = RunKey(self.appended);
        let (header, end, name) = (header.clone(), end.clone(), header.name.clone());
        let (unknown, counts) = (run.unknown.clone(), run.counts());
        run.record = Some(RunRecord {
            key,
            header,
            end,
            name,
            note: None,
            log_bytes,
            unknown,
            counts,
        });
        self.runs.insert(key.0, run);
        Ok(key)
    }

    fn remove(&mut self, id: &str) -> Result<bool> {
        let before = self.runs.len();
        self.runs.retain(|_, run| run.id != id);
        Ok(self.runs.len() < before)
    }

    fn set_name(&mut self, id: &str, name: Option<&str>) -> Result<()> {
        self.change(id, |record| record.name = name.map(str::to_owned))
    }

    fn set_note(&mut self, id: &str, note: Option<&str>) -> Result<()> {
        self.change(id, |record| record.note = note.map(str::to_owned))
    }

    fn run_ids(&self) -> Result<HashSet<String>> {
        Ok(self.runs.values().map(|run| run.id.clone()).collect())
    }

    fn runs(&self) -> Result<Vec<RunRecord>> {
        let mut runs: Vec<_> = self
            .runs
            .values()
            .filter_map(|run| run.record.clone())
            .collect();
        crate::newest_first(&mut runs);
        Ok(runs)
    }

    fn run(&self, id: &str) -> Result<Option<RunRecord>> {
        Ok(self
            .runs
            .values()
            .find(|run| run.id == id)
            .and_then(|run| run.record.clone()))
    }

    fn run_by_key(&self, key: RunKey) -> Result<Option<RunRecord>> {
        Ok(self.runs.get(&key.0).and_then(|run| run.record.clone()))
    }

    fn runs_named(&self, name: &str) -> Result<Vec<RunRecord>> {
        Ok(self
            .runs()?
            .into_iter()
            .filter(|record| record.name.as_deref() == Some(name))
            .collect())
    }

    fn activities(&self, run: RunKey) -> Result<Vec<Activity>> {
        Ok(self.at(run)?.activities.iter().flatten().cloned().collect())
    }

    fn entities(&self, run: RunKey) -> Result<Vec<Entity>> {
        Ok(self.at(run)?.entities.iter().flatten().cloned().collect())
    }

    fn activity(&self, key: ActivityKey) -> Result<Activity> {
        let found = self
            .at(key.run())?
            .activities
            .get(key.local().0 as usize)
            .cloned()
            .flatten();
        found.ok_or(Error::Damaged("process (it is missing)"))
    }

    fn entity(&self, key: EntityKey) -> Result<Entity> {
        let found = self
            .at(key.run())?
            .entities
            .get(key.local().0 as usize)
            .cloned()
            .flatten();
        found.ok_or(Error::Damaged("entity (it is missing)"))
    }

    fn stream(&self, key: ActivityKey) -> Result<Stream> {
        let (mut stream, me) = (Stream::default(), key.local());
        for fact in &self.at(key.run())?.facts {
            match *fact {
                Fact::Edge(edge) if edge.activity == me => stream.edges.push(edge),
                Fact::Derived(derived) if derived.activity == me => stream.derived.push(derived),
                Fact::Inform(inform) => {
                    if inform.from == me {
                        stream.informs.push(inform);
                    }
                    if inform.to == me {
                        stream.informed_by.push(inform);
                    }
                }
                _ => {}
            }
        }
        Ok(stream)
    }

    fn touching(&self, key: EntityKey) -> Result<Vec<(ActivityId, bool)>> {
        let (mut found, me) = (HashSet::new(), key.local());
        for fact in &self.at(key.run())?.facts {
            match *fact {
                Fact::Edge(edge) if edge.entity == me => {
                    found.insert((edge.activity, !edge.relation.is_use()));
                }
                Fact::Derived(derived) => {
                    if derived.entity == me {
                        found.insert((derived.activity, true));
                    }
                    if derived.from == me {
                        found.insert((derived.activity, false));
                    }
                }
                _ => {}
            }
        }
        Ok(found.into_iter().collect())
    }

    fn at_path(&self, path: &[u8]) -> Result<Vec<EntityKey>> {
        Ok(self.find(|_, entity| {
            &*entity.path == path || entity.aliases.iter().any(|alias| &**alias == path)
        }))
    }

    fn same(&self, ident: &Ident, role: Role) -> Result<Vec<EntityKey>> {
        use EntityKind::*;
        let same = |e: &Entity| {
            matches!(e.kind, File | Directory | Symlink)
                && e.ident.is_some_and(|i| same_version(&i, ident))
        };
        Ok(self.find(|run, entity| same(entity) && (role == Role::Any || run.made(entity.id))))
    }

    fn extended(&self, run: RunKey) -> Result<Vec<(ActivityId, Time, Bytes, Bytes)>> {
        Ok(self.at(run)?.extended.clone())
    }

    fn learn(&mut self, learned: &[Learned], mark: Mark, anew: bool) -> Result<()> {
        if anew {
            self.contents.clear();
            self.directory_snapshots.clear();
        }
        for one in learned {
            match one {
                Learned::Fact(fact) => {
                    let old = self
                        .contents
                        .iter()
                        .position(|old| same_version(&old.ident, &fact.ident));
                    match old {
                        Some(at) if fact.replaces(&self.contents[at]) => {
                            self.contents[at] = fact.clone()
                        }
                        Some(_) => {}
                        None => self.contents.push(fact.clone()),
                    }
                }
                Learned::Run(run) => {
                    self.directory_snapshots.retain(|old| old.run != run.run);
                    self.directory_snapshots.push(run.clone());
                }
                Learned::Forgotten(run) => self.directory_snapshots.retain(|old| old.run != *run),
            }
        }
        self.mark = mark;
        Ok(())
    }

    fn learned(&self) -> Result<Mark> {
        Ok(self.mark)
    }

    fn fact(&self, ident: &Ident) -> Result<Option<facts::Fact>> {
        let known = |fact: &&facts::Fact| same_version(&fact.ident, ident);
        Ok(self.contents.iter().find(known).cloned())
    }

    fn facts(&self) -> Result<Vec<facts::Fact>> {
        Ok(self.contents.clone())
    }

    fn with_content(&self, digest: &Digest) -> Result<Vec<Ident>> {
        let alike = self
            .contents
            .iter()
            .filter(|fact| fact.digest == Some(*digest));
        Ok(alike.map(|fact| fact.ident).collect())
    }

    fn runs_without_contents(&self) -> Result<Vec<RunRecord>> {
        let mut runs = self.runs()?;
        runs.retain(|run| {
            let known = self
                .directory_snapshots
                .iter()
                .any(|one| one.run == run.header.id);
            !known && run.header.modes.stores_contents()
        });
        runs.reverse();
        Ok(runs)
    }

    fn directory_snapshot(&self, run: &str) -> Result<Option<DirectorySnapshot>> {
        Ok(self
            .directory_snapshots
            .iter()
            .find(|one| one.run == run)
            .cloned())
    }

    fn stats(&self) -> Result<Stats> {
        let mut stats = Stats {
            runs: self.runs.len() as u64,
            ..Stats::default()
        };
        for record in self.runs.values().filter_map(|run| run.record.as_ref()) {
            stats.counts.activities += record.counts.activities;
            stats.counts.entities += record.counts.entities;
            stats.counts.edges += record.counts.edges;
            stats.counts.files_read += record.counts.files_read;
            stats.counts.files_written += record.counts.files_written;
        }
        Ok(stats)
    }
}
