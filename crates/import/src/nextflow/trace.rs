//! The table that `-with-trace` writes: a line for each task, with columns that the user chooses.

use crate::description::Span;
use backstory_eventlog::event::Time;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

const MS: i64 = 1_000_000;
/// The latest time, in ms since 1970.
const LATEST: i64 = 4_000_000_000_000;

/// The columns of a trace.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Columns(Vec<String>);

/// A row of a trace.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct TraceRow {
    /// The beginning of the task's directory: `8d/96c1fa`.
    pub(super) hash: Vec<u8>,
    pub(super) name: Vec<u8>,
    pub(super) status: Vec<u8>,
    pub(super) exit: Option<i32>,
    pub(super) span: Span,
    /// Its directory, if the user chose the column.
    pub(super) workdir: Option<Vec<u8>>,
}

impl Columns {
    /// The columns of a first line. `None` if it is no line of a trace.
    pub(super) fn of(line: &[u8]) -> Option<Columns> {
        let line = std::str::from_utf8(line).ok()?;
        let all: Vec<String> = line
            .split('\t')
            .map(|name| name.trim().to_owned())
            .collect();
        let has = |name: &str| all.iter().any(|column| column == name);
        (has("hash") && (has("name") || has("process"))).then_some(Columns(all))
    }

    /// The row of a line. `None` if the line lacks columns.
    pub(super) fn row(&self, line: &[u8]) -> Option<TraceRow> {
        let values: Vec<&[u8]> = line.split(|byte| *byte == b'\t').collect();
        if values.len() < self.0.len() {
            return None;
        }
        let value = |name: &str| {
            let at = self.0.iter().position(|column| column == name)?;
            let value = values[at].trim_ascii();
            (!value.is_empty() && value != b"-").then_some(value)
        };
        let text = |name: &str| std::str::from_utf8(value(name)?).ok();
        let submitted = text("submit").and_then(time);
        let passed = text("duration").and_then(duration);
        let ended = submitted
            .zip(passed)
            .map(|(submitted, passed)| submitted + passed);
        Some(TraceRow {
            hash: value("hash")?.to_vec(),
            name: value("name")
                .or(value("process"))
                .unwrap_or_default()
                .to_vec(),
            status: value("status").unwrap_or_default().to_vec(),
            exit: text("exit").and_then(|exit| exit.parse().ok()),
            span: Span {
                start: text("start").and_then(time).or(submitted),
                end: text("complete").and_then(time).or(ended),
            },
            workdir: value("workdir").map(<[u8]>::to_vec),
        })
    }
}

/// A time: `2026-11-23 09:33:51.927` in this machine's time zone, or ms since 1970 (`raw`).
fn time(text: &str) -> Option<Time> {
    if let Ok(ms) = text.parse::<i64>() {
        return (0..LATEST).contains(&ms).then(|| ms * MS);
    }
    let civil: DateTime = text.parse().ok()?;
    let zoned = civil.to_zoned(TimeZone::system()).ok()?;
    let ms = zoned.timestamp().as_millisecond();
    (0..LATEST).contains(&ms).then(|| ms * MS)
}

/// A duration in ns: `1h 2m 3.5s`, `548ms`, or ms (`raw`).
fn duration(text: &str) -> Option<i64> {
    let mut ms = 0.0;
    for part in text.split_whitespace() {
        let end = part.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, unit) = part.split_at(end.unwrap_or(part.len()));
        let factor = match unit {
            "" | "ms" => 1.0,
            "s" => 1e3,
            "m" => 6e4,
            "h" => 3.6e6,
            "d" => 8.64e7,
            _ => return None,
        };
        ms += number.parse::<f64>().ok()? * factor;
    }
    (0.0..LATEST as f64)
        .contains(&ms)
        .then_some((ms * MS as f64) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_its_times_in_every_form() {
        let columns = Columns::of(b"task_id\thash\tname\tstatus\texit\tsubmit\tduration").unwrap();
        let row = columns
            .row(b"1\t8d/96c1fa\tA (1)\tFAILED\t3\t1700000000000\t1m 2.5s")
            .unwrap();
        assert_eq!(row.span.start, Some(1_700_000_000_000 * MS));
        assert_eq!(row.span.end, Some(1_700_000_062_500 * MS));
        assert_eq!((row.exit, &row.name[..]), (Some(3), &b"A (1)"[..]));
        let row = columns
            .row(b"1\t8d/96c1fa\tA (1)\tCACHED\t-\t-\t-")
            .unwrap();
        assert_eq!((row.exit, row.span.start, row.span.end), (None, None, None));
        assert_eq!(columns.row(b"1\t8d/96c1fa"), None);
        assert_eq!(Columns::of(b"name\tvalue"), None);
        assert_eq!(duration("3 parsecs"), None);
        assert_eq!(time("99999999999999999"), None);
    }
}
