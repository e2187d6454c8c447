//! The `correlation` of a rule: several operations that make one match.
//!
//! | type | a match |
//! | --- | --- |
//! | `temporal_ordered` | the operations of `rules`, one after the other, joined as `group-by` says |
//! | `event_count` | so many operations of one group within `timespan` |

use std::time::Duration;

use crate::condition::Condition;
use crate::yaml::{Mistake, Node};

/// How the operations of a match belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// One process did them.
    Process,
    /// A process, or those that it started, directly or not.
    Descendants,
    /// Information can have flowed from the first to the last: through processes, files, pipes and
    /// connections, never back in time.
    Flow,
    /// Any process of the run.
    Run,
}

/// All groups: the word and the meaning.
pub const GROUPS: [(Group, &str, &str); 4] = [
    (Group::Process, "process", "one process did all of them"),
    (
        Group::Descendants,
        "descendants",
        "later ones were done by the same process, or by one that it started, directly or not",
    ),
    (
        Group::Flow,
        "flow",
        "information can have flowed from each to the next: through processes, files, pipes and sockets",
    ),
    (Group::Run, "run", "any process of the run did them"),
];

/// Several operations that make one match.
#[derive(Debug)]
pub struct Correlation {
    /// The operations that make a match.
    pub kind: CorrelationKind,
    /// How the operations belong together.
    pub group: Group,
    /// The longest time from the first to the last.
    pub timespan: Option<Duration>,
}

/// The kind of a match.
#[derive(Debug)]
pub enum CorrelationKind {
    /// One after the other.
    Ordered {
        /// The operations.
        parts: Vec<Condition>,
        /// These two are about the same file. The second one needs no other connection.
        same_file: Option<(usize, usize)>,
        /// The last one's process is not above the first one's: it did not start it.
        not_above: bool,
    },
    /// Many.
    Count {
        /// The operations.
        part: Condition,
        /// How many make a match.
        least: usize,
    },
}

const KEYS: [&str; 7] = [
    "type",
    "rules",
    "group-by",
    "timespan",
    "condition",
    "same-file",
    "not-above",
];

impl Correlation {
    /// Reads a correlation. `names` are the selections.
    ///
    /// # Errors
    ///
    /// The first mistake.
    pub fn parse(node: &Node, names: &[String]) -> Result<Correlation, Mistake> {
        for (key, _) in node.entries()? {
            if !KEYS.contains(&key.text()?) {
                let keys = KEYS.join(", ");
                return Err(key
                    .at
                    .mistake(format!("unknown key: expected one of {keys}")));
            }
        }
        let needed = |key: &str| {
            let value = node.get(key);
            value.ok_or_else(|| node.at.mistake(format!("`correlation` has no `{key}`")))
        };
        let rules = needed("rules")?.items();
        let parts = rules
            .iter()
            .map(|one| Condition::parse(one.text()?, names, one.at));
        let mut parts = parts.collect::<Result<Vec<_>, _>>()?;
        let timespan = node.get("timespan").map(timespan).transpose()?;
        let wrong = |cause: &str| -> Result<Correlation, Mistake> {
            Err(needed("rules")?.at.mistake(cause))
        };
        let kind_node = needed("type")?;
        let kind = match kind_node.text()? {
            "temporal_ordered" if parts.len() < 2 => return wrong("expected two or more"),
            "temporal_ordered" => CorrelationKind::Ordered {
                same_file: node
                    .get("same-file")
                    .map(|two| pair(two, rules))
                    .transpose()?,
                not_above: flag(node, "not-above")?,
                parts,
            },
            "event_count" if parts.len() != 1 => return wrong("expected one"),
            "event_count" if timespan.is_none() => {
                return Err(node.at.mistake("`event_count` needs a `timespan`"));
            }
            "event_count" => CorrelationKind::Count {
                part: parts.swap_remove(0),
                least: least(needed("condition")?)?,
            },
            _ => {
                return Err(kind_node
                    .at
                    .mistake("expected temporal_ordered or event_count"));
            }
        };
        let group = group(needed("group-by")?)?;
        let is_count = matches!(kind, CorrelationKind::Count { .. });
        if is_count && group == Group::Flow {
            return Err(needed("group-by")?
                .at
                .mistake("a count has no flow: group by process, descendants or run"));
        }
        Ok(Correlation {
            kind,
            group,
            timespan,
        })
    }
}

fn group(node: &Node) -> Result<Group, Mistake> {
    let items = node.items();
    let word = match items {
        [one] => one.text()?,
        _ => "",
    };
    let found = GROUPS.iter().find(|(_, own, _)| *own == word);
    found.map(|(group, ..)| *group).ok_or_else(|| {
        let words = GROUPS.map(|(_, word, _)| word).join(", ");
        node.at.mistake(format!("expected one of {words}"))
    })
}

/// The numbers of two of the `rules`.
fn pair(node: &Node, rules: &[Node]) -> Result<(usize, usize), Mistake> {
    let number = |one: &Node| {
        let name = one.text()?;
        let found = rules.iter().position(|rule| rule.text() == Ok(name));
        found.ok_or_else(|| one.at.mistake(format!("`{name}` is none of `rules`")))
    };
    match node.items() {
        [first, second] => match (number(first)?, number(second)?) {
            (first, second) if first < second => Ok((first, second)),
            _ => Err(node.at.mistake("expected the earlier one first")),
        },
        _ => Err(node.at.mistake("expected two of `rules`")),
    }
}

fn flag(node: &Node, key: &str) -> Result<bool, Mistake> {
    match node.get(key) {
        None => Ok(false),
        Some(value) => match value.text()? {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(value.at.mistake("expected true or false")),
        },
    }
}

/// The number in `gte: 20`.
fn least(node: &Node) -> Result<usize, Mistake> {
    let value = match node.entries()? {
        [(key, value)] if key.text()? == "gte" => value,
        _ => return Err(node.at.mistake("expected `gte: NUMBER`")),
    };
    let number = value.text()?.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| value.at.mistake("expected a number from 1 on"))
}

/// A time such as `30s`, `5m`, `1h`, `2d`.
fn timespan(node: &Node) -> Result<Duration, Mistake> {
    let text = node.text()?;
    let units = [('s', 1), ('m', 60), ('h', 3_600), ('d', 86_400)];
    let found = units.iter().find_map(|(unit, seconds)| {
        let number: u32 = text.strip_suffix(*unit)?.parse().ok()?;
        Some(Duration::from_secs(u64::from(number) * seconds))
    });
    found.ok_or_else(|| node.at.mistake("expected a time such as 30s, 5m, 1h or 2d"))
}
