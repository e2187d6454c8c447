//! Compares the facts of two contents, and says in plain sentences what changed.

mod paired_parts;

use backstory_comparison::{ContentDifference, LineMark, TextDifference, compare, excerpts};
use backstory_vocabulary::counted;
use serde_json::{Map, Value, json};

use crate::assignment::{self, ChangedSetting};
use crate::facts::{FileFacts, FilePart, PartList, TextBody};
use crate::visible;
use paired_parts::{PairedParts, by_name, by_value};

/// The most parts that a sentence names.
const NAMED: usize = 3;

/// The most characters of a value in a sentence that tells its type.
const SHORT: usize = 60;

/// The most parts that are listed in detail.
const LISTED: usize = 500;

/// The changes from one content to another.
#[derive(Debug, Clone, Default)]
pub struct FileChanges {
    sentences: Vec<String>,
    details: Map<String, Value>,
}

impl FileChanges {
    /// The changes in plain sentences, the most telling first. Empty if nothing changed that the
    /// inspector knows of.
    pub fn sentences(&self) -> Vec<String> {
        self.sentences.clone()
    }

    /// The changes in detail.
    pub fn json(&self) -> Map<String, Value> {
        self.details.clone()
    }

    /// Adds a sentence.
    pub(crate) fn say(&mut self, sentence: impl AsRef<str>) {
        self.sentences.push(visible::cut(sentence.as_ref(), 500));
    }

    /// Adds a detail.
    pub(crate) fn detail(&mut self, name: &str, value: &Value) {
        self.details.insert(name.to_owned(), visible::value(value));
    }

    /// Says that rows were not matched by a chosen key, as their cells were not compared.
    pub(crate) fn without_key(&mut self, key: &[String]) {
        if !key.is_empty() {
            self.say("the key was not used, because the rows were not compared");
        }
    }

    /// Adds all changes of another kind.
    pub(crate) fn append(&mut self, other: FileChanges) {
        self.sentences.extend(other.sentences);
        self.details.extend(other.details);
    }

    /// Adds values that differ.
    pub(crate) fn values(&mut self, words: (&'static str, &'static str), values: &PairedValues) {
        let parts = |values: &[(String, &Value)]| -> Vec<FilePart> {
            let values = values.iter().enumerate();
            values
                .map(|(at, (name, value))| listed_part(at, name, value))
                .collect()
        };
        let (removed, added) = (parts(&values.removed), parts(&values.added));
        let changed = values.changed.iter().enumerate();
        let changed: Vec<(FilePart, FilePart)> = changed
            .map(|(at, (name, old, new))| (listed_part(at, name, old), listed_part(at, name, new)))
            .collect();
        let paired = PairedParts {
            removed: removed.iter().collect(),
            added: added.iter().collect(),
            changed: changed.iter().map(|(old, new)| (old, new)).collect(),
            is_moved: false,
        };
        let mut settings = Vec::new();
        pairs(words, &paired, self, &mut settings);
        self.settings(&settings);
    }

    /// Adds settings that have another value.
    pub(crate) fn settings(&mut self, settings: &[ChangedSetting]) {
        for one in settings.iter().take(NAMED) {
            self.say(format!("`{}` {} → {}", one.name, one.from, one.to));
        }
        if settings.is_empty() {
            return;
        }
        let all = settings.iter().take(LISTED);
        let all = all.map(|one| json!({"name": one.name, "from": one.from, "to": one.to}));
        self.detail("settings", &all.collect());
    }
}

/// A part for a list. The sentences count all parts, and the details have the first ones. So the
/// values of the others are not copied.
fn listed_part(at: usize, name: &str, value: &Value) -> FilePart {
    FilePart {
        name: name.to_owned(),
        value: match at < LISTED {
            true => value.clone(),
            false => Value::Null,
        },
    }
}

/// The differences between the facts of two contents.
pub fn between(old: &FileFacts, new: &FileFacts) -> FileChanges {
    let mut changes = FileChanges::default();
    let mut settings = Vec::new();
    let empty = |words| PartList {
        words,
        parts: Vec::new(),
        is_keyed: true,
    };
    for list in &old.lists {
        let other = new.lists.iter().find(|other| other.words == list.words);
        let other = other.cloned().unwrap_or_else(|| empty(list.words));
        lists(list, &other, &mut changes, &mut settings);
    }
    for list in &new.lists {
        if !old.lists.iter().any(|other| other.words == list.words) {
            lists(&empty(list.words), list, &mut changes, &mut settings);
        }
    }
    for text in &new.texts {
        let before = old.texts.iter().find(|other| other.words == text.words);
        let before = before.map_or(&[][..], |before| &before.lines);
        texts(before, text, &mut changes, &mut settings);
    }
    changes.settings(&settings);
    values(old, new, &mut changes);
    changes
}

