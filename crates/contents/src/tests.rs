//! Promises of the whole store: no content is lost and none is wrong, whatever happens to the
//! files.

mod elsewhere;
mod writers;

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::*;

/// Bytes that hardly compress, different for each seed.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let mut reader = blake3::Hasher::new()
        .update(&seed.to_le_bytes())
        .finalize_xof();
    reader.fill(&mut bytes);
    bytes
}

fn get(contents: &Contents, digest: &Digest) -> Vec<u8> {
    let mut bytes = Vec::new();
    contents
        .read(digest)
        .unwrap()
        .read_to_end(&mut bytes)
        .unwrap();
    bytes
}

/// A store in a new directory, with these contents.
fn with(contents: &[Vec<u8>]) -> (tempfile::TempDir, Contents, Vec<Digest>) {
    let tmp = tempfile::tempdir().unwrap();
    let store = Contents::create(&tmp.path().join("c")).unwrap();
    let put = |bytes: &Vec<u8>| store.put(&mut &bytes[..]).unwrap().0;
    let digests = contents.iter().map(put).collect();
    store.sync().unwrap();
    (tmp, store, digests)
}

fn all_files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in layout::entries(dir).unwrap() {
        match path.is_dir() {
            true => found.extend(all_files(&path)),
            false => found.push(path),
        }
    }
    found.sort();
    found
}

fn samples() -> Vec<Vec<u8>> {
    vec![
        Vec::new(),
        b"x".to_vec(),
        b"a line that repeats itself\n".repeat(40),
        noise(1, 300),
        noise(2, record::SMALL),
        noise(3, record::SMALL + 1),
        b"0123456789".repeat(60_000),
        noise(4, 1 << 20),
    ]
}

#[test]
fn a_content_comes_back_after_the_store_is_reopened() {
    let (_tmp, store, digests) = with(&samples());
    let anew = Contents::open(store.dir()).unwrap();
    for (digest, bytes) in digests.iter().zip(samples()) {
        assert_eq!(*blake3::hash(&bytes).as_bytes(), digest.0);
        assert_eq!(anew.size(digest).unwrap(), Some(bytes.len() as u64));
        assert_eq!(get(&anew, digest), bytes);
        assert_eq!(get(&store, digest), bytes);
    }
    assert_eq!(anew.verify(&mut |_, _| {}).unwrap(), []);
    let stranger = Digest([9; 32]);
    assert!(matches!(anew.read(&stranger), Err(Error::NotKept(d)) if d == stranger));
}

#[test]
fn a_content_is_kept_once_and_compressed_where_that_pays() {
    let (_tmp, store, _) = with(&samples());
    let before = store.stats().unwrap();
    assert_eq!((before.objects, before.files), (8, 3));
    let again = Contents::open(store.dir()).unwrap();
    for bytes in samples() {
        again.put(&mut &bytes[..]).unwrap();
    }
    again.sync().unwrap();
    assert_eq!(again.stats().unwrap(), before);
    let noisy: u64 = 300 + 1 + 2 * record::SMALL as u64 + 1 + (1 << 20);
    assert!(
        before.stored > noisy && before.stored < noisy + 4096,
        "{before:?}"
    );
}

#[test]
fn a_content_in_an_unfinished_batch_can_be_read() {
    let (_tmp, store, _) = with(&[]);
    for bytes in [noise(1, 10), noise(2, record::SMALL * 2)] {
        let (digest, size) = store.put(&mut &bytes[..]).unwrap();
        assert_eq!(store.size(&digest).unwrap(), Some(size));
        assert_eq!(get(&store, &digest), bytes);
    }
}

#[test]
fn everything_is_its_owners_only() {
    let (_tmp, store, _) = with(&samples());
    for file in all_files(store.dir()) {
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o077,
            0,
            "{}",
            file.display()
        );
    }
    for dir in ["", "packs", "objects"] {
        assert_eq!(
            fs::metadata(store.dir().join(dir))
                .unwrap()
                .permissions()
                .mode()
                & 0o777,
            0o700
        );
    }
}

