//! Describes a match: its operations, the programs that led to it, the first cause, and the extent.

use std::collections::BTreeSet;

use backstory_eventlog::event::{Bytes, Pid, Time};
use backstory_graph::model::{ActivityId, Certainty, EntityKind, Relation};

use crate::correlation::Group;
use crate::fact::{Fact, FactPlace, Operation};
use crate::flow::{FlowNode, FlowReached, source_node};
use crate::matching::Found;
use crate::run_graph::RunGraph;

/// A program.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FoundProgram {
    /// Process id.
    pub pid: Pid,
    /// Arguments.
    pub argv: Vec<Bytes>,
}

/// An operation of a match.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FoundStep {
    /// When it was done first.
    pub time: Time,
    /// The word for the act.
    pub operation: &'static str,
    /// The file or address.
    pub target: Option<Bytes>,
    /// The file that was renamed, linked or copied to the target.
    pub source: Option<Bytes>,
    /// True if it only can have happened.
    pub is_possible: bool,
    /// The program that did it.
    pub program: FoundProgram,
}

/// The acts of a process and of those that it started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extent {
    /// The number of processes.
    pub processes: usize,
    /// Files that they wrote, made, or renamed to.
    pub changed: BTreeSet<Bytes>,
    /// Those of them that they made and removed again, and that are not there at the end.
    pub temporary: BTreeSet<Bytes>,
    /// Files that are older than the run and that they removed or renamed.
    pub removed: BTreeSet<Bytes>,
    /// Addresses that they sent to.
    pub sent_to: BTreeSet<Bytes>,
    /// There are more acts than were looked at, so the sets may lack some.
    pub is_cut: bool,
}

/// A match of a rule.
#[derive(Debug, Clone)]
pub struct RuleMatch {
    /// The operations, in the order of the rule.
    pub steps: Vec<FoundStep>,
    /// How many operations there are, if `steps` has only some.
    pub count: usize,
    /// The programs from the run's command down to the one of the last operation.
    pub chain: Vec<FoundProgram>,
    /// The program that a file told what to do, above or at the first operation.
    pub cause: FoundProgram,
    /// That file: a script, an own program, an input. `None` if no such file is known.
    pub cause_file: Option<Bytes>,
    /// The address that the cause's file came from in this run.
    pub cause_origin: Option<Bytes>,
    /// The acts of the cause's process and of those that it started.
    pub extent: Extent,
}

/// Directories with programs of the system. Their files tell other files apart, not what was done.
const SYSTEM: [&[u8]; 8] = [
    b"/usr/", b"/bin/", b"/sbin/", b"/lib", b"/etc/", b"/proc/", b"/dev/", b"/opt/",
];

fn is_of_system(path: &[u8]) -> bool {
    SYSTEM.iter().any(|directory| path.starts_with(directory))
}

impl RuleMatch {
    /// Describes a match.
    pub fn of(graph: &RunGraph, found: &Found) -> RuleMatch {
        RuleMatch::within(graph, found, usize::MAX)
    }

    /// Describes a match in a bounded time. It looks at `most` operations of each program for the
    /// cause. It looks at as many in all for the origin of the cause's file, and for the extent.
    pub fn within(graph: &RunGraph, found: &Found, most: usize) -> RuleMatch {
        let first = found.facts[0];
        let last = found.facts[found.facts.len() - 1];
        let (activity, file) = cause(graph, first.activity, most);
        let origin = file.as_ref().and_then(|file| origin(graph, file, most));
        let mut chain: Vec<FoundProgram> = Vec::new();
        for up in graph.up(last.activity) {
            let activity = graph.activity(up);
            if !activity.argv.is_empty() {
                chain.push(program(graph, up));
            }
        }
        chain.reverse();
        RuleMatch {
            steps: found.facts.iter().map(|fact| step(graph, fact)).collect(),
            count: found.count,
            chain,
            cause: program(graph, activity),
            cause_file: file,
            cause_origin: origin,
            extent: extent(graph, activity, most),
        }
    }
}

fn program(graph: &RunGraph, id: ActivityId) -> FoundProgram {
    FoundProgram {
        pid: graph.activity(id).pid,
        argv: graph.activity(graph.programmed(id)).argv.clone(),
    }
}

/// The description of an operation.
pub fn step(graph: &RunGraph, fact: &Fact) -> FoundStep {
    let target = fact.entity.map(|entity| match graph.address(entity) {
        Some(address) => address.into(),
        None => graph.entity(entity).path.clone(),
    });
    let source = fact.entity.and_then(|entity| graph.source(entity));
    FoundStep {
        time: fact.start,
        operation: fact.operation.word(),
        target,
        source: source.map(|source| source.path.clone()),
        is_possible: fact.certainty == Certainty::Possible,
        program: program(graph, fact.activity),
    }
}

/// Programs that do what a file says which their arguments name.
const INTERPRETERS: [&[u8]; 16] = [
    b"sh", b"bash", b"dash", b"zsh", b"ksh", b"ash", b"fish", b"python", b"perl", b"ruby", b"node",
    b"php", b"lua", b"Rscript", b"make", b"gmake",
];

/// True for a program such as `/usr/bin/python3.11`.
fn is_interpreter(program: &[u8]) -> bool {
    let name = program
        .rsplit(|byte| *byte == b'/')
        .next()
        .unwrap_or_default();
    let is_version = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
    let end = name
        .iter()
        .rposition(|byte| !is_version(byte))
        .map_or(0, |at| at + 1);
    INTERPRETERS.contains(&&name[..end])
}

