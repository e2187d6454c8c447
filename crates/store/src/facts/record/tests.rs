//! Records come back as they were.

use super::*;
use crate::facts::{Listed, Looked, SnapshotEntry};
use proptest::prelude::*;

fn fact(
    numbers: (u64, u64, i64, i64, i64),
    digest: Option<[u8; 32]>,
    availability: Availability,
) -> JournalRecord {
    let (dev, ino, size, mtime, birth) = numbers;
    let ident = Ident {
        dev,
        ino,
        size,
        mtime,
        birth,
        ctime: 0,
        mode: 0,
        nlink: 0,
    };
    JournalRecord::Fact(Fact {
        ident,
        digest: digest.map(Digest),
        availability,
    })
}

proptest! {
    #[test]
    fn a_record_of_the_journal_comes_back_as_it_was(numbers: (u64, u64, i64, i64, i64), digest: Option<[u8; 32]>, words: [String; 3], verified: bool,
        path: Vec<u8>, mode: u32, target: Option<Vec<u8>>, names: Vec<(Vec<u8>, u32, u64)>, mtime: i64, size: u64) {
        let [a, b, c] = words;
        let package = Package { manager: a.clone(), name: b.clone(), version: c, verified };
        let listing = names.into_iter().map(|(name, kind, shared)| Listed { name: name.into(), kind, shared }).collect();
        let file = |name: &[u8], mtime| Looked { name: name.into(), mode, size, mtime };
        let looked = vec![file(&path, mtime), file(&path[path.len() / 2..], i64::MIN), file(&path, i64::MAX)];
        let listed = SnapshotEntry { path: path.clone().into(), mode, target: None, mtime, listing: Some(listing), looked };
        let mtime = if target.is_some() { mtime } else { 0 };
        let entry = SnapshotEntry { path: path.into(), mode, target: target.map(Into::into), mtime, listing: None, looked: Vec::new() };
        for record in [
            fact(numbers, digest, Availability::Stored),
            fact(numbers, digest, Availability::Package(package.clone())),
            fact(numbers, digest, Availability::StoredPackage(package)),
            fact(numbers, None, Availability::Missing(a.clone())),
            JournalRecord::Run(DirectorySnapshot { run: b.clone(), entries: vec![entry.clone(), listed, entry] }),
            JournalRecord::Forgotten(b),
        ] {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            prop_assert_eq!(JournalRecord::decode(&bytes).unwrap(), record);
        }
    }

    #[test]
    fn any_bytes_are_a_record_of_the_journal_or_an_error(noise: Vec<u8>) {
        let _ = JournalRecord::decode(&noise);
    }
}
