//! Runs whose outputs were put back: `rerun` made them, and they failed.
//!
//! A version that such a run made is gone. The file that is there now is an older version, although
//! the run may have been seen to leave it.

use std::collections::HashMap;

use backstory_store::{EntityKey, RunKey, RunRecord, Store};

use crate::Result;

/// True if the outputs of the run were put back.
pub fn is_undone(record: &RunRecord) -> bool {
    record.header.repeats.is_some() && record.end.exit != Some(0)
}

/// Removes the entities of runs whose outputs were put back. An answer about such a run alone does
/// not leave them out.
pub fn leave_out(store: &dyn Store, keys: &mut Vec<EntityKey>) -> Result<()> {
    let mut undone: HashMap<RunKey, bool> = HashMap::new();
    for key in keys.iter() {
        if let std::collections::hash_map::Entry::Vacant(entry) = undone.entry(key.run()) {
            let record = store.run_by_key(key.run())?;
            entry.insert(record.is_some_and(|record| is_undone(&record)));
        }
    }
    keys.retain(|key| !undone[&key.run()]);
    Ok(())
}
