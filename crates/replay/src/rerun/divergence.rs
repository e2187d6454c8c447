//! Explains why a step gave other bytes from the same inputs.
//!
//! In: the content of an output before and after the step, and what the step used when it was
//! recorded. Out: a sentence with the probable cause.

use std::collections::BTreeSet;

use backstory_store::{ActivityKey, EntityKey, Store};

use crate::Result;
use crate::verdict::nondeterministic_input;

/// The most characters of a line in a message.
const SHOWN: usize = 60;

/// The cause that the first different line of a text shows: the time of day. `None` if the line
/// shows no time, or the contents are no texts.
pub fn embedded_time(before: &[u8], after: &[u8]) -> Option<String> {
    let (before, after) = (
        std::str::from_utf8(before).ok()?,
        std::str::from_utf8(after).ok()?,
    );
    let mut pairs = before.lines().zip(after.lines());
    let (old, new) = pairs.find(|(old, new)| old != new)?;
    let letters = |line: &str| -> String { line.chars().filter(|c| !c.is_ascii_digit()).collect() };
    (letters(old) == letters(new) && has_time(new)).then(|| {
        let line: String = new.trim().chars().take(SHOWN).collect();
        format!("it embeds the time: {line}")
    })
}

/// True for a line with a time of day (`12:30`), a date (`2026-01-31`) or seconds since 1970.
fn has_time(line: &str) -> bool {
    let bytes = line.as_bytes();
    let digits = |from: usize, to: usize| {
        bytes
            .get(from..to)
            .is_some_and(|part| part.iter().all(u8::is_ascii_digit))
    };
    (0..bytes.len()).any(|at| {
        let clock =
            digits(at, at + 2) && bytes.get(at + 2) == Some(&b':') && digits(at + 3, at + 5);
        let date = digits(at, at + 4) && bytes.get(at + 4) == Some(&b'-') && digits(at + 5, at + 7);
        clock || date || digits(at, at + 10)
    })
}

/// The inputs of a step that are not the same each time: randomness, the network, `/proc`.
///
/// # Errors
///
/// If the store fails.
pub fn nondeterministic_inputs(
    store: &dyn Store,
    members: &[ActivityKey],
) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for &activity in members {
        for edge in store.stream(activity)?.edges {
            let entity = store.entity(EntityKey::new(activity.run(), edge.entity))?;
            found.extend(nondeterministic_input(
                edge.relation,
                entity.kind,
                &entity.path,
            ));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_differs_in_its_time_alone_shows_the_cause() {
        let cause = embedded_time(b"a\nbuilt 10:30:01\n", b"a\nbuilt 10:31:22\n");
        assert_eq!(cause.unwrap(), "it embeds the time: built 10:31:22");
        assert!(embedded_time(b"sum 12\n", b"sum 13\n").is_none());
        assert!(embedded_time(b"a 10:30\n", b"b 10:31\n").is_none());
        assert!(embedded_time(b"1700000000\n", b"1700000009\n").is_some());
    }
}
