//! The runs of a judgement, each read once, with what the judgement looks up in them.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use backstory_eventlog::event::{Bytes, Time};
use backstory_graph::lineage::generates;
use backstory_graph::model::{
    Certainty, Derived, Edge, Entity, EntityId, EntityKind, Informed, Interval, Relation,
};
use backstory_query::{self as query, Globs};
use backstory_store::{RunKey, Store};
use backstory_workflow::paths::{base_name, is_cache, is_record, parent};
use backstory_workflow::recording::Recording;
use backstory_workflow::steps::{
    RunCommands, is_builder, is_one, is_read_by_builder, is_shell, is_unbuffered, program,
};
use backstory_workflow::tools::knowledge;
use rustc_hash::FxHashMap;

use crate::Result;
use crate::file_state::CLOCK_LAG;
use crate::name_patterns::NamePatterns;
use crate::program_texts::{ProgramTexts, inputs_of_children};
use crate::shell_flow::{Range, ShellFlow};

/// Reads runs. Each is read once.
pub struct LoadedRuns<'s> {
    store: &'s dyn Store,
    runs: RefCell<HashMap<RunKey, Rc<LoadedRun>>>,
    undone: RefCell<HashMap<RunKey, bool>>,
    texts: Rc<ProgramTexts>,
}

impl<'s> LoadedRuns<'s> {
    /// No run has been read yet.
    pub fn new(store: &'s dyn Store) -> LoadedRuns<'s> {
        LoadedRuns {
            store,
            runs: RefCell::default(),
            undone: RefCell::default(),
            texts: Rc::default(),
        }
    }

    /// True if the outputs of a run were put back: the file that is there is an older version.
    pub fn is_undone(&self, key: RunKey) -> Result<bool> {
        if let Some(undone) = self.undone.borrow().get(&key) {
            return Ok(*undone);
        }
        let undone = match self.store.run_by_key(key)? {
            Some(record) => query::is_undone(self.store, &record)?,
            None => false,
        };
        self.undone.borrow_mut().insert(key, undone);
        Ok(undone)
    }

    /// The run with this number.
    pub fn get(&self, key: RunKey) -> Result<Rc<LoadedRun>> {
        if let Some(run) = self.runs.borrow().get(&key) {
            return Ok(run.clone());
        }
        let run = Rc::new(LoadedRun::load(self.store, key, self.texts.clone())?);
        self.runs.borrow_mut().insert(key, run.clone());
        Ok(run)
    }
}

/// One run.
pub struct LoadedRun {
    /// The run itself.
    pub recording: Recording,
    /// The end of the run and [`CLOCK_LAG`]: the file system's clock may lag behind.
    pub ended: Time,
    /// The directories that the run listed, as they were after its end.
    pub listings: HashMap<Vec<u8>, RecordedListing>,
    /// Paths of the command's standard output and errors, if they led to files that were empty when
    /// the command began: the caller wrote `> FILE`. The descriptor's number comes with each.
    pub redirected: Vec<(u32, Bytes)>,
    commands: OnceCell<RunCommands>,
    makers: HashMap<EntityId, Vec<(usize, Interval)>>,
    mode_changes: HashMap<EntityId, Vec<(usize, Interval)>>,
    origins: HashMap<EntityId, Vec<Derived>>,
    movers: HashMap<EntityId, Vec<(usize, Time)>>,
    left: HashMap<Bytes, EntityId>,
    before: OnceCell<HashMap<Bytes, EntityId>>,
    heard: OnceCell<HashMap<usize, Vec<Heard>>>,
    drivers: OnceCell<Vec<bool>>,
    shells: OnceCell<Vec<bool>>,
    records: OnceCell<Vec<bool>>,
    input_readers: OnceCell<HashMap<EntityId, Vec<usize>>>,
    memory_sharers: OnceCell<HashMap<usize, Vec<usize>>>,
    worked_in: OnceCell<WorkByDirectory>,
    inputs_of_children: RefCell<HashMap<usize, Rc<HashSet<EntityId>>>>,
    flows: RefCell<HashMap<usize, Option<Rc<ShellFlow>>>>,
    uses: RefCell<FxHashMap<usize, Rc<Vec<CountedUse>>>>,
    /// The texts of programs.
    pub texts: Rc<ProgramTexts>,
}

/// Words of shells that read, or that interpret other text.
const READING: [&[u8]; 6] = [b"read", b"mapfile", b"select", b"eval", b"source", b"$(<"];

/// The activities that gave or took names, by directory.
type WorkByDirectory = HashMap<Vec<u8>, Vec<(usize, Time, EntityId)>>;

/// A fact that an activity learned of another one without a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heard {
    /// The activity that it learned of.
    pub from: usize,
    /// A status or a signal.
    pub why: Informed,
    /// When.
    pub time: Time,
}

