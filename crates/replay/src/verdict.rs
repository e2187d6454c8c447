//! Compares the result of a replay with the record.
//!
//! In: a plan, and the files that the replay left. Out: a [`Verdict`] on each recorded output, with
//! the possible causes of a difference.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;

use backstory_eventlog::event::Bytes;
use backstory_files::Digest;
use backstory_graph::model::{EntityKind, Relation};
use backstory_query::answer::{Node, Scope};
use backstory_query::{self as query};
use backstory_store::{ActivityKey, Store};
use backstory_workflow::paths::is_tool;
use backstory_workflow::tools::knowledge;

use crate::Result;
use crate::plan::Plan;
use crate::root::results::ReplayedFile;

/// The state of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputState {
    /// Its content is the recorded one.
    Identical,
    /// Its content differs.
    Different,
    /// The replay did not leave it.
    Missing,
    /// The recorded content is not known, for this reason.
    Unknown(String),
}

/// An output of the recorded run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputVerdict {
    /// Its path.
    pub path: Bytes,
    /// Its state.
    pub state: OutputState,
    /// For an output that is not identical: nondeterministic inputs of the recorded run that it
    /// depends on.
    pub fed_by: Vec<String>,
}

/// The verdict on a replay.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verdict {
    /// The recorded outputs, in the order in which they were made.
    pub outputs: Vec<OutputVerdict>,
    /// Files that the replay left and the recorded run did not.
    pub new: Vec<Bytes>,
}

impl Verdict {
    /// True if no output is known to differ.
    pub fn is_identical(&self) -> bool {
        let fine = |output: &OutputVerdict| {
            matches!(
                output.state,
                OutputState::Identical | OutputState::Unknown(_)
            )
        };
        self.outputs.iter().all(fine)
    }
}

/// The reason for an output that no process had stored before the run removed it.
const REMOVED: &str = "the recorded run made it, but it was removed or replaced before its content could be taken: ask for it (`backstory contents`) before you remove it";

/// Compares the files that the replay left with the recorded ones. Only those count that the replay
/// `concerns`: it may have run a part of the record.
pub fn judge(
    store: &dyn Store,
    plan: &Plan,
    left: &[ReplayedFile],
    concerns: impl Fn(&[u8]) -> bool,
) -> Result<Verdict> {
    let found: HashMap<&[u8], &ReplayedFile> =
        left.iter().map(|left| (&*left.path, left)).collect();
    let kept: HashMap<&[u8], Digest> = plan
        .entries
        .iter()
        .filter_map(|entry| match &entry.what {
            crate::plan::EntrySource::Stored(digest) => Some((&*entry.path, Digest(*digest))),
            _ => None,
        })
        .collect();
    let mut verdict = Verdict::default();
    let mut sources = None;
    for expected in &plan.expected {
        if !concerns(&expected.path) {
            continue;
        }
        // The results hold only files that changed: an unchanged file has its planned content.
        let now = match found.get(&*expected.real) {
            Some(left) => Some(Digest(left.digest)),
            None => kept.get(&*expected.real).copied(),
        };
        let state = match (&expected.digest, now) {
            (_, None) => OutputState::Missing,
            (Err(why), Some(_)) => OutputState::Unknown(why.clone()),
            (Ok(then), Some(now)) if *then == now => OutputState::Identical,
            (Ok(_), Some(_)) => OutputState::Different,
        };
        let fed_by = match state {
            OutputState::Different | OutputState::Missing => {
                let sources = match &mut sources {
                    Some(sources) => sources,
                    none => none.insert(NondeterministicSources::of(store, &plan.run)?),
                };
                sources.behind(store, &plan.run, &expected.path)?
            }
            _ => Vec::new(),
        };
        verdict.outputs.push(OutputVerdict {
            path: expected.path.clone(),
            state,
            fed_by,
        });
    }
    let known: HashSet<&[u8]> = plan
        .expected
        .iter()
        .map(|expected| &*expected.real)
        .collect();
    let gone: HashSet<&[u8]> = plan.gone.iter().map(|path| &**path).collect();
    let new = left.iter().filter(|left| !known.contains(&*left.path));
    let (made, new): (Vec<_>, Vec<_>) = new.partition(|left| gone.contains(&*left.path));
    verdict
        .outputs
        .extend(made.into_iter().map(|left| OutputVerdict {
            path: left.path.as_slice().into(),
            state: OutputState::Unknown(REMOVED.to_owned()),
            fed_by: Vec::new(),
        }));
    verdict.new = new
        .into_iter()
        .map(|left| left.path.as_slice().into())
        .collect();
    Ok(verdict)
}

