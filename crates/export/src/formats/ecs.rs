//! ECS, the Elastic Common Schema, version 9.4: one event a line.
//!
//! Files, programs, libraries and connections have events. Elasticsearch indexes them without a
//! mapping of one's own. `labels` has facts for which the schema has no field.

use std::collections::HashMap;

use backstory_graph::model::{Certainty, EntityKind, Relation};
use backstory_vocabulary::Word;
use serde_json::{Value, json};

use super::acts::{Act, ActKind, Peer, acts, base_name, former_names, is_own_program, peer};
use super::notation::{self, moment, text, uuid, with};
use crate::family::Family;
use crate::format::{Format, Target};
use crate::view::{Level, ViewActivity, ViewEntity};
use crate::{Result, View};

/// `ecs`
pub struct Ecs;

/// The version of the schema.
const VERSION: &str = "9.4.0";

impl Format for Ecs {
    fn name(&self) -> &'static str {
        "ecs"
    }
    fn about(&self) -> &'static str {
        "events of the Elastic Common Schema 9.4, one a line"
    }
    fn family(&self) -> Family {
        Family::Standard
    }
    fn default_level(&self) -> Level {
        Level::All
    }
    fn proven_by(&self) -> &'static str {
        "the schema's list of fields"
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

/// The fields `event.category`, `event.type`, `event.action` and `event.outcome`.
struct Sort {
    category: &'static str,
    kind: &'static str,
    action: &'static str,
    outcome: &'static str,
}

/// The event of an act. `None` for an act that another event includes.
fn event(view: &View, act: &Act<'_>, at: usize, former: &HashMap<usize, usize>) -> Option<Value> {
    let (who, sort, end, certainty, own) = match &act.kind {
        ActKind::Begin(who) => (*who, program("start"), act.time, Certainty::Seen, json!({})),
        ActKind::End(who) => (*who, program("end"), act.time, Certainty::Seen, json!({})),
        ActKind::Touch(who, what, relation, link) => {
            let thing = &view.entities[*what];
            if is_own_program(&view.activities[*who], thing, *relation) {
                return None;
            }
            let before = former.get(what).map(|from| &view.entities[*from]);
            let (sort, own) = touch(thing, *relation, before);
            (*who, sort, link.interval.end, link.certainty, own)
        }
        ActKind::Flow(_) => return None,
    };
    let activity = &view.activities[who];
    let mut labels = json!({
        "run": view.runs[activity.run].summary.id,
        "certainty": certainty.word(),
    });
    if let Some(own) = own.get("labels") {
        labels = with(labels, own.clone());
    }
    let common = json!({
        "@timestamp": moment(act.time),
        "ecs": {"version": VERSION},
        "event": {
            "id": uuid(&format!("event/{}/{at}", view.subject)),
            "kind": "event",
            "category": [sort.category],
            "type": [sort.kind],
            "action": sort.action,
            "outcome": sort.outcome,
            "module": notation::TOOL,
            "dataset": format!("{}.{}", notation::TOOL, sort.category),
            "provider": notation::TOOL,
            "sequence": at,
            "start": moment(act.time),
            "end": moment(end),
        },
        "host": host(view, activity.run),
        "process": process(view, activity, matches!(act.kind, ActKind::End(_))),
    });
    Some(with(with(common, own), json!({"labels": labels})))
}

fn program(kind: &'static str) -> Sort {
    Sort {
        category: "process",
        kind,
        action: if kind == "start" { "exec" } else { "exit" },
        outcome: "success",
    }
}

fn host(view: &View, run: usize) -> Value {
    let machine = &view.runs[run].machine;
    json!({
        "hostname": machine.host,
        "os": {"type": "linux", "full": machine.distribution, "kernel": machine.kernel},
    })
}

fn process(view: &View, activity: &ViewActivity, ended: bool) -> Value {
    let mut process = identity(activity);
    process["start"] = moment(activity.interval.start).into();
    process["working_directory"] = text(&activity.cwd).into();
    let args: Vec<String> = activity.argv.iter().map(|word| text(word)).collect();
    process["args_count"] = args.len().into();
    process["args"] = args.into();
    if let Some(parent) = activity.parent {
        process["parent"] = identity(&view.activities[parent]);
    }
    if ended {
        process["end"] = moment(activity.interval.end).into();
        // As a shell counts the end by a signal.
        let by_signal = activity.signal.map(|signal| 128 + signal);
        if let Some(code) = activity.exit.or(by_signal) {
            process["exit_code"] = code.into();
        }
    }
    process
}

/// The fields that a process and its parent have.
fn identity(activity: &ViewActivity) -> Value {
    let mut process = json!({
        "pid": activity.pid,
        "entity_id": uuid(&activity.id),
        "command_line": activity.label,
    });
    if let Some(program) = &activity.program {
        process["name"] = text(base_name(program)).into();
        process["executable"] = text(program).into();
    }
    process
}

/// The kind of event and the own fields of a use of an entity.
fn touch(thing: &ViewEntity, relation: Relation, before: Option<&ViewEntity>) -> (Sort, Value) {
    if let Some(peer) = peer(thing) {
        return connection(relation, &peer);
    }
    let path = text(&thing.path);
    if relation == Relation::Execute {
        let sort = Sort {
            category: "library",
            kind: "start",
            action: "load",
            outcome: "success",
        };
        return (
            sort,
            json!({"dll": {"name": text(base_name(&thing.path)), "path": path}}),
        );
    }
    let mut own = json!({
        "file": file(thing, path),
        "labels": {"entity": thing.id, "version": thing.version.to_string()},
    });
    if let Some(before) = before {
        own["labels"]["original_path"] = text(&before.path).into();
    }
    (file_sort(relation), own)
}

fn file_sort(relation: Relation) -> Sort {
    let (kind, outcome) = match relation {
        Relation::Read | Relation::Execute | Relation::List | Relation::Link | Relation::Stat => {
            ("access", "success")
        }
        Relation::Missing => ("access", "failure"),
        Relation::Make => ("creation", "success"),
        Relation::Delete => ("deletion", "success"),
        Relation::Write | Relation::Rename | Relation::Meta => ("change", "success"),
    };
    Sort {
        category: "file",
        kind,
        action: relation.words().word,
        outcome,
    }
}

fn file(thing: &ViewEntity, path: String) -> Value {
    let kind = match thing.kind {
        EntityKind::Directory => "dir",
        kind => kind.word(),
    };
    let mut file = json!({"name": text(base_name(&thing.path)), "path": path, "type": kind});
    if let Some(ident) = thing.ident {
        file["size"] = ident.size.into();
        file["inode"] = ident.ino.to_string().into();
    }
    file
}

/// Traffic with another machine, or with another program by the network.
fn connection(relation: Relation, peer: &Peer<'_>) -> (Sort, Value) {
    let sort = Sort {
        category: "network",
        kind: "connection",
        action: match relation {
            Relation::Read => "receive",
            Relation::Write => "send",
            _ => "connect",
        },
        outcome: "success",
    };
    let own = json!({
        "destination": {"address": peer.host, "ip": peer.host, "port": peer.port},
        "network": {
            "transport": if peer.protocol == 6 { "tcp" } else { "udp" },
            "type": if peer.host.contains(':') { "ipv6" } else { "ipv4" },
            "iana_number": peer.protocol.to_string(),
        },
    });
    (sort, own)
}