/// A file or channel that an activity took in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taking {
    /// The version.
    pub entity: EntityId,
    /// The begin of the use.
    pub start: Time,
    /// The statements of a shell's text to which the use can belong. `None`: it counts for all.
    pub by: Option<Range>,
}

/// A directory that a run listed, as it was when the run's contents were stored.
#[derive(Debug, Clone)]
pub struct RecordedListing {
    /// The names in it.
    pub names: BTreeSet<Vec<u8>>,
    /// The last change of its names. 0 if it is not known.
    pub changed: Time,
}

/// A use of a file or channel that counts, by the rules of [`crate::reductions`].
#[derive(Debug, Clone)]
pub struct CountedUse {
    /// The use.
    pub edge: Edge,
    /// The same as a taking.
    pub taking: Taking,
    /// Of a listing: the activities that gave or took a name that it may have taken, each with the
    /// moment.
    pub names: Vec<(usize, Time)>,
}

impl LoadedRun {
    fn load(store: &dyn Store, key: RunKey, texts: Rc<ProgramTexts>) -> Result<LoadedRun> {
        let id = store.run_id(key)?;
        let id = id.ok_or_else(|| query::Error::NoRun(format!("number {}", key.0)))?;
        let recording = Recording::load(store, &id)?;
        let mut mode_changes: HashMap<EntityId, Vec<(usize, Interval)>> = HashMap::new();
        let mut makers: HashMap<EntityId, Vec<(usize, Interval)>> = HashMap::new();
        for (at, edges) in recording.edges.iter().enumerate() {
            // Programs inherit the ends of pipes of others.
            let counts = |edge: &&Edge| {
                let is_pipe = recording.entity(edge.entity).kind == EntityKind::Pipe;
                let standard = recording.standard[at].all();
                let is_standard = || {
                    standard
                        .iter()
                        .flatten()
                        .any(|end| end.entity == edge.entity)
                };
                !is_pipe || edge.certainty == Certainty::Seen || is_standard()
            };
            let is_changed = |edge: &&Edge| {
                edge.relation == Relation::Meta && recording.entity(edge.entity).version > 0
            };
            for edge in edges.iter().filter(is_changed) {
                let changes = mode_changes.entry(edge.entity).or_default();
                changes.push((at, edge.interval));
            }
            let made = edges.iter().filter(|edge| generates(edge.relation));
            for edge in made.filter(counts) {
                let makers = makers.entry(edge.entity).or_default();
                makers.push((at, edge.interval));
            }
        }
        let mut origins: HashMap<EntityId, Vec<Derived>> = HashMap::new();
        for derived in &recording.derived {
            origins.entry(derived.entity).or_default().push(*derived);
        }
        let mut movers: HashMap<EntityId, Vec<(usize, Time)>> = HashMap::new();
        let moved = recording.derived.iter();
        for derived in moved.filter(|derived| !makers.contains_key(&derived.entity)) {
            let movers = movers.entry(derived.entity).or_default();
            movers.push((derived.activity.0 as usize, derived.time));
        }
        let summary = &recording.details.summary;
        Ok(LoadedRun {
            ended: summary.ended.unwrap_or(summary.started) + CLOCK_LAG,
            listings: listings(store, &id)?,
            redirected: redirected(store, &recording)?,
            commands: OnceCell::new(),
            left: left(&recording.entities),
            before: OnceCell::new(),
            heard: OnceCell::new(),
            drivers: OnceCell::new(),
            shells: OnceCell::new(),
            records: OnceCell::new(),
            input_readers: OnceCell::new(),
            memory_sharers: OnceCell::new(),
            worked_in: OnceCell::new(),
            texts,
            inputs_of_children: RefCell::default(),
            flows: RefCell::default(),
            uses: RefCell::default(),
            makers,
            mode_changes,
            origins,
            movers,
            recording,
        })
    }

