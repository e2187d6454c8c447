//! The values of a rule: what a field's text is compared with.
//!
//! As in Sigma, `*` and `?` are wildcards, and `\` takes away their meaning. The case of ASCII
//! letters does not matter, unless the modifier `cased` is given.

use std::net::IpAddr;

use regex::bytes::{Regex, RegexBuilder};

/// Memory for a compiled regular expression, in bytes.
const REGEX: usize = 1 << 20;

/// A value of a rule.
#[derive(Debug)]
pub enum Pattern {
    /// A text with wildcards, and whether case matters.
    Glob(Vec<Piece>, bool),
    /// A regular expression.
    Regex(Regex),
    /// A network: its address and the length of its prefix.
    Network(IpAddr, u8),
    /// A number with its comparison.
    Number(Comparison, i64),
    /// The field has no value.
    Absent,
}

/// How a number is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// Less.
    Lt,
    /// Less or equal.
    Lte,
    /// Greater.
    Gt,
    /// Greater or equal.
    Gte,
}

/// A piece of a text with wildcards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece {
    /// This byte.
    Byte(u8),
    /// Any byte.
    One,
    /// Any bytes.
    Any,
}

/// Where in the field the text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// It is the whole field.
    Whole,
    /// Anywhere.
    Contains,
    /// At the beginning.
    Start,
    /// At the end.
    End,
}

impl Pattern {
    /// A text with wildcards.
    pub fn glob(text: &str, anchor: Anchor, cased: bool) -> Pattern {
        let mut pieces = Vec::new();
        if matches!(anchor, Anchor::Contains | Anchor::End) {
            pieces.push(Piece::Any);
        }
        let mut bytes = text.bytes().peekable();
        while let Some(byte) = bytes.next() {
            pieces.push(match byte {
                b'*' => Piece::Any,
                b'?' => Piece::One,
                b'\\' => match bytes.next_if(|next| b"*?\\".contains(next)) {
                    Some(plain) => Piece::Byte(plain),
                    None => Piece::Byte(byte),
                },
                byte => Piece::Byte(byte),
            });
        }
        if matches!(anchor, Anchor::Contains | Anchor::Start) {
            pieces.push(Piece::Any);
        }
        Pattern::Glob(pieces, cased)
    }

    /// A regular expression, or the mistake in it.
    ///
    /// # Errors
    ///
    /// The cause, in one line.
    pub fn regex(text: &str, any_case: bool) -> Result<Pattern, String> {
        let mut builder = RegexBuilder::new(text);
        // The programs' regex crate has no tables of Unicode.
        let builder = builder.unicode(false).case_insensitive(any_case);
        match builder.size_limit(REGEX).build() {
            Ok(regex) => Ok(Pattern::Regex(regex)),
            Err(error) => {
                let text = error.to_string();
                let last = text.lines().last().unwrap_or_default();
                Err(last.trim_start_matches("error: ").to_owned())
            }
        }
    }

    /// A network (`10.0.0.0/8`).
    pub fn network(text: &str) -> Option<Pattern> {
        let (address, length) = text.split_once('/')?;
        let (address, length): (IpAddr, u8) = (address.parse().ok()?, length.parse().ok()?);
        let most = if address.is_ipv4() { 32 } else { 128 };
        (length <= most).then_some(Pattern::Network(address, length))
    }

    /// True if a field's text is such a value.
    pub fn matches(&self, text: &[u8]) -> bool {
        let number = || std::str::from_utf8(text).ok()?.parse::<i64>().ok();
        match self {
            Pattern::Glob(pieces, cased) => glob_matches(pieces, text, *cased),
            Pattern::Regex(regex) => regex.is_match(text),
            Pattern::Network(network, length) => {
                let address = std::str::from_utf8(text).ok().and_then(|t| t.parse().ok());
                address.is_some_and(|address| is_within(address, *network, *length))
            }
            Pattern::Number(comparison, limit) => number().is_some_and(|n| match comparison {
                Comparison::Lt => n < *limit,
                Comparison::Lte => n <= *limit,
                Comparison::Gt => n > *limit,
                Comparison::Gte => n >= *limit,
            }),
            Pattern::Absent => false,
        }
    }
}

fn is_within(address: IpAddr, network: IpAddr, length: u8) -> bool {
    let (a, b, bits) = match (address, network) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (u128::from(a.to_bits()), u128::from(b.to_bits()), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits(), b.to_bits(), 128),
        _ => return false,
    };
    length == 0 || (a ^ b) >> (bits - u32::from(length)) == 0
}

/// Compares in time that grows with the product of the lengths, whatever the wildcards.
fn glob_matches(pieces: &[Piece], text: &[u8], cased: bool) -> bool {
    let same = |piece: Piece, byte: u8| match piece {
        Piece::Byte(own) if cased => own == byte,
        Piece::Byte(own) => own.eq_ignore_ascii_case(&byte),
        Piece::One => true,
        Piece::Any => false,
    };
    let (mut piece, mut at) = (0, 0);
    // Behind the last `*`, and the byte of the text that it was tried with.
    let mut back: Option<(usize, usize)> = None;
    while at < text.len() {
        match pieces.get(piece) {
            Some(Piece::Any) => {
                piece += 1;
                back = Some((piece, at));
            }
            Some(&own) if same(own, text[at]) => {
                piece += 1;
                at += 1;
            }
            _ => match &mut back {
                Some((behind, tried)) => {
                    *tried += 1;
                    (piece, at) = (*behind, *tried);
                }
                None => return false,
            },
        }
    }
    pieces[piece..].iter().all(|piece| *piece == Piece::Any)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn glob(pattern: &str, text: &str) -> bool {
        Pattern::glob(pattern, Anchor::Whole, false).matches(text.as_bytes())
    }

    #[test]
    fn wildcards_match_as_in_sigma() {
        assert!(glob("*/.ssh/id_*", "/home/a/.ssh/id_rsa") && glob("a?c", "abc"));
        assert!(glob("", "") && glob("*", "") && glob("**a**", "xay"));
        assert!(!glob("a?c", "ac") && !glob("*/.ssh/id_*", "/home/.ssh/x") && !glob("", "a"));
        assert!(glob("A*B", "axxb") && !Pattern::glob("A", Anchor::Whole, true).matches(b"a"));
        assert!(glob(r"a\*b", "a*b") && !glob(r"a\*b", "axb"));
        assert!(Pattern::glob("sh", Anchor::End, false).matches(b"/bin/bash"));
        assert!(!Pattern::glob("sh", Anchor::Start, false).matches(b"/bin/bash"));
    }

    #[test]
    fn a_pattern_of_many_wildcards_ends() {
        let text = "a".repeat(20_000);
        assert!(!glob(&("*a".repeat(200) + "c"), &(text + "b")));
    }

    #[test]
    fn networks_and_numbers_compare() {
        let network = Pattern::network("10.0.0.0/8").unwrap();
        assert!(network.matches(b"10.9.8.7") && !network.matches(b"11.0.0.1"));
        assert!(!network.matches(b"::1") && Pattern::network("::/0").unwrap().matches(b"::1"));
        assert!(Pattern::network("10.0.0.0/33").is_none() && Pattern::network("x").is_none());
        let number = Pattern::Number(Comparison::Gte, 20);
        assert!(number.matches(b"20") && !number.matches(b"3") && !number.matches(b"x"));
    }
}
