//! Days and times of the Gregorian calendar.

/// Days from 1970-01-01 to a date.
pub fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    // Years that begin in March have their leap day at the end.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The years whose times fit into 64 bits as ns since 1970, with room for sums.
const YEARS: std::ops::RangeInclusive<i64> = 1970..=2261;

/// Seconds from 1970 to a date (year, month, day) and a time of day (hour, minute, second). `None`:
/// the numbers of a text are no such time.
pub fn seconds_since_1970(date: [i64; 3], clock: [i64; 3]) -> Option<i64> {
    let ([year, month, day], [hour, minute, second]) = (date, clock);
    let is_date = YEARS.contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    // A leap second is the first second of the next minute.
    let is_clock =
        (0..24).contains(&hour) && (0..60).contains(&minute) && (0..=60).contains(&second);
    (is_date && is_clock).then_some(())?;
    Some(((days_since_1970(year, month, day) * 24 + hour) * 60 + minute) * 60 + second)
}

/// The date that is so many days after 1970-01-01: year, month, day.
pub fn date_of_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

/// A time in ns since 1970, to the second: `2026-11-25 11:46:03 UTC`.
pub fn utc_second(time: i64) -> String {
    let seconds = time.div_euclid(1_000_000_000);
    let (year, month, day) = date_of_days(seconds.div_euclid(86_400));
    let of_day = seconds.rem_euclid(86_400);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_as_a_person_reads_it() {
        assert_eq!(
            utc_second(1_795_607_163_999_999_999),
            "2026-11-25 11:46:03 UTC"
        );
        assert_eq!(utc_second(-1), "1969-12-31 23:59:59 UTC");
    }

    #[test]
    fn numbers_that_are_no_time_are_refused() {
        let noon = [12, 0, 1];
        assert_eq!(
            seconds_since_1970([2026, 11, 22], noon),
            Some(1_795_348_801)
        );
        assert_eq!(seconds_since_1970([1970, 1, 1], [0, 0, 0]), Some(0));
        for date in [[i64::MAX, 1, 1], [2026, 13, 1], [2026, 1, 0], [-1, 1, 1]] {
            assert_eq!(seconds_since_1970(date, noon), None, "{date:?}");
        }
        for clock in [[i64::MAX, 0, 0], [24, 0, 0], [0, 60, 0], [0, 0, -1]] {
            assert_eq!(seconds_since_1970([2026, 11, 22], clock), None, "{clock:?}");
        }
    }

    #[test]
    fn a_date_and_its_days_are_each_others_inverse() {
        assert_eq!(days_since_1970(2026, 11, 22), 20_779);
        for days in (-200_000..200_000).step_by(37) {
            let (year, month, day) = date_of_days(days);
            assert_eq!(days_since_1970(year, month, day), days);
        }
    }
}