    /// The flow through the text of an activity, if it is a shell whose text is understood.
    pub fn flow(&self, at: usize) -> Option<Rc<ShellFlow>> {
        if let Some(known) = self.flows.borrow().get(&at) {
            return known.clone();
        }
        let flow =
            is_shell(&self.recording, at).then(|| ShellFlow::of(&self.recording, &self.texts, at));
        let flow = flow.flatten().map(Rc::new);
        self.flows.borrow_mut().insert(at, flow.clone());
        flow
    }

    /// True for a program that bash started and of which no part before the program is known, as in
    /// a recorded shell. The copy of bash may have expanded patterns of names as this activity.
    /// Dash expands them itself, and shares its memory with such a child.
    pub fn lacks_fork(&self, at: usize) -> bool {
        let all = &self.recording.activities;
        let parent = all[at].parent.map(|parent| parent.0 as usize);
        let is_other = |parent: &usize| all[*parent].pid != all[at].pid;
        let shell = parent.filter(is_other);
        let is_bash = |shell| base_name(program(&self.recording, shell)) == b"bash";
        all[at].epoch > 0 && shell.is_some_and(is_bash)
    }

    /// The names that an activity that listed a directory may have taken from there.
    pub fn name_patterns(&self, at: usize, listed: &Edge) -> NamePatterns {
        match (self.is_driver(at), self.flow(at)) {
            (true, _) => self.texts.rules(&self.recording, at),
            (false, Some(flow)) => flow.patterns(self.taking(at, listed).by),
            (false, None) => NamePatterns::all(),
        }
    }

    /// The uses of files and channels by an activity that count. They are found once.
    pub fn uses_once(
        &self,
        at: usize,
        find: impl FnOnce() -> Vec<CountedUse>,
    ) -> Rc<Vec<CountedUse>> {
        if let Some(known) = self.uses.borrow().get(&at) {
            return known.clone();
        }
        let found = Rc::new(find());
        self.uses.borrow_mut().insert(at, found.clone());
        found
    }

    /// The taking that a use of a file or channel is.
    pub fn taking(&self, at: usize, edge: &Edge) -> Taking {
        let flow = self.flow(at);
        Taking {
            entity: edge.entity,
            start: edge.interval.start,
            by: flow.and_then(|flow| flow.taking(&self.recording, edge, self.makers(edge.entity))),
        }
    }

    /// The run's commands.
    pub fn commands(&self) -> Result<&RunCommands> {
        if let Some(commands) = self.commands.get() {
            return Ok(commands);
        }
        let every = Globs::new::<String>(&[])?;
        Ok(self
            .commands
            .get_or_init(|| RunCommands::of(&self.recording, &every)))
    }

    /// The activities that made a version, each with the interval of the operation.
    pub fn makers(&self, entity: EntityId) -> &[(usize, Interval)] {
        self.makers.get(&entity).map_or(&[], Vec::as_slice)
    }

    /// The activities that changed the mode or the owner of a version that the run made, each with
    /// the interval of the operation. A builder sets the times of what its commands made.
    pub fn mode_changes(&self, entity: EntityId) -> impl Iterator<Item = &(usize, Interval)> {
        let all = self
            .mode_changes
            .get(&entity)
            .map_or(&[][..], Vec::as_slice);
        all.iter().filter(|(at, _)| !self.is_driver(*at))
    }

