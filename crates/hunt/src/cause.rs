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

use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use backstory_eventlog::event::{Bytes, Time};
use backstory_graph::model::{ActivityId, Certainty, Edge, Entity, EntityId, EntityKind, Relation};
use backstory_query::is_name_server;

use crate::correlation::Group;
use crate::fact::{Fact, FactPlace, Operation};
use crate::flow::{FlowNode, FlowReached, source_node};
use crate::interpreter::{CommandSource, command_source, is_interpreter, is_shell};
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
    /// It is not certain that the commands came from there.
    pub is_possible: bool,
}

/// A search for the causes of matches of one graph. Matches share what was received.
pub(crate) struct CauseSearch<'g> {
    graph: &'g RunGraph,
    most: usize,
    received: OnceCell<Received>,
    /// By shell: the receptions that remain if its own are left out.
    without: RefCell<HashMap<ActivityId, Rc<Received>>>,
}

/// Receptions from the network, and the nodes that their data can have reached.
struct Received {
    facts: Vec<Fact>,
    reached: FlowReached,
    /// Connections that certainly brought data. Others can have failed.
    seen: HashSet<EntityId>,
}

/// Stages of a pipeline through which commands are followed back.
const STAGES: usize = 4;
/// The most shells whose receptions are kept. Each can have as many nodes as the graph.
const SHELLS: usize = 16;

