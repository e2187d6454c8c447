//! Completes what could not be known before the end of a document: names without a statement, and
//! the meaning of agents.

use super::nodes::{MOST_NOTES, ProvReader, alone};
use crate::description::{
    ActivityNumber, Description, DescriptionGaps, EntityNumber, Locations, file_path,
};
use backstory_graph::lineage;
use backstory_graph::model::{EntityKind, Informed};
use std::collections::HashMap;

/// The beginnings of URIs that name a content by its digest.
const CONTENT: [&str; 4] = ["urn:hash::", "urn:hash:", "nih:", "ni:"];

impl ProvReader {
    /// Some tools name an agent as the starter: a person, or an engine that is an activity, too.
    fn finish_starters(&mut self) {
        for (activity, starter, time) in std::mem::take(&mut self.starters) {
            if self.agents.contains_key(&starter) && !self.activities.contains_key(&starter) {
                self.associations.push((activity, starter));
                continue;
            }
            let from = self.activity(&starter);
            let is_unstated = self.description.activities[from.0 as usize]
                .notes
                .is_empty();
            if let Some(name) = self.agents.get(&starter).filter(|_| is_unstated) {
                self.description.activity_mut(from).words = alone(name);
            }
            self.description
                .inform(from, activity, Informed::Fork, time);
        }
    }

    /// PROV: an agent of an entity is an agent of the activity that generated it.
    fn finish_attributions(&mut self) {
        let attributions = std::mem::take(&mut self.attributions);
        if attributions.is_empty() {
            return;
        }
        let made = self.description.flows.iter();
        let made = made.filter(|flow| lineage::generates(flow.relation));
        let maker: HashMap<EntityNumber, ActivityNumber> =
            made.map(|flow| (flow.entity, flow.activity)).collect();
        for (entity, agent) in attributions {
            match maker.get(&entity) {
                Some(activity) => self.associations.push((*activity, agent)),
                None => self.gaps.unplaced("wasAttributedTo"),
            }
        }
    }

    /// CWLProv names each file twice: by its digest, and in each place of use. Uses of one content
    /// by one name are the same entity.
    fn finish_specializations(&mut self) {
        let mut first: HashMap<(Box<str>, Box<[u8]>), EntityNumber> = HashMap::new();
        for (entity, general) in std::mem::take(&mut self.specializations) {
            let is_content = CONTENT
                .iter()
                .any(|scheme| self.expanded(&general).starts_with(scheme));
            let path = self.description.entities[entity.0 as usize].path.clone();
            if !is_content {
                self.gaps.unplaced("specializationOf");
            } else if path.starts_with(b"/") {
                let known = *first.entry((general, path)).or_insert(entity);
                self.description.unite(known, entity);
            }
        }
    }

    /// All that was collected.
    pub(super) fn finish(mut self) -> (Description, Locations, DescriptionGaps) {
        self.finish_starters();
        self.finish_attributions();
        for (activity, agent) in std::mem::take(&mut self.associations) {
            let name = self.agents.get(&agent).unwrap_or(&agent);
            let note = (b"agent".to_vec(), name.as_bytes().to_vec());
            let notes = &mut self.description.activity_mut(activity).notes;
            if notes.len() < MOST_NOTES && !notes.contains(&note) {
                notes.push(note);
            }
        }
        self.finish_specializations();
        // Entities that were never stated have the names that the prefixes give them.
        let unstated: Vec<(EntityNumber, String)> = self
            .entities
            .iter()
            .filter(|(id, number)| {
                *self.description.entities[number.0 as usize].path == *id.as_bytes()
            })
            .map(|(id, number)| (*number, self.expanded(id)))
            .collect();
        for (number, uri) in unstated {
            let path = file_path(uri.as_bytes()).and_then(|path| self.locations.path(&path));
            let entity = self.description.entity_mut(number);
            match path {
                Some(path) => (entity.path, entity.kind) = (path.into(), EntityKind::File),
                None => entity.path = uri.into_bytes().into(),
            }
        }
        (self.description, self.locations, self.gaps)
    }
}
