//! Reads the filters of a configuration file.
//!
//! In: the text of `config.toml`. Out: the filters of its tables `[[filter]]`, in their order, and
//! one warning for each mistake, with line and column.
//!
//! Invariant: a mistake in one filter changes no other filter. A filter with a mistake decides
//! about no node: its failure mode says whether it changes nothing or everything.

use std::path::Path;

use backstory_graph::model::{EntityKind, Relation};
use backstory_query::Globs;
use backstory_vocabulary::Word;
use regex::bytes::{Regex, RegexBuilder};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::filter::{Action, Condition, Expression, FailureMode, Filter, PluginProgram, Subject};
pub use crate::text_position::position;

/// The most bytes of an expression or of a plug-in's command.
const LONGEST: usize = 8 << 10;

/// A mistake, at a position in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Byte in the text.
    pub at: usize,
    /// A sentence.
    pub what: String,
}

/// Whose file a configuration is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The user wrote it.
    User,
    /// It lies in a store, which may come from elsewhere. It can start no program of its own.
    Store,
}

/// Reads the value of the key `filter`. `text` is the whole file at `path`.
pub fn filters(
    value: &Spanned<DeValue<'_>>,
    text: &str,
    path: &Path,
    owner: Owner,
) -> (Vec<Filter>, Vec<Mistake>) {
    let mut mistakes = Vec::new();
    let DeValue::Array(tables) = value.get_ref() else {
        let what = "filter is not a list of tables: write [[filter]]".to_owned();
        mistakes.push(Mistake {
            at: value.span().start,
            what,
        });
        return (Vec::new(), mistakes);
    };
    let mut filters = Vec::new();
    for (number, table) in (1..).zip(tables.iter()) {
        let at = table.span().start;
        match table.get_ref() {
            DeValue::Table(keys) => {
                let mut reader = FilterReader {
                    keys,
                    at,
                    text,
                    path,
                    owner,
                    mistakes: Vec::new(),
                };
                let filter = reader.filter(number);
                filters.push(filter);
                mistakes.append(&mut reader.mistakes);
            }
            _ => mistakes.push(Mistake {
                at,
                what: "a filter is not a table: it is ignored".to_owned(),
            }),
        }
    }
    (filters, mistakes)
}

/// Reads one table.
struct FilterReader<'t> {
    keys: &'t DeTable<'t>,
    at: usize,
    text: &'t str,
    path: &'t Path,
    owner: Owner,
    mistakes: Vec<Mistake>,
}

const KEYS: [&str; 14] = [
    "name",
    "action",
    "on",
    "path",
    "kind",
    "program",
    "relation",
    "when",
    "failure",
    "text",
    "to",
    "keep",
    "command",
    "component",
];

