//! Matches a file's name and bytes with the patterns of an inspector or of a type.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, PathBuf};

use serde::Deserialize;

/// Bytes at a place of a file.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub struct MagicBytes {
    offset: usize,
    bytes: Vec<u8>,
}

impl TryFrom<String> for MagicBytes {
    type Error = String;

    fn try_from(text: String) -> Result<MagicBytes, String> {
        let wrong = || format!("{text:?} is not OFFSET:HEX or HEX");
        let (offset, hex) = text.split_once(':').unwrap_or(("0", &text));
        let bytes = data_encoding::HEXLOWER_PERMISSIVE.decode(hex.as_bytes());
        Ok(MagicBytes {
            offset: offset.parse().map_err(|_| wrong())?,
            bytes: bytes.map_err(|_| wrong())?,
        })
    }
}

impl MagicBytes {
    /// True if the content has the bytes at their place.
    pub fn matches(&self, content: &[u8]) -> bool {
        let rest = content.get(self.offset..);
        rest.is_some_and(|rest| rest.starts_with(&self.bytes))
    }
}

/// The path of a name, which a user may have written for the current directory, with `.`, `..` and
/// double slashes. Patterns are about paths.
pub fn absolute(name: &[u8]) -> Cow<'_, [u8]> {
    let mut parts = name.split(|byte| *byte == b'/').skip(1);
    if name.starts_with(b"/") && !parts.any(|part| matches!(part, b"" | b"." | b"..")) {
        return Cow::Borrowed(name);
    }
    let Ok(here) = std::env::current_dir() else {
        return Cow::Borrowed(name);
    };
    let mut path = PathBuf::new();
    for part in here.join(OsStr::from_bytes(name)).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::CurDir => (),
            part => path.push(part),
        }
    }
    Cow::Owned(path.into_os_string().into_encoded_bytes())
}

/// True if one of the patterns matches all of `name`.
pub fn matches_any(patterns: &[String], name: &[u8]) -> bool {
    let mut patterns = patterns.iter();
    patterns.any(|pattern| matches(pattern.as_bytes(), name))
}

/// True if `pattern` matches all of `name`. `*` is any text, also with slashes, and `?` is any one
/// byte. Upper and lower case of ASCII letters are the same.
pub fn matches(pattern: &[u8], name: &[u8]) -> bool {
    // The place in both after the last `*`, to which a failed match returns.
    let mut star: Option<(usize, usize)> = None;
    let (mut p, mut n) = (0, 0);
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p + 1, n));
                p += 1;
            }
            Some(&byte) if byte == b'?' || byte.eq_ignore_ascii_case(&name[n]) => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((after, at)) => {
                    star = Some((after, at + 1));
                    (p, n) = (after, at + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::{absolute, matches};

    #[test]
    fn a_name_stands_for_one_path_however_it_is_written() {
        let here = std::env::current_dir().unwrap();
        let here = here.to_str().unwrap();
        for name in ["sub/a.fb", "./sub/a.fb", "x/../sub/./a.fb"] {
            let path = absolute(name.as_bytes());
            assert_eq!(*path, *format!("{here}/sub/a.fb").as_bytes(), "{name}");
        }
        assert_eq!(*absolute(b"/w/./x/../a.fb"), *b"/w/a.fb");
        assert_eq!(*absolute(b"/w//a.fb"), *b"/w/a.fb");
        assert_eq!(*absolute(b"/w/..a/.b"), *b"/w/..a/.b");
    }

    #[test]
    fn a_pattern_matches_whole_names() {
        for (pattern, name, wanted) in [
            ("*.csv", "a/b.CSV", true),
            ("*.csv", "a.csv.gz", false),
            ("*/.git/objects/??/*", "/w/.git/objects/ab/cdef", true),
            ("*/.git/objects/??/*", "/w/.git/objects/pack/x", false),
            ("*a*b", "xaxxbab", true),
            ("*a*b", "xaxxbac", false),
            ("*", "", true),
            ("?", "", false),
        ] {
            assert_eq!(
                matches(pattern.as_bytes(), name.as_bytes()),
                wanted,
                "{pattern} {name}"
            );
        }
    }
}
