//! The values of a rule: what a field's text is compared with.
//!
//! A comparison takes a time that grows with the length of the field's text, and not faster. For
//! regular expressions the crate `regex` promises it, which never goes back in a text.

use std::net::IpAddr;

use regex::bytes::{Regex, RegexBuilder};

use crate::glob::Glob;

/// Memory for a compiled regular expression, in bytes. It bounds the time for a byte, too.
const REGEX: usize = 1 << 20;

/// A value of a rule.
#[derive(Debug)]
pub enum Pattern {
    /// A text with wildcards.
    Glob(Glob),
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

impl Pattern {
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
            Pattern::Glob(glob) => glob.matches(text),
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

#[cfg(test)]
mod tests {
    use super::*;

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