    /// The activities that gave a version its content, each with the interval of the operation. A
    /// program that only opened the file for its children does not count, if its own writes would
    /// have been seen and another one wrote.
    pub fn givers(&self, entity: EntityId) -> Vec<(usize, Interval)> {
        let all = self.makers(entity);
        let opened = |at: usize| {
            let is_given = self.recording.given.contains(&(at, entity));
            is_given && is_unbuffered(&self.recording, at)
        };
        let mut givers = all.to_vec();
        givers.retain(|(at, _)| !opened(*at));
        match givers.is_empty() {
            true => all.to_vec(),
            false => givers,
        }
    }

    /// True if the entity is the standard input with which the activity began.
    pub fn is_standard_input(&self, at: usize, entity: EntityId) -> bool {
        let input = self.recording.standard[at].input;
        input.is_some_and(|end| end.entity == entity)
    }

    /// The files that the activity found and replaces by new ones, and those that it makes where it
    /// found none. A shell's builtins may do so under a condition.
    pub fn replaced(&self, at: usize) -> HashSet<EntityId> {
        if is_shell(&self.recording, at) {
            return HashSet::new();
        }
        let edges = &self.recording.edges[at];
        let mut made: HashMap<&Bytes, Vec<EntityId>> = HashMap::new();
        for edge in edges.iter().filter(|edge| generates(edge.relation)) {
            let path = &self.recording.entity(edge.entity).path;
            made.entry(path).or_default().push(edge.entity);
        }
        let found = edges.iter().map(|edge| self.recording.entity(edge.entity));
        let found = found.filter(|found| found.version == 0);
        let replaced = found.filter(|found| {
            let mut made = made.get(&found.path).into_iter().flatten();
            made.any(|&made| {
                let mut origins = self.origins(made).iter();
                made != found.id && !origins.any(|origin| origin.from == found.id)
            })
        });
        replaced.map(|found| found.id).collect()
    }

    /// True if a shell opened the file only as the standard input of a program that it started, and
    /// that program read it.
    pub fn passes_on(&self, at: usize, entity: EntityId) -> bool {
        self.is_shell(at)
            && self.inputs_of_children(at).contains(&entity)
            && !self.texts.may_contain(&self.recording, at, &READING)
    }

    /// True if the activity is a shell.
    pub fn is_shell(&self, at: usize) -> bool {
        let all = || 0..self.recording.activities.len();
        let found = || all().map(|at| is_shell(&self.recording, at)).collect();
        self.shells.get_or_init(found)[at]
    }

    /// True if the activity used the file only to find out which commands must run.
    pub fn is_bookkeeping(&self, at: usize, file: EntityId) -> bool {
        let all = self.recording.entities.iter();
        let found = || all.map(|file| is_record(&file.path)).collect();
        self.records.get_or_init(found)[file.0 as usize]
            || is_read_by_builder(&self.recording, at, &self.recording.entity(file).path)
    }

    fn inputs_of_children(&self, at: usize) -> Rc<HashSet<EntityId>> {
        let mut known = self.inputs_of_children.borrow_mut();
        let find = || Rc::new(inputs_of_children(&self.recording, at));
        known.entry(at).or_insert_with(find).clone()
    }

    /// Statuses and signals that an activity received. Where no recorder saw its waits, it counts
    /// as having waited for each child when the child ended.
    pub fn heard(&self, at: usize) -> &[Heard] {
        let heard = self.heard.get_or_init(|| {
            let mut heard: HashMap<usize, Vec<Heard>> = HashMap::new();
            let seen = self.recording.informs.iter().filter_map(|inform| {
                let one = Heard {
                    from: inform.from.0 as usize,
                    why: inform.why,
                    time: inform.time,
                };
                matches!(inform.why, Informed::Wait | Informed::Signal)
                    .then_some((inform.to.0 as usize, one))
            });
            let activities = self.recording.activities.iter().enumerate();
            let unseen = activities.filter(|(_, activity)| !activity.lookups_known);
            let unseen = unseen.flat_map(|(at, _)| {
                let children = self.recording.children[at].iter();
                children.map(move |&from| {
                    let time = self.recording.activities[from].interval.end;
                    let why = Informed::Wait;
                    (at, Heard { from, why, time })
                })
            });
            for (at, one) in seen.chain(unseen) {
                heard.entry(at).or_default().push(one);
            }
            heard
        });
        heard.get(&at).map_or(&[], Vec::as_slice)
    }

