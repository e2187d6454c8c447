//! The steps behind results that came from the same runs, and the judgement of each.
//!
//! A [`StepGroup`] holds the steps of some runs. It judges a step once, when the judgement of a
//! result needs it. Invariant: the judgement of a step depends on the runs of the group
//! and the present files, and on no result.

use backstory_ordering::{SmallCollect, SmallSort};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use backstory_eventlog::event::Bytes;
use backstory_files::Digest;
use backstory_graph::model::{Certainty, Entity, EntityId, Informed};
use backstory_workflow::paths::base_name;
use backstory_workflow::recording::split;
use backstory_workflow::selection::{MakingPart, WholeCommand};
use backstory_workflow::steps::{RunCommands, Step, workflow_of};

use crate::Result;
use crate::deciders::{Deciders, numbers};
use crate::decisions::{decisions, whole_command};
use crate::file_state::{FileComparison, FileState};
use crate::influence::{InfluenceSearch, Influences};
use crate::loaded_runs::LoadedRun;
use crate::present_makers::PresentMakers;
use crate::reason::Reason;
use crate::takings::{TakingsJudge, failed, failed_maker, is_read};

/// The judgement of a step.
#[derive(Debug, Clone, Default)]
pub struct StepFacts {
    /// Why the step itself is stale.
    pub reasons: BTreeSet<Reason>,
    /// Others than the step's members also wrote to one of its outputs, or sent it a signal.
    pub is_part: bool,
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
    /// Why whole runs are to be repeated: what decided on their steps has changed.
    pub guided: BTreeMap<usize, Vec<Reason>>,
    /// The files that decided on the steps of a run, with the steps that make these files.
    decided: BTreeMap<usize, BTreeSet<(usize, Bytes)>>,
    deciders: Deciders,
    /// The step that makes each file.
    makers: HashMap<Bytes, usize>,
    judged: RefCell<HashMap<usize, Rc<StepFacts>>>,
    takings: &'j TakingsJudge<'j>,
    files: &'j FileComparison<'j>,
    present_makers: &'j PresentMakers<'j>,
    /// Variables that are to be different.
    pub env: &'j [(Bytes, Bytes)],
}

