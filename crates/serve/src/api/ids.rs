//! How nodes of the graph are named.
//!
//! | name | thing |
//! | --- | --- |
//! | `v12` | a version of a file |
//! | `p12` | a process |
//! | `c12` | the command that process 12 executed |
//! | `c12-3-HASH` | three commands alike, of which that is the first |
//!
//! Invariant: nodes of two answers have the same name only if they stand for the same thing.

use backstory_store::{ActivityKey, EntityKey};

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

/// The name of commands that are shown as one node. Several get a hash of all their processes, so
/// that two groups with the same first command have two names.
pub fn of_commands(keys: impl Iterator<Item = ActivityKey>) -> String {
    let keys: Vec<u64> = keys.map(|key| key.0).collect();
    let first = keys.first().copied().unwrap_or_default();
    match keys.len() {
        0 | 1 => format!("c{first}"),
        count => format!("c{first}-{count}-{:016x}", hash(&keys)),
    }
}

/// The 64-bit FNV-1a hash of numbers. It is the same on each machine and in each version.
fn hash(numbers: &[u64]) -> u64 {
    let bytes = numbers.iter().flat_map(|number| number.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The first process of the commands of a name.
pub fn first_command(reading: &Reading<'_>, name: &str) -> Answer<ActivityKey> {
    let first = name.split('-').next().unwrap_or(name);
    process(reading, &first.replacen('c', "p", 1))
}

/// The key of the name that [`of_version`] gave.
pub fn key_of(name: &str) -> Option<EntityKey> {
    number(name, 'v').ok().map(EntityKey)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_groups_with_the_same_first_command_have_two_names() {
        let name = |keys: &[u64]| of_commands(keys.iter().map(|&key| ActivityKey(key)));
        assert_eq!(name(&[7]), "c7");
        assert!(name(&[7, 8]).starts_with("c7-2-"));
        assert_ne!(name(&[7, 8]), name(&[7, 9]));
        assert_ne!(name(&[7, 8]), name(&[7]));
        assert_eq!(name(&[7, 8]), name(&[7, 8]));
    }
}
