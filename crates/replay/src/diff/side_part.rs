//! The part of the runs that a side compares, where it is the ancestry of a version.

use std::collections::HashSet;

use backstory_query::answer::{Lineage, Node};
use backstory_store::{ActivityKey, EntityKey};

/// The nodes of an ancestry.
pub(super) struct SidePart {
    pub(super) activities: HashSet<ActivityKey>,
    pub(super) entities: HashSet<EntityKey>,
}

impl SidePart {
    pub(super) fn of(lineage: &Lineage) -> SidePart {
        let mut part = SidePart {
            activities: HashSet::new(),
            entities: HashSet::new(),
        };
        for node in &lineage.nodes {
            match node {
                Node::Activity { id, .. } => drop(part.activities.insert(ActivityKey(*id))),
                Node::Entity { id, .. } => drop(part.entities.insert(EntityKey(*id))),
            }
        }
        part
    }
}
