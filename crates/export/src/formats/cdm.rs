//! The Common Data Model of DARPA's programme Transparent Computing, version 20: the records that
//! its published data sets have, one JSON object a line.
//!
//! The schema is `avro/TCCDMDatum.avsc` of the repository raytheonbbn/tc-ta3-serialization-schema
//! (a copy is in `fixtures/cdm`). As in the data sets, the value of a union has its type's name,
//! and a UUID is text.
//!
//! Each program of a process is a subject, and `EVENT_EXECUTE` leads from one to the next. Each
//! version of a file is an object, whose `epoch` is the version.

use std::collections::BTreeMap;
use std::io::Write;

use backstory_graph::model::{Certainty, EntityKind, Informed, Interval, Relation};
use backstory_query::answer::Flow;
use backstory_vocabulary::Word;
use serde_json::{Map, Value, json};

use super::acts::{self, ActKind, acts, peer};
use super::notation::{self, text, uuid, with};
use crate::family::Family;
use crate::format::{Format, Target};
use crate::view::{Endpoint, Level, ViewActivity, ViewEntity, ViewLink};
use crate::{Result, View};

/// `cdm`
pub struct Cdm;

/// The version of the schema.
const VERSION: &str = "20";
/// The namespace of the schema's types.
const NAMESPACE: &str = "com.bbn.tc.schema.avro.cdm20";

impl Format for Cdm {
    fn name(&self) -> &'static str {
        "cdm"
    }
    fn about(&self) -> &'static str {
        "DARPA's Common Data Model 20 (Transparent Computing), one record a line"
    }
    fn family(&self) -> Family {
        Family::Data
    }
    fn default_level(&self) -> Level {
        Level::All
    }
    fn proven_by(&self) -> &'static str {
        "the model's Avro schema"
    }

    fn write(&self, view: &View, target: Target<'_>) -> Result<()> {
        let mut records = Records {
            out: target.stream(),
            written: BTreeMap::new(),
        };
        let hosts: BTreeMap<&str, usize> = view
            .runs
            .iter()
            .enumerate()
            .rev()
            .map(|(at, run)| (run.summary.host.as_str(), at))
            .collect();
        for at in hosts.into_values() {
            records.add(view, at, "HOST", "Host", host(view, at))?;
        }
        for activity in &view.activities {
            records.add(
                view,
                activity.run,
                "SUBJECT",
                "Subject",
                subject(view, activity),
            )?;
        }
        for entity in &view.entities {
            let (record, name, fields) = object(view, entity);
            records.add(view, entity.run, record, name, fields)?;
        }
        for (at, act) in acts(view).iter().enumerate() {
            if let Some((run, fields)) = event(view, at, act.time, &act.kind) {
                records.add(view, run, "EVENT", "Event", fields)?;
            }
        }
        records.end(view)
    }
}

/// The records that are written, and the number of each kind.
struct Records<'o> {
    out: &'o mut dyn Write,
    written: BTreeMap<String, u64>,
}

impl Records<'_> {
    /// Writes a record of a run. `record`: the end of its `RecordType`; `name`: of its type.
    fn add(
        &mut self,
        view: &View,
        run: usize,
        record: &str,
        name: &str,
        fields: Value,
    ) -> Result<()> {
        let kind = format!("RECORD_{record}");
        let line = json!({
            "datum": {format!("{NAMESPACE}.{name}"): fields},
            "CDMVersion": VERSION,
            "type": kind,
            "hostId": host_id(view, run),
            "sessionNumber": run,
            "source": "SOURCE_LINUX_SYSCALL_TRACE",
        });
        writeln!(self.out, "{line}")?;
        *self.written.entry(kind).or_default() += 1;
        Ok(())
    }

    /// The last record has the number of all others.
    fn end(mut self, view: &View) -> Result<()> {
        let counts: Map<String, Value> = self
            .written
            .iter()
            .map(|(kind, count)| (kind.clone(), count.to_string().into()))
            .collect();
        let last = view.runs.len().saturating_sub(1);
        let fields = json!({"sessionNumber": last, "recordCounts": counts});
        self.add(view, last, "END_MARKER", "EndMarker", fields)
    }
}

/// A value of a union with `null`.
fn some(kind: &str, value: impl Into<Value>) -> Value {
    json!({kind: value.into()})
}

/// A UUID in a union.
fn reference(name: &str) -> Value {
    some(&format!("{NAMESPACE}.UUID"), uuid(name))
}

fn host_id(view: &View, run: usize) -> String {
    let host = view
        .runs
        .get(run)
        .map_or("", |run| run.summary.host.as_str());
    uuid(&format!("host/{host}"))
}

fn host(view: &View, run: usize) -> Value {
    let machine = &view.runs[run].machine;
    json!({
        "uuid": host_id(view, run),
        "hostName": machine.host,
        "ta1Version": format!("{} {}", notation::TOOL, notation::VERSION),
        "hostIdentifiers": null,
        "osDetails": some("string", format!("{}, {}", machine.distribution, machine.kernel)),
        "hostType": "HOST_OTHER",
        "interfaces": null,
    })
}