    /// True if the activity's program runs commands by the user's rules, and makes nothing itself.
    pub fn is_driver(&self, at: usize) -> bool {
        let drivers = self.drivers.get_or_init(|| {
            let known = &knowledge().programs.writing_builders;
            let all = 0..self.recording.activities.len();
            let writes = |at: usize| {
                let activity = &self.recording.activities[at];
                let mut words = activity
                    .exec_path
                    .iter()
                    .chain(activity.argv.iter().take(2));
                words.any(|word| is_one(word, known))
            };
            all.map(|at| is_builder(&self.recording, at) && !writes(at))
                .collect()
        });
        drivers[at]
    }

    /// True if the activity's program is a shell, or a builder: its status is that of others.
    pub fn is_shell_or_builder(&self, at: usize) -> bool {
        self.is_shell(at) || is_builder(&self.recording, at)
    }

    /// True if the program of an activity keeps a cache where the file lies: one of its activities
    /// wrote into the cache during this run. Any other file in such a directory is a file like
    /// others.
    pub fn keeps_cache(&self, at: usize, path: &[u8]) -> bool {
        let program = &self.recording.activities[at].exec_path;
        let directory = parent(path);
        let same = (0..self.recording.activities.len())
            .filter(|&other| self.recording.activities[other].exec_path == *program);
        let mut made = same.flat_map(|other| &self.recording.edges[other]);
        made.any(|edge| {
            let made = &self.recording.entity(edge.entity).path;
            generates(edge.relation) && is_cache(made) && parent(made).starts_with(directory)
        })
    }

    /// True if the activity wrote to the entity.
    pub fn has_written(&self, at: usize, entity: EntityId) -> bool {
        let mut edges = self.recording.edges[at].iter();
        edges.any(|edge| edge.entity == entity && edge.relation == Relation::Write)
    }

    /// Other activities that read the standard input that this activity reads. The offset in it
    /// depends on each of them.
    pub fn offset_sharers(&self, at: usize) -> impl Iterator<Item = usize> {
        let readers = self.input_readers.get_or_init(|| {
            let mut readers: HashMap<EntityId, Vec<usize>> = HashMap::new();
            for at in 0..self.recording.activities.len() {
                if let Some(input) = self.input_read(at) {
                    readers.entry(input).or_default().push(at);
                }
            }
            readers
        });
        let shared = self.input_read(at).and_then(|input| readers.get(&input));
        let others = shared.into_iter().flatten().copied();
        others.filter(move |other| *other != at)
    }

    /// The standard input of an activity, if the activity read it and it has an offset, or gives
    /// each byte to one reader.
    fn input_read(&self, at: usize) -> Option<EntityId> {
        let input = self.recording.standard[at].input?.entity;
        let kind = self.recording.entity(input).kind;
        let is_shared = matches!(kind, EntityKind::File | EntityKind::Pipe);
        let reads = |edge: &Edge| edge.entity == input && edge.relation == Relation::Read;
        (is_shared && self.recording.edges[at].iter().any(reads)).then_some(input)
    }

    /// Other activities that may share memory with this one: a child that never executed a program,
    /// and the parent of such a child. A shell's children have copies of its memory.
    pub fn memory_sharers(&self, at: usize) -> &[usize] {
        let sharers = self.memory_sharers.get_or_init(|| {
            let mut sharers: HashMap<usize, Vec<usize>> = HashMap::new();
            for (child, activity) in self.recording.activities.iter().enumerate() {
                let Some(parent) = activity.parent.map(|parent| parent.0 as usize) else {
                    continue;
                };
                let is_copy = activity.epoch == 0 && !activity.execed && parent != child;
                if is_copy && !is_shell(&self.recording, parent) && !self.is_driver(parent) {
                    sharers.entry(child).or_default().push(parent);
                    sharers.entry(parent).or_default().push(child);
                }
            }
            sharers
        });
        sharers.get(&at).map_or(&[], Vec::as_slice)
    }

