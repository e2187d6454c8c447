//! Moments as users write them: `2 days ago`, `yesterday 14:00`, `2026-11-20 08:31`.
//!
//! In: a text. Out: ns since 1970. The words are those of git's dates. Words may be separated by
//! spaces, points or underscores (`2.days.ago`), so that a date needs no quotes in a shell.
//!
//! Invariant: a text with an unknown word is refused; no word is skipped. Absent: moments in the
//! future, apart from those with a full date.

use backstory_eventlog::event::Time;
use jiff::civil::{self, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Unit, Zoned};

/// The moment that a user wrote, in ns since 1970. Usable as a value parser of `clap`.
///
/// # Errors
///
/// A sentence that says which forms are understood.
pub fn parse(text: &str) -> Result<Time, String> {
    let now = Zoned::now();
    let found = parse_from(text, &now);
    found.ok_or_else(|| {
        format!(
            "'{text}' is not a date: write '2 days ago', 'yesterday 14:00', '2026-11-20' or \
             '2026-11-20 08:31'"
        )
    })
}

/// The same, with the present moment given.
fn parse_from(text: &str, now: &Zoned) -> Option<Time> {
    let text = text.trim();
    let moment = written_out(text, now.time_zone()).or_else(|| in_words(text, now))?;
    Time::try_from(moment.as_nanosecond()).ok()
}

/// A full date, as programs print it: ISO 8601, RFC 2822, git's own form, seconds since 1970.
fn written_out(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    if let Some(seconds) = text.strip_prefix('@') {
        let (seconds, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
        let nanoseconds = format!("{fraction:0<9}").parse().ok()?;
        return Timestamp::new(seconds.parse().ok()?, nanoseconds).ok();
    }
    if text.len() >= 9 && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Timestamp::from_second(text.parse().ok()?).ok();
    }
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Some(moment);
    }
    // As `git log` and `date -R` print it.
    for form in [
        "%a %b %d %H:%M:%S %Y %z",
        "%a, %d %b %Y %H:%M:%S %z",
        "%Y-%m-%d %H:%M:%S %z",
    ] {
        if let Ok(moment) = Zoned::strptime(form, text) {
            return Some(moment.timestamp());
        }
    }
    let local: civil::DateTime = match text.parse::<civil::DateTime>() {
        Ok(moment) if text.len() > 8 => moment,
        _ => return None,
    };
    Some(local.to_zoned(zone.clone()).ok()?.timestamp())
}

/// The parts of a moment in words, as far as they were read.
struct WordedMoment {
    /// Moves with each `3 days`.
    moment: Zoned,
    /// A time of day that was given.
    time: Option<civil::Time>,
    /// A day was given that begins at midnight unless a time of day is given.
    whole_day: bool,
}

fn in_words(text: &str, now: &Zoned) -> Option<Timestamp> {
    let lower = text.to_ascii_lowercase();
    let words: Vec<&str> = lower
        .split(|c: char| c.is_whitespace() || matches!(c, '.' | '_' | ','))
        .filter(|word| !word.is_empty())
        .collect();
    let mut found = WordedMoment {
        moment: now.clone(),
        time: None,
        whole_day: false,
    };
    let mut rest = words.as_slice();
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let taken = found.take(rest)?;
        rest = &rest[taken..];
    }
    let time = match (found.time, found.whole_day) {
        (Some(time), _) => time,
        (None, true) => civil::Time::midnight(),
        (None, false) => return Some(found.moment.timestamp()),
    };
    let moment = found.moment.date().to_datetime(time);
    Some(moment.to_zoned(now.time_zone().clone()).ok()?.timestamp())
}

impl WordedMoment {
    /// Reads the words at the begin of `words`, and returns their number.
    fn take(&mut self, words: &[&str]) -> Option<usize> {
        let (word, next) = (words[0], words.get(1).copied().unwrap_or_default());
        match word {
            "now" | "ago" | "at" | "on" => return Some(1),
            "today" | "midnight" => return self.at_midnight(word == "today"),
            "noon" => return self.at(civil::Time::constant(12, 0, 0, 0)),
            "yesterday" => return self.back(1, "day").map(|()| 1),
            "last" | "past" => {
                if let Some(day) = weekday(next) {
                    return self.on_weekday(day).map(|()| 2);
                }
                return self.back(1, next).map(|()| 2);
            }
            _ => {}
        }
        if let Some(time) = time_of_day(word) {
            return self.at(time);
        }
        if let Some(day) = weekday(word) {
            return self.on_weekday(day).map(|()| 1);
        }
        if let Ok(date) = word.parse::<civil::Date>() {
            return self.on(date).map(|()| 1);
        }
        if let Some(taken) = self.named_month(words) {
            return Some(taken);
        }
        if let Some(count) = number(word) {
            return self.back(count, next).map(|()| 2);
        }
        // `2d`, `90min`
        let digits = word.find(|c: char| !c.is_ascii_digit())?;
        let count = word[..digits].parse().ok()?;
        self.back(count, &word[digits..]).map(|()| 1)
    }

