//! Parts of an output that may differ: dates that come from the clock, and declared patterns.
//!
//! In: both texts around their first difference. Out: the part that the difference lies in, by its
//! name. Invariant: a difference without a name is a difference. A date has one only if the program
//! was given that second in the new execution, and the recorded one lies within the recorded run.
//! Both may be in another time zone.

use regex::bytes::Regex;
use std::collections::BTreeSet;

/// Bytes before a difference in which a volatile part may begin.
pub const CONTEXT: usize = 64;
/// Seconds by which time zones differ.
const ZONE_STEP: i64 = 900;
/// Most seconds between a zone and UTC.
const LARGEST_ZONE: i64 = 14 * 3600;
/// Seconds before and after the run in which recorded dates lie.
const MARGIN: i64 = 1;
/// Most seconds that are remembered.
const MOST_SECONDS: usize = 1 << 16;

/// The name of a date that follows the clock.
const DATE: &str = "a date from the clock";

/// The parts that may differ.
#[derive(Debug, Clone, Default)]
pub struct VolatileRules {
    patterns: Vec<Regex>,
    /// First and last second of the recorded run.
    recorded: Option<(i64, i64)>,
    /// The seconds that the programs were given.
    given: BTreeSet<i64>,
}

/// A part of both texts that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolatilePart {
    /// Its name.
    pub name: String,
    /// Bytes from the first difference to its end.
    pub length: usize,
}

impl VolatileRules {
    /// Rules for a run that lasted from one time to another, in ns since 1970.
    pub fn of_run(from: i64, to: i64) -> VolatileRules {
        VolatileRules {
            recorded: Some((seconds(from), seconds(to))),
            ..VolatileRules::default()
        }
    }

    /// Declares that text which matches a regular expression is volatile.
    ///
    /// # Errors
    /// The pattern is no regular expression.
    pub fn declare(&mut self, pattern: &str) -> Result<(), regex::Error> {
        self.patterns.push(Regex::new(pattern)?);
        Ok(())
    }

    /// A program was given this time, in ns since 1970.
    pub fn give(&mut self, ns: i64) {
        if self.given.len() < MOST_SECONDS {
            self.given.insert(seconds(ns));
        }
    }

    /// The part that a difference lies in. Both texts begin at the same position, and are equal
    /// before `at`.
    pub fn part(&self, recorded: &[u8], came: &[u8], at: usize) -> Option<VolatilePart> {
        self.declared(recorded, came, at)
            .or_else(|| self.date(recorded, came, at))
    }

    fn declared(&self, recorded: &[u8], came: &[u8], at: usize) -> Option<VolatilePart> {
        self.patterns.iter().find_map(|pattern| {
            let mut all = pattern.find_iter(recorded);
            let then = all.find(|found| found.start() <= at && at < found.end())?;
            let now = pattern.find_at(came, then.start())?;
            (now.range() == then.range()).then(|| VolatilePart {
                name: format!("the declared pattern {pattern}"),
                length: then.end() - at,
            })
        })
    }

    fn date(&self, recorded: &[u8], came: &[u8], at: usize) -> Option<VolatilePart> {
        let mut starts = at.saturating_sub(CONTEXT)..=at;
        starts.find_map(|start| {
            let (then, length) = date_at(recorded.get(start..)?)?;
            let (now, same) = date_at(came.get(start..)?)?;
            let covers = length == same && at < start + length;
            (covers && self.follows_the_clock(then, now)).then(|| VolatilePart {
                name: DATE.to_owned(),
                length: start + length - at,
            })
        })
    }

    /// True if one second was given to a program, and the other one lies within the recorded run,
    /// both in the same time zone.
    fn follows_the_clock(&self, then: i64, now: i64) -> bool {
        let Some((from, to)) = self.recorded else {
            return false;
        };
        let mut zones = (-LARGEST_ZONE..=LARGEST_ZONE).step_by(ZONE_STEP as usize);
        zones.any(|zone| {
            let in_run = (from - MARGIN..=to + MARGIN).contains(&(then - zone));
            in_run && self.given.contains(&(now - zone))
        })
    }
}

fn seconds(ns: i64) -> i64 {
    ns.div_euclid(1_000_000_000)
}

/// The date at the beginning of a text, in seconds since 1970, and its length.
fn date_at(text: &[u8]) -> Option<(i64, usize)> {
    http_date(text)
        .or_else(|| iso_date(text))
        .or_else(|| seconds_since_1970(text))
}

fn number(text: &[u8], from: usize, digits: usize) -> Option<i64> {
    let digits = text.get(from..from + digits)?;
    let digits = std::str::from_utf8(digits).ok()?;
    digits.bytes().all(|b| b.is_ascii_digit()).then_some(())?;
    digits.parse().ok()
}

/// `15:04:05` as a second of the day.
fn clock(text: &[u8], from: usize) -> Option<i64> {
    let colons = [2, 5].map(|at| text.get(from + at).copied());
    let part = |at| number(text, from + at, 2);
    (colons == [Some(b':'); 2]).then_some(())?;
    Some(part(0)? * 3600 + part(3)? * 60 + part(6)?)
}

