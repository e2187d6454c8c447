//! The operations of one run by entity, and its activities.

use std::collections::{HashMap, HashSet};

use backstory_graph::model::{Activity, Edge, Relation};
use backstory_store::{ActivityKey, RunKey, Store};

use super::callers_work;
use super::file_use::FileUse;
use crate::Result;

/// The most readers of a file that are noted.
const READERS: usize = 8;

/// The operations of a run. The keys are numbers of entities.
#[derive(Default)]
pub(super) struct RunUse {
    /// The operations of all activities.
    pub all: HashMap<u32, FileUse>,
    /// The operations of the compared activities.
    pub used: HashMap<u32, FileUse>,
    /// The compared activities that listed a directory.
    pub listers: HashMap<u32, Vec<ActivityKey>>,
    /// Some of the compared activities that read a file.
    pub readers: HashMap<u32, Vec<ActivityKey>>,
    /// Files that another activity than their writer read.
    pub read_by_others: HashSet<u32>,
    /// The work of shells and launchers among the compared activities.
    pub callers_work: Vec<(ActivityKey, Edge)>,
    /// The compared activities.
    pub activities: Vec<(ActivityKey, Activity)>,
}

impl RunUse {
    /// Reads a run. `part`: the compared activities; `None`: all.
    pub fn of(
        store: &dyn Store,
        run: RunKey,
        part: Option<&HashSet<ActivityKey>>,
    ) -> Result<RunUse> {
        let mut found = RunUse::default();
        for activity in store.activities(run)? {
            let key = ActivityKey::new(run, activity.id);
            let edges = store.stream(key)?.edges;
            // A linker reads what it has just written. That makes no intermediate result.
            let makes = |edge: &&Edge| matches!(edge.relation, Relation::Write | Relation::Make);
            let own: HashSet<u32> = edges.iter().filter(makes).map(|e| e.entity.0).collect();
            let others = edges.iter().filter(|edge| is_read(edge));
            let others = others.map(|edge| edge.entity.0);
            found
                .read_by_others
                .extend(others.filter(|entity| !own.contains(entity)));
            for edge in &edges {
                found.all.entry(edge.entity.0).or_default().add(edge);
            }
            if part.is_none_or(|part| part.contains(&key)) {
                found.take(key, &edges);
                if callers_work::may_only_call(&activity) {
                    let work = edges.iter().filter(|edge| callers_work::is_work(edge));
                    found.callers_work.extend(work.map(|edge| (key, *edge)));
                }
                found.activities.push((key, activity));
            }
        }
        Ok(found)
    }

    /// Adds the operations of a compared activity.
    fn take(&mut self, key: ActivityKey, edges: &[Edge]) {
        for edge in edges {
            self.used.entry(edge.entity.0).or_default().add(edge);
            if is_read(edge) {
                let readers = self.readers.entry(edge.entity.0).or_default();
                if readers.len() < READERS {
                    readers.push(key);
                }
            }
            if edge.relation == Relation::List {
                self.listers.entry(edge.entity.0).or_default().push(key);
            }
        }
    }
}

fn is_read(edge: &Edge) -> bool {
    matches!(edge.relation, Relation::Read | Relation::Execute)
}
