//! Decodes the values of rows in the binlog.
//!
//! In: the kind of a column, by the event that describes the table, and what the catalog says of
//! the column. Out: the value as the server shows it. Times of the type `TIMESTAMP` are UTC.
//! `https://mariadb.com/kb/en/rows_event_v1v2-rows_compressed_event_v1/`

use backstory_database::row_change::ColumnValue;

use crate::byte_reader::ByteReader;
use crate::text_form::{TextForm, shown, uncompressed};
use backstory_eventlog::calendar::date_of_days;

/// The packed form of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    /// A number of so many bytes.
    Integer(usize),
    Float,
    Double,
    /// Digits, and those behind the point.
    Decimal(usize, usize),
    /// Bits, and bytes.
    Bits(usize),
    Year,
    Date,
    /// The forms of before version 5.6: `TIME`, `DATETIME`, `TIMESTAMP`.
    OldTime,
    OldDateTime,
    OldTimestamp,
    /// The same with digits of a second.
    Time(usize),
    DateTime(usize),
    Timestamp(usize),
    /// A text whose length has so many bytes.
    Text(usize),
    Compressed(usize),
    Enum(usize),
    Set(usize),
    Null,
}

/// A column, as the catalog describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ColumnType {
    pub(crate) name: String,
    pub(crate) unsigned: bool,
    /// The values of an enumeration or set.
    pub(crate) labels: Vec<String>,
    pub(crate) form: TextForm,
}

impl ColumnKind {
    /// Reads a kind and its metadata.
    pub(crate) fn read(kind: u8, metadata: &mut ByteReader<'_>) -> Option<ColumnKind> {
        Some(match kind {
            1 => ColumnKind::Integer(1),
            2 => ColumnKind::Integer(2),
            3 => ColumnKind::Integer(4),
            4 => metadata.byte().map(|_| ColumnKind::Float)?,
            5 => metadata.byte().map(|_| ColumnKind::Double)?,
            6 => ColumnKind::Null,
            7 => ColumnKind::OldTimestamp,
            8 => ColumnKind::Integer(8),
            9 => ColumnKind::Integer(3),
            10 | 14 => ColumnKind::Date,
            11 => ColumnKind::OldTime,
            12 => ColumnKind::OldDateTime,
            13 => ColumnKind::Year,
            15 | 253 => ColumnKind::Text(width(metadata.number(2)? as usize)),
            16 => {
                let (bits, bytes) = (metadata.byte()?, metadata.byte()?);
                ColumnKind::Bits(up_to(8, bytes.checked_add(u8::from(bits > 0))?)?)
            }
            17 => ColumnKind::Timestamp(up_to(6, metadata.byte()?)?),
            18 => ColumnKind::DateTime(up_to(6, metadata.byte()?)?),
            19 => ColumnKind::Time(up_to(6, metadata.byte()?)?),
            140 => ColumnKind::Compressed(up_to(4, metadata.byte()?)?),
            141 => ColumnKind::Compressed(width(metadata.number(2)? as usize)),
            245 | 249..=252 | 255 => ColumnKind::Text(up_to(4, metadata.byte()?)?),
            246 => {
                let (all, behind) = (metadata.byte()?, metadata.byte()?);
                ColumnKind::Decimal(usize::from(all), usize::from(behind))
            }
            247 | 248 | 254 => fixed(metadata.byte()?, metadata.byte()?)?,
            _ => return None,
        })
    }

