//! Dates in the bytes of an output, as programs usually write them.
//!
//! In: bytes. Out: the date at their beginning. Invariant: a date is a full one, with its second,
//! so two dates have a distance. Its zone is not looked at: both sides of a comparison have the
//! same one.

const SECOND: i64 = 1_000_000_000;
const MONTHS: &[u8] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
/// Most letters of the name of a zone, as `date` prints one.
const LONGEST_ZONE: usize = 5;

/// A date at the beginning of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrittenDate {
    /// Seconds since 1970, in the zone of the text.
    pub seconds: i64,
    /// Ns behind that second. 0 without a fraction.
    pub fraction: i64,
    /// Its length in bytes, the fraction included.
    pub length: usize,
}

impl WrittenDate {
    /// Ns since 1970.
    pub fn ns(self) -> i64 {
        self.seconds
            .saturating_mul(SECOND)
            .saturating_add(self.fraction)
    }

    /// A date without a fraction.
    fn of(seconds: i64, length: usize) -> WrittenDate {
        WrittenDate {
            seconds,
            fraction: 0,
            length,
        }
    }

    /// The date with the fraction that may follow it, behind this mark.
    fn with_fraction(self, text: &[u8], mark: u8) -> WrittenDate {
        let behind = text.get(self.length..).unwrap_or_default();
        let Some((first, digits)) = behind.split_first() else {
            return self;
        };
        let count = digits.iter().take_while(|byte| byte.is_ascii_digit());
        match (*first == mark, count.count()) {
            (true, count @ 1..=9) => WrittenDate {
                fraction: nanoseconds(&digits[..count]),
                length: self.length + 1 + count,
                ..self
            },
            _ => self,
        }
    }
}

/// The date at the beginning of a text.
pub fn date_at(text: &[u8]) -> Option<WrittenDate> {
    http_date(text)
        .or_else(|| asctime(text))
        .or_else(|| log_date(text))
        .or_else(|| iso_date(text).map(|date| date.with_fraction(text, b'.')))
        .or_else(|| seconds_since_1970(text))
}

/// The same, and the fraction may stand behind a comma, as in the logs of Python. In a table, the
/// next column follows a comma, so such a fraction is a guess.
pub fn loose_date_at(text: &[u8]) -> Option<WrittenDate> {
    let date = date_at(text)?;
    Some(match date.fraction {
        0 => date.with_fraction(text, b','),
        _ => date,
    })
}