#[test]
fn a_flipped_bit_in_any_byte_of_any_file_is_found() {
    let (_tmp, store, digests) = with(&[
        Vec::new(),
        b"hello\n".to_vec(),
        b"a line that repeats itself\n".repeat(40),
        noise(3, 200),
    ]);
    for file in all_files(store.dir()) {
        let whole = fs::read(&file).unwrap();
        for at in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[at] ^= 1 << (at % 8);
            fs::write(&file, &flipped).unwrap();
            let found = Contents::open(store.dir()).and_then(|store| store.verify(&mut |_, _| {}));
            let told = !matches!(&found, Ok(damages) if damages.is_empty());
            assert!(told, "byte {at} of {}", file.display());
            // No wrong bytes are ever returned.
            if let Ok(store) = Contents::open(store.dir()) {
                for digest in &digests {
                    let mut bytes = Vec::new();
                    if store
                        .read(digest)
                        .and_then(|mut o| o.read_to_end(&mut bytes).map_err(Error::Source))
                        .is_ok()
                    {
                        assert_eq!(*blake3::hash(&bytes).as_bytes(), digest.0);
                    }
                }
            }
        }
        fs::write(&file, &whole).unwrap();
    }
    assert_eq!(store.verify(&mut |_, _| {}).unwrap(), []);
}

#[test]
fn a_flipped_bit_in_a_large_object_is_found() {
    for bytes in [noise(5, record::SMALL + 9), b"0123456789".repeat(60_000)] {
        let (_tmp, store, digests) = with(&[bytes]);
        let file = layout::object(store.dir(), &digests[0]);
        let whole = fs::read(&file).unwrap();
        for at in (0..whole.len())
            .step_by(whole.len() / 300 + 1)
            .chain(0..80)
            .chain([whole.len() - 1])
        {
            let mut flipped = whole.clone();
            flipped[at] ^= 1 << (at % 8);
            fs::write(&file, &flipped).unwrap();
            let damages = store.verify(&mut |_, _| {}).unwrap();
            assert_eq!(damages.len(), 1, "byte {at}");
            assert_eq!(damages[0].digest, Some(digests[0]));
            let mut sink = Vec::new();
            let read = store
                .read(&digests[0])
                .and_then(|mut o| o.read_to_end(&mut sink).map_err(Error::Source));
            assert!(read.is_err(), "byte {at}");
        }
    }
}

#[test]
fn a_crash_at_any_byte_leaves_a_store_that_opens_with_all_that_was_synced() {
    let first = vec![b"first\n".to_vec(), noise(1, 100)];
    let (_tmp, store, old) = with(&first);
    let (pack, idx) = (
        layout::pack(store.dir(), 1),
        layout::pack_index(store.dir(), 1),
    );
    let (pack_before, idx_before) = (fs::read(&pack).unwrap(), fs::read(&idx).unwrap());
    let second = vec![noise(2, 9), b"second ".repeat(9)];
    let new: Vec<Digest> = second
        .iter()
        .map(|b| store.put(&mut &b[..]).unwrap().0)
        .collect();
    store.sync().unwrap();
    let (pack_after, idx_after) = (fs::read(&pack).unwrap(), fs::read(&idx).unwrap());
    // The index is written after the pack: either it is old, or the pack is whole.
    let cuts = (pack_before.len()..=pack_after.len()).map(|cut| (cut, idx_before.len()));
    let cuts = cuts.chain((idx_before.len()..=idx_after.len()).map(|cut| (pack_after.len(), cut)));
    for (in_pack, in_idx) in cuts {
        fs::write(&pack, &pack_after[..in_pack]).unwrap();
        fs::write(&idx, &idx_after[..in_idx]).unwrap();
        let left = Contents::open(store.dir()).unwrap();
        for (digest, bytes) in old.iter().zip(&first) {
            assert_eq!(&get(&left, digest), bytes, "cut at {in_pack}, {in_idx}");
        }
        // Putting a possibly lost content again makes it whole, and verification finds no damage.
        for (digest, bytes) in new.iter().zip(&second) {
            left.put(&mut &bytes[..]).unwrap();
            assert_eq!(&get(&left, digest), bytes);
        }
        left.sync().unwrap();
        assert_eq!(
            left.verify(&mut |_, _| {}).unwrap(),
            [],
            "cut at {in_pack}, {in_idx}"
        );
        let anew = Contents::open(store.dir()).unwrap();
        new.iter()
            .zip(&second)
            .for_each(|(digest, bytes)| assert_eq!(&get(&anew, digest), bytes));
        for extra in all_files(&store.dir().join("packs")) {
            fs::remove_file(extra).unwrap();
        }
    }
}

