//! Replaces secrets in bytes of a connection by the marks of `redaction`.
//!
//! Known forms:
//!
//! - headers such as `Authorization:` and `Cookie:`
//! - `name=value` and `"name": "value"`, where the name is that of a secret
//! - parts of a form (`multipart/form-data`) with such a name
//! - passwords in addresses (`//user:password@`)
//!
//! Invariant: the result is never longer. Absent: secrets in other forms; a password that stands
//! alone looks like any other word.

use backstory_ordering::SmallSort;
use std::ops::Range;

use backstory_redaction::part_mark;

/// Headers with a secret value.
const HEADERS: &[&str] = &[
    "authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
    "x-api-key",
    "x-auth-token",
    "private-token",
];

/// Ends of names that mean a secret, without case. `-` counts as `_`.
const NAMES: &[&str] = &[
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "api_key",
    "apikey",
    "access_key",
    "secret_key",
    "private_key",
    "credential",
    "credentials",
    "session",
    "session_id",
    "sessionid",
    "sid",
];

/// The bytes with secrets replaced.
pub fn redacted(bytes: &[u8]) -> Vec<u8> {
    let mut parts = in_headers(bytes);
    parts.extend(in_fields(bytes));
    parts.extend(in_form_parts(bytes));
    parts.extend(in_addresses(bytes));
    parts.retain(|part| !part.is_empty());
    parts.sort_small_by_key(|part| (part.start, part.end));
    let mut kept = Vec::with_capacity(bytes.len());
    let mut at = 0;
    for part in parts {
        let part = part.start.max(at)..part.end;
        if part.is_empty() {
            continue;
        }
        kept.extend_from_slice(&bytes[at..part.start]);
        kept.extend(part_mark(part.len()));
        at = part.end;
    }
    kept.extend_from_slice(&bytes[at..]);
    kept
}

fn is_secret(name: &[u8]) -> bool {
    let name: Vec<u8> = name
        .iter()
        .map(|byte| match byte {
            b'-' => b'_',
            other => other.to_ascii_lowercase(),
        })
        .collect();
    NAMES.iter().any(|end| name.ends_with(end.as_bytes()))
}

/// The lines of bytes, without their ends.
fn lines(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut at = 0;
    bytes
        .split_inclusive(|byte| *byte == b'\n')
        .map(move |line| {
            let start = at;
            at += line.len();
            let end = line.len()
                - line
                    .iter()
                    .rev()
                    .take_while(|b| b"\r\n".contains(b))
                    .count();
            start..start + end
        })
}

fn in_headers(bytes: &[u8]) -> Vec<Range<usize>> {
    let secret = |line: Range<usize>| {
        let text = &bytes[line.clone()];
        let colon = text.iter().position(|byte| *byte == b':')?;
        let name = std::str::from_utf8(&text[..colon]).ok()?;
        let known = HEADERS
            .iter()
            .any(|known| known.eq_ignore_ascii_case(name.trim()));
        let spaces = text[colon + 1..]
            .iter()
            .take_while(|byte| **byte == b' ')
            .count();
        known.then_some(line.start + colon + 1 + spaces..line.end)
    };
    lines(bytes).filter_map(secret).collect()
}

/// True for a byte of a field's name.
fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.[]".contains(&byte)
}

fn in_fields(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for (at, byte) in bytes.iter().enumerate() {
        if !b"=:".contains(byte) {
            continue;
        }
        let quoted = at > 0 && bytes[at - 1] == b'"';
        // A colon names a value only in JSON. Elsewhere it stands in times and addresses.
        if *byte == b':' && !quoted {
            continue;
        }
        let end = at - usize::from(quoted);
        let name = bytes[..end]
            .iter()
            .rev()
            .take_while(|byte| is_name(**byte))
            .count();
        if name == 0 || !is_secret(&bytes[end - name..end]) {
            continue;
        }
        let rest = &bytes[at + 1..];
        let spaces = rest.iter().take_while(|byte| **byte == b' ').count();
        let start = at + 1 + if *byte == b':' { spaces } else { 0 };
        found.push(value(bytes, start));
    }
    found
}

/// The value that begins at a position: a quoted string, or all up to a separator.
fn value(bytes: &[u8], start: usize) -> Range<usize> {
    let rest = bytes.get(start..).unwrap_or_default();
    if rest.first() == Some(&b'"') {
        let mut before = b'"';
        let length = rest[1..].iter().take_while(|byte| {
            let ends = **byte == b'"' && before != b'\\';
            before = **byte;
            !ends
        });
        return start + 1..start + 1 + length.count();
    }
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b"&;,\"'<>}".contains(byte);
    let length = rest.iter().take_while(|byte| !ends(byte)).count();
    start..start + length
}

