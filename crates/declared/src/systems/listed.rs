//! A list of declared inputs that the user or another build system wrote: one path or pattern a
//! line. It holds for the whole run. Bazel writes such a list with `bazel cquery`, Buck with
//! `buck2 cquery`.

use std::fs;
use std::path::Path;

use backstory_eventlog::event::Bytes;
use backstory_query::Globs;
use backstory_workflow::paths::absolute;

use crate::error::{Error, Result};

/// A list of paths and patterns.
pub struct Listed {
    entries: Vec<(String, Globs)>,
    base: Bytes,
}

impl Listed {
    /// Reads a list. Empty lines and lines that begin with `#` do not count. `base`: the directory
    /// that relative entries start from.
    ///
    /// # Errors
    /// If the file cannot be read, or a line is no pattern.
    pub fn read(path: &Path, base: &[u8]) -> Result<Listed> {
        let text = fs::read_to_string(path).map_err(|source| Error::Read {
            path: path.to_owned(),
            source,
        })?;
        Listed::parse(&text, base).map_err(|source| Error::Pattern {
            path: path.to_owned(),
            source: Box::new(source),
        })
    }

    /// Parses a list.
    ///
    /// # Errors
    /// If a line is no pattern.
    pub fn parse(text: &str, base: &[u8]) -> backstory_query::Result<Listed> {
        let lines = text.lines().map(str::trim);
        let entries = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let compiled = entries.map(|entry| {
            let whole = String::from_utf8_lossy(&absolute(entry.as_bytes(), base)).into_owned();
            Ok((entry.to_owned(), Globs::new(&[whole])?))
        });
        Ok(Listed {
            entries: compiled.collect::<backstory_query::Result<_>>()?,
            base: base.into(),
        })
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True without any entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// True if an entry names this absolute path.
    pub fn names(&self, path: &[u8]) -> bool {
        self.entries.iter().any(|(_, globs)| globs.matches(path))
    }

    /// The entries that name no path that was read, as absolute paths.
    pub fn unread<'p>(&self, read: impl Iterator<Item = &'p Bytes>) -> Vec<Bytes> {
        let read: Vec<&Bytes> = read.collect();
        let idle = self.entries.iter();
        idle.filter(|(_, globs)| !read.iter().any(|path| globs.matches(path)))
            .map(|(entry, _)| absolute(entry.as_bytes(), &self.base).into())
            .collect()
    }
}
