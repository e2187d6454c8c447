//! The facts about a node that conditions, expressions and plug-ins see.
//!
//! In: a graph. Out: for each file the relations and programs, and one JSON object for each node,
//! whose fields `docs/formats/filters.md` lists. Bytes that are not UTF-8 are replaced there.

use backstory_ordering::SmallSort;
use std::collections::BTreeMap;

use backstory_eventlog::event::Bytes;
use backstory_graph::memory::MemorySink;
use backstory_graph::model::{Activity, Entity, EntityId, Relation};
use serde_json::{Value, json};

use crate::fields::{Field, FieldType};

/// The fields of a file.
pub const FILE_FIELDS: [Field; 7] = [
    ("path", FieldType::Text),
    ("kind", FieldType::Text),
    ("version", FieldType::Number),
    ("last", FieldType::Bool),
    ("size", FieldType::Number),
    ("relations", FieldType::Texts),
    ("programs", FieldType::Texts),
];

/// The fields of a process.
pub const PROCESS_FIELDS: [Field; 5] = [
    ("program", FieldType::Text),
    ("arguments", FieldType::Texts),
    ("directory", FieldType::Text),
    ("pid", FieldType::Number),
    ("exit", FieldType::NumberOrNull),
];

/// The uses of one entity.
#[derive(Debug, Clone, Default)]
pub(crate) struct Uses {
    pub relations: Vec<Relation>,
    /// The programs, each once. `None` for a process whose program is unknown.
    pub programs: Vec<Option<Bytes>>,
}

/// The uses of all entities that processes are related to.
#[derive(Debug, Default)]
pub(crate) struct UsesOfEntities(BTreeMap<EntityId, Uses>);

impl UsesOfEntities {
    pub fn of(graph: &MemorySink) -> UsesOfEntities {
        let mut all: BTreeMap<EntityId, Uses> = BTreeMap::new();
        let program = |id| -> Option<Bytes> {
            let activity: &Activity = graph.activities.get(&id)?;
            activity.exec_path.clone()
        };
        for edge in &graph.edges {
            let uses = all.entry(edge.entity).or_default();
            if !uses.relations.contains(&edge.relation) {
                uses.relations.push(edge.relation);
            }
            let program = program(edge.activity);
            if !uses.programs.contains(&program) {
                uses.programs.push(program);
            }
        }
        all.values_mut()
            .for_each(|uses| uses.relations.sort_small());
        UsesOfEntities(all)
    }

    pub fn of_entity(&self, id: EntityId) -> Option<&Uses> {
        self.0.get(&id)
    }
}

fn text(bytes: &[u8]) -> Value {
    String::from_utf8_lossy(bytes).into_owned().into()
}

/// The fields of a file.
pub(crate) fn of_file(entity: &Entity, uses: Option<&Uses>) -> Value {
    let relations = uses
        .map(|uses| uses.relations.as_slice())
        .unwrap_or_default();
    let relations: Vec<&str> = relations.iter().map(|one| one.words().word).collect();
    let programs = uses
        .map(|uses| uses.programs.as_slice())
        .unwrap_or_default();
    let programs: Vec<Value> = programs.iter().flatten().map(|path| text(path)).collect();
    json!({
        "path": text(&entity.path),
        "kind": entity.kind.word(),
        "version": entity.version,
        "last": entity.last,
        "size": entity.ident.map_or(-1, |ident| ident.size),
        "relations": relations,
        "programs": programs,
    })
}

/// The fields of a process.
pub(crate) fn of_process(activity: &Activity) -> Value {
    let arguments: Vec<Value> = activity
        .argv
        .iter()
        .map(|argument| text(argument))
        .collect();
    json!({
        "program": text(activity.exec_path.as_deref().unwrap_or_default()),
        "arguments": arguments,
        "directory": text(&activity.cwd),
        "pid": activity.pid,
        "exit": activity.exit,
    })
}