/// At most nine digits as a fraction of a second.
fn nanoseconds(digits: &[u8]) -> i64 {
    let padded = digits.iter().chain(std::iter::repeat(&b'0')).take(9);
    padded.fold(0, |ns, digit| ns * 10 + i64::from(digit - b'0'))
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

/// The number of a month, by its first three letters.
fn month(text: &[u8], from: usize) -> Option<i64> {
    let name = text.get(from..from + 3)?;
    Some(MONTHS.chunks(3).position(|month| month == name)? as i64 + 1)
}

/// `Mon, 02 Jan 2006 15:04:05`, as in HTTP and mail.
fn http_date(text: &[u8]) -> Option<WrittenDate> {
    const LENGTH: usize = 25;
    (text.get(3..5)? == b", ").then_some(())?;
    let day = days(number(text, 12, 4)?, month(text, 8)?, number(text, 5, 2)?);
    Some(WrittenDate::of(day * 86_400 + clock(text, 17)?, LENGTH))
}

/// `Mon Jan  2 15:04:05 2006` (`asctime`), or with a zone before the year, as of `date`.
fn asctime(text: &[u8]) -> Option<WrittenDate> {
    const BEHIND_CLOCK: usize = 19;
    let spaces = [3, 7, 10, BEHIND_CLOCK].map(|at| text.get(at).copied());
    (spaces == [Some(b' '); 4]).then_some(())?;
    let day = match text.get(8)? {
        b' ' => number(text, 9, 1)?,
        _ => number(text, 8, 2)?,
    };
    let rest = text.get(BEHIND_CLOCK + 1..)?;
    let letters = rest.iter().take_while(|byte| byte.is_ascii_uppercase());
    let year_at = BEHIND_CLOCK
        + 1
        + match letters.count() {
            0 => 0,
            zone if zone <= LONGEST_ZONE && rest.get(zone) == Some(&b' ') => zone + 1,
            _ => return None,
        };
    let day = days(number(text, year_at, 4)?, month(text, 4)?, day);
    Some(WrittenDate::of(
        day * 86_400 + clock(text, 11)?,
        year_at + 4,
    ))
}

/// `02/Jan/2006:15:04:05`, as in the logs of web servers.
fn log_date(text: &[u8]) -> Option<WrittenDate> {
    const LENGTH: usize = 20;
    let marks = [2, 6, 11].map(|at| text.get(at).copied());
    (marks == [Some(b'/'), Some(b'/'), Some(b':')]).then_some(())?;
    let day = days(number(text, 7, 4)?, month(text, 3)?, number(text, 0, 2)?);
    Some(WrittenDate::of(day * 86_400 + clock(text, 12)?, LENGTH))
}

/// `2006-01-02T15:04:05`, or with a space. Slashes stand in logs of Go and of nginx.
fn iso_date(text: &[u8]) -> Option<WrittenDate> {
    const LENGTH: usize = 19;
    let marks = [4, 7].map(|at| text.get(at).copied());
    let between = matches!(text.get(10), Some(b'T' | b' '));
    let is_marked = marks == [Some(b'-'); 2] || marks == [Some(b'/'); 2];
    (is_marked && between).then_some(())?;
    let day = days(
        number(text, 0, 4)?,
        number(text, 5, 2)?,
        number(text, 8, 2)?,
    );
    Some(WrittenDate::of(day * 86_400 + clock(text, 11)?, LENGTH))
}

/// Ten digits are seconds, and a fraction may follow; with 3, 6 or 9 more they are ms, µs or ns.
fn seconds_since_1970(text: &[u8]) -> Option<WrittenDate> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let date = WrittenDate::of(number(text, 0, 10)?, digits);
    match digits {
        10 => Some(date.with_fraction(text, b'.')),
        13 | 16 | 19 => Some(WrittenDate {
            fraction: nanoseconds(text.get(10..digits)?),
            ..date
        }),
        _ => None,
    }
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
    use super::{date_at, loose_date_at};

    /// 23 November 2026, 15:47:44.
    const NOVEMBER: i64 = 1_795_448_864;

    #[test]
    fn a_second_is_read_in_each_usual_form() {
        for (text, length) in [
            ("Mon, 23 Nov 2026 15:47:44 GMT", 25),
            ("Mon Nov 23 15:47:44 2026\n", 24),
            ("Mon Nov 23 15:47:44 UTC 2026\n", 28),
            ("23/Nov/2026:15:47:44 +0000]", 20),
            ("2026-11-23T15:47:44Z", 19),
            ("2026-11-23 15:47:44", 19),
            ("2026/11/23 15:47:44 [notice]", 19),
            ("1795448864\n", 10),
        ] {
            let date = date_at(text.as_bytes()).unwrap();
            assert_eq!((date.seconds, date.length), (NOVEMBER, length), "{text}");
            assert_eq!(date.fraction, 0, "{text}");
        }
        let day = date_at(b"Sun Nov  1 00:00:00 2026").unwrap();
        assert_eq!(day.seconds, 1_793_491_200);
    }

    #[test]
    fn a_fraction_belongs_to_its_date() {
        for (text, fraction, length) in [
            ("2026-11-23T15:47:44.5Z", 500_000_000, 21),
            ("2026-11-23 15:47:44.000123", 123_000, 26),
            ("1795448864.25", 250_000_000, 13),
            ("1795448864123", 123_000_000, 13),
            ("1795448864123456", 123_456_000, 16),
            ("1795448864123456789", 123_456_789, 19),
            // The end of a sentence.
            ("1795448864. Then", 0, 10),
            // The next column of a table.
            ("2026-11-23 15:47:44,17", 0, 19),
        ] {
            let date = date_at(text.as_bytes()).unwrap();
            let found = (date.seconds, date.fraction, date.length);
            assert_eq!(found, (NOVEMBER, fraction, length), "{text}");
        }
        let loose = loose_date_at(b"2026-11-23 15:47:44,170 INFO").unwrap();
        assert_eq!((loose.fraction, loose.length), (170_000_000, 23));
        assert_eq!(loose.ns(), NOVEMBER * 1_000_000_000 + 170_000_000);
    }

    #[test]
    fn other_text_is_no_date() {
        for text in [
            "",
            "17",
            "17954488641",
            "Mon, 23 Foo 2026 15:47:44 GMT",
            "Mon Nov 23 15:47:44 next year",
            "Mon Nov 23 15:47:44 ABCDEF 2026",
            "2026-11/23 15:47:44",
            "23/11/2026:15:47:44",
            "2026-11-23 15-47-44",
        ] {
            assert_eq!(date_at(text.as_bytes()), None, "{text}");
        }
    }
}
