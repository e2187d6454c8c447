//! Spoils an account on purpose, so that a test can see the oracle fail. The environment variable
//! `BACKSTORY_ORACLE_DROP` names the kind of claim that is removed before the comparison.

use super::verdict::Account;
use crate::answer::{Certainty, FileLine};
use crate::strace::Word;

/// Name of the variable.
pub const VARIABLE: &str = "BACKSTORY_ORACLE_DROP";

/// Every kind that can be left out.
pub const KINDS: [&str; 11] = [
    "read", "write", "delete", "rename", "exec", "stat", "dir", "missing", "link", "meta",
    "process",
];

/// The word of a kind. `None` for `process`.
fn word(kind: &str) -> Option<Word> {
    serde_json::from_value(serde_json::Value::String(kind.to_owned())).ok()
}

/// Removes one claim of `kind`: the last one, so that a single loss must be noticed. Returns false
/// without any.
pub fn one(account: &mut Account, kind: &str) -> bool {
    let Some(word) = word(kind) else {
        return account.processes.pop().is_some();
    };
    let Some(line) = account
        .files
        .iter_mut()
        .rev()
        .find(|l| l.access.contains(&word))
    else {
        return false;
    };
    line.access.retain(|w| *w != word);
    true
}

/// Moves the claims about the path that ends with `from` to the one that ends with `to`. Returns
/// false if either is missing.
pub fn mistake(account: &mut Account, from: &str, to: &str) -> bool {
    let ends = |line: &FileLine, end: &str| line.path.0.ends_with(end.as_bytes());
    let words: Vec<Word> = account
        .files
        .iter()
        .filter(|line| ends(line, from))
        .flat_map(|line| line.access.clone())
        .collect();
    let other = account
        .files
        .iter_mut()
        .find(|line| ends(line, to) && line.certainty == Certainty::Seen);
    let Some(other) = other.filter(|_| !words.is_empty()) else {
        return false;
    };
    other.access.extend(words);
    true
}

/// Removes every claim of `kind`. Returns false without any.
pub fn all(account: &mut Account, kind: &str) -> bool {
    let mut any = false;
    while one(account, kind) {
        any = true;
    }
    any
}
