//! The first cause of a match: the program that followed a file or the network.
//!
//! In: the operations of a match, and the graph of their run. Out: a [`Cause`].
//!
//! From an operation upwards, it is the nearest of these programs:
//!
//! - A file outside of the system, or an interpreter of such a file that its arguments name.
//! - An interpreter that got its commands through a pipe from the network: `curl ... | sh`.
//!
//! Without such a program, it is the nearest interpreter.

use std::cell::OnceCell;
use std::collections::HashSet;

use backstory_eventlog::event::{Bytes, Time};
use backstory_graph::model::{ActivityId, Certainty, Edge, Entity, EntityId, EntityKind, Relation};
use backstory_query::is_name_server;

use crate::correlation::Group;
use crate::fact::{Fact, FactPlace, Operation};
use crate::flow::{FlowNode, FlowReached, source_node};
use crate::run_graph::RunGraph;

/// The first cause of a match.
pub(crate) struct Cause {
    /// The program that followed a file or the network.
    pub activity: ActivityId,
    /// The file that told it.
    pub file: Option<Bytes>,
    /// The file from which a shell below it got its commands through a pipe.
    pub input: Option<Bytes>,
    /// Where the file or the commands came from.
    pub origin: Option<Origin>,
}

/// An address, and the program that received from it.
pub(crate) struct Origin {
    pub address: Bytes,
    pub receiver: ActivityId,
}

impl Cause {
    /// The cause of operations. It looks at `most` operations of each program, and at as many of
    /// connections.
    pub fn of(graph: &RunGraph, facts: &[Fact], most: usize) -> Cause {
        let search = CauseSearch {
            graph,
            most,
            received: OnceCell::new(),
        };
        let [first, .., last] = facts else {
            return search.above(&facts[0]);
        };
        // The last program can have followed what the first operation brought.
        let by_last = search.above(last);
        match by_last.file.is_none() && by_last.origin.is_some() {
            true => by_last,
            false => search.above(first),
        }
    }
}

struct CauseSearch<'g> {
    graph: &'g RunGraph,
    most: usize,
    received: OnceCell<Received>,
}

/// Receptions from the network, and the nodes that their data can have reached.
struct Received {
    facts: Vec<Fact>,
    reached: FlowReached,
}

/// Stages of a pipeline through which commands are followed back.
const STAGES: usize = 4;

