//! Makes paths of what a document calls its files.
//!
//! Invariant: a path is absolute and has neither `.` nor `..`, so that none leads out of `--root`.

use crate::ImportJob;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The most bytes of a name. Longer ones are no path of Linux.
const LONGEST: usize = 4096;

/// The directories that a document's paths are relative to.
#[derive(Debug, Clone)]
pub(crate) struct Locations {
    root: Vec<u8>,
    base: Vec<u8>,
    /// The user did not name the base.
    is_guess: bool,
    /// A relative path was met.
    pub(crate) has_relative: bool,
}

impl Locations {
    /// Those of an import. Relative paths begin at `--cwd`, or at the document's directory.
    pub(crate) fn of(job: &ImportJob<'_>) -> Locations {
        let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
        let root = job.root.as_deref().map(bytes).unwrap_or_default();
        Locations {
            root: root.strip_suffix(b"/").unwrap_or(&root).to_vec(),
            base: match &job.cwd {
                Some(cwd) => bytes(cwd),
                None => bytes(&job.files.directory()),
            },
            is_guess: job.cwd.is_none(),
            has_relative: false,
        }
    }

    /// Takes this directory as the base, unless the user named one.
    pub(crate) fn learn_base(&mut self, directory: &[u8]) {
        if self.is_guess && directory.starts_with(b"/") {
            (self.base, self.is_guess) = (directory.to_vec(), false);
        }
    }

    /// The same, with another base: a directory as the command named it.
    pub(crate) fn at(&self, directory: &[u8]) -> Locations {
        Locations {
            base: directory.to_vec(),
            is_guess: false,
            ..self.clone()
        }
    }

    /// The base, as the header of the run has it.
    pub(crate) fn base(&self) -> &[u8] {
        &self.base
    }

    /// The base, if a path was taken to begin there without knowledge.
    pub(crate) fn guess(&self) -> Option<PathBuf> {
        let path = PathBuf::from(std::ffi::OsStr::from_bytes(&self.base));
        (self.has_relative && self.is_guess).then_some(path)
    }

    /// A path of this machine, as the command named it.
    pub(crate) fn unrooted<'p>(&self, path: &'p [u8]) -> &'p [u8] {
        path.strip_prefix(&*self.root).unwrap_or(path)
    }

    /// The path of a file on this machine. `None` for a text that is no path.
    pub(crate) fn path(&mut self, text: &[u8]) -> Option<Vec<u8>> {
        if text.is_empty() || text.len() > LONGEST || text.contains(&0) {
            return None;
        }
        let is_absolute = text.starts_with(b"/");
        self.has_relative |= !is_absolute;
        let begin: &[u8] = if is_absolute { b"" } else { &self.base };
        Some([&self.root, &*plain(&[begin, b"/", text].concat())].concat())
    }
}

/// A path without `.`, `..` and empty parts.
fn plain(path: &[u8]) -> Vec<u8> {
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()),
            other => parts.push(other),
        }
    }
    [b"/", &*parts.join(&b'/')].concat()
}

/// The path of a `file:` URI of this machine (RFC 8089).
pub(crate) fn file_path(uri: &[u8]) -> Option<Vec<u8>> {
    let rest = uri.strip_prefix(b"file:")?;
    let path = match rest.strip_prefix(b"//") {
        Some(rest) => {
            let host = rest.iter().position(|byte| *byte == b'/')?;
            match &rest[..host] {
                b"" | b"localhost" => &rest[host..],
                _ => return None,
            }
        }
        None => rest,
    };
    let path = unescaped(path);
    path.starts_with(b"/").then_some(path)
}

/// A text without percent-encoding (RFC 3986).
pub(crate) fn unescaped(text: &[u8]) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        let pair = match (byte, after) {
            (b'%', [high, low, ..]) => digit(*high).zip(digit(*low)),
            _ => None,
        };
        match pair {
            Some((high, low)) => {
                out.push(high << 4 | low);
                rest = &after[2..];
            }
            None => {
                out.push(byte);
                rest = after;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn below(root: &str) -> Locations {
        Locations {
            root: root.into(),
            base: b"/w".to_vec(),
            is_guess: true,
            has_relative: false,
        }
    }

    #[test]
    fn a_path_never_leads_out_of_the_root() {
        let mut locations = below("/r");
        for (text, wanted) in [
            ("/../../etc/passwd", "/r/etc/passwd"),
            ("../../x", "/r/x"),
            ("a/./b//c/", "/r/w/a/b/c"),
        ] {
            let path = locations.path(text.as_bytes()).unwrap();
            assert_eq!(String::from_utf8(path).unwrap(), wanted);
        }
        assert_eq!(locations.path(b"/a\0b"), None);
        assert_eq!(locations.path(&[b'a'; 5000]), None);
    }

    #[test]
    fn a_file_uri_gives_the_bytes_of_the_path() {
        assert_eq!(file_path(b"file:///a%20b/%FF").unwrap(), b"/a b/\xff");
        assert_eq!(file_path(b"file:/a").unwrap(), b"/a");
        assert_eq!(file_path(b"file://localhost/a").unwrap(), b"/a");
        assert_eq!(file_path(b"file://elsewhere/a"), None);
        assert_eq!(file_path(b"http://a/b"), None);
        assert_eq!(unescaped(b"%4g%2"), b"%4g%2");
    }
}
