//! One side of a comparison: commands, inputs and outputs under names that another run can share.
//!
//! A path below the run's directory is relative to it, so that the same work in two directories
//! compares as equal. `beside` does the same for paths at the same place beside both directories.
//! Random parts of arguments and variables are replaced (`random_names`).
//!
//! The log of a whole run belongs to the run's caller, and is no output
//! ([`backstory_workflow::callers_files`]).

use backstory_ordering::SmallSort;
use std::collections::{BTreeMap, HashMap, HashSet};

use backstory_eventlog::event::{Bytes, Time};
use backstory_files::Digest;
use backstory_files::Ident;
use backstory_graph::model::{Activity, Certainty, Entity, EntityKind};
use backstory_query::answer::{Lineage, Node, RunDetails, Scope};
use backstory_query::{self as query};
use backstory_store::facts::Availability;
use backstory_store::{ActivityKey, EntityKey, Store};
use backstory_workflow::callers_files;
use backstory_workflow::paths::absolute;

use super::callers_work;
use super::file_use::FileUse;
use super::listings::{self, DirectoryListing};
use super::random_names::{TEMPORARY, shared};
use super::run_use::RunUse;
use super::side_part::SidePart;
use crate::Result;

/// The subject of one side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiffSubject {
    /// A run, by its id.
    Run(String),
    /// A version of a file with its ancestry.
    Version(EntityKey),
}

/// An executed program.
#[derive(Debug, Clone, PartialEq)]
pub struct SideCommand {
    /// Its activity.
    pub key: ActivityKey,
    /// The activity as recorded.
    pub activity: Activity,
    /// Its arguments, under names that another run can share.
    pub argv: Vec<Vec<u8>>,
    /// Its directory, under such a name.
    pub cwd: Vec<u8>,
    /// The variables that were set for it (`NAME=value`), under such names.
    pub variables: Vec<Bytes>,
    /// Its begin, in ns since the side's begin.
    pub at: Time,
}

/// A version of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct SideFile {
    /// Its entity.
    pub key: EntityKey,
    /// Absolute path.
    pub path: Bytes,
    /// Its kind; [`EntityKind::Missing`] if a process looked for it in vain.
    pub kind: EntityKind,
    /// Its identity, if it was taken for certain.
    pub ident: Option<Ident>,
    /// The digest of its content, if that is known.
    pub digest: Option<Digest>,
    /// The place of its content.
    pub held: Option<Availability>,
    /// It was executed.
    pub executed: bool,
    /// Some of the activities that read or executed it.
    pub readers: Vec<ActivityKey>,
    /// Another activity than its writer read or executed it in its run: an intermediate result, if
    /// the run made it.
    pub is_read_by_others: bool,
    /// The time of its first use, or of its completion if the run made it, in ns since the side's
    /// begin.
    pub at: Time,
}

/// One side.
#[derive(Debug)]
pub struct DiffSide {
    /// The runs, oldest first.
    pub runs: Vec<RunDetails>,
    /// Commands, in the order of their begin.
    pub commands: Vec<SideCommand>,
    /// Files before the run, by their names from the run's directory.
    pub inputs: BTreeMap<Vec<u8>, SideFile>,
    /// Files that the run left, by their names from the run's directory.
    pub outputs: BTreeMap<Vec<u8>, SideFile>,
    /// Listed directories, by their names from the run's directory.
    pub listings: BTreeMap<Vec<u8>, DirectoryListing>,
    /// The numbers of all processes of the runs.
    pub processes: HashSet<u32>,
    /// The parent of each activity.
    pub parents: HashMap<ActivityKey, ActivityKey>,
    /// Paths of the compared things that shells and launchers read or changed themselves.
    pub(super) worked_on: HashMap<ActivityKey, Vec<Bytes>>,
}