    /// The value that a packed row has next. `None` if the row is cut.
    pub(crate) fn value(self, row: &mut ByteReader<'_>, of: &ColumnType) -> Option<ColumnValue> {
        let text = match self {
            ColumnKind::Integer(bytes) => integer(row.number(bytes)?, bytes, of.unsigned),
            ColumnKind::Float => f32::from_bits(row.number(4)? as u32).to_string(),
            ColumnKind::Double => double(f64::from_bits(row.number(8)?)),
            ColumnKind::Decimal(all, behind) => decimal(row, all, behind)?,
            ColumnKind::Bits(bytes) => row.big_endian(bytes)?.to_string(),
            ColumnKind::Year => match row.byte()? {
                0 => "0000".to_owned(),
                year => (1900 + u32::from(year)).to_string(),
            },
            ColumnKind::Date => {
                let packed = row.number(3)?;
                date(packed >> 9, packed >> 5 & 15, packed & 31)
            }
            ColumnKind::OldTime => {
                let packed = row.number(3)?;
                clock(packed / 10000, packed / 100 % 100, packed % 100)
            }
            ColumnKind::OldDateTime => {
                let packed = row.number(8)?;
                let (day, time) = (packed / 1_000_000, packed % 1_000_000);
                let date = date(day / 10000, day / 100 % 100, day % 100);
                let clock = clock(time / 10000, time / 100 % 100, time % 100);
                format!("{date} {clock}")
            }
            ColumnKind::OldTimestamp => timestamp(row.number(4)?),
            ColumnKind::Timestamp(digits) => {
                let seconds = row.big_endian(4)?;
                format!("{}{}", timestamp(seconds), fraction(row, digits)?)
            }
            ColumnKind::DateTime(digits) => {
                let packed = row.big_endian(5)? & 0x7f_ffff_ffff;
                let (day, time) = (packed >> 17, packed & 0x1_ffff);
                let months = day >> 5;
                let date = date(months / 13, months % 13, day & 31);
                let clock = clock(time >> 12, time >> 6 & 63, time & 63);
                format!("{date} {clock}{}", fraction(row, digits)?)
            }
            ColumnKind::Time(digits) => time(row, digits)?,
            ColumnKind::Text(bytes) => {
                let length = row.number(bytes)? as usize;
                shown(row.take(length)?, of.form)
            }
            ColumnKind::Compressed(bytes) => {
                let length = row.number(bytes)? as usize;
                uncompressed(row.take(length)?, of.form)?
            }
            ColumnKind::Enum(bytes) => {
                let at = row.number(bytes)? as usize;
                let label = at.checked_sub(1).and_then(|at| of.labels.get(at));
                label.cloned().unwrap_or_else(|| at.to_string())
            }
            ColumnKind::Set(bytes) => set(row.number(bytes)?, &of.labels),
            ColumnKind::Null => return Some(ColumnValue::Null),
        };
        Some(ColumnValue::Text(text))
    }
}

/// A number of bytes or digits, unless no column has so many.
fn up_to(most: u8, number: u8) -> Option<usize> {
    (number <= most).then_some(usize::from(number))
}

/// The number of bytes of a length up to this one.
fn width(longest: usize) -> usize {
    if longest > 255 { 2 } else { 1 }
}

/// The kind of a text of a fixed length, whose metadata also have other kinds.
fn fixed(first: u8, second: u8) -> Option<ColumnKind> {
    Some(match first {
        247 => ColumnKind::Enum(up_to(2, second)?),
        248 => ColumnKind::Set(up_to(8, second)?),
        _ => {
            // Two bits of the length are in the first byte, inverted.
            let high = usize::from(!first & 0x30) << 4;
            ColumnKind::Text(width(usize::from(second) | high))
        }
    })
}

fn integer(value: u64, bytes: usize, unsigned: bool) -> String {
    let unused = 64 - 8 * bytes as u32;
    match unsigned {
        true => value.to_string(),
        false => ((value << unused) as i64 >> unused).to_string(),
    }
}

/// The server has an exponent where a number would be long.
fn double(value: f64) -> String {
    match value != 0.0 && !(1e-15..1e15).contains(&value.abs()) {
        true => format!("{value:e}"),
        false => value.to_string(),
    }
}

/// Digits in groups of nine, each of four bytes; the groups at both ends may be shorter.
fn decimal(row: &mut ByteReader<'_>, all: usize, behind: usize) -> Option<String> {
    const BYTES: [usize; 10] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];
    let before = all.checked_sub(behind)?;
    let mut groups = vec![before % 9];
    groups.extend(std::iter::repeat_n(9, before / 9));
    groups.extend(std::iter::repeat_n(9, behind / 9));
    groups.push(behind % 9);
    let size = groups.iter().map(|digits| BYTES[*digits]).sum();
    let mut bytes = row.take(size)?.to_vec();
    let first = bytes.first_mut()?;
    let negative = *first & 0x80 == 0;
    *first ^= 0x80;
    if negative {
        bytes.iter_mut().for_each(|byte| *byte = !*byte);
    }
    let mut reader = ByteReader(&bytes);
    let mut digits = String::new();
    for count in groups.into_iter().filter(|count| *count > 0) {
        let group = reader.big_endian(BYTES[count])?;
        digits.push_str(&format!("{group:0count$}"));
    }
    let (whole, part) = digits.split_at_checked(before)?;
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let sign = if negative { "-" } else { "" };
    Some(match part.is_empty() {
        true => format!("{sign}{whole}"),
        false => format!("{sign}{whole}.{part}"),
    })
}

fn date(year: u64, month: u64, day: u64) -> String {
    format!("{year:04}-{month:02}-{day:02}")
}