    /// The activities that gave or took names in a directory, each with the begin of the operation
    /// and the file.
    pub fn worked_in(&self, directory: &[u8]) -> &[(usize, Time, EntityId)] {
        let worked = self.worked_in.get_or_init(|| {
            let mut worked = WorkByDirectory::new();
            for (at, edges) in self.recording.edges.iter().enumerate() {
                for edge in edges {
                    let entity = self.recording.entity(edge.entity);
                    let names = match edge.relation {
                        Relation::Delete | Relation::Rename | Relation::Make => true,
                        Relation::Write => entity.version == 1 && entity.previous.is_none(),
                        _ => false,
                    };
                    if names {
                        let here = worked.entry(parent(&entity.path).to_vec()).or_default();
                        here.push((at, edge.interval.start, edge.entity));
                    }
                }
            }
            worked
        });
        worked.get(directory).map_or(&[], Vec::as_slice)
    }

    /// The versions whose content is in this version. A program that cuts its
    /// output to nothing after it has opened it takes nothing of the former file, unless it reads
    /// its output.
    pub fn sources_of(&self, entity: EntityId) -> impl Iterator<Item = Derived> {
        let known = &knowledge().programs.cuts_output;
        let reads = |edge: &Edge| edge.entity == entity && edge.relation == Relation::Read;
        let cuts = self.makers(entity).iter().any(|(at, _)| {
            let program = self.recording.activities[*at].exec_path.as_deref();
            program.is_some_and(|program| is_one(program, known))
                && !self.recording.edges[*at].iter().any(reads)
        });
        let path = &self.recording.entity(entity).path;
        let is_former = move |from: EntityId| cuts && self.recording.entity(from).path == *path;
        let origins = self.origins(entity).iter().copied();
        origins.filter(move |origin| !is_former(origin.from))
    }

    /// The files that a program that copies files made the version from, if that is known. They are
    /// the origins of the version, if the kernel copied. Else they are the files of the same name
    /// and size that the program read.
    pub fn copied_from(&self, at: usize, version: &Entity) -> Option<Vec<EntityId>> {
        let program = self.recording.activities[at].exec_path.as_deref();
        let known = &knowledge().programs.copiers;
        if !program.is_some_and(|program| is_one(program, known)) {
            return None;
        }
        let origins = self.origins(version.id).iter().map(|origin| origin.from);
        let others = origins.filter(|from| {
            let from = self.recording.entity(*from);
            from.path != version.path && from.kind == EntityKind::File
        });
        let others: Vec<EntityId> = others.collect();
        if !others.is_empty() {
            return Some(others);
        }
        let size = version.ident?.size;
        let reads = self.recording.edges[at].iter();
        let reads = reads.filter(|edge| edge.relation == Relation::Read);
        let same = reads.filter(|edge| {
            let read = self.recording.entity(edge.entity);
            base_name(&read.path) == base_name(&version.path)
                && read.ident.is_some_and(|ident| ident.size == size)
        });
        let same: Vec<EntityId> = same.map(|edge| edge.entity).collect();
        (!same.is_empty()).then_some(same)
    }

    /// The activities that gave a version its name with a directory above it, each with the moment.
    pub fn movers(&self, entity: EntityId) -> &[(usize, Time)] {
        self.movers.get(&entity).map_or(&[], Vec::as_slice)
    }

    /// How the kernel made this version from others.
    pub fn origins(&self, entity: EntityId) -> &[Derived] {
        self.origins.get(&entity).map_or(&[], Vec::as_slice)
    }

    /// The files that an activity found and that the kernel put under another name or into another
    /// file for it. A file that the run itself moved away is not among them.
    pub fn linked(&self, at: usize) -> impl Iterator<Item = &Derived> {
        self.recording.derived_by(at).iter().filter(|derived| {
            let from = self.recording.entity(derived.from);
            from.version == 0 && from.last && from.kind == EntityKind::File
        })
    }

