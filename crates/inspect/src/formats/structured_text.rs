//! JSON, JSON lines and TOML: members that were changed, added or removed, by their paths.
//!
//! A path is that of a program: `solver.dt`, `runs[2].seed`, `["a key"].x`. The root is `$`. JSON
//! lines are one list. Members of an object belong together by their names. Items of a list belong
//! together by their places, or by their values if the lists have different lengths.
//!
//! A content that its name calls JSON may have comments, or values such as `NaN`. It is then
//! compared as a text.

use backstory_comparison::{is_text, operations};
use backstory_inspection::file_parts::{NoPart, PartAnswer, PartName};
use serde_json::{Value, json};
use similar::DiffOp;

use super::plain_text::PlainText;
use crate::changes::{FileChanges, PairedValues};
use crate::parts::member_path::{ROOT, item_path, member_path};
use crate::parts::{json_value, toml_value};
use crate::{FileFacts, Inspector, NamedContent, Read, UnreadableContent};

/// The most bytes of a content that is read by its members.
const LARGEST: usize = 4 << 20;

/// The most items of a list whose items are found by their values.
const ALIGNED: usize = 5_000;

/// How values are written.
pub enum StructuredText {
    Json,
    Toml,
}

impl Inspector for StructuredText {
    fn part(&self, content: NamedContent<'_>, name: &PartName) -> PartAnswer {
        match (self, name) {
            (_, PartName::Cell(_)) => Err(NoPart::OtherKind),
            (StructuredText::Json, PartName::Member(path)) => {
                json_value::place(content.bytes, path, has_lines(content.name))
            }
            (StructuredText::Toml, PartName::Member(path)) => {
                toml_value::place(content.bytes, path)
            }
        }
    }

    fn facts(&self, content: NamedContent<'_>) -> Read<FileFacts> {
        let mut facts = PlainText.facts(content)?;
        match self.value(content) {
            Ok(value) => {
                facts.value("form", form(&value));
                facts.value("values", leaves(&value));
                facts.parts(("member", "members"), members(&value));
            }
            Err(error) => facts.value("compared_as_text", error.to_string()),
        }
        Ok(facts)
    }

    fn changes(&self, old: NamedContent<'_>, new: NamedContent<'_>) -> Read<FileChanges> {
        let name = self.name();
        let (from, to) = match (self.value(old), self.value(new)) {
            (Ok(from), Ok(to)) => (from, to),
            (former, latter) => {
                let mut changes = FileChanges::default();
                match (former, latter) {
                    (Ok(_), Err(error)) => {
                        changes.say(format!("it is no {name} any more: {error}"))
                    }
                    (Err(error), Ok(_)) => changes.say(format!("it was no {name} before: {error}")),
                    _ => {}
                }
                changes.append(PlainText.changes(old, new)?);
                return Ok(changes);
            }
        };
        let mut changes = FileChanges::default();
        if old.bytes == new.bytes {
            return Ok(changes);
        }
        let mut paired = PairedValues::default();
        compare(ROOT, &from, &to, &mut paired);
        if paired.is_empty() {
            changes.say("the values are the same, written in another way");
        }
        changes.values(("member", "members"), &paired);
        Ok(changes)
    }
}

impl StructuredText {
    fn name(&self) -> &'static str {
        match self {
            StructuredText::Json => "JSON",
            StructuredText::Toml => "TOML",
        }
    }

    fn value(&self, content: NamedContent<'_>) -> Read<Value> {
        if content.bytes.len() > LARGEST {
            let why = format!("it has more than {} MiB", LARGEST >> 20);
            return Err(UnreadableContent(why));
        }
        if !is_text(content.bytes) {
            return Err(UnreadableContent("it is not a text".to_owned()));
        }
        let text = std::str::from_utf8(content.bytes).map_err(UnreadableContent::of)?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        match self {
            StructuredText::Json => json_value(text, has_lines(content.name)),
            StructuredText::Toml => {
                let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
                    UnreadableContent(error.message().to_owned())
                })?;
                serde_json::to_value(table).map_err(UnreadableContent::of)
            }
        }
    }
}