impl DiffSide {
    /// Reads one side. The ancestry of a version is followed along edges that are at least this
    /// certain.
    ///
    /// # Errors
    ///
    /// If the run or file does not exist, or the store fails.
    pub(super) fn load(
        store: &dyn Store,
        subject: &DiffSubject,
        least: Certainty,
    ) -> Result<DiffSide> {
        let (runs, part) = match subject {
            DiffSubject::Run(run) => (vec![run.clone()], None),
            DiffSubject::Version(version) => {
                let lineage = lineage(store, *version, None, least)?;
                let mut runs: Vec<String> = Vec::new();
                for node in &lineage.nodes {
                    let (Node::Activity { run, .. } | Node::Entity { run, .. }) = node;
                    if !runs.contains(run) {
                        runs.push(run.clone());
                    }
                }
                (runs, Some(SidePart::of(&lineage)))
            }
        };
        let mut details = Vec::new();
        for run in runs {
            details.push(query::details(store, &run)?);
        }
        details.sort_small_by_key(|run| run.summary.started);
        let mut side = DiffSide {
            runs: details,
            commands: Vec::new(),
            inputs: BTreeMap::new(),
            outputs: BTreeMap::new(),
            listings: BTreeMap::new(),
            processes: HashSet::new(),
            parents: HashMap::new(),
            worked_on: HashMap::new(),
        };
        for at in 0..side.runs.len() {
            side.read(store, at, part.as_ref())?;
        }
        side.commands
            .sort_small_by_key(|command| (command.at, command.key));
        Ok(side)
    }

    /// The begin of the first run.
    fn began(&self) -> Time {
        self.runs.first().map_or(0, |run| run.summary.started)
    }

    /// The run's directory, the base of names.
    pub fn base(&self) -> &[u8] {
        self.runs.last().map_or(b"", |run| &run.summary.cwd)
    }

    fn read(&mut self, store: &dyn Store, run: usize, part: Option<&SidePart>) -> Result<()> {
        let id = self.runs[run].summary.id.clone();
        let record = store.run(&id)?.ok_or(query::Error::NoRun(id.clone()))?;
        let mut entities = store.entities(record.key)?;
        let RunUse {
            all,
            used,
            listers,
            mut readers,
            read_by_others,
            callers_work,
            activities,
        } = RunUse::of(store, record.key, part.map(|part| &part.activities))?;
        for (key, activity) in &activities {
            self.processes.insert(activity.pid);
            if let Some(parent) = activity.parent {
                let parent = ActivityKey::new(record.key, parent);
                self.parents.insert(*key, parent);
            }
        }
        let worked_on = callers_work::paths(record.key, &entities, part, &callers_work);
        self.worked_on.extend(worked_on);
        let callers = match part {
            None => callers_files(store, &id)?,
            // All that the version came from is compared.
            Some(_) => Vec::new(),
        };
        let left = query::replaced(&entities, |id| {
            all.get(&id).is_some_and(|used| used.deleted)
        });
        entities
            .iter_mut()
            .filter(|entity| left.contains(&entity.id.0))
            .for_each(|entity| entity.last = true);
        let gone: HashSet<&[u8]> = entities
            .iter()
            .filter(|entity| entity.version > 0 && !entity.last)
            .map(|entity| &*entity.path)
            .collect();
        let left: HashSet<&[u8]> = entities
            .iter()
            .filter(|e| e.last && e.kind != EntityKind::Missing)
            .map(|e| &*e.path)
            .collect();
        let temporary: HashSet<&[u8]> = gone.difference(&left).copied().collect();
        let pids: HashMap<ActivityKey, u32> = activities
            .iter()
            .map(|(key, activity)| (*key, activity.pid))
            .collect();
        for (key, activity) in activities.into_iter().filter(|(_, a)| a.epoch > 0) {
            let above = std::iter::successors(Some(key), |key| self.parents.get(key).copied());
            let numbers: Vec<u32> = above
                .take(pids.len() + 1)
                .filter_map(|key| pids.get(&key).copied())
                .collect();
            self.command(key, activity, &temporary, &numbers);
        }
        for entity in &entities {
            let wanted = part.is_none_or(|part| {
                part.entities
                    .contains(&EntityKey::new(record.key, entity.id))
            });
            let Some(used) = used.get(&entity.id.0).filter(|_| wanted) else {
                continue;
            };
            if used.made && callers.iter().any(|path| **path == *entity.path) {
                continue;
            }
            let readers = readers.remove(&entity.id.0).unwrap_or_default();
            let key = EntityKey::new(record.key, entity.id);
            self.file(
                store,
                key,
                entity,
                used,
                readers,
                read_by_others.contains(&entity.id.0),
            )?;
        }
        let began = self.began();
        for mut listing in listings::of(store, &id, &entities, &all, listers)? {
            listing.at = (listing.at - began).max(0);
            self.listings
                .entry(self.name(&listing.path))
                .or_insert(listing);
        }
        Ok(())
    }

