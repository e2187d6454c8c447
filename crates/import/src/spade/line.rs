//! A line of SPADE's DSL: `type:Used from:2 to:3 operation:read time:1433213.123`.
//!
//! Words are separated by a space, and a key is separated from its value by a colon. A backslash
//! before a space or colon makes it a part of the text. Before any other character it is text.

/// A key and its value.
pub(super) type Annotation = (Vec<u8>, Vec<u8>);

/// The words of a line that have a key. A word without a colon is counted in `odd`.
pub(super) fn annotations(line: &[u8], odd: &mut usize) -> Vec<Annotation> {
    let mut all = Vec::new();
    for word in split(line, b' ', usize::MAX) {
        if word.is_empty() {
            continue;
        }
        match split(word, b':', 2)[..] {
            [key, value] => all.push((plain(key), plain(value))),
            _ => *odd += 1,
        }
    }
    all
}

/// The parts of a text between separators without a backslash before them, at most `most` parts.
fn split(text: &[u8], separator: u8, most: usize) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    let mut from = 0;
    for (at, byte) in text.iter().enumerate() {
        let escaped = at > 0 && text[at - 1] == b'\\';
        if *byte == separator && !escaped && parts.len() + 1 < most {
            parts.push(&text[from..at]);
            from = at + 1;
        }
    }
    parts.push(&text[from..]);
    parts
}

/// A text without the backslashes before spaces and colons.
fn plain(text: &[u8]) -> Vec<u8> {
    let escapes = |at: usize| text[at] == b'\\' && matches!(text.get(at + 1), Some(b' ' | b':'));
    (0..text.len())
        .filter(|at| !escapes(*at))
        .map(|at| text[at])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Vec<(String, String)> {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let all = annotations(line.as_bytes(), &mut 0).into_iter();
        all.map(|(key, value)| (text(key), text(value))).collect()
    }

    #[test]
    fn a_backslash_makes_a_space_or_a_colon_part_of_a_text() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        // SPADE's own examples.
        assert_eq!(
            read(r"type:WasTriggeredBy from:2 to:1 time:5\:56\ PM"),
            [
                pair("type", "WasTriggeredBy"),
                pair("from", "2"),
                pair("to", "1"),
                pair("time", "5:56 PM")
            ]
        );
        assert_eq!(
            read(r"subtype:network\ socket local\ address:0.0.0.0"),
            [
                pair("subtype", "network socket"),
                pair("local address", "0.0.0.0")
            ]
        );
        assert_eq!(read(r"a:b:c:d"), [pair("a", "b:c:d")]);
        assert_eq!(
            read(r"a:x\y\\ z  b:"),
            [pair("a", r"x\y\ z"), pair("b", "")]
        );
    }

    #[test]
    fn a_word_without_a_key_is_counted() {
        let mut odd = 0;
        assert_eq!(annotations(b"hello type:Used", &mut odd).len(), 1);
        assert_eq!(odd, 1);
    }
}
