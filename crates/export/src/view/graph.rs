//! Fills the graph of a view, at its level of detail, from the selected recordings.
//!
//! Invariant: every activity and edge of the view belongs to the selection.

use std::collections::{BTreeSet, HashMap};

use backstory_graph::marks::Notes;
use backstory_graph::model::{Certainty, Entity, EntityId, Interval, Relation};
use backstory_query::Globs;
use backstory_query::answer::Flow;
use backstory_store::{ActivityKey, EntityKey};
use backstory_workflow::paths::is_tool;
use backstory_workflow::recording::Recording;
use backstory_workflow::selection::NodeKey;
use backstory_workflow::{Selection, shell};

use super::{Endpoint, Level, View, ViewActivity, ViewEntity, ViewLink};

/// Fills a view. The maps lead from a recording's number and an id in it to an index of the view.
pub struct GraphBuilder<'b> {
    view: &'b mut View,
    selection: &'b Selection,
    recordings: &'b [Recording],
    exclude: Globs,
    activities: HashMap<(usize, usize), usize>,
    entities: HashMap<(usize, usize), usize>,
    links: HashMap<(Endpoint, Endpoint, Flow), usize>,
}

impl<'b> GraphBuilder<'b> {
    /// Prepares to fill `view`, which has its workflow already. Files that match `exclude` are left
    /// out.
    pub fn new(view: &'b mut View, selection: &'b Selection, exclude: Globs) -> Self {
        GraphBuilder {
            view,
            selection,
            recordings: &selection.recordings,
            exclude,
            activities: HashMap::new(),
            entities: HashMap::new(),
            links: HashMap::new(),
        }
    }

    /// Adds the activities, then the edges between them and the entities. Returns the version that
    /// each entity of the view is.
    pub fn build(mut self) -> Vec<EntityKey> {
        self.activities();
        for run in 0..self.recordings.len() {
            self.edges(run);
            if self.view.level != Level::Command {
                self.between(run);
            }
        }
        self.equal_contents();
        let mut versions = vec![EntityKey(0); self.view.entities.len()];
        for (&(run, at), &index) in &self.entities {
            versions[index] = EntityKey::new(self.recordings[run].key, EntityId(at as u32));
        }
        versions
    }

    /// Adds the links that join runs by content alone.
    fn equal_contents(&mut self) {
        let numbers = self.recordings.iter().enumerate();
        let numbers: HashMap<_, _> = numbers.map(|(at, run)| (run.key, at)).collect();
        for (from, to) in self.selection.equal_contents() {
            let known = |key: EntityKey| {
                let run = *numbers.get(&key.run())?;
                self.entities.get(&(run, key.local().0 as usize)).copied()
            };
            if let (Some(from), Some(to)) = (known(from), known(to)) {
                let ident = self.view.entities[to].ident;
                let time = ident.map_or(0, |ident| ident.mtime);
                let interval = Interval {
                    start: time,
                    end: time,
                };
                let (from, to) = (Endpoint::Entity(from), Endpoint::Entity(to));
                self.link(from, to, Flow::Alike, Certainty::Seen, interval);
            }
        }
    }

    fn activities(&mut self) {
        if self.view.level == Level::Command {
            for step in 0..self.view.workflow.steps.len() {
                self.add_step(step);
            }
            return;
        }
        let mut steps = HashMap::new();
        for (at, step) in self.view.workflow.steps.iter().enumerate() {
            steps.extend(step.members.iter().map(|&member| (member, at)));
        }
        for (run, recording) in self.recordings.iter().enumerate() {
            for at in 0..recording.activities.len() {
                let key = ActivityKey::new(recording.key, recording.activities[at].id);
                let wanted = self.selection.has_activity(key);
                let bare = recording.activities[at].epoch == 0;
                if wanted
                    && (self.view.level == Level::All || !bare || self.did_something(recording, at))
                {
                    let index = self.view.activities.len();
                    self.activities.insert((run, at), index);
                    let activity = activity(recording, run, at, steps.get(&(run, at)).copied());
                    self.view.activities.push(activity);
                }
            }
        }
        for (&(run, at), &index) in &self.activities {
            let mut above = self.recordings[run].ancestors(at);
            self.view.activities[index].parent =
                above.find_map(|above| self.activities.get(&(run, above)).copied());
        }
        self.ranks_begin();
    }

