//! The steps behind results that came from the same runs, and the judgement of each.
//!
//! A [`StepGroup`] holds the steps of some runs. It judges a step once, when the judgement of a
//! result needs it. Invariant: the judgement of a step depends on the runs of the group
//! and the present files, and on no result.

use backstory_ordering::{SmallCollect, SmallSort};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use backstory_eventlog::event::{Bytes, Time};
use backstory_files::Digest;
use backstory_graph::model::{Certainty, Entity, EntityId, EntityKind, Relation};
use backstory_store::{ActivityKey, RunKey, Store};
use backstory_workflow::paths::{base_name, is_tool, parent};
use backstory_workflow::recording::split;
use backstory_workflow::selection::MakingPart;
use backstory_workflow::steps::{Step, is_builder, is_shell, workflow_of};

use crate::Result;
use crate::decided::decided_since;
use crate::file_state::{FileComparison, FileState};
use crate::loaded_runs::{LoadedRun, LoadedRuns};
use crate::reason::Reason;
use crate::step_inputs::InputJudge;

/// The judgement of a step.
#[derive(Debug, Clone, Default)]
pub struct StepFacts {
    /// Why the step itself is stale.
    pub reasons: BTreeSet<Reason>,
    /// Why the whole run is to be repeated, by the number of the run in the group.
    pub guided: BTreeMap<usize, Vec<Reason>>,
    /// The files that other steps make for it: the step, and the path.
    pub fed_by: BTreeSet<(usize, Bytes)>,
    /// Of those files, the ones that a shell read to decide what to start, with the shell's run.
    pub decided_by: BTreeSet<(usize, Bytes, usize)>,
    /// The recorded contents of the files that other steps make, as far as known.
    pub had: HashMap<Bytes, Digest>,
    /// Those of them that now differ from what the step read.
    pub differs: BTreeMap<Bytes, Reason>,
}

impl StepFacts {
    /// The steps that make something that the step read, or that decided on it, with the paths.
    pub fn feeders(&self) -> impl Iterator<Item = (usize, &Bytes)> {
        let fed = self.fed_by.iter().map(|(from, path)| (*from, path));
        let decided = self.decided_by.iter();
        fed.chain(decided.map(|(from, path, _)| (*from, path)))
    }
}

/// The steps of some runs.
pub struct StepGroup<'j> {
    /// The runs, oldest first.
    pub runs: Vec<Rc<LoadedRun>>,
    /// The steps.
    pub steps: Vec<Step>,
    /// The steps that stand for a run's whole command, because its output was redirected.
    pub whole: HashSet<usize>,
    /// The step that makes each file.
    makers: HashMap<Bytes, usize>,
    worked: HashMap<Vec<u8>, Time>,
    judged: RefCell<HashMap<usize, Rc<StepFacts>>>,
    inputs: &'j InputJudge<'j>,
    store: &'j dyn Store,
    /// Variables that are to be different.
    pub env: &'j [(Bytes, Bytes)],
}