impl FilterReader<'_> {
    fn filter(&mut self, number: usize) -> Filter {
        for key in self.keys.keys() {
            if !KEYS.contains(&&**key.get_ref()) {
                let what = format!("unknown key {} of a filter", key.get_ref());
                self.mistakes.push(Mistake {
                    at: key.span().start,
                    what,
                });
            }
        }
        let name = self
            .string("name")
            .unwrap_or_else(|| format!("filter {number}"));
        let action = self.action();
        let condition = self.condition();
        let subject = self.subject(action.as_ref(), &condition);
        self.check(action.as_ref(), subject, &condition);
        let is_private = matches!(action, Some(Action::Redact(_)));
        let failure = match self.word::<FailureMode>("failure") {
            Some(mode) => mode,
            None if is_private => FailureMode::Closed,
            None => FailureMode::Open,
        };
        let (line, _) = position(self.text, self.at);
        let mistake = self.mistakes.first().map(|first| {
            let (line, column) = position(self.text, first.at);
            format!("{}:{line}:{column}: {}", self.path.display(), first.what)
        });
        Filter {
            name,
            defined: format!("{}:{line}", self.path.display()),
            subject,
            condition,
            action: action.unwrap_or(Action::Drop),
            failure,
            mistake,
        }
    }

    fn wrong(&mut self, at: usize, what: impl Into<String>) {
        self.mistakes.push(Mistake {
            at,
            what: what.into(),
        });
    }

    fn at(&self, key: &str) -> usize {
        self.keys
            .get(key)
            .map_or(self.at, |value| value.span().start)
    }

    fn string(&mut self, key: &str) -> Option<String> {
        let value = self.keys.get(key)?;
        match value.get_ref() {
            DeValue::String(text) if !text.is_empty() => Some(text.to_string()),
            _ => {
                self.wrong(
                    value.span().start,
                    format!("{key} is not a string, or is empty"),
                );
                None
            }
        }
    }

    /// A string, or a list of strings.
    fn strings(&mut self, key: &str) -> Vec<String> {
        let Some(value) = self.keys.get(key) else {
            return Vec::new();
        };
        let text = |value: &DeValue<'_>| match value {
            DeValue::String(text) if !text.is_empty() => Some(text.to_string()),
            _ => None,
        };
        let found = match value.get_ref() {
            DeValue::Array(entries) => entries.iter().map(|entry| text(entry.get_ref())).collect(),
            one => text(one).map(|text| vec![text]),
        };
        match found {
            Some(found) if !found.is_empty() => found,
            _ => {
                let what = format!("{key} is not a string or a list of strings");
                self.wrong(value.span().start, what);
                Vec::new()
            }
        }
    }

    fn word<W: Word>(&mut self, key: &str) -> Option<W> {
        let text = self.string(key)?;
        let found = W::from_word(&text).ok();
        if found.is_none() {
            let words: Vec<&str> = W::ALL.iter().map(|word| word.word()).collect();
            self.wrong(
                self.at(key),
                format!("{key} is not one of {}", words.join(", ")),
            );
        }
        found
    }

    fn globs(&mut self, key: &str) -> Option<Globs> {
        let patterns = self.strings(key);
        if patterns.is_empty() {
            return None;
        }
        match Globs::new(&patterns) {
            Ok(globs) => Some(globs),
            Err(error) => {
                self.wrong(self.at(key), error.to_string());
                None
            }
        }
    }

    fn regex(&mut self, key: &str) -> Option<Regex> {
        let text = self.string(key)?;
        let mut builder = RegexBuilder::new(&text);
        // Paths and arguments are bytes.
        builder
            .unicode(false)
            .size_limit(1 << 20)
            .dfa_size_limit(1 << 20);
        match builder.build() {
            Ok(regex) => Some(regex),
            Err(error) => {
                let why = error.to_string();
                let last = why
                    .lines()
                    .last()
                    .unwrap_or_default()
                    .trim_start_matches("error: ");
                self.wrong(
                    self.at(key),
                    format!("{key} is not a regular expression: {last}"),
                );
                None
            }
        }
    }

    fn action(&mut self) -> Option<Action> {
        let Some(word) = self.string("action") else {
            self.wrong(
                self.at,
                format!("a filter needs an action: {}", Action::WORDS.join(", ")),
            );
            return None;
        };
        Some(match word.as_str() {
            "drop" => Action::Drop,
            "redact" => Action::Redact(self.regex("text")),
            "rename" => {
                let (text, to) = (self.regex("text"), self.string("to"));
                match (text, to) {
                    (Some(text), Some(to)) => Action::Rename(text, to.into_bytes()),
                    _ => {
                        self.wrong(self.at("action"), "rename needs text and to");
                        return None;
                    }
                }
            }
            "abstract" => Action::Abstract,
            "sample" => Action::Sample(self.share()?),
            "deduplicate" => {
                let to = self.string("to").unwrap_or_default().into_bytes();
                Action::Deduplicate(self.regex("text").map(|text| (text, to)))
            }
            "plugin" => Action::Plugin(self.plugin()?),
            other => {
                let words = Action::WORDS.join(", ");
                self.wrong(
                    self.at("action"),
                    format!("unknown action {other}; there are {words}"),
                );
                return None;
            }
        })
    }

    fn share(&mut self) -> Option<f64> {
        let number = match self.keys.get("keep").map(Spanned::get_ref) {
            Some(DeValue::Float(number)) => number.as_str().parse::<f64>().ok(),
            Some(DeValue::Integer(number)) => number.as_str().parse::<f64>().ok(),
            _ => None,
        };
        let share = number.filter(|share| (0.0..=1.0).contains(share));
        if share.is_none() {
            self.wrong(self.at("keep"), "sample needs keep, a number from 0 to 1");
        }
        share
    }

    fn plugin(&mut self) -> Option<PluginProgram> {
        let command = self.strings("command");
        let component = self.string("component");
        if self.owner == Owner::Store {
            let what = "a plug-in stands in the user's own config.toml, not in that of a store";
            self.wrong(self.at("action"), what);
            return None;
        }
        let length: usize = command.iter().map(String::len).sum();
        match (command.first(), component) {
            (Some(program), None) if !program.starts_with('/') => {
                self.wrong(
                    self.at("command"),
                    "the program of a plug-in needs an absolute path",
                );
                None
            }
            (Some(_), None) if length <= LONGEST => Some(PluginProgram::Command(command)),
            (None, Some(path)) if path.starts_with('/') => {
                Some(PluginProgram::Component(path.into()))
            }
            (None, Some(_)) => {
                self.wrong(self.at("component"), "a component needs an absolute path");
                None
            }
            _ => {
                let what = "plugin needs command (a list of strings) or component (a path)";
                self.wrong(self.at("action"), what);
                None
            }
        }
    }

    fn condition(&mut self) -> Condition {
        let mut kinds = Vec::new();
        for word in self.strings("kind") {
            match EntityKind::ALL.iter().find(|kind| kind.word() == word) {
                Some(kind) => kinds.push(*kind),
                None => {
                    let words: Vec<&str> = EntityKind::ALL.iter().map(|kind| kind.word()).collect();
                    let what = format!("unknown kind {word}; there are {}", words.join(", "));
                    self.wrong(self.at("kind"), what);
                }
            }
        }
        let mut relations = Vec::new();
        for word in self.strings("relation") {
            match Relation::ALL.iter().find(|one| one.words().word == word) {
                Some(relation) => relations.push(*relation),
                None => {
                    let words: Vec<&str> =
                        Relation::ALL.iter().map(|one| one.words().word).collect();
                    let what = format!("unknown relation {word}; there are {}", words.join(", "));
                    self.wrong(self.at("relation"), what);
                }
            }
        }
        Condition {
            path: self.globs("path"),
            kinds,
            program: self.globs("program"),
            relations,
            expression: self.expression(),
        }
    }

    fn expression(&mut self) -> Option<Expression> {
        let text = self.string("when")?;
        if text.len() > LONGEST {
            self.wrong(
                self.at("when"),
                format!("when has more than {} KiB", LONGEST >> 10),
            );
            return None;
        }
        let span = self.keys.get("when").map_or(0..0, Spanned::span);
        Some(Expression::at(text, self.text, self.path, span))
    }

    fn subject(&mut self, action: Option<&Action>, condition: &Condition) -> Subject {
        if let Some(subject) = self.word::<Subject>("on") {
            return subject;
        }
        let rewrites = matches!(action, Some(Action::Redact(Some(_)) | Action::Rename(..)));
        match action {
            Some(Action::Abstract) => Subject::Process,
            _ if rewrites && condition.is_empty() => Subject::Text,
            _ => Subject::File,
        }
    }

    /// Checks that the parts of a filter belong together.
    fn check(&mut self, action: Option<&Action>, subject: Subject, condition: &Condition) {
        let of_files = [
            ("path", condition.path.is_some()),
            ("kind", !condition.kinds.is_empty()),
            ("relation", !condition.relations.is_empty()),
        ];
        for (key, is_given) in of_files {
            if is_given && subject != Subject::File {
                self.wrong(
                    self.at(key),
                    format!("{key} is a condition on files, not on {subject}"),
                );
            }
        }
        let Some(action) = action else { return };
        let rewrites = matches!(action, Action::Redact(Some(_)) | Action::Rename(..));
        if subject == Subject::Text && (!rewrites || !condition.is_empty()) {
            let what = "on = \"text\" is for redact and rename with text and without a condition";
            self.wrong(self.at("on"), what);
        }
        if matches!(action, Action::Abstract) && subject != Subject::Process {
            self.wrong(self.at("on"), "abstract is for processes: on = \"process\"");
        }
        let drops = matches!(action, Action::Drop | Action::Abstract);
        if drops && condition.is_empty() && self.mistakes.is_empty() {
            let what = format!(
                "{} needs a condition, such as path = \"/tmp/**\"",
                action.word()
            );
            self.wrong(self.at("action"), what);
        }
        let may_close = matches!(action, Action::Drop | Action::Redact(_) | Action::Plugin(_));
        if self.keys.contains_key("failure") && !may_close {
            self.wrong(
                self.at("failure"),
                "failure belongs to drop, redact and plugin",
            );
        }
        let own: &[&str] = match action {
            Action::Redact(_) => &["text"],
            Action::Rename(..) | Action::Deduplicate(_) => &["text", "to"],
            Action::Sample(_) => &["keep"],
            Action::Plugin(_) => &["command", "component"],
            Action::Drop | Action::Abstract => &[],
        };
        for key in ["text", "to", "keep", "command", "component"] {
            if self.keys.contains_key(key) && !own.contains(&key) {
                self.wrong(
                    self.at(key),
                    format!("{key} does not belong to {}", action.word()),
                );
            }
        }
    }
}
