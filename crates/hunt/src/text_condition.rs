//! Conditions in SQL for a text with wildcards: tests of a column of a lake.
//!
//! In: a column, and the pieces of a text. Out: a test that each matching row meets. Other rows may
//! meet it, too.
//!
//! The time for a row is bounded: a test asks for few texts. One that may stand anywhere has a
//! longest length, and the others have one place. `LIKE` has no such bound, because it tries all
//! places for each `%`.

use crate::glob::Piece;

/// Most texts that a test asks for.
pub(crate) const PARTS: usize = 8;
/// Most characters of a text that may stand anywhere.
pub(crate) const LONGEST: usize = 64;

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
            // A byte may be a part of a character, so that `?` is as good as `*`.
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

/// The column as a whole matches. So does a text that differs in bytes that are not UTF-8, or in
/// the order of the texts between the wildcards. `None`: all texts match.
pub(crate) fn whole(column: &str, pieces: &[Piece], cased: bool) -> Option<String> {
    let literals = literals(pieces);
    match literals.as_slice() {
        [] => Some(format!("{column} = ''")),
        [Some(literal)] if cased => Some(format!("{column} = {}", text(literal))),
        [Some(literal)] => Some(format!("lower({column}) = lower({})", text(literal))),
        several => {
            let tests = several.iter().enumerate().filter_map(|(at, literal)| {
                let literal = literal.as_ref()?;
                Some(match at {
                    0 => called("starts_with", column, literal, cased),
                    _ if at + 1 == several.len() => called("suffix", column, literal, cased),
                    _ => contains(column, literal, cased),
                })
            });
            every(tests.take(PARTS).collect())
        }
    }
}

/// The column, which may have quotes of a shell, contains the texts of the pattern. `None`: all
/// texts do.
pub(crate) fn within(column: &str, pieces: &[Piece], cased: bool) -> Option<String> {
    // Quotes stand between words, and take the place of characters that need them.
    let is_plain = |c: char| c.is_ascii_graphic() && c != '\'' && c != '\\';
    let mut tests = Vec::new();
    for literal in literals(pieces).into_iter().flatten() {
        let parts = literal.split(|c| !is_plain(c));
        let parts = parts.filter(|part| !part.is_empty());
        tests.extend(parts.map(|part| contains(column, part, cased)));
    }
    tests.truncate(PARTS);
    every(tests)
}

/// All of these tests. `None`: the list is empty.
fn every(tests: Vec<String>) -> Option<String> {
    match tests.as_slice() {
        [] => None,
        [test] => Some(test.clone()),
        several => Some(format!("({})", several.join(" AND "))),
    }
}

/// The column contains the beginning of a text.
fn contains(column: &str, literal: &str, cased: bool) -> String {
    let begin: String = literal.chars().take(LONGEST).collect();
    called("contains", column, &begin, cased)
}

/// A function of a column and a text. The case of letters that are not ASCII may matter to a
/// pattern, and does not matter here.
fn called(function: &str, column: &str, literal: &str, cased: bool) -> String {
    let literal = text(literal);
    match cased {
        true => format!("{function}({column}, {literal})"),
        false => format!("{function}(lower({column}), lower({literal}))"),
    }
}

/// A text in SQL.
pub(crate) fn text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
