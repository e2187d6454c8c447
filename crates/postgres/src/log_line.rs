//! One line of the server's log, in JSON or as comma-separated values.

use std::borrow::Cow;

use backstory_eventlog::calendar::seconds_since_1970;
use serde::Deserialize;

use crate::csv_records::{fields, written_fields};

/// The log's times are cut to milliseconds, so an event came up to this much later, in ns.
pub(crate) const ROUNDING: i64 = 999_999;

/// The form of the log's lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// `jsonlog`
    #[default]
    Json,
    /// `csvlog`
    Csv,
}

impl LogFormat {
    /// The ending of the log's files.
    pub(crate) fn ending(self) -> &'static str {
        match self {
            LogFormat::Json => "json",
            LogFormat::Csv => "csv",
        }
    }
}

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
    pub(crate) message: String,
    detail: String,
    /// The statement that failed.
    pub(crate) statement: String,
    pub(crate) application_name: String,
    pub(crate) backend_type: String,
}

/// The part of a line that tells which session it is of, and whether a statement begins.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct LineHead<'a> {
    #[serde(borrow, default, rename = "dbname")]
    pub(crate) database: Cow<'a, str>,
    /// The client's host, `[local]`, or nothing if the line is not of a client.
    #[serde(borrow, default, rename = "remote_host")]
    pub(crate) host: Cow<'a, str>,
    #[serde(borrow, default, rename = "session_id")]
    pub(crate) session: Cow<'a, str>,
    #[serde(borrow, default)]
    message: Cow<'a, str>,
}

impl<'a> LineHead<'a> {
    /// Reads a record. `None` if it is no line of the log.
    pub(crate) fn parse(record: &'a [u8], format: LogFormat) -> Option<LineHead<'a>> {
        if format == LogFormat::Json {
            return is_object(record).then(|| serde_json::from_slice(record).ok())?;
        }
        let mut fields = written_fields(record).skip(2);
        let (database, _, host, session) = (
            fields.next()?,
            fields.next()?,
            fields.next()?,
            fields.next()?,
        );
        Some(LineHead {
            database: unquoted(database),
            host: unquoted(host),
            session: unquoted(session),
            message: unquoted(fields.nth(7)?),
        })
    }

    /// True if a statement begins.
    pub(crate) fn is_statement(&self) -> bool {
        statement_of(&self.message).is_some()
    }
}

/// True for a line in JSON. The parser takes a list for an object, too.
fn is_object(record: &[u8]) -> bool {
    record.starts_with(b"{")
}

/// The text of the statement that begins with a message.
fn statement_of(message: &str) -> Option<&str> {
    let execute = || Some(message.strip_prefix("execute ")?.split_once(": ")?.1);
    message.strip_prefix("statement: ").or_else(execute)
}

/// The text of a field that was written with or without quotes.
fn unquoted(field: &[u8]) -> Cow<'_, str> {
    let inner = field
        .strip_prefix(b"\"")
        .and_then(|rest| rest.strip_suffix(b"\""));
    let text = String::from_utf8_lossy(inner.unwrap_or(field));
    match inner.is_some() && text.contains('"') {
        true => text.replace("\"\"", "\"").into(),
        false => text,
    }
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
    pub(crate) fn parse(text: &[u8], format: LogFormat) -> Option<LogLine> {
        match format {
            LogFormat::Json => is_object(text).then(|| serde_json::from_slice(text).ok())?,
            LogFormat::Csv => LogLine::of_fields(&fields(text)?),
        }
    }

    /// Reads the fields in the order of `csvlog`, of which a later server may add some at the end.
    /// `https://www.postgresql.org/docs/15/runtime-config-logging.html`
    fn of_fields(fields: &[String]) -> Option<LogLine> {
        let text = |at: usize| fields.get(at).cloned().unwrap_or_default();
        let (remote_host, remote_port) = match text(4).rsplit_once(':') {
            Some((host, port)) => (host.to_owned(), port.parse().ok()?),
            None => (text(4), 0),
        };
        Some(LogLine {
            timestamp: text(0),
            user: text(1),
            dbname: text(2),
            pid: text(3).parse().ok()?,
            remote_host,
            remote_port,
            session_id: text(5),
            line_num: text(6).parse().ok()?,
            vxid: text(9),
            txid: text(10).parse().ok()?,
            error_severity: text(11),
            message: text(13),
            detail: text(14),
            statement: text(19),
            application_name: text(22),
            backend_type: fields.get(23)?.clone(),
        })
    }