fn values(old: &FileFacts, new: &FileFacts, changes: &mut FileChanges) {
    let of = |facts: &FileFacts, name: &str| {
        let mut all = facts.values.iter();
        all.find(|(other, _)| other == name)
            .map_or(Value::Null, |(_, value)| value.clone())
    };
    let mut names: Vec<&String> = old.values.iter().map(|(name, _)| name).collect();
    names.extend(new.values.iter().map(|(name, _)| name));
    let mut seen = std::collections::HashSet::new();
    let mut details = Vec::new();
    for name in names.into_iter().filter(|name| seen.insert(*name)) {
        let (from, to) = (of(old, name), of(new, name));
        if from != to {
            changes.say(format!(
                "{} {} → {}",
                name.replace('_', " "),
                visible::word(&from),
                visible::word(&to)
            ));
            details.push(json!({"name": name, "from": from, "to": to}));
        }
    }
    if !details.is_empty() {
        changes.detail("values", &Value::Array(details));
    }
}

/// Values of both contents that belong together, and values that only one has, by their names.
#[derive(Default)]
pub(crate) struct PairedValues<'v> {
    removed: Vec<(String, &'v Value)>,
    added: Vec<(String, &'v Value)>,
    changed: Vec<(String, &'v Value, &'v Value)>,
}

impl<'v> PairedValues<'v> {
    pub(crate) fn remove(&mut self, name: String, value: &'v Value) {
        self.removed.push((name, value));
    }

    pub(crate) fn add(&mut self, name: String, value: &'v Value) {
        self.added.push((name, value));
    }

    pub(crate) fn change(&mut self, name: String, old: &'v Value, new: &'v Value) {
        self.changed.push((name, old, new));
    }

    /// True if nothing differs.
    pub(crate) fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.added.is_empty() && self.changed.is_empty()
    }
}

fn lists(
    old: &PartList,
    new: &PartList,
    changes: &mut FileChanges,
    settings: &mut Vec<ChangedSetting>,
) {
    let paired = match old.is_keyed && new.is_keyed {
        true => by_name(old, new),
        false => by_value(old, new),
    };
    pairs(old.words, &paired, changes, settings);
}

/// The sentences and details about paired parts.
fn pairs(
    (one, many): (&'static str, &'static str),
    paired: &PairedParts<'_>,
    changes: &mut FileChanges,
    settings: &mut Vec<ChangedSetting>,
) {
    if !paired.changed.is_empty() {
        let number = counted(paired.changed.len(), one, many);
        let told = paired.changed.iter().map(|(old, new)| told(old, new));
        changes.say(format!("{number} changed: {}", named(told)));
        for (old, new) in &paired.changed {
            settings.extend(settings_in(&old.value, &new.value));
        }
    }
    for (parts, verb) in [(&paired.removed, "removed"), (&paired.added, "added")] {
        if !parts.is_empty() {
            let names = named(parts.iter().map(|part| format!("`{}`", part.name)));
            changes.say(format!(
                "{} {verb}: {names}",
                counted(parts.len(), one, many)
            ));
        }
    }
    if paired.is_moved {
        changes.say(format!("{many} in another order"));
    }
    let names = |parts: &[&FilePart]| -> Value {
        let names = parts.iter().take(LISTED);
        names.map(|part| Value::String(part.name.clone())).collect()
    };
    let changed = paired
        .changed
        .iter()
        .take(LISTED)
        .map(|(old, new)| json!({"name": new.name, "from": old.value, "to": new.value}));
    if !(paired.removed.is_empty() && paired.added.is_empty() && paired.changed.is_empty()) {
        let details = json!({
            "removed": names(&paired.removed),
            "added": names(&paired.added),
            "changed": changed.collect::<Value>(),
        });
        changes.detail(&many.replace(' ', "_"), &details);
    }
}

/// The first few of them in one line.
fn named(all: impl ExactSizeIterator<Item = String>) -> String {
    let more = if all.len() > NAMED { ", …" } else { "" };
    let shown: Vec<String> = all.take(NAMED).collect();
    format!("{}{more}", shown.join(", "))
}