impl CauseSearch<'_> {
    /// The cause of an operation.
    fn above(&self, fact: &Fact) -> Cause {
        let graph = self.graph;
        let (mut shell, mut input) = (None, None);
        for up in graph.up(fact.activity) {
            let activity = graph.activity(up);
            let Some(program) = activity.exec_path.as_ref() else {
                continue;
            };
            let is_interpreter = is_interpreter(program);
            if !is_interpreter && is_of_system(program) {
                continue;
            }
            let file = match is_interpreter {
                true => self.named_file(up),
                false => Some(program.clone()),
            };
            if file.is_some() {
                return Cause {
                    activity: up,
                    origin: file.as_ref().and_then(|file| self.origin_of(file)),
                    file,
                    input,
                };
            }
            shell = shell.or(Some(up));
            if !reads_commands(program, &activity.argv) {
                continue;
            }
            let origin = self.through_pipe(up, fact.end, true);
            if origin.is_some() {
                return Cause {
                    activity: up,
                    file: None,
                    input,
                    origin,
                };
            }
            input = input.or_else(|| self.piped_file(up));
        }
        Cause {
            activity: shell.unwrap_or(graph.programmed(fact.activity)),
            file: None,
            input,
            origin: shell.and_then(|shell| self.origin_of_text(shell)),
        }
    }

    /// The first operations of a program of one kind, each with its thing.
    fn edges(
        &self,
        id: ActivityId,
        relation: Relation,
        kind: EntityKind,
    ) -> impl Iterator<Item = (&Edge, &Entity)> {
        let graph = self.graph;
        let edges = graph.edges_of_activity(id).iter().take(self.most);
        let edges = edges.map(move |at| graph.edge_at(*at));
        edges
            .filter(move |edge| edge.relation == relation)
            .map(move |edge| (edge, graph.entity(edge.entity)))
            .filter(move |(_, entity)| entity.kind == kind)
    }

    /// The file outside of the system that an interpreter follows, by its arguments.
    fn named_file(&self, id: ActivityId) -> Option<Bytes> {
        let argv = &self.graph.activity(id).argv;
        let named = |path: &[u8]| {
            let is_named = |word: &Bytes| !word.is_empty() && path.ends_with(bare(word));
            let is_found = BY_NAME.iter().any(|name| path.ends_with(name));
            argv.iter().skip(1).any(is_named) || is_found
        };
        // A program reads what tells it what to do before it does much else.
        let files = self.edges(id, Relation::Read, EntityKind::File);
        let files = files
            .filter(|(_, entity)| !is_of_system(&entity.path) && named(&entity.path))
            .map(|(edge, entity)| {
                let path = &entity.path;
                (is_of_package(path), edge.interval.start, path)
            });
        files.min().map(|(.., path)| path.clone())
    }

    /// The address from which a program got data through a pipe or a connection, before a moment.
    /// `foreign`: a program that it started itself does not count.
    fn through_pipe(&self, id: ActivityId, before: Time, foreign: bool) -> Option<Origin> {
        let graph = self.graph;
        let piped = self.edges(id, Relation::Read, EntityKind::Pipe);
        let piped = piped.filter_map(|(edge, _)| {
            let (time, origin) = self.received().origin_at(graph, edge.entity)?;
            let is_own = foreign && graph.is_above_process(id, origin.receiver);
            (time <= edge.interval.end && !is_own).then_some((edge.interval.start, origin))
        });
        let connected = self.edges(id, Relation::Read, EntityKind::Socket);
        let connected = connected.filter_map(|(edge, _)| {
            let address = graph.address(edge.entity);
            let address = address.filter(|address| !is_name_server(address))?;
            let origin = Origin {
                address: address.into(),
                receiver: id,
            };
            Some((edge.interval.start, origin))
        });
        let earlier = piped.chain(connected).filter(|(start, _)| *start <= before);
        let first = earlier.min_by_key(|(start, _)| *start);
        first.map(|(_, origin)| origin)
    }

    /// The address from which the shell above got the text that this one was given as an argument:
    /// `sh -c "$(curl ...)"`.
    fn origin_of_text(&self, id: ActivityId) -> Option<Origin> {
        let above = self.graph.programmed(self.graph.starter(id)?);
        let program = self.graph.activity(above).exec_path.as_ref()?;
        let own = self.graph.activity(id);
        let is_text = own.argv.iter().skip(1).any(|word| is_text_option(word));
        let begin = own.interval.start;
        let origin = || self.through_pipe(above, begin, false);
        (is_text && is_shell(program)).then(origin).flatten()
    }

    /// The file outside of the system whose content a program got through pipes.
    fn piped_file(&self, id: ActivityId) -> Option<Bytes> {
        let graph = self.graph;
        let mut known = HashSet::from([id]);
        let mut readers = vec![id];
        for _ in 0..STAGES {
            let pipes = readers
                .iter()
                .flat_map(|reader| self.edges(*reader, Relation::Read, EntityKind::Pipe));
            let writers = pipes
                .flat_map(|(edge, _)| graph.edges_of_entity(edge.entity).iter().take(self.most))
                .map(|at| graph.edge_at(*at))
                .filter(|edge| edge.relation == Relation::Write)
                .filter(|edge| edge.certainty == Certainty::Seen)
                .map(|edge| edge.activity)
                .filter(|writer| !graph.is_above_process(id, *writer));
            let writers: HashSet<ActivityId> = writers.collect();
            let files = writers
                .iter()
                .flat_map(|writer| self.edges(*writer, Relation::Read, EntityKind::File))
                .filter(|(_, entity)| !is_of_system(&entity.path));
            let first = files.map(|(edge, entity)| (edge.interval.start, &entity.path));
            if let Some((_, path)) = first.min() {
                return Some(path.clone());
            }
            readers = writers
                .into_iter()
                .filter(|one| known.insert(*one))
                .collect();
        }
        None
    }

    fn received(&self) -> &Received {
        self.received
            .get_or_init(|| Received::of(self.graph, self.most))
    }

    /// Where content of a file came from in this run.
    fn origin_of(&self, path: &Bytes) -> Option<Origin> {
        let received = self.received();
        let versions = received.reached.entities();
        let versions = versions.filter(|(id, _)| self.graph.entity(*id).path == *path);
        let (_, source) = versions.min()?;
        received.origin(self.graph, source)
    }
}

