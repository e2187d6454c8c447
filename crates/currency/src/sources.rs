//! The sources of a result, and the results of a source, by the same influence that `status`
//! judges.
//!
//! In: versions, or a path. Out: files that no recorded run makes, each with how it reached the
//! result. A source was *read* if its content can be in the result. It *decided* if it reached the
//! result through words, the environment, conditions or look-ups only.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use backstory_eventlog::event::Bytes;
use backstory_graph::lineage::uses;
use backstory_graph::model::{Entity, EntityKind, Relation};
use backstory_query::Asked;
use backstory_store::{ActivityKey, EntityKey, RunKey, Store};
use backstory_workflow::paths::is_of_kernel;

use crate::Result;
use crate::influence::{Extent, Influences};
use crate::judgement::{Judge, Judging};
use crate::loaded_runs::{LoadedRun, Taking};
use crate::reductions;

/// A file on which a result depends, or a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InfluencingFile {
    /// The absolute path.
    pub path: Bytes,
    /// Content reached the result. False: the file decided.
    pub is_read: bool,
    /// The words of the program that used the source.
    pub by: Vec<Bytes>,
}

/// The sources of versions, by path. Files of packages are among them.
///
/// # Errors
///
/// If the store fails.
pub fn sources(store: &dyn Store, versions: &[EntityKey]) -> Result<Vec<InfluencingFile>> {
    let _one_state = store.reading()?;
    Judge::new(store).judging(|judging| {
        let behind = |extent| judging.search.of_all(versions.iter().copied(), extent);
        let (all, content) = (behind(Extent::All)?, behind(Extent::Content)?);
        let mut found: BTreeMap<Bytes, InfluencingFile> = BTreeMap::new();
        for &key in all.until.keys() {
            let run = judging.runs.get(key.run())?;
            for (taking, relation) in taken(&run, key, &all) {
                let entity = run.recording.entity(taking.entity);
                if entity.version > 0
                    || !is_shown(entity, relation)
                    || judging.makers.of(&run, entity)?.is_some()
                {
                    continue;
                }
                let is_read = uses(relation, false) && content.counts(key, &taking);
                let source = || InfluencingFile {
                    path: entity.path.clone(),
                    is_read,
                    by: run.recording.activities[key.local().0 as usize]
                        .argv
                        .clone(),
                };
                let known = found.entry(entity.path.clone()).or_insert_with(source);
                if is_read && !known.is_read {
                    *known = source();
                }
            }
        }
        Ok(found.into_values().collect())
    })
}

/// The files that runs left last at their paths and that depend on the file at a path.
///
/// # Errors
///
/// If the store fails.
pub fn influenced(store: &dyn Store, path: &Path) -> Result<Vec<InfluencingFile>> {
    let _one_state = store.reading()?;
    let asked = Asked::new(path)?;
    let names: HashSet<Bytes> = asked.names().into_iter().map(Bytes::from).collect();
    let file = path.metadata().ok().map(|found| (found.dev(), found.ino()));
    let asked = AskedFile { names, file };
    Judge::new(store).judging(|judging| {
        let made = MadeFiles::of(store, judging)?;
        let mut found: BTreeMap<Bytes, InfluencingFile> = BTreeMap::new();
        // The uses behind results, by the activities that made them.
        let mut known: HashMap<_, Option<(Vec<Bytes>, bool)>> = HashMap::new();
        for run in made.runs_after(store, &asked.names)? {
            let run = judging.runs.get(run)?;
            for version in run.results() {
                if asked.names.contains(&version.path) || !made.is_newest(&run, version) {
                    continue;
                }
                let key = EntityKey::new(run.recording.key, version.id);
                let givers = judging.search.givers(key)?;
                let before = known.get(&givers).filter(|_| !givers.is_empty());
                let using = match before {
                    Some(before) => before.clone(),
                    None => using(judging, key, &asked)?,
                };
                known.insert(givers, using.clone());
                let Some((by, is_read)) = using else { continue };
                let path = version.path.clone();
                found.insert(path.clone(), InfluencingFile { path, is_read, by });
            }
        }
        Ok(found.into_values().collect())
    })
}

/// The files that the runs of a store made, without those that were undone. No run is loaded for
/// them.
struct MadeFiles {
    by_run: HashMap<RunKey, Vec<Bytes>>,
    newest: HashMap<Bytes, RunKey>,
}

impl MadeFiles {
    fn of(store: &dyn Store, judging: &Judging<'_>) -> Result<MadeFiles> {
        let mut by_run: HashMap<RunKey, Vec<Bytes>> = HashMap::new();
        for directory in store.directories_below(b"/")? {
            for (name, version) in store.made_in(&directory)? {
                let path = Bytes::from([&*directory, &*name].concat());
                by_run.entry(version.run()).or_default().push(path);
            }
        }
        let mut newest: HashMap<Bytes, RunKey> = HashMap::new();
        for (&run, paths) in &by_run {
            if judging.runs.is_undone(run)? {
                continue;
            }
            for path in paths {
                let known = newest.entry(path.clone()).or_insert(run);
                *known = run.max(*known);
            }
        }
        Ok(MadeFiles { by_run, newest })
    }