impl<'g> CauseSearch<'g> {
    /// A search that looks at `most` operations of each program, and at as many of connections.
    pub fn new(graph: &'g RunGraph, most: usize) -> CauseSearch<'g> {
        CauseSearch {
            graph,
            most,
            received: OnceCell::new(),
            without: RefCell::default(),
        }
    }

    /// The cause of operations.
    pub fn cause(&self, facts: &[Fact]) -> Cause {
        let [first, .., last] = facts else {
            return self.above(&facts[0]);
        };
        // The last program can have followed what the first operation brought.
        let by_last = self.above(last);
        match by_last.file.is_none() && by_last.origin.is_some() {
            true => by_last,
            false => self.above(first),
        }
    }

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
            if command_source(program, &activity.argv) != CommandSource::Input {
                continue;
            }
            let origin = self.through_pipe(up, fact.end);
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

    /// When a program read first from each pipe or connection, and the network address from which
    /// its data came.
    fn inputs(&self, id: ActivityId, received: &Received) -> Vec<(Time, Option<Origin>)> {
        let graph = self.graph;
        let piped = self.edges(id, Relation::Read, EntityKind::Pipe);
        let piped = piped.map(|(edge, _)| {
            let origin = received.origin_at(graph, edge.entity);
            let origin = origin.filter(|(time, _)| *time <= edge.interval.end);
            (edge.interval.start, origin.map(|(_, origin)| origin))
        });
        let connected = self.edges(id, Relation::Read, EntityKind::Socket);
        let connected = connected.filter_map(|(edge, _)| {
            let address = graph.address(edge.entity);
            let address = address.filter(|address| !is_name_server(address))?;
            let origin = Origin {
                address: address.into(),
                receiver: id,
                is_possible: !received.seen.contains(&edge.entity),
            };
            Some((edge.interval.start, Some(origin)))
        });
        piped.chain(connected).collect()
    }

    /// The address from which a program got data through a pipe or a connection, before a moment.
    /// Programs that it started itself do not count.
    fn through_pipe(&self, id: ActivityId, before: Time) -> Option<Origin> {
        let inputs = self.inputs(id, self.received()).into_iter();
        let is_own = |origin: &Origin| {
            origin.receiver != id && self.graph.is_above_process(id, origin.receiver)
        };
        let foreign = inputs
            .filter(|(start, _)| *start <= before)
            .filter_map(|(start, origin)| Some((start, origin.filter(|one| !is_own(one))?)));
        let first = foreign.min_by_key(|(start, _)| *start);
        first.map(|(_, origin)| origin)
    }

    /// The address from which the shell above can have got the text that this program was given as
    /// an argument: `sh -c "$(curl ...)"`. The text can come from what the shell read last before
    /// it started the program.
    fn origin_of_text(&self, id: ActivityId) -> Option<Origin> {
        let graph = self.graph;
        let above = graph.programmed(graph.starter(id)?);
        let shell = graph.activity(above).exec_path.as_ref()?;
        let own = graph.activity(id);
        let source = command_source(own.exec_path.as_ref()?, &own.argv);
        if source != CommandSource::Argument
            || !is_shell(shell)
            || is_literal(&own.argv, graph.command(above))
        {
            return None;
        }
        // The shell gives what it received earlier to all processes that it starts.
        let received = self.received_without(above);
        let epochs = graph
            .up(id)
            .take_while(|up| graph.activity(*up).pid == own.pid);
        let begin = epochs.map(|up| graph.activity(up).interval.start).min()?;
        let inputs = self.inputs(above, &received).into_iter();
        let earlier = inputs.filter(|(start, _)| *start <= begin);
        let (_, origin) = earlier.max_by_key(|(start, _)| *start)?;
        origin.map(|origin| Origin {
            is_possible: true,
            ..origin
        })
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
            .get_or_init(|| Received::of(self.graph, self.most, None))
    }

    /// The receptions of a run, with data that is not followed through a shell.
    fn received_without(&self, shell: ActivityId) -> Rc<Received> {
        let mut known = self.without.borrow_mut();
        if let Some(received) = known.get(&shell) {
            return Rc::clone(received);
        }
        if known.len() >= SHELLS {
            known.clear();
        }
        let received = Rc::new(Received::of(self.graph, self.most, Some(shell)));
        known.insert(shell, Rc::clone(&received));
        received
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
    /// The receptions of a run. Data is not followed through the activity `without`.
    fn of(graph: &RunGraph, most: usize, without: Option<ActivityId>) -> Received {
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
        let seen = facts
            .iter()
            .filter(|fact| fact.certainty == Certainty::Seen);
        let seen = seen.filter_map(|fact| fact.entity).collect();
        // Of two at one moment, the first counts.
        facts.sort_by_key(|fact| (fact.start, fact.activity, fact.entity));
        let group = Group::Flow;
        let sources = facts.iter().enumerate();
        let begin = sources.map(|(number, fact)| (fact.start, source_node(group, fact), number));
        let mut reached = FlowReached::without(without);
        reached.search(graph, group, begin, most);
        Received {
            facts,
            reached,
            seen,
        }
    }

    fn origin(&self, graph: &RunGraph, source: usize) -> Option<Origin> {
        let fact = &self.facts[source];
        let connection = fact.entity?;
        Some(Origin {
            address: graph.address(connection)?.into(),
            receiver: fact.activity,
            is_possible: !self.seen.contains(&connection),
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

/// Files that an interpreter finds without their names in its arguments.
const BY_NAME: [&[u8]; 2] = [b"/Makefile", b"/setup.py"];

/// True for a file of an installed package. An installer's own script runs those of others.
fn is_of_package(path: &[u8]) -> bool {
    let within = |directory: &&[u8]| path.windows(directory.len()).any(|part| part == *directory);
    let directories: [&[u8]; 3] = [b"/site-packages/", b"/dist-packages/", b"/node_modules/"];
    directories.iter().any(within)
}

/// True if the words that a program was given stand in the arguments of the shell above. Then the
/// shell did not get them from elsewhere.
fn is_literal(argv: &[Bytes], above: &[u8]) -> bool {
    let words = argv.iter().skip(1).filter(|word| !word.is_empty());
    let mut words = words.filter(|word| !word.starts_with(b"-"));
    words.all(|word| above.windows(word.len()).any(|part| part == &**word))
}

/// A relative path without `./` and `../`.
fn bare(word: &[u8]) -> &[u8] {
    let stripped = word
        .strip_prefix(b"./")
        .or_else(|| word.strip_prefix(b"../"));
    stripped.map_or(word, bare)
}