    fn at(&mut self, time: civil::Time) -> Option<usize> {
        self.time = Some(time);
        Some(1)
    }

    fn at_midnight(&mut self, whole_day: bool) -> Option<usize> {
        match whole_day {
            true => self.whole_day = true,
            false => self.time = Some(civil::Time::midnight()),
        }
        Some(1)
    }

    fn on(&mut self, date: civil::Date) -> Option<()> {
        let zone = self.moment.time_zone().clone();
        self.moment = date.to_datetime(self.moment.time()).to_zoned(zone).ok()?;
        self.whole_day = true;
        Some(())
    }

    /// The last such day before today.
    fn on_weekday(&mut self, day: Weekday) -> Option<()> {
        let date = self.moment.date().nth_weekday(-1, day).ok()?;
        self.on(date)
    }

    /// `20 nov 2026`, `nov 20`, `november 20 2026`
    fn named_month(&mut self, words: &[&str]) -> Option<usize> {
        let day = |word: Option<&&str>| -> Option<i8> {
            let digits = word?.trim_end_matches(|c: char| c.is_ascii_alphabetic());
            digits.parse().ok().filter(|day| (1..=31).contains(day))
        };
        let (month, day) = match month(words[0]) {
            Some(month) => (month, day(words.get(1))?),
            None => (month(words.get(1)?)?, day(words.first())?),
        };
        let year = words.get(2).filter(|word| word.len() == 4);
        let year: Option<i16> = year.and_then(|word| word.parse().ok());
        let today = self.moment.date();
        let in_year = |year| civil::Date::new(year, month, day).ok();
        let date = match year {
            Some(year) => in_year(year)?,
            // Without a year, the date is the last such day.
            None => in_year(today.year())
                .filter(|date| *date <= today)
                .or_else(|| in_year(today.year() - 1))?,
        };
        self.on(date)?;
        Some(2 + usize::from(year.is_some()))
    }

    /// Moves back by so many units.
    fn back(&mut self, count: i64, unit: &str) -> Option<()> {
        let unit = match unit.trim_end_matches('s') {
            "" if unit == "s" => Unit::Second,
            "sec" | "second" => Unit::Second,
            "m" | "min" | "minute" => Unit::Minute,
            "h" | "hour" => Unit::Hour,
            "d" | "day" => Unit::Day,
            "w" | "week" => Unit::Week,
            "month" => Unit::Month,
            "y" | "year" => Unit::Year,
            _ => return None,
        };
        let span = match unit {
            Unit::Second => 0.seconds().try_seconds(count),
            Unit::Minute => 0.seconds().try_minutes(count),
            Unit::Hour => 0.seconds().try_hours(count),
            Unit::Day => 0.seconds().try_days(count),
            Unit::Week => 0.seconds().try_weeks(count),
            Unit::Month => 0.seconds().try_months(count),
            _ => 0.seconds().try_years(count),
        };
        self.moment = self.moment.checked_sub(span.ok()?).ok()?;
        Some(())
    }
}

