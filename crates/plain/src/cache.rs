//! The loader's cache of libraries, `/etc/ld.so.cache`, in the format that glibc has written since
//! 2.2, alone or behind the older one.
//!
//! In: the bytes of the file. Out: the paths at which the loader looks for a name.
//!
//! Absent on purpose: the choice between several paths, which depends on the processor. A name is
//! left out if all of its paths are for certain processors: on others, the loader searches
//! directories.

use std::collections::{BTreeMap, BTreeSet};

const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
const OLD_MAGIC: &[u8] = b"ld.so-1.7.0\0";
/// Flags of an entry: a library for glibc of x86-64.
const X86_64: u32 = 0x0303;
/// Bytes before the entries, and bytes of an entry.
const HEAD: usize = 48;
const ENTRY: usize = 24;

/// The 64-bit libraries of the cache.
#[derive(Debug, Clone, Default)]
pub struct LibraryCache {
    paths: BTreeMap<Vec<u8>, Vec<Vec<u8>>>,
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let field = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(field.try_into().ok()?))
}

impl LibraryCache {
    /// Reads a cache. `None`: it has another format, or is damaged.
    pub fn parse(file: &[u8]) -> Option<LibraryCache> {
        let start = match file.starts_with(OLD_MAGIC) {
            // The older table is followed by this one, at the next multiple of 8.
            true => (16 + 12 * word(file, 12)? as usize).next_multiple_of(8),
            false => 0,
        };
        let table = file.get(start..)?;
        if !table.starts_with(MAGIC) {
            return None;
        }
        let text = |at: u32| {
            let from = table.get(at as usize..)?;
            Some(from.split(|&b| b == 0).next()?.to_vec())
        };
        let count = word(table, 20)? as usize;
        let entries = table.get(HEAD..)?.get(..count.checked_mul(ENTRY)?)?;
        let mut paths = BTreeMap::<_, Vec<_>>::new();
        let mut found_everywhere = BTreeSet::new();
        for entry in entries.chunks_exact(ENTRY) {
            if word(entry, 0)? == X86_64 {
                let (name, path) = (text(word(entry, 4)?)?, text(word(entry, 8)?)?);
                // The release of the kernel, and the 64 bits of the processor.
                let wants = [12, 16, 20].map(|at| word(entry, at));
                if wants == [Some(0); 3] {
                    found_everywhere.insert(name.clone());
                }
                paths.entry(name).or_default().push(path);
            }
        }
        paths.retain(|name, _| found_everywhere.contains(name));
        Some(LibraryCache { paths })
    }

    /// The paths of a name, one for each kind of processor. Empty: the loader looks elsewhere.
    pub fn paths(&self, name: &[u8]) -> &[Vec<u8>] {
        self.paths.get(name).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries whose path has this word are for certain processors.
    const CERTAIN: &str = "glibc-hwcaps";

    fn cache(entries: &[(u32, &str, &str)]) -> Vec<u8> {
        let strings = HEAD + ENTRY * entries.len();
        let (mut table, mut text) = (Vec::new(), Vec::new());
        for (flags, name, path) in entries {
            let mut place = |s: &str| {
                let at = (strings + text.len()) as u32;
                text.extend_from_slice(s.as_bytes());
                text.push(0);
                at
            };
            let processor = u32::from(path.contains(CERTAIN)) << 30;
            let (name, path) = (place(name), place(path));
            for word in [*flags, name, path, 0, 0, processor] {
                table.extend_from_slice(&word.to_le_bytes());
            }
        }
        let mut file = MAGIC.to_vec();
        file.extend_from_slice(&(entries.len() as u32).to_le_bytes());
        file.resize(HEAD, 0);
        [file, table, text].concat()
    }

    #[test]
    fn a_name_leads_to_its_64_bit_libraries() {
        let file = cache(&[
            (X86_64, "liba.so.1", "/lib/liba.so.1"),
            (3, "liba.so.1", "/lib32/liba.so.1"),
            (X86_64, "liba.so.1", "/lib/glibc-hwcaps/x86-64-v3/liba.so.1"),
            (X86_64, "libc.so.1", "/lib/glibc-hwcaps/x86-64-v3/libc.so.1"),
        ]);
        let cache = LibraryCache::parse(&file).unwrap();
        assert_eq!(cache.paths(b"liba.so.1").len(), 2);
        assert!(cache.paths(b"libb.so.1").is_empty());
        assert!(cache.paths(b"libc.so.1").is_empty());
        let mut old = OLD_MAGIC.to_vec();
        old.extend(1u32.to_le_bytes());
        old.resize(32, 0);
        let both = LibraryCache::parse(&[old, file].concat()).unwrap();
        assert_eq!(both.paths(b"liba.so.1").len(), 2);
    }

    #[test]
    fn a_damaged_cache_is_none_at_every_length() {
        let file = cache(&[(X86_64, "liba.so.1", "/lib/liba.so.1")]);
        for length in 0..file.len() - 30 {
            let cut = LibraryCache::parse(&file[..length]);
            assert!(cut.is_none_or(|cut| cut.paths.is_empty()), "{length}");
        }
        let mut huge = file;
        huge[20..24].fill(0xff);
        assert!(LibraryCache::parse(&huge).is_none());
    }
}
