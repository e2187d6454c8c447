//! Runs whose outputs were put back: `rerun` made them, and they did not succeed.
//!
//! A version that such a run made is gone. The file that is there now is an older version, although
//! the run may have been seen to leave it. A repetition succeeds if it ends with status 0, and no
//! signal from outside ended one of its processes. A shell may end with status 0 although the
//! command that makes its output was killed.

use std::collections::{BTreeSet, HashMap};

use backstory_graph::model::{Activity, Informed};
use backstory_store::{ActivityKey, EntityKey, RunKey, RunRecord, Store};
use rustix::process::Signal;

use crate::Result;

/// The signals by which a user, the kernel or a service manager ends programs. Others are those of
/// the program's own mistakes.
const ENDING: [Signal; 5] = [
    Signal::KILL,
    Signal::TERM,
    Signal::INT,
    Signal::HUP,
    Signal::QUIT,
];

/// True if the outputs of the run were put back.
///
/// # Errors
///
/// If the store fails.
pub fn is_undone(store: &dyn Store, record: &RunRecord) -> Result<bool> {
    if record.header.repeats.is_none() {
        return Ok(false);
    }
    Ok(record.end.exit != Some(0) || ended_from_outside(store, record)?.is_some())
}

/// A process of a repetition that a signal from outside ended: no process of the run sent it one.
/// A program that the same signal ended in the repeated run does not count. `None` for runs that
/// are no repetition.
///
/// # Errors
///
/// If the store fails.
pub fn ended_from_outside(store: &dyn Store, record: &RunRecord) -> Result<Option<Activity>> {
    let Some(repeated) = &record.header.repeats else {
        return Ok(None);
    };
    let mut ended: Vec<Activity> = Vec::new();
    for activity in store.activities(record.key)?.into_iter().filter(is_ended) {
        let stream = store.stream(ActivityKey::new(record.key, activity.id))?;
        let mut informed = stream.informed_by.iter();
        if !informed.any(|inform| inform.why == Informed::Signal) {
            ended.push(activity);
        }
    }
    if ended.is_empty() {
        return Ok(None);
    }
    let mut usual = BTreeSet::new();
    if let Some(repeated) = store.run(repeated)? {
        let before = store.activities(repeated.key)?.into_iter().filter(is_ended);
        usual.extend(before.map(|activity| (activity.exec_path, activity.signal)));
    }
    let mut ended = ended.into_iter();
    Ok(ended.find(|activity| !usual.contains(&(activity.exec_path.clone(), activity.signal))))
}

fn is_ended(activity: &Activity) -> bool {
    let signal = activity.signal.and_then(Signal::from_named_raw);
    signal.is_some_and(|signal| ENDING.contains(&signal))
}

/// Removes the entities of runs whose outputs were put back. An answer about such a run alone does
/// not leave them out.
pub fn leave_out(store: &dyn Store, keys: &mut Vec<EntityKey>) -> Result<()> {
    let mut undone: HashMap<RunKey, bool> = HashMap::new();
    for key in keys.iter() {
        if let std::collections::hash_map::Entry::Vacant(entry) = undone.entry(key.run()) {
            entry.insert(match store.run_by_key(key.run())? {
                Some(record) => is_undone(store, &record)?,
                None => false,
            });
        }
    }
    keys.retain(|key| !undone[&key.run()]);
    Ok(())
}
