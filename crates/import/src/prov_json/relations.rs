//! The relations of a document.

use super::nodes::{OWN, ProvReader};
use super::terms;
use crate::description::{DescribedActivity, Flow, Span};
use crate::json::Object;
use backstory_eventlog::event::Time;
use backstory_graph::model::{EntityKind, Informed, Relation};
use backstory_graph::words;

impl ProvReader {
    /// Takes a relation. False if its kind has no place in the graph.
    pub(super) fn relation(&mut self, kind: &str, members: &Object) -> bool {
        match kind {
            "used" => self.flows(members, "prov:role", Relation::Read),
            "wasGeneratedBy" => self.flows(members, "prov:role", Relation::Write),
            "wasInvalidatedBy" => self.flows(members, "prov:role", Relation::Delete),
            "wasDerivedFrom" => self.derived(members),
            "wasInformedBy" => self.informed(members),
            "wasStartedBy" => self.started(members),
            "wasEndedBy" => self.ended(members),
            "wasInfluencedBy" => return self.influenced(members),
            "wasAssociatedWith" => self.associated(members),
            "specializationOf" => self.specialized(members),
            "wasAttributedTo" => {
                let entity = terms::text(members, "prov:entity");
                let agent = terms::text(members, "prov:agent");
                if let (Some(entity), Some(agent)) = (entity, agent) {
                    let entity = self.entity(entity);
                    self.attributions.push((entity, agent.into()));
                }
            }
            // Backstory states these beside a derivation.
            "alternateOf" if members.len() == 2 => return self.is_own_alternate(members),
            _ => return false,
        }
        true
    }

    /// A use, a generation, or an end of an entity.
    fn flows(&mut self, members: &Object, role: &str, usual: Relation) {
        let time = self.time(members, "prov:time");
        let is_possible = terms::text(members, "backstory:certainty") == Some("possible");
        let own = Span {
            start: self.time(members, "backstory:from"),
            end: self.time(members, "backstory:until"),
        };
        let span = match own {
            Span { start: None, .. } | Span { end: None, .. } if usual.is_use() => Span {
                start: time,
                end: None,
            },
            Span { start: None, .. } | Span { end: None, .. } => Span {
                start: None,
                end: time,
            },
            both => both,
        };
        let activity = terms::text(members, "prov:activity");
        let entity = terms::text(members, "prov:entity");
        let (Some(activity), Some(entity)) = (activity, entity) else {
            // PROV allows that one end is not known: then no two nodes are related.
            self.gaps.unplaced("relations with one end only");
            return;
        };
        let (activity, entity) = (self.activity(activity), self.entity(entity));
        let roles = terms::texts(members, role).into_iter();
        let mut relations: Vec<Relation> = roles
            .filter_map(|role| words::relation(&role.strip_prefix(OWN)?.replace('-', " ")))
            .collect();
        if relations.is_empty() {
            relations.push(usual);
        }
        for relation in relations {
            self.description.flow(Flow {
                activity,
                entity,
                relation,
                is_certain: !is_possible,
                span,
            });
        }
    }

    fn derived(&mut self, members: &Object) {
        let new = terms::text(members, "prov:generatedEntity");
        let old = terms::text(members, "prov:usedEntity");
        let (Some(new), Some(old)) = (new, old) else {
            self.gaps.unplaced("relations with one end only");
            return;
        };
        let (new, old) = (self.entity(new), self.entity(old));
        let types = terms::texts(members, "prov:type");
        if types.contains(&"backstory:same") {
            // One run left the version that a later one found.
            self.description.unite(old, new);
            return;
        }
        let time = self.time(members, "backstory:from");
        let activity = terms::text(members, "prov:activity").map(|one| self.activity(one));
        self.description.derive(new, old, activity, time);
    }

