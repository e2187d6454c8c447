//! Looks up how the commands of a step changed files when they were recorded, and what they took
//! from outside.
//!
//! In: a step and the store. Out: [`UnitFiles`]: the files that it changes, how each was before,
//! which command made each last, and the standard input that it read.
//!
//! A step is an *edit* of a file if it took in a version of the file from outside itself, and left
//! another one: `sed -i`, an append, a row that is added to a database. A step with a builder such
//! as `make` is not judged so: a builder looks at its former results and decides by itself.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use backstory_currency::PlannedStep;
use backstory_eventlog::event::{Bytes, Time};
use backstory_files::{Digest, Ident};
use backstory_graph::model::{ActivityId, Derived, Edge, Entity, EntityId, EntityKind, Relation};
use backstory_graph::standard;
use backstory_ordering::{SmallCollect, SmallSort};
use backstory_query as query;
use backstory_store::{ActivityKey, RunKey, RunRecord, Store};
use backstory_workflow::paths::{base_name, is_below_kernel, is_cache, is_record};
use backstory_workflow::tools::knowledge;

use crate::Result;

/// The files that a step changed, and the standard input that it read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnitFiles {
    /// The files that it made, changed or removed.
    pub changed: Vec<ChangedFile>,
    /// The directories that it made or moved to their place.
    pub directories: Vec<Bytes>,
    /// The standard input of the run, if the step read it.
    pub input: Option<OuterInput>,
    /// A builder is among its commands.
    pub is_driven: bool,
    /// The number of its runs.
    pub runs: usize,
}

/// A file that a step changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    /// Its path.
    pub path: Bytes,
    /// The step left it at its end.
    pub remains: bool,
    /// How it was before the step.
    pub origin: FileOrigin,
    /// The version that a recorded command left last. `None` if the last one removed the file.
    pub last: Option<LeftVersion>,
}

/// How a file was before a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileOrigin {
    /// It was not there.
    Absent,
    /// It was there and empty. A caller that redirects its output leaves it so.
    Empty,
    /// The step did not depend on the former file, if there was one.
    Replaced,
    /// The step took in what was there: it is an edit.
    Edited(EditedVersion),
}

/// The version that an edit began with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditedVersion {
    /// Its identity, if it is known.
    pub ident: Option<Ident>,
    /// The digest of its content, if it is known.
    pub digest: Option<Digest>,
    /// True if the store of contents has it.
    pub is_stored: bool,
}

/// A version that a recorded command left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftVersion {
    /// The kind of file.
    pub kind: EntityKind,
    /// Its identity, if it is known.
    pub ident: Option<Ident>,
    /// The digest of its content, if it is known.
    pub digest: Option<Digest>,
    /// The run.
    pub run: String,
    /// The end of the run.
    pub ended: Time,
    /// The step itself left it, or an execution of the same command.
    pub is_own: bool,
}

/// The standard input of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OuterInput {
    /// A regular file.
    File(Bytes),
    /// Something that is gone when the run has ended, in words.
    Gone(&'static str),
    /// A regular file that other commands of the run read, too: where the step began to read is
    /// not known.
    Shared(Bytes),
}

/// Looks up what steps did. Each run is read once.
pub struct UnitSearch<'s> {
    store: &'s dyn Store,
    runs: RefCell<HashMap<RunKey, Rc<SearchedRun>>>,
}

struct SearchedRun {
    record: RunRecord,
    entities: Vec<Entity>,
    is_undone: bool,
    /// The entity of the run's standard input.
    input: Option<EntityId>,
    /// Descriptors that were opened without truncation.
    appended: HashSet<EntityId>,
}

/// The operations of the members of a step in one run.
#[derive(Default)]
struct MemberEdges {
    /// The first and last moment of each change.
    made: HashMap<EntityId, (Time, Time)>,
    /// The first read of each version.
    read: HashMap<EntityId, Time>,
    /// The versions that keep bytes of another one.
    derived: HashSet<(EntityId, EntityId)>,
    touched: HashSet<EntityId>,
    removed: HashSet<EntityId>,
    directories: Vec<Bytes>,
}

