//! Joins the processes of a lineage to commands, and finds the files that flow between them.
//!
//! In: a [`Lineage`] and the store that it came from. Out: an [`Account`].
//!
//! - A version that several runs know is one file.
//! - Commands that a pipe joins are one command, if it is the standard output of one and the
//!   standard input of the other.
//! - A link that is only possible counts in two cases. A possible writer counts if the version has
//!   no observed one. A possible use of a pipe counts if the pipe is a standard descriptor.
//! - No step leads through a link that does not count, but the lineage reaches behind it. The facts
//!   there decide which files a command made for others, and until when its reads mattered. They
//!   also decide which shells have children, and so are drivers.

mod joins;
mod links;
mod nodes;
mod results;

use backstory_ordering::SmallSort;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use backstory_eventlog::event::Time;
use backstory_graph::model::{ActivityId, EntityId};
use backstory_query as query;
use backstory_query::answer::{Flow, Lineage, Link, Node};
use backstory_store::{ActivityKey, EntityKey, RunKey, Store};
use backstory_workflow::ownership::Ownership;
use backstory_workflow::recording::{ExcerptIds, Recording};
use backstory_workflow::steps::outside;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::account::Account;
use crate::commands::commands;
use crate::{Direction, Result};
use nodes::NodeTable;

/// One run's part of a lineage.
struct RunPart {
    recording: Recording,
    ids: ExcerptIds,
    /// The standard input, output and errors of the run's command.
    outside: HashSet<EntityId>,
    /// The program of each activity's command.
    commands: Vec<usize>,
    /// The files that a shell opened for the command's output, and that were empty.
    emptied: Vec<Vec<u8>>,
}

impl Account {
    /// The account of a lineage. `possible`: links that are only possible count like others.
    /// `ownership` decides which files are the user's own.
    ///
    /// # Errors
    ///
    /// If the store fails, or does not have the runs of the lineage.
    pub fn new(
        store: &dyn Store,
        lineage: &Lineage,
        direction: Direction,
        possible: bool,
        ownership: &mut Ownership,
    ) -> Result<Account> {
        let _one_state = store.reading()?;
        let parts = parts(store, lineage)?;
        let mut builder = FlowBuilder {
            lineage,
            parts: &parts,
            nodes: NodeTable::new(lineage, &parts),
            possible,
            doubts: FxHashSet::default(),
            class: classes(lineage),
            numbers: FxHashMap::default(),
            commands: Vec::new(),
        };
        builder.read_links();
        builder.join_pipes();
        builder.join_renames();
        Ok(builder.finish(direction, ownership))
    }
}

/// Reads the parts of the runs on a lineage, oldest run first.
fn parts(store: &dyn Store, lineage: &Lineage) -> Result<Vec<RunPart>> {
    let mut wanted: BTreeMap<RunKey, (Vec<ActivityId>, FxHashSet<EntityId>)> = BTreeMap::new();
    for node in &lineage.nodes {
        match node {
            Node::Activity { id, .. } => {
                let key = ActivityKey(*id);
                wanted.entry(key.run()).or_default().0.push(key.local());
            }
            Node::Entity { id, .. } => {
                let key = EntityKey(*id);
                wanted.entry(key.run()).or_default().1.insert(key.local());
            }
        }
    }
    let mut parts = Vec::new();
    for (run, (activities, entities)) in wanted {
        let (recording, ids) =
            Recording::excerpt(store, run, &activities, &|id| entities.contains(&id))?;
        let outside = outside(&recording);
        let commands = commands(&recording, &outside);
        let record = store.run_by_key(run)?;
        let emptied = record.map(|record| query::emptied_files(&record.header));
        parts.push(RunPart {
            emptied: emptied.unwrap_or_default(),
            outside,
            recording,
            ids,
            commands,
        });
    }
    parts.sort_small_by_key(|part| part.recording.details.summary.started);
    Ok(parts)
}

/// For each node the node that stands for the same version: the one in the run that made it.
fn classes(lineage: &Lineage) -> Vec<usize> {
    let mut class: Vec<usize> = (0..lineage.nodes.len()).collect();
    let same = |link: &&Link| matches!(link.flow, Flow::Same | Flow::Alike);
    for link in lineage.links.iter().filter(same) {
        class[link.to] = link.from;
    }
    for at in 0..class.len() {
        let mut top = at;
        // The count bounds the walk in case two runs have a version from each other.
        for _ in 0..class.len() {
            if class[top] == top {
                break;
            }
            top = class[top];
        }
        class[at] = top;
    }
    class
}

/// A command while its flow is collected.
#[derive(Debug, Default)]
struct Draft {
    run: usize,
    /// The programs of a pipeline, in the order in which data flows.
    stages: Vec<usize>,
    reads: BTreeSet<usize>,
    executes: BTreeSet<usize>,
    first_read: Option<Time>,
    writes: BTreeSet<usize>,
    members: BTreeSet<usize>,
    /// The pipeline that it is part of.
    joined: Option<usize>,
}

struct FlowBuilder<'a> {
    lineage: &'a Lineage,
    parts: &'a [RunPart],
    nodes: NodeTable<'a>,
    possible: bool,
    /// The commands and files between which a link is only possible and does not count.
    doubts: FxHashSet<((usize, usize), usize)>,
    class: Vec<usize>,
    /// The command of a run's program.
    numbers: FxHashMap<(usize, usize), usize>,
    commands: Vec<Draft>,
}

impl FlowBuilder<'_> {
    /// The command with this program.
    fn command(&mut self, run: usize, root: usize) -> usize {
        let next = self.commands.len();
        let number = *self.numbers.entry((run, root)).or_insert(next);
        if number == next {
            self.commands.push(Draft {
                run,
                stages: vec![root],
                ..Draft::default()
            });
        }
        number
    }

    fn command_of(&mut self, node: usize) -> Option<usize> {
        let (run, at) = self.nodes.activity(node)?;
        let command = self.command(run, self.parts[run].commands[at]);
        self.commands[command].members.insert(at);
        Some(command)
    }
}
