//! Paths as a directory and a name.
//!
//! The directory is everything up to and with the last slash, so that joining is appending,
//! whatever the bytes.

use std::hash::BuildHasher;

use backstory_eventlog::event::Bytes;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::{Error, Result};

/// Directory and name of a path.
pub fn split(path: &[u8]) -> (&[u8], &[u8]) {
    path.split_at(
        path.iter()
            .rposition(|b| *b == b'/')
            .map_or(0, |slash| slash + 1),
    )
}

/// The path of a name in a directory.
pub fn join(dir: &[u8], name: &[u8]) -> Bytes {
    [dir, name].concat().into()
}

/// A text among the names of a run.
#[derive(Debug, Clone, Copy)]
pub struct Text {
    start: u32,
    length: u32,
}

/// The names of a run's entities, and the directories they are in, each directory numbered.
#[derive(Debug, Default)]
pub struct Names {
    texts: Vec<u8>,
    directories: Vec<Text>,
    /// By hash, so that no directory is stored twice. Directories with the same hash are in one
    /// list.
    numbers: FxHashMap<u64, Vec<u32>>,
}

impl Names {
    /// Splits a path, numbers its directory and keeps its name; `before` has the entity's directory
    /// and name so far, which are mostly the same.
    pub fn intern(&mut self, path: &[u8], before: Option<(u32, Text)>) -> Result<(u32, Text)> {
        let (dir, name) = split(path);
        if let Some((number, text)) = before
            && self.directory(number) == dir
            && self.text(text) == name
        {
            return Ok((number, text));
        }
        Ok((self.number(dir)?, self.keep(name)?))
    }

    /// The path of a directory.
    pub fn directory(&self, number: u32) -> &[u8] {
        self.text(self.directories[number as usize])
    }

    /// The bytes of a text.
    pub fn text(&self, text: Text) -> &[u8] {
        &self.texts[text.start as usize..][..text.length as usize]
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<Text> {
        let (start, length) = (self.texts.len(), bytes.len());
        if start + length > u32::MAX as usize {
            return Err(Error::TooMany("bytes of names in one run"));
        }
        self.texts.extend_from_slice(bytes);
        Ok(Text {
            start: start as u32,
            length: length as u32,
        })
    }

    fn number(&mut self, dir: &[u8]) -> Result<u32> {
        // Entities of one directory mostly come one after the other.
        if let Some(last) = self.directories.len().checked_sub(1)
            && self.directory(last as u32) == dir
        {
            return Ok(last as u32);
        }
        let hash = FxBuildHasher.hash_one(dir);
        let known = self.numbers.get(&hash).into_iter().flatten().copied();
        if let Some(number) = known
            .into_iter()
            .find(|number| self.directory(*number) == dir)
        {
            return Ok(number);
        }
        let number =
            u32::try_from(self.directories.len()).map_err(|_| Error::TooMany("directories"))?;
        let text = self.keep(dir)?;
        self.directories.push(text);
        self.numbers.entry(hash).or_default().push(number);
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_its_directory_and_its_name() {
        for (path, dir, name) in [
            ("/usr/lib/x", "/usr/lib/", "x"),
            ("/x", "/", "x"),
            ("/", "/", ""),
            ("pipe:3", "", "pipe:3"),
            ("//a//b", "//a//", "b"),
            ("/a/", "/a/", ""),
        ] {
            assert_eq!(split(path.as_bytes()), (dir.as_bytes(), name.as_bytes()));
            assert_eq!(&*join(dir.as_bytes(), name.as_bytes()), path.as_bytes());
        }
    }
}
