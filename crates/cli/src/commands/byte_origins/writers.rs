//! The functions that wrote the bytes of a part of a file.
//!
//! The byte engine knows the functions that were active at each write. If the run was recorded with
//! `--functions`, the graph has calls of some of them, with their arguments. A function of the
//! engine and one of the graph are the same if they have one name and one source file.
//!
//! Functions of an interpreter are not on the stack that the engine sees. So if the engine has no
//! function with debugging information, the calls of the graph that wrote the file are possible.
//!
//! Invariant: a function has certainly written a byte only if the engine saw it.

use std::collections::HashSet;

use backstory_bytes::{ActiveFunction, Origins, RangeSet};
use backstory_eventlog::event::Bytes;
use backstory_graph::model::{ActivityId, Certainty};
use backstory_graph::nested::{FUNCTION, KIND};
use backstory_ordering::SmallSort;
use backstory_store::{ActivityKey, GraphStore};
use backstory_vocabulary::Word;

use super::{place, ranges};
use crate::current_store::CurrentStore;
use crate::json::Value;
use crate::text::line::printable;
use crate::text::words::counted;

/// The most functions of one write that the text has, and calls of one function.
const SHOWN: usize = 3;

/// Bytes that one function wrote.
#[derive(Debug)]
pub struct WrittenBytes {
    /// The bytes.
    pub bytes: RangeSet,
    /// The active functions, the innermost first. Empty if the engine does not know them.
    pub functions: Vec<ActiveFunction>,
    /// The calls in the graph of the innermost function that has some: those that wrote the file.
    pub calls: Vec<Vec<Bytes>>,
}

/// The functions that wrote the bytes of an answer, in the order of the bytes.
pub fn written_bytes(
    current: &CurrentStore,
    run: &str,
    path: &[u8],
    origins: &Origins,
) -> Vec<WrittenBytes> {
    // The line is an addition to another answer, so a trouble is not reported.
    let calls = recorded_calls(current, run, path).unwrap_or_default();
    joined(origins, calls)
}

/// Adds the calls of the graph to the functions of the engine.
fn joined(origins: &Origins, calls: Vec<Vec<Bytes>>) -> Vec<WrittenBytes> {
    let writers = origins.writers.iter().map(|(functions, bytes)| {
        let known = functions.iter().find_map(|function| {
            let own = calls.iter().filter(|call| is_call_of(call, function));
            let own: Vec<_> = own.cloned().collect();
            (!own.is_empty()).then_some(own)
        });
        WrittenBytes {
            bytes: bytes.clone(),
            functions: functions.clone(),
            calls: known.unwrap_or_default(),
        }
    });
    let mut writers: Vec<WrittenBytes> = writers.collect();
    writers.sort_small_by_key(|one| one.bytes.iter().next().map(|range| range.start));
    let is_unknown = |one: &WrittenBytes| one.calls.is_empty() && chain(&one.functions).is_none();
    if calls.is_empty() || !writers.iter().all(is_unknown) {
        return writers;
    }
    vec![WrittenBytes {
        bytes: origins.written.clone(),
        functions: Vec::new(),
        calls,
    }]
}

/// The calls of functions in a run that wrote a file, each by its words.
fn recorded_calls(
    current: &CurrentStore,
    run: &str,
    path: &[u8],
) -> backstory_store::Result<Vec<Vec<Bytes>>> {
    let store = &current.store;
    let Some(run) = store.run(run)? else {
        return Ok(Vec::new());
    };
    let extended = store.extended(run.key)?;
    let functions: HashSet<ActivityId> = extended
        .into_iter()
        .filter(|(_, _, kind, payload)| **kind == *KIND && **payload == *FUNCTION)
        .map(|(id, ..)| id)
        .collect();
    let mut calls = Vec::new();
    for version in store.at_path(path)? {
        if functions.is_empty() || version.run() != run.key {
            continue;
        }
        for id in store.generators(version)? {
            if functions.contains(&id) {
                calls.push(store.activity(ActivityKey::new(run.key, id))?.argv);
            }
        }
    }
    Ok(calls)
}

/// True if a call of the graph, `NAME() in FILE:LINE`, is of a function of the engine.
fn is_call_of(call: &[Bytes], function: &ActiveFunction) -> bool {
    let text = call.first().map(|word| &**word).unwrap_or_default();
    let (name, place) = match text.windows(4).position(|part| part == b"() i") {
        Some(at) => (&text[..at], text.get(at + b"() in ".len()..)),
        None => (text.strip_suffix(b"()").unwrap_or(text), None),
    };
    let file = place.map(|place| {
        let end = place.iter().rposition(|&byte| byte == b':');
        let path = &place[..end.unwrap_or(place.len())];
        let start = path.iter().rposition(|&byte| byte == b'/');
        &path[start.map_or(0, |at| at + 1)..]
    });
    let types = function.name.strip_prefix(name);
    let is_named = types.is_some_and(|types| types.is_empty() || types.starts_with(b"("));
    is_named && file.is_none_or(|file| function.file.is_empty() || *file == *function.file)
}

