//! Rules decide which runs of a lake are read: those that have the least that a match needs.
//!
//! In: rules. Out: in SQL, tests of single rows of a lake's tables, and a condition over them. A
//! test is true for a run if any row of the run meets it.
//!
//! Invariant: a run in which [`find`] finds something meets the condition. The condition leaves out
//! what one row cannot tell. So `not` is always met, and so is a regular expression.
//!
//! [`find`]: crate::find

use backstory_graph::model::EntityKind;

use crate::condition::Condition;
use crate::correlation::CorrelationKind;
use crate::fact::{Field, Operation};
use crate::glob::Piece;
use crate::pattern::Pattern;
use crate::rule::{Rule, Shape};
use crate::selection::FieldTest;
use crate::text_condition::{text, whole, within};

/// A condition for runs of a lake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFilter {
    /// Tests of a row of `files`. The condition has them as `f0`, `f1` and so on.
    pub files: Vec<String>,
    /// Tests of a row of `processes`: `p0`, `p1` …
    pub processes: Vec<String>,
    /// Tests of a row of `edges`: `e0`, `e1` …
    pub edges: Vec<String>,
    /// The condition.
    pub condition: String,
}

/// A statement about a run.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Formula {
    Always,
    Never,
    /// A row of this table meets a test.
    Row(RowTable, String),
    All(Vec<Formula>),
    Any(Vec<Formula>),
}

/// A table whose rows are tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowTable {
    Files,
    Processes,
    Edges,
}

/// A connection to a network address, or a socket of another kind.
const SOCKET: &str = "kind = 'socket'";

impl RunFilter {
    /// The condition that a run meets in which one of the rules can match.
    pub fn of(rules: &[Rule]) -> RunFilter {
        RunFilter::new(&any(rules.iter().map(of_rule).collect()))
    }

    /// A run that has a version at this path, or below it.
    pub fn at_path(path: &[u8]) -> RunFilter {
        let path = String::from_utf8_lossy(path);
        let below = format!("{}/", path.trim_end_matches('/'));
        let (path, below) = (text(&path), text(&below));
        RunFilter::new(&file(format!(
            "path = {path} OR starts_with(path, {below})"
        )))
    }

    /// A run that has a connection.
    pub fn with_connection() -> RunFilter {
        RunFilter::new(&file(SOCKET.to_owned()))
    }

    /// Every run.
    pub fn all() -> RunFilter {
        RunFilter::new(&Formula::Always)
    }

    fn new(met: &Formula) -> RunFilter {
        let mut filter = RunFilter {
            files: Vec::new(),
            processes: Vec::new(),
            edges: Vec::new(),
            condition: String::new(),
        };
        filter.condition = filter.sql(met);
        filter
    }

    /// The condition. Its tests get their numbers, each once.
    fn sql(&mut self, met: &Formula) -> String {
        let mut joined = |parts: &[Formula], word: &str| {
            let parts: Vec<String> = parts.iter().map(|part| self.sql(part)).collect();
            format!("({})", parts.join(word))
        };
        match met {
            Formula::Always => "true".to_owned(),
            Formula::Never => "false".to_owned(),
            Formula::All(parts) => joined(parts, " AND "),
            Formula::Any(parts) => joined(parts, " OR "),
            Formula::Row(table, test) => {
                let (tests, letter) = match table {
                    RowTable::Files => (&mut self.files, 'f'),
                    RowTable::Processes => (&mut self.processes, 'p'),
                    RowTable::Edges => (&mut self.edges, 'e'),
                };
                let at = tests.iter().position(|one| one == test);
                let at = at.unwrap_or_else(|| {
                    tests.push(test.clone());
                    tests.len() - 1
                });
                // A run without such a row has no value.
                format!("coalesce({letter}{at}, false)")
            }
        }
    }
}

fn file(test: String) -> Formula {
    Formula::Row(RowTable::Files, test)
}

fn process(test: String) -> Formula {
    Formula::Row(RowTable::Processes, test)
}

fn all(mut parts: Vec<Formula>) -> Formula {
    parts.retain(|part| *part != Formula::Always);
    match parts.len() {
        0 => Formula::Always,
        _ if parts.contains(&Formula::Never) => Formula::Never,
        1 => parts.swap_remove(0),
        _ => Formula::All(parts),
    }
}