    fn informed(&mut self, members: &Object) {
        let informed = terms::text(members, "prov:informed");
        let informant = terms::text(members, "prov:informant");
        let (Some(informed), Some(informant)) = (informed, informant) else {
            self.gaps.unplaced("relations with one end only");
            return;
        };
        let name = format!("communication of {informant} with {informed}");
        let (to, from) = (self.activity(informed), self.activity(informant));
        let time = self.time(members, "backstory:from");
        let types = terms::texts(members, "prov:type");
        let reasons: Vec<Informed> = types
            .iter()
            .filter_map(|one| words::informed(&one.strip_prefix(OWN)?.replace('-', " ")))
            .collect();
        for why in &reasons {
            self.description.inform(from, to, *why, time);
        }
        if reasons.is_empty() && from != to {
            // PROV: some entity that the one generated was used by the other.
            let entity = self.description.entity(name.into(), EntityKind::Resource);
            let span = Span::default();
            self.description
                .happened(from, Relation::Write, entity, span);
            self.description.happened(to, Relation::Read, entity, span);
        }
    }

    fn started(&mut self, members: &Object) {
        let Some(activity) = terms::text(members, "prov:activity") else {
            self.gaps.unplaced("relations with one end only");
            return;
        };
        let activity = self.activity(activity);
        let time = self.time(members, "prov:time");
        self.describes_start(
            activity.0,
            Span {
                start: time,
                end: None,
            },
        );
        if let Some(trigger) = terms::text(members, "prov:trigger") {
            let trigger = self.entity(trigger);
            let span = Span {
                start: time,
                end: None,
            };
            self.description
                .happened(activity, Relation::Read, trigger, span);
        }
        // Backstory's own starts are communications, too.
        let is_own = terms::texts(members, "prov:role")
            .iter()
            .any(|role| role.starts_with(OWN));
        if let Some(starter) = terms::text(members, "prov:starter").filter(|_| !is_own) {
            self.starters.push((activity, starter.into(), time));
        }
    }

    fn ended(&mut self, members: &Object) {
        let Some(activity) = terms::text(members, "prov:activity") else {
            self.gaps.unplaced("relations with one end only");
            return;
        };
        let activity = self.activity(activity);
        let time = self.time(members, "prov:time");
        self.describes_start(
            activity.0,
            Span {
                start: None,
                end: time,
            },
        );
    }

    fn describes_start(&mut self, activity: u32, span: Span) {
        if let Some(DescribedActivity { span: known, .. }) =
            self.description.activities.get_mut(activity as usize)
        {
            known.join(span);
        }
    }

    /// A change of metadata, as backstory writes it. Any other influence is not decoded.
    fn influenced(&mut self, members: &Object) -> bool {
        let types = terms::texts(members, "prov:type");
        let relation = types
            .iter()
            .find_map(|one| words::relation(&one.strip_prefix(OWN)?.replace('-', " ")));
        let ends = (
            terms::text(members, "prov:influencee"),
            terms::text(members, "prov:influencer"),
        );
        let (Some(relation), (Some(entity), Some(activity))) = (relation, ends) else {
            return false;
        };
        let (activity, entity) = (self.activity(activity), self.entity(entity));
        let mut moment = |name| -> Option<Time> { self.time(members, name) };
        let span = Span {
            start: moment("backstory:from"),
            end: moment("backstory:until"),
        };
        let is_certain = terms::text(members, "backstory:certainty") != Some("possible");
        self.description.flow(Flow {
            activity,
            entity,
            relation,
            is_certain,
            span,
        });
        true
    }

    fn associated(&mut self, members: &Object) {
        let activity = terms::text(members, "prov:activity");
        let agent = terms::text(members, "prov:agent");
        if let (Some(activity), Some(agent)) = (activity, agent) {
            let activity = self.activity(activity);
            self.associations.push((activity, agent.into()));
        }
    }

    fn specialized(&mut self, members: &Object) {
        let special = terms::text(members, "prov:specificEntity");
        let general = terms::text(members, "prov:generalEntity");
        if let (Some(special), Some(general)) = (special, general) {
            let special = self.entity(special);
            self.specializations.push((special, general.into()));
        }
    }

    /// True if both ends are entities of backstory. A derivation states the same.
    fn is_own_alternate(&self, members: &Object) -> bool {
        ["prov:alternate1", "prov:alternate2"].iter().all(|name| {
            let end = terms::text(members, name);
            end.is_some_and(|end| end.starts_with("run:"))
        })
    }
}
