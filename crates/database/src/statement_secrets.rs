//! Removes passwords from statements before they are recorded.
//!
//! In: the text of a statement. Out: the same text, in which the literal after each word `password`
//! is `<redacted>`: `ALTER ROLE ann PASSWORD 'x'`, `OPTIONS (user 'ann', password 'x')`. Values of
//! rows and of parameters are not examined.

const WORD: &[u8] = b"password";
const MARK: &[u8] = b"'<redacted>'";

/// The statement without its passwords.
pub fn without_secrets(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let here = bytes.get(at..at + WORD.len());
        if !here.is_some_and(|word| word.eq_ignore_ascii_case(WORD)) {
            out.push(bytes[at]);
            at += 1;
            continue;
        }
        let after = at + WORD.len();
        let literal = bytes[after..]
            .iter()
            .position(|byte| !b" \t\n=".contains(byte));
        let begin = after + literal.unwrap_or(0);
        out.extend_from_slice(&bytes[at..begin]);
        at = match literal_end(&bytes[begin..]) {
            Some(length) => {
                out.extend_from_slice(MARK);
                begin + length
            }
            None => begin,
        };
    }
    // Only whole literals between quotes were replaced, which are ASCII.
    String::from_utf8_lossy(&out).into_owned()
}

/// True if a recorded text can be another statement than the executed one. A literal of it is
/// redacted, or a part that looked like one.
pub fn is_redacted(text: &str) -> bool {
    text.as_bytes().windows(MARK.len()).any(|part| part == MARK)
}

/// The length of the literal that a text begins with. Two quotes within it stand for one.
fn literal_end(bytes: &[u8]) -> Option<usize> {
    let prefixed = usize::from(matches!(bytes.first(), Some(b'E' | b'e')));
    let body = bytes.get(prefixed..)?.strip_prefix(b"'")?;
    let mut at = 0;
    while at < body.len() {
        match (body[at], body.get(at + 1)) {
            (b'\'', Some(b'\'')) => at += 2,
            (b'\'', _) => return Some(prefixed + at + 2),
            (b'\\', Some(_)) if prefixed == 1 => at += 2,
            _ => at += 1,
        }
    }
    Some(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_literal_after_the_word_password_is_redacted() {
        let cases = [
            (
                "ALTER ROLE ann PASSWORD 's''c' VALID",
                "ALTER ROLE ann PASSWORD '<redacted>' VALID",
            ),
            (
                "OPTIONS (password 'x', user 'y')",
                "OPTIONS (password '<redacted>', user 'y')",
            ),
            (
                "SET x.password = E'a\\'b'; --ä",
                "SET x.password = '<redacted>'; --ä",
            ),
            (
                "ALTER ROLE a PASSWORD 'cut",
                "ALTER ROLE a PASSWORD '<redacted>'",
            ),
            ("SELECT password FROM users", "SELECT password FROM users"),
            (
                "ALTER ROLE ann PASSWORD NULL",
                "ALTER ROLE ann PASSWORD NULL",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(without_secrets(text), expected);
            assert_eq!(is_redacted(&without_secrets(text)), text != expected);
        }
    }
}