#[test]
fn a_lost_index_is_made_again() {
    let (_tmp, store, digests) = with(&samples());
    for pack in layout::packs(store.dir()).unwrap() {
        fs::remove_file(layout::pack_index(store.dir(), pack)).unwrap();
    }
    let anew = Contents::open(store.dir()).unwrap();
    for (digest, bytes) in digests.iter().zip(samples()) {
        assert_eq!(get(&anew, digest), bytes);
    }
}

#[test]
fn writers_at_the_same_time_lose_nothing() {
    let (_tmp, store, _) = with(&[]);
    std::thread::scope(|scope| {
        for writer in 0..4u64 {
            let dir = store.dir();
            scope.spawn(move || {
                let own = Contents::create(dir).unwrap();
                for n in 0..40 {
                    own.put(&mut &noise(writer % 2 * 100 + n, 90)[..]).unwrap();
                    if n % 7 == writer {
                        own.sync().unwrap();
                    }
                }
                own.sync().unwrap();
            });
        }
    });
    assert_eq!(
        store.stats().unwrap().objects,
        80,
        "two writers each put the same"
    );
    for n in (0..40).chain(100..140) {
        let bytes = noise(n, 90);
        assert_eq!(
            get(&store, &Digest(*blake3::hash(&bytes).as_bytes())),
            bytes
        );
    }
    assert_eq!(store.verify(&mut |_, _| {}).unwrap(), []);
}

#[test]
fn garbage_collection_keeps_what_is_asked_for_and_gives_the_rest_back() {
    let many: Vec<Vec<u8>> = (0..60)
        .map(|n| noise(1000 + n, 300))
        .chain(samples())
        .collect();
    let (_tmp, store, digests) = with(&many);
    let kept: Vec<bool> = (0..digests.len()).map(|n| n % 3 == 0).collect();
    let keep = |digest: &Digest| {
        digests
            .iter()
            .position(|d| d == digest)
            .is_some_and(|n| kept[n])
    };
    let reader = Contents::open(store.dir()).unwrap();
    let before = store.stats().unwrap();
    let dry = store.gc(&keep, true).unwrap();
    assert_eq!(store.stats().unwrap(), before, "a dry run changes nothing");
    let given = store.gc(&keep, false).unwrap();
    assert_eq!(
        (given, given.objects),
        (dry, kept.iter().filter(|k| !**k).count() as u64)
    );
    let after = store.stats().unwrap();
    assert!(
        after.disk + given.bytes <= before.disk + 4096 && after.disk < before.disk,
        "{after:?}"
    );
    for (n, digest) in digests.iter().enumerate() {
        assert_eq!(store.has(digest).unwrap(), kept[n], "{n}");
        if kept[n] {
            assert_eq!(
                get(&reader, digest),
                many[n],
                "a reader that opened before finds it, too"
            );
        }
    }
    assert_eq!(store.verify(&mut |_, _| {}).unwrap(), []);
    assert_eq!(
        store.gc(&keep, false).unwrap(),
        Reclaimed::default(),
        "nothing is left to give back"
    );
}

