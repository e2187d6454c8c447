//! One record of auditd: a line.
//!
//! `type=KIND msg=audit(SECONDS.MILLISECONDS:SERIAL): key=value ...`. A value is a number or a
//! string in quotes. A string with a space, a quote or a control character is in hexadecimal
//! digits. `(null)` is no value. A log that is `ENRICHED` has the names of numbers after the byte
//! 0x1d.

use std::borrow::Cow;

/// The byte before the names that auditd adds.
const GROUP_SEPARATOR: u8 = 0x1d;
/// The longest kind, with room.
const LONGEST_KIND: usize = 40;

/// A record. All records of one event have the same serial number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AuditRecord<'a> {
    /// `SYSCALL`, `PATH` and so on.
    pub(super) kind: &'a str,
    /// The machine, if auditd names it.
    pub(super) node: Option<&'a [u8]>,
    /// ns since 1970.
    pub(super) time: i64,
    /// The number of the event.
    pub(super) serial: u64,
    fields: &'a [u8],
    names: &'a [u8],
}

impl<'a> AuditRecord<'a> {
    /// Splits a line. `None` if it is no record.
    pub(super) fn parse(line: &'a [u8]) -> Option<AuditRecord<'a>> {
        let (mut rest, mut node) = (line, None);
        if let Some(after) = rest.strip_prefix(b"node=") {
            let end = memchr::memchr(b' ', after)?;
            (node, rest) = (Some(&after[..end]), &after[end + 1..]);
        }
        let rest = rest.strip_prefix(b"type=")?;
        let end = memchr::memchr(b' ', rest.get(..LONGEST_KIND).unwrap_or(rest))?;
        let kind = std::str::from_utf8(&rest[..end]).ok()?;
        let rest = rest[end + 1..].strip_prefix(b"msg=audit(")?;
        let end = memchr::memchr(b')', rest)?;
        let (time, serial) = stamp(std::str::from_utf8(&rest[..end]).ok()?)?;
        let rest = rest[end + 1..].strip_prefix(b":")?;
        let (fields, names) = match memchr::memchr(GROUP_SEPARATOR, rest) {
            Some(at) => (&rest[..at], &rest[at + 1..]),
            None => (rest, &b""[..]),
        };
        Some(AuditRecord {
            kind,
            node,
            time,
            serial,
            fields,
            names,
        })
    }

    /// The fields in their order: names and raw values.
    pub(super) fn fields(&self) -> Fields<'a> {
        Fields { rest: self.fields }
    }

    /// The raw value of a field.
    pub(super) fn raw(&self, name: &str) -> Option<&'a [u8]> {
        find(self.fields(), name)
    }

    /// The name of a number that auditd added.
    pub(super) fn name(&self, name: &str) -> Option<&'a [u8]> {
        find(Fields { rest: self.names }, name)
    }

    /// A string.
    pub(super) fn text(&self, name: &str) -> Option<Vec<u8>> {
        self.raw(name).and_then(text).map(Cow::into_owned)
    }

    /// A decimal number.
    pub(super) fn decimal<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        std::str::from_utf8(self.raw(name)?).ok()?.parse().ok()
    }

    /// A hexadecimal number, with or without `0x`.
    pub(super) fn hexadecimal(&self, name: &str) -> Option<u64> {
        let digits = std::str::from_utf8(self.raw(name)?).ok()?;
        u64::from_str_radix(digits.strip_prefix("0x").unwrap_or(digits), 16).ok()
    }
}

fn find<'a>(mut fields: Fields<'a>, name: &str) -> Option<&'a [u8]> {
    let found = fields.find(|(key, _)| *key == name.as_bytes());
    found.map(|(_, value)| value)
}

/// The time and the serial number of `1700000000.123:45`.
fn stamp(text: &str) -> Option<(i64, u64)> {
    let (time, serial) = text.split_once(':')?;
    let (seconds, milliseconds) = time.split_once('.')?;
    let seconds: i64 = seconds.parse().ok()?;
    let milliseconds: i64 = milliseconds.parse().ok()?;
    let is_time = (0..4_000_000_000).contains(&seconds) && (0..1_000).contains(&milliseconds);
    let time = is_time.then(|| (seconds * 1_000 + milliseconds) * 1_000_000)?;
    Some((time, serial.parse().ok()?))
}

/// The fields of a record.
#[derive(Debug, Clone)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let rest = self.rest.trim_ascii_start();
            if rest.is_empty() {
                return None;
            }
            let end = rest.iter().position(|byte| b"= ".contains(byte));
            let end = end.unwrap_or(rest.len());
            if rest.get(end) != Some(&b'=') {
                // A word without a value.
                self.rest = &rest[end..];
                continue;
            }
            let (key, value) = (&rest[..end], &rest[end + 1..]);
            let quote = value.first().filter(|byte| b"\"'".contains(byte));
            let length = match quote {
                Some(quote) => memchr::memchr(*quote, &value[1..]).map(|at| at + 2),
                None => memchr::memchr(b' ', value),
            };
            let length = length.unwrap_or(value.len());
            self.rest = &value[length..];
            return Some((key, &value[..length]));
        }
    }
}

/// The bytes of a string: without its quotes, or behind its digits.
pub(super) fn text(raw: &[u8]) -> Option<Cow<'_, [u8]>> {
    if let Some(inner) = raw.strip_prefix(b"\"") {
        return Some(Cow::Borrowed(inner.strip_suffix(b"\"").unwrap_or(inner)));
    }
    if raw == b"(null)" || raw == b"(none)" {
        return None;
    }
    let decoded = data_encoding::HEXUPPER_PERMISSIVE.decode(raw).ok();
    // Old kernels print some strings as they are.
    Some(decoded.map_or(Cow::Borrowed(raw), Cow::Owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_its_kind_time_number_and_fields() {
        let line = b"node=a.b type=PATH msg=audit(1700000000.123:45): item=0 name=612062 \
            x name2=\"a=b c\" nametype=CREATE last=(null)\x1dOUID=\"root\" SYSCALL=openat";
        let record = AuditRecord::parse(line).unwrap();
        assert_eq!((record.kind, record.serial), ("PATH", 45));
        assert_eq!(record.time, 1_700_000_000_123_000_000);
        assert_eq!(record.node, Some(&b"a.b"[..]));
        assert_eq!(record.text("name").unwrap(), b"a b");
        assert_eq!(record.text("name2").unwrap(), b"a=b c");
        assert_eq!(record.decimal::<u32>("item"), Some(0));
        assert_eq!(record.text("last"), None);
        assert_eq!(record.raw("OUID"), None);
        assert_eq!(record.name("SYSCALL"), Some(&b"openat"[..]));
    }

    #[test]
    fn other_lines_are_no_records() {
        let all = [
            &b""[..],
            b"type=SYSCALL",
            b"type=SYSCALL msg=audit(11/23/2026 08:40:37.854:28) : arch=x86_64",
            b"type=PATH msg=audit(1.5:x): item=0",
            b"7 execve(\"/bin/sh\", [\"sh\"], 0x7f) = 0",
            b"type=\xff msg=audit(1.5:1): ",
        ];
        for line in all {
            assert_eq!(AuditRecord::parse(line), None, "{line:?}");
        }
    }
}
