//! Rules: what is looked for, and what is said about it.
//!
//! In: a document of YAML in the form of Sigma. Out: a [`Rule`], or the place and cause of the
//! first mistake. A key that is not known is a mistake, so that no rule looks for less than its
//! author thinks.

use crate::condition::Condition;
use crate::correlation::Correlation;
use crate::deadline::Deadline;
use crate::fact::{Fact, Field, Operation};
use crate::run_graph::RunGraph;
use crate::selection::Selection;
use crate::yaml::{Mistake, Node, NodeValue};

/// How much a match matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For information.
    Informational,
    /// Rarely an attack.
    Low,
    /// To be looked at.
    Medium,
    /// Probably an attack.
    High,
    /// Certainly to be looked at, now.
    Critical,
}

/// All levels with their words.
const LEVELS: [(Level, &str); 5] = [
    (Level::Informational, "informational"),
    (Level::Low, "low"),
    (Level::Medium, "medium"),
    (Level::High, "high"),
    (Level::Critical, "critical"),
];

impl Level {
    /// Its word in rules and answers.
    pub fn word(self) -> &'static str {
        LEVELS[self as usize].1
    }
}

/// A rule.
#[derive(Debug)]
pub struct Rule {
    /// A short name that is unique among the rules.
    pub id: String,
    /// Its purpose, in a line.
    pub title: String,
    /// Its purpose, in sentences.
    pub description: String,
    /// How much a match matters.
    pub level: Level,
    /// Where to read more.
    pub references: Vec<String>,
    /// Harmless commands that match, too.
    pub falsepositives: Vec<String>,
    /// The file that it was read from.
    pub file: String,
    operations: Option<&'static [&'static str]>,
    selections: Vec<Selection>,
    pub(crate) shape: Shape,
}

/// The form of a match.
#[derive(Debug)]
pub(crate) enum Shape {
    /// One operation.
    One(Condition),
    /// Several operations.
    Several(Correlation),
}

/// The categories of Sigma's log sources, and the operations of each.
pub const CATEGORIES: [(&str, &[&str]); 6] = [
    ("process_creation", &["start"]),
    ("file_event", &["write", "make", "rename"]),
    ("file_access", &["read"]),
    ("file_delete", &["delete"]),
    ("file_rename", &["rename"]),
    ("network_connection", &["send", "receive"]),
];

/// Keys of Sigma that change nothing here.
const OTHERS: [&str; 8] = [
    "status",
    "author",
    "date",
    "modified",
    "tags",
    "license",
    "related",
    "simulation",
];

impl Rule {
    /// Reads a rule. `file` is its file's name, for messages.
    ///
    /// # Errors
    ///
    /// The first mistake.
    pub fn parse(document: &Node, file: &str) -> Result<Rule, Mistake> {
        for (key, _) in document.entries()? {
            let name = key.text()?;
            let known = [
                "title",
                "id",
                "description",
                "level",
                "references",
                "falsepositives",
                "logsource",
                "detection",
                "correlation",
            ];
            if !known.contains(&name) && !OTHERS.contains(&name) {
                return Err(key.at.mistake(format!("unknown key `{name}`")));
            }
        }
        let text = |key: &str| document.get(key).map(Node::text).transpose();
        let texts = |key: &str| document.get(key).map(Node::texts).transpose();
        let needed = |key: &str| {
            let value = text(key)?.filter(|value| !value.trim().is_empty());
            value.ok_or_else(|| document.at.mistake(format!("the rule has no `{key}`")))
        };
        let (selections, names, condition) = detection(document)?;
        let one = condition.map(|node| Condition::parse(node.text()?, &names, node.at));
        let shape = match (document.get("correlation"), one.transpose()?) {
            (Some(_), Some(_)) => {
                let at = condition.map_or(document.at, |node| node.at);
                let what = "a rule has either `condition` or `correlation`: the conditions of a \
                            correlation are in its `rules`";
                return Err(at.mistake(what));
            }
            (Some(node), None) => Shape::Several(Correlation::parse(node, &names)?),
            (None, Some(condition)) => Shape::One(condition),
            (None, None) => return Err(document.at.mistake("`detection` has no `condition`")),
        };
        Ok(Rule {
            id: needed("id")?.to_owned(),
            title: needed("title")?.to_owned(),
            description: text("description")?.unwrap_or_default().trim().to_owned(),
            level: level(document)?,
            references: texts("references")?.unwrap_or_default(),
            falsepositives: texts("falsepositives")?.unwrap_or_default(),
            file: file.to_owned(),
            operations: category(document)?,
            selections,
            shape,
        })
    }