/// True for JSON lines.
fn has_lines(name: &str) -> bool {
    let end = name.rsplit('.').next().unwrap_or_default();
    ["jsonl", "ndjson"].contains(&&*end.to_ascii_lowercase())
}

fn json_value(text: &str, is_lines: bool) -> Read<Value> {
    if !is_lines {
        return serde_json::from_str(text).map_err(UnreadableContent::of);
    }
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    let values = lines.map(|(at, line)| {
        serde_json::from_str(line)
            .map_err(|error| UnreadableContent(format!("line {}: {error}", at + 1)))
    });
    Ok(Value::Array(values.collect::<Read<_>>()?))
}

/// The kind of a value, and how much a list or an object has.
fn form(value: &Value) -> String {
    match value {
        Value::Object(members) => format!("object of {}", members.len()),
        Value::Array(items) => format!("list of {}", items.len()),
        Value::String(_) => "text".to_owned(),
        Value::Number(_) => "number".to_owned(),
        Value::Bool(_) | Value::Null => value.to_string(),
    }
}

/// The number of values that are no list and no object.
fn leaves(value: &Value) -> usize {
    match value {
        Value::Object(members) => members.values().map(leaves).sum(),
        Value::Array(items) => items.iter().map(leaves).sum(),
        _ => 1,
    }
}

/// The members of the root, each with its value, or with the form of a list or object.
fn members(value: &Value) -> Vec<(String, Value)> {
    let shown = |value: &Value| match value {
        Value::Object(_) | Value::Array(_) => Value::String(form(value)),
        other => json!({"value": other}),
    };
    match value {
        Value::Object(members) => {
            let all = members.iter();
            all.map(|(name, value)| (member_path(ROOT, name), shown(value)))
                .collect()
        }
        _ => Vec::new(),
    }
}

/// Adds the differences between two values at a path.
fn compare<'v>(path: &str, old: &'v Value, new: &'v Value, paired: &mut PairedValues<'v>) {
    match (old, new) {
        (Value::Object(from), Value::Object(to)) => {
            for (name, value) in from {
                match to.get(name) {
                    Some(other) => compare(&member_path(path, name), value, other, paired),
                    None => paired.remove(member_path(path, name), value),
                }
            }
            for (name, value) in to.iter().filter(|(name, _)| !from.contains_key(*name)) {
                paired.add(member_path(path, name), value);
            }
        }
        (Value::Array(from), Value::Array(to)) => compare_lists(path, from, to, paired),
        _ if old != new => paired.change(path.to_owned(), old, new),
        _ => {}
    }
}

fn compare_lists<'v>(
    path: &str,
    from: &'v [Value],
    to: &'v [Value],
    paired: &mut PairedValues<'v>,
) {
    let place = |at: usize| item_path(path, at);
    if from.len() == to.len() || from.len().max(to.len()) > ALIGNED {
        for (at, (old, new)) in from.iter().zip(to).enumerate() {
            compare(&place(at), old, new, paired);
        }
        let both = from.len().min(to.len());
        for (at, value) in from.iter().enumerate().skip(both) {
            paired.remove(place(at), value);
        }
        for (at, value) in to.iter().enumerate().skip(both) {
            paired.add(place(at), value);
        }
        return;
    }
    let keys = |items: &[Value]| -> Vec<String> { items.iter().map(Value::to_string).collect() };
    for op in operations(&keys(from), &keys(to)) {
        if matches!(op, DiffOp::Equal { .. }) {
            continue;
        }
        let (gone, come) = (op.old_range(), op.new_range());
        let both = gone.len().min(come.len());
        for at in 0..both {
            let (old, new) = (gone.start + at, come.start + at);
            compare(&place(new), &from[old], &to[new], paired);
        }
        gone.skip(both)
            .for_each(|at| paired.remove(place(at), &from[at]));
        come.skip(both)
            .for_each(|at| paired.add(place(at), &to[at]));
    }
}
