//! From judged steps to a plan: the steps behind results in an order in which they can run.

use backstory_ordering::{SmallCollect, SmallSort};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use backstory_eventlog::event::Bytes;
use backstory_files::Digest;

use crate::Result;
use crate::environment::environment_of;
use crate::planned_step::PlannedStep;
use crate::reason::Reason;
use crate::step_group::StepGroup;
use crate::whole_run;

/// The steps behind results, makers before users. `wanted`: the results, each with the step that
/// makes it. `stale`: those of them that are not current. A step that none of these needs does not
/// run: it may make something else that is stale.
pub fn planned(
    group: &StepGroup<'_>,
    wanted: &[(usize, Bytes)],
    stale: &[(usize, Bytes)],
) -> Result<Vec<PlannedStep>> {
    let needed: BTreeSet<usize> = order_behind(group, stale)?.into_tree();
    let order = order_behind(group, wanted)?;
    let mut draft = Draft::new(group, &order, wanted)?;
    for &at in &order {
        draft.judge(at)?;
    }
    // A temporary file that its run removed is made again for a step that runs.
    for &at in order.iter().rev() {
        draft.make_temporary_files(at)?;
    }
    let mut guided: BTreeMap<usize, Vec<Reason>> = draft.guided;
    let runs: BTreeSet<usize> = needed.iter().map(|&at| group.steps[at].run).into_tree();
    guided.retain(|run, _| runs.contains(run));
    let mut steps = Vec::new();
    let numbers: HashMap<usize, usize> = order.iter().copied().zip(0..).collect();
    for &at in &order {
        let facts = group.facts(at)?;
        let fed = facts.fed_by.iter();
        let fed_by = fed.filter_map(|(from, path)| Some((*numbers.get(from)?, path.clone())));
        let reasons = draft.reasons.remove(&at);
        let reasons = reasons.filter(|_| needed.contains(&at)).unwrap_or_default();
        if group.whole.contains(&at) {
            guided.entry(group.steps[at].run).or_default();
        }
        steps.push(PlannedStep {
            fed_by: fed_by.collect(),
            had: facts.had.clone(),
            reasons: reasons.into_iter().collect(),
            ..described(group, at)?
        });
    }
    let runs: Vec<usize> = order.iter().map(|&at| group.steps[at].run).collect();
    let whole = order.iter().filter(|at| group.whole.contains(at));
    let printed: BTreeSet<(usize, Bytes)> = whole
        .flat_map(|&at| {
            let step = &group.steps[at];
            step.outputs.iter().map(|path| (step.run, path.clone()))
        })
        .collect();
    let mut steps = whole_run::joined(steps, &runs, &group.runs, &guided, &printed);
    put_wanted_first(&mut steps, wanted);
    Ok(steps)
}

/// Sorts the outputs of each step: those that were asked for, those that other steps read, others.
fn put_wanted_first(steps: &mut [PlannedStep], wanted: &[(usize, Bytes)]) {
    let read: HashSet<Bytes> = steps
        .iter()
        .flat_map(|step| step.fed_by.iter().map(|(_, path)| path.clone()))
        .collect();
    let rank = |path: &Bytes| {
        let place = wanted.iter().position(|(_, asked)| asked == path);
        (place.unwrap_or(wanted.len()), !read.contains(path))
    };
    for step in steps {
        step.outputs.sort_small_by_key(|(path, _)| rank(path));
    }
}

/// A step without its judgement.
fn described(group: &StepGroup<'_>, at: usize) -> Result<PlannedStep> {
    let step = &group.steps[at];
    let recording = &group.runs[step.run].recording;
    let base = Bytes::from(recording.cwd());
    let lines = step.lines.iter().map(|line| {
        let text = line.shell(&base);
        match step.lines.len() {
            1 => text,
            _ => format!("( {text} )"),
        }
    });
    let script = lines.collect::<Vec<_>>().join("\n");
    let headlines = step.lines.iter().map(|line| line.headline());
    let outputs = step.outputs.iter().map(|output| {
        let digest = recorded_digest(group, at, output)?;
        Ok((output.clone(), digest))
    });
    Ok(PlannedStep {
        name: step.name.clone(),
        script,
        headline: headlines.collect::<Vec<_>>().join("; "),
        env: environment_of(&recording.details, group.env),
        cwd: base,
        run: recording.details.summary.id.clone(),
        is_imported: recording.details.imported.is_some(),
        members: step
            .members
            .iter()
            .map(|&(run, at)| group.runs[run].recording.activity_key(at))
            .collect(),
        is_whole_run: false,
        contents: recording.details.modes.contents,
        directories: step.directories.clone(),
        outputs: outputs.collect::<Result<_>>()?,
        fed_by: Vec::new(),
        had: HashMap::new(),
        reasons: Vec::new(),
    })
}

