//! OCSF, the Open Cybersecurity Schema Framework, version 1.7.0: one event a line.
//!
//! The classes are File System Activity, Process Activity, Module Activity and Network Activity.
//! Times are milliseconds, as the standard says. `unmapped` has facts without an attribute there.

use std::collections::HashMap;

use backstory_graph::model::{Certainty, EntityKind, Relation};
use serde_json::{Value, json};

use super::acts::{Act, ActKind, Peer, acts, base_name, former_names, is_own_program, peer};
use super::notation::{self, text, uuid, with};
use crate::family::Family;
use crate::format::{Format, Target};
use crate::view::{Level, ViewActivity, ViewEntity, ViewLink};
use crate::{Result, View};

/// `ocsf`
pub struct Ocsf;

/// The version of the standard.
const VERSION: &str = "1.7.0";
/// `severity_id`: a record says nothing about an alarm.
const INFORMATIONAL: u8 = 1;
/// `status_id` of an operation that failed.
const FAILURE: u8 = 2;
/// `type_id` of Linux in the object Operating System.
const LINUX: u16 = 200;

/// A class of events: its category and its number.
#[derive(Clone, Copy)]
struct Class {
    category: u32,
    number: u32,
}

const FILE: Class = Class {
    category: 1,
    number: 1001,
};
const MODULE: Class = Class {
    category: 1,
    number: 1005,
};
const PROCESS: Class = Class {
    category: 1,
    number: 1007,
};
const NETWORK: Class = Class {
    category: 4,
    number: 4001,
};

impl Format for Ocsf {
    fn name(&self) -> &'static str {
        "ocsf"
    }
    fn about(&self) -> &'static str {
        "OCSF 1.7 events of files, processes and connections, one a line"
    }
    fn family(&self) -> Family {
        Family::Standard
    }
    fn default_level(&self) -> Level {
        Level::All
    }
    fn proven_by(&self) -> &'static str {
        "pydantic-ocsf"
    }

    fn write(&self, view: &View, target: Target<'_>) -> Result<()> {
        let out = target.stream();
        let former = former_names(view);
        for (at, act) in acts(view).iter().enumerate() {
            if let Some(event) = event(view, act, at, &former) {
                writeln!(out, "{event}")?;
            }
        }
        Ok(())
    }
}

/// The event of an act. `None` for an act that another event includes: a fork, and the execution of
/// the program that a process launches.
fn event(view: &View, act: &Act<'_>, at: usize, former: &HashMap<usize, usize>) -> Option<Value> {
    let (run, class, activity, own) = match &act.kind {
        ActKind::Begin(who) => process_event(view, *who, true),
        ActKind::End(who) => process_event(view, *who, false),
        ActKind::Touch(who, what, relation, link) => {
            let (who, thing) = (&view.activities[*who], &view.entities[*what]);
            if is_own_program(who, thing, *relation) {
                return None;
            }
            let before = former.get(what).map(|from| &view.entities[*from]);
            let (class, activity, own) = touch(view, who, thing, *relation, before);
            (
                who.run,
                class,
                activity,
                with(own, link_fields(link, thing)),
            )
        }
        ActKind::Flow(_) => return None,
    };
    Some(with(base(view, run, act.time, (class, activity), at), own))
}

/// The attributes that every event has.
fn base(view: &View, run: usize, time: i64, (class, activity): (Class, u32), at: usize) -> Value {
    let details = &view.runs[run];
    json!({
        "category_uid": class.category,
        "class_uid": class.number,
        "activity_id": activity,
        "type_uid": class.number * 100 + activity,
        "severity_id": INFORMATIONAL,
        "time": milliseconds(time),
        "metadata": {
            "version": VERSION,
            "uid": uuid(&format!("event/{}/{at}", view.subject)),
            "correlation_uid": details.summary.id,
            "product": {
                "name": notation::TOOL, "vendor_name": notation::TOOL, "version": notation::VERSION,
            },
            "profiles": ["host"],
        },
        "device": {
            "hostname": details.machine.host,
            "type_id": 0,
            "os": {"name": details.machine.distribution, "type_id": LINUX,
                "kernel_release": details.machine.kernel},
        },
    })
}

fn milliseconds(time: i64) -> i64 {
    time.div_euclid(1_000_000)
}

/// The time, the certainty and the version, which the standard has no attribute for.
fn link_fields(link: &ViewLink, thing: &ViewEntity) -> Value {
    let certainty = match link.certainty {
        Certainty::Seen => "seen",
        Certainty::Possible => "possible",
    };
    json!({
        "start_time": milliseconds(link.interval.start),
        "end_time": milliseconds(link.interval.end),
        "unmapped": {"certainty": certainty, "entity": thing.id, "version": thing.version},
    })
}

