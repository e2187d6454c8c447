//! Marks the links of a view by bytes, where the byte engine followed a run.

use backstory_graph::model::{EntityKind, Informed, Relation};
use backstory_query::answer::Flow;
use backstory_query::{ByteLink, ByteMarks, ByteNode, LinkKind, RefinedRuns};
use backstory_store::EntityKey;

use super::{Endpoint, View, ViewEntity};
use crate::Result;

impl View {
    /// Marks the inputs that gave the results of the view no byte, and those that gave them some.
    /// `versions` has the version that each entity is.
    pub(super) fn mark_bytes(
        &mut self,
        runs: &mut RefinedRuns<'_>,
        versions: &[EntityKey],
    ) -> Result<()> {
        if runs.is_empty() {
            return Ok(());
        }
        let count = self.entities.len();
        let node = |end: Endpoint| match end {
            Endpoint::Entity(at) => at,
            Endpoint::Activity(at) => count + at,
        };
        let links: Vec<ByteLink> = self
            .links
            .iter()
            .map(|link| ByteLink {
                from: node(link.from),
                to: node(link.to),
                kind: match link.flow {
                    Flow::Used(Relation::Read) => LinkKind::Read,
                    Flow::Used(Relation::Execute) => LinkKind::Execute,
                    Flow::Informed(Informed::Wait | Informed::Signal) => LinkKind::Signal,
                    _ => LinkKind::Other,
                },
            })
            .collect();
        let is_own = |entity: &ViewEntity| entity.kind == EntityKind::File && !entity.tool;
        let files = self.entities.iter().zip(versions);
        let files = files.map(|(entity, version)| match is_own(entity) {
            true => ByteNode::File(*version, &entity.path),
            false => ByteNode::Other,
        });
        let activities = self.activities.iter().map(|_| ByteNode::Activity);
        let nodes: Vec<ByteNode<'_>> = files.chain(activities).collect();
        let marks = ByteMarks::of(runs, &nodes, &links, usize::MAX)?;
        self.warnings.extend(marks.unreadable);
        for (link, mark) in self.links.iter_mut().zip(marks.uses) {
            link.bytes = mark;
        }
        for (entity, none_of) in self.entities.iter_mut().zip(marks.none_of) {
            entity.no_byte_of = none_of;
        }
        Ok(())
    }
}