    /// True if no later run made the file at the path of a result.
    fn is_newest(&self, run: &LoadedRun, result: &Entity) -> bool {
        let newest = self.newest.get(&result.path);
        // A hard link is no version of its own.
        newest.is_none_or(|newest| *newest == run.recording.key)
    }

    /// The runs that used a file, those that used what these made, and so on. Only those count
    /// that can have left a file that no later run made.
    fn runs_after(&self, store: &dyn Store, names: &HashSet<Bytes>) -> Result<BTreeSet<RunKey>> {
        let last: HashSet<RunKey> = self.newest.values().copied().collect();
        let mut runs = BTreeSet::new();
        let mut paths: Vec<&Bytes> = Vec::new();
        let mut seen: HashSet<&Bytes> = names.iter().collect();
        let made_by = |run: RunKey| self.by_run.get(&run).into_iter().flatten();
        // A run may have looked for the file in vain.
        for name in names {
            for key in store.at_path(name)? {
                if runs.insert(key.run()) {
                    paths.extend(made_by(key.run()).filter(|path| seen.insert(path)));
                }
            }
        }
        while !paths.is_empty() {
            // To look up one path takes as long as to look up all of its directory.
            let mut in_directory: BTreeMap<&[u8], HashSet<&[u8]>> = BTreeMap::new();
            for path in paths.drain(..) {
                let slash = path.iter().rposition(|&byte| byte == b'/');
                let directory = &path[..slash.map_or(0, |slash| slash + 1)];
                in_directory.entry(directory).or_default().insert(path);
            }
            for (directory, wanted) in in_directory {
                for key in store.below(directory, &|name| wanted.contains(name))? {
                    if runs.insert(key.run()) {
                        paths.extend(made_by(key.run()).filter(|path| seen.insert(path)));
                    }
                }
            }
        }
        // A run without a version of its own can have made a hard link.
        runs.retain(|run| last.contains(run) || !self.by_run.contains_key(run));
        Ok(runs)
    }
}

/// The takings of an activity on which results depend, each with the relation.
fn taken<'r>(
    run: &'r LoadedRun,
    key: ActivityKey,
    behind: &'r Influences,
) -> impl Iterator<Item = (Taking, Relation)> {
    let at = key.local().0 as usize;
    let uses = reductions::counted_uses(run, at);
    let used: Vec<_> = uses
        .iter()
        .map(|one| (one.taking, one.edge.relation))
        .collect();
    let linked = run.linked(at);
    let linked = linked.map(|derived| {
        let (entity, start) = (derived.from, derived.time);
        let by = None;
        (Taking { entity, start, by }, Relation::Read)
    });
    let all = used.into_iter().chain(linked);
    all.filter(move |(taking, _)| behind.counts(key, taking))
}

/// True for what is shown as a source: files, links, and directories whose names were read.
fn is_shown(entity: &Entity, relation: Relation) -> bool {
    let counts = match entity.kind {
        EntityKind::File | EntityKind::Symlink => true,
        EntityKind::Directory => relation == Relation::List,
        _ => false,
    };
    counts && entity.path.starts_with(b"/") && !is_of_kernel(&entity.path)
}

/// A file, by its names, and by its device and inode if it exists.
struct AskedFile {
    names: HashSet<Bytes>,
    file: Option<(u64, u64)>,
}

impl AskedFile {
    fn is(&self, entity: &Entity) -> bool {
        let mut all = std::iter::once(&entity.path).chain(&entity.aliases);
        let known = entity.ident.map(|ident| (ident.dev, ident.ino));
        all.any(|name| self.names.contains(name)) || known.is_some() && known == self.file
    }
}

/// The words of a program that used the file, and whether content reached the version, if it
/// depends on the use.
fn using(
    judging: &Judging<'_>,
    version: EntityKey,
    asked: &AskedFile,
) -> Result<Option<(Vec<Bytes>, bool)>> {
    let Some(by) = use_of(judging, version, Extent::All, asked)? else {
        return Ok(None);
    };
    let is_read = use_of(judging, version, Extent::Content, asked)?.is_some();
    Ok(Some((by, is_read)))
}

/// The words of a program that used the file, if a version depends on the use.
fn use_of(
    judging: &Judging<'_>,
    version: EntityKey,
    extent: Extent,
    asked: &AskedFile,
) -> Result<Option<Vec<Bytes>>> {
    let behind = judging.search.of(version, extent)?;
    for &key in behind.until.keys() {
        let run = judging.runs.get(key.run())?;
        let is_used = taken(&run, key, &behind).any(|(taking, relation)| {
            let entity = run.recording.entity(taking.entity);
            (extent == Extent::All || uses(relation, false)) && asked.is(entity)
        });
        if is_used {
            let activity = &run.recording.activities[key.local().0 as usize];
            return Ok(Some(activity.argv.clone()));
        }
    }
    Ok(None)
}
