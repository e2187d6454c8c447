//! The texts of rows in the binlog, as the server shows them.
//!
//! In: the bytes of a text, and what the catalog says of its column. Out: text. Bytes that are no
//! text are hexadecimal digits.

use crate::compression::{inflated, raw};

/// The meaning of the bytes of a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum TextForm {
    #[default]
    Utf8,
    Latin1,
    Uuid,
    Inet6,
    Inet4,
    /// Of this length, whose trailing zeros are not in the row.
    Fixed(usize),
}

/// A compressed value: a head, the length, the text. Without compression, the head is 0.
pub(crate) fn uncompressed(bytes: &[u8], form: TextForm) -> Option<String> {
    match bytes.split_first() {
        None => Some(String::new()),
        Some((0, plain)) => Some(shown(plain, form)),
        Some((head, _)) => {
            let mut framed = bytes.to_vec();
            // The same form as that of events, but for the meaning of the other bits.
            framed[0] = head & 7;
            // The text has no head of zlib.
            inflated(&framed)
                .or_else(|| raw(&framed))
                .map(|text| shown(&text, form))
        }
    }
}

/// The bytes of a text as the server shows them.
pub(crate) fn shown(bytes: &[u8], form: TextForm) -> String {
    let hex = |bytes: &[u8]| -> String { bytes.iter().map(|byte| format!("{byte:02x}")).collect() };
    let padded = |length: usize| {
        let mut whole = bytes.to_vec();
        whole.resize(length.max(bytes.len()), 0);
        whole
    };
    match form {
        TextForm::Latin1 => bytes.iter().map(|byte| char::from(*byte)).collect(),
        TextForm::Inet6 => match <[u8; 16]>::try_from(padded(16)) {
            Ok(octets) => std::net::Ipv6Addr::from(octets).to_string(),
            Err(other) => format!("0x{}", hex(&other)),
        },
        TextForm::Inet4 => match <[u8; 4]>::try_from(padded(4)) {
            Ok(octets) => std::net::Ipv4Addr::from(octets).to_string(),
            Err(other) => format!("0x{}", hex(&other)),
        },
        TextForm::Uuid => uuid(&padded(16)),
        TextForm::Fixed(length) => shown(&padded(length), TextForm::Utf8),
        TextForm::Utf8 => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => format!("0x{}", hex(bytes)),
        },
    }
}

/// The server stores the parts of a UUID with a time in another order, so that they are sorted by
/// it. It marks the others.
fn uuid(bytes: &[u8]) -> String {
    let hex = |bytes: &[u8]| -> String { bytes.iter().map(|byte| format!("{byte:02x}")).collect() };
    let part = |from: usize, to: usize| hex(bytes.get(from..to).unwrap_or_default());
    // Byte 6 of the stored order is that of the variant, and byte 8 that of the version.
    let is_plain = bytes.get(6).is_some_and(|byte| byte & 0x80 == 0)
        || bytes.get(8).is_some_and(|byte| byte >> 4 >= 6);
    match is_plain {
        true => [(0, 4), (4, 6), (6, 8), (8, 10), (10, 16)],
        false => [(12, 16), (10, 12), (8, 10), (6, 8), (0, 6)],
    }
    .map(|(from, to)| part(from, to))
    .join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_put_into_its_order() {
        let stored = [
            0x5b, 0x8c, 0x65, 0x60, 0x24, 0xdb, 0x95, 0x64, 0x10, 0x26, 0xba, 0xba, 0x6c, 0xcd,
            0x78, 0x0c,
        ];
        assert_eq!(uuid(&stored), "6ccd780c-baba-1026-9564-5b8c656024db");
    }
}
