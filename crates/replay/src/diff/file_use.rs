//! The operations of a run on one entity.

use backstory_eventlog::event::Time;
use backstory_graph::model::{Edge, Relation};

/// The operations on an entity.
#[derive(Debug, Clone, Copy)]
pub struct FileUse {
    pub(super) first: Time,
    /// The end of the last write. Data that was read before can be in the file.
    pub(super) complete: Time,
    pub(super) read: bool,
    pub(super) executed: bool,
    pub(super) made: bool,
    pub(super) deleted: bool,
}

impl Default for FileUse {
    fn default() -> FileUse {
        FileUse {
            first: Time::MAX,
            complete: 0,
            read: false,
            executed: false,
            made: false,
            deleted: false,
        }
    }
}

impl FileUse {
    pub(super) fn add(&mut self, edge: &Edge) {
        self.first = self.first.min(edge.interval.start);
        match edge.relation {
            Relation::Read => self.read = true,
            Relation::Execute => (self.read, self.executed) = (true, true),
            Relation::Write | Relation::Rename | Relation::Make => {
                self.made = true;
                self.complete = self.complete.max(edge.interval.end);
            }
            Relation::Delete => self.deleted = true,
            _ => {}
        }
    }
}