#[test]
fn a_killed_writers_remains_are_swept() {
    let (_tmp, store, _) = with(&[]);
    let left = store.dir().join("new.1.2.3");
    fs::write(&left, "half").unwrap();
    store.put(&mut &b"x"[..]).unwrap();
    assert!(!left.exists());
}

#[test]
fn a_newer_format_is_refused() {
    let (_tmp, store, _) = with(&[]);
    fs::write(store.dir().join("format"), "2\n").unwrap();
    assert!(matches!(
        Contents::open(store.dir()),
        Err(Error::NewerFormat { found: 2, .. })
    ));
    assert!(matches!(
        Contents::open(&store.dir().join("no")),
        Err(Error::None(_))
    ));
}

/// Versions of a file of numbered lines, each with one line of its own more.
fn versions(number: usize, lines: usize) -> Vec<Vec<u8>> {
    let line = |seed: u64| format!("{}\n", blake3::hash(&seed.to_le_bytes()).to_hex());
    let begin: String = (0..lines as u64).map(line).collect();
    let all = (1..=number as u64).map(|version| {
        let own: String = (1..=version).map(|one| line(one << 32)).collect();
        [own, begin.clone()].concat().into_bytes()
    });
    all.collect()
}

/// A store with these versions of one file, each put after the one before.
fn with_versions(all: &[Vec<u8>]) -> (tempfile::TempDir, Contents, Vec<Digest>) {
    let (tmp, store, _) = with(&[]);
    let mut digests: Vec<Digest> = Vec::new();
    for bytes in all {
        let former = digests.last().copied();
        let (digest, size) = store.put_after(&mut &bytes[..], &mut || former).unwrap();
        assert_eq!(
            (digest, size),
            (digest_of(&mut &bytes[..]).unwrap().0, bytes.len() as u64)
        );
        store.sync().unwrap();
        digests.push(digest);
    }
    (tmp, store, digests)
}

#[test]
fn a_new_version_of_a_file_costs_its_changes() {
    // The versions of the second file are too large for a pack as a whole.
    for lines in [1000, 10_000] {
        let all = versions(40, lines);
        let (_tmp, store, digests) = with_versions(&all);
        for (digest, bytes) in digests.iter().zip(&all) {
            assert!(get(&store, digest) == *bytes);
        }
        let one = lines as u64 * 65;
        let stats = store.stats().unwrap();
        assert_eq!(stats.objects, 40);
        // Compressed hexadecimal digits take half of their space. One version in nine is whole.
        assert!(stats.stored < 5 * one * 6 / 10, "{} of {one}", stats.stored);
        assert!(stats.stored > 4 * one / 2, "{} of {one}", stats.stored);
        assert!(store.verify(&mut |_, _| ()).unwrap().is_empty());
        let again = Contents::open(store.dir()).unwrap();
        assert!(get(&again, &digests[39]) == all[39]);
    }
}

#[test]
fn a_content_survives_the_removal_of_the_version_it_is_stored_as_changes_of() {
    for lines in [1000, 10_000] {
        // The version 9 is whole, as the first is: the chain before it is as long as it may be.
        for (kept, whole) in [(vec![0, 4, 9, 10], 2), (vec![1, 4, 11], 2), (vec![3], 1)] {
            let all = versions(12, lines);
            let (_tmp, store, digests) = with_versions(&all);
            let keep = |digest: &Digest| kept.iter().any(|at: &usize| digests[*at] == *digest);
            let promised = store.gc(&keep, true).unwrap();
            let before = store.stats().unwrap();
            let given = store.gc(&keep, false).unwrap();
            let after = store.stats().unwrap();
            assert_eq!((promised, given.objects), (given, 12 - kept.len() as u64));
            let indexes = 8 + 60 * 12;
            assert!(
                (given.bytes..=given.bytes + indexes)
                    .contains(&before.disk.saturating_sub(after.disk)),
                "{before:?} {after:?} {given:?}"
            );
            let one = before.stored / 2;
            assert!(
                after.stored < whole * one + one / 10,
                "{before:?} {after:?}"
            );
            assert_eq!(after.objects, kept.len() as u64);
            for (at, digest) in digests.iter().enumerate() {
                match kept.contains(&at) {
                    true => assert!(get(&store, digest) == all[at]),
                    false => assert!(!store.has(digest).unwrap()),
                }
            }
            assert!(store.verify(&mut |_, _| ()).unwrap().is_empty());
        }
    }
}

