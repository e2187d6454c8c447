//! The part of a store that a subject stands for: which runs, and which of their activities.
//!
//! In: a store and a [`Subject`]. Out: a [`Selection`] with the recordings in memory, oldest first.
//! All of a run is selected; of a file, the activities and edges of its ancestry over all runs. The
//! steps behind the selection come from [`Selection::workflow`].

use backstory_ordering::SmallSort;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;

use backstory_eventlog::event::{Bytes, Time};
use backstory_query::answer::{Flow, Lineage, Node, Scope};
use backstory_query::{self as query, Globs};
use backstory_store::{ActivityKey, EntityKey, Store};

use crate::recording::Recording;
use crate::steps::{RunCommands, Workflow, workflow_of};
use crate::{Result, shell};

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
    /// The recordings whose whole command is one step, by number.
    whole: BTreeMap<usize, WholeCommand>,
}

/// A run whose whole command is one step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WholeCommand {
    /// The descriptors of the run's command that the user redirected to results, with the paths.
    pub printed: Vec<(u32, Bytes)>,
    /// The fact that decided on its parts, as half a sentence: `sh read n`. `None`: the command is
    /// one step because of what it printed.
    pub because: Option<String>,
    /// Names in directories decided on its parts, and not only contents of files.
    pub looks: bool,
    /// The standard input that the run read and that is gone, in words. The command cannot be
    /// repeated without it.
    pub lost: Option<&'static str>,
}

/// The part of a run that makes a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MakingPart {
    /// The run's id.
    pub run: String,
    /// Its activities that belong to the part.
    pub activities: HashSet<ActivityKey>,
    /// The run's whole command, if it is one step.
    pub whole: Option<WholeCommand>,
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
    /// `None`: all edges of the activities.
    links: Option<HashSet<(NodeKey, NodeKey, Flow)>>,
    activities: HashSet<ActivityKey>,
}

impl Selection {
    /// Reads the recordings behind a subject. `exclude`: patterns of paths that the ancestry of a
    /// file is not followed through. `lookups`: follow looked-up paths, too.
    ///
    /// Runs are joined by identity, else by content. So the selection describes a file's history,
    /// and is not fit for execution: see [`Selection::of_parts`].
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
        let (runs, part, description, path) = match subject {
            Subject::Run(run) => (vec![run.clone()], None, format!("run {run}"), None),
            Subject::Path(path) => {
                let scope = Scope {
                    possible: true,
                    lookups,
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
            whole: BTreeMap::new(),
        })
    }

    /// The parts of runs that make the file at `path`, oldest first: for execution.
    ///
    /// # Errors
    ///
    /// If the store has no such run, or fails.
    pub fn of_parts(store: &dyn Store, path: &[u8], parts: Vec<MakingPart>) -> Result<Selection> {
        let recordings = parts.iter().map(|part| Recording::load(store, &part.run));
        let recordings = recordings.collect::<Result<Vec<_>>>()?;
        let (mut activities, mut whole) = (HashSet::new(), BTreeMap::new());
        for (at, part) in parts.into_iter().enumerate() {
            activities.extend(part.activities);
            whole.extend(part.whole.map(|command| (at, command)));
        }
        Ok(Selection {
            description: shell::quote(path),
            path: Some(path.into()),
            recordings,
            part: Some(GraphPart {
                links: None,
                activities,
            }),
            whole,
        })
    }

    /// Makes the whole command of a selected run one step. `at`: the number of its recording.
    pub fn make_whole(&mut self, at: usize, command: WholeCommand) {
        self.whole.insert(at, command);
    }

    /// The recordings whose whole command is one step, by number.
    pub fn whole(&self) -> &BTreeMap<usize, WholeCommand> {
        &self.whole
    }

    /// The steps of the selection. Files that match `exclude` are inputs or outputs of no step.
    pub fn workflow(&self, exclude: &Globs) -> Workflow {
        let part = self.part.as_ref();
        let members = part.map(|part| part.members(&self.recordings));
        let commands = self.recordings.iter().enumerate();
        let commands = commands.map(|(at, recording)| match self.whole.get(&at) {
            Some(command) => RunCommands::whole(recording, &command.printed, exclude),
            None => RunCommands::of(recording, exclude),
        });
        let commands: Vec<RunCommands> = commands.collect();
        workflow_of(&commands.iter().collect::<Vec<_>>(), members.as_ref())
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

    /// The pairs of versions that are joined by content alone, the origin first. Sorted.
    pub fn equal_contents(&self) -> Vec<(EntityKey, EntityKey)> {
        let part = self.part.as_ref().and_then(|part| part.links.as_ref());
        let links = part.into_iter().flatten();
        let mut pairs: Vec<(EntityKey, EntityKey)> = links
            .filter_map(|link| match *link {
                (NodeKey::Entity(from), NodeKey::Entity(to), Flow::Alike) => Some((from, to)),
                _ => None,
            })
            .collect();
        pairs.sort_small();
        pairs
    }

    /// True if an edge, in the direction in which information flowed, belongs to the selection.
    pub fn has_link(&self, from: NodeKey, to: NodeKey, flow: Flow) -> bool {
        let part = self.part.as_ref();
        let links = part.and_then(|part| part.links.as_ref());
        links.is_none_or(|links| links.contains(&(from, to, flow)))
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
            links: Some(
                links
                    .map(|link| (key(link.from), key(link.to), link.flow))
                    .collect(),
            ),
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
