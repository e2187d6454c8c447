//! Facts: the single operations that rules select, and their fields.
//!
//! A fact is an edge of the graph, or the start of a program. The fields have the names of Sigma's
//! taxonomy where Sigma has one.

use backstory_eventlog::event::{Bytes, Time};
use backstory_graph::model::{
    Activity, ActivityId, Certainty, Edge, EntityId, EntityKind, Relation,
};
use backstory_query::address_of;
use backstory_vocabulary::Word;

use crate::run_graph::RunGraph;

/// An act of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    /// The program was started.
    Start,
    /// An operation on a file, pipe or other thing.
    On(Relation),
    /// Data was sent to a network address.
    Send,
    /// Data was received from a network address.
    Receive,
}

impl Operation {
    /// The word for it in rules and answers: for files, that of `backstory query`.
    pub fn word(self) -> &'static str {
        match self {
            Operation::Start => "start",
            Operation::On(relation) => relation.words().word,
            Operation::Send => "send",
            Operation::Receive => "receive",
        }
    }

    /// All operations.
    pub fn all() -> impl Iterator<Item = Operation> {
        let others = [Operation::Start, Operation::Send, Operation::Receive];
        (others.into_iter()).chain(Relation::ALL.into_iter().map(Operation::On))
    }
}

/// A fact's place in the graph of a run, which stays while the graph grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum FactPlace {
    /// The start of a program.
    Start(ActivityId),
    /// An edge.
    Use(u32),
}

/// One operation of one program.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fact {
    /// The program.
    pub activity: ActivityId,
    /// Its act.
    pub operation: Operation,
    /// The file, pipe, connection or other thing that was used.
    pub entity: Option<EntityId>,
    /// The first time.
    pub start: Time,
    /// The last time.
    pub end: Time,
    /// Whether it happened or only can have happened.
    pub certainty: Certainty,
}

macro_rules! fields {
    ($($field:ident: $about:literal,)*) => {
        /// A field of a fact.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Field { $(#[doc = $about] $field,)* }

        /// All fields: the name in rules, and the meaning.
        pub const FIELDS: &[(Field, &str, &str)] =
            &[$((Field::$field, stringify!($field), $about),)*];
    };
}

fields! {
    Operation: "what was done: start, read, write, make, rename, delete, exec, send, receive and others",
    Certainty: "seen, or possible: the outcome is unknown",
    Image: "path of the program",
    CommandLine: "arguments of the program, joined by spaces",
    CurrentDirectory: "working directory when the program began",
    ProcessId: "process id",
    ExitCode: "exit status of the process",
    ParentImage: "path of the program that started the process",
    ParentCommandLine: "arguments of that program",
    AncestorImage: "path of any program above, up to the run's command",
    AncestorCommandLine: "arguments of any program above",
    TargetFilename: "absolute path of the file; any of its names",
    SourceFilename: "path of the file that was renamed, linked or copied to this one",
    SuccessorFilename: "a file of the run that has this one's name and an addition, if this one is gone",
    TargetKind: "file, directory, symlink, pipe, socket, device and others",
    Existing: "true if the file is older than the run",
    Unexplained: "true if an earlier run made another version at the path, and no run made this one; not while a run goes on",
    ContentChange: "what changed inside of the file, in a sentence of an inspector; see below",
    ContentFact: "what an inspector says of the content, as NAME=VALUE; see below",
    DestinationIp: "address of the other end of a connection",
    DestinationPort: "its port; of an accepted connection, the own port",
    Protocol: "tcp or udp",
    Initiated: "true if the process connected, false if it accepted",
}

impl Field {
    /// The fields whose values are answers of inspectors.
    pub(crate) const OF_CONTENT: [Field; 2] = [Field::ContentChange, Field::ContentFact];

    /// Whether the values are answers of inspectors.
    pub(crate) fn is_of_content(self) -> bool {
        Field::OF_CONTENT.contains(&self)
    }

    /// The field with this name.
    pub fn named(name: &str) -> Option<Field> {
        let mut all = FIELDS.iter();
        all.find(|(_, own, _)| *own == name)
            .map(|(field, ..)| *field)
    }
}

/// True, false as texts.
fn truth(value: bool) -> &'static [u8] {
    if value { b"true" } else { b"false" }
}

/// Whether one of the texts meets the test. `None`: there is no text.
fn any_of(texts: &[Bytes], test: &mut dyn FnMut(&[u8]) -> bool) -> Option<bool> {
    (!texts.is_empty()).then(|| texts.iter().any(|text| test(text)))
}

/// The protocol, host and port of an address such as `tcp:[::1]:80`.
pub(crate) fn parts(address: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (protocol, rest) = address.split_at_checked(address.iter().position(|b| *b == b':')?)?;
    let rest = &rest[1..];
    let (host, port) = rest.split_at_checked(rest.iter().rposition(|b| *b == b':')?)?;
    let bare = host.strip_prefix(b"[").and_then(|h| h.strip_suffix(b"]"));
    Some((protocol, bare.unwrap_or(host), &port[1..]))
}