fn any(mut parts: Vec<Formula>) -> Formula {
    parts.retain(|part| *part != Formula::Never);
    match parts.len() {
        0 => Formula::Never,
        _ if parts.contains(&Formula::Always) => Formula::Always,
        1 => parts.swap_remove(0),
        _ => Formula::Any(parts),
    }
}

fn of_rule(rule: &Rule) -> Formula {
    let parts = match &rule.shape {
        Shape::One(condition) => std::slice::from_ref(condition),
        Shape::Several(several) => match &several.kind {
            CorrelationKind::Ordered { parts, .. } => parts,
            CorrelationKind::Count { part, .. } => std::slice::from_ref(part),
        },
    };
    let about = Operation::all().filter(|operation| rule.is_about(*operation));
    let about = about.map(of_operation).collect();
    let mut met = vec![any(about)];
    met.extend(parts.iter().map(|part| of_condition(rule, part)));
    all(met)
}

fn of_condition(rule: &Rule, condition: &Condition) -> Formula {
    match condition {
        Condition::Selection(number) => {
            let alternatives = rule.selection(*number).alternatives().iter();
            let of_all = |tests: &Vec<FieldTest>| all(tests.iter().map(field_test).collect());
            any(alternatives.map(of_all).collect())
        }
        // Another fact of the run can be the one that is meant.
        Condition::Not(_) => Formula::Always,
        Condition::All(parts) => all(parts.iter().map(|part| of_condition(rule, part)).collect()),
        Condition::Any(parts) => any(parts.iter().map(|part| of_condition(rule, part)).collect()),
    }
}

fn field_test(test: &FieldTest) -> Formula {
    match test.exists {
        // A lake has no contents, so no inspector is asked.
        Some(true) if test.field.is_of_content() => return Formula::Never,
        Some(_) => return Formula::Always,
        None => {}
    }
    let patterns = test.patterns.iter();
    let parts = patterns.map(|pattern| value(test.field, pattern)).collect();
    if test.all { all(parts) } else { any(parts) }
}

/// A field has such a value.
fn value(field: Field, pattern: &Pattern) -> Formula {
    let fits = |word: &str| pattern.matches(word.as_bytes());
    match (field, pattern) {
        (_, Pattern::Absent) => Formula::Always,
        (Field::Operation, _) => {
            let fitting = Operation::all().filter(|operation| fits(operation.word()));
            any(fitting.map(of_operation).collect())
        }
        (Field::TargetKind, _) => {
            let words = EntityKind::ALL.into_iter().map(|kind| kind.word());
            let words: Vec<String> = words.filter(|word| fits(word)).map(text).collect();
            match words.is_empty() {
                true => Formula::Never,
                false => file(format!("kind IN ({})", words.join(", "))),
            }
        }
        (Field::Unexplained, _) => match (fits("true"), fits("false")) {
            (false, false) => Formula::Never,
            (true, false) => file("unexplained".to_owned()),
            _ => Formula::Always,
        },
        (Field::ContentChange | Field::ContentFact, _) => Formula::Never,
        (Field::DestinationIp | Field::DestinationPort | Field::Protocol, _) => {
            let inside = match pattern {
                Pattern::Glob(glob) => within("path", glob.pieces(), glob.is_cased()),
                _ => None,
            };
            let is_socket = file(SOCKET.to_owned());
            match inside {
                Some(inside) => file(format!("{SOCKET} AND {inside}")),
                None => is_socket,
            }
        }
        (field, Pattern::Glob(glob)) => field_text(field, glob.pieces(), glob.is_cased()),
        _ => Formula::Always,
    }
}