    /// The newest version that the run made of the file at a path. The file system held it at the
    /// end of the run if it is marked as the last one; otherwise the run removed it.
    pub fn left(&self, path: &[u8]) -> Option<&Entity> {
        self.left.get(path).map(|&id| self.recording.entity(id))
    }

    /// The files that the run made and left, also as hard links to others.
    pub fn results(&self) -> impl Iterator<Item = &Entity> {
        let left = self.left.values().map(|&id| self.recording.entity(id));
        let all = self.recording.entities.iter();
        let links = all.filter(|entity| entity.version == 0 && !self.makers(entity.id).is_empty());
        let left = left.chain(links);
        left.filter(|version| {
            version.last && matches!(version.kind, EntityKind::File | EntityKind::Symlink)
        })
    }

    /// The version that should be at the path of a version that the run used. It is the one that
    /// the run left there, if the run made one. `None`: the run removed the file.
    pub fn expected<'r>(&'r self, used: &'r Entity) -> Option<&'r Entity> {
        match self.left(&used.path) {
            Some(left) => Some(left).filter(|left| left.last),
            None => Some(used),
        }
    }

    /// True if the caller redirected the command's output to this file.
    pub fn is_redirected(&self, path: &[u8]) -> bool {
        self.redirected.iter().any(|(_, file)| **file == *path)
    }

    /// The newest version from before the run of the file at a path, if the run named it.
    pub fn before(&self, path: &[u8]) -> Option<&Entity> {
        let by_path = self.before.get_or_init(|| {
            let entities = self.recording.entities.iter();
            let before = entities.filter(|entity| entity.version == 0);
            let before = before.filter(|entity| entity.kind == EntityKind::File);
            before
                .map(|entity| (entity.path.clone(), entity.id))
                .collect()
        });
        by_path.get(path).map(|&id| self.recording.entity(id))
    }

    /// True if the run itself gave the version its content.
    pub fn is_made(&self, entity: &Entity) -> bool {
        entity.version > 0 || !self.makers(entity.id).is_empty()
    }
}

fn left(entities: &[Entity]) -> HashMap<Bytes, EntityId> {
    let mut left: HashMap<Bytes, &Entity> = HashMap::new();
    for entity in entities.iter().filter(|entity| entity.version > 0) {
        let one = left.entry(entity.path.clone()).or_insert(entity);
        if (entity.last, entity.version) > (one.last, one.version) {
            *one = entity;
        }
    }
    let ids = left.into_iter().map(|(path, entity)| (path, entity.id));
    ids.collect()
}

fn listings(store: &dyn Store, run: &str) -> Result<HashMap<Vec<u8>, RecordedListing>> {
    let snapshot = store.directory_snapshot(run)?;
    let entries = snapshot
        .map(|snapshot| snapshot.entries)
        .unwrap_or_default();
    let known = entries.into_iter().filter_map(|entry| {
        let names = entry.listing?.into_iter().map(|entry| entry.name.to_vec());
        let listing = RecordedListing {
            names: names.collect(),
            changed: entry.mtime,
        };
        Some((entry.path.to_vec(), listing))
    });
    Ok(known.collect())
}

fn redirected(store: &dyn Store, recording: &Recording) -> Result<Vec<(u32, Bytes)>> {
    let Some(record) = store.run_by_key(recording.key)? else {
        return Ok(Vec::new());
    };
    let header = record.header;
    let was_empty = |number: u32| {
        let mut all = header.descriptors.iter().zip(&header.descriptor_files);
        all.any(|((fd, _), file)| {
            i64::from(*fd) == i64::from(number) && file.is_some_and(|file| file.size == 0)
        })
    };
    let root = recording.roots().next();
    let ends = root.map(|root| recording.standard[root].all());
    let ends = (0..).zip(ends.into_iter().flatten()).skip(1);
    let files = ends.filter_map(|(number, end)| {
        let entity = recording.entity(end?.entity);
        let is_file = entity.kind == EntityKind::File;
        (is_file && entity.path.starts_with(b"/") && was_empty(number))
            .then(|| (number, entity.path.clone()))
    });
    Ok(files.collect())
}