    /// Whether the rule asks for what only other runs tell: see [`RunGraph::compare_with`].
    pub fn compares_runs(&self) -> bool {
        self.asks_for(Field::Unexplained)
    }

    /// Whether the rule asks for this field.
    pub fn asks_for(&self, field: Field) -> bool {
        let mut selections = self.selections.iter();
        selections.any(|selection| selection.asks_for(field))
    }

    /// Whether the rule asks for what inspectors say of contents: see [`crate::contents_asked`].
    pub fn asks_inspectors(&self) -> bool {
        Field::OF_CONTENT.iter().any(|field| self.asks_for(*field))
    }

    /// Whether a fact meets everything but the content in a selection that asks for it.
    pub(crate) fn depends_on_content(
        &self,
        graph: &RunGraph,
        fact: &Fact,
        clock: &Deadline,
    ) -> bool {
        let mut selections = self.selections.iter();
        selections.any(|selection| selection.depends_on_content(graph, fact, clock))
    }

    /// Whether a fact certainly meets a condition over the rule's selections. False if the time is
    /// over before that is known.
    pub(crate) fn meets(
        &self,
        graph: &RunGraph,
        fact: &Fact,
        condition: &Condition,
        clock: &Deadline,
    ) -> bool {
        let mut selected = |number: usize| self.selections[number].matches(graph, fact, clock);
        self.is_about(fact.operation) && condition.holds(&mut selected) == Some(true)
    }

    /// A selection by its number in conditions.
    pub(crate) fn selection(&self, number: usize) -> &Selection {
        &self.selections[number]
    }

    /// Whether the log source of the rule has this operation.
    pub(crate) fn is_about(&self, operation: Operation) -> bool {
        (self.operations).is_none_or(|operations| operations.contains(&operation.word()))
    }
}

type Detection<'d> = (Vec<Selection>, Vec<String>, Option<&'d Node>);

/// The selections with their names, and the condition.
fn detection(document: &Node) -> Result<Detection<'_>, Mistake> {
    let Some(detection) = document.get("detection") else {
        return Err(document.at.mistake("the rule has no `detection`"));
    };
    let (mut selections, mut names, mut condition) = (Vec::new(), Vec::new(), None);
    for (key, value) in detection.entries()? {
        match key.text()? {
            "condition" => condition = Some(value),
            "timeframe" => {
                return Err(key.at.mistake("use `timespan` in `correlation`"));
            }
            name => {
                names.push(name.to_owned());
                selections.push(Selection::parse(value)?);
            }
        }
    }
    match selections.is_empty() {
        true => Err(detection.at.mistake("`detection` has no selection")),
        false => Ok((selections, names, condition)),
    }
}

fn level(document: &Node) -> Result<Level, Mistake> {
    let Some(node) = document.get("level") else {
        return Ok(Level::Medium);
    };
    let word = node.text()?;
    let found = LEVELS.iter().find(|(_, own)| *own == word);
    found.map(|(level, _)| *level).ok_or_else(|| {
        let words = LEVELS.map(|(_, word)| word).join(", ");
        node.at.mistake(format!("expected one of {words}"))
    })
}

/// The operations that the log source of the rule has.
fn category(document: &Node) -> Result<Option<&'static [&'static str]>, Mistake> {
    let Some(source) = document.get("logsource") else {
        return Ok(None);
    };
    for (key, value) in source.entries()? {
        let is_of_linux = value.text()? == "linux";
        if key.text()? == "service" || key.text()? == "product" && !is_of_linux {
            let cause = "backstory records operations of Linux programs, and no such log";
            return Err(value.at.mistake(cause));
        }
    }
    let Some(node) = source.get("category") else {
        return Ok(None);
    };
    let NodeValue::Scalar(word, _) = &node.value else {
        return Err(node.at.mistake("expected a text"));
    };
    let found = CATEGORIES.iter().find(|(name, _)| name == word);
    found
        .map(|(_, operations)| Some(*operations))
        .ok_or_else(|| {
            let words = CATEGORIES.map(|(name, _)| name).join(", ");
            node.at.mistake(format!("expected one of {words}"))
        })
}