/// The nondeterministic inputs of each activity of a run.
struct NondeterministicSources(HashMap<ActivityKey, BTreeSet<String>>);

impl NondeterministicSources {
    fn of(store: &dyn Store, run: &str) -> Result<NondeterministicSources> {
        let record = store
            .run(run)?
            .ok_or_else(|| query::Error::NoRun(run.to_owned()))?;
        let entities = store.entities(record.key)?;
        let mut all = HashMap::new();
        for activity in store.activities(record.key)? {
            let key = ActivityKey::new(record.key, activity.id);
            let mut sources = BTreeSet::new();
            for edge in store.stream(key)?.edges {
                if let Some(entity) = entities.get(edge.entity.0 as usize)
                    && let Some(source) =
                        nondeterministic_input(edge.relation, entity.kind, &entity.path)
                {
                    let name = activity
                        .argv
                        .first()
                        .map(|name| String::from_utf8_lossy(name).into_owned());
                    sources.insert(format!("{source}, by {}", name.unwrap_or_default()));
                }
            }
            all.insert(key, sources);
        }
        Ok(NondeterministicSources(all))
    }

    fn behind(&self, store: &dyn Store, run: &str, path: &[u8]) -> Result<Vec<String>> {
        use std::os::unix::ffi::OsStrExt;
        let path = PathBuf::from(std::ffi::OsStr::from_bytes(path));
        let scope = Scope {
            possible: true,
            run: Some(run.to_owned()),
            ..Scope::default()
        };
        let lineage = query::ancestry(store, &path, &scope)?;
        let mut all = BTreeSet::new();
        for node in &lineage.nodes {
            if let Node::Activity { id, .. } = node
                && let Some(sources) = self.0.get(&ActivityKey(*id))
            {
                all.extend(sources.iter().cloned());
            }
        }
        Ok(all.into_iter().collect())
    }
}

fn is_one_of(path: &[u8], known: &[String]) -> bool {
    known.iter().any(|known| known.as_bytes() == path)
}

/// The nondeterministic input that an edge shows, if it is one.
pub(crate) fn nondeterministic_input(
    relation: Relation,
    kind: EntityKind,
    path: &[u8],
) -> Option<String> {
    let name = || String::from_utf8_lossy(path).into_owned();
    match (relation, kind) {
        (Relation::Read, _) if is_one_of(path, &knowledge().paths.random) => {
            Some(format!("randomness ({})", name()))
        }
        (Relation::Read, EntityKind::Socket) => {
            Some(format!("the network or another program ({})", name()))
        }
        (Relation::Read, _) if is_one_of(path, &knowledge().paths.constant) => None,
        (Relation::Read, _) if path.starts_with(b"/proc/") => {
            Some(format!("what the kernel told ({})", name()))
        }
        (Relation::Read, _) if path.starts_with(b"/sys/") => {
            Some(format!("the machine ({})", name()))
        }
        (Relation::List, EntityKind::Directory) if is_tool(path) => {
            Some("the order of entries in directories of the system".to_owned())
        }
        (Relation::List, EntityKind::Directory) => {
            Some(format!("the order of entries in {}", name()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_varying_difference_is_explained_by_its_inputs() {
        let random =
            nondeterministic_input(Relation::Read, EntityKind::Device, b"/dev/urandom").unwrap();
        assert!(random.contains("randomness"));
        assert!(
            nondeterministic_input(Relation::List, EntityKind::Directory, b"/w")
                .unwrap()
                .contains("order")
        );
        assert_eq!(
            nondeterministic_input(Relation::Read, EntityKind::File, b"/w/x"),
            None
        );
        assert_eq!(
            nondeterministic_input(Relation::Read, EntityKind::Device, b"/proc/filesystems"),
            None
        );
        let system =
            nondeterministic_input(Relation::List, EntityKind::Directory, b"/usr/lib/python3")
                .unwrap();
        assert!(!system.contains("python3"), "one line for all of them");
    }
}
