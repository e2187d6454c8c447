//! The nodes that filters took out of a graph.

use std::collections::BTreeSet;

use backstory_graph::model::{ActivityId, EntityId};

/// The nodes that filters took.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TakenNodes {
    /// Files, pipes, sockets …
    pub entities: BTreeSet<EntityId>,
    /// Processes and the activities in them.
    pub activities: BTreeSet<ActivityId>,
}
