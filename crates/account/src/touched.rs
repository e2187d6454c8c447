//! The commands that touched a file, instead of their processes.
//!
//! In: a store, and the processes that touched a file, as `query` lists them. Out: one
//! [`CommandTouch`] for each command of a run, in the same order. A command's act stands where its
//! last process's act stands.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use backstory_eventlog::event::Bytes;
use backstory_graph::model::{ActivityId, Certainty, Interval};
use backstory_query::answer::{Access, Derivation, FileTouch};
use backstory_store::{ActivityKey, RunKey, Store};
use backstory_workflow::recording::Recording;
use backstory_workflow::steps::{Line, call, is_one, outside, program};
use backstory_workflow::tools::knowledge;

use crate::Result;
use crate::commands::commands;

/// The acts of a command on a file.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandTouch {
    /// The run's id.
    pub run: String,
    /// The run's name.
    pub run_name: Option<String>,
    /// The command as a person would have written it.
    pub line: Line,
    /// The acts of all its processes.
    pub access: BTreeSet<Access>,
    /// Those of `access` that none of the processes was observed to do.
    pub possible: BTreeSet<Access>,
    /// `Possible` if none of the acts was observed.
    pub certainty: Certainty,
    /// From the first act to the last.
    pub interval: Interval,
    /// The names that it gave to the file or to a copy of it, and how.
    pub to: BTreeSet<(Derivation, Bytes)>,
    /// The names that the file or its content had before, and how it came from there.
    pub from: BTreeSet<(Derivation, Bytes)>,
    /// The number of its processes among those that touched the file.
    pub processes: usize,
    /// True if the command's own program touched the file.
    pub own: bool,
    /// Other programs that the command started and that touched the file, each once.
    pub programs: Vec<Line>,
}

/// Joins the processes that touched a file to commands.
///
/// # Errors
///
/// If the store fails, or does not have the processes.
pub fn command_touches(store: &dyn Store, touches: &[FileTouch]) -> Result<Vec<CommandTouch>> {
    let _one_state = store.reading()?;
    let mut wanted: BTreeMap<RunKey, Vec<ActivityId>> = BTreeMap::new();
    for touch in touches {
        let key = ActivityKey(touch.id);
        wanted.entry(key.run()).or_default().push(key.local());
    }
    // One run after the other, so that only one is in memory.
    let mut lines: HashMap<u64, CommandLines> = HashMap::new();
    for (run, activities) in wanted {
        let (recording, ids) = Recording::excerpt(store, run, &activities, &|_| false)?;
        let outside = outside(&recording);
        let roots = commands(&recording, &outside);
        for id in activities {
            if let Some(&at) = ids.activities.get(&id) {
                let root = roots[at];
                let line = call(&recording, &[root], &outside, &mut HashSet::new());
                let program = is_other_program(&recording, root, at)
                    .then(|| call(&recording, &[at], &outside, &mut HashSet::new()));
                lines.insert(ActivityKey::new(run, id).0, (root, line, program));
            }
        }
    }
    let mut found: Vec<CommandTouch> = Vec::new();
    let mut places: HashMap<(RunKey, usize), usize> = HashMap::new();
    for touch in touches {
        let Some((root, line, program)) = lines.remove(&touch.id) else {
            continue;
        };
        let next = found.len();
        let key = (ActivityKey(touch.id).run(), root);
        let place = *places.entry(key).or_insert(next);
        match found.get_mut(place) {
            Some(command) => command.add(touch, program),
            None => found.push(CommandTouch::of(touch, line, program)),
        }
    }
    Ok(found)
}

/// The number of a command, its line, and that of another program in it.
type CommandLines = (usize, Line, Option<Line>);

/// True if a process runs another program than its command. The passes of a compiler do its work.
fn is_other_program(recording: &Recording, root: usize, at: usize) -> bool {
    let (command, own) = (&recording.activities[root], &recording.activities[at]);
    let compilers = &knowledge().compilers.names;
    own.argv != command.argv && !is_one(program(recording, root), compilers)
}

impl CommandTouch {
    fn of(touch: &FileTouch, line: Line, program: Option<Line>) -> CommandTouch {
        CommandTouch {
            run: touch.run.clone(),
            run_name: touch.run_name.clone(),
            line,
            access: touch.access.iter().copied().collect(),
            possible: touch.possible.iter().copied().collect(),
            certainty: touch.certainty,
            interval: touch.interval,
            to: touch.to.iter().cloned().collect(),
            from: touch.from.iter().cloned().collect(),
            processes: 1,
            own: program.is_none(),
            programs: program.into_iter().collect(),
        }
    }

    fn add(&mut self, touch: &FileTouch, program: Option<Line>) {
        self.own |= program.is_none();
        let known = |new: &Line| self.programs.iter().any(|old| old.words == new.words);
        let new = program.filter(|new| !known(new));
        self.programs.extend(new);
        for access in &touch.access {
            let is_new = self.access.insert(*access);
            match touch.possible.contains(access) {
                true if is_new => drop(self.possible.insert(*access)),
                true => (),
                false => drop(self.possible.remove(access)),
            }
        }
        self.certainty = self.certainty.max(touch.certainty);
        self.interval.start = self.interval.start.min(touch.interval.start);
        self.interval.end = self.interval.end.max(touch.interval.end);
        self.to.extend(touch.to.iter().cloned());
        self.from.extend(touch.from.iter().cloned());
        self.processes += 1;
    }
}