impl<'j> StepGroup<'j> {
    /// The steps with some of these activities. `env`: changed variables.
    pub fn new(
        store: &'j dyn Store,
        all: &LoadedRuns<'_>,
        inputs: &'j InputJudge<'j>,
        (keys, activities): (&BTreeSet<RunKey>, &HashSet<ActivityKey>),
        env: &'j [(Bytes, Bytes)],
    ) -> Result<StepGroup<'j>> {
        let runs = keys.iter().map(|&key| all.get(key));
        let mut runs: Vec<Rc<LoadedRun>> = runs.collect::<Result<_>>()?;
        runs.sort_small_by_key(|run| (run.recording.details.summary.started, run.recording.key));
        let numbers: HashMap<RunKey, usize> = runs
            .iter()
            .enumerate()
            .map(|(at, run)| (run.recording.key, at))
            .collect();
        let wanted: HashSet<(usize, usize)> = activities
            .iter()
            .filter_map(|key| Some((*numbers.get(&key.run())?, key.local().0 as usize)))
            .collect();
        let commands = runs.iter().map(|run| run.commands());
        let commands = commands.collect::<Result<Vec<_>>>()?;
        let mut steps = workflow_of(&commands, Some(&wanted)).steps;
        let first = steps.len();
        for (number, run) in runs.iter().enumerate() {
            // `> FILE 2>&1` is one file.
            let redirected: BTreeSet<&Bytes> =
                run.redirected.iter().map(|(_, path)| path).into_tree();
            let left = redirected
                .into_iter()
                .filter(|path| run.left(path).is_some());
            steps.extend(left.map(|path| whole_step(run, number, path)));
        }
        give_own_names(&mut steps, first);
        Ok(StepGroup {
            makers: makers(&steps),
            whole: (first..steps.len()).collect(),
            worked: worked(&runs),
            judged: RefCell::default(),
            runs,
            steps,
            inputs,
            store,
            env,
        })
    }

    /// Compares files with versions.
    pub fn files(&self) -> &'j FileComparison<'j> {
        self.inputs.files
    }

    /// The step that makes a file.
    pub fn maker(&self, path: &[u8]) -> Option<usize> {
        self.makers.get(path).copied()
    }

    /// The version of a file that the last of the step's runs left, and that run.
    pub fn newest(&self, step: usize, path: &[u8]) -> Option<(&LoadedRun, &Entity)> {
        let members = self.steps[step].members.iter();
        let runs: BTreeSet<usize> = members.map(|(run, _)| *run).into_tree();
        let mut newest = runs.into_iter().rev().map(|run| &*self.runs[run]);
        newest.find_map(|run| Some((run, run.left(path)?)))
    }

    /// The reason why a step is stale because of one of its outputs. A file that the run itself
    /// removed need not exist.
    pub fn output_reason(&self, step: usize, path: &Bytes) -> Result<Option<Reason>> {
        let Some((run, version)) = self.newest(step, path) else {
            return Ok(None);
        };
        if !version.last {
            return Ok(None);
        }
        Ok(match self.inputs.files.state(path, version, run.ended)? {
            FileState::Current => None,
            FileState::Removed => Some(Reason::OutputGone(path.clone())),
            _ => Some(Reason::OutputChanged(path.clone())),
        })
    }

    /// The part of each run that makes some of the steps, runs oldest first. Runs of which none of
    /// the steps is are left out.
    pub fn parts(&self, steps: &[usize]) -> Vec<MakingPart> {
        let mut parts: BTreeMap<usize, MakingPart> = BTreeMap::new();
        for &at in steps {
            let step = &self.steps[at];
            for &(number, member) in &step.members {
                let recording = &self.runs[number].recording;
                let part = parts.entry(number).or_insert_with(|| MakingPart {
                    run: recording.details.summary.id.clone(),
                    ..MakingPart::default()
                });
                part.activities.insert(recording.activity_key(member));
            }
            if self.whole.contains(&at)
                && let Some(part) = parts.get_mut(&step.run)
            {
                let printed = self.runs[step.run].redirected.iter();
                let printed = printed.filter(|(_, path)| step.outputs.contains(path));
                part.printed.extend(printed.cloned());
            }
        }
        parts.into_values().collect()
    }

    /// The judgement of a step.
    pub fn facts(&self, step: usize) -> Result<Rc<StepFacts>> {
        if let Some(facts) = self.judged.borrow().get(&step) {
            return Ok(facts.clone());
        }
        let facts = Rc::new(self.judge(step)?);
        self.judged.borrow_mut().insert(step, facts.clone());
        Ok(facts)
    }

    fn judge(&self, at: usize) -> Result<StepFacts> {
        let step = &self.steps[at];
        let mut facts = StepFacts::default();
        let making = step.members.iter().flat_map(|&(run, member)| {
            let recording = &self.runs[run].recording;
            let edges = recording.edges[member].iter();
            let making = edges.filter(|edge| !edge.relation.is_use());
            making.map(move |edge| &recording.entity(edge.entity).path)
        });
        let own: HashSet<&Bytes> = making.collect();
        for &(number, member) in &step.members {
            let run = &*self.runs[number];
            for edge in &run.recording.edges[member] {
                let entity = run.recording.entity(edge.entity);
                let path = &entity.path;
                if !edge.relation.is_use() || own.contains(path) {
                    continue;
                }
                if self.is_read(edge.relation, entity)
                    && let Some(from) = self.maker(path).filter(|from| *from != at)
                {
                    if edge.certainty == Certainty::Seen {
                        self.fed(&mut facts, run, entity, from)?;
                    }
                } else if entity.version > 0 && run.left(path).is_some_and(|left| !left.last) {
                    // The run made it for itself.
                } else if let Some(reason) =
                    self.inputs.reason(run, member, edge, &self.until(run))?
                {
                    facts.reasons.insert(reason);
                }
            }
        }
        self.variables(step, &mut facts);
        self.guides(at, &mut facts)?;
        Ok(facts)
    }

    fn is_read(&self, relation: Relation, entity: &Entity) -> bool {
        matches!(relation, Relation::Read | Relation::Execute) && entity.kind == EntityKind::File
    }

    /// Notes that a step read a file that another step makes.
    fn fed(
        &self,
        facts: &mut StepFacts,
        run: &LoadedRun,
        entity: &Entity,
        from: usize,
    ) -> Result<()> {
        let path = &entity.path;
        facts.fed_by.insert((from, path.clone()));
        let Some(expected) = self.inputs.expected(run, entity) else {
            return Ok(());
        };
        if let Some(ident) = &expected.ident
            && let Some(digest) = self.inputs.files.digest(ident)?
        {
            facts.had.insert(path.clone(), digest);
        }
        let reason = match self.inputs.files.state(path, expected, run.ended)? {
            FileState::Current => return Ok(()),
            FileState::Removed => Reason::InputGone(path.clone()),
            _ => Reason::InputChanged(path.clone()),
        };
        facts.differs.insert(path.clone(), reason);
        Ok(())
    }

    fn variables(&self, step: &Step, facts: &mut StepFacts) {
        let environment = &self.runs[step.run].recording.details.environment;
        for (name, value) in self.env {
            let mut pairs = environment.iter().filter_map(|pair| split(pair));
            if !pairs.any(|(was, then)| *was == **name && *then == **value) {
                facts.reasons.insert(Reason::Environment(name.clone()));
            }
        }
    }

    /// Judges the files that decided which steps start. Programs above the step read them, and are
    /// not part of it. A file that they read after the step began counts, too: it may decide on a
    /// later change of the same outputs. A changed listing counts only for shells, whose patterns
    /// may match other names.
    fn guides(&self, at: usize, facts: &mut StepFacts) -> Result<()> {
        let step = &self.steps[at];
        let members: HashSet<(usize, usize)> = step.members.iter().copied().collect();
        let mut seen: HashMap<(usize, usize), Time> = HashMap::new();
        for &(number, member) in &step.members {
            let run = &*self.runs[number];
            let mut until = run.recording.activities[member].interval.start;
            for guide in run.recording.ancestors(member) {
                let begun =
                    std::mem::replace(&mut until, run.recording.activities[guide].interval.start);
                let before = seen.get(&(number, guide)).copied();
                if members.contains(&(number, guide)) || before.is_some_and(|time| time >= begun) {
                    continue;
                }
                seen.insert((number, guide), begun);
                self.guide((number, guide), begun, at, facts)?;
            }
        }
        Ok(())
    }

    fn guide(
        &self,
        (number, guide): (usize, usize),
        until: Time,
        at: usize,
        facts: &mut StepFacts,
    ) -> Result<()> {
        let run = &*self.runs[number];
        for edge in &run.recording.edges[guide] {
            let entity = run.recording.entity(edge.entity);
            let path = &entity.path;
            let counts = match edge.relation {
                Relation::Read | Relation::Execute | Relation::Missing => true,
                Relation::List => is_shell(&run.recording, guide),
                _ => false,
            };
            if !counts || is_tool(path) {
                continue;
            }
            let maker = self.maker(path).filter(|from| *from != at);
            let reason = self.inputs.reason(run, guide, edge, &self.until(run))?;
            if (maker.is_some() || reason.is_some()) && is_passed_on(run, guide, edge.entity) {
                continue;
            }
            if let Some(from) = maker
                && self.is_read(edge.relation, entity)
                && edge.certainty == Certainty::Seen
                && edge.interval.start <= until
                && !is_builder(&run.recording, guide)
            {
                facts.decided_by.insert((from, path.clone(), number));
            }
            match reason {
                None | Some(Reason::MayHaveLooked(_)) => {}
                Some(_) if self.is_settled(run, guide, path)? => {}
                Some(reason) => {
                    let reason = Reason::GuideChanged(reason.subject().clone());
                    let reasons = facts.guided.entry(number).or_default();
                    if !reasons.contains(&reason) {
                        reasons.push(reason);
                    }
                }
            }
        }
        Ok(())
    }

    /// True if the deciding program has read the path's present state in a later run, and the
    /// commands it decided on have run. The condition holds for each state if the path did not
    /// change.
    fn is_settled(&self, run: &LoadedRun, guide: usize, path: &Bytes) -> Result<bool> {
        let files = self.inputs.files;
        let now = files.present.ident(path);
        let mut is_now = |entity: &Entity| {
            Ok(match (&now, entity.kind, &entity.ident) {
                (Err(_), kind, _) => kind == EntityKind::Missing,
                (Ok(_), EntityKind::Directory, _) => true,
                (Ok(now), EntityKind::File, Some(then)) => {
                    files.holds(path, now, then).unwrap_or_default()
                }
                _ => false,
            })
        };
        let who = &run.recording.activities[guide];
        let key = run.recording.key;
        decided_since(self.store, key, who, path, &mut is_now)
    }

    /// Until when changes of a directory are those of recorded steps.
    fn until<'r>(&'r self, run: &'r LoadedRun) -> impl Fn(&[u8]) -> Time + 'r {
        |directory| {
            let worked = self.worked.get(directory).copied();
            worked.map_or(run.ended, |worked| worked.max(run.ended))
        }
    }
}

