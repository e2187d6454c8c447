//! Decodes texts in UTF-16 with a byte order mark, as Windows programs write them.

use std::borrow::Cow;

use backstory_comparison::is_utf16;

/// The text as UTF-8, without the mark. A text that is not in UTF-16 stays as it is. A damaged
/// character becomes U+FFFD.
pub fn decoded(content: &[u8]) -> Cow<'_, [u8]> {
    if !is_utf16(content) {
        return Cow::Borrowed(content);
    }
    let is_little = content[0] == 0xff;
    let units = content[2..].chunks_exact(2).map(|pair| match is_little {
        true => u16::from_le_bytes([pair[0], pair[1]]),
        false => u16::from_be_bytes([pair[0], pair[1]]),
    });
    let mut text = String::with_capacity(content.len() / 2);
    for char in char::decode_utf16(units) {
        text.push(char.unwrap_or(char::REPLACEMENT_CHARACTER));
    }
    if content.len() % 2 == 1 {
        text.push(char::REPLACEMENT_CHARACTER);
    }
    Cow::Owned(text.into_bytes())
}

/// The offset in the content of a byte of its decoded text.
pub fn encoded_offset(content: &[u8], text: &[u8], at: usize) -> usize {
    if !is_utf16(content) {
        return at;
    }
    let units = String::from_utf8_lossy(&text[..at]).encode_utf16().count();
    (2 + 2 * units).min(content.len())
}

#[cfg(test)]
mod tests {
    use super::{decoded, encoded_offset};

    #[test]
    fn both_byte_orders_are_decoded_and_damaged_characters_replaced() {
        let text = "a\u{f8}\u{1f600}\n";
        let bytes = |order: fn(u16) -> [u8; 2], mark: &[u8]| {
            let units = text.encode_utf16().flat_map(order);
            mark.iter().copied().chain(units).collect::<Vec<u8>>()
        };
        for whole in [
            bytes(u16::to_le_bytes, b"\xff\xfe"),
            bytes(u16::to_be_bytes, b"\xfe\xff"),
        ] {
            assert_eq!(&*decoded(&whole), text.as_bytes());
        }
        let half = b"\xff\xfea\0\x3d\xd8b\0c";
        assert_eq!(&*decoded(half), "a\u{fffd}b\u{fffd}".as_bytes());
        assert_eq!(&*decoded(b"a\xff"), b"a\xff");
        let offsets = [0, 1, 4, 5, 8].map(|at| encoded_offset(half, &decoded(half), at));
        assert_eq!(offsets, [2, 4, 6, 8, 9]);
    }
}