/// `Mon, 02 Jan 2006 15:04:05`, as in HTTP and mail.
fn http_date(text: &[u8]) -> Option<(i64, usize)> {
    const MONTHS: &[u8] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
    const LENGTH: usize = 25;
    (text.get(3..5)? == b", ").then_some(())?;
    let name = text.get(8..11)?;
    let month = MONTHS.chunks(3).position(|month| month == name)? as i64 + 1;
    let day = days(number(text, 12, 4)?, month, number(text, 5, 2)?);
    Some((day * 86_400 + clock(text, 17)?, LENGTH))
}

/// `2006-01-02T15:04:05`, or with a space.
fn iso_date(text: &[u8]) -> Option<(i64, usize)> {
    const LENGTH: usize = 19;
    let marks = [4, 7].map(|at| text.get(at).copied());
    let between = matches!(text.get(10), Some(b'T' | b' '));
    (marks == [Some(b'-'); 2] && between).then_some(())?;
    let day = days(
        number(text, 0, 4)?,
        number(text, 5, 2)?,
        number(text, 8, 2)?,
    );
    Some((day * 86_400 + clock(text, 11)?, LENGTH))
}

/// Ten digits are seconds; with 3, 6 or 9 more they are ms, µs or ns.
fn seconds_since_1970(text: &[u8]) -> Option<(i64, usize)> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    matches!(digits, 10 | 13 | 16 | 19).then_some((number(text, 0, 10)?, digits))
}

/// Days since 1970 of a day of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March, so that the day of a leap year is the last one.
    let (year, month) = match month > 2 {
        true => (year, month - 3),
        false => (year - 1, month + 9),
    };
    let leaps = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    365 * year + leaps + (153 * month + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::VolatileRules;

    const NS: i64 = 1_000_000_000;

    /// The name of the part in which the texts first differ.
    fn name(rules: &VolatileRules, recorded: &[u8], came: &[u8]) -> Option<String> {
        let mut both = recorded.iter().zip(came);
        let at = both.position(|(a, b)| a != b).unwrap();
        let part = rules.part(recorded, came, at)?;
        assert_eq!(recorded[at + part.length..], came[at + part.length..]);
        Some(part.name)
    }

    #[test]
    fn a_date_is_volatile_if_the_program_was_given_its_second() {
        // Mon, 23 Nov 2026 15:47:44
        let mut rules = VolatileRules::of_run(1_795_448_860 * NS, 1_795_448_870 * NS);
        rules.give(1_795_448_865 * NS);
        let clock = Some("a date from the clock".to_owned());
        for (recorded, came) in [
            (
                "Date: Mon, 23 Nov 2026 15:47:44 GMT\r\n",
                "Date: Mon, 23 Nov 2026 15:47:45 GMT\r\n",
            ),
            (
                "at 2026-11-23T16:47:44+01:00",
                "at 2026-11-23T16:47:45+01:00",
            ),
            ("id=1795448864;", "id=1795448865;"),
            ("id=1795448864123;", "id=1795448865999;"),
        ] {
            assert_eq!(
                name(&rules, recorded.as_bytes(), came.as_bytes()),
                clock,
                "{came}"
            );
        }
        for (recorded, came) in [
            // Another second than the given one, another day, a counter, and a longer number.
            (
                "Date: Mon, 23 Nov 2026 15:47:44 GMT",
                "Date: Mon, 23 Nov 2026 15:47:49 GMT",
            ),
            (
                "Date: Sun, 22 Nov 2026 15:47:44 GMT",
                "Date: Mon, 23 Nov 2026 15:47:45 GMT",
            ),
            ("17\n", "18\n"),
            ("deadbeef01\n", "0123456789\n"),
            ("id=17954488641;", "id=17954488652;"),
        ] {
            assert_eq!(
                name(&rules, recorded.as_bytes(), came.as_bytes()),
                None,
                "{came}"
            );
        }
    }

    #[test]
    fn a_declared_pattern_covers_text_of_the_same_length_only() {
        let mut rules = VolatileRules::default();
        rules.declare("nonce=[0-9a-f]+").unwrap();
        let found = name(&rules, b"a nonce=12ab; b", b"a nonce=99ff; b");
        assert_eq!(
            found.as_deref(),
            Some("the declared pattern nonce=[0-9a-f]+")
        );
        assert_eq!(name(&rules, b"nonce=12ab;", b"nonce=12a;;"), None);
        assert_eq!(name(&rules, b"a nonce=12ab; b", b"a nonce=12ab; c"), None);
        assert!(rules.declare("[").is_err());
    }

    #[test]
    fn cut_texts_have_no_part() {
        let rules = VolatileRules::of_run(0, i64::MAX);
        let text = b"Date: Mon, 23 Nov 2026 15:47:44 GMT 2026-11-23T16:47:44 1795448864";
        for length in 0..text.len() {
            for at in 0..=length {
                assert_eq!(rules.part(&text[..length], b"x", at), None);
            }
        }
    }
}
