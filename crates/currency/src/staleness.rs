//! Decides which steps are stale: compares recorded inputs, outputs and look-ups with the files of
//! this machine.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::{self, File};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use backstory_contents::digest_of;
use backstory_eventlog::event::{Bytes, Time};
use backstory_files::Digest;
use backstory_files::Ident;
use backstory_graph::model::{Certainty, Edge, Entity, EntityKind, Relation};
use backstory_query as query;
use backstory_redaction as redaction;
use backstory_store::{Store, same_version};
use backstory_workflow::paths::{is_below_kernel, is_tool, parent};
use backstory_workflow::recording::{Recording, split};
use backstory_workflow::steps::{Step, is_shell};
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use crate::Result;

/// The reason why a step is stale.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// An output does not exist.
    OutputGone(Bytes),
    /// An output has changed since the step.
    OutputChanged(Bytes),
    /// An input does not exist any more.
    InputGone(Bytes),
    /// An input has changed.
    InputChanged(Bytes),
    /// A program or library that it used has changed.
    ToolChanged(Bytes),
    /// A file that it looked for in vain exists now.
    Appeared(Bytes),
    /// A directory that it listed has changed.
    DirectoryChanged(Bytes),
    /// Its look-ups are not known, and a directory that it opened files in has changed.
    MayHaveLooked(Bytes),
    /// The user changes a variable.
    Environment(Bytes),
    /// A script that started the step, a file that the script read, or a directory in which a shell
    /// looked for names has changed. Other commands may be started now, so the whole command of the
    /// run is repeated.
    GuideChanged(Bytes),
}

impl Reason {
    /// The path or variable.
    pub fn subject(&self) -> &Bytes {
        match self {
            Reason::OutputGone(it)
            | Reason::OutputChanged(it)
            | Reason::InputGone(it)
            | Reason::InputChanged(it)
            | Reason::ToolChanged(it)
            | Reason::Appeared(it)
            | Reason::DirectoryChanged(it)
            | Reason::MayHaveLooked(it)
            | Reason::Environment(it)
            | Reason::GuideChanged(it) => it,
        }
    }

    /// The reason in words.
    pub fn words(&self) -> &'static str {
        match self {
            Reason::OutputGone(_) => "its output is not there",
            Reason::OutputChanged(_) => "its output was changed since",
            Reason::InputGone(_) => "its input is not there any more",
            Reason::InputChanged(_) => "its input has changed",
            Reason::ToolChanged(_) => "a program or library it used has changed",
            Reason::Appeared(_) => "it looked for this, which was not there and is now",
            Reason::DirectoryChanged(_) => "a directory it listed has changed",
            Reason::MayHaveLooked(_) => {
                "what it looked at is not known, and a directory it opened files from has changed"
            }
            Reason::Environment(_) => "a variable of its environment is to be different",
            Reason::GuideChanged(_) => "what decided which commands the run starts has changed",
        }
    }
}

/// A version that a step read of a file that another step makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadVersion {
    /// Its content, if known.
    pub digest: Option<Digest>,
    /// The file is unchanged, as far as known.
    pub same: bool,
}

/// The state against which all steps are compared.
pub struct StalenessCheck<'s> {
    store: &'s dyn Store,
    recordings: &'s [Recording],
    /// The outputs of all steps.
    made: &'s HashSet<&'s Bytes>,
    env: &'s [(Bytes, Bytes)],
    /// The last time at which a recorded step worked in a directory. Changes until then are those
    /// of the steps.
    worked: HashMap<Vec<u8>, Time>,
    /// The names in the directories that each run listed, at its end.
    listings: HashMap<String, HashMap<Vec<u8>, Vec<Bytes>>>,
}

