//! Percent-encoding of names.

use backstory_eventlog::percent;

/// The bytes of a text in which `%` and two digits stand for a byte.
pub fn decoded(text: &str) -> String {
    String::from_utf8_lossy(&percent::decoded(text.as_bytes())).into_owned()
}

/// A part of a name, in which no `/`, `?`, `&`, `=`, `.`, `%`, space or control character stands
/// for itself.
pub fn encoded(part: &str, plain: &str) -> String {
    let mut out = String::with_capacity(part.len());
    for byte in part.bytes() {
        let special = b"/?&=%#.".contains(&byte) && !plain.as_bytes().contains(&byte);
        match special || byte <= b' ' || byte == 0x7f {
            true => out.push_str(&format!("%{byte:02x}")),
            false if byte.is_ascii() => out.push(char::from(byte)),
            false => out.push_str(&format!("%{byte:02x}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoded_part_is_decoded_to_itself() {
        for part in ["a b", "50%", "ä/ö?x=1&y", "plain", ""] {
            assert_eq!(decoded(&encoded(part, "")), part);
        }
        assert_eq!(encoded("1.5", "."), "1.5");
        assert_eq!(encoded("a.b", ""), "a%2eb");
    }
}
