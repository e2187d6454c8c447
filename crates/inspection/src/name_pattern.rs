//! Matches a file's name and bytes with the patterns of an inspector or of a type.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, PathBuf};

use backstory_wildcards::matches_in_any_case;
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

/// The path of a name, which a user may have written for the current directory, with `.` and `..`,
/// and with too many slashes. Patterns are about paths.
pub fn absolute(name: &[u8]) -> Cow<'_, [u8]> {
    let is_plain = |part: &[u8]| !matches!(part, b"" | b"." | b"..");
    let rest = name.strip_prefix(b"/");
    if rest.is_some_and(|rest| rest.split(|byte| *byte == b'/').all(is_plain)) {
        return Cow::Borrowed(name);
    }
    let Ok(here) = std::env::current_dir() else {
        return Cow::Borrowed(name);
    };
    let mut path = PathBuf::new();
    for part in here.join(OsStr::from_bytes(name)).components() {
        match part {
            Component::ParentDir => {
                // The directory above a link is that of its target.
                if path.is_symlink()
                    && let Ok(target) = path.canonicalize()
                {
                    path = target;
                }
                path.pop();
            }
            Component::CurDir => (),
            part => path.push(part),
        }
    }
    Cow::Owned(path.into_os_string().into_encoded_bytes())
}

/// True if one of the patterns matches all of `name`. `*` is any text, also with slashes, and `?`
/// is any one byte. Upper and lower case of ASCII letters are the same.
pub fn matches_any(patterns: &[String], name: &[u8]) -> bool {
    let mut patterns = patterns.iter();
    patterns.any(|pattern| matches_in_any_case(pattern.as_bytes(), name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_for_one_path_however_it_is_written() {
        let here = std::env::current_dir().unwrap();
        let here = here.to_str().unwrap();
        for name in ["sub/a.fb", "./sub/a.fb", "x/../sub/./a.fb"] {
            let path = absolute(name.as_bytes());
            assert_eq!(*path, *format!("{here}/sub/a.fb").as_bytes(), "{name}");
        }
        for (name, wanted) in [
            ("/w/./x/../a.fb", "/w/a.fb"),
            ("/w/..a/.b", "/w/..a/.b"),
            ("/w//a.fb", "/w/a.fb"),
            ("/w/sub/", "/w/sub"),
            ("/", "/"),
        ] {
            assert_eq!(*absolute(name.as_bytes()), *wanted.as_bytes(), "{name}");
        }
    }

    #[test]
    fn the_directory_above_a_link_is_that_of_its_target() {
        let tmp = tempfile::tempdir().unwrap();
        let root = tmp.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("real/deep")).unwrap();
        std::os::unix::fs::symlink("real/deep", root.join("link")).unwrap();
        let name = root.join("link/../a.fb");
        let wanted = root.join("real/a.fb");
        let path = absolute(name.as_os_str().as_bytes());
        assert_eq!(*path, *wanted.as_os_str().as_bytes());
    }

    #[test]
    fn one_of_several_patterns_matches_a_whole_name_in_any_case() {
        let patterns = ["*.csv", "*/.git/objects/??/*"].map(str::to_owned);
        for (name, wanted) in [
            ("a/b.CSV", true),
            ("a.csv.gz", false),
            ("/w/.git/objects/ab/cdef", true),
            ("/w/.git/objects/pack/x", false),
        ] {
            assert_eq!(matches_any(&patterns, name.as_bytes()), wanted, "{name}");
        }
        assert!(!matches_any(&[], b""));
    }
}