/// A field that is a text matches a pattern.
fn field_text(field: Field, pieces: &[Piece], cased: bool) -> Formula {
    match field {
        Field::TargetFilename => {
            let own = whole("path", pieces, cased);
            match (own, within("aliases", pieces, cased)) {
                (Some(own), Some(alias)) => file(format!("{own} OR {alias}")),
                _ => Formula::Always,
            }
        }
        Field::SourceFilename | Field::SuccessorFilename => {
            let own = whole("path", pieces, cased);
            own.map_or(Formula::Always, file)
        }
        // The program of a process may be that of the one that started it.
        Field::Image | Field::ParentImage | Field::AncestorImage => {
            let own = whole("program", pieces, cased);
            own.map_or(Formula::Always, process)
        }
        Field::CurrentDirectory => {
            let own = whole("cwd", pieces, cased);
            own.map_or(Formula::Always, process)
        }
        Field::CommandLine | Field::ParentCommandLine | Field::AncestorCommandLine => {
            let own = within("command", pieces, cased);
            own.map_or(Formula::Always, process)
        }
        _ => Formula::Always,
    }
}

/// The run has such an operation.
fn of_operation(operation: Operation) -> Formula {
    match operation {
        Operation::Start => Formula::Always,
        Operation::Send | Operation::Receive => file(SOCKET.to_owned()),
        Operation::On(_) => {
            Formula::Row(RowTable::Edges, format!("how = {}", text(operation.word())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::Library;
    use crate::text_condition::{LONGEST, PARTS};
    use crate::yaml;

    /// The filter of a rule with this detection.
    fn filter(detection: &str) -> RunFilter {
        let text = format!("title: t\nid: t\ndetection: {{s: {{{detection}}}, condition: s}}\n");
        let rule = Rule::parse(&yaml::documents(&text).unwrap()[0], "t.yml").unwrap();
        RunFilter::of(&[rule])
    }

    #[test]
    fn a_rule_that_names_one_path_asks_for_this_path_alone() {
        let found = filter("TargetFilename|cased: /etc/it's");
        let own =
            "path = '/etc/it''s' OR (contains(aliases, '/etc/it') AND contains(aliases, 's'))";
        assert_eq!(
            (found.files, found.condition),
            (vec![own.to_owned()], "coalesce(f0, false)".to_owned())
        );
        let found = filter("Operation: write, TargetFilename|endswith: /a_b");
        assert_eq!(found.edges, ["how = 'write'"]);
        assert!(found.files[0].starts_with("suffix(lower(path), lower('/a_b')) OR "));
        assert_eq!(
            found.condition,
            "(coalesce(e0, false) AND coalesce(f0, false))"
        );
    }

    #[test]
    fn what_one_row_cannot_tell_leaves_no_run_out() {
        for detection in [
            "TargetFilename|re: x",
            "TargetFilename: '*'",
            "TargetFilename|exists: false",
            "Image: null",
            "ProcessId: 7",
            "Unexplained: false",
            "ContentChange|exists: false",
            "TargetFilename: [/a, '??*']",
            "CommandLine|contains: \"'\"",
        ] {
            assert_eq!(filter(detection), RunFilter::all(), "{detection}");
        }
        for detection in [
            "Operation|contains: nothing",
            "ContentChange|contains: x",
            "ContentFact|exists: true",
        ] {
            assert_eq!(filter(detection).condition, "false", "{detection}");
        }
    }

    #[test]
    fn a_wildcard_of_a_byte_may_be_part_of_a_character() {
        let found = filter("Image: a?c");
        assert_eq!(
            found.processes,
            ["(starts_with(lower(program), lower('a')) AND suffix(lower(program), lower('c')))"]
        );
    }

    #[test]
    fn a_test_of_a_row_asks_for_few_short_texts() {
        let many = format!("CommandLine|cased|contains: {}b", "a*".repeat(500));
        let test = &filter(&many).processes[0];
        assert_eq!(test.matches("contains(command, 'a')").count(), PARTS);
        let long = format!("TargetFilename|cased: /x*{}*y", "a".repeat(500));
        let test = &filter(&long).files[0];
        let part = format!("contains(path, '{}')", "a".repeat(LONGEST));
        let own = format!("(starts_with(path, '/x') AND {part} AND suffix(path, 'y')) OR ");
        assert!(test.starts_with(&own), "{test}");
        assert!(!test.contains("LIKE"), "{test}");
    }

    #[test]
    fn the_rules_of_the_program_need_more_of_a_run_than_that_it_exists() {
        for rule in Library::built_in().rules {
            let id = rule.id.clone();
            assert_ne!(RunFilter::of(&[rule]).condition, "true", "{id}");
        }
    }
}