    /// The time of the line in ns since 1970. `offset`: seconds of the log's zone east of UTC.
    pub(crate) fn time(&self, offset: i64) -> Option<i64> {
        let (date, rest) = self.timestamp.split_once(' ')?;
        let clock = rest.split(' ').next()?;
        let mut date = date.split('-').map(|part| part.parse::<i64>().ok());
        let date = [date.next()??, date.next()??, date.next()??];
        let (clock, millis) = clock.split_once('.').unwrap_or((clock, "0"));
        let mut clock = clock.split(':').map(|part| part.parse::<i64>().ok());
        let clock = [clock.next()??, clock.next()??, clock.next()??];
        let seconds = seconds_since_1970(date, clock)?.checked_sub(offset)?;
        let millis = millis.parse::<i64>().ok()?;
        (0..1000).contains(&millis).then_some(())?;
        seconds
            .checked_mul(1_000_000_000)?
            .checked_add(millis * 1_000_000)
    }

    /// The event that the line reports.
    pub(crate) fn event(&self) -> LogEvent {
        let message = &*self.message;
        let is_failure = ["ERROR", "FATAL", "PANIC"].contains(&&*self.error_severity);
        if is_failure {
            return LogEvent::Failed(message.to_owned());
        }
        if let Some(text) = statement_of(message) {
            let parameters = self.detail.split_once("arameters: ");
            return LogEvent::Statement {
                text: text.to_owned(),
                parameters: parameters.map(|(_, values)| values.to_owned()),
            };
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
        let line = LogLine::parse(text, LogFormat::Json).unwrap();
        assert_eq!(line.time(0), Some(1_795_348_801_250_000_000));
        assert_eq!(line.time(3600), Some(1_795_345_201_250_000_000));
        assert_eq!(line.pid, 7);
        assert_eq!(LogLine::default().time(0), None);
        let text = br#"{"timestamp":"1970-01-01 00:00:00.000 GMT"}"#;
        assert_eq!(
            LogLine::parse(text, LogFormat::Json).unwrap().time(0),
            Some(0)
        );
    }

    #[test]
    fn a_line_with_an_impossible_time_has_none() {
        for timestamp in [
            "9223372036854775807-11-22 12:00:01.250 UTC",
            "2026-11-22 9223372036854775807:00:01.250 UTC",
            "2026-11-22 12:00:01.9223372036854775807 UTC",
            "2026-11-22 12:00:01.-1 UTC",
            "2026-11-00 12:00:01.250 UTC",
        ] {
            let line = LogLine {
                timestamp: timestamp.to_owned(),
                ..LogLine::default()
            };
            assert_eq!(line.time(0), None, "{timestamp}");
        }
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

    #[test]
    fn a_line_of_comma_separated_values_says_the_same_as_one_in_json() {
        let csv = br#"2026-11-22 12:00:01.250 UTC,"ann","bank",7,"127.0.0.1:40000",s.7,3,"INSERT",2026-11-22 12:00:00 UTC,3/5,754,LOG,00000,"execute <unnamed>: INSERT INTO a VALUES ($1, 'a ""b"",
c')","parameters: $1 = '42'",,,,,,,,"psql","client backend",,0"#;
        let json = br#"{"timestamp":"2026-11-22 12:00:01.250 UTC","user":"ann","dbname":"bank","pid":7,"remote_host":"127.0.0.1","remote_port":40000,"session_id":"s.7","line_num":3,"vxid":"3/5","txid":754,"error_severity":"LOG","message":"execute <unnamed>: INSERT INTO a VALUES ($1, 'a \"b\",\nc')","detail":"parameters: $1 = '42'","application_name":"psql","backend_type":"client backend"}"#;
        let line = LogLine::parse(csv, LogFormat::Csv).unwrap();
        assert_eq!(Some(&line), LogLine::parse(json, LogFormat::Json).as_ref());
        for (text, format) in [(&csv[..], LogFormat::Csv), (&json[..], LogFormat::Json)] {
            let head = LineHead::parse(text, format).unwrap();
            let found = (&*head.database, &*head.session, head.host.is_empty());
            assert_eq!(found, ("bank", "s.7", false));
            assert!(head.is_statement());
        }
        let local = String::from_utf8_lossy(csv).replace("127.0.0.1:40000", "[local]");
        let local = LogLine::parse(local.as_bytes(), LogFormat::Csv).unwrap();
        assert_eq!((&*local.remote_host, local.remote_port), ("[local]", 0));
        assert_eq!(LogLine::parse(b"a,b", LogFormat::Csv), None);
        assert_eq!(LogLine::parse(b"[]", LogFormat::Json), None);
        assert_eq!(LineHead::parse(b"[]", LogFormat::Json), None);
    }
}
