//! Parts of an output that may differ: dates that come from the clock, keys that a server draws for
//! each session, and declared patterns.
//!
//! In: both texts around their first difference. Out: the part that the difference lies in, by its
//! name. Invariant: a difference without a name is a difference. A date has one only if the program
//! was given that second in the new execution, and the recorded one lies within the recorded run.
//! Both may be in another time zone. `crate::dates` has the forms of dates.

use crate::dates::{WrittenDate, date_at, loose_date_at};
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

/// The name of the key by which a client may cancel a query of PostgreSQL.
const CANCEL_KEY: &str = "the cancel key of a session of PostgreSQL";
/// The type and length of its message, `BackendKeyData` in the protocol of PostgreSQL. The number
/// of the process and the key follow, four bytes each.
const KEY_DATA: &[u8] = b"K\0\0\0\x0c";
/// The type and length of the message behind it, `ReadyForQuery`.
const READY: &[u8] = b"Z\0\0\0\x05";

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
            .or_else(|| cancel_key(recorded, came, at))
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
        let (start, then, _) = self.dates(recorded, came, at, |then, now| {
            let (then, now) = (date_at(then)?, date_at(now)?);
            (then.length == now.length).then_some((then, now))
        })?;
        Some(VolatilePart {
            name: DATE.to_owned(),
            length: start + then.length - at,
        })
    }

    /// Ns from the date that came to the recorded one, if the texts first differ in a date that
    /// follows the clock. The dates may have other lengths.
    pub fn apart(&self, recorded: &[u8], came: &[u8], at: usize) -> Option<i64> {
        let (_, then, now) = self.dates(recorded, came, at, |then, now| {
            Some((loose_date_at(then)?, loose_date_at(now)?))
        })?;
        then.ns().checked_sub(now.ns())
    }

    /// The dates of both texts that the difference at a position lies in, as `read` reads them, and
    /// where they begin.
    fn dates(
        &self,
        recorded: &[u8],
        came: &[u8],
        at: usize,
        read: impl Fn(&[u8], &[u8]) -> Option<(WrittenDate, WrittenDate)>,
    ) -> Option<(usize, WrittenDate, WrittenDate)> {
        let mut starts = at.saturating_sub(CONTEXT)..=at;
        starts.find_map(|start| {
            let (then, now) = read(recorded.get(start..)?, came.get(start..)?)?;
            let covers = at < start + then.length;
            let follows = covers && self.follows_the_clock(then.seconds, now.seconds);
            follows.then_some((start, then, now))
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

/// The part if the difference lies in a key of a session. OpenSSL draws it from a state that all
/// sessions before have changed. A part of a run does not have these.
fn cancel_key(recorded: &[u8], came: &[u8], at: usize) -> Option<VolatilePart> {
    const KEY: usize = 4;
    const NUMBER: usize = 4;
    let mut starts = at.saturating_sub(KEY - 1)..=at;
    let is_key = |start: usize| {
        let message = start.checked_sub(KEY_DATA.len() + NUMBER)?;
        let begins = recorded.get(message..)?.starts_with(KEY_DATA);
        let ends = |text: &[u8]| Some(text.get(start + KEY..)?.starts_with(READY));
        Some(begins && ends(recorded)? && ends(came)?)
    };
    let start = starts.find(|start| is_key(*start) == Some(true))?;
    Some(VolatilePart {
        name: CANCEL_KEY.to_owned(),
        length: start + KEY - at,
    })
}

fn seconds(ns: i64) -> i64 {
    ns.div_euclid(1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::VolatileRules;

    const NS: i64 = 1_000_000_000;

    /// The position at which the texts first differ.
    fn parting(recorded: &[u8], came: &[u8]) -> usize {
        let mut both = recorded.iter().zip(came);
        both.position(|(a, b)| a != b).unwrap()
    }

    /// The name of the part in which the texts first differ.
    fn name(rules: &VolatileRules, recorded: &[u8], came: &[u8]) -> Option<String> {
        let at = parting(recorded, came);
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
            (
                "at 2026-11-23 15:47:44.120 Z",
                "at 2026-11-23 15:47:45.987 Z",
            ),
            (
                "[23/Nov/2026:15:47:44 +0000]",
                "[23/Nov/2026:15:47:45 +0000]",
            ),
            ("Mon Nov 23 15:47:44 2026\n", "Mon Nov 23 15:47:45 2026\n"),
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
            // The column behind a date in a table.
            ("2026-11-23 15:47:45,17\n", "2026-11-23 15:47:45,18\n"),
        ] {
            assert_eq!(
                name(&rules, recorded.as_bytes(), came.as_bytes()),
                None,
                "{came}"
            );
        }
    }

    #[test]
    fn two_dates_from_the_clock_tell_how_far_they_are_apart() {
        const MS: i64 = 1_000_000;
        let mut rules = VolatileRules::of_run(1_795_448_860 * NS, 1_795_448_870 * NS);
        rules.give(1_795_448_865 * NS);
        for (recorded, came, apart) in [
            (
                "Date: Mon, 23 Nov 2026 15:47:44 GMT\r\n",
                "Date: Mon, 23 Nov 2026 15:47:45 GMT\r\n",
                Some(-NS),
            ),
            (
                "at 2026-11-23T16:47:47+01:00",
                "at 2026-11-23T16:47:45+01:00",
                Some(2 * NS),
            ),
            ("1795448865.25", "1795448865.125", Some(125 * MS)),
            ("15:47 1795448865004", "15:47 1795448865001", Some(3 * MS)),
            (
                "2026-11-23 15:47:45,017 INFO",
                "2026-11-23 15:47:45,015 INFO",
                Some(2 * MS),
            ),
            // A second that no program was given, one outside of the run, and no date.
            ("id=1795448864;", "id=1795448867;", None),
            ("id=1795448800;", "id=1795448865;", None),
            ("17\n", "18\n", None),
        ] {
            let (recorded, came) = (recorded.as_bytes(), came.as_bytes());
            let found = rules.apart(recorded, came, parting(recorded, came));
            assert_eq!(found, apart, "{}", came.escape_ascii());
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
    fn the_cancel_key_of_a_session_of_postgres_is_volatile_and_nothing_around_it() {
        let rules = VolatileRules::default();
        let told = |number: &str, key: &str, state: &str| {
            format!("S\0\0\0\x09a\0b\0K\0\0\0\x0c{number}{key}Z\0\0\0\x05{state}").into_bytes()
        };
        let recorded = told("\0\0\x0a\x0b", "abcd", "I");
        let key = Some("the cancel key of a session of PostgreSQL".to_owned());
        for other in ["abcx", "abxd", "axcd", "xbcd", "wxyz"] {
            let came = told("\0\0\x0a\x0b", other, "I");
            assert_eq!(name(&rules, &recorded, &came), key, "{other}");
        }
        for came in [
            told("\0\0\x0a\x0c", "abcd", "I"),
            told("\0\0\x0a\x0b", "abcd", "T"),
            told("\0\0\x0a\x0b", "abcde", "I"),
        ] {
            assert_eq!(
                name(&rules, &recorded, &came),
                None,
                "{}",
                came.escape_ascii()
            );
        }
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
        let text = b"K\0\0\0\x0cpid.key.Z\0\0\0\x05I";
        for length in 0..text.len() - 1 {
            for at in 0..=length {
                assert_eq!(rules.part(&text[..length], text, at), None);
            }
        }
    }
}