fn started_program(activity: &Activity) -> Fact {
    Fact {
        activity: activity.id,
        operation: Operation::Start,
        entity: None,
        start: activity.interval.start,
        end: activity.interval.end,
        certainty: Certainty::Seen,
    }
}

impl Fact {
    /// The order of facts. A store and a lake give the edges in different orders.
    pub(crate) fn order(&self) -> impl Ord + use<> {
        (
            self.start,
            self.activity,
            self.entity,
            self.operation,
            self.end,
        )
    }
}

impl RunGraph {
    /// All facts, in no order.
    pub fn facts(&self) -> impl Iterator<Item = Fact> {
        let started = self.activities.iter().filter(|one| !one.argv.is_empty());
        let started = started.map(started_program);
        let edges = self.edges.iter().map(|edge| self.fact(edge));
        started.chain(edges)
    }

    /// The fact at a place, as it is by now.
    pub(crate) fn fact_at(&self, place: FactPlace) -> Fact {
        match place {
            FactPlace::Start(id) => started_program(self.activity(id)),
            FactPlace::Use(edge) => self.fact(self.edge_at(edge)),
        }
    }

    fn fact(&self, edge: &Edge) -> Fact {
        let operation = match (self.address(edge.entity), edge.relation) {
            (Some(_), Relation::Read) => Operation::Receive,
            (Some(_), Relation::Write) => Operation::Send,
            (_, relation) => Operation::On(relation),
        };
        Fact {
            activity: edge.activity,
            operation,
            entity: Some(edge.entity),
            start: edge.interval.start,
            end: edge.interval.end,
            certainty: edge.certainty,
        }
    }

    /// The network address of a connection.
    pub(crate) fn address(&self, entity: EntityId) -> Option<&[u8]> {
        let entity = self.entity(entity);
        let address = (entity.kind == EntityKind::Socket).then(|| address_of(&entity.path))??;
        (!address.starts_with(b"unix:")).then_some(address)
    }

    /// False if inspectors could have been asked about the content of a fact's file, and were not.
    pub(crate) fn knows_content(&self, fact: &Fact) -> bool {
        let is_file = |id: &EntityId| self.entity(*id).kind == EntityKind::File;
        let file = fact.entity.filter(is_file);
        file.is_none_or(|id| self.content(id).is_some())
    }

    /// Calls `test` with each value of a field, until it returns true. `None`: there is no value.
    pub(crate) fn any_value(
        &self,
        fact: &Fact,
        field: Field,
        test: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Option<bool> {
        let activity = self.activity(fact.activity);
        let entity = fact.entity.map(|id| self.entity(id));
        let address = || parts(self.address(fact.entity?)?);
        let number = |number: i64| number.to_string().into_bytes();
        let above = || self.up(fact.activity).skip(1);
        Some(match field {
            Field::Operation => test(fact.operation.word().as_bytes()),
            Field::Certainty => test(fact.certainty.word().as_bytes()),
            Field::Image => test(self.image(fact.activity)?),
            Field::CommandLine => test(self.command(fact.activity)),
            Field::CurrentDirectory => test(&activity.cwd),
            Field::ProcessId => test(&number(activity.pid.into())),
            Field::ExitCode => test(&number(activity.exit?.into())),
            Field::ParentImage => test(self.image(self.starter(fact.activity)?)?),
            Field::ParentCommandLine => test(self.command(self.starter(fact.activity)?)),
            Field::AncestorImage => above().any(|up| self.image(up).is_some_and(|i| test(i))),
            Field::AncestorCommandLine => above().any(|up| test(self.command(up))),
            Field::TargetFilename => {
                let entity = entity.filter(|one| one.path.starts_with(b"/"))?;
                test(&entity.path) || entity.aliases.iter().any(|alias| test(alias))
            }
            Field::SourceFilename => test(&self.source(fact.entity?)?.path),
            Field::SuccessorFilename => test(self.successor(fact.entity?)?),
            Field::TargetKind => test(entity?.kind.word().as_bytes()),
            Field::Existing => test(truth(self.existed(entity?.id))),
            Field::Unexplained => test(truth(self.is_unexplained(entity?.id)?)),
            Field::ContentChange => any_of(&self.content(entity?.id)?.changes, test)?,
            Field::ContentFact => any_of(&self.content(entity?.id)?.facts, test)?,
            Field::DestinationIp => test(address()?.1),
            Field::DestinationPort => test(address()?.2),
            Field::Protocol => test(address()?.0),
            Field::Initiated => {
                address()?;
                let is_reply = entity?.path.ends_with(b" (reply)");
                let received = fact.operation == Operation::Receive;
                test(truth(received == is_reply))
            }
        })
    }
}
