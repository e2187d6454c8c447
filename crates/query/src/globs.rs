//! Patterns of paths to leave out.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::{Error, Result};

/// A set of patterns. `*` and `?` stay within a directory, `**` does not. A pattern without a slash
/// matches names in any directory. One that ends in a slash matches everything below that
/// directory.
#[derive(Debug, Clone, Default)]
pub struct Globs {
    set: GlobSet,
    patterns: Vec<String>,
}

impl Globs {
    /// Parses patterns.
    pub fn new<P: AsRef<str>>(patterns: &[P]) -> Result<Globs> {
        let mut set = GlobSetBuilder::new();
        for pattern in patterns {
            let pattern = pattern.as_ref();
            let bad =
                |e: globset::Error| Error::BadPattern(pattern.to_owned(), e.kind().to_string());
            let mut whole = pattern.to_owned();
            if !pattern.contains('/') {
                whole.insert_str(0, "**/");
            } else if pattern.ends_with('/') {
                whole.push_str("**");
            }
            let glob = GlobBuilder::new(&whole)
                .literal_separator(true)
                .backslash_escape(true)
                .build();
            set.add(glob.map_err(bad)?);
        }
        let set = set
            .build()
            .map_err(|e| Error::BadPattern("these together".to_owned(), e.kind().to_string()))?;
        let patterns = patterns.iter().map(|pattern| pattern.as_ref().to_owned());
        Ok(Globs {
            set,
            patterns: patterns.collect(),
        })
    }

    /// The patterns, as they were written.
    pub fn patterns(&self) -> &[String] {
        &self.patterns
    }

    /// True if one of the patterns matches this path.
    pub fn matches(&self, path: &[u8]) -> bool {
        !self.set.is_empty() && self.set.is_match(OsStr::from_bytes(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stay_within_a_directory_and_double_stars_do_not() {
        let cases = [
            ("/usr/*", "/usr/lib", true),
            ("/usr/*", "/usr/lib/x", false),
            ("/usr/**", "/usr/lib/x", true),
            ("/usr/", "/usr/lib/x", true),
            ("/usr/", "/usr2/x", false),
            ("*.o", "/a/b/c.o", true),
            ("*.o", "/a/b.o/c", false),
            ("**/cache/**", "/a/cache/b/c", true),
        ];
        for (pattern, path, wanted) in cases {
            assert_eq!(
                Globs::new(&[pattern]).unwrap().matches(path.as_bytes()),
                wanted,
                "{pattern} {path}"
            );
        }
        assert!(Globs::new(&["*"]).unwrap().matches(b"/a/\xff"));
        assert!(!Globs::default().matches(b"/a"));
    }

    #[test]
    fn a_bad_pattern_is_named() {
        assert!(matches!(Globs::new(&["[a"]), Err(Error::BadPattern(p, _)) if p == "[a"));
    }
}
