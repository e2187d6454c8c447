//! Moments, durations and sizes as text for people.

use backstory_eventlog::event::Time;

/// `2026-11-20 08:31:02` in local time. Times up to 0 are unknown.
pub fn moment(time: Time) -> String {
    if time <= 0 {
        return "at an unknown time".to_owned();
    }
    match jiff::Timestamp::from_nanosecond(time.into()) {
        Ok(stamp) => stamp
            .to_zoned(jiff::tz::TimeZone::system())
            .strftime("%Y-%m-%d %H:%M:%S")
            .to_string(),
        Err(_) => "at an unknown time".to_owned(),
    }
}

/// The same with nanoseconds, for programs that put moments in order.
pub fn exact_moment(time: Time) -> String {
    match time {
        1.. => format!("{}.{:09}", moment(time), time % 1_000_000_000),
        _ => moment(time),
    }
}

/// `2026-11-20` in local time.
pub fn date(time: Time) -> String {
    let mut text = moment(time);
    text.truncate(text.find(' ').unwrap_or(text.len()));
    text
}

/// How long before `now`: `12 s ago`, `3 h ago`, `6 days ago`; from a week on the date,
/// `2026-11-20`.
pub fn ago(time: Time, now: Time) -> String {
    let seconds = now.saturating_sub(time) / 1_000_000_000;
    match seconds {
        _ if time <= 0 => "unknown".to_owned(),
        // The clock was set back.
        i64::MIN..0 => date(time),
        0..60 => format!("{seconds} s ago"),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86_400 => format!("{} h ago", seconds / 3600),
        86_400..172_800 => "1 day ago".to_owned(),
        172_800..604_800 => format!("{} days ago", seconds / 86_400),
        _ => date(time),
    }
}

/// The present time in ns since 1970.
pub fn now() -> Time {
    backstory_files::now()
}

/// `0.42 s`, `3 min 12 s`, `2 h 5 min`.
pub fn duration(ns: i64) -> String {
    let ns = ns.max(0);
    let seconds = ns / 1_000_000_000;
    match seconds {
        0..60 => format!("{:.2} s", ns as f64 / 1e9),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// `512 B`, `3.4 kB`, `1.2 MB`
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_use_the_unit_people_would() {
        assert_eq!(duration(-5), "0.00 s");
        assert_eq!(duration(420_000_000), "0.42 s");
        assert_eq!(duration(192_000_000_000), "3 min 12 s");
        assert_eq!(duration(7_500_000_000_000), "2 h 5 min");
    }

    #[test]
    fn a_recent_moment_is_a_distance_and_an_old_one_a_date() {
        let now = 1_700_000_000_000_000_000;
        let before = |seconds: i64| ago(now - seconds * 1_000_000_000, now);
        assert_eq!(
            (before(0), before(3599)),
            ("0 s ago".into(), "59 min ago".into())
        );
        assert_eq!(
            (before(7200), before(90_000)),
            ("2 h ago".into(), "1 day ago".into())
        );
        assert_eq!(before(600_000), "6 days ago");
        assert!(before(2_000_000).starts_with("2023-10-") && before(-60).starts_with("2023-11-"));
    }

    #[test]
    fn a_time_that_no_calendar_has_is_unknown() {
        assert_eq!(moment(i64::MIN), "at an unknown time");
        assert_eq!(size(1_234_567), "1.2 MB");
    }
}