    /// `numbers`: the process numbers of the command and of those above it.
    fn command(
        &mut self,
        key: ActivityKey,
        activity: Activity,
        temporary: &HashSet<&[u8]>,
        numbers: &[u32],
    ) {
        let is_temporary = |path: &[u8]| temporary.contains(path);
        let argv = activity.argv.iter().map(|arg| {
            let path = absolute(arg, &activity.cwd);
            match temporary.contains(&*path) {
                true => TEMPORARY.to_vec(),
                false if arg.starts_with(b"/") => shared(&self.name(arg), &is_temporary, numbers),
                false => shared(arg, &is_temporary, numbers),
            }
        });
        let argv = argv.collect();
        let variables = activity.env_set.iter();
        let variables = variables.map(|pair| shared(pair, &is_temporary, numbers).into());
        self.commands.push(SideCommand {
            argv,
            cwd: self.name(&activity.cwd),
            variables: variables.collect(),
            at: (activity.interval.start - self.began()).max(0),
            key,
            activity,
        });
    }

    fn file(
        &mut self,
        store: &dyn Store,
        key: EntityKey,
        entity: &Entity,
        used: &FileUse,
        readers: Vec<ActivityKey>,
        is_read_by_others: bool,
    ) -> Result<()> {
        let plain = matches!(
            entity.kind,
            EntityKind::File | EntityKind::Symlink | EntityKind::Missing
        );
        let missing = entity.kind == EntityKind::Missing;
        let made = used.made && !missing;
        let input = (used.read || missing) && entity.version == 0;
        if !plain || !entity.path.starts_with(b"/") || !(input || made && entity.last) {
            return Ok(());
        }
        let known = query::known(store, entity.ident.as_ref())?;
        let (digest, held) = known.map_or((None, None), |(digest, held)| (digest, Some(held)));
        let file = SideFile {
            key,
            path: entity.path.clone(),
            kind: entity.kind,
            ident: entity.ident,
            digest,
            held,
            executed: used.executed,
            is_read_by_others,
            readers,
            at: (if input { used.first } else { used.complete } - self.began()).max(0),
        };
        if made && !input {
            // Under the names that still exist: the name that it was written by may be gone.
            for at in query::stayed(entity, used.deleted) {
                let path = if at == 0 {
                    &entity.path
                } else {
                    &entity.aliases[at - 1]
                };
                let named = SideFile {
                    path: path.clone(),
                    ..file.clone()
                };
                self.outputs.insert(self.name(path), named);
            }
            return Ok(());
        }
        let name = self.name(&entity.path);
        match missing {
            // A missing file carries no information if it existed at another time.
            true => drop(self.inputs.entry(name).or_insert(file)),
            false => drop(self.inputs.insert(name, file)),
        }
        Ok(())
    }

    /// A path as a name that another run can share.
    fn name(&self, path: &[u8]) -> Vec<u8> {
        let base = self.base();
        match path.strip_prefix(base) {
            Some(b"") if base != b"/" => b".".to_vec(),
            Some([b'/', rest @ ..]) if base != b"/" => rest.to_vec(),
            _ => path.to_vec(),
        }
    }

    /// The ancestry of an output in its run: paths and activities.
    pub fn behind(
        &self,
        store: &dyn Store,
        output: &SideFile,
    ) -> Result<(HashSet<Bytes>, HashSet<ActivityKey>)> {
        let run = self.runs.last().map(|run| run.summary.id.as_str());
        let lineage = lineage(store, output.key, run, Certainty::Possible)?;
        let (mut paths, mut activities) = (HashSet::new(), HashSet::new());
        for node in lineage.nodes {
            match node {
                Node::Entity { path, .. } => drop(paths.insert(path)),
                Node::Activity { id, .. } => drop(activities.insert(ActivityKey(id))),
            }
        }
        Ok((paths, activities))
    }
}

fn lineage(
    store: &dyn Store,
    version: EntityKey,
    run: Option<&str>,
    least: Certainty,
) -> Result<Lineage> {
    let scope = Scope {
        possible: least == Certainty::Possible,
        run: run.map(str::to_owned),
        ..Scope::default()
    };
    Ok(query::ancestry_of(store, &[version], &scope)?)
}
