//! One line of the log of the plug-in `server_audit`.
//!
//! `TIME,SERVER,USER,HOST,CONNECTION,QUERY,OPERATION,DATABASE,OBJECT,ERROR`. The object of a
//! statement is its text between quotes, with escapes.
//! `https://mariadb.com/kb/en/mariadb-audit-plugin-log-format/`
//!
//! Invariant: a line that has another form is refused. Names of users are not escaped, so a line
//! with an unusual one may be refused.

use backstory_eventlog::calendar::seconds_since_1970;

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AuditLine {
    /// `20261122 18:52:26`, in the server's time zone.
    pub(crate) stamp: String,
    pub(crate) user: String,
    pub(crate) host: String,
    /// The number of the connection.
    pub(crate) connection: u64,
    /// The number of the statement. 0: none.
    pub(crate) query: u64,
    /// The database of the table, or that of the connection.
    pub(crate) database: String,
    pub(crate) event: AuditEvent,
}

/// The event that a line reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AuditEvent {
    Connect,
    Disconnect,
    /// A table was opened to be read.
    Read(String),
    /// A table was opened to be changed.
    Write(String),
    /// A table was made, changed or removed.
    Define,
    /// A statement has ended, with the number of an error, or 0.
    Statement {
        text: String,
        error: u32,
    },
    Other,
}

impl AuditLine {
    /// Reads a line. `None` if it is no line of the log.
    pub(crate) fn parse(line: &[u8]) -> Option<AuditLine> {
        let line = std::str::from_utf8(line).map_or_else(
            |_| String::from_utf8_lossy(line).into_owned(),
            str::to_owned,
        );
        let mut parts = line.splitn(8, ',');
        let mut next = || parts.next();
        let (stamp, _, user, host) = (next()?, next()?, next()?, next()?);
        let (connection, query, operation) = (next()?, next()?, next()?);
        let rest = next()?;
        seconds(stamp)?;
        let (database, object) = rest.split_once(',')?;
        let table = || Some(object.strip_suffix(',')?.to_owned());
        let event = match operation {
            "CONNECT" => AuditEvent::Connect,
            "DISCONNECT" => AuditEvent::Disconnect,
            "READ" => AuditEvent::Read(table()?),
            "WRITE" => AuditEvent::Write(table()?),
            "CREATE" | "ALTER" | "DROP" | "RENAME" => AuditEvent::Define,
            "QUERY" => {
                let (text, error) = object.strip_prefix('\'')?.rsplit_once("',")?;
                AuditEvent::Statement {
                    text: unescaped(text),
                    error: error.parse().ok()?,
                }
            }
            _ => AuditEvent::Other,
        };
        Some(AuditLine {
            stamp: stamp.to_owned(),
            user: user.to_owned(),
            host: host.to_owned(),
            connection: connection.parse().ok()?,
            query: query.parse().ok()?,
            database: database.to_owned(),
            event,
        })
    }

    /// The second of the line, in ns since 1970. `offset`: seconds of the zone east of UTC.
    pub(crate) fn second(&self, offset: i64) -> Option<i64> {
        let seconds = seconds(&self.stamp)?.checked_sub(offset)?;
        seconds.checked_mul(1_000_000_000)
    }
}

/// The time as if it were UTC, in s since 1970.
fn seconds(stamp: &str) -> Option<i64> {
    let (date, clock) = stamp.split_once(' ')?;
    (date.len() == 8 && date.is_ascii()).then_some(())?;
    let (year, month, day) = (&date[..4], &date[4..6], &date[6..]);
    let date = [year.parse().ok()?, month.parse().ok()?, day.parse().ok()?];
    let mut parts = clock.split(':').map(|part| part.parse::<i64>().ok());
    let clock = [parts.next()??, parts.next()??, parts.next()??];
    seconds_since_1970(date, clock)
}

fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(next) = chars.next() {
        match next {
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some('r') => out.push('\r'),
                Some('t') => out.push('\t'),
                Some('b') => out.push('\u{8}'),
                Some('f') => out.push('\u{c}'),
                Some(other) => out.push(other),
                None => out.push('\\'),
            },
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Option<AuditLine> {
        AuditLine::parse(text.as_bytes())
    }

    #[test]
    fn a_statement_has_its_text_and_its_error() {
        let text = r"20261122 18:55:35,vm,root,localhost,8,53,QUERY,bank,'INSERT INTO c VALUES (1,\'a\\b\',\n2)',1062";
        let found = line(text).unwrap();
        assert_eq!(
            (found.connection, found.query, &*found.database),
            (8, 53, "bank")
        );
        let text = "INSERT INTO c VALUES (1,'a\\b',\n2)".to_owned();
        assert_eq!(found.event, AuditEvent::Statement { text, error: 1062 });
        assert_eq!(found.second(3600), Some(1_795_370_135_000_000_000));
    }

    #[test]
    fn a_table_is_read_or_written() {
        let read = line("20261122 18:55:35,vm,root,localhost,8,54,READ,bank,c,").unwrap();
        assert_eq!(read.event, AuditEvent::Read("c".to_owned()));
        let end = line("20261122 18:55:35,vm,root,localhost,8,0,DISCONNECT,bank,,0").unwrap();
        assert_eq!(end.event, AuditEvent::Disconnect);
    }

    #[test]
    fn a_name_of_a_user_cannot_make_a_statement() {
        let forged = "20261122 18:55:35,vm,x,h,5,7,QUERY,bank,'DROP TABLE a',0,localhost,9,0,FAILED_CONNECT,,,1045";
        assert_eq!(line(forged), None);
        assert_eq!(line("DROP TABLE a"), None);
    }

    #[test]
    fn a_line_with_an_impossible_time_is_refused() {
        let hour = i64::MAX;
        for stamp in [
            format!("20261122 {hour}:00:00"),
            "20261322 00:00:00".to_owned(),
        ] {
            let text = format!("{stamp},vm,root,localhost,8,54,READ,bank,c,");
            assert_eq!(line(&text), None, "{text}");
        }
    }
}
