//! The activities that decided on the steps of runs and are no members of a step.
//!
//! A shell, a script or `make` computed the words of steps, and said which steps there are. So did
//! the programs whose output or status it used. `rerun` repeats the whole command of a run if a
//! file that they took in has changed. An export has to be right after any change, so it has the
//! whole command if they took in anything that may change: see [`crate::decisions`].

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use backstory_eventlog::event::Bytes;
use backstory_graph::model::Relation;
use backstory_store::{ActivityKey, RunKey};
use backstory_workflow::steps::Step;
use rustc_hash::FxHashSet;

use crate::Result;
use crate::influence::{InfluenceSearch, Influences};
use crate::loaded_runs::{CountedUse, LoadedRun};
use crate::reason::Reason;
use crate::reductions;
use crate::takings::{StaleUse, TakingsJudge};

/// The deciders of some steps.
pub struct Deciders {
    /// Their numbers of runs and activities.
    pub all: Vec<(usize, usize)>,
    /// The influences of the results behind which the deciders were found.
    pub behind: Influences,
    /// All that the deciders of each run depend on in that run.
    deciding: Vec<Influences>,
}

impl Deciders {
    /// Finds the deciders among the activities that influenced results.
    pub fn of(
        search: &InfluenceSearch<'_>,
        runs: &[Rc<LoadedRun>],
        steps: &[Step],
        behind: Influences,
    ) -> Result<Deciders> {
        let numbers: HashMap<RunKey, usize> = numbers(runs);
        let members = steps.iter().flat_map(|step| step.members.iter().copied());
        let members: HashSet<(usize, usize)> = members.collect();
        // A step does not repeat what a forked process did before it executed a program.
        let is_forked = |(run, at): (usize, usize)| runs[run].recording.activities[at].epoch == 0;
        let (mut all, mut callers) = (Vec::new(), vec![Vec::new(); runs.len()]);
        for &key in behind.until.keys() {
            let Some(&number) = numbers.get(&key.run()) else {
                continue;
            };
            let place = (number, key.local().0 as usize);
            let is_member = members.contains(&place);
            if !is_member {
                all.push(place);
            }
            if !is_member || is_forked(place) {
                callers[number].extend(behind.reached(key));
            }
        }
        let steps: FxHashSet<ActivityKey> = members
            .iter()
            .map(|&(number, at)| key(runs, number, at))
            .collect();
        let deciding = callers.into_iter();
        let deciding = deciding.map(|all| search.of_activities(all, steps.clone()));
        Ok(Deciders {
            deciding: deciding.collect::<Result<_>>()?,
            all,
            behind,
        })
    }

    /// The uses that would now find something else, by the number of the run.
    pub fn stale(
        &self,
        runs: &[Rc<LoadedRun>],
        takings: &TakingsJudge<'_>,
    ) -> Result<BTreeMap<usize, Vec<Reason>>> {
        let mut found: BTreeMap<usize, Vec<Reason>> = BTreeMap::new();
        let deciding = self.deciding(runs);
        let deciding = deciding.map(|(number, key, deciding)| (number, key, deciding, false));
        for (number, key, deciding, is_copy) in deciding.chain(self.copies(runs)) {
            let stale = takings.stale_uses(key)?;
            let counts =
                |stale: &&StaleUse| stale.counts(key, deciding) && (stale.is_listed || !is_copy);
            for stale in stale.iter().filter(counts) {
                let reason = match stale.reason.is_uncertain() {
                    true => stale.reason.clone(),
                    false => Reason::GuideChanged(stale.reason.subject().clone()),
                };
                let reasons = found.entry(number).or_default();
                if !reasons.contains(&reason) {
                    reasons.push(reason);
                }
            }
        }
        Ok(found)
    }

    /// The files that they read and that steps make, with those steps, by the number of the run.
    pub fn made_by_steps(
        &self,
        runs: &[Rc<LoadedRun>],
        makers: &HashMap<Bytes, usize>,
    ) -> BTreeMap<usize, BTreeSet<(usize, Bytes)>> {
        let mut found: BTreeMap<usize, BTreeSet<(usize, Bytes)>> = BTreeMap::new();
        for (number, key, deciding) in self.deciding(runs) {
            let (run, at) = (&runs[number], key.local().0 as usize);
            for CountedUse { edge, taking, .. } in reductions::counted_uses(run, at).iter() {
                let entity = run.recording.entity(edge.entity);
                if deciding.counts(key, taking)
                    && edge.relation != Relation::Missing
                    && let Some(&from) = makers.get(&entity.path)
                {
                    let read = found.entry(number).or_default();
                    read.insert((from, entity.path.clone()));
                }
            }
        }
        found
    }

    /// Programs as which a copy of a shell may have expanded patterns of names.
    fn copies<'d>(
        &'d self,
        runs: &'d [Rc<LoadedRun>],
    ) -> impl Iterator<Item = (usize, ActivityKey, &'d Influences, bool)> {
        let numbers = numbers(runs);
        self.behind.until.keys().filter_map(move |&key| {
            let number = *numbers.get(&key.run())?;
            let lacks = runs[number].lacks_fork(key.local().0 as usize);
            lacks.then_some((number, key, &self.behind, true))
        })
    }

    /// The activities that the deciders of each run depend on in that run.
    fn deciding(
        &self,
        runs: &[Rc<LoadedRun>],
    ) -> impl Iterator<Item = (usize, ActivityKey, &Influences)> {
        let all = self.deciding.iter().zip(runs).enumerate();
        all.flat_map(|(number, (deciding, run))| {
            let key = run.recording.key;
            let here = deciding.until.keys().filter(move |one| one.run() == key);
            here.map(move |one| (number, *one, deciding))
        })
    }
}

/// The key in the store of an activity.
pub fn key(runs: &[Rc<LoadedRun>], number: usize, at: usize) -> ActivityKey {
    runs[number].recording.activity_key(at)
}

/// The number of each run.
pub fn numbers(runs: &[Rc<LoadedRun>]) -> HashMap<RunKey, usize> {
    let runs = runs.iter().enumerate();
    runs.map(|(at, run)| (run.recording.key, at)).collect()
}
