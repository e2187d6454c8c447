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

/// The texts between the wildcards. `None` stands for wildcards.
fn literals(pieces: &[Piece]) -> Vec<Option<String>> {
    let mut found: Vec<Option<String>> = Vec::new();
    let mut bytes = Vec::new();
    let end = |bytes: &mut Vec<u8>, found: &mut Vec<Option<String>>| {
        if !bytes.is_empty() {
            let literal = String::from_utf8(std::mem::take(bytes)).ok();
            // A lake has texts without a null character.
            found.push(literal.filter(|literal| !literal.contains('\0')));
        }
    };
    for piece in pieces {
        match piece {
            Piece::Byte(byte) => bytes.push(*byte),
            // `_` of SQL is a character, and `?` is a byte.
            Piece::One | Piece::Any => {
                end(&mut bytes, &mut found);
                if found.last() != Some(&None) {
                    found.push(None);
                }
            }
        }
    }
    end(&mut bytes, &mut found);
    found
}

/// The column as a whole matches, or a text that differs in nothing but bytes that are not UTF-8.
/// `None`: all texts match.
fn whole(column: &str, pieces: &[Piece], cased: bool) -> Option<String> {
    let literals = literals(pieces);
    match literals.as_slice() {
        [] => Some(format!("{column} = ''")),
        [None] => None,
        [Some(literal)] => Some(compared(column, "=", &text(literal), cased)),
        several => {
            let parts = several.iter().map(|one| match one {
                Some(literal) => escaped(literal),
                None => "%".to_owned(),
            });
            Some(like(column, &parts.collect::<String>(), cased))
        }
    }
}

/// The column, which may have quotes of a shell, contains the texts of the pattern in their order.
/// `None`: all texts do.
fn within(column: &str, pieces: &[Piece], cased: bool) -> Option<String> {
    // Quotes stand between words, and take the place of characters that need them.
    let is_plain = |c: char| c.is_ascii_graphic() && c != '\'' && c != '\\';
    let mut form = String::from("%");
    for literal in literals(pieces).into_iter().flatten() {
        for part in literal
            .split(|c| !is_plain(c))
            .filter(|part| !part.is_empty())
        {
            form.push_str(&escaped(part));
            form.push('%');
        }
    }
    (form != "%").then(|| like(column, &form, cased))
}

fn like(column: &str, form: &str, cased: bool) -> String {
    compared(column, "LIKE", &text(form), cased) + r" ESCAPE '\'"
}

/// The case of letters that are not ASCII may matter to a pattern, and does not matter here.
fn compared(column: &str, how: &str, value: &str, cased: bool) -> String {
    match cased {
        true => format!("{column} {how} {value}"),
        false => format!("lower({column}) {how} lower({value})"),
    }
}

/// A text of which no character is a wildcard in SQL.
fn escaped(literal: &str) -> String {
    let mut form = String::new();
    for c in literal.chars() {
        if "%_\\".contains(c) {
            form.push('\\');
        }
        form.push(c);
    }
    form
}

/// A text in SQL.
fn text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::Library;
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
        let own = "path = '/etc/it''s' OR aliases LIKE '%/etc/it%s%' ESCAPE '\\'";
        assert_eq!(
            (found.files, found.condition),
            (vec![own.to_owned()], "coalesce(f0, false)".to_owned())
        );
        let found = filter("Operation: write, TargetFilename|endswith: /a_b");
        assert_eq!(found.edges, ["how = 'write'"]);
        assert!(found.files[0].starts_with(r"lower(path) LIKE lower('%/a\_b') ESCAPE '\' OR "));
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
            [r"lower(program) LIKE lower('a%c') ESCAPE '\'"]
        );
    }

    #[test]
    fn the_rules_of_the_program_need_more_of_a_run_than_that_it_exists() {
        for rule in Library::built_in().rules {
            let id = rule.id.clone();
            assert_ne!(RunFilter::of(&[rule]).condition, "true", "{id}");
        }
    }
}
