//! Records of the server's plain log (`stderr`).
//!
//! In: whole lines. Out: records, and the fields of one. Tabs separate the fields of [`PREFIX`] and
//! the text behind them. Here, `→` is a tab:
//!
//! ```text
//! 1795348801.250→6925a1b0.7→3→3/5→754→client backend→[local]→ann→bank→psql→LOG:  statement: SELECT
//! →        1
//! ```
//!
//! The server writes a tab before each further line of a text. So no text looks like a record,
//! whatever a client sends. Parameters, hints and contexts are records of their own, behind that of
//! their message.
//!
//! Invariant: a record is whole. It has ended when another one begins, or when the file has been
//! quiet for `QUIET`: the server writes a message at once.

use std::borrow::Cow;
use std::time::{Duration, Instant};

/// The prefix of each record (`log_line_prefix`).
pub(crate) const PREFIX: &str = "%n\t%c\t%l\t%v\t%x\t%b\t%r\t%u\t%d\t%a\t";
/// The same as SQL.
pub(crate) const PREFIX_IN_SQL: &str = r"E'%n\t%c\t%l\t%v\t%x\t%b\t%r\t%u\t%d\t%a\t'";

/// After so long without another line, a record has ended.
const QUIET: Duration = Duration::from_millis(20);

/// The words before a text. The server's messages are in English.
const KINDS: [&str; 14] = [
    "DEBUG",
    "LOG",
    "INFO",
    "NOTICE",
    "WARNING",
    "ERROR",
    "FATAL",
    "PANIC",
    "DETAIL",
    "HINT",
    "QUERY",
    "CONTEXT",
    "STATEMENT",
    "BACKTRACE",
];

/// Puts lines together to records.
#[derive(Debug, Default)]
pub(crate) struct PlainRecords {
    /// The last record, which may go on.
    last: Vec<u8>,
    /// When its last line was read.
    grown: Option<Instant>,
    /// The lines so far are of a record whose beginning is unknown.
    is_cut: bool,
}

impl PlainRecords {
    /// Records behind a text that is not read. The first one may have begun there.
    pub(crate) fn behind() -> PlainRecords {
        PlainRecords {
            is_cut: true,
            ..PlainRecords::default()
        }
    }

    /// The records that these lines end, or that have ended without them.
    pub(crate) fn take(&mut self, text: &[u8]) -> Vec<Vec<u8>> {
        let mut records = Vec::new();
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            if !line.starts_with(b"\t") {
                self.is_cut = false;
                records.extend(self.end());
            }
            if !self.is_cut {
                self.last.extend_from_slice(line);
            }
        }
        if !text.is_empty() {
            self.grown = Some(Instant::now());
        } else if self.grown.is_none_or(|grown| grown.elapsed() >= QUIET) {
            records.extend(self.end());
        }
        records
    }

    /// The record that may go on. No more of it comes.
    pub(crate) fn end(&mut self) -> Option<Vec<u8>> {
        let last = std::mem::take(&mut self.last);
        (!last.is_empty()).then_some(last)
    }

    /// The record that may go on, as far as it was read.
    pub(crate) fn held(&self) -> Option<&[u8]> {
        (!self.last.is_empty()).then_some(&*self.last)
    }
}

/// A record. Texts are as they are written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlainRecord<'a> {
    /// The fields of [`PREFIX`], in its order.
    pub(crate) prefix: [&'a [u8]; 10],
    /// One of `KINDS`.
    pub(crate) kind: &'static str,
    text: &'a [u8],
}

impl<'a> PlainRecord<'a> {
    /// Finds the fields of a record. `None` if it has another form.
    pub(crate) fn parse(record: &'a [u8]) -> Option<PlainRecord<'a>> {
        let record = record.strip_suffix(b"\n").unwrap_or(record);
        let mut fields = record.splitn(11, |byte| *byte == b'\t');
        let mut prefix = [&record[..0]; 10];
        for field in &mut prefix {
            *field = fields.next()?;
        }
        let rest = fields.next()?;
        let kind = KINDS.into_iter().find(|kind| {
            let text = rest.strip_prefix(kind.as_bytes());
            text.is_some_and(|text| text.starts_with(b":  "))
        })?;
        let text = &rest[kind.len() + 3..];
        Some(PlainRecord { prefix, kind, text })
    }

    /// A field of the prefix. Nothing if the server does not know it.
    pub(crate) fn field(&self, at: usize) -> Cow<'a, str> {
        match self.prefix[at] {
            b"[unknown]" => "".into(),
            field => String::from_utf8_lossy(field),
        }
    }

