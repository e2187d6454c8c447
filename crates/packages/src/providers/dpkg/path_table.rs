//! Which packages list a path, by the hash of the path.
//!
//! In: pairs of a path's hash and a package's number. Out: the numbers for a hash, in the order in
//! which they were added. The table is in memory, or in a file that [`super::index`] describes. A
//! file is read where a look-up needs it.
//!
//! The hashes are evenly distributed, so that their first bits divide them into buckets of about
//! equal size. Storing some hundred thousand paths as text would take too much memory.
//!
//! The hash is XXH3 with 64 bits. Somebody can make paths that collide. But only root writes to the
//! directories of packages, and a checksum is found by the path itself.

use std::fs::File;
use std::os::unix::fs::FileExt;

use xxhash_rust::xxh3::xxh3_64;

/// The bits of a hash that are the number of its bucket.
const BUCKET_BITS: u32 = 12;

/// The number of buckets.
pub const BUCKETS: usize = 1 << BUCKET_BITS;

/// Bytes of an entry in a file: the hash (8), the package (4).
pub const ENTRY: usize = 12;

/// The packages that list each path.
pub struct PathTable {
    /// Where the entries of each bucket begin, and where the last ones end.
    bounds: Vec<u32>,
    entries: Entries,
}

enum Entries {
    Memory(Vec<(u64, u32)>),
    /// The entries begin at this place of the file.
    File(File, u64),
}

/// The hash of a path. It is the same in every version of the program, because a file has it.
pub fn path_hash(path: &[u8]) -> u64 {
    xxh3_64(path)
}

fn bucket_of(hash: u64) -> usize {
    (hash >> (u64::BITS - BUCKET_BITS)) as usize
}

impl PathTable {
    /// The table of these pairs.
    pub fn new(pairs: &[(u64, u32)]) -> PathTable {
        let mut bounds = vec![0; BUCKETS + 1];
        for (hash, _) in pairs {
            bounds[bucket_of(*hash) + 1] += 1;
        }
        for bucket in 0..BUCKETS {
            bounds[bucket + 1] += bounds[bucket];
        }
        let mut next = bounds.clone();
        let mut entries = vec![(0, 0); pairs.len()];
        for pair in pairs {
            let place = &mut next[bucket_of(pair.0)];
            entries[*place as usize] = *pair;
            *place += 1;
        }
        PathTable {
            bounds,
            entries: Entries::Memory(entries),
        }
    }

    /// The table whose bounds were read from a file, with the entries from `place` on. `None` if
    /// the bounds are those of no table.
    pub fn in_file(bounds: Vec<u32>, file: File, place: u64) -> Option<PathTable> {
        let is_sorted = bounds.is_sorted() && bounds.first() == Some(&0);
        (is_sorted && bounds.len() == BUCKETS + 1).then(|| PathTable {
            bounds,
            entries: Entries::File(file, place),
        })
    }

    /// The bounds of the buckets.
    pub fn bounds(&self) -> &[u32] {
        &self.bounds
    }

    /// The entries in the form of a file. Empty if they are in a file already.
    pub fn encoded_entries(&self) -> Vec<u8> {
        let Entries::Memory(entries) = &self.entries else {
            return Vec::new();
        };
        let mut bytes = Vec::with_capacity(entries.len() * ENTRY);
        for (hash, package) in entries {
            bytes.extend(hash.to_le_bytes());
            bytes.extend(package.to_le_bytes());
        }
        bytes
    }

    /// The packages that list a path with this hash. None if the file cannot be read.
    pub fn packages(&self, hash: u64) -> Vec<u32> {
        let bucket = bucket_of(hash);
        let (from, to) = (self.bounds[bucket], self.bounds[bucket + 1]);
        match &self.entries {
            Entries::Memory(entries) => {
                let all = entries[from as usize..to as usize].iter();
                let here = all.filter(|(other, _)| *other == hash);
                here.map(|(_, package)| *package).collect()
            }
            Entries::File(file, place) => {
                let mut bytes = vec![0; (to - from) as usize * ENTRY];
                let at = place + u64::from(from) * ENTRY as u64;
                if file.read_exact_at(&mut bytes, at).is_err() {
                    return Vec::new();
                }
                let (entries, _) = bytes.as_chunks::<ENTRY>();
                let here = entries
                    .iter()
                    .filter(|entry| entry[..8] == hash.to_le_bytes());
                here.map(|entry| u32::from_le_bytes([entry[8], entry[9], entry[10], entry[11]]))
                    .collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// The values are those of the library of XXH3.
    #[test]
    fn the_hash_of_a_path_in_an_index_is_xxh3() {
        assert_eq!(path_hash(b""), 0x2d06_8005_38d3_94c2);
        assert_eq!(path_hash(b"/usr/bin/tool"), 0x3bf6_7345_e905_92e4);
        let long = [&b"/usr/share/doc/"[..], &[b'a'; 300]].concat();
        assert_eq!(path_hash(&long), 0x71b5_5edd_dcb0_0b99);
    }

    #[test]
    fn a_table_in_a_file_answers_as_the_one_in_memory() {
        let hashes: Vec<u64> = (0..2000_u32)
            .map(|number| path_hash(&number.to_le_bytes()))
            .collect();
        // Each third path has a second package.
        let pairs: Vec<(u64, u32)> = (0_u32..)
            .zip(&hashes)
            .flat_map(|(at, hash)| {
                (0..=u32::from(at.is_multiple_of(3))).map(move |more| (*hash, at + more))
            })
            .collect();
        let table = PathTable::new(&pairs);
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"head").unwrap();
        file.write_all(&table.encoded_entries()).unwrap();
        let read = PathTable::in_file(table.bounds().to_vec(), file, 4).unwrap();
        for (at, hash) in (0_u32..).zip(&hashes) {
            let wanted: Vec<u32> = (at..=at + u32::from(at.is_multiple_of(3))).collect();
            assert_eq!(table.packages(*hash), wanted);
            assert_eq!(read.packages(*hash), wanted);
        }
        assert_eq!(table.packages(path_hash(b"other")), [0; 0]);
        assert_eq!(read.packages(path_hash(b"other")), [0; 0]);
    }
}
