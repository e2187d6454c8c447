//! Finds secrets among the arguments of programs by their form:
//!
//! - `NAME=value`, `--name=value` and `--name value`
//! - the same forms within a script that a shell is given
//! - `Authorization:` headers
//! - passwords in addresses
//!
//! Invariant: no argument becomes longer. An argument in none of these forms is kept: a password
//! that stands alone looks like any other word.

#[cfg(test)]
mod tests;

use super::{SECRETS, Secrets};
use backstory_redaction as redaction;
use backstory_wildcards::matches;
use std::ops::Range;

/// Names of options that take a secret, in the spelling of variables. There are fewer than for
/// variables: `--private-key` takes a file.
const OPTIONS: &[&str] = &[
    "*TOKEN",
    "*SECRET",
    "*PASSWORD",
    "*PASSWD",
    "*API_KEY",
    "*ACCESS_KEY",
    "*SECRET_KEY",
    "*CREDENTIALS",
];

/// HTTP headers with a secret value.
const HEADERS: &[&[u8]] = &[
    b"authorization:",
    b"proxy-authorization:",
    b"x-api-key:",
    b"private-token:",
];

/// Shorter values (`no`, `yes`, `100`) are settings.
const LEAST: usize = 4;

/// The expectation for an argument, from the one before it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// Nothing is known.
    #[default]
    Plain,
    /// The argument is the value of the option before it.
    Value,
    /// The argument is a script, as the option before it says.
    Script,
    /// The argument continues, and was not cut within a secret.
    Rest,
    /// The argument continues, and all of it is secret.
    RestOfValue,
    /// The argument continues, and is secret to the end of a word.
    RestOfWord,
}

/// The end of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// The end of the argument.
    Argument,
    /// The end of the word, as shells define words.
    Word,
}

impl Secrets {
    /// The redacted argument, and the state for the next one. With `more`, the argument continues
    /// in the next piece.
    pub(super) fn argument(
        &self,
        argument: &[u8],
        reading: Reading,
        more: bool,
    ) -> (Vec<u8>, Reading) {
        let all = 0..argument.len();
        let (parts, extent) = match reading {
            Reading::RestOfValue => (vec![all], Extent::Argument),
            Reading::Value if !argument.starts_with(b"-") => (vec![all], Extent::Argument),
            Reading::RestOfWord => {
                let end = word_end(argument, 0);
                let mut parts = self.in_script(argument, end);
                parts.insert(0, 0..end);
                (parts, Extent::Word)
            }
            Reading::Script | Reading::Rest => (self.in_script(argument, 0), Extent::Word),
            Reading::Plain | Reading::Value => self.in_argument(argument),
        };
        let goes_on = matches!(reading, Reading::RestOfValue | Reading::RestOfWord);
        let mut kept = Vec::with_capacity(argument.len());
        let (mut at, mut cut) = (0, false);
        for part in parts {
            cut = more && part.end == argument.len();
            // A piece of a secret is secret, however short it is.
            let hidden = part.len() >= LEAST || cut || goes_on && part.start == 0;
            kept.extend(&argument[at..part.start]);
            match hidden {
                true => kept.extend(redaction::part_mark(part.len())),
                false => kept.extend(&argument[part.clone()]),
            }
            at = part.end;
        }
        kept.extend(&argument[at..]);
        let is_new = matches!(reading, Reading::Plain | Reading::Script)
            || reading == Reading::Value && argument.starts_with(b"-");
        let next = match (more, cut, extent) {
            (true, false, _) => Reading::Rest,
            (true, true, Extent::Argument) => Reading::RestOfValue,
            (true, true, Extent::Word) => Reading::RestOfWord,
            (false, ..) if is_new && self.takes_secret(argument) => Reading::Value,
            (false, ..) if is_new && takes_script(argument) => Reading::Script,
            (false, ..) => Reading::Plain,
        };
        (kept, next)
    }

    /// The secrets of a whole argument.
    fn in_argument(&self, argument: &[u8]) -> (Vec<Range<usize>>, Extent) {
        if let Some(part) = self.secret_at(argument, 0, Extent::Argument) {
            return (vec![part], Extent::Argument);
        }
        (self.in_script(argument, 0), Extent::Word)
    }

    /// The secrets of a text of several words, from `at` on.
    fn in_script(&self, text: &[u8], mut at: usize) -> Vec<Range<usize>> {
        let mut parts = Vec::new();
        while at < text.len() {
            let begins = at == 0 || is_between(text[at - 1]);
            let part = match text[at] {
                b':' => password(text, at),
                _ if begins => self.secret_at(text, at, Extent::Word),
                _ => None,
            };
            match part {
                Some(part) => {
                    at = part.end.max(at + 1);
                    parts.push(part);
                }
                None => at += 1,
            }
        }
        parts
    }