impl<'j> StepGroup<'j> {
    /// The steps behind results. `env`: changed variables.
    pub fn new(
        search: &InfluenceSearch<'_>,
        takings: &'j TakingsJudge<'j>,
        (files, present_makers): (&'j FileComparison<'j>, &'j PresentMakers<'j>),
        behind: Influences,
        env: &'j [(Bytes, Bytes)],
    ) -> Result<StepGroup<'j>> {
        let runs = behind.runs.iter().map(|&key| search.runs.get(key));
        let mut runs: Vec<Rc<LoadedRun>> = runs.collect::<Result<_>>()?;
        runs.sort_small_by_key(|run| (run.recording.details.summary.started, run.recording.key));
        let numbers = numbers(&runs);
        let keys = behind.until.keys();
        let wanted: HashSet<(usize, usize)> = keys
            .filter_map(|key| Some((*numbers.get(&key.run())?, key.local().0 as usize)))
            .collect();
        let commands = runs.iter().map(|run| run.commands());
        let commands = commands.collect::<Result<Vec<_>>>()?;
        let mut steps = Vec::new();
        for (number, commands) in commands.into_iter().enumerate() {
            steps.extend(steps_of_run(commands, number, &wanted));
        }
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
        give_own_names(&mut steps);
        let makers = makers(&steps);
        // The steps of whole runs have all activities as members, and no words of their own.
        let deciders = Deciders::of(search, &runs, &steps[..first], behind)?;
        Ok(StepGroup {
            whole: (first..steps.len()).collect(),
            guided: deciders.stale(&runs, takings)?,
            decided: deciders.made_by_steps(&runs, &makers),
            deciders,
            makers,
            judged: RefCell::default(),
            runs,
            steps,
            takings,
            files,
            present_makers,
            env,
        })
    }

    /// Compares files with versions.
    pub fn files(&self) -> &'j FileComparison<'j> {
        self.files
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
    /// removed need not exist. A file that a later step changed again is that step's output.
    pub fn output_reason(&self, step: usize, path: &Bytes) -> Result<Option<Reason>> {
        if self.maker(path) != Some(step) {
            return Ok(None);
        }
        let Some((run, version)) = self.newest(step, path) else {
            return Ok(None);
        };
        if !version.last {
            return Ok(None);
        }
        Ok(match self.files.state(path, version, run.ended)? {
            FileState::Current => None,
            FileState::Removed => Some(Reason::OutputGone(path.clone())),
            _ => Some(Reason::OutputChanged(path.clone())),
        })
    }

    /// The part of each run that makes some of the steps, runs oldest first. Runs of which none of
    /// the steps is are left out. A run whose commands may not stand alone is whole.
    pub fn parts(&self, steps: &[usize]) -> Result<Vec<MakingPart>> {
        let own = |at: &&usize| !self.whole.contains(at);
        let own: Vec<Step> = steps
            .iter()
            .filter(own)
            .map(|&at| self.steps[at].clone())
            .collect();
        let decisions = decisions(&self.runs, &own, &self.deciders, self.takings.inputs())?;
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
                let whole = part.whole.get_or_insert_default();
                whole.printed.extend(printed.cloned());
            }
        }
        for (number, facts) in decisions {
            let run = &self.runs[number];
            let Some(part) = parts.get_mut(&number) else {
                continue;
            };
            let printed = part.whole.take().map(|whole| whole.printed);
            part.whole = Some(WholeCommand {
                printed: printed.unwrap_or_default(),
                ..whole_command(run, &facts)
            });
            let all = 0..run.recording.activities.len();
            part.activities
                .extend(all.map(|at| run.recording.activity_key(at)));
        }
        Ok(parts.into_values().collect())
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
        for &(number, member) in &step.members {
            let run = &*self.runs[number];
            let mut fed = HashSet::new();
            for edge in &run.recording.edges[member] {
                let entity = run.recording.entity(edge.entity);
                let is_read = is_read(edge.relation, entity) && edge.certainty == Certainty::Seen;
                match self.maker(&entity.path).filter(|_| is_read) {
                    // The step puts its output in the place of what it read.
                    Some(from) if from == at => self.former(entity, at, run, &mut facts)?,
                    Some(from) => {
                        self.fed(&mut facts, run, entity, from)?;
                        fed.insert(&entity.path);
                    }
                    None => {}
                }
            }
            let stale = self
                .takings
                .stale_uses(run.recording.activity_key(member))?;
            let own = stale.iter();
            let own = own.filter(|stale| !(stale.is_read && fed.contains(&stale.path)));
            facts.reasons.extend(own.map(|stale| stale.reason.clone()));
            // Alone, the step would wait for a signal that nothing sends.
            let mut heard = run.heard(member).iter();
            facts.is_part |= heard
                .any(|heard| heard.why == Informed::Signal && !self.is_member(at, run, heard.from));
        }
        for output in &step.outputs {
            if let Some((run, version)) = self.newest(at, output) {
                if let Some(maker) = failed_maker(run, version.id) {
                    facts.reasons.insert(failed(run, maker));
                    facts.is_part |= !self.is_member(at, run, maker);
                }
                self.makers_of(at, run, version, &mut facts)?;
            }
        }
        self.variables(step, &mut facts);
        let members: BTreeSet<usize> = step.members.iter().map(|(run, _)| *run).into_tree();
        for number in members {
            let deciders = self.decided.get(&number).into_iter().flatten();
            let deciders = deciders.filter(|(from, _)| *from != at);
            let decided = deciders.map(|(from, path)| (*from, path.clone(), number));
            facts.decided_by.extend(decided);
        }
        Ok(facts)
    }

    /// Notes makers of an output that are no members of the step: then the step alone does not make
    /// the whole file.
    fn makers_of(
        &self,
        at: usize,
        run: &LoadedRun,
        version: &Entity,
        facts: &mut StepFacts,
    ) -> Result<()> {
        let mut waiting = vec![version.id];
        let mut seen = HashSet::new();
        while let Some(id) = waiting.pop() {
            if !seen.insert(id) {
                continue;
            }
            let changes = run.mode_changes(id).copied();
            for (maker, _) in run.givers(id).into_iter().chain(changes) {
                facts.is_part |= !self.is_member(at, run, maker);
            }
            self.former(run.recording.entity(id), at, run, facts)?;
            let same_path = |from: &EntityId| run.recording.entity(*from).path == version.path;
            let origins = run.sources_of(id).map(|origin| origin.from);
            waiting.extend(origins.filter(same_path));
        }
        Ok(())
    }

    fn is_member(&self, step: usize, run: &LoadedRun, activity: usize) -> bool {
        let mut members = self.steps[step].members.iter();
        members.any(|&(number, member)| {
            member == activity && self.runs[number].recording.key == run.recording.key
        })
    }

    /// Notes the step of an earlier run that made what this step found in the place of its output.
    fn former(
        &self,
        found: &Entity,
        at: usize,
        run: &LoadedRun,
        facts: &mut StepFacts,
    ) -> Result<()> {
        if found.version > 0 {
            return Ok(());
        }
        let Some(former) = self.present_makers.of(run, found)? else {
            return Ok(());
        };
        let is_maker = |step: &Step| {
            let mut members = step.members.iter();
            step.outputs.contains(&found.path)
                && members.any(|&(number, _)| self.runs[number].recording.key == former.run())
        };
        if let Some(from) = self
            .steps
            .iter()
            .position(is_maker)
            .filter(|from| *from != at)
        {
            facts.fed_by.insert((from, found.path.clone()));
        }
        Ok(())
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
        let left = run.left(path);
        let expected = match left {
            Some(left) if !left.last => return Ok(()),
            Some(left) => left,
            None => entity,
        };
        if let Some(ident) = &expected.ident
            && let Some(digest) = self.files.digest(ident)?
        {
            facts.had.insert(path.clone(), digest);
        }
        let reason = match self.files.state(path, expected, run.ended)? {
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

/// The steps of one run. Commands of two runs are never one step: a later run may have changed what
/// an earlier one read.
pub fn steps_of_run(
    commands: &RunCommands,
    number: usize,
    wanted: &HashSet<(usize, usize)>,
) -> Vec<Step> {
    let here = wanted.iter().filter(|(run, _)| *run == number);
    let here: HashSet<(usize, usize)> = here.map(|(_, at)| (0, *at)).collect();
    let steps = workflow_of(&[commands], Some(&here)).steps.into_iter();
    steps
        .map(|step| Step {
            run: number,
            members: step.members.iter().map(|(_, at)| (number, *at)).collect(),
            ..step
        })
        .collect()
}

/// Gives each step a name that no other step has.
fn give_own_names(steps: &mut [Step]) {
    let mut taken: HashSet<String> = HashSet::new();
    for step in steps {
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
