//! Percent-encoding of names.

/// The bytes of a text in which `%` and two digits stand for a byte.
pub(crate) fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let digits = tail.get(..2).filter(|_| *first == b'%');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A part of a name, in which no `/`, `?`, `&`, `=`, `.`, `%`, space or control character stands
/// for itself.
pub(crate) fn encoded(part: &str, plain: &str) -> String {
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