/// True if the activity opened the file as the standard input of a program that it started, and
/// that program read it. Some shells open `< FILE` before they fork.
fn is_passed_on(run: &LoadedRun, at: usize, entity: EntityId) -> bool {
    let recording = &run.recording;
    let is_input = |child: &&usize| {
        let input = recording.standard[**child].input;
        input.is_some_and(|end| end.entity == entity)
    };
    let children = recording.children[at].iter().filter(is_input);
    let below = children.flat_map(|&child| recording.subtree(child));
    let mut edges = below.flat_map(|at| &recording.edges[at]);
    edges.any(|edge| edge.entity == entity && edge.relation == Relation::Read)
}

/// The step that stands for a run whose output the caller redirected to a file.
fn whole_step(run: &LoadedRun, number: usize, path: &Bytes) -> Step {
    let count = run.recording.activities.len();
    let summary = &run.recording.details.summary;
    Step {
        name: String::from_utf8_lossy(base_name(path)).into_owned(),
        outputs: vec![path.clone()],
        start: summary.started,
        end: run.ended,
        run: number,
        members: (0..count).map(|at| (number, at)).collect(),
        ..Step::default()
    }
}

/// Gives the steps from `first` on names that no other step has.
fn give_own_names(steps: &mut [Step], first: usize) {
    let (others, whole) = steps.split_at_mut(first);
    let mut taken: HashSet<String> = others.iter().map(|step| step.name.clone()).collect();
    for step in whole {
        let plain = step.name.clone();
        let mut number = 1;
        while !taken.insert(step.name.clone()) {
            number += 1;
            step.name = format!("{plain}_{number}");
        }
    }
}

fn makers(steps: &[Step]) -> HashMap<Bytes, usize> {
    let mut makers: HashMap<Bytes, (usize, usize)> = HashMap::new();
    for (at, step) in steps.iter().enumerate() {
        let last = step.members.iter().map(|(run, _)| *run).max();
        let rank = (last.unwrap_or(step.run), at);
        for output in &step.outputs {
            let best = makers.entry(output.clone()).or_insert(rank);
            *best = rank.max(*best);
        }
    }
    let makers = makers.into_iter();
    makers.map(|(path, (_, at))| (path, at)).collect()
}

/// The last time at which a run worked in each directory.
fn worked(runs: &[Rc<LoadedRun>]) -> HashMap<Vec<u8>, Time> {
    let mut worked: HashMap<Vec<u8>, Time> = HashMap::new();
    for run in runs {
        let edges = run.recording.edges.iter().flatten();
        for edge in edges.filter(|edge| !edge.relation.is_use()) {
            let path = &run.recording.entity(edge.entity).path;
            let last = worked.entry(parent(path).to_vec()).or_insert(run.ended);
            *last = run.ended.max(*last);
        }
    }
    worked
}