    /// Leaves the place in a job to the first activity that has it.
    fn ranks_begin(&mut self) {
        let all = &self.view.activities;
        let goes_on = |one: &ViewActivity| {
            let parent = one.parent.map(|parent| &all[parent]);
            parent.is_some_and(|parent| parent.job_rank == one.job_rank)
        };
        let going_on: Vec<bool> = all.iter().map(goes_on).collect();
        for (one, goes_on) in self.view.activities.iter_mut().zip(going_on) {
            one.job_rank.take_if(|_| goes_on);
        }
    }

    /// True if the activity moved data of a file that belongs to no tool.
    fn did_something(&self, recording: &Recording, at: usize) -> bool {
        recording.edges[at].iter().any(|edge| {
            let moved = matches!(
                edge.relation,
                Relation::Read | Relation::Write | Relation::Rename
            );
            moved && !is_tool(&recording.entity(edge.entity).path)
        })
    }

    /// Adds a step of the workflow as one activity.
    fn add_step(&mut self, at: usize) {
        let step = &self.view.workflow.steps[at];
        let recording = &self.recordings[step.run];
        let index = self.view.activities.len();
        for &member in &step.members {
            self.activities.insert(member, index);
        }
        let mut notes = Notes::default();
        for &(_, member) in &step.members {
            notes.extend(recording.marked.notes(member));
        }
        let (_, root) = step.members[0];
        let first = &recording.activities[root];
        let lines: Vec<String> = step
            .lines
            .iter()
            .map(|line| line.shell(&line.cwd))
            .collect();
        let alone = step.lines.len() == 1 && !lines[0].contains(" | ");
        self.view.activities.push(ViewActivity {
            id: format!("{}/{}", recording.details.summary.id, step.name),
            run: step.run,
            label: lines.join(" && "),
            program: first.exec_path.clone().filter(|_| alone),
            argv: if alone {
                first.argv.clone()
            } else {
                Vec::new()
            },
            cwd: step.lines[0].cwd.clone(),
            env_set: recording.environment(root).0,
            interval: Interval {
                start: step.start,
                end: step.end,
            },
            exit: step.lines.last().map(|line| line.exit),
            signal: None,
            pid: first.pid,
            epoch: first.epoch,
            parent: None,
            step: Some(at),
            is_part: false,
            notes,
            job_rank: self.view.step_ranks[at].clone(),
        });
    }

    /// True if the view's level shows an edge of this relation to this entity.
    fn shows(
        &self,
        run: usize,
        at: usize,
        index: usize,
        entity: &Entity,
        relation: Relation,
    ) -> bool {
        if self.exclude.matches(&entity.path) {
            return false;
        }
        match self.view.level {
            Level::All => true,
            Level::Process => {
                let moves = matches!(
                    relation,
                    Relation::Read
                        | Relation::Execute
                        | Relation::Write
                        | Relation::Rename
                        | Relation::Make
                        | Relation::Delete
                );
                moves && !is_tool(&entity.path)
            }
            Level::Command => {
                let step = &self.view.workflow.steps[index];
                debug_assert!(step.members.contains(&(run, at)));
                match relation {
                    Relation::Read | Relation::Execute => step.inputs.contains(&entity.path),
                    Relation::Write | Relation::Rename | Relation::Make => {
                        step.outputs.contains(&entity.path)
                    }
                    _ => false,
                }
            }
        }
    }

    /// Adds the edges of a run between the activities that the view has and entities.
    fn edges(&mut self, run: usize) {
        let recording = &self.recordings[run];
        for at in 0..recording.activities.len() {
            let Some(&index) = self.activities.get(&(run, at)) else {
                continue;
            };
            for edge in &recording.edges[at] {
                let entity = recording.entity(edge.entity);
                if !self.shows(run, at, index, entity, edge.relation) {
                    continue;
                }
                let flow = match edge.relation.is_use() {
                    true => Flow::Used(edge.relation),
                    false => Flow::Generated(edge.relation),
                };
                let (who, what) = (
                    NodeKey::Activity(ActivityKey::new(recording.key, recording.activities[at].id)),
                    NodeKey::Entity(EntityKey::new(recording.key, edge.entity)),
                );
                let (from, to) = if edge.relation.is_use() {
                    (what, who)
                } else {
                    (who, what)
                };
                // A step is shown whole: it would not run without its other files.
                let whole = self.view.level == Level::Command;
                if !whole && !self.selection.has_link(from, to, flow) {
                    continue;
                }
                let what = Endpoint::Entity(self.entity(run, edge.entity.0 as usize));
                let who = Endpoint::Activity(index);
                let (from, to) = if edge.relation.is_use() {
                    (what, who)
                } else {
                    (who, what)
                };
                self.link(from, to, flow, edge.certainty, edge.interval);
            }
        }
    }