#[test]
fn a_content_with_too_many_changes_for_a_pack_is_stored_whole() {
    let grown = |parts: u64| (0..parts).flat_map(|part| noise(part, 100_000)).collect();
    let all: Vec<Vec<u8>> = (1..=8).map(grown).collect();
    let (_tmp, store, digests) = with_versions(&all);
    let before = store.stats().unwrap();
    let one = all[7].len() as u64;
    assert!(before.stored < one + 110_000, "{before:?}");
    store
        .gc(&|digest| [digests[1], digests[7]].contains(digest), false)
        .unwrap();
    assert!(get(&store, &digests[1]) == all[1]);
    assert!(get(&store, &digests[7]) == all[7]);
    assert_eq!(store.stats().unwrap().files, 1);
    assert!(store.verify(&mut |_, _| ()).unwrap().is_empty());
}

#[test]
fn damage_of_a_version_is_reported_for_all_that_are_stored_as_its_changes() {
    let all = versions(3, 1000);
    let (_tmp, store, digests) = with_versions(&all);
    let pack = layout::pack(store.dir(), 1);
    let mut bytes = fs::read(&pack).unwrap();
    bytes[record::HEADER + 50] ^= 1;
    fs::write(&pack, bytes).unwrap();
    let store = Contents::open(store.dir()).unwrap();
    let damages = store.verify(&mut |_, _| ()).unwrap();
    let named: Vec<Option<Digest>> = damages.iter().map(|damage| damage.digest).collect();
    for digest in &digests {
        assert!(named.contains(&Some(*digest)), "{damages:?}");
        assert!(matches!(store.read(digest), Err(Error::Damaged { .. })));
    }
    let last = store.read(&digests[2]).err().unwrap().to_string();
    assert!(
        last.contains("is stored as changes of is damaged"),
        "{last}"
    );
    // A damaged version serves as no base: the next one is stored whole.
    let next = versions(4, 1000).pop().unwrap();
    let (digest, _) = store
        .put_after(&mut &next[..], &mut || Some(digests[2]))
        .unwrap();
    store.sync().unwrap();
    assert!(get(&store, &digest) == next);
}

/// One edit of a content: bytes from this place on, in thousandths of the length, are replaced.
type Edit = (usize, usize, Vec<u8>);

fn edited(content: &[u8], (place, removed, new): &Edit) -> Vec<u8> {
    let from = content.len() * place / 1000;
    let to = (from + removed).min(content.len());
    [&content[..from], new, &content[to..]].concat()
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(32))]

    #[test]
    fn each_version_of_a_file_is_rebuilt_from_the_changes_between_versions(
        seed in proptest::prelude::any::<u64>(),
        length in 0_usize..40_000,
        edits in proptest::collection::vec(
            (0_usize..=1000, 0_usize..3000, proptest::collection::vec(0_u8..=255, 0..300)),
            1..24,
        ),
    ) {
        let mut all = vec![noise(seed, length)];
        for edit in &edits {
            all.push(edited(&all[all.len() - 1], edit));
        }
        let (_tmp, store, digests) = with_versions(&all);
        let again = Contents::open(store.dir()).unwrap();
        for (digest, bytes) in digests.iter().zip(&all) {
            proptest::prop_assert!(get(&again, digest) == *bytes);
        }
    }
}
