//! Reads the rules of a policy.
//!
//! In: the text of a TOML file with tables `[[rule]]`. Out: the rules, or every mistake with line
//! and column. A policy with a mistake decides nothing.

use std::path::Path;

use backstory_eventlog::run::RunHeader;
use backstory_inspection::judging::JudgeProgram;
use backstory_pipeline::expression::Expression;
use backstory_pipeline::fields::{Field, FieldType};
use backstory_pipeline::judge::{JudgeFailure, Judged, check};
use backstory_pipeline::text_position::position;
use backstory_vocabulary::Word;
use toml::de::{DeTable, DeValue};

backstory_vocabulary::vocabulary! {
    /// The things that a rule is about. Each thing of the kind is judged by itself.
    pub enum RuleSubject: "subject of a rule" {
        /// The file that is checked.
        Artifact = "artifact",
        /// A file that existed before, and that no package provides.
        Input = "input",
        /// A package that provided files.
        Package = "package",
        /// A network address.
        Peer = "peer",
    }
}

impl RuleSubject {
    /// The variables of an expression about it. `docs/howto/policy.md` describes them.
    pub fn fields(self) -> &'static [Field] {
        use FieldType::{Bool, BoolOrNull, Number, Text, Texts};
        match self {
            RuleSubject::Artifact => &[
                ("path", Text),
                ("sha256", Text),
                ("blake3", Text),
                ("known", Bool),
                ("runs", Texts),
                ("builder", Texts),
                ("guard", Texts),
                ("complete", Bool),
                ("incomplete_because", Texts),
                ("sealed", Bool),
                ("signed", Bool),
                ("hermetic", Bool),
                ("reproducible", BoolOrNull),
                ("network", Number),
                ("inputs", Number),
                ("packages", Number),
                ("outside", Number),
                ("unknown", Number),
            ],
            RuleSubject::Input => &[
                ("path", Text),
                ("sha256", Text),
                ("blake3", Text),
                ("known", Bool),
                ("outside", Bool),
                ("software", Bool),
                ("undeclared", BoolOrNull),
                ("run", Text),
            ],
            RuleSubject::Package => &[("manager", Text), ("name", Text), ("version", Text)],
            RuleSubject::Peer => &[
                ("address", Text),
                ("names", Texts),
                ("received", Bool),
                ("run", Text),
            ],
        }
    }
}

/// One rule.
#[derive(Debug)]
pub struct Rule {
    /// Its name in messages.
    pub name: String,
    /// The things that it judges.
    pub subject: RuleSubject,
    /// The expression.
    pub expression: Expression,
    /// True for `require`: the expression must be true. False for `deny`: it must be false.
    pub must_hold: bool,
}

impl Rule {
    /// The facts for the process that evaluates the expression.
    pub fn judged<'q>(&'q self, header: &'q RunHeader) -> Judged<'q> {
        Judged {
            filter: &self.name,
            subject: self.subject.word(),
            fields: self.subject.fields(),
            header,
        }
    }

    /// The program that evaluates the expression.
    pub fn program(&self) -> JudgeProgram {
        JudgeProgram::Expression(self.expression.text.clone())
    }
}

/// True if the expression of a rule has this word.
pub fn mention(rules: &[Rule], word: &str) -> bool {
    let text = |rule: &Rule| rule.expression.text.contains(word);
    rules.iter().any(text)
}

/// Reads a policy. The error has one line for each mistake.
pub fn parse(text: &str, path: &Path) -> Result<Vec<Rule>, Vec<String>> {
    let line = |at: usize, what: &str| {
        let (line, column) = position(text, at);
        format!("{}:{line}:{column}: {what}", path.display())
    };
    let file = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        vec![line(at, error.message())]
    })?;
    let mut mistakes = Vec::new();
    let mut rules = Vec::new();
    for (key, value) in file.get_ref() {
        match (&**key.get_ref(), value.get_ref()) {
            ("rule", DeValue::Array(tables)) => {
                for (number, table) in (1..).zip(tables.iter()) {
                    match table.get_ref() {
                        DeValue::Table(keys) => match rule(keys, number, text, path) {
                            Ok(rule) => rules.push(rule),
                            Err((at, what)) => {
                                let at = at.unwrap_or(table.span().start);
                                mistakes.push(line(at, &what));
                            }
                        },
                        _ => mistakes.push(line(table.span().start, "a rule is not a table")),
                    }
                }
            }
            (other, _) => {
                let what = format!("unknown key {other}: a policy has tables [[rule]]");
                mistakes.push(line(key.span().start, &what));
            }
        }
    }
    if rules.is_empty() && mistakes.is_empty() {
        mistakes.push(line(
            0,
            "there is no [[rule]], and so nothing would be checked",
        ));
    }
    for rule in &rules {
        let header = RunHeader::default();
        let Err(failure) = check(&rule.program(), &rule.judged(&header)) else {
            continue;
        };
        if let JudgeFailure::Expression { .. } = failure {
            mistakes.push(rule.expression.failure(&failure));
            continue;
        }
        mistakes.push(format!("{}: rule {}: {failure}", path.display(), rule.name));
        if let JudgeFailure::Process(_) = failure {
            // No other rule can be checked either, or its time is over.
            break;
        }
    }
    match mistakes.is_empty() {
        true => Ok(rules),
        false => Err(mistakes),
    }
}

/// A mistake: its byte, if it has one, and what is wrong.
type Mistake = (Option<usize>, String);

fn rule(keys: &DeTable<'_>, number: usize, text: &str, path: &Path) -> Result<Rule, Mistake> {
    let mut rule = Rule {
        name: format!("rule {number}"),
        subject: RuleSubject::Artifact,
        expression: Expression::at(String::new(), text, path, 0..0),
        must_hold: true,
    };
    let mut expressions = 0;
    for (key, value) in keys {
        let at = Some(value.span().start);
        let DeValue::String(word) = value.get_ref() else {
            return Err((at, format!("{} is not a string", key.get_ref())));
        };
        match &**key.get_ref() {
            "name" => rule.name = word.to_string(),
            "on" => {
                rule.subject = RuleSubject::from_word(word).map_err(|error| {
                    let all: Vec<&str> = RuleSubject::ALL.iter().map(|one| one.word()).collect();
                    (at, format!("{error}; there are {}", all.join(", ")))
                })?;
            }
            word_of_rule @ ("require" | "deny") => {
                expressions += 1;
                rule.must_hold = word_of_rule == "require";
                rule.expression = Expression::at(word.to_string(), text, path, value.span());
            }
            other => {
                let what =
                    format!("unknown key {other} of a rule: there are name, on, require and deny");
                return Err((Some(key.span().start), what));
            }
        }
    }
    match expressions {
        1 => Ok(rule),
        0 => Err((None, "a rule needs either require or deny".to_owned())),
        _ => {
            let what = "a rule has require or deny, and not both: make two rules of it";
            Err((None, what.to_owned()))
        }
    }
}
