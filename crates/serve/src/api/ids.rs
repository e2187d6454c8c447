//! How nodes of the graph are named: `v12` is a version of a file, `p12` a process.

use backstory_store::{ActivityKey, EntityKey, GraphStore};

use crate::problem::{Answer, Problem};
use crate::readers::Reading;

/// The name of a version.
pub fn of_version(key: EntityKey) -> String {
    format!("v{}", key.0)
}

/// The name of a process.
pub fn of_process(key: ActivityKey) -> String {
    format!("p{}", key.0)
}

/// The version of a name. Fails if the store does not have it.
pub fn version(reading: &Reading<'_>, name: &str) -> Answer<EntityKey> {
    let key = EntityKey(number(name, 'v')?);
    let run = reading.store.run_by_key(key.run())?;
    match run.filter(|run| u64::from(key.local().0) < run.counts.entities) {
        Some(_) => Ok(key),
        None => Err(gone(name)),
    }
}

/// The process of a name. Fails if the store does not have it.
pub fn process(reading: &Reading<'_>, name: &str) -> Answer<ActivityKey> {
    let key = ActivityKey(number(name, 'p')?);
    let run = reading.store.run_by_key(key.run())?;
    match run.filter(|run| u64::from(key.local().0) < run.counts.activities) {
        Some(_) => Ok(key),
        None => Err(gone(name)),
    }
}

fn gone(name: &str) -> Problem {
    Problem::not_found(format!(
        "nothing in the store has the id {name}; its run may have been removed"
    ))
}

fn number(name: &str, kind: char) -> Answer<u64> {
    let digits = name.strip_prefix(kind).unwrap_or_default();
    digits.parse().map_err(|_| {
        Problem::bad_request(format!(
            "'{name}' is no id; ids are `{kind}` and a number, as answers have them"
        ))
    })
}
