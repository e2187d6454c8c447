//! Finds the activity behind a derivation that names none.
//!
//! An entity has one generation in PROV. So the activity that made the entity ended the derivation.
//! If no activity is known, one with the name `derivation` stands for it.

use super::statements::{ActivityNumber, DescribedActivity, Description, Span};
use backstory_graph::lineage;
use backstory_graph::model::Relation;

/// Gives each derivation its activity.
pub(super) fn complete(description: &mut Description) {
    let mut maker: Vec<Option<ActivityNumber>> = vec![None; description.entities.len()];
    for flow in &description.flows {
        if lineage::generates(flow.relation) {
            maker[flow.entity.0 as usize].get_or_insert(flow.activity);
        }
    }
    let derivations = std::mem::take(&mut description.derivations);
    for mut one in derivations {
        one.activity = one.activity.or(maker[one.entity.0 as usize]);
        if one.activity.is_none() {
            let span = Span {
                start: one.time,
                end: one.time,
            };
            let unnamed = description.activity(DescribedActivity {
                words: vec![b"derivation".to_vec()],
                span,
                is_part: true,
                ..DescribedActivity::default()
            });
            description.happened(unnamed, Relation::Write, one.entity, span);
            description.happened(unnamed, Relation::Read, one.from, span);
            maker[one.entity.0 as usize] = Some(unnamed);
            continue;
        }
        description.derivations.push(one);
    }
}
