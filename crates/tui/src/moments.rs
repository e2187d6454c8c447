//! Times as the page writes them.

use backstory_eventlog::event::Time;

const SECOND: i64 = 1_000_000_000;

/// The present time.
pub fn now() -> Time {
    backstory_sys::clock::machine()
}

/// `2026-11-20 08:31:02` in local time. Times up to 0 are unknown.
pub fn moment(time: Time) -> String {
    match jiff::Timestamp::from_nanosecond(time.into()) {
        Ok(stamp) if time > 0 => stamp
            .to_zoned(jiff::tz::TimeZone::system())
            .strftime("%Y-%m-%d %H:%M:%S")
            .to_string(),
        _ => "unknown".to_owned(),
    }
}

/// `just now`, `5 min ago`, `3 h ago`, `6 days ago`, or the date.
pub fn ago(time: Time, now: Time) -> String {
    let seconds = now.saturating_sub(time) as f64 / SECOND as f64;
    if time <= 0 {
        return "unknown".to_owned();
    }
    match seconds {
        ..0.0 => moment(time),
        ..45.0 => "just now".to_owned(),
        ..5_400.0 => format!("{:.0} min ago", (seconds / 60.0).round().max(1.0)),
        ..129_600.0 => format!("{:.0} h ago", (seconds / 3_600.0).round()),
        ..2_592_000.0 => format!("{:.0} days ago", (seconds / 86_400.0).round()),
        _ => moment(time).chars().take(10).collect(),
    }
}

/// `320 µs`, `42 ms`, `2.5 s`, `3 min 12 s`, `2 h 5 min`
pub fn duration(nanoseconds: i64) -> String {
    let seconds = nanoseconds.max(0) as f64 / SECOND as f64;
    match seconds {
        ..0.001 => format!("{:.0} µs", seconds * 1e6),
        ..0.999_5 => format!("{:.0} ms", seconds * 1e3),
        ..10.0 => format!("{seconds:.1} s"),
        ..60.0 => format!("{seconds:.0} s"),
        ..3_600.0 => format!("{} min {} s", seconds as u64 / 60, seconds as u64 % 60),
        _ => format!(
            "{} h {} min",
            seconds as u64 / 3_600,
            seconds as u64 % 3_600 / 60
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_as_its_distance_until_a_month_has_passed() {
        let now = 1_700_000_000 * SECOND;
        for (seconds, text) in [
            (3, "just now"),
            (60, "1 min ago"),
            (7_200, "2 h ago"),
            (259_200, "3 days ago"),
            (40 * 86_400, "2023-10-05"),
        ] {
            assert_eq!(ago(now - seconds * SECOND, now), text);
        }
        assert_eq!(ago(0, now), "unknown");
    }

    #[test]
    fn a_duration_uses_the_unit_that_people_would() {
        for (ns, text) in [
            (320_000, "320 µs"),
            (42_000_000, "42 ms"),
            (2_500_000_000, "2.5 s"),
            (192_000_000_000, "3 min 12 s"),
            (7_500_000_000_000, "2 h 5 min"),
        ] {
            assert_eq!(duration(ns), text);
        }
    }
}
