//! A selection of a rule: fields with their values.
//!
//! All fields of a map must match. Of a list of maps, one must. Of a list of values, one must,
//! unless the modifier `all` is given.

use crate::deadline::Deadline;
use crate::fact::{FIELDS, Fact, Field, Operation};
use crate::glob::{Anchor, Glob};
use crate::pattern::{Comparison, Pattern};
use crate::run_graph::RunGraph;
use crate::yaml::{Mistake, Node, NodeValue};

/// The modifiers of fields, with their meaning.
pub const MODIFIERS: [(&str, &str); 12] = [
    ("contains", "the value is anywhere in the field"),
    ("startswith", "the field begins with the value"),
    ("endswith", "the field ends with the value"),
    ("all", "all values match, and not just one"),
    ("cased", "case matters"),
    (
        "re",
        "the value is a regular expression, in which case matters",
    ),
    ("i", "after `re`: case does not matter"),
    ("cidr", "the value is a network such as 10.0.0.0/8"),
    (
        "exists",
        "`true`: the field has a value; `false`: it has none",
    ),
    ("lt, lte", "the number is less (or equal)"),
    ("gt, gte", "the number is greater (or equal)"),
    ("null as value", "the field has no value"),
];

/// A selection.
#[derive(Debug)]
pub struct Selection {
    /// One of these must match.
    alternatives: Vec<Vec<FieldTest>>,
}

/// A field with its values.
#[derive(Debug)]
pub(crate) struct FieldTest {
    pub(crate) field: Field,
    pub(crate) patterns: Vec<Pattern>,
    /// All patterns must match.
    pub(crate) all: bool,
    /// Instead of patterns: whether the field has a value.
    pub(crate) exists: Option<bool>,
}

impl Selection {
    /// Reads a selection.
    ///
    /// # Errors
    ///
    /// The first mistake.
    pub fn parse(node: &Node) -> Result<Selection, Mistake> {
        let alternatives = node.items().iter().map(|map| {
            let NodeValue::Map(entries) = &map.value else {
                return Err(map.at.mistake(
                    "expected fields with values: words without a field are not supported",
                ));
            };
            let tests = entries
                .iter()
                .map(|(key, value)| FieldTest::parse(key, value));
            let mut tests = tests.collect::<Result<Vec<_>, _>>()?;
            // The operation excludes most facts, and costs least.
            tests.sort_by_key(|test| test.field != Field::Operation);
            Ok(tests)
        });
        let alternatives = alternatives.collect::<Result<Vec<_>, _>>()?;
        let is_empty = alternatives.is_empty() || alternatives.iter().any(Vec::is_empty);
        match is_empty {
            true => Err(node.at.mistake("the selection is empty")),
            false => Ok(Selection { alternatives }),
        }
    }

    /// The tests of fields. All tests of one of these lists must match.
    pub(crate) fn alternatives(&self) -> &[Vec<FieldTest>] {
        &self.alternatives
    }

    /// Whether a field of the selection is `field`.
    pub(crate) fn asks_for(&self, field: Field) -> bool {
        let mut tests = self.alternatives.iter().flatten();
        tests.any(|test| test.field == field)
    }

    /// Whether a fact meets everything but the content in an alternative that asks for it.
    pub(crate) fn depends_on_content(
        &self,
        graph: &RunGraph,
        fact: &Fact,
        clock: &Deadline,
    ) -> bool {
        let mut alternatives = self.alternatives.iter();
        alternatives.any(|tests| asks_content(tests) && matches_without(tests, graph, fact, clock))
    }

    /// Whether a fact is selected. `None`: it depends on a content that no inspector was asked
    /// about, or the time is over.
    pub(crate) fn matches(&self, graph: &RunGraph, fact: &Fact, clock: &Deadline) -> Option<bool> {
        let is_known = graph.knows_content(fact);
        let mut found = Some(false);
        for tests in &self.alternatives {
            if asks_content(tests) && !is_known {
                if matches_without(tests, graph, fact, clock) {
                    found = None;
                }
            } else if tests.iter().all(|test| test.matches(graph, fact, clock)) {
                return Some(true);
            }
        }
        // A comparison that was not made finds nothing, so `not` must not hold.
        found.filter(|_| !clock.is_over())
    }
}

/// Whether an alternative asks what inspectors say.
fn asks_content(tests: &[FieldTest]) -> bool {
    tests.iter().any(|test| test.field.is_of_content())
}

/// Whether a fact meets everything but the content in an alternative.
fn matches_without(tests: &[FieldTest], graph: &RunGraph, fact: &Fact, clock: &Deadline) -> bool {
    let mut others = tests.iter().filter(|test| !test.field.is_of_content());
    others.all(|test| test.matches(graph, fact, clock))
}

