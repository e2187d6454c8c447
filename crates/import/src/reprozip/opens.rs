//! Makes activities of programs, and relations of opened files.
//!
//! A shell opens the files of redirections before it executes the command. So the files that a
//! process opened before its first exec are those of the program that it executed.
//!
//! After `vfork`, ReproZip takes such opens for those of the shell itself. So the process that is
//! started next has possibly used the file, too.

use super::rows::{ExecutedProgram, OpenedFile, TracedProgramProcess};
use crate::description::{
    ActivityNumber, DescribedActivity, Description, DescriptionGaps, EntityNumber, Flow, Locations,
    Span,
};
use backstory_eventlog::event::Time;
use backstory_graph::model::{EntityKind, Informed, Relation};
use std::collections::HashMap;

/// Modes of `opened_files`, as ReproZip's `database.h` numbers them.
const FILE_READ: i64 = 1;
const FILE_WRITE: i64 = 2;
const FILE_WDIR: i64 = 4;
const FILE_STAT: i64 = 8;
/// The name of a pipe begins with this. Only `backstory export reprozip` writes such names.
const PIPE: &[u8] = b"pipe:";
/// The longest name of a pipe.
const LONGEST_PIPE: usize = 64;
/// The exit code of a process that a signal ended, without the signal.
const SIGNALLED: i64 = 0x100;

/// The state of a path: its entity, and the activity that can have written it.
#[derive(Debug, Clone, Copy)]
struct PathState {
    entity: EntityNumber,
    writer: Option<ActivityNumber>,
    is_read: bool,
}

/// Collects the rows of a trace.
pub(super) struct TraceReader {
    description: Description,
    locations: Locations,
    changed: Time,
    last: i64,
    processes: HashMap<i64, TracedProgramProcess>,
    /// The order of the processes.
    ids: Vec<i64>,
    /// The activities of each process, in order, with their begins.
    activities: HashMap<i64, Vec<(i64, ActivityNumber)>>,
    /// The processes that each process started, in order: when, and their first activities.
    children: HashMap<i64, Vec<(i64, ActivityNumber)>>,
    paths: HashMap<Vec<u8>, PathState>,
    strangers: usize,
}