    /// The value of the secret name that begins at `at`, if one does.
    fn secret_at(&self, text: &[u8], at: usize, extent: Extent) -> Option<Range<usize>> {
        let rest = &text[at..];
        let header = HEADERS.iter().find(|header| {
            rest.get(..header.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(header))
        });
        if let Some(header) = header {
            let blanks = rest[header.len()..]
                .iter()
                .take_while(|byte| **byte == b' ')
                .count();
            let start = at + header.len() + blanks;
            if is_variable(&text[start..]) {
                return None;
            }
            let quote = at
                .checked_sub(1)
                .map(|before| text[before])
                .filter(|byte| b"'\"".contains(byte));
            let until = |byte: u8| byte == b'\n' || Some(byte) == quote;
            let length = text[start..]
                .iter()
                .position(|&byte| extent == Extent::Word && until(byte));
            return Some(start..length.map_or(text.len(), |length| start + length));
        }
        let length = rest.iter().take_while(|byte| is_of_name(**byte)).count();
        let (name, start) = (&rest[..length], at + length + 1);
        let value = match text.get(at + length) {
            Some(b'=') if self.is_secret_name(name) => start,
            // An option within a script, and the word after it. Between whole arguments, the state
            // carries this.
            Some(b' ')
                if extent == Extent::Word
                    && self.takes_secret(name)
                    && text.get(start) != Some(&b'-') =>
            {
                start
            }
            _ => return None,
        };
        let part = match (extent, text.get(value)) {
            (Extent::Argument, _) => value..text.len(),
            (Extent::Word, Some(quote @ (b'"' | b'\''))) => {
                let inside = value + 1;
                let length = text[inside..].iter().position(|byte| byte == quote);
                inside..length.map_or(text.len(), |length| inside + length)
            }
            (Extent::Word, _) => value..word_end(text, value),
        };
        (!is_variable(&text[part.clone()])).then_some(part)
    }

    /// True if the text after `name=` is secret. A name in capitals is a variable's.
    fn is_secret_name(&self, name: &[u8]) -> bool {
        let bare = &name[name.iter().take_while(|byte| **byte == b'-').count()..];
        let is_option = bare.len() < name.len() || bare.iter().any(u8::is_ascii_lowercase);
        let patterns = if is_option { OPTIONS } else { SECRETS };
        !bare.is_empty()
            && (patterns
                .iter()
                .any(|p| matches(p.as_bytes(), &as_variable(bare)))
                || self.is_named(bare))
    }

    /// True for an option whose value is the next argument, a secret.
    fn takes_secret(&self, argument: &[u8]) -> bool {
        argument.strip_prefix(b"--").is_some_and(|name| {
            let switch = name.starts_with(b"no-") || !name.iter().all(|byte| is_of_name(*byte));
            !switch && self.is_secret_name(argument)
        })
    }

    /// True if the user named it, as it is or in the spelling of variables.
    fn is_named(&self, name: &[u8]) -> bool {
        let variable = as_variable(name);
        let mut more = self.more.iter().map(String::as_bytes);
        more.any(|pattern| matches(pattern, name) || matches(pattern, &variable))
    }
}

/// A password in an address whose `://` is at `at`: between the colon and the last `@` before the
/// path.
fn password(text: &[u8], at: usize) -> Option<Range<usize>> {
    let start = at + text[at..].strip_prefix(b"://").map(|_| 3)?;
    let ends = |byte: &u8| b"/?#\"'`<>".contains(byte) || byte.is_ascii_whitespace();
    let length = text[start..].iter().position(ends);
    let authority = &text[start..length.map_or(text.len(), |length| start + length)];
    let end = authority.iter().rposition(|byte| *byte == b'@')?;
    let colon = authority[..end].iter().position(|byte| *byte == b':')?;
    Some(start + colon + 1..start + end).filter(|part| !is_variable(&text[part.clone()]))
}

/// Converts `api-key` to `API_KEY`.
fn as_variable(name: &[u8]) -> Vec<u8> {
    let upper = |byte: &u8| match byte {
        b'-' | b'.' => b'_',
        byte => byte.to_ascii_uppercase(),
    };
    name.iter().map(upper).collect()
}

/// True for a variable reference. The shell replaces it in the arguments of the program that it
/// starts.
fn is_variable(value: &[u8]) -> bool {
    matches!(value.first(), Some(b'$' | b'`'))
}

/// True for `-c` and its combinations: `-ec`, `-lc`.
fn takes_script(argument: &[u8]) -> bool {
    let letters = argument.strip_prefix(b"-").unwrap_or_default();
    letters.ends_with(b"c") && letters.len() < 5 && letters.iter().all(u8::is_ascii_alphabetic)
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.".contains(&byte)
}

/// True for a separator of words, as shells define words.
fn is_between(byte: u8) -> bool {
    byte.is_ascii_whitespace() || b"\"'`;&|(){}=,".contains(&byte)
}

fn word_end(text: &[u8], from: usize) -> usize {
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b"\"'`;&|()".contains(byte);
    text[from..]
        .iter()
        .position(ends)
        .map_or(text.len(), |length| from + length)
}
