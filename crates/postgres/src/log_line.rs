//! One line of the server's log in JSON.

use serde::Deserialize;

/// One line of the server's log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct LogLine {
    pub(crate) timestamp: String,
    pub(crate) user: String,
    pub(crate) dbname: String,
    /// The server's process.
    pub(crate) pid: u32,
    pub(crate) remote_host: String,
    pub(crate) remote_port: u16,
    pub(crate) session_id: String,
    /// Counts the lines of a session, from 1.
    pub(crate) line_num: u64,
    /// The transaction, by the number that it has from its start. `3/0`: none.
    pub(crate) vxid: String,
    /// The transaction, by the number that it has from its first change. 0: none yet.
    pub(crate) txid: u32,
    pub(crate) error_severity: String,
    message: String,
    detail: String,
    /// The statement that failed.
    pub(crate) statement: String,
    pub(crate) application_name: String,
    pub(crate) backend_type: String,
}

/// The event that a line reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LogEvent {
    /// A client connected.
    Connected,
    /// A statement begins. With the values of its parameters, if it has any.
    Statement {
        text: String,
        parameters: Option<String>,
    },
    /// A statement has ended.
    Ended,
    /// A statement failed.
    Failed(String),
    /// The client is gone.
    Disconnected,
    Other,
}

impl LogLine {
    /// Reads a line. `None` if it is no line of the log.
    pub(crate) fn parse(text: &[u8]) -> Option<LogLine> {
        serde_json::from_slice(text).ok()
    }

    /// The time of the line in ns since 1970. `offset`: seconds of the log's zone east of UTC.
    pub(crate) fn time(&self, offset: i64) -> Option<i64> {
        let (date, rest) = self.timestamp.split_once(' ')?;
        let clock = rest.split(' ').next()?;
        let mut date = date.split('-').map(|part| part.parse::<i64>().ok());
        let (year, month, day) = (date.next()??, date.next()??, date.next()??);
        let (clock, millis) = clock.split_once('.').unwrap_or((clock, "0"));
        let mut clock = clock.split(':').map(|part| part.parse::<i64>().ok());
        let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
        let days = days(year, month, day);
        let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second - offset;
        let nanoseconds = millis.parse::<i64>().ok()?.checked_mul(1_000_000)?;
        seconds.checked_mul(1_000_000_000)?.checked_add(nanoseconds)
    }

    /// The event that the line reports.
    pub(crate) fn event(&self) -> LogEvent {
        let message = &*self.message;
        let is_failure = ["ERROR", "FATAL", "PANIC"].contains(&&*self.error_severity);
        if is_failure {
            return LogEvent::Failed(message.to_owned());
        }
        let statement = |text: &str| LogEvent::Statement {
            text: text.to_owned(),
            parameters: self
                .detail
                .split_once("arameters: ")
                .map(|(_, values)| values.to_owned()),
        };
        if let Some(text) = message.strip_prefix("statement: ") {
            return statement(text);
        }
        if let Some(rest) = message.strip_prefix("execute ")
            && let Some((_, text)) = rest.split_once(": ")
        {
            return statement(text);
        }
        if message.starts_with("connection received: ") {
            return LogEvent::Connected;
        }
        if message.starts_with("disconnection: ") {
            return LogEvent::Disconnected;
        }
        // A plan of `auto_explain`, and a step before the execution, do not end a statement.
        let duration = message
            .strip_prefix("duration: ")
            .and_then(|rest| rest.split_once(" ms"));
        match duration {
            Some((_, rest)) if rest.is_empty() || rest.starts_with("  execute") => LogEvent::Ended,
            _ => LogEvent::Other,
        }
    }

    /// True if the line is in a transaction.
    pub(crate) fn is_in_transaction(&self) -> bool {
        !self.vxid.is_empty() && !self.vxid.ends_with("/0")
    }
}

/// Days from 1970-01-01 to a date of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn line(message: &str) -> LogLine {
        LogLine {
            message: message.to_owned(),
            ..LogLine::default()
        }
    }

    #[test]
    fn a_time_is_read_with_the_offset_of_its_zone() {
        let text = br#"{"timestamp":"2026-11-22 12:00:01.250 UTC","pid":7}"#;
        let line = LogLine::parse(text).unwrap();
        assert_eq!(line.time(0), Some(1_795_348_801_250_000_000));
        assert_eq!(line.time(3600), Some(1_795_345_201_250_000_000));
        assert_eq!(line.pid, 7);
        assert_eq!(LogLine::default().time(0), None);
        let text = br#"{"timestamp":"1970-01-01 00:00:00.000 GMT"}"#;
        assert_eq!(LogLine::parse(text).unwrap().time(0), Some(0));
    }

    #[test]
    fn a_message_says_which_event_it_is() {
        let text = |line: &LogLine| match line.event() {
            LogEvent::Statement { text, parameters } => (text, parameters),
            other => panic!("{other:?}"),
        };
        let (simple, none) = text(&line("statement: SELECT ': '"));
        assert_eq!((&*simple, none), ("SELECT ': '", None));
        let mut execute = line("execute <unnamed>: SELECT $1");
        execute.detail = "parameters: $1 = '42'".to_owned();
        assert_eq!(
            text(&execute),
            ("SELECT $1".to_owned(), Some("$1 = '42'".to_owned()))
        );
        assert_eq!(line("duration: 0.5 ms").event(), LogEvent::Ended);
        let plan = line("duration: 0.5 ms  plan:\nQuery Text: SELECT 1");
        assert_eq!(plan.event(), LogEvent::Other);
        assert_eq!(
            line("disconnection: session time").event(),
            LogEvent::Disconnected
        );
    }
}
