//! The facts of all calls of a trace.

use std::collections::{BTreeMap, HashSet};

use super::calls::{Call, What};
use super::facts::Fact;
use super::line::Arg;
use super::lookup;
use super::meaning::interpret;
use super::traced_call::TracedCall;
use super::world::Context;

/// All facts of the calls, each once. A required fact replaces a permitted one of the same words
/// and names. Calls `acted` with the process of each required fact.
pub fn collect(calls: &[Call], contexts: &[Context], mut acted: impl FnMut(usize)) -> Vec<Fact> {
    let directories = directories(calls, contexts);
    let mut facts = BTreeMap::new();
    for (call, context) in calls.iter().zip(contexts) {
        let What::Call {
            name,
            args,
            returned,
        } = &call.what
        else {
            continue;
        };
        let mut traced = TracedCall {
            name,
            args,
            returned,
            context,
            directories: &directories,
            found: Vec::new(),
        };
        interpret(&mut traced);
        for mut fact in traced.found {
            fact.names.dedup();
            if fact
                .names
                .iter()
                .all(|n| n.starts_with(b"/") && !n.starts_with(b"/memfd:"))
            {
                let known = facts
                    .entry((fact.words.clone(), fact.names.clone(), fact.follows))
                    .or_insert_with(|| fact.clone());
                known.required |= fact.required;
                if fact.required {
                    acted(context.process);
                }
            }
        }
    }
    facts.into_values().collect()
}

/// Paths that were directories at some time during the trace.
fn directories(calls: &[Call], contexts: &[Context]) -> HashSet<Vec<u8>> {
    let mut found = HashSet::new();
    for (call, context) in calls.iter().zip(contexts) {
        let What::Call {
            name,
            args,
            returned,
        } = &call.what
        else {
            continue;
        };
        if !returned.ok() {
            continue;
        }
        match (name.as_str(), args.as_slice()) {
            ("getdents64" | "getdents" | "fchdir", [Arg::Fd { path, .. }, ..]) => {
                found.insert(path.clone())
            }
            ("mkdir" | "rmdir" | "chdir", [Arg::Text { bytes, .. }, ..]) => {
                found.insert(lookup::absolute(&context.cwd, bytes))
            }
            ("mkdirat", [Arg::Fd { path, .. }, Arg::Text { bytes, .. }, ..]) => {
                found.insert(lookup::absolute(path, bytes))
            }
            ("open" | "openat", _) if args.iter().any(|a| a.has("O_DIRECTORY")) => {
                returned.path.clone().is_some_and(|p| found.insert(p))
            }
            _ => false,
        };
    }
    found
}