/// The program that a file outside of the system told what to do, nearest to the operation. It is
/// such a file itself, or an interpreter of a file that its arguments name. Without such a file it
/// is the nearest interpreter.
fn cause(graph: &RunGraph, id: ActivityId, most: usize) -> (ActivityId, Option<Bytes>) {
    let mut shell = None;
    for up in graph.up(id) {
        let activity = graph.activity(up);
        let Some(program) = activity.exec_path.as_ref() else {
            continue;
        };
        if !is_interpreter(program) && !is_of_system(program) {
            return (up, Some(program.clone()));
        }
        if !is_interpreter(program) {
            continue;
        }
        shell = shell.or(Some(up));
        let named = |path: &[u8]| {
            let is_named = |word: &Bytes| !word.is_empty() && path.ends_with(bare(word));
            let is_found = BY_NAME.iter().any(|name| path.ends_with(name));
            activity.argv.iter().skip(1).any(is_named) || is_found
        };
        // A program reads what tells it what to do before it does much else.
        let edges = graph.edges_of_activity(up).iter().take(most);
        let edges = edges.map(|at| graph.edge_at(*at));
        let mut files: Vec<(bool, Time, &Bytes)> = edges
            .filter(|edge| edge.relation == Relation::Read)
            .map(|edge| (edge.interval.start, graph.entity(edge.entity)))
            .filter(|(_, entity)| entity.kind == EntityKind::File)
            .map(|(time, entity)| (is_of_package(&entity.path), time, &entity.path))
            .filter(|(.., path)| !is_of_system(path) && named(path))
            .collect();
        files.sort_unstable();
        if let Some((.., path)) = files.first() {
            return (up, Some((*path).clone()));
        }
    }
    (shell.unwrap_or(graph.programmed(id)), None)
}

/// Files that an interpreter finds without their names in its arguments.
const BY_NAME: [&[u8]; 2] = [b"/Makefile", b"/setup.py"];

/// True for a file of an installed package. An installer's own script runs those of others.
fn is_of_package(path: &[u8]) -> bool {
    let within = |directory: &&[u8]| path.windows(directory.len()).any(|part| part == *directory);
    let directories: [&[u8]; 3] = [b"/site-packages/", b"/dist-packages/", b"/node_modules/"];
    directories.iter().any(within)
}

/// A relative path without `./` and `../`.
fn bare(word: &[u8]) -> &[u8] {
    let stripped = word
        .strip_prefix(b"./")
        .or_else(|| word.strip_prefix(b"../"));
    stripped.map_or(word, bare)
}

/// The address that content of a file came from in this run.
fn origin(graph: &RunGraph, path: &Bytes, most: usize) -> Option<Bytes> {
    let edges = graph
        .sockets()
        .flat_map(|socket| graph.edges_of_entity(socket));
    let facts = edges
        .take(most)
        .map(|edge| graph.fact_at(FactPlace::Use(*edge)));
    let mut received: Vec<Fact> = facts
        .filter(|fact| fact.operation == Operation::Receive)
        .collect();
    if received.is_empty() {
        return None;
    }
    // Of two at one moment, the first counts.
    received.sort_by_key(|fact| (fact.start, fact.activity, fact.entity));
    let group = Group::Flow;
    let sources = received.iter().enumerate();
    let begin = sources.map(|(number, fact)| (fact.start, source_node(group, fact), number));
    let mut reached = FlowReached::default();
    reached.search(graph, group, begin, most);
    let versions = reached.entities();
    let versions = versions.filter(|(id, _)| graph.entity(*id).path == *path);
    let (_, source) = versions.min()?;
    graph.address(received[source].entity?).map(Into::into)
}

fn extent(graph: &RunGraph, cause: ActivityId, most: usize) -> Extent {
    let group = Group::Descendants;
    let mut reached = FlowReached::default();
    let begin = (Time::MIN, FlowNode::Activity(cause), 0);
    let found = reached.search(graph, group, std::iter::once(begin), most);
    let inside = reached.activities();
    let pids = inside.iter().map(|id| graph.activity(*id).pid);
    let pids: BTreeSet<Pid> = pids.collect();
    let edges = inside.iter().flat_map(|id| graph.edges_of_activity(*id));
    let is_cut = found.len() == most || edges.clone().nth(most).is_some();
    let mut extent = Extent {
        processes: pids.len(),
        is_cut,
        ..Extent::default()
    };
    // A file can be made again after its removal.
    let mut remaining: BTreeSet<&Bytes> = BTreeSet::new();
    let facts = edges
        .take(most)
        .map(|edge| graph.fact_at(FactPlace::Use(*edge)));
    for fact in facts {
        let Some(entity) = fact.entity else {
            continue;
        };
        let known = graph.entity(entity);
        let is_file = known.kind == EntityKind::File;
        remaining.extend(known.last.then_some(&known.path));
        match fact.operation {
            Operation::Send => {
                let address = graph.address(entity).map(Bytes::from);
                extent.sent_to.extend(address);
            }
            Operation::On(Relation::Write | Relation::Make) if is_file => {
                extent.changed.insert(known.path.clone());
            }
            Operation::On(Relation::Rename) if is_file => {
                extent.changed.insert(known.path.clone());
                let source = graph.source(entity).filter(|_| graph.existed(entity));
                extent
                    .removed
                    .extend(source.map(|source| source.path.clone()));
            }
            Operation::On(Relation::Delete) if is_file => {
                let gone = match graph.existed(entity) {
                    true => &mut extent.removed,
                    false => &mut extent.temporary,
                };
                gone.insert(known.path.clone());
            }
            _ => {}
        }
    }
    let (changed, removed) = (&extent.changed, &mut extent.temporary);
    removed.retain(|path| changed.contains(path) && !remaining.contains(path));
    extent
}
