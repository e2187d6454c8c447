//! The work of shells and launchers themselves, apart from the commands that they started.
//!
//! In: activities, edges and entities of a run. Out: the paths of the compared things that each
//! such activity read or changed. Without one, it may be a mere caller (`mere_callers`).

use std::collections::HashMap;

use backstory_eventlog::event::Bytes;
use backstory_graph::model::{Activity, Certainty, Edge, Entity, EntityKind, Relation};
use backstory_store::{ActivityKey, EntityKey, RunKey};
use backstory_workflow::steps::{is_one, names_shell};
use backstory_workflow::tools::knowledge;

use super::side_part::SidePart;

/// True for a shell, for a launcher such as `env`, and for a process between fork and exec.
pub(super) fn may_only_call(activity: &Activity) -> bool {
    let name = program(activity);
    activity.epoch == 0 || names_shell(name) || is_one(name, &knowledge().programs.launchers)
}

/// True if the activity read data or changed something. The kernel's own reads of the program do
/// not count.
pub(super) fn is_work(edge: &Edge) -> bool {
    use Relation::{Delete, Make, Read, Rename, Write};
    let is_work = matches!(edge.relation, Read | Write | Rename | Make | Delete);
    is_work && edge.certainty == Certainty::Seen
}

/// The compared things that activities worked on, by activity. Reads of pipes are left out: the
/// commands of a shell can come through one.
pub(super) fn paths(
    run: RunKey,
    entities: &[Entity],
    part: Option<&SidePart>,
    work: &[(ActivityKey, Edge)],
) -> HashMap<ActivityKey, Vec<Bytes>> {
    let mut found: HashMap<ActivityKey, Vec<Bytes>> = HashMap::new();
    if work.is_empty() {
        return found;
    }
    let is_compared = |entity: &&Entity| {
        let key = EntityKey::new(run, entity.id);
        part.is_none_or(|part| part.entities.contains(&key))
    };
    let compared = entities.iter().filter(is_compared);
    let by_id: HashMap<u32, &Entity> = compared.map(|entity| (entity.id.0, entity)).collect();
    for (activity, edge) in work {
        let Some(entity) = by_id.get(&edge.entity.0) else {
            continue;
        };
        if !(entity.kind == EntityKind::Pipe && edge.relation.is_use()) {
            let paths = found.entry(*activity).or_default();
            paths.push(entity.path.clone());
        }
    }
    found
}

/// The executed file, else the name by which it was called.
pub(super) fn program(activity: &Activity) -> &[u8] {
    let path = activity.exec_path.as_deref();
    path.or(activity.argv.first().map(|word| &**word))
        .unwrap_or_default()
}