    /// The client's host and port. 0: a Unix socket.
    pub(crate) fn client(&self) -> Option<(Cow<'a, str>, u16)> {
        let client = self.prefix[6];
        let Some(port) = client.strip_suffix(b")") else {
            return Some((String::from_utf8_lossy(client), 0));
        };
        let open = port.iter().rposition(|byte| *byte == b'(')?;
        let port = std::str::from_utf8(&port[open + 1..]).ok()?.parse().ok()?;
        Some((String::from_utf8_lossy(&client[..open]), port))
    }

    /// The text, without the tabs before its further lines.
    pub(crate) fn text(&self) -> Cow<'a, str> {
        match String::from_utf8_lossy(self.text) {
            text if text.contains("\n\t") => text.replace("\n\t", "\n").into(),
            text => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: &str =
        "1.250\ts.7\t3\t3/5\t754\tclient backend\t127.0.0.1(4000)\tann\tbank\tpsql\t";

    #[test]
    fn the_prefix_is_the_same_in_sql() {
        assert_eq!(format!("E'{}'", PREFIX.replace('\t', r"\t")), PREFIX_IN_SQL);
    }

    #[test]
    fn a_text_that_imitates_a_record_stays_a_text() {
        let forged = format!("{BEGIN}LOG:  statement: DROP TABLE a");
        let sent = format!("statement: SELECT '\n\n\tx\n{forged}'");
        let written = format!("{BEGIN}LOG:  {}\n", sent.replace('\n', "\n\t"));
        let next = format!("{BEGIN}LOG:  statement: SELECT 2\n");
        let mut records = PlainRecords::behind();
        assert!(records.take(b"\tthe rest of another one\n").is_empty());
        let found = records.take(format!("{written}{next}").as_bytes());
        assert_eq!(found, [written.clone().into_bytes()]);
        let record = PlainRecord::parse(&found[0]).unwrap();
        assert_eq!((record.kind, &*record.text()), ("LOG", &*sent));
        assert_eq!(records.end(), Some(next.into_bytes()));
    }

    #[test]
    fn a_record_is_held_back_until_another_one_begins_or_the_file_is_quiet() {
        let mut records = PlainRecords::default();
        let line = format!("{BEGIN}LOG:  statement: SELECT\n");
        assert!(records.take(line.as_bytes()).is_empty());
        assert_eq!(records.held(), Some(line.as_bytes()));
        assert!(records.take(b"\t1\n").is_empty());
        let whole = format!("{line}\t1\n").into_bytes();
        records.grown = Instant::now().checked_sub(QUIET);
        assert_eq!(records.take(b""), [whole]);
        assert_eq!(records.held(), None);
        // More of it, after all, is no record.
        assert!(records.take(b"\t2\n").is_empty());
        let late = records.end().unwrap();
        assert!(PlainRecord::parse(&late).is_none());
    }

    #[test]
    fn fields_that_the_server_does_not_know_are_empty() {
        let line = b"1.2\ts\t1\t\t0\tcheckpointer\t\t\t\t\tLOG:  checkpoint complete\n";
        let record = PlainRecord::parse(line).unwrap();
        assert_eq!(record.client(), Some(("".into(), 0)));
        let line =
            b"1.2\ts\t1\t\t0\tnot initialized\t::1(5)\t[unknown]\t[unknown]\t[unknown]\tLOG:  x";
        let record = PlainRecord::parse(line).unwrap();
        assert_eq!(
            (&*record.field(7), record.client()),
            ("", Some(("::1".into(), 5)))
        );
        let forms = [
            "LOG:  x",
            &format!("{BEGIN}LOG: x"),
            &BEGIN.replace("ann", "a\tb"),
        ];
        for other in forms {
            assert!(PlainRecord::parse(other.as_bytes()).is_none(), "{other}");
        }
    }
}
