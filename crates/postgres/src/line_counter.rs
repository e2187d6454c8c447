//! Records of the server's log become lines, and missing ones are counted.
//!
//! In: records, in order. Out: lines. The server counts the lines of each session, so the numbers
//! show what was removed before it was read.

use std::collections::HashMap;

use crate::log_line::{LogFormat, LogLine};

/// Parses and counts lines.
#[derive(Debug, Default)]
pub(crate) struct LineCounter {
    format: LogFormat,
    numbers: HashMap<String, u64>,
    /// The time of the newest line.
    newest: String,
    /// The number of lines that are missing.
    pub(crate) missing: u64,
    /// The times of the lines before the first gap and after the last one, as the log has them.
    pub(crate) gap: Option<(String, String)>,
    /// Lines that have another form.
    pub(crate) unreadable: u64,
}

impl LineCounter {
    /// A counter of lines of this form.
    pub(crate) fn of(format: LogFormat) -> LineCounter {
        LineCounter {
            format,
            ..LineCounter::default()
        }
    }

    /// The line of a record. `None` if it has another form.
    pub(crate) fn line(&mut self, record: &[u8]) -> Option<LogLine> {
        let line = LogLine::parse(record, self.format);
        match &line {
            Some(line) => self.count(line),
            None => self.unreadable += 1,
        }
        line
    }

    /// Notes the line's number. The session may have begun before the watch.
    fn count(&mut self, line: &LogLine) {
        if line.session_id.is_empty() {
            return;
        }
        let last = match self.numbers.get_mut(&line.session_id) {
            Some(number) => Some(std::mem::replace(number, line.line_num)),
            None => self.numbers.insert(line.session_id.clone(), line.line_num),
        };
        let missing = last.map_or(0, |last| {
            line.line_num.saturating_sub(last.saturating_add(1))
        });
        if missing > 0 {
            self.missing = self.missing.saturating_add(missing);
            let begin = self.gap.take().map(|(begin, _)| begin);
            let begin = begin.unwrap_or_else(|| self.newest.clone());
            self.gap = Some((begin, line.timestamp.clone()));
        }
        self.newest.clone_from(&line.timestamp);
    }

    /// Forgets the sessions that are not kept, such as those of other databases that have ended.
    pub(crate) fn keep(&mut self, is_kept: impl Fn(&str) -> bool) {
        self.numbers.retain(|session, _| is_kept(session));
    }

    /// Forgets a session that has ended.
    pub(crate) fn forget(&mut self, session: &str) {
        self.numbers.remove(session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(number: u64) -> String {
        format!(
            "{{\"timestamp\":\"second {number}\",\"session_id\":\"s\",\"line_num\":{number},\"message\":\"m\"}}"
        )
    }

    #[test]
    fn lines_that_were_removed_unread_are_counted_with_the_times_around_them() {
        let mut counter = LineCounter::of(LogFormat::Json);
        for number in [7, 8, 11, 12] {
            let line = counter.line(record(number).as_bytes()).unwrap();
            assert_eq!(line.line_num, number);
        }
        assert_eq!(counter.missing, 2);
        let gap = ("second 8".to_owned(), "second 11".to_owned());
        assert_eq!(counter.gap, Some(gap));
        counter.line(record(14).as_bytes());
        assert_eq!(counter.missing, 3);
        let gap = ("second 8".to_owned(), "second 14".to_owned());
        assert_eq!(counter.gap, Some(gap));
    }

    #[test]
    fn impossible_numbers_of_lines_are_a_gap() {
        let mut counter = LineCounter::of(LogFormat::Json);
        for number in [1, u64::MAX, 1, u64::MAX] {
            counter.line(record(number).as_bytes());
        }
        assert_eq!(counter.missing, u64::MAX);
    }

    #[test]
    fn a_line_of_another_form_is_counted() {
        let mut counter = LineCounter::of(LogFormat::Json);
        assert!(counter.line(b"{\"broken").is_none());
        assert_eq!(counter.unreadable, 1);
    }
}