    /// Adds a link, or extends the interval of the one that is there.
    fn link(
        &mut self,
        from: Endpoint,
        to: Endpoint,
        flow: Flow,
        certainty: Certainty,
        interval: Interval,
    ) {
        if let Some(&known) = self.links.get(&(from, to, flow)) {
            let link = &mut self.view.links[known];
            link.interval.start = link.interval.start.min(interval.start);
            link.interval.end = link.interval.end.max(interval.end);
            link.certainty = link.certainty.max(certainty);
            return;
        }
        self.links.insert((from, to, flow), self.view.links.len());
        self.view.links.push(ViewLink {
            from,
            to,
            flow,
            certainty,
            interval,
            bytes: None,
        });
    }

    /// The index of an entity in the view, which gets it on first use.
    fn entity(&mut self, run: usize, at: usize) -> usize {
        if let Some(&known) = self.entities.get(&(run, at)) {
            return known;
        }
        let recording = &self.recordings[run];
        let entity = &recording.entities[at];
        let index = self.view.entities.len();
        self.view.entities.push(ViewEntity {
            id: format!("{}/f{at}", recording.details.summary.id),
            run,
            kind: entity.kind,
            path: entity.path.clone(),
            version: entity.version,
            ident: entity.ident,
            last: entity.last,
            tool: is_tool(&entity.path),
            no_byte_of: BTreeSet::new(),
        });
        self.entities.insert((run, at), index);
        index
    }

    /// Adds the links from version to version and from activity to activity.
    fn between(&mut self, run: usize) {
        let recording = &self.recordings[run];
        for derived in &recording.derived {
            let ends = (derived.from.0 as usize, derived.entity.0 as usize);
            let known = |at| self.entities.get(&(run, at)).copied();
            if let (Some(from), Some(to)) = (known(ends.0), known(ends.1)) {
                let interval = Interval {
                    start: derived.time,
                    end: derived.time,
                };
                self.link(
                    Endpoint::Entity(from),
                    Endpoint::Entity(to),
                    Flow::Derived,
                    Certainty::Seen,
                    interval,
                );
            }
        }
        for inform in &recording.informs {
            let known = |at: u32| self.activities.get(&(run, at as usize)).copied();
            if let (Some(from), Some(to)) = (known(inform.from.0), known(inform.to.0)) {
                let interval = Interval {
                    start: inform.time,
                    end: inform.time,
                };
                self.link(
                    Endpoint::Activity(from),
                    Endpoint::Activity(to),
                    Flow::Informed(inform.why),
                    Certainty::Seen,
                    interval,
                );
            }
        }
    }
}

fn activity(recording: &Recording, run: usize, at: usize, step: Option<usize>) -> ViewActivity {
    let activity = &recording.activities[at];
    let label = match (activity.argv.is_empty(), &activity.exec_path) {
        (false, _) => shell::line(&activity.argv),
        (true, Some(path)) => shell::quote(path),
        (true, None) => format!("process {}", activity.pid),
    };
    ViewActivity {
        id: format!("{}/{at}", recording.details.summary.id),
        run,
        label,
        program: activity.exec_path.clone(),
        argv: activity.argv.clone(),
        cwd: activity.cwd.clone(),
        env_set: recording.environment(at).0,
        interval: activity.interval,
        exit: activity.exit,
        signal: activity.signal,
        pid: activity.pid,
        epoch: activity.epoch,
        parent: None,
        step,
        is_part: recording.marked.is_named(at),
        notes: recording.marked.notes(at),
        job_rank: recording.job_rank(at),
    }
}
