//! The part of a store that a subject stands for: which runs, and which of their activities.
//!
//! In: a store and a [`Subject`]. Out: a [`Selection`] with the recordings in memory, oldest first.
//! All of a run is selected; of a file, the activities and edges of its ancestry over all runs. The
//! steps behind the selection come from [`Selection::workflow`].

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;

use backstory_eventlog::event::{Bytes, Time};
use backstory_query::answer::{Flow, Joins, Lineage, Node, Scope};
use backstory_query::{self as query, Globs};
use backstory_store::{ActivityKey, EntityKey, Store};

use crate::recording::Recording;
use crate::steps::{Workflow, workflow};
use crate::{Result, paths, shell};

/// The subject of a workflow or an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A run, by its id.
    Run(String),
    /// A file: everything it came from, over all runs.
    Path(PathBuf),
}

/// The recordings behind a subject, and the part of them that belongs to it.
#[derive(Debug)]
pub struct Selection {
    /// The subject in words: `run ID`, or the path as a shell word.
    pub description: String,
    /// The absolute path of the requested file; `None` for a run.
    pub path: Option<Bytes>,
    /// The runs, oldest first.
    pub recordings: Vec<Recording>,
    /// The selected part of the recordings; `None`: all of them.
    pub part: Option<GraphPart>,
}

/// A node of the graph, by its key in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NodeKey {
    /// An activity.
    Activity(ActivityKey),
    /// An entity.
    Entity(EntityKey),
}

/// A part of the graph: some edges, and the activities that they touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphPart {
    links: HashSet<(NodeKey, NodeKey, Flow)>,
    activities: HashSet<ActivityKey>,
}

impl Selection {
    /// Reads the recordings behind a subject. `exclude`: patterns of paths that the ancestry of a
    /// file is not followed through. `lookups`: follow looked-up paths, too.
    ///
    /// Runs are joined by identity only, so each step of the selection may be executed for the
    /// subject. A run that made an equal content in another place is not selected. The ancestry is
    /// not followed through caches and the records of builders: any run may have filled a cache.
    ///
    /// # Errors
    ///
    /// If the store has no such run or file, a pattern is malformed, or the store fails.
    pub fn load(
        store: &dyn Store,
        subject: &Subject,
        exclude: &[String],
        lookups: bool,
    ) -> Result<Selection> {
        let mut exclude = exclude.to_vec();
        exclude.extend(paths::state_of_tools());
        Selection::joined(store, subject, &exclude, lookups, Joins::Identity)
    }

    /// The same, with the runs that made equal contents: to describe a file's history, and not to
    /// execute it.
    ///
    /// # Errors
    ///
    /// Those of [`Selection::load`].
    pub fn with_equal_contents(
        store: &dyn Store,
        subject: &Subject,
        exclude: &[String],
        lookups: bool,
    ) -> Result<Selection> {
        Selection::joined(store, subject, exclude, lookups, Joins::IdentityOrContent)
    }

    fn joined(
        store: &dyn Store,
        subject: &Subject,
        exclude: &[String],
        lookups: bool,
        joins: Joins,
    ) -> Result<Selection> {
        let (runs, part, description, path) = match subject {
            Subject::Run(run) => (vec![run.clone()], None, format!("run {run}"), None),
            Subject::Path(path) => {
                let scope = Scope {
                    possible: true,
                    lookups,
                    joins,
                    exclude: exclude.to_vec(),
                    ..Scope::default()
                };
                let lineage = query::ancestry(store, path, &scope)?;
                let path = lineage.nodes.first().and_then(|node| match node {
                    Node::Entity { path, .. } => Some(path.clone()),
                    Node::Activity { .. } => None,
                });
                let description = path.as_deref().map(shell::quote).unwrap_or_default();
                let runs = runs_of(store, &lineage)?;
                (runs, Some(GraphPart::of(&lineage)), description, path)
            }
        };
        let recordings = runs.iter().map(|run| Recording::load(store, run));
        Ok(Selection {
            description,
            path,
            recordings: recordings.collect::<Result<Vec<_>>>()?,
            part,
        })
    }

    /// The steps of the selection. Files that match `exclude` are inputs or outputs of no step.
    pub fn workflow(&self, exclude: &Globs) -> Workflow {
        let part = self.part.as_ref();
        let members = part.map(|part| part.members(&self.recordings));
        workflow(&self.recordings, members.as_ref(), exclude)
    }

    /// The directory that paths are shown from: the current directory of the newest run.
    pub fn base(&self) -> Bytes {
        let newest = self.recordings.last();
        newest.map(|run| run.cwd().into()).unwrap_or_default()
    }

    /// True if an activity belongs to the selection.
    pub fn has_activity(&self, key: ActivityKey) -> bool {
        let part = self.part.as_ref();
        part.is_none_or(|part| part.activities.contains(&key))
    }

    /// True if an edge, in the direction in which information flowed, belongs to the selection.
    pub fn has_link(&self, from: NodeKey, to: NodeKey, flow: Flow) -> bool {
        let part = self.part.as_ref();
        part.is_none_or(|part| part.links.contains(&(from, to, flow)))
    }
}

/// The runs that a lineage crosses, oldest first.
fn runs_of(store: &dyn Store, lineage: &Lineage) -> Result<Vec<String>> {
    let mut runs: BTreeMap<(Time, String), String> = BTreeMap::new();
    let mut seen = HashSet::new();
    for node in &lineage.nodes {
        let (Node::Activity { run, .. } | Node::Entity { run, .. }) = node;
        if seen.insert(run) {
            let record = store
                .run(run)?
                .ok_or_else(|| query::Error::NoRun(run.clone()))?;
            runs.insert((record.header.started, run.clone()), run.clone());
        }
    }
    Ok(runs.into_values().collect())
}

impl GraphPart {
    fn of(lineage: &Lineage) -> GraphPart {
        let key = |at: usize| match &lineage.nodes[at] {
            Node::Entity { id, .. } => NodeKey::Entity(EntityKey(*id)),
            Node::Activity { id, .. } => NodeKey::Activity(ActivityKey(*id)),
        };
        let links = lineage.links.iter();
        let activities = lineage.nodes.iter().filter_map(|node| match node {
            Node::Activity { id, .. } => Some(ActivityKey(*id)),
            Node::Entity { .. } => None,
        });
        GraphPart {
            links: links
                .map(|link| (key(link.from), key(link.to), link.flow))
                .collect(),
            activities: activities.collect(),
        }
    }

    /// The selected activities, as the number of the recording and the activity's index in it.
    fn members(&self, recordings: &[Recording]) -> HashSet<(usize, usize)> {
        let numbers: HashMap<_, _> = recordings
            .iter()
            .enumerate()
            .map(|(at, recording)| (recording.key, at))
            .collect();
        let members = self.activities.iter();
        members
            .filter_map(|key| Some((*numbers.get(&key.run())?, key.local().0 as usize)))
            .collect()
    }
}
