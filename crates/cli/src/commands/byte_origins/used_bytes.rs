//! The results that the bytes of a file came into: a line of `uses`, if runs that made results were
//! refined. It is the same fact that `of` states about each result ([`ByteSources`]).
//!
//! Invariant: a result that got no byte stays in the answer. A branch may have depended on the
//! file.

use std::collections::BTreeSet;

use backstory_account::Account;
use backstory_graph::model::EntityKind;
use backstory_query::ByteSources;
use backstory_store::EntityKey;

use super::file_bytes::{names, refined_runs};
use crate::current_store::CurrentStore;
use crate::json::Value;

/// The most results whose bytes are looked up.
const MOST: usize = 64;

/// The results of refined runs, by their paths.
#[derive(Debug, Default)]
pub struct UsedBytes {
    /// With bytes of the file.
    into: BTreeSet<Vec<u8>>,
    /// Without any.
    none_into: BTreeSet<Vec<u8>>,
    /// It is only possible that they have some.
    possible: BTreeSet<Vec<u8>>,
    /// The number of results that were not looked at.
    others: usize,
}

impl UsedBytes {
    /// The results of an account of `uses`. `None` if no run that made one was refined.
    pub fn of_results(current: &CurrentStore, account: &Account) -> Option<UsedBytes> {
        if !current.home.bytes_dir("").exists() {
            return None;
        }
        let roots = account.roots.iter();
        let subject: BTreeSet<Vec<u8>> = roots
            .map(|&root| account.files[root].path.to_vec())
            .collect();
        let mut runs = refined_runs(current);
        let mut results = account.files.iter().filter(|file| {
            let is_result = file.kind == EntityKind::File && !file.makers.is_empty();
            is_result && file.own && !subject.contains(&*file.path)
        });
        let mut found = UsedBytes::default();
        let mut refined = results.by_ref().filter_map(|file| {
            let bytes = ByteSources::of_version(&mut runs, EntityKey(file.entity));
            Some((file, bytes.ok().flatten()?))
        });
        for (file, bytes) in refined.by_ref().take(MOST) {
            let to = match bytes.has_bytes_of(&subject) {
                Some(true) => &mut found.into,
                Some(false) => &mut found.none_into,
                None => &mut found.possible,
            };
            to.insert(file.path.to_vec());
        }
        found.others = results.count();
        // Another version of the same path can have some.
        found.none_into.retain(|path| !found.into.contains(path));
        let all = [&found.into, &found.none_into, &found.possible];
        all.iter().any(|set| !set.is_empty()).then_some(found)
    }

    /// The line of a screen.
    pub fn line(&self) -> String {
        let parts = [
            ("into", &self.into, ""),
            // A branch may have depended on it.
            ("none into", &self.none_into, ", apart from decisions"),
            ("possibly into", &self.possible, ""),
        ];
        let parts = parts.iter().filter(|(_, paths, _)| !paths.is_empty());
        let mut parts: Vec<String> = parts
            .map(|(how, paths, behind)| format!("{how} {}{behind}", names(paths).join(", ")))
            .collect();
        if self.others > 0 {
            parts.push(format!("{} more results not looked at", self.others));
        }
        format!("bytes: {}", parts.join("; "))
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let list = |paths: &BTreeSet<Vec<u8>>| Value::array(paths.iter().map(Vec::as_slice));
        Value::Object(vec![
            ("into", list(&self.into)),
            ("none_into", list(&self.none_into)),
            ("possible_into", list(&self.possible)),
            ("not_looked_at", self.others.into()),
        ])
    }
}
