//! The words of a command, as a shell without its state can know them.

use brush_parser::ast::{CommandPrefixOrSuffixItem as Item, IoRedirect, Word};
use brush_parser::word;

use super::statements::{Dialect, syntax};

/// True if no redirection is one of the standard descriptors.
pub fn opens_further(items: &[Item]) -> bool {
    let mut is_named = false;
    items.iter().all(|item| match item {
        Item::IoRedirect(IoRedirect::File(number, ..)) => {
            std::mem::take(&mut is_named) || number.is_some_and(|number| number > 2)
        }
        // `{name}<file`
        Item::Word(word) => {
            is_named = true;
            word.value.starts_with('{')
        }
        _ => false,
    })
}

/// A word of a command.
#[derive(Default)]
pub struct Argument<'w> {
    /// Without quotes, if nothing in it is expanded.
    pub literal: Option<String>,
    /// As it is in the text.
    pub raw: &'w str,
}

impl<'w> Argument<'w> {
    pub fn of(word: &'w Word, dialect: Dialect) -> Argument<'w> {
        Argument {
            literal: literal(word, dialect),
            raw: &word.value,
        }
    }

    /// True if a `/` is in the word, and not within an expansion.
    pub fn has_directory(&self) -> bool {
        let last = self.raw.rsplit(['}', ')', '`']).next().unwrap_or_default();
        last.contains('/') && self.raw.starts_with(['"', '/', '.'])
    }

    pub fn is_name(&self) -> bool {
        let literal = self.literal.as_deref();
        literal.is_some_and(|word| !word.starts_with('-'))
    }
}

/// The name of a variable at the begin of a text.
pub fn variable(text: &str) -> &str {
    let is_end = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    &text[..text.find(is_end).unwrap_or(text.len())]
}

/// A word without quotes, if nothing in it is expanded.
fn literal(word: &Word, dialect: Dialect) -> Option<String> {
    let pieces = word::parse(&word.value, &syntax(dialect)).ok()?;
    let mut text = String::new();
    match word.value == "[" {
        true => text.push('['),
        false => add_literal(&pieces, false, &mut text)?,
    }
    Some(text)
}

fn add_literal(
    pieces: &[word::WordPieceWithSource],
    is_quoted: bool,
    text: &mut String,
) -> Option<()> {
    use word::WordPiece::*;
    for piece in pieces {
        match &piece.piece {
            Text(part) if is_quoted || !part.contains(['*', '?', '[', '{', '~']) => {
                text.push_str(part);
            }
            SingleQuotedText(part) => text.push_str(part),
            EscapeSequence(part) => text.push_str(part.strip_prefix('\\').unwrap_or(part)),
            DoubleQuotedSequence(inner) => add_literal(inner, true, text)?,
            _ => return None,
        }
    }
    Some(())
}