fn subject(view: &View, activity: &ViewActivity) -> Value {
    let parent = activity
        .parent
        .map(|parent| reference(&view.activities[parent].id));
    let mut properties = Map::new();
    properties.insert(
        "run".to_owned(),
        view.runs[activity.run].summary.id.clone().into(),
    );
    properties.insert("cwd".to_owned(), text(&activity.cwd).into());
    if let Some(program) = &activity.program {
        properties.insert("path".to_owned(), text(program).into());
        properties.insert("name".to_owned(), text(acts::base_name(program)).into());
    }
    json!({
        "uuid": uuid(&activity.id),
        "type": "SUBJECT_PROCESS",
        "cid": activity.pid,
        "parentSubject": parent,
        "localPrincipal": null,
        "startTimestampNanos": some("long", activity.interval.start),
        "unitId": some("int", activity.epoch),
        "iteration": null,
        "count": null,
        "cmdLine": some("string", activity.label.as_str()),
        "privilegeLevel": null,
        "importedLibraries": null,
        "exportedLibraries": null,
        "properties": some("map", properties),
    })
}

/// The end of the `RecordType`, the name of the type, and the fields.
fn object(view: &View, entity: &ViewEntity) -> (&'static str, &'static str, Value) {
    let fields = json!({"uuid": uuid(&entity.id), "baseObject": base_object(view, entity)});
    let (record, name, own) = match entity.kind {
        EntityKind::File => ("FILE_OBJECT", "FileObject", file(entity, "FILE")),
        EntityKind::Missing => ("FILE_OBJECT", "FileObject", file(entity, "FILE")),
        EntityKind::Directory => ("FILE_OBJECT", "FileObject", file(entity, "DIR")),
        EntityKind::Symlink => ("FILE_OBJECT", "FileObject", file(entity, "LINK")),
        EntityKind::Device => ("FILE_OBJECT", "FileObject", file(entity, "CHAR")),
        EntityKind::Socket => match peer(entity) {
            Some(peer) => ("NET_FLOW_OBJECT", "NetFlowObject", net_flow(&peer)),
            None => ("IPC_OBJECT", "IpcObject", ipc(socket(entity))),
        },
        EntityKind::Pipe if entity.path.starts_with(b"/") => {
            ("IPC_OBJECT", "IpcObject", ipc("PIPE_NAMED"))
        }
        EntityKind::Pipe => ("IPC_OBJECT", "IpcObject", ipc("PIPE_UNNAMED")),
        EntityKind::Memory => ("SRC_SINK_OBJECT", "SrcSinkObject", source("IPC")),
        EntityKind::Resource => ("SRC_SINK_OBJECT", "SrcSinkObject", source("DATABASE")),
    };
    (record, name, with(fields, own))
}

fn base_object(view: &View, entity: &ViewEntity) -> Value {
    let mut properties = Map::new();
    properties.insert("path".to_owned(), text(&entity.path).into());
    if entity.kind == EntityKind::Missing {
        properties.insert("missing".to_owned(), "true".into());
    }
    let content = view.contents.of(entity.run, &entity.path, entity.version);
    if let Some(digest) = content.and_then(|content| content.digest) {
        properties.insert("blake3".to_owned(), digest.to_string().into());
    }
    json!({
        "permission": null,
        "epoch": some("int", entity.version),
        "properties": some("map", properties),
    })
}

fn file(entity: &ViewEntity, kind: &str) -> Value {
    json!({
        "type": format!("FILE_OBJECT_{kind}"),
        "fileDescriptor": null,
        "localPrincipal": null,
        "size": entity.ident.map(|ident| some("long", ident.size)),
        "peInfo": null,
        "hashes": null,
    })
}

fn ipc(kind: &str) -> Value {
    json!({
        "type": format!("IPC_OBJECT_{kind}"),
        "uuid1": null, "uuid2": null, "fd1": null, "fd2": null,
    })
}

fn socket(entity: &ViewEntity) -> &'static str {
    match entity.path.strip_prefix(b"unix:") {
        Some([]) => "SOCKET_UNNAMED",
        Some([b'@', ..]) => "SOCKET_ABSTRACT",
        Some(_) => "SOCKET_PATHNAME",
        None if entity.path.starts_with(b"/") => "SOCKET_PATHNAME",
        None => "SOCKET_UNNAMED",
    }
}

fn net_flow(peer: &acts::Peer<'_>) -> Value {
    json!({
        "localAddress": null,
        "localPort": null,
        "remoteAddress": some("string", peer.host),
        "remotePort": some("int", peer.port),
        "ipProtocol": some("int", peer.protocol),
        "initTcpSeqNum": null,
        "fileDescriptor": null,
    })
}

fn source(kind: &str) -> Value {
    json!({"type": format!("SRCSINK_{kind}"), "fileDescriptor": null})
}