fn in_form_parts(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    // In the headers of a part with a secret; in its value since this position.
    let (mut named, mut since) = (false, None);
    for line in lines(bytes) {
        let text = &bytes[line.clone()];
        let is_border = text.starts_with(b"--");
        match since {
            Some(start) if is_border => {
                found.push(start..line.start);
                since = None;
            }
            Some(_) => {}
            None if named && text.is_empty() => {
                named = false;
                since = bytes[line.end..].iter().position(|byte| *byte == b'\n');
                since = since.map(|end| line.end + end + 1);
            }
            None if is_border => named = false,
            None => named |= part_name(text).is_some_and(is_secret),
        }
    }
    found.extend(since.map(|start| start..bytes.len()));
    // The line end before the border belongs to the border.
    for part in &mut found {
        while part.end > part.start && b"\r\n".contains(&bytes[part.end - 1]) {
            part.end -= 1;
        }
    }
    found
}

/// The name in `Content-Disposition: form-data; name="NAME"`.
fn part_name(line: &[u8]) -> Option<&[u8]> {
    const HEADER: &[u8] = b"content-disposition:";
    let head = line.get(..HEADER.len())?;
    if !head.eq_ignore_ascii_case(HEADER) {
        return None;
    }
    let at = line.windows(6).position(|part| part == b"name=\"")?;
    line[at + 6..].split(|byte| *byte == b'"').next()
}

fn in_addresses(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for at in 0..bytes.len().saturating_sub(2) {
        if &bytes[at..at + 3] != b"://" {
            continue;
        }
        let rest = &bytes[at + 3..];
        let ends = |byte: &u8| byte.is_ascii_whitespace() || b"/\"'<>".contains(byte);
        let host = rest.iter().take_while(|byte| !ends(byte)).count();
        let Some(user) = rest[..host].iter().rposition(|byte| *byte == b'@') else {
            continue;
        };
        if let Some(colon) = rest[..user].iter().position(|byte| *byte == b':') {
            found.push(at + 3 + colon + 1..at + 3 + user);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::redacted;
    use proptest::prelude::*;

    fn text(bytes: &str) -> String {
        String::from_utf8(redacted(bytes.as_bytes())).unwrap()
    }

    #[test]
    fn headers_fields_forms_and_addresses_lose_their_secrets() {
        for (from, to) in [
            (
                "GET / HTTP/1.1\r\nAuthorization: Basic aGFsbG86d2VsdA==\r\nHost: x\r\n\r\n",
                "GET / HTTP/1.1\r\nAuthorization: <redacted>\r\nHost: x\r\n\r\n",
            ),
            ("cookie: session=0123456789", "cookie: <redacted>"),
            (
                "POST /login?user_token=abcdefghijkl&next=/ HTTP/1.1",
                "POST /login?user_token=<redacted>&next=/ HTTP/1.1",
            ),
            (
                "user=ada&password=hunter2&x=1",
                "user=ada&password=<*****>&x=1",
            ),
            (
                r#"{"user": "ada", "Api-Key": "0123\"456789", "n": 3}"#,
                r#"{"user": "ada", "Api-Key": "<redacted>", "n": 3}"#,
            ),
            (
                "--b\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\nhunter2hunter2\r\n--b--",
                "--b\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\n<redacted>\r\n--b--",
            ),
            (
                "see http://ada:secretsecret@example.org/x",
                "see http://ada:<redacted>@example.org/x",
            ),
        ] {
            assert_eq!(text(from), to);
        }
    }

    #[test]
    fn ordinary_text_stays() {
        for plain in [
            "POST /upload HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nContent-Length: 12\r\n\r\n<?php a=1 ?>",
            "name=../../shell.php&size=3",
            r#"{"time": "12:30:01", "file": "a"}"#,
            "Content-Disposition: form-data; name=\"file\"\r\n\r\nabc\r\n--b",
        ] {
            assert_eq!(text(plain), plain);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_accepted_and_never_become_longer(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(redacted(&bytes).len() <= bytes.len());
        }

        #[test]
        fn a_password_in_a_form_is_never_shown(secret in "[a-z]{8,30}", before in "[ -~\r\n]{0,60}") {
            let all = format!("{before}&password={secret}&x=1");
            let shown = redacted(all.as_bytes());
            let marked = format!("password={secret}&x=1");
            prop_assert!(!shown.windows(marked.len()).any(|part| part == marked.as_bytes()));
        }
    }
}
