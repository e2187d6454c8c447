//! The callers of commands, as far as the weights of differences depend on them.
//!
//! In: two sides and their differences. Out: answers about a difference: whether a caller of its
//! command differs already, and whether its command only started others.

use std::collections::{HashMap, HashSet};

use backstory_store::ActivityKey;
use backstory_workflow::ownership::Ownership;

use super::{DiffSide, Difference, DifferenceKind, mere_callers};

/// The callers of the commands of both sides.
pub(super) struct CommandCallers<'d> {
    a: &'d DiffSide,
    b: &'d DiffSide,
    /// The next command above each activity.
    callers: HashMap<ActivityKey, ActivityKey>,
    /// Commands of both sides with other arguments.
    paired: HashSet<ActivityKey>,
    /// Commands of one side.
    alone: HashSet<ActivityKey>,
    /// Those of them that are recorded commands.
    recorded: HashSet<ActivityKey>,
    /// Those of them that only launched commands of both sides.
    launchers: HashSet<ActivityKey>,
    /// Those of them that only started commands of their side ([`mere_callers`]).
    mere: HashSet<ActivityKey>,
}

impl<'d> CommandCallers<'d> {
    pub(super) fn of(
        a: &'d DiffSide,
        b: &'d DiffSide,
        differences: &[Difference],
        ownership: &mut Ownership,
    ) -> CommandCallers<'d> {
        let is_alone = |one: &Difference| one.kind == DifferenceKind::Command;
        let mut found = CommandCallers {
            a,
            b,
            callers: HashMap::new(),
            paired: activities(differences, |one| one.kind == DifferenceKind::Arguments),
            alone: activities(differences, is_alone),
            recorded: activities(differences, |one| is_alone(one) && one.is_of_command),
            launchers: HashSet::new(),
            mere: HashSet::new(),
        };
        found.callers = found.next_commands();
        found.mere = mere_callers::of([a, b], &found.alone, &found.callers, ownership);
        found.launchers = found.launching(differences);
        found
    }

    /// The activities above one, the nearest first.
    fn above(&self, key: ActivityKey) -> impl Iterator<Item = ActivityKey> {
        let (a, b) = (&self.a.parents, &self.b.parents);
        // A damaged store could close the chain of parents to a ring.
        let most = a.len() + b.len() + 1;
        let parent = move |key: &ActivityKey| a.get(key).or(b.get(key)).copied();
        std::iter::successors(parent(&key), parent).take(most)
    }

    fn next_commands(&self) -> HashMap<ActivityKey, ActivityKey> {
        let commands = self.a.commands.iter().chain(&self.b.commands);
        let commands: HashSet<ActivityKey> = commands.map(|command| command.key).collect();
        let all = self.a.parents.keys().chain(self.b.parents.keys());
        let next = |key: ActivityKey| self.above(key).find(|above| commands.contains(above));
        all.filter_map(|key| Some((*key, next(*key)?))).collect()
    }

    fn launching(&self, differences: &[Difference]) -> HashSet<ActivityKey> {
        let is_launched = |one: &&Difference| {
            one.kind == DifferenceKind::Arguments && !self.has_other_caller(one)
        };
        let launched = differences.iter().filter(is_launched);
        let launched = launched.flat_map(|one| one.activities.iter().copied());
        let mut launchers: HashSet<ActivityKey> = launched
            .flat_map(|key| self.above(key))
            .filter(|key| self.alone.contains(key))
            .collect();
        // A command of one side that started commands of both sides, and none of this side alone.
        let commands = self.a.commands.iter().chain(&self.b.commands);
        let shared = commands.map(|command| command.key);
        let shared = shared.filter(|key| !self.alone.contains(key));
        let above_shared: HashSet<ActivityKey> = shared.flat_map(|key| self.above(key)).collect();
        let others = self.alone.difference(&above_shared).copied();
        let above_others: HashSet<ActivityKey> = others.flat_map(|key| self.above(key)).collect();
        let only_launched = self.alone.intersection(&above_shared);
        launchers.extend(only_launched.filter(|key| !above_others.contains(key)));
        launchers
    }

    /// True if a caller of its command differs already.
    pub(super) fn has_other_caller(&self, difference: &Difference) -> bool {
        let is_launched = difference.kind == DifferenceKind::Arguments;
        let differs = |key: ActivityKey| {
            let is_alone = self.alone.contains(&key) && !self.mere.contains(&key);
            self.paired.contains(&key) || !is_launched && is_alone
        };
        let mut activities = difference.activities.iter();
        activities.any(|key| self.above(*key).any(differs))
    }

    /// True for a command of one side that only started commands of both sides, or that gives way
    /// to those that it started.
    pub(super) fn is_mere_caller(&self, difference: &Difference) -> bool {
        let all =
            |of: &HashSet<ActivityKey>| difference.activities.iter().all(|key| of.contains(key));
        difference.kind == DifferenceKind::Command
            && (all(&self.launchers) || all(&self.mere) && !self.has_other_caller(difference))
    }

    /// True for the recorded command, and for those to which it gives way.
    pub(super) fn is_of_command(&self, difference: &Difference) -> bool {
        let stands_for_it = |key: &ActivityKey| {
            let most = self.callers.len() + 1;
            let next = |key: &ActivityKey| self.callers.get(key).copied();
            let callers = std::iter::successors(next(key), next).take(most);
            let callers: Vec<ActivityKey> = callers.collect();
            let top = callers.last();
            top.is_some_and(|top| self.recorded.contains(top))
                && callers.iter().all(|caller| self.mere.contains(caller))
        };
        difference.is_of_command
            || difference.kind == DifferenceKind::Command
                && difference.activities.iter().any(stands_for_it)
    }

    /// True if only commands of one side used it.
    pub(super) fn is_of_commands_alone(&self, difference: &Difference) -> bool {
        let mut users = difference.activities.iter();
        !difference.activities.is_empty() && users.all(|user| self.alone.contains(user))
    }
}

/// The activities of these differences.
fn activities(
    differences: &[Difference],
    wanted: impl Fn(&Difference) -> bool,
) -> HashSet<ActivityKey> {
    let found = differences.iter().filter(|one| wanted(one));
    found.flat_map(|one| one.activities.clone()).collect()
}
