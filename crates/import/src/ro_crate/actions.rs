//! Makes activities and relations of a crate's actions.

use super::nodes::{CrateAction, CrateReader, CrateThing, OrganizingAction};
use crate::description::{
    ActivityNumber, DescribedActivity, Description, DescriptionGaps, EntityNumber, Flow, Locations,
    Span,
};
use backstory_eventlog::event::Time;
use backstory_eventlog::job_rank::{JobRank, RANK_TERM};
use backstory_graph::model::{EntityKind, Informed, Relation};
use std::collections::{HashMap, HashSet};

/// The nodes that an action used, or those that it made.
type ActionSide = fn(&CrateAction) -> &Vec<Box<str>>;

impl CrateReader {
    /// All that was collected.
    pub(super) fn finish(mut self) -> (Description, Locations, DescriptionGaps) {
        let mut description = Description::default();
        let actions = std::mem::take(&mut self.actions);
        let mut numbers: HashMap<&str, ActivityNumber> = HashMap::new();
        for (id, action) in &actions {
            let activity = self.activity(action);
            let number = description.activity(activity);
            numbers.insert(id, number);
        }
        let children = self.start_steps(&numbers, &mut description);
        let jobs = self.jobs();
        for (id, action) in &actions {
            let rank = self.term(&action.identifiers, RANK_TERM);
            let place = jobs.get(&**id).map(|job| JobRank {
                rank: rank.and_then(|rank| rank.parse().ok()),
                ..job.clone()
            });
            description.activity_mut(numbers[&**id]).job_rank = place;
        }
        let mut entities = HashMap::new();
        for (id, action) in &actions {
            let activity = numbers[&**id];
            // A workflow as a whole repeats what its steps state.
            let steps = children.get(&activity);
            let of_steps = |wanted: ActionSide| -> HashSet<&str> {
                let steps = actions.iter().filter(|(id, _)| {
                    let step = numbers[&**id];
                    steps.is_some_and(|steps| steps.contains(&step))
                });
                steps
                    .flat_map(|(_, step)| wanted(step))
                    .map(|id| &**id)
                    .collect()
            };
            let sides: [(Relation, ActionSide); 2] = [
                (Relation::Read, |action| &action.objects),
                (Relation::Write, |action| &action.results),
            ];
            for (relation, wanted) in sides {
                let stated = match steps {
                    Some(_) => of_steps(wanted),
                    None => HashSet::new(),
                };
                for id in wanted(action).iter().filter(|id| !stated.contains(&***id)) {
                    let failed = action.notes.iter().any(|(key, _)| *key == "state");
                    let flow = CrateFlow {
                        activity,
                        relation,
                        is_certain: relation.is_use() || !failed,
                    };
                    self.relate(id, flow, &mut description, &mut entities);
                }
            }
        }
        (description, self.locations, self.gaps)
    }

    fn activity(&mut self, action: &CrateAction) -> DescribedActivity {
        let (start, end) = (
            self.time(action.start.as_deref()),
            self.time(action.end.as_deref()),
        );
        let named = |ids: &[Box<str>]| -> Vec<String> {
            ids.iter()
                .map(|id| self.names.get(id).unwrap_or(id).to_string())
                .collect()
        };
        let mut notes: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        let mut note = |key: &str, value: &str| {
            notes.push((key.as_bytes().to_vec(), value.as_bytes().to_vec()));
        };
        let command = action.command.as_ref().filter(|_| self.is_own);
        if command.is_none() {
            named(&action.instruments)
                .iter()
                .for_each(|name| note("instrument", name));
            named(&action.agents)
                .iter()
                .for_each(|name| note("agent", name));
            action
                .command
                .iter()
                .for_each(|text| note("description", text));
        }
        action
            .notes
            .iter()
            .for_each(|(key, value)| note(key, value));
        DescribedActivity {
            words: vec![command.unwrap_or(&action.name).as_bytes().to_vec()],
            span: Span { start, end },
            is_part: command.is_none(),
            notes,
            ..DescribedActivity::default()
        }
    }

    fn time(&mut self, text: Option<&str>) -> Option<Time> {
        let time = crate::prov_json::time(text?);
        self.gaps.unread_times += usize::from(time.is_none());
        time
    }

    /// The action of a workflow as a whole started its steps. Returns the steps of each.
    fn start_steps(
        &mut self,
        numbers: &HashMap<&str, ActivityNumber>,
        description: &mut Description,
    ) -> HashMap<ActivityNumber, HashSet<ActivityNumber>> {
        let mut children: HashMap<ActivityNumber, HashSet<ActivityNumber>> = HashMap::new();
        for organizing in self.organizing.iter().filter(|one| self.job(one).is_none()) {
            let mut results = organizing.results.iter();
            let whole = results.find_map(|id| numbers.get(&**id));
            let steps = organizing
                .controls
                .iter()
                .filter_map(|id| self.controls.get(id))
                .flatten();
            for step in steps.filter_map(|id| numbers.get(&**id)) {
                if let Some(whole) = whole.filter(|whole| *whole != step) {
                    description.inform(*whole, *step, Informed::Fork, None);
                    children.entry(*whole).or_default().insert(*step);
                }
            }
        }
        children
    }

    /// The value of one of backstory's terms among identifiers.
    fn term(&self, identifiers: &[Box<str>], name: &str) -> Option<String> {
        let mut stated = identifiers.iter().filter_map(|id| self.terms.get(id));
        let (_, value) = stated.find(|(term, _)| **term == *name)?;
        Some(value.clone())
    }

    /// The job of a launcher of parallel work that an action organizes, as backstory writes it.
    fn job(&self, organizing: &OrganizingAction) -> Option<JobRank> {
        JobRank::of_terms(|name| self.term(&organizing.identifiers, name))
    }

    /// The jobs of actions that such launchers started.
    fn jobs(&self) -> HashMap<&str, JobRank> {
        let mut jobs = HashMap::new();
        for organizing in &self.organizing {
            if let Some(job) = self.job(organizing) {
                let results = organizing.results.iter();
                jobs.extend(results.map(|id| (&**id, job.clone())));
            }
        }
        jobs
    }

    /// Relates an activity and a node that it used or made. Of a collection, all parts count.
    fn relate(
        &mut self,
        id: &str,
        flow: CrateFlow,
        description: &mut Description,
        entities: &mut HashMap<Box<str>, EntityNumber>,
    ) {
        let mut waiting: Vec<Box<str>> = vec![id.into()];
        let mut met: HashSet<Box<str>> = HashSet::new();
        while let Some(id) = waiting.pop() {
            if !met.insert(id.clone()) {
                continue;
            }
            let thing = match self.things.get(&id) {
                Some(thing) => thing.clone(),
                // A thing that the crate only names.
                None => self.thing(&id, None, EntityKind::File),
            };
            match thing {
                CrateThing::Value(name, value) => {
                    let note = (name.as_bytes().to_vec(), value.as_bytes().to_vec());
                    description.activity_mut(flow.activity).notes.push(note);
                }
                CrateThing::Collection(parts) => waiting.extend(parts),
                CrateThing::Entity(path, kind) => {
                    let entity = *entities
                        .entry(id)
                        .or_insert_with(|| description.entity(path.to_vec(), kind));
                    description.flow(Flow {
                        activity: flow.activity,
                        entity,
                        relation: flow.relation,
                        is_certain: flow.is_certain,
                        span: Span::default(),
                    });
                }
            }
        }
    }
}

/// A relation of an activity, whose entity is found later.
#[derive(Debug, Clone, Copy)]
struct CrateFlow {
    activity: ActivityNumber,
    relation: Relation,
    is_certain: bool,
}
