//! A command on its way to a step.

use backstory_eventlog::event::Time;

use super::Line;
use super::effects::Effects;

/// A command with its effects.
#[derive(Debug, Clone)]
pub struct Part {
    /// The number of its recording.
    pub run: usize,
    /// The command as lines.
    pub lines: Vec<Line>,
    /// The files that it read and changed.
    pub effects: Effects,
    /// When it began.
    pub start: Time,
    /// When it ended.
    pub end: Time,
    /// Its activities.
    pub members: Vec<usize>,
}