/// A changed part in a few words: its values, or the fields that differ.
fn told(old: &FilePart, new: &FilePart) -> String {
    let name = &new.name;
    match (&old.value, &new.value) {
        (Value::Object(from), Value::Object(to)) => {
            let differing: Vec<&String> = to
                .keys()
                .filter(|key| from.get(*key) != to.get(*key))
                .collect();
            let short = |value: Option<&Value>| {
                value.is_some_and(|value| {
                    let text = value.to_string();
                    text.chars().count() <= 30 && !text.contains("\\n")
                })
            };
            match differing.as_slice() {
                [key] if short(from.get(*key)) && short(to.get(*key)) => format!(
                    "`{name}` {key} {} → {}",
                    visible::word(&from[*key]),
                    visible::word(&to[*key])
                ),
                keys => {
                    let keys: Vec<&str> = keys.iter().map(|key| key.as_str()).collect();
                    format!("`{name}` ({})", keys.join(", "))
                }
            }
        }
        (from, to) => {
            let words = [from, to].map(visible::word);
            // A number and its text look alike.
            let [from, to] = match words[0] == words[1] && !(from.is_string() && to.is_string()) {
                true => [from, to].map(|value| visible::cut(&value.to_string(), SHORT)),
                false => words,
            };
            format!("`{name}` {from} → {to}")
        }
    }
}

/// Settings in the texts of a changed part.
fn settings_in(old: &Value, new: &Value) -> Vec<ChangedSetting> {
    match (old, new) {
        (Value::String(old), Value::String(new)) if old != new => {
            match compare(old.as_bytes(), new.as_bytes()) {
                ContentDifference::Text(text) => assignment::changed(&text),
                _ => Vec::new(),
            }
        }
        (Value::Object(old), Value::Object(new)) => {
            let both = new
                .iter()
                .filter_map(|(key, new)| Some((old.get(key)?, new)));
            both.flat_map(|(old, new)| settings_in(old, new)).collect()
        }
        _ => Vec::new(),
    }
}

fn texts(
    before: &[String],
    after: &TextBody,
    changes: &mut FileChanges,
    settings: &mut Vec<ChangedSetting>,
) {
    // A line break inside of a piece would make two of it.
    let joined = |lines: &[String]| -> Vec<u8> {
        let lines: Vec<String> = lines.iter().map(|line| line.replace('\n', " ")).collect();
        lines.join("\n").into_bytes()
    };
    let (old, new) = (joined(before), joined(&after.lines));
    let ContentDifference::Text(text) = compare(&old, &new) else {
        return;
    };
    let assigned = assignment::changed(&text);
    text_changes(&text, after.words, changes);
    if assigned.is_empty() {
        for (old, new) in replaced(&text).into_iter().take(NAMED) {
            let (old, new) = excerpts(old.trim(), new.trim());
            changes.say(format!("{old} → {new}"));
        }
    }
    settings.extend(assigned);
}

/// The lines that others took the place of.
fn replaced(text: &TextDifference) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    for hunk in &text.hunks {
        for run in hunk
            .lines
            .chunk_by(|(a, _), (b, _)| (*a == LineMark::Both) == (*b == LineMark::Both))
        {
            let of = |wanted: LineMark| {
                let lines = run.iter().filter(move |(mark, _)| *mark == wanted);
                lines.map(|(_, line)| String::from_utf8_lossy(line).into_owned())
            };
            if of(LineMark::Removed).count() == of(LineMark::Added).count() {
                pairs.extend(of(LineMark::Removed).zip(of(LineMark::Added)));
            }
        }
    }
    pairs
}

/// The sentence and the details of a difference between texts.
pub(crate) fn text_changes(
    text: &TextDifference,
    (one, many): (&'static str, &'static str),
    changes: &mut FileChanges,
) {
    let pieces = |number| counted(number, one, many);
    match (text.removed, text.added) {
        (0, 0) => return,
        (0, added) => changes.say(format!("{} added", pieces(added))),
        (removed, 0) => changes.say(format!("{} removed", pieces(removed))),
        (removed, added) if removed == added => {
            changes.say(format!("{} of {} changed", removed, pieces(text.a)));
        }
        (removed, added) => {
            changes.say(format!(
                "{} removed, {} added",
                pieces(removed),
                pieces(added)
            ));
        }
    }
    let lines = text.hunks.iter().flat_map(|hunk| &hunk.lines);
    let changed = lines.filter(|(mark, _)| *mark != LineMark::Both);
    let shown = changed.take(LISTED).map(|(mark, line)| {
        json!({"mark": mark.sign().to_string(), "text": String::from_utf8_lossy(line)})
    });
    let details =
        json!({"removed": text.removed, "added": text.added, "lines": shown.collect::<Value>()});
    changes.detail(&many.replace(' ', "_"), &details);
}
