//! Environments as the program was given them. Each is logged in full once.

use crate::hash::{mix, word};
use backstory_abi::{ENV_ARENA, ENV_PRELOAD, PRELOAD_NAME};
use std::borrow::Cow;
use std::collections::HashSet;
use std::ffi::CStr;
use std::sync::{Mutex, PoisonError};

/// The environments that were logged in full already, by hash.
#[derive(Debug, Default)]
pub struct SeenEnvironments(Mutex<HashSet<u64>>);

/// Environments remembered. When there are more, all are forgotten and logged in full again.
const ENVIRONMENTS: usize = 65_536;

impl SeenEnvironments {
    pub(crate) fn first(&self, hash: u64) -> bool {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= ENVIRONMENTS {
            seen.clear();
        }
        seen.insert(hash)
    }
}

/// An environment without the variables that load the recorder.
pub(crate) fn without_recorder(environment: &[u8]) -> Cow<'_, [u8]> {
    let mut out: Option<Vec<u8>> = None;
    let mut rest = environment;
    while !rest.is_empty() {
        let before = &environment[..environment.len() - rest.len()];
        let length =
            CStr::from_bytes_until_nul(rest).map_or(rest.len(), |entry| entry.count_bytes() + 1);
        let (entry, after) = rest.split_at(length);
        rest = after;
        match as_given(entry) {
            Given::Whole => {
                if let Some(out) = &mut out {
                    out.extend_from_slice(entry);
                }
            }
            // Most environments have no entry of the recorder's, and are not copied.
            Given::Without(kept) => {
                let out = out.get_or_insert_with(|| before.to_vec());
                out.extend_from_slice(kept);
                if !kept.is_empty() {
                    out.push(0);
                }
            }
        }
    }
    out.map_or(Cow::Borrowed(environment), Cow::Owned)
}

/// The path of the arena that the programs of an environment record into.
pub(crate) fn arena_of(environment: &[u8]) -> Option<&[u8]> {
    let mut entries = environment.split(|byte| *byte == 0);
    let arena = entries.find_map(|entry| value(entry, ENV_ARENA))?;
    (!arena.is_empty()).then_some(arena)
}

/// The part of an entry that remains.
enum Given<'a> {
    Whole,
    /// Only these bytes, whose NUL has to be added. Empty: no part of the entry.
    Without(&'a [u8]),
}

fn as_given(entry: &[u8]) -> Given<'_> {
    if value(entry, ENV_ARENA).is_some() {
        return Given::Without(b"");
    }
    let Some(libraries) = value(entry, ENV_PRELOAD) else {
        return Given::Whole;
    };
    let libraries = libraries.strip_suffix(b"\0").unwrap_or(libraries);
    let last = libraries
        .iter()
        .rposition(|b| matches!(b, b' ' | b':'))
        .map_or(0, |at| at + 1);
    if !libraries[last..].ends_with(PRELOAD_NAME.as_bytes()) {
        return Given::Whole;
    }
    let kept = if last > 1 {
        ENV_PRELOAD.len() + 1 + last - 1
    } else {
        0
    };
    Given::Without(&entry[..kept])
}

/// The value of the variable `name`, if the entry sets it.
fn value<'a>(entry: &'a [u8], name: &str) -> Option<&'a [u8]> {
    entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")
}

/// The hash of an environment; never 0, which stands for no environment.
pub(crate) fn environment_hash(bytes: &[u8]) -> u64 {
    bytes
        .chunks(8)
        .fold(0x9e37_79b9_7f4a_7c15, |hash, chunk| mix(hash, word(chunk)))
        | 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_names_the_arena_of_its_recorder() {
        assert_eq!(
            arena_of(b"A=1\0BACKSTORY_ARENA=/dev/shm/a\0B=2\0"),
            Some(&b"/dev/shm/a"[..])
        );
        for without in [&b"A=1\0B=2\0"[..], b"", b"BACKSTORY_ARENA=\0"] {
            assert_eq!(arena_of(without), None);
        }
    }

    #[test]
    fn the_recorders_variables_are_not_logged() {
        let given =
            b"A=1\0LD_PRELOAD=/x/mine.so:/y/$LIB/linux-backstory.so\0BACKSTORY_ARENA=/dev/shm/a\0B=2\0";
        assert_eq!(
            &without_recorder(given)[..],
            b"A=1\0LD_PRELOAD=/x/mine.so\0B=2\0"
        );
        assert_eq!(
            &without_recorder(b"LD_PRELOAD=/y/linux-backstory.so\0")[..],
            b""
        );
        assert_eq!(
            &without_recorder(b"LD_PRELOAD=/x/mine.so\0no value\0")[..],
            b"LD_PRELOAD=/x/mine.so\0no value\0"
        );
    }

    #[test]
    fn environments_that_differ_have_different_numbers() {
        let numbers: HashSet<u64> = (0..10_000)
            .map(|i| environment_hash(format!("A={i}\0B=x\0").as_bytes()))
            .collect();
        assert!(numbers.len() > 9_990, "{}", numbers.len());
    }
}
