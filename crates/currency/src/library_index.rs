//! Reads the dynamic loader's index of libraries, `/etc/ld.so.cache` (ldconfig(8)).
//!
//! ```text
//! file   := "glibc-ld.so.cache1.1"  count: u32  length of strings: u32  flags  unused: 20 bytes
//!           entry*  strings
//! entry  := flags: u32  name: u32  path: u32  unused: 12 bytes
//! ```
//!
//! `name` and `path` are offsets from the begin of the file of texts that end with a zero byte.
//! Numbers have the machine's byte order. glibc 2.32 and later write this form.

use std::collections::HashMap;

const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
const HEADER: usize = 48;
const ENTRY: usize = 24;

/// The paths that the dynamic loader knows for each name of a library.
#[derive(Debug, Default)]
pub struct LibraryIndex {
    paths: HashMap<Vec<u8>, Vec<Vec<u8>>>,
}

impl LibraryIndex {
    /// Reads an index. `None` if the bytes are damaged, or of another form.
    pub fn parse(bytes: &[u8]) -> Option<LibraryIndex> {
        let number = |at: usize| {
            let four = bytes.get(at..at.checked_add(4)?)?;
            Some(u32::from_ne_bytes(four.try_into().ok()?) as usize)
        };
        let text = |at: usize| {
            let rest = bytes.get(at..)?;
            let end = rest.iter().position(|&byte| byte == 0)?;
            Some(rest[..end].to_vec())
        };
        if !bytes.starts_with(MAGIC) {
            return None;
        }
        let mut index = LibraryIndex::default();
        for entry in 0..number(MAGIC.len())? {
            let at = HEADER + entry.checked_mul(ENTRY)?;
            let (name, path) = (text(number(at + 4)?)?, text(number(at + 8)?)?);
            index.paths.entry(name).or_default().push(path);
        }
        Some(index)
    }

    /// The paths of a library: one for each kind of machine that has it.
    pub fn paths(&self, name: &[u8]) -> &[Vec<u8>] {
        self.paths.get(name).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn an_index_has_the_paths_that_ldconfig_prints() {
        let Ok(bytes) = std::fs::read("/etc/ld.so.cache") else {
            return;
        };
        let index = LibraryIndex::parse(&bytes).unwrap();
        let printed = Command::new("/sbin/ldconfig").arg("-p").output().unwrap();
        let printed = String::from_utf8(printed.stdout).unwrap();
        let mut count = 0;
        for line in printed.lines().filter(|line| line.contains(" => ")) {
            let (name, path) = line.trim().split_once(" => ").unwrap();
            let name = name.split(' ').next().unwrap();
            let paths = index.paths(name.as_bytes());
            assert!(paths.iter().any(|known| known == path.as_bytes()), "{line}");
            count += 1;
        }
        assert_eq!(count, index.paths.values().map(Vec::len).sum::<usize>());
    }

    #[test]
    fn a_damaged_index_is_none() {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(7_u32.to_ne_bytes());
        bytes.resize(HEADER + ENTRY, 255);
        assert!(LibraryIndex::parse(&bytes).is_none());
        assert!(LibraryIndex::parse(b"ld.so-1.7.0").is_none());
    }
}