/// `write_table() in plot.c:44, called by main() in plot.c:60`. Functions without debugging
/// information are left out: they are mostly those of an interpreter, or of a library.
fn chain(functions: &[ActiveFunction]) -> Option<String> {
    let known = functions.iter().filter(|one| !one.file.is_empty());
    let shown = known.take(SHOWN).map(|function| {
        let name = printable(&function.name);
        let call = if name.ends_with(')') { "" } else { "()" };
        format!(
            "{name}{call} in {}:{}",
            printable(&function.file),
            function.line
        )
    });
    let shown: Vec<String> = shown.collect();
    (!shown.is_empty()).then(|| shown.join(", called by "))
}

/// `the recorded call write_table() in plot.c:10 path="table.csv"`
fn calls_text(calls: &[Vec<Bytes>]) -> Option<String> {
    let words = |call: &Vec<Bytes>| {
        let words: Vec<String> = call.iter().map(|word| printable(word)).collect();
        words.join(" ")
    };
    let shown: Vec<String> = calls.iter().take(SHOWN).map(words).collect();
    let shown = shown.join("; ");
    match calls.len() {
        0 => None,
        1 => Some(format!("the recorded call {shown}")),
        count => Some(format!("one of {count} recorded calls: {shown}")),
    }
}

impl WrittenBytes {
    /// The functions and calls in words. `None`: nothing is known.
    pub fn how(&self) -> Option<String> {
        let calls = calls_text(&self.calls);
        if self.functions.is_empty() {
            return calls.map(|calls| format!("possibly written in {calls}"));
        }
        let by = match (chain(&self.functions), calls) {
            (Some(by), None) => format!("by {by}"),
            (Some(by), Some(calls)) => format!("by {by}, in {calls}"),
            (None, Some(calls)) => format!("in {calls}"),
            (None, None) => return None,
        };
        Some(format!("written {by}"))
    }

    /// The line of the text. With `whole`, all of the part has this writer.
    pub fn line(&self, content: Option<&[u8]>, whole: bool) -> Option<String> {
        let how = self.how()?;
        if self.functions.is_empty() {
            return Some(how);
        }
        let first = self.bytes.iter().next().filter(|_| !whole);
        let more = match self.bytes.iter().count() {
            0 | 1 => String::new(),
            count => format!(" and {} more", counted(count - 1, "range", "ranges")),
        };
        let part = first.map(|range| format!("{}{more} ", place(content, &range)));
        Some(format!("{}{how}", part.unwrap_or_default()))
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let certainty = match self.functions.is_empty() {
            true => Certainty::Possible,
            false => Certainty::Seen,
        };
        let functions = self.functions.iter().map(|function| {
            let line = (function.line > 0).then_some(function.line);
            Value::Object(vec![
                ("name", function.name.as_slice().into()),
                ("file", function.file.as_slice().into()),
                ("line", line.into()),
            ])
        });
        let calls = self.calls.iter();
        let calls = calls.map(|call| Value::array(call.iter().map(|word| &**word)));
        Value::Object(vec![
            ("ranges", ranges(&self.bytes)),
            ("certainty", certainty.word().into()),
            ("functions", Value::Array(functions.collect())),
            ("calls", Value::Array(calls.collect())),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(name: &str, file: &str) -> ActiveFunction {
        ActiveFunction {
            name: name.into(),
            file: file.into(),
            line: 7,
        }
    }

    fn call(text: &str) -> Vec<Bytes> {
        vec![text.as_bytes().into()]
    }

    fn lines(writers: &[ActiveFunction], calls: &[&str]) -> Vec<String> {
        let mut origins = Origins::default();
        origins.written.insert(0..9);
        let bytes = origins.written.clone();
        origins.writers.insert(writers.to_vec(), bytes);
        let calls = calls.iter().map(|text| call(text)).collect();
        let all = joined(&origins, calls);
        all.iter().filter_map(|one| one.line(None, true)).collect()
    }

    #[test]
    fn a_function_is_that_of_a_call_with_its_name_and_file() {
        let method = function("plot::Table::write(int)", "plot.cc");
        for (text, is_it) in [
            ("plot::Table::write() in plot.cc:3", true),
            ("plot::Table::write() in src/plot.cc:3", true),
            ("plot::Table::write()", true),
            ("plot::Table::write() in other.cc:3", false),
            ("plot::Table::writ() in plot.cc:3", false),
            ("write() in plot.cc:3", false),
        ] {
            assert_eq!(is_call_of(&call(text), &method), is_it, "{text}");
        }
        assert!(is_call_of(&call("put() in a.c:3"), &function("put", "")));
    }

    #[test]
    fn calls_are_only_possible_if_the_engine_knows_no_function_of_the_program() {
        let calls = ["save() in plot.py:3"];
        let possible = ["possibly written in the recorded call save() in plot.py:3"];
        assert_eq!(lines(&[function("_Py_write", "")], &calls), possible);
        let known = lines(&[function("put", "a.c")], &calls);
        assert_eq!(known, ["written by put() in a.c:7"]);
        assert!(lines(&[function("_Py_write", "")], &[]).is_empty());
    }
}
