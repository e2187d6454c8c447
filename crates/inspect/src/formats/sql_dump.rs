//! Dumps of databases as SQL: tables and their numbers of rows, and changed lines.
//!
//! Statements are found, not parsed: `CREATE TABLE`, `INSERT INTO`, and the blocks of `COPY … FROM
//! stdin` that PostgreSQL writes. Texts in quotes and comments are left out.

use std::collections::BTreeMap;

use backstory_comparison::{ContentDifference, compare};
use serde_json::json;

use crate::changes::{self, FileChanges, text_changes};
use crate::{FileFacts, Inspector, NamedContent, Read};

pub struct SqlDump;

/// A table in a dump.
#[derive(Default)]
struct DumpedTable {
    is_created: bool,
    rows: usize,
}

impl Inspector for SqlDump {
    fn facts(&self, content: NamedContent<'_>) -> Read<FileFacts> {
        let text = String::from_utf8_lossy(content.bytes);
        let mut tables: BTreeMap<String, DumpedTable> = BTreeMap::new();
        let mut statements = 0;
        let mut rest: &str = &text;
        while let Some((statement, after)) = next_statement(rest) {
            rest = after;
            statements += usize::from(!statement.words.is_empty());
            let words: Vec<&str> = statement.words.iter().map(String::as_str).collect();
            let upper: Vec<String> = words
                .iter()
                .take(6)
                .map(|word| word.to_ascii_uppercase())
                .collect();
            let upper: Vec<&str> = upper.iter().map(String::as_str).collect();
            match upper.as_slice() {
                ["CREATE", "TABLE", "IF", "NOT", "EXISTS", _, ..] => {
                    tables.entry(name(words[5])).or_default().is_created = true;
                }
                ["CREATE", "TABLE", _, ..] => {
                    tables.entry(name(words[2])).or_default().is_created = true;
                }
                ["INSERT", "INTO", _, ..] => {
                    tables.entry(name(words[2])).or_default().rows += statement.tuples;
                }
                ["COPY", _, ..]
                    if words
                        .last()
                        .is_some_and(|last| last.eq_ignore_ascii_case("stdin")) =>
                {
                    let (rows, after) = copied_rows(rest);
                    tables.entry(name(words[1])).or_default().rows += rows;
                    rest = after;
                }
                _ => {}
            }
        }
        let mut facts = FileFacts::default();
        facts.value("statements", statements);
        let told = tables.into_iter();
        let told = told.map(|(name, table)| {
            (
                name,
                json!({"created": table.is_created, "rows": table.rows}),
            )
        });
        facts.parts(("table", "tables"), told.collect::<Vec<_>>());
        Ok(facts)
    }

    fn changes(&self, old: NamedContent<'_>, new: NamedContent<'_>) -> Read<FileChanges> {
        let mut changes = changes::between(&self.facts(old)?, &self.facts(new)?);
        if let ContentDifference::Text(text) = compare(old.bytes, new.bytes) {
            text_changes(&text, ("line", "lines"), &mut changes);
        }
        Ok(changes)
    }
}

/// A table's name without quotes.
fn name(word: &str) -> String {
    word.replace(['[', ']'], "")
}

/// The rows of a `COPY` block, and the text after its end.
fn copied_rows(text: &str) -> (usize, &str) {
    let text = text.strip_prefix('\n').unwrap_or(text);
    let mut rows = 0;
    let mut rest = text;
    while let Some((line, after)) = rest.split_once('\n') {
        rest = after;
        if line == "\\." {
            return (rows, rest);
        }
        rows += 1;
    }
    (rows + usize::from(!rest.is_empty()), "")
}

/// One statement.
struct SqlStatement {
    /// Its words outside of parentheses and quotes. A quoted name is a word.
    words: Vec<String>,
    /// The tuples after `VALUES`.
    tuples: usize,
}

/// Takes the next statement, up to its semicolon. `None` at the end.
fn next_statement(text: &str) -> Option<(SqlStatement, &str)> {
    if text.trim().is_empty() {
        return None;
    }
    let mut statement = SqlStatement {
        words: Vec::new(),
        tuples: 0,
    };
    let mut word = String::new();
    let mut depth = 0usize;
    let mut has_values = false;
    let mut chars = text.char_indices().peekable();
    let mut end = text.len();
    while let Some((at, char)) = chars.next() {
        let next = chars.peek().map(|(_, next)| *next);
        let is_quote = matches!(char, '"' | '`');
        if !word.is_empty() && !is_word(char) && !is_quote {
            has_values |= word.eq_ignore_ascii_case("values");
            statement.words.push(std::mem::take(&mut word));
        }
        match char {
            ';' if depth == 0 => {
                end = at + 1;
                break;
            }
            '-' if next == Some('-') => while chars.next_if(|(_, char)| *char != '\n').is_some() {},
            '/' if next == Some('*') => {
                let mut last = ' ';
                chars.next();
                for (_, char) in chars.by_ref() {
                    if (last, char) == ('*', '/') {
                        break;
                    }
                    last = char;
                }
            }
            '\'' => skip_text(&mut chars),
            '(' => {
                statement.tuples += usize::from(depth == 0 && has_values);
                depth += 1;
            }
            ')' => depth = depth.saturating_sub(1),
            char if is_quote => {
                let quoted = chars.by_ref().map(|(_, char)| char);
                let quoted: String = quoted.take_while(|next| *next != char).collect();
                if depth == 0 {
                    word.push_str(&quoted);
                }
            }
            char if depth == 0 && is_word(char) => word.push(char),
            _ => {}
        }
    }
    if !word.is_empty() {
        statement.words.push(word);
    }
    Some((statement, &text[end..]))
}

/// True for a character of a name that is not quoted. The brackets are Microsoft's quotes.
fn is_word(char: char) -> bool {
    char.is_alphanumeric() || "_.$[]".contains(char)
}

/// Skips a text after its first quote. A quote in it is doubled, or stands after a backslash.
fn skip_text(chars: &mut std::iter::Peekable<std::str::CharIndices<'_>>) {
    while let Some((_, char)) = chars.next() {
        match char {
            '\\' => drop(chars.next()),
            '\'' if chars.next_if(|(_, next)| *next == '\'').is_none() => return,
            _ => {}
        }
    }
}