impl<'s> UnitSearch<'s> {
    /// A search in a store.
    pub fn new(store: &'s dyn Store) -> UnitSearch<'s> {
        UnitSearch {
            store,
            runs: RefCell::default(),
        }
    }

    /// The changes of a step.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub fn of(&self, step: &PlannedStep) -> Result<UnitFiles> {
        let mut members: BTreeMap<RunKey, Vec<ActivityId>> = BTreeMap::new();
        for member in &step.members {
            members
                .entry(member.run())
                .or_default()
                .push(member.local());
        }
        let mut files = UnitFiles::default();
        let mut changed: BTreeMap<Bytes, ChangedFile> = BTreeMap::new();
        for (&key, activities) in &members {
            let run = self.run(key)?;
            let edges = self.edges(key, &run, activities, &mut files)?;
            for file in self.changed(&run, &edges)? {
                // The step gets the descriptors of `rerun` instead of those that the run inherited.
                let mut inherited = run.record.header.descriptors.iter();
                if inherited.any(|(_, name)| **name == *file.path)
                    && !step.outputs.iter().any(|(path, _)| *path == file.path)
                {
                    continue;
                }
                match changed.get_mut(&file.path) {
                    // A version that an earlier run of the step left is not from outside.
                    Some(before) => before.remains = file.remains,
                    None => {
                        changed.insert(file.path.clone(), file);
                    }
                }
            }
            files.directories.extend(edges.directories);
            let reads_input = run.input.filter(|input| edges.read.contains_key(input));
            if let Some(input) = reads_input
                && files.input.is_none()
            {
                files.input = self.outer_input(key, &run, input, activities)?;
            }
        }
        files.runs = members.len();
        let own: BTreeSet<RunKey> = members.into_keys().into_tree();
        for file in changed.values_mut() {
            file.last = self.last_version(&file.path, &own)?;
            // A builder finds out itself what is to be made, but it compares times only. So what is
            // asked for is removed before it decides again.
            let is_asked = step.outputs.iter().any(|(path, _)| *path == file.path);
            let is_anew = step.is_whole_run && is_asked && file.origin == FileOrigin::Absent;
            if files.is_driven && !is_anew {
                file.origin = FileOrigin::Replaced;
            }
        }
        files.changed = changed.into_values().collect();
        Ok(files)
    }

    fn run(&self, key: RunKey) -> Result<Rc<SearchedRun>> {
        if let Some(run) = self.runs.borrow().get(&key) {
            return Ok(run.clone());
        }
        let record = self.store.run_by_key(key)?;
        let record = record.ok_or_else(|| query::Error::NoRun(format!("number {}", key.0)))?;
        let (mut input, mut appended) = (None, HashSet::new());
        let mut first = true;
        for (activity, _, kind, payload) in self.store.extended(key)? {
            if &*kind != standard::KIND {
                continue;
            }
            let Some(ends) = standard::decode(&payload) else {
                continue;
            };
            if first || activity == ActivityId(0) {
                input = ends.input.map(|end| end.entity);
            }
            first = false;
            let keeping = ends.all().into_iter().flatten().filter(|end| end.keeps);
            appended.extend(keeping.map(|end| end.entity));
        }
        let run = Rc::new(SearchedRun {
            entities: self.store.entities(key)?,
            is_undone: query::is_undone(self.store, &record)?,
            record,
            input,
            appended,
        });
        self.runs.borrow_mut().insert(key, run.clone());
        Ok(run)
    }