/// The message about a field that is not known. Case is the most usual mistake.
fn unknown_field(name: &str) -> String {
    let names: Vec<&str> = FIELDS.iter().map(|(_, name, _)| *name).collect();
    let mut similar = names
        .iter()
        .filter(|known| known.eq_ignore_ascii_case(name));
    match similar.next() {
        Some(meant) => format!("unknown field `{name}`: did you mean `{meant}`?"),
        None => format!(
            "unknown field `{name}`: the fields are {}",
            names.join(", ")
        ),
    }
}

impl FieldTest {
    fn parse(key: &Node, value: &Node) -> Result<FieldTest, Mistake> {
        let mut words = key.text()?.split('|');
        let name = words.next().unwrap_or_default();
        let Some(field) = Field::named(name) else {
            return Err(key.at.mistake(unknown_field(name)));
        };
        let modifiers: Vec<&str> = words.collect();
        let known = MODIFIERS[..11].iter();
        let known: Vec<&str> = known.flat_map(|(words, _)| words.split(", ")).collect();
        if let Some(word) = modifiers.iter().find(|word| !known.contains(*word)) {
            let known = known.join(", ");
            let what = format!("unknown modifier `{word}`: the modifiers are {known}");
            return Err(key.at.mistake(what));
        }
        let has = |word: &str| modifiers.contains(&word);
        let exists = match has("exists") {
            true => Some(value.text()? == "true"),
            false => None,
        };
        let pattern = |item: &Node| pattern(item, &modifiers);
        let patterns = match exists {
            Some(_) => Vec::new(),
            None => value
                .items()
                .iter()
                .map(pattern)
                .collect::<Result<Vec<_>, _>>()?,
        };
        if exists.is_none() && patterns.is_empty() {
            return Err(value
                .at
                .mistake("the list has no value, so nothing would match"));
        }
        if field == Field::Operation && modifiers.is_empty() {
            for item in value.items() {
                let word = item.text()?;
                if !Operation::all().any(|operation| operation.word() == word) {
                    let words: Vec<&str> = Operation::all().map(Operation::word).collect();
                    let words = words.join(", ");
                    return Err(item.at.mistake(format!("expected one of {words}")));
                }
            }
        }
        Ok(FieldTest {
            field,
            patterns,
            all: has("all"),
            exists,
        })
    }

    /// Whether a fact has such a value. False if the time is over before the comparison.
    fn matches(&self, graph: &RunGraph, fact: &Fact, clock: &Deadline) -> bool {
        if let Some(exists) = self.exists {
            return graph.any_value(fact, self.field, &mut |_| true).is_some() == exists;
        }
        let matches = |pattern: &Pattern| {
            let found = graph.any_value(fact, self.field, &mut |text| {
                clock.compares(text) && pattern.matches(text)
            });
            found.unwrap_or(matches!(pattern, Pattern::Absent))
        };
        match self.all {
            true => self.patterns.iter().all(matches),
            false => self.patterns.iter().any(matches),
        }
    }
}

/// A value with the modifiers of its field.
fn pattern(node: &Node, modifiers: &[&str]) -> Result<Pattern, Mistake> {
    let text = node.text()?;
    if matches!(node.value, NodeValue::Scalar(_, true)) {
        return Ok(Pattern::Absent);
    }
    let has = |word: &str| modifiers.contains(&word);
    let fail = |cause: String| node.at.mistake(cause);
    if has("re") {
        let regex = Pattern::regex(text, has("i"));
        return regex.map_err(|cause| fail(format!("not a regular expression: {cause}")));
    }
    if has("cidr") {
        return Pattern::network(text)
            .ok_or_else(|| fail("expected a network such as 10.0.0.0/8".to_owned()));
    }
    let comparisons = [
        ("lt", Comparison::Lt),
        ("lte", Comparison::Lte),
        ("gt", Comparison::Gt),
        ("gte", Comparison::Gte),
    ];
    if let Some((_, comparison)) = comparisons.iter().find(|(word, _)| has(word)) {
        let number = text
            .parse()
            .map_err(|_| fail("expected a whole number".to_owned()))?;
        return Ok(Pattern::Number(*comparison, number));
    }
    let anchors = [
        ("contains", Anchor::Contains),
        ("startswith", Anchor::Start),
        ("endswith", Anchor::End),
    ];
    let anchor = anchors.iter().find(|(word, _)| has(word));
    let anchor = anchor.map_or(Anchor::Whole, |(_, anchor)| *anchor);
    let glob = Glob::new(text, anchor, has("cased")).map_err(fail)?;
    Ok(Pattern::Glob(glob))
}