/// The subject and the objects of an event, by the names that their UUIDs are made of.
#[derive(Default)]
struct Parts<'v> {
    kind: &'static str,
    run: usize,
    subject: Option<&'v ViewActivity>,
    object: Option<(&'v str, Option<&'v ViewEntity>)>,
    second: Option<&'v ViewEntity>,
    link: Option<&'v ViewLink>,
}

/// An event and the run that it belongs to. `None` for an act that is no event by itself.
fn event(view: &View, sequence: usize, time: i64, kind: &ActKind<'_>) -> Option<(usize, Value)> {
    let parts = match kind {
        // EVENT_FORK and EVENT_EXECUTE begin a subject.
        ActKind::Begin(_) => return None,
        ActKind::End(at) => ending(&view.activities[*at]),
        ActKind::Touch(who, what, relation, link) => {
            let (who, what) = (&view.activities[*who], &view.entities[*what]);
            Parts {
                kind: touch(*relation, what.kind),
                run: who.run,
                subject: Some(who),
                object: Some((&what.id, Some(what))),
                link: Some(link),
                ..Parts::default()
            }
        }
        ActKind::Flow(link) => flow(view, link)?,
    };
    let path = |entity: Option<&ViewEntity>| entity.map(|one| some("string", text(&one.path)));
    let (object, first) = parts.object.unzip();
    let fields = json!({
        "uuid": uuid(&format!("event/{}/{sequence}/{}", view.subject, parts.kind)),
        "sequence": some("long", sequence),
        "type": format!("EVENT_{}", parts.kind),
        "threadId": parts.subject.map(|who| some("int", who.pid)),
        "subject": parts.subject.map(|who| reference(&who.id)),
        "predicateObject": object.map(reference),
        "predicateObjectPath": path(first.flatten()),
        "predicateObject2": parts.second.map(|what| reference(&what.id)),
        "predicateObject2Path": path(parts.second),
        "timestampNanos": time,
        "names": null,
        "parameters": null,
        "location": null,
        "size": null,
        "programPoint": null,
        "properties": some("map", properties(&parts)),
    });
    Some((parts.run, fields))
}

fn ending(activity: &ViewActivity) -> Parts<'_> {
    Parts {
        kind: "EXIT",
        run: activity.run,
        subject: Some(activity),
        ..Parts::default()
    }
}

fn properties(parts: &Parts<'_>) -> Map<String, Value> {
    let mut properties = Map::new();
    let mut add = |key: &str, value: String| properties.insert(key.to_owned(), value.into());
    if let (None, Some(who)) = (parts.link, parts.subject) {
        who.exit.map(|exit| add("exit", exit.to_string()));
        who.signal.map(|signal| add("signal", signal.to_string()));
    }
    if let Some(link) = parts.link {
        if link.certainty == Certainty::Possible {
            add("certainty", "possible".to_owned());
        }
        link.bytes
            .map(|bytes| add("bytes", bytes.word().to_owned()));
        let Interval { start, end } = link.interval;
        if end != start {
            add("endTimestampNanos", end.to_string());
        }
    }
    properties
}

/// The end of the `EventType` of a relation.
fn touch(relation: Relation, kind: EntityKind) -> &'static str {
    match (relation, kind) {
        (Relation::Read, EntityKind::Socket) => "RECVMSG",
        (Relation::Write, EntityKind::Socket) => "SENDMSG",
        (Relation::Read | Relation::List | Relation::Link, _) => "READ",
        (Relation::Execute, _) => "LOADLIBRARY",
        (Relation::Stat | Relation::Missing, _) => "CHECK_FILE_ATTRIBUTES",
        (Relation::Write, _) => "WRITE",
        (Relation::Delete, _) => "UNLINK",
        (Relation::Rename, _) => "RENAME",
        (Relation::Meta, _) => "MODIFY_FILE_ATTRIBUTES",
        (Relation::Make, _) => "CREATE_OBJECT",
    }
}

/// The event of a flow between two activities or two entities.
fn flow<'v>(view: &'v View, link: &'v ViewLink) -> Option<Parts<'v>> {
    match (link.flow, link.from, link.to) {
        (Flow::Informed(why), Endpoint::Activity(from), Endpoint::Activity(to)) => {
            let (from, to) = (&view.activities[from], &view.activities[to]);
            let (kind, who, other) = match why {
                Informed::Fork => ("FORK", from, to),
                Informed::Exec => ("EXECUTE", from, to),
                Informed::Signal => ("SIGNAL", from, to),
                Informed::Wait => ("WAIT", to, from),
            };
            Some(Parts {
                kind,
                run: who.run,
                subject: Some(who),
                object: Some((&other.id, None)),
                link: Some(link),
                ..Parts::default()
            })
        }
        (flow, Endpoint::Entity(from), Endpoint::Entity(to)) => {
            let (from, to) = (&view.entities[from], &view.entities[to]);
            Some(Parts {
                kind: if flow == Flow::Derived {
                    "FLOWS_TO"
                } else {
                    "CORRELATION"
                },
                run: to.run,
                object: Some((&from.id, Some(from))),
                second: Some(to),
                link: Some(link),
                ..Parts::default()
            })
        }
        _ => None,
    }
}