    fn edges(
        &self,
        key: RunKey,
        run: &SearchedRun,
        activities: &[ActivityId],
        files: &mut UnitFiles,
    ) -> Result<MemberEdges> {
        let mut all = MemberEdges::default();
        let mut moved = Vec::new();
        for &activity in activities {
            let activity = ActivityKey::new(key, activity);
            let program = self.store.activity(activity)?;
            let name = program.exec_path.as_ref().or(program.argv.first());
            files.is_driven |= name.is_some_and(|name| is_builder(name));
            let stream = self.store.stream(activity)?;
            let derived = stream.derived.iter();
            all.derived
                .extend(derived.map(|derived| (derived.entity, derived.from)));
            moved.extend(stream.derived);
            for edge in stream.edges {
                if let Some(entity) = run.entities.get(edge.entity.0 as usize) {
                    all.add(&edge, entity);
                }
            }
        }
        all.add_moved(moved);
        Ok(all)
    }

    /// The files that the members changed. Their last versions are not looked up yet.
    fn changed(&self, run: &SearchedRun, edges: &MemberEdges) -> Result<Vec<ChangedFile>> {
        let mut by_path: BTreeMap<&Bytes, Vec<&Entity>> = BTreeMap::new();
        for entity in run.entities.iter().filter(|entity| is_file(entity)) {
            by_path.entry(&entity.path).or_default().push(entity);
        }
        let mut changed = Vec::new();
        for (path, versions) in by_path {
            let made = versions
                .iter()
                .filter(|one| edges.made.contains_key(&one.id));
            let made: Vec<&Entity> = made.copied().collect();
            let is_removed = versions.iter().any(|one| edges.removed.contains(&one.id));
            if made.is_empty() && !is_removed {
                continue;
            }
            let origin = match self.edited(run, edges, &versions, &made)? {
                Some(edited) if is_empty(run, path, &edited) => FileOrigin::Empty,
                Some(edited) => FileOrigin::Edited(edited),
                None if is_new(run, edges, &versions, &made) => FileOrigin::Absent,
                None => FileOrigin::Replaced,
            };
            changed.push(ChangedFile {
                path: path.clone(),
                remains: made.iter().any(|one| one.last),
                origin,
                last: None,
            });
        }
        Ok(changed)
    }

    /// The version of a file from outside that the members took in before they changed the file.
    fn edited(
        &self,
        run: &SearchedRun,
        edges: &MemberEdges,
        versions: &[&Entity],
        made: &[&Entity],
    ) -> Result<Option<EditedVersion>> {
        let until = made.iter().filter_map(|one| edges.made.get(&one.id));
        let until = until.map(|(_, end)| *end).max().unwrap_or(Time::MIN);
        let from_outside = |one: &Entity| !edges.made.contains_key(&one.id);
        let is_read = |one: &&&Entity| {
            let read = edges.read.get(&one.id);
            from_outside(one) && read.is_some_and(|read| *read <= until)
        };
        let mut found = match made.iter().any(|one| one.last) {
            true => versions.iter().filter(is_read).copied().last(),
            false => None,
        };
        for one in made {
            let before = one.previous.and_then(|id| run.entities.get(id.0 as usize));
            let Some(before) = before.filter(|before| from_outside(before)) else {
                continue;
            };
            // Without a truncation the bytes of the version before stay. A program that truncates
            // an existing file has mostly looked at it, and a descriptor tells it for certain.
            let is_read =
                edges.read.contains_key(&one.id) && edges.derived.contains(&(one.id, before.id));
            let is_appended = run.appended.contains(&one.id);
            let kept = is_appended || is_read || !edges.touched.contains(&before.id);
            let is_shorter = match (before.ident, one.ident) {
                (Some(before), Some(after)) => after.size < before.size,
                _ => false,
            };
            if kept && !is_shorter && before.path == one.path {
                found = found.or(Some(before));
            }
        }
        let Some(found) = found else {
            return Ok(None);
        };
        let (digest, held) = query::known(self.store, found.ident.as_ref())?.unzip();
        Ok(Some(EditedVersion {
            ident: found.ident,
            digest: digest.flatten(),
            is_stored: held.is_some_and(|held| held.is_stored()),
        }))
    }

