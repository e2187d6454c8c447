//! Joins the activities into which calls of functions and marks divide a program.
//!
//! In: the processes of a run, in the order of their start. Out: one line for each program and each
//! named part of it. It ends as its last activity does, and has the attributes and records of all
//! of them.

use std::collections::HashMap;

use crate::answer::ProcessLine;

/// The lines of programs and their named parts.
#[derive(Debug, Default)]
pub struct JoinedLines {
    /// In the order of their start. The parent of a line is a line.
    pub lines: Vec<ProcessLine>,
    /// The line of each activity.
    pub places: HashMap<u64, usize>,
    /// The epoch of the last activity of each line.
    pub last_epochs: Vec<u32>,
    epochs: HashMap<u64, u32>,
}

impl JoinedLines {
    /// Joins the lines of a run.
    pub fn of(all: Vec<ProcessLine>) -> JoinedLines {
        let mut joined = JoinedLines::default();
        for mut line in all {
            joined.epochs.insert(line.id, line.activity.epoch);
            if let Some(at) = joined.continued(&line) {
                joined.places.insert(line.id, at);
                joined.last_epochs[at] = line.activity.epoch;
                joined.lines[at].extend(line);
                continue;
            }
            let parent = line.parent_id.and_then(|id| joined.places.get(&id));
            if let Some(&parent) = parent {
                line.parent_id = Some(joined.lines[parent].id);
            }
            joined.places.insert(line.id, joined.lines.len());
            joined.last_epochs.push(line.activity.epoch);
            joined.lines.push(line);
        }
        joined
    }

    /// The line that an activity goes on with. Its parent is then the activity before, and others
    /// of the process lie between them.
    fn continued(&self, line: &ProcessLine) -> Option<usize> {
        let before = line.parent_id?;
        let at = *self.places.get(&before)?;
        let (own, outer) = (&line.activity, &self.lines[at].activity);
        let is_same = line.marked && own.pid == outer.pid && own.argv == outer.argv;
        (is_same && own.epoch > self.epochs.get(&before)? + 1).then_some(at)
    }
}

impl ProcessLine {
    /// Takes in the activity with which it goes on.
    fn extend(&mut self, next: ProcessLine) {
        let (own, later) = (&mut self.activity, next.activity);
        own.interval.end = own.interval.end.max(later.interval.end);
        (own.exit, own.signal, own.execed) = (later.exit, later.signal, later.execed);
        self.processor_time = next.processor_time.or(self.processor_time);
        self.notes.extend(next.notes);
    }
}