impl Received {
    fn of(graph: &RunGraph, most: usize) -> Received {
        let edges = graph
            .sockets()
            .flat_map(|socket| graph.edges_of_entity(socket));
        let facts = edges
            .take(most)
            .map(|edge| graph.fact_at(FactPlace::Use(*edge)));
        let is_content = |fact: &Fact| {
            let address = fact.entity.and_then(|entity| graph.address(entity));
            let is_peer = address.is_some_and(|address| !is_name_server(address));
            fact.operation == Operation::Receive && is_peer
        };
        let mut facts: Vec<Fact> = facts.filter(is_content).collect();
        // Of two at one moment, the first counts.
        facts.sort_by_key(|fact| (fact.start, fact.activity, fact.entity));
        let group = Group::Flow;
        let sources = facts.iter().enumerate();
        let begin = sources.map(|(number, fact)| (fact.start, source_node(group, fact), number));
        let mut reached = FlowReached::default();
        reached.search(graph, group, begin, most);
        Received { facts, reached }
    }

    fn origin(&self, graph: &RunGraph, source: usize) -> Option<Origin> {
        let fact = &self.facts[source];
        Some(Origin {
            address: graph.address(fact.entity?)?.into(),
            receiver: fact.activity,
        })
    }

    /// When received data can have come to a thing, and from where.
    fn origin_at(&self, graph: &RunGraph, entity: EntityId) -> Option<(Time, Origin)> {
        let (time, source) = self.reached.at(FlowNode::Entity(entity))?;
        Some((time, self.origin(graph, source)?))
    }
}

/// Directories with programs of the system. Their files tell other files apart, not what was done.
const SYSTEM: [&[u8]; 8] = [
    b"/usr/", b"/bin/", b"/sbin/", b"/lib", b"/etc/", b"/proc/", b"/dev/", b"/opt/",
];

fn is_of_system(path: &[u8]) -> bool {
    SYSTEM.iter().any(|directory| path.starts_with(directory))
}

const SHELLS: [&[u8]; 7] = [b"sh", b"bash", b"dash", b"zsh", b"ksh", b"ash", b"fish"];

/// Other programs that do what a file says which their arguments name, or their input.
const LANGUAGES: [&[u8]; 7] = [
    b"python", b"perl", b"ruby", b"node", b"php", b"lua", b"Rscript",
];

/// Programs that do what a file says.
const BUILDERS: [&[u8]; 2] = [b"make", b"gmake"];

/// The name of a program without its version: `python` of `/usr/bin/python3.11`.
fn name(program: &[u8]) -> &[u8] {
    let name = program
        .rsplit(|byte| *byte == b'/')
        .next()
        .unwrap_or_default();
    let is_version = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
    let end = name
        .iter()
        .rposition(|byte| !is_version(byte))
        .map_or(0, |at| at + 1);
    &name[..end]
}

fn is_shell(program: &[u8]) -> bool {
    SHELLS.contains(&name(program))
}

fn is_interpreter(program: &[u8]) -> bool {
    let name = name(program);
    [&SHELLS[..], &LANGUAGES, &BUILDERS]
        .iter()
        .any(|names| names.contains(&name))
}

/// True for `-c`, and other short options of a shell together with it.
fn is_text_option(word: &[u8]) -> bool {
    word.starts_with(b"-") && !word.starts_with(b"--") && word.contains(&b'c')
}

/// Names of the standard input.
const INPUT: [&[u8]; 4] = [b"-", b"/dev/stdin", b"/dev/fd/0", b"/proc/self/fd/0"];

/// True if an interpreter with these arguments follows its standard input.
fn reads_commands(program: &[u8], argv: &[Bytes]) -> bool {
    let is_shell = is_shell(program);
    if !is_shell && !LANGUAGES.contains(&name(program)) {
        return false;
    }
    for word in argv.iter().skip(1) {
        match &**word {
            word if INPUT.contains(&word) => return true,
            [b'-', b'-', ..] => {}
            [b'-', letters @ ..] if is_shell && letters.contains(&b'c') => return false,
            [b'-', letters @ ..] if is_shell && letters.contains(&b's') => return true,
            [b'-', ..] if is_shell => {}
            // A text, a module, or a script that is applied to each line of the input.
            [b'-', letters @ ..] if !letters.iter().any(|one| b"cemnpr".contains(one)) => {}
            _ => return false,
        }
    }
    true
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interpreter_follows_its_input_unless_its_arguments_name_something_else() {
        let reads = |line: &str| {
            let argv: Vec<Bytes> = line.split(' ').map(|word| word.as_bytes().into()).collect();
            reads_commands(&argv[0], &argv)
        };
        for line in ["sh", "bash -ex", "sh -s -- -y", "python3 -u -", "perl"] {
            assert!(reads(line), "{line}");
        }
        for line in [
            "sh -c x",
            "bash -xc x",
            "sh a.sh",
            "perl -ne x",
            "make",
            "python3 -m pip",
        ] {
            assert!(!reads(line), "{line}");
        }
    }
}