    /// The version that a recorded command left last at a path. `own`: the runs of the step.
    fn last_version(&self, path: &Bytes, own: &BTreeSet<RunKey>) -> Result<Option<LeftVersion>> {
        let mut newest: Option<(RunKey, Entity)> = None;
        for key in self.store.at_path(path)? {
            let run = self.run(key.run())?;
            let entity = run.entities.get(key.local().0 as usize);
            let made = entity.filter(|one| is_file(one) && one.version > 0 && one.path == *path);
            let Some(made) = made.filter(|_| !run.is_undone) else {
                continue;
            };
            let rank = |run: RunKey, one: &Entity| (run, one.last, one.version);
            let best = newest.as_ref().map(|(run, one)| rank(*run, one));
            if best.is_none_or(|best| rank(key.run(), made) > best) {
                newest = Some((key.run(), made.clone()));
            }
        }
        let Some((key, version)) = newest.filter(|(_, version)| version.last) else {
            return Ok(None);
        };
        let run = self.run(key)?;
        let (digest, _) = query::known(self.store, version.ident.as_ref())?.unzip();
        Ok(Some(LeftVersion {
            kind: version.kind,
            ident: version.ident,
            digest: digest.flatten(),
            run: run.record.header.id.clone(),
            ended: run.record.end.ended.max(run.record.header.started),
            is_own: self.is_same_command(key, own)?,
        }))
    }

    /// True if a run is one of the step's, repeats one, or has the same command in the same
    /// directory.
    fn is_same_command(&self, key: RunKey, own: &BTreeSet<RunKey>) -> Result<bool> {
        if own.contains(&key) {
            return Ok(true);
        }
        let mut origins = BTreeSet::new();
        for &one in own {
            origins.insert(self.origin(one)?);
        }
        let header = &self.run(key)?.record.header;
        let mut same = origins.contains(&self.origin(key)?);
        for &one in own {
            let other = &self.run(one)?.record.header;
            same |= (&header.command, &header.cwd) == (&other.command, &other.cwd);
        }
        Ok(same)
    }

    /// The id of the run that a chain of repetitions began with.
    fn origin(&self, key: RunKey) -> Result<String> {
        let mut header = self.run(key)?.record.header.clone();
        let mut seen = HashSet::new();
        while let Some(repeated) = header.repeats.clone().filter(|id| seen.insert(id.clone())) {
            match self.store.run(&repeated)? {
                Some(record) => header = record.header,
                None => return Ok(repeated),
            }
        }
        Ok(header.id)
    }

    fn outer_input(
        &self,
        key: RunKey,
        run: &SearchedRun,
        input: EntityId,
        members: &[ActivityId],
    ) -> Result<Option<OuterInput>> {
        let header = &run.record.header;
        let mut descriptors = header.descriptors.iter().zip(0..);
        let standard = descriptors.find(|((number, _), _)| *number == 0);
        let is_regular = |at: usize| matches!(header.descriptor_files.get(at), Some(Some(_)));
        Ok(match standard {
            None => None,
            Some(((_, target), at)) if is_regular(at) => {
                match target.starts_with(b"/") && !target.ends_with(b" (deleted)") {
                    true if self.is_shared(key, input, members)? => {
                        Some(OuterInput::Shared(target.as_slice().into()))
                    }
                    true => Some(OuterInput::File(target.as_slice().into())),
                    false => Some(OuterInput::Gone("a file without a name")),
                }
            }
            Some(((_, target), _)) => match &target[..] {
                b"/dev/null" => None,
                target if target.starts_with(b"pipe:") => Some(OuterInput::Gone("a pipe")),
                target if target.starts_with(b"socket:") => Some(OuterInput::Gone("a socket")),
                target if target.starts_with(b"/dev/pts/") || target.starts_with(b"/dev/tty") => {
                    Some(OuterInput::Gone("a terminal"))
                }
                _ => None,
            },
        })
    }

