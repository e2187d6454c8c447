//! The files that the caller of `backstory record` redirected the whole command's output to.

use std::collections::HashSet;

use backstory_eventlog::event::Bytes;
use backstory_graph::model::Entity;
use backstory_graph::standard;
use backstory_store::{ActivityKey, RunKey, Store};

use crate::Result;

/// The files that the run's command began with as its standard output and errors.
#[derive(Default)]
pub(super) struct Redirected {
    /// Paths of the standard output.
    pub output: HashSet<Bytes>,
    /// Paths of the standard errors, unless the output goes there, too.
    pub errors: HashSet<Bytes>,
}

impl Redirected {
    /// Reads the descriptors that the first activity of a run began with.
    pub fn by_caller(store: &dyn Store, run: RunKey, entities: &[Entity]) -> Result<Redirected> {
        let mut found = Redirected::default();
        for (activity, _, kind, payload) in store.extended(run)? {
            if &*kind != standard::KIND {
                continue;
            }
            let of = store.activity(ActivityKey::new(run, activity))?;
            if of.parent.is_some() {
                continue;
            }
            let ends = standard::decode(&payload).unwrap_or_default();
            let path = |end: standard::StandardEnd| {
                let entity = entities.get(end.entity.0 as usize)?;
                Some(entity.path.clone())
            };
            found.output.extend(ends.output.and_then(path));
            found.errors.extend(ends.error.and_then(path));
        }
        let both = &found.output;
        found.errors.retain(|path| !both.contains(path));
        Ok(found)
    }
}