impl TraceReader {
    pub(super) fn new(locations: Locations, changed: Time) -> TraceReader {
        TraceReader {
            description: Description::default(),
            locations,
            changed,
            last: 0,
            processes: HashMap::new(),
            ids: Vec::new(),
            activities: HashMap::new(),
            children: HashMap::new(),
            paths: HashMap::new(),
            strangers: 0,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.description.is_full() || self.ids.len() > crate::description::MOST
    }

    pub(super) fn process(&mut self, process: TracedProgramProcess) {
        self.last = self.last.max(process.time);
        self.ids.push(process.id);
        self.processes.insert(process.id, process);
    }

    /// The process of a thread.
    fn owner(&self, id: i64) -> i64 {
        let mut one = id;
        for _ in 0..self.ids.len() {
            match self.processes.get(&one) {
                Some(process)
                    if process.is_thread && process.parent.is_some_and(|up| up != one) =>
                {
                    one = process.parent.unwrap_or(one);
                }
                _ => break,
            }
        }
        one
    }

    pub(super) fn executed(&mut self, program: ExecutedProgram) {
        self.last = self.last.max(program.time);
        let process = self.owner(program.process);
        let before = self
            .activities
            .get(&process)
            .and_then(|all| all.last().copied());
        let path = self.locations.path(&program.path);
        let cwd = self.locations.path(&program.cwd);
        let activity = self.description.activity(DescribedActivity {
            words: program.argv,
            program: path.clone(),
            cwd: cwd.unwrap_or_default(),
            span: Span {
                start: Some(program.time),
                end: None,
            },
            ..DescribedActivity::default()
        });
        if let Some((_, before)) = before {
            let time = Some(program.time);
            self.description
                .inform(before, activity, Informed::Exec, time);
        }
        self.activities
            .entry(process)
            .or_default()
            .push((program.time, activity));
        if let Some(path) = path {
            let state = self.state(path, EntityKind::File);
            self.flow(
                activity,
                state.entity,
                Relation::Execute,
                true,
                program.time,
            );
        }
    }

    /// All programs are known: joins them to the processes that started them.
    pub(super) fn begin_opens(&mut self) {
        for id in self.ids.clone() {
            let process = self.processes[&id];
            if process.is_thread {
                continue;
            }
            if !self.activities.contains_key(&id) {
                let activity = self.description.activity(DescribedActivity {
                    span: Span {
                        start: Some(process.time),
                        end: None,
                    },
                    ..DescribedActivity::default()
                });
                self.activities.insert(id, vec![(process.time, activity)]);
            }
            let first = self.activities[&id][0].1;
            if let Some(parent) = process
                .parent
                .map(|up| self.owner(up))
                .filter(|up| *up != id)
                && let Some(from) = self.activity_at(parent, process.time)
            {
                let time = Some(process.time);
                self.description.inform(from, first, Informed::Fork, time);
                let parent = self.owner(process.parent.unwrap_or_default());
                self.children
                    .entry(parent)
                    .or_default()
                    .push((process.time, first));
            }
            let last = self.activities[&id].last().map(|(_, activity)| *activity);
            if let (Some(last), Some(exit)) = (last, process.exit) {
                self.description.activity_mut(last).status = Some(match exit & SIGNALLED {
                    0 => (exit as i32 & 0xff) << 8,
                    _ => exit as i32 & 0x7f,
                });
            }
        }
    }

    /// The activity that a process was at a time.
    fn activity_at(&self, process: i64, time: i64) -> Option<ActivityNumber> {
        let all = self.activities.get(&process)?;
        let at = all.partition_point(|(begin, _)| *begin <= time);
        all.get(at.saturating_sub(1)).map(|(_, activity)| *activity)
    }

    pub(super) fn opened(&mut self, file: &OpenedFile) {
        self.last = self.last.max(file.time);
        let Some(activity) = self.activity_at(self.owner(file.process), file.time) else {
            self.strangers += 1;
            return;
        };
        if file.path.starts_with(PIPE) && file.path.len() <= LONGEST_PIPE && !file.path.contains(&0)
        {
            return self.pipe(file, activity);
        }
        let Some(path) = self.locations.path(&file.path) else {
            self.strangers += 1;
            return;
        };
        let kind = match file.is_directory || file.mode & FILE_WDIR != 0 {
            true => EntityKind::Directory,
            false => EntityKind::File,
        };
        if kind == EntityKind::File && file.mode & FILE_READ != 0 {
            let state = self.state(path.clone(), kind);
            if let Some(known) = self.paths.get_mut(&path) {
                known.is_read |= state.writer != Some(activity);
            }
            self.flow(activity, state.entity, Relation::Read, true, file.time);
            self.passed_on(file, state.entity, Relation::Read);
        }
        if kind == EntityKind::File && file.mode & FILE_WRITE != 0 {
            let state = self.state_to_write(path.clone(), activity);
            self.flow(activity, state.entity, Relation::Write, false, file.time);
            self.passed_on(file, state.entity, Relation::Write);
        }
        let looks = file.mode & (FILE_STAT | FILE_WDIR) != 0 || kind == EntityKind::Directory;
        if looks && file.mode & (FILE_READ | FILE_WRITE) == 0 {
            let state = self.state(path, kind);
            self.flow(activity, state.entity, Relation::Stat, true, file.time);
        }
    }

    /// Takes a pipe, which is one thing for all of its readers and writers.
    fn pipe(&mut self, file: &OpenedFile, activity: ActivityNumber) {
        let state = self.state(file.path.clone(), EntityKind::Pipe);
        for (mode, relation) in [(FILE_READ, Relation::Read), (FILE_WRITE, Relation::Write)] {
            if file.mode & mode != 0 {
                self.flow(activity, state.entity, relation, true, file.time);
            }
        }
    }

    /// The process that is started next may have inherited the descriptor.
    fn passed_on(&mut self, file: &OpenedFile, entity: EntityNumber, relation: Relation) {
        let process = self.owner(file.process);
        let Some(children) = self.children.get(&process) else {
            return;
        };
        let at = children.partition_point(|(begin, _)| *begin <= file.time);
        if let Some((begin, child)) = children.get(at).copied() {
            self.flow(child, entity, relation, false, begin);
        }
    }

    fn flow(
        &mut self,
        activity: ActivityNumber,
        entity: EntityNumber,
        relation: Relation,
        is_certain: bool,
        time: i64,
    ) {
        // ReproZip logs no close.
        let span = Span {
            start: Some(time),
            end: None,
        };
        self.description.flow(Flow {
            activity,
            entity,
            relation,
            is_certain,
            span,
        });
    }

    /// The present state of a path.
    fn state(&mut self, path: Vec<u8>, kind: EntityKind) -> PathState {
        let description = &mut self.description;
        *self.paths.entry(path).or_insert_with_key(|path| PathState {
            entity: description.entity(path.clone(), kind),
            writer: None,
            is_read: false,
        })
    }

    /// The state of a path that an activity can write: another one, unless only it has used it.
    fn state_to_write(&mut self, path: Vec<u8>, activity: ActivityNumber) -> PathState {
        if let Some(known) = self.paths.get(&path)
            && known.writer == Some(activity)
            && !known.is_read
        {
            return *known;
        }
        let state = PathState {
            entity: self.description.entity(path.clone(), EntityKind::File),
            writer: Some(activity),
            is_read: false,
        };
        self.paths.insert(path, state);
        state
    }

    /// All that was collected, with the times of the calendar.
    pub(super) fn finish(mut self) -> (Description, Locations, DescriptionGaps) {
        let base = self.changed.saturating_sub(self.last);
        let moved = |time: Option<Time>| time.map(|time| time.saturating_add(base));
        for activity in &mut self.description.activities {
            activity.span.start = moved(activity.span.start);
        }
        for flow in &mut self.description.flows {
            flow.span.start = moved(flow.span.start);
        }
        for one in &mut self.description.informings {
            one.time = moved(one.time);
        }
        let mut gaps = DescriptionGaps::default();
        gaps.gaps.push(
            "ReproZip logs which files are opened, but no reads, writes, pipes, renames, removals \
             or inherited descriptors"
                .to_owned(),
        );
        if self.strangers > 0 {
            let rows = backstory_vocabulary::counted(self.strangers, "row", "rows");
            gaps.gaps.push(format!(
                "{rows} of opened_files name no process of the trace, or no path"
            ));
        }
        gaps.warnings
            .push("the trace has no dates; they are counted back from the time of its file");
        (self.description, self.locations, gaps)
    }
}