fn clock(hours: u64, minutes: u64, seconds: u64) -> String {
    format!("{hours:02}:{minutes:02}:{seconds:02}")
}

/// The digits of a second, with their point.
fn fraction(row: &mut ByteReader<'_>, digits: usize) -> Option<String> {
    let part = row.big_endian(digits.div_ceil(2))?;
    // Each byte has two digits.
    let part = if digits % 2 == 1 { part / 10 } else { part };
    Some(match digits {
        0 => String::new(),
        _ => format!(".{part:0digits$}"),
    })
}

/// A time of day in UTC.
fn timestamp(seconds: u64) -> String {
    if seconds == 0 {
        return "0000-00-00 00:00:00".to_owned();
    }
    let (year, month, day) = date_of_days((seconds / 86400) as i64);
    let rest = seconds % 86400;
    let clock = clock(rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02} {clock}")
}

/// A span of time, which may be negative: the complement of its packed form.
fn time(row: &mut ByteReader<'_>, digits: usize) -> Option<String> {
    let bytes = digits.div_ceil(2);
    let packed = row.big_endian(3 + bytes)? as i64;
    let zero = 0x80_0000_i64 << (8 * bytes);
    let span = (packed - zero).unsigned_abs();
    let (whole, part) = (span >> (8 * bytes), span & ((1 << (8 * bytes)) - 1));
    let sign = if packed < zero { "-" } else { "" };
    let clock = clock(whole >> 12 & 0x3ff, whole >> 6 & 63, whole & 63);
    let part = if digits % 2 == 1 { part / 10 } else { part };
    Some(match digits {
        0 => format!("{sign}{clock}"),
        _ => format!("{sign}{clock}.{part:0digits$}"),
    })
}

fn set(bits: u64, labels: &[String]) -> String {
    let has = |at: &usize| *at < 64 && bits >> at & 1 == 1;
    match labels.is_empty() {
        true => bits.to_string(),
        false => {
            let found = (0..labels.len()).filter(has).map(|at| &*labels[at]);
            found.collect::<Vec<_>>().join(",")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(kind: ColumnKind, bytes: &[u8], of: &ColumnType) -> String {
        let mut row = ByteReader(bytes);
        let value = kind.value(&mut row, of).unwrap();
        assert!(row.0.is_empty(), "{:?}", row.0);
        match value {
            ColumnValue::Text(text) => text,
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn numbers_have_the_sign_that_the_catalog_says() {
        let unsigned = ColumnType {
            unsigned: true,
            ..ColumnType::default()
        };
        let plain = ColumnType::default();
        assert_eq!(value(ColumnKind::Integer(1), &[200], &unsigned), "200");
        assert_eq!(value(ColumnKind::Integer(1), &[200], &plain), "-56");
        assert_eq!(
            value(ColumnKind::Integer(3), &[0x90, 0xee, 0xfe], &plain),
            "-70000"
        );
        assert_eq!(
            value(ColumnKind::Integer(8), &[0xff; 8], &unsigned),
            u64::MAX.to_string()
        );
        assert_eq!(
            value(ColumnKind::Double, &1e100_f64.to_le_bytes(), &plain),
            "1e100"
        );
        assert_eq!(
            value(ColumnKind::Float, &1.5_f32.to_le_bytes(), &plain),
            "1.5"
        );
    }

    #[test]
    fn a_value_that_is_cut_is_refused() {
        let mut metadata = ByteReader(&[20, 5]);
        let kind = ColumnKind::read(246, &mut metadata).unwrap();
        assert_eq!(
            kind.value(&mut ByteReader(&[0; 8]), &ColumnType::default()),
            None
        );
        let text = ColumnKind::Text(1);
        assert_eq!(
            text.value(&mut ByteReader(&[3, b'a']), &ColumnType::default()),
            None
        );
    }

    #[test]
    fn a_column_with_more_bytes_or_digits_than_any_is_refused() {
        for (kind, metadata) in [
            (16, [0, 9]),
            (16, [1, 255]),
            (17, [7, 0]),
            (19, [255, 0]),
            (140, [5, 0]),
            (252, [5, 0]),
            (254, [247, 3]),
            (254, [248, 9]),
        ] {
            let read = ColumnKind::read(kind, &mut ByteReader(&metadata));
            assert_eq!(read, None, "{kind} {metadata:?}");
        }
        let time = ColumnKind::read(19, &mut ByteReader(&[6]));
        assert_eq!(time, Some(ColumnKind::Time(6)));
    }
}