    /// True if a command that is no member read the run's standard input.
    fn is_shared(&self, key: RunKey, input: EntityId, members: &[ActivityId]) -> Result<bool> {
        let members: HashSet<&ActivityId> = members.iter().collect();
        for activity in self.store.activities(key)? {
            if members.contains(&activity.id) {
                continue;
            }
            let edges = self.store.stream(ActivityKey::new(key, activity.id))?.edges;
            let mut reads = edges.iter().filter(|edge| edge.relation == Relation::Read);
            if reads.any(|edge| edge.entity == input) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl MemberEdges {
    /// Adds the files that the members made and then moved with a directory above them.
    fn add_moved(&mut self, mut moved: Vec<Derived>) {
        moved.sort_small_by_key(|derived| derived.time);
        for one in moved {
            if self.made.contains_key(&one.from) {
                self.made.entry(one.entity).or_insert((one.time, one.time));
            }
        }
    }

    fn add(&mut self, edge: &Edge, entity: &Entity) {
        let id = edge.entity;
        if entity.kind == EntityKind::Directory {
            if matches!(edge.relation, Relation::Make | Relation::Rename) {
                self.directories.push(entity.path.clone());
            }
            return;
        }
        match edge.relation {
            Relation::Write | Relation::Rename | Relation::Make => {
                let span = self.made.entry(id).or_insert((Time::MAX, Time::MIN));
                *span = (
                    span.0.min(edge.interval.start),
                    span.1.max(edge.interval.end),
                );
            }
            Relation::Read => {
                let first = self.read.entry(id).or_insert(Time::MAX);
                *first = edge.interval.start.min(*first);
            }
            Relation::Delete => {
                self.removed.insert(id);
            }
            _ => {}
        }
        if edge.relation.is_use() {
            self.touched.insert(id);
        }
    }
}

/// True if the version was empty, or was a file that the caller had emptied for the output.
fn is_empty(run: &SearchedRun, path: &Bytes, version: &EditedVersion) -> bool {
    let header = &run.record.header;
    let mut given = header.descriptors.iter().zip(&header.descriptor_files);
    version.ident.is_some_and(|ident| ident.size == 0)
        || given
            .any(|((_, name), file)| **name == **path && file.is_some_and(|file| file.size == 0))
}

/// True if the members made the file where none was. A file that they truncated is older than its
/// run.
fn is_new(run: &SearchedRun, edges: &MemberEdges, versions: &[&Entity], made: &[&Entity]) -> bool {
    let is_known = versions.iter().any(|one| !edges.made.contains_key(&one.id));
    let born = made
        .iter()
        .filter_map(|one| one.ident)
        .map(|ident| ident.birth);
    let mut born = born.filter(|birth| *birth > 0);
    !is_known && born.any(|birth| birth >= run.record.header.started)
}

/// True for a file or link of the user. Caches, records of tools and files of the kernel do not
/// count.
fn is_file(entity: &Entity) -> bool {
    let path = &entity.path;
    matches!(entity.kind, EntityKind::File | EntityKind::Symlink)
        && path.starts_with(b"/")
        && !is_below_kernel(path)
        && !is_cache(path)
        && !is_record(path)
}

/// True for a program that decides by its own look at files what it executes.
fn is_builder(program: &[u8]) -> bool {
    let name = base_name(program);
    let end = name
        .iter()
        .rposition(|byte| !byte.is_ascii_digit() && *byte != b'.' && *byte != b'-');
    let plain = &name[..end.map_or(name.len(), |end| end + 1)];
    let mut builders = knowledge().programs.builders.iter();
    builders.any(|known| known.as_bytes() == name || known.as_bytes() == plain)
}