impl<'s> StalenessCheck<'s> {
    /// Reads what the comparison needs. `env`: changed variables.
    pub fn new(
        store: &'s dyn Store,
        recordings: &'s [Recording],
        made: &'s HashSet<&'s Bytes>,
        env: &'s [(Bytes, Bytes)],
    ) -> Result<StalenessCheck<'s>> {
        let mut listings = HashMap::new();
        for recording in recordings {
            let run = &recording.details.summary.id;
            let places = store
                .directory_snapshot(run)?
                .map(|s| s.entries)
                .unwrap_or_default();
            let known = places.into_iter().filter_map(|place| {
                let names = place.listing?.into_iter().map(|entry| entry.name);
                Some((place.path.to_vec(), names.collect()))
            });
            listings.insert(run.clone(), known.collect());
        }
        let mut worked: HashMap<Vec<u8>, Time> = HashMap::new();
        for recording in recordings {
            let end = ended(recording);
            for edge in recording
                .edges
                .iter()
                .flatten()
                .filter(|edge| !edge.relation.is_use())
            {
                let directory = parent(&recording.entity(edge.entity).path).to_vec();
                let last = worked.entry(directory).or_insert(end);
                *last = end.max(*last);
            }
        }
        Ok(StalenessCheck {
            store,
            recordings,
            made,
            env,
            worked,
            listings,
        })
    }

    /// The outputs of a step, with their recorded contents.
    pub fn outputs(&self, step: &Step) -> Result<Vec<(Bytes, Option<Digest>)>> {
        let mut outputs = Vec::new();
        for output in &step.outputs {
            let digest = match self.newest(step, output).map(|(_, entity)| entity) {
                Some(entity) => {
                    query::known(self.store, entity.ident.as_ref())?.and_then(|(digest, _)| digest)
                }
                None => None,
            };
            outputs.push((output.clone(), digest));
        }
        Ok(outputs)
    }

    /// The version of an output that the last of the step's runs left, and that run.
    fn newest(&self, step: &Step, path: &Bytes) -> Option<(&Recording, &Entity)> {
        let runs: BTreeSet<usize> = step.members.iter().map(|(run, _)| *run).collect();
        runs.into_iter().rev().find_map(|run| {
            Some((
                &self.recordings[run],
                self.version(&self.recordings[run], path)?,
            ))
        })
    }

    /// The files that a step read and other steps make: the last version of each.
    pub fn had(&self, step: &Step) -> Result<HashMap<Bytes, ReadVersion>> {
        let mut found: HashMap<Bytes, ReadVersion> = HashMap::new();
        for &(run, at) in &step.members {
            let recording = &self.recordings[run];
            for edge in &recording.edges[at] {
                let entity = recording.entity(edge.entity);
                let read = matches!(edge.relation, Relation::Read | Relation::Execute);
                if !read
                    || edge.certainty == Certainty::Possible
                    || entity.kind != EntityKind::File
                    || !self.made.contains(&entity.path)
                    || step.outputs.contains(&entity.path)
                    || entity.version > 0 && !entity.last
                {
                    continue;
                }
                let digest =
                    query::known(self.store, entity.ident.as_ref())?.and_then(|(digest, _)| digest);
                let now = look(&entity.path);
                let same = match (&now, &entity.ident) {
                    (Some(now), Some(then)) if same_version(now, then) => true,
                    (Some(_), Some(_)) => digest.is_some() && digest == held(&entity.path),
                    _ => now.is_none(),
                };
                let had = ReadVersion {
                    digest,
                    same: same || digest.is_none(),
                };
                found.insert(entity.path.clone(), had);
            }
        }
        Ok(found)
    }

    /// The version of an output that its run left.
    fn version<'r>(&self, recording: &'r Recording, path: &Bytes) -> Option<&'r Entity> {
        let named = recording
            .entities
            .iter()
            .filter(|entity| entity.path == *path && entity.version > 0);
        named.max_by_key(|entity| (entity.last, entity.version))
    }

    /// The reasons why a step is stale, sorted.
    pub fn reasons(&self, step: &Step) -> Result<Vec<Reason>> {
        let recording = &self.recordings[step.run];
        let mut reasons = BTreeSet::new();
        for output in &step.outputs {
            let (last, version) = match self.newest(step, output) {
                Some((last, version)) => (last, Some(version)),
                None => (recording, None),
            };
            match look(output) {
                None => drop(reasons.insert(Reason::OutputGone(output.clone()))),
                Some(now) => {
                    if !self.is(output, &now, version, ended(last))?
                        && !self.made_later(step, output)
                    {
                        reasons.insert(Reason::OutputChanged(output.clone()));
                    }
                }
            }
        }
        let own: HashSet<_> = step
            .members
            .iter()
            .flat_map(|&(run, at)| {
                let recording = &self.recordings[run];
                let making = recording.edges[at]
                    .iter()
                    .filter(|edge| !edge.relation.is_use());
                making.map(|edge| recording.entity(edge.entity).path.clone())
            })
            .collect();
        for &(run, at) in &step.members {
            let recording = &self.recordings[run];
            for edge in &recording.edges[at] {
                if let Some(reason) = self.reason(recording, edge, at, &own)? {
                    reasons.insert(reason);
                }
            }
        }
        for (name, value) in self.env {
            let pairs = recording
                .details
                .environment
                .iter()
                .filter_map(|pair| split(pair));
            if !pairs
                .into_iter()
                .any(|(was, then)| *was == **name && *then == **value)
            {
                reasons.insert(Reason::Environment(name.clone()));
            }
        }
        Ok(reasons.into_iter().collect())
    }

    /// The changed files that decided which steps start: inputs of programs above the step that are
    /// not part of it. Each reason has the number of its run. A changed listing counts only for
    /// shells, whose patterns may match other names.
    pub fn guides(&self, step: &Step) -> Result<Vec<(usize, Reason)>> {
        let members: HashSet<(usize, usize)> = step.members.iter().copied().collect();
        let (mut seen, mut found) = (HashSet::new(), Vec::new());
        let own = HashSet::new();
        for &(run, at) in &step.members {
            let recording = &self.recordings[run];
            let above = recording.ancestors(at).map(|above| (run, above));
            let guides: Vec<_> = above.filter(|above| !members.contains(above)).collect();
            for (_, guide) in guides.into_iter().filter(|guide| seen.insert(*guide)) {
                for edge in &recording.edges[guide] {
                    let path = &recording.entity(edge.entity).path;
                    let counts = match edge.relation {
                        Relation::Read | Relation::Execute | Relation::Missing => true,
                        Relation::List => is_shell(recording, guide),
                        _ => false,
                    };
                    if !counts || is_tool(path) {
                        continue;
                    }
                    match self.reason(recording, edge, guide, &own)? {
                        None | Some(Reason::MayHaveLooked(_)) => {}
                        // The run itself changed it.
                        Some(_) if self.version(recording, path).is_some() => {}
                        Some(_) if self.is_settled(recording, guide, path)? => {}
                        Some(reason) => {
                            found.push((run, Reason::GuideChanged(reason.subject().clone())))
                        }
                    }
                }
            }
        }
        Ok(found)
    }

    /// True if the deciding program has read the path's present state in a later run, and the
    /// commands it decided on have run. The condition holds for each state if the path did not
    /// change.
    fn is_settled(&self, recording: &Recording, guide: usize, path: &[u8]) -> Result<bool> {
        let now = look(path);
        let mut is_now = |entity: &Entity| match (&now, entity.kind, &entity.ident) {
            (None, kind, _) => Ok(kind == EntityKind::Missing),
            (Some(_), EntityKind::Directory, _) => Ok(true),
            (Some(now), EntityKind::File, Some(then)) => self.holds(path, now, then),
            _ => Ok(false),
        };
        let who = &recording.activities[guide];
        Ok(query::decided_since(
            self.store,
            recording.key,
            who,
            path,
            &mut is_now,
        )?)
    }

    /// True if a later run left its own version of the file.
    fn made_later(&self, step: &Step, path: &Bytes) -> bool {
        let last = step
            .members
            .iter()
            .map(|(run, _)| *run)
            .max()
            .unwrap_or(step.run);
        let later = &self.recordings[last + 1..];
        later
            .iter()
            .any(|recording| self.version(recording, path).is_some())
    }

    fn reason(
        &self,
        recording: &Recording,
        edge: &Edge,
        at: usize,
        own: &HashSet<Bytes>,
    ) -> Result<Option<Reason>> {
        let entity = recording.entity(edge.entity);
        let path = &entity.path;
        if !path.starts_with(b"/") || is_below_kernel(path) || edge.certainty == Certainty::Possible
        {
            return Ok(None);
        }
        let ended = ended(recording);
        let known = recording.activities[at].lookups_known;
        Ok(match edge.relation {
            Relation::Read | Relation::Execute if entity.kind == EntityKind::File => {
                if entity.version > 0 || self.made.contains(path) || own.contains(path) {
                    return Ok(None);
                }
                let tool = edge.relation == Relation::Execute || is_tool(path);
                match look(path) {
                    None => Some(Reason::InputGone(path.clone())),
                    Some(now) if !self.is(path, &now, Some(entity), ended)? => Some(match tool {
                        true => Reason::ToolChanged(path.clone()),
                        false => Reason::InputChanged(path.clone()),
                    }),
                    Some(_) if !known => self
                        .directory(parent(path), ended)
                        .map(Reason::MayHaveLooked),
                    Some(_) => None,
                }
            }
            Relation::Missing if !own.contains(path) && !self.made.contains(path) => {
                let there = fs::symlink_metadata(path_of(path)).is_ok();
                // A file that the run made after the look-up existed at its end.
                let since = there && self.version(recording, path).is_none();
                since.then(|| Reason::Appeared(path.clone()))
            }
            Relation::List => self
                .listing(recording, path, ended)
                .map(Reason::DirectoryChanged),
            _ => None,
        })
    }

    /// The directory, if names appeared or disappeared that no step made. The comparison uses the
    /// recorded listing, or else the directory's time.
    fn listing(&self, recording: &Recording, path: &[u8], ended: Time) -> Option<Bytes> {
        let real = fs::canonicalize(path_of(path)).ok()?;
        let listings = self.listings.get(&recording.details.summary.id);
        let Some(then) = listings.and_then(|known| known.get(real.as_os_str().as_bytes())) else {
            return self.directory(path, ended);
        };
        let own = |name: &[u8]| {
            let path = Bytes::from([path, b"/", name].concat());
            self.made.contains(&path)
        };
        let now = fs::read_dir(path_of(path)).ok()?.flatten();
        let now: BTreeSet<Vec<u8>> = now
            .map(|entry| entry.file_name().into_vec())
            .filter(|name| !own(name))
            .collect();
        let then: BTreeSet<Vec<u8>> = then
            .iter()
            .map(|name| name.to_vec())
            .filter(|name| !own(name))
            .collect();
        (now != then).then(|| path.into())
    }

    /// The directory, if it has changed since the steps worked there, or since the run ended.
    fn directory(&self, path: &[u8], ended: Time) -> Option<Bytes> {
        let until = self.worked.get(path).copied().unwrap_or(ended).max(ended);
        let now = fs::metadata(path_of(path)).ok()?;
        let changed = now.mtime() * 1_000_000_000 + now.mtime_nsec();
        (changed > until).then(|| path.into())
    }

    /// True if the file is the recorded version: by identity, else by content. Without either, its
    /// times decide.
    fn is(&self, path: &[u8], now: &Ident, version: Option<&Entity>, ended: Time) -> Result<bool> {
        let Some(then) = version.and_then(|version| version.ident) else {
            return Ok(now.mtime.max(now.ctime) <= ended);
        };
        Ok(self.holds(path, now, &then)?)
    }

    /// True if the file has the recorded content: by identity, else by digest.
    fn holds(&self, path: &[u8], now: &Ident, then: &Ident) -> query::Result<bool> {
        if same_version(now, then) {
            return Ok(true);
        }
        let digest = query::known(self.store, Some(then))?.and_then(|(digest, _)| digest);
        Ok(now.size == then.size && digest.is_some() && digest == held(path))
    }
}