fn recorded_digest(group: &StepGroup<'_>, at: usize, output: &Bytes) -> Result<Option<Digest>> {
    let newest = group.newest(at, output);
    match newest.and_then(|(_, version)| version.ident) {
        Some(ident) => group.files().digest(&ident),
        None => Ok(None),
    }
}

/// All steps from those of `wanted` backwards, makers before users. A circle of steps is cut where
/// the search meets it again.
pub fn order_behind(group: &StepGroup<'_>, wanted: &[(usize, Bytes)]) -> Result<Vec<usize>> {
    let mut order = Vec::new();
    let mut seen = BTreeSet::new();
    for &(last, _) in wanted {
        if seen.insert(last) {
            search_behind(group, last, &mut seen, &mut order)?;
        }
    }
    Ok(order)
}

fn search_behind(
    group: &StepGroup<'_>,
    last: usize,
    seen: &mut BTreeSet<usize>,
    order: &mut Vec<usize>,
) -> Result<()> {
    let feeders = |at: usize| -> Result<Vec<usize>> {
        let facts = group.facts(at)?;
        let from: BTreeSet<usize> = facts.feeders().map(|(from, _)| from).into_tree();
        Ok(from.into_iter().collect())
    };
    let mut path = vec![(last, feeders(last)?)];
    while let Some((at, waiting)) = path.last_mut() {
        match waiting.pop() {
            Some(next) => {
                if seen.insert(next) {
                    path.push((next, feeders(next)?));
                }
            }
            None => {
                order.push(*at);
                path.pop();
            }
        }
    }
    Ok(())
}

/// The reasons of the steps of a plan while it is made.
struct Draft<'g, 'j> {
    group: &'g StepGroup<'j>,
    reasons: HashMap<usize, BTreeSet<Reason>>,
    guided: BTreeMap<usize, Vec<Reason>>,
    /// Whether a step runs again, or may.
    moving: HashMap<usize, bool>,
}

impl<'g, 'j> Draft<'g, 'j> {
    /// Begins with the reasons that outputs give: the results, and the files that other steps of
    /// the plan read.
    fn new(
        group: &'g StepGroup<'j>,
        order: &[usize],
        wanted: &[(usize, Bytes)],
    ) -> Result<Draft<'g, 'j>> {
        let mut reasons: HashMap<usize, BTreeSet<Reason>> = HashMap::new();
        let mut add = |step: usize, path: &Bytes| -> Result<()> {
            let reason = group.output_reason(step, path)?;
            reasons.entry(step).or_default().extend(reason);
            Ok(())
        };
        for (last, path) in wanted {
            add(*last, path)?;
        }
        for &at in order {
            for (from, path) in group.facts(at)?.feeders() {
                add(from, path)?;
            }
        }
        Ok(Draft {
            group,
            reasons,
            guided: group.guided.clone(),
            moving: HashMap::new(),
        })
    }

    /// Adds the reasons of a step. The steps that feed it have been judged before.
    fn judge(&mut self, at: usize) -> Result<()> {
        let facts = self.group.facts(at)?;
        let is_moving = |from: usize| self.moving.get(&from) != Some(&false);
        let reasons = self.reasons.entry(at).or_default();
        reasons.extend(facts.reasons.iter().cloned());
        // An input that a stale step makes is compared after that step has run. An input that
        // differs although its step is current was changed by another program.
        for (from, path) in &facts.fed_by {
            let reason = facts.differs.get(path).filter(|_| !is_moving(*from));
            reasons.extend(reason.cloned());
        }
        let waits = facts.fed_by.iter().any(|(from, _)| is_moving(*from));
        let mut moving = waits || !reasons.is_empty();
        let members = self.group.steps[at].members.iter();
        let runs: BTreeSet<usize> = members.map(|(run, _)| *run).into_tree();
        moving |= runs.iter().any(|run| self.group.guided.contains_key(run));
        for (from, path, run) in &facts.decided_by {
            if is_moving(*from) {
                let reasons = self.guided.entry(*run).or_default();
                reasons.push(Reason::GuideChanged(path.clone()));
                moving = true;
            }
        }
        if moving && facts.is_part {
            for run in runs {
                self.guided.entry(run).or_default();
            }
        }
        self.moving.insert(at, moving);
        Ok(())
    }

    /// The whole command makes a temporary file again that its run removed, and removes it again.
    fn make_temporary_files(&mut self, at: usize) -> Result<()> {
        if self.moving.get(&at) != Some(&true) {
            return Ok(());
        }
        for (from, path) in &self.group.facts(at)?.fed_by {
            let Some((run, version)) = self.group.newest(*from, path) else {
                continue;
            };
            let key = run.recording.key;
            if !version.last && self.group.files().present.ident(path).is_err() {
                let number = self
                    .group
                    .runs
                    .iter()
                    .position(|run| run.recording.key == key);
                self.guided
                    .entry(number.unwrap_or(self.group.steps[*from].run))
                    .or_default();
                self.moving.insert(*from, true);
            }
        }
        Ok(())
    }
}