/// The run, the class, the activity and the own fields of the begin or the end of a process.
fn process_event(view: &View, who: usize, begins: bool) -> (usize, Class, u32, Value) {
    const LAUNCH: u32 = 1;
    const TERMINATE: u32 = 2;
    let activity = &view.activities[who];
    let parent = activity.parent.map(|parent| &view.activities[parent]);
    let mut own = json!({
        "process": process(activity, parent),
        // The standard demands an actor. The first process of a run has none in the record.
        "actor": {"process": process(parent.unwrap_or(activity), None)},
    });
    if !begins {
        own["process"]["terminated_time"] = milliseconds(activity.interval.end).into();
        match (activity.exit, activity.signal) {
            (Some(exit), _) => own["exit_code"] = exit.into(),
            (None, Some(signal)) => own["unmapped"] = json!({"signal": signal}),
            (None, None) => {}
        }
    }
    (
        activity.run,
        PROCESS,
        if begins { LAUNCH } else { TERMINATE },
        own,
    )
}

fn process(activity: &ViewActivity, parent: Option<&ViewActivity>) -> Value {
    let mut process = json!({
        "pid": activity.pid,
        "uid": uuid(&activity.id),
        "cmd_line": activity.label,
        "created_time": milliseconds(activity.interval.start),
        "working_directory": text(&activity.cwd),
    });
    if let Some(program) = &activity.program {
        process["name"] = text(base_name(program)).into();
        process["path"] = text(program).into();
        process["file"] = json!({
            "name": text(base_name(program)), "path": text(program), "type_id": REGULAR,
        });
    }
    if let Some(parent) = parent {
        process["parent_process"] = json!({"pid": parent.pid, "uid": uuid(&parent.id)});
    }
    process
}

/// The class, the activity and the own fields of a use of an entity.
fn touch(
    view: &View,
    who: &ViewActivity,
    thing: &ViewEntity,
    relation: Relation,
    before: Option<&ViewEntity>,
) -> (Class, u32, Value) {
    const LOAD: u32 = 1;
    let parent = who.parent.map(|parent| &view.activities[parent]);
    let actor = json!({"process": process(who, parent)});
    if let Some(peer) = peer(thing) {
        return network(actor, relation, &peer);
    }
    let mut file = file(view, thing);
    if relation == Relation::Execute {
        let module = json!({"file": file, "load_type_id": 99, "load_type": "Linux"});
        return (MODULE, LOAD, json!({"actor": actor, "module": module}));
    }
    let mut own = json!({"actor": actor});
    if let (Relation::Rename, Some(before)) = (relation, before) {
        own["file_result"] = file;
        file = self::file(view, before);
    }
    if relation == Relation::Missing {
        own["status_id"] = FAILURE.into();
        own["status_detail"] = "No such file or directory".into();
    }
    own["file"] = file;
    (FILE, file_activity(relation), own)
}

/// `activity_id` of File System Activity.
fn file_activity(relation: Relation) -> u32 {
    match relation {
        Relation::Make => 1,
        Relation::Read | Relation::Execute | Relation::List | Relation::Link => 2,
        Relation::Write => 3,
        Relation::Delete => 4,
        Relation::Rename => 5,
        Relation::Meta => 6,
        Relation::Stat | Relation::Missing => 8,
    }
}

/// `type_id` of a regular file.
const REGULAR: u32 = 1;

fn file(view: &View, thing: &ViewEntity) -> Value {
    // `type_id` of File; 99 is another kind, which `type` names.
    let kind = match thing.kind {
        EntityKind::File => REGULAR,
        EntityKind::Directory => 2,
        EntityKind::Device => 3,
        EntityKind::Socket => 5,
        EntityKind::Pipe if thing.path.starts_with(b"/") => 6,
        EntityKind::Symlink => 7,
        EntityKind::Missing => 0,
        EntityKind::Pipe | EntityKind::Memory | EntityKind::Resource => 99,
    };
    let mut file = json!({
        "name": text(base_name(&thing.path)), "path": text(&thing.path), "type_id": kind,
    });
    if kind == 99 {
        file["type"] = thing.kind.word().into();
    }
    if let Some(ident) = thing.ident {
        file["size"] = ident.size.into();
    }
    let content = view.contents.of(thing.run, &thing.path, thing.version);
    if let Some(digest) = content.and_then(|content| content.digest) {
        file["hashes"] =
            json!([{"algorithm_id": 99, "algorithm": "BLAKE3", "value": digest.to_string()}]);
    }
    file
}

/// Traffic with another machine, or with another program by the network.
fn network(actor: Value, relation: Relation, peer: &Peer<'_>) -> (Class, u32, Value) {
    const TRAFFIC: u32 = 6;
    let (sent, received) = (relation == Relation::Write, relation == Relation::Read);
    let own = json!({
        "actor": actor,
        "dst_endpoint": {"ip": peer.host, "port": peer.port},
        "connection_info": {"direction_id": 0, "protocol_num": peer.protocol},
        "message": if sent { "sent" } else if received { "received" } else { "connected" },
    });
    (NETWORK, TRAFFIC, own)
}