/// The digest of a file's present content.
pub fn held(path: &[u8]) -> Option<Digest> {
    let mut file = File::open(path_of(path)).ok()?;
    digest_of(&mut file).ok().map(|(digest, _)| digest)
}

fn ended(recording: &Recording) -> Time {
    let summary = &recording.details.summary;
    // The file system's clock may lag behind the run's end.
    const TICK: Time = 20_000_000;
    summary.ended.unwrap_or(summary.started) + TICK
}

/// The recorded environment with the changed variables. A redacted value is replaced by the
/// caller's own.
pub fn environment(recorded: &[Bytes], different: &[(Bytes, Bytes)]) -> Vec<(Bytes, Bytes)> {
    let mut all: Vec<(Bytes, Bytes)> = Vec::new();
    for (name, value) in recorded.iter().filter_map(|pair| split(pair)) {
        if different.iter().any(|(given, _)| **given == *name) {
            continue;
        }
        let value = match redaction::is_value_mark(value) {
            true => std::env::var_os(std::ffi::OsStr::from_bytes(name))
                .map(|value| value.into_vec().into()),
            false => Some(value.into()),
        };
        all.extend(value.map(|value| (name.into(), value)));
    }
    all.extend(different.iter().cloned());
    all
}

fn path_of(path: &[u8]) -> &Path {
    Path::new(std::ffi::OsStr::from_bytes(path))
}

fn look(path: &[u8]) -> Option<Ident> {
    let found = statx(
        CWD,
        path_of(path),
        AtFlags::empty(),
        StatxFlags::BASIC_STATS | StatxFlags::BTIME,
    );
    found.ok().map(|found| Ident::from(&found))
}