fn number(word: &str) -> Option<i64> {
    const WORDS: [&str; 11] = [
        "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    ];
    match word {
        "a" | "an" => Some(1),
        word => (0..)
            .zip(WORDS)
            .find_map(|(value, name)| (name == word).then_some(value))
            .or_else(|| word.parse().ok().filter(|value| *value >= 0)),
    }
}

/// `14:30`, `14:30:05`, `3pm`, `11:15am`
fn time_of_day(word: &str) -> Option<civil::Time> {
    let (digits, noon) = match (word.strip_suffix("am"), word.strip_suffix("pm")) {
        (Some(digits), _) => (digits, Some(false)),
        (_, Some(digits)) => (digits, Some(true)),
        _ => (word, None),
    };
    let parts: Option<Vec<i8>> = digits.split(':').map(|part| part.parse().ok()).collect();
    let (hour, minute, second) = match parts?.as_slice() {
        [hour] if noon.is_some() => (*hour, 0, 0),
        [hour, minute] => (*hour, *minute, 0),
        [hour, minute, second] => (*hour, *minute, *second),
        _ => return None,
    };
    let hour = match noon {
        Some(afternoon) if (1..=12).contains(&hour) => hour % 12 + 12 * i8::from(afternoon),
        Some(_) => return None,
        None => hour,
    };
    civil::Time::new(hour, minute, second, 0).ok()
}

fn weekday(word: &str) -> Option<Weekday> {
    let names = [
        ("monday", Weekday::Monday),
        ("tuesday", Weekday::Tuesday),
        ("wednesday", Weekday::Wednesday),
        ("thursday", Weekday::Thursday),
        ("friday", Weekday::Friday),
        ("saturday", Weekday::Saturday),
        ("sunday", Weekday::Sunday),
    ];
    let mut all = names.into_iter();
    all.find_map(|(name, day)| (word.len() >= 3 && name.starts_with(word)).then_some(day))
}

fn month(word: &str) -> Option<i8> {
    let names = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let mut all = (1..).zip(names);
    all.find_map(|(number, name)| (word.len() >= 3 && name.starts_with(word)).then_some(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Friday, 20 November 2026, 15:30 UTC.
    fn read(text: &str) -> Option<String> {
        let now = civil::date(2026, 11, 20).at(15, 30, 0, 0);
        let now = now.to_zoned(TimeZone::UTC).unwrap();
        let moment = Timestamp::from_nanosecond(parse_from(text, &now)?.into()).unwrap();
        Some(moment.strftime("%Y-%m-%d %H:%M:%S").to_string())
    }

    #[test]
    fn moments_are_read_as_git_reads_them() {
        let cases = [
            ("now", "2026-11-20 15:30:00"),
            ("today", "2026-11-20 00:00:00"),
            ("yesterday", "2026-11-19 15:30:00"),
            ("yesterday 14:00", "2026-11-19 14:00:00"),
            ("noon yesterday", "2026-11-19 12:00:00"),
            ("2 days ago", "2026-11-18 15:30:00"),
            ("2.days.ago", "2026-11-18 15:30:00"),
            ("an hour ago", "2026-11-20 14:30:00"),
            ("1 week 2 days ago", "2026-11-11 15:30:00"),
            ("3 months ago", "2026-08-20 15:30:00"),
            ("90min", "2026-11-20 14:00:00"),
            ("2d", "2026-11-18 15:30:00"),
            ("last month", "2026-10-20 15:30:00"),
            ("monday", "2026-11-16 00:00:00"),
            ("friday", "2026-11-13 00:00:00"),
            ("last tuesday 3pm", "2026-11-17 15:00:00"),
            ("08:05", "2026-11-20 08:05:00"),
            ("11:15am", "2026-11-20 11:15:00"),
            ("20 nov", "2026-11-20 00:00:00"),
            ("dec 24", "2025-12-24 00:00:00"),
            ("March 3rd 2026 10:00", "2026-03-03 10:00:00"),
        ];
        for (text, moment) in cases {
            assert_eq!(read(text).as_deref(), Some(moment), "{text}");
        }
    }

    #[test]
    fn moments_are_read_as_programs_print_them() {
        let cases = [
            ("2026-11-18", "2026-11-18 00:00:00"),
            ("2026-11-18 08:31", "2026-11-18 08:31:00"),
            ("2026-11-18 08:31:02", "2026-11-18 08:31:02"),
            ("2026-11-18T08:31:02Z", "2026-11-18 08:31:02"),
            ("2026-11-18T08:31:02+02:00", "2026-11-18 06:31:02"),
            ("2026-11-18 08:31:02 +0200", "2026-11-18 06:31:02"),
            ("Wed Nov 18 08:31:02 2026 +0100", "2026-11-18 07:31:02"),
            ("Wed, 18 Nov 2026 08:31:02 +0100", "2026-11-18 07:31:02"),
            ("@1795000000", "2026-11-18 11:06:40"),
            ("@1795000000.25", "2026-11-18 11:06:40"),
            ("1795000000", "2026-11-18 11:06:40"),
        ];
        for (text, moment) in cases {
            assert_eq!(read(text).as_deref(), Some(moment), "{text}");
        }
    }

    #[test]
    fn a_text_that_is_no_moment_is_refused() {
        for text in [
            "",
            "soon",
            "2 parrots ago",
            "yesterdays",
            "25:00",
            "2026-13-01",
            "7",
            "feb 30",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        assert!(parse("soon").unwrap_err().contains("'2 days ago'"));
    }
}
