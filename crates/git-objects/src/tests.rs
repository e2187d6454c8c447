//! Promises about objects, in repositories that the tests write themselves.

use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::*;

fn id(number: u8) -> ObjectId {
    ObjectId::new(&[number; 20]).unwrap()
}

fn hex(number: u8) -> String {
    format!("{number:02x}").repeat(20)
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn write(path: &Path, bytes: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn write_loose(objects: &Path, id: &ObjectId, kind: &str, content: &[u8]) {
    let head = format!("{kind} {}\0", content.len());
    let whole = [head.as_bytes(), content].concat();
    write(&id.path_in(objects), zlib(&whole));
}

/// An entry of a pack that states this kind and size.
fn entry(kind: u8, size: u64, rest: &[&[u8]]) -> Vec<u8> {
    let mut bytes = vec![kind << 4 | (size & 15) as u8];
    let mut left = size >> 4;
    while left > 0 {
        *bytes.last_mut().unwrap() |= 0x80;
        bytes.push((left & 0x7f) as u8);
        left >>= 7;
    }
    bytes.extend(rest.concat());
    bytes
}

/// The bytes of a pack with these entries, and of its index. The ids ascend.
fn pack_of(entries: &[(ObjectId, Vec<u8>)]) -> (Vec<u8>, Vec<u8>) {
    let mut pack = b"PACK\0\0\0\x02".to_vec();
    pack.extend((entries.len() as u32).to_be_bytes());
    let mut index = b"\xfftOc\0\0\0\x02".to_vec();
    for first in 0..=u8::MAX {
        let until = entries.iter().filter(|(id, _)| id.bytes()[0] <= first);
        index.extend((until.count() as u32).to_be_bytes());
    }
    for (id, _) in entries {
        index.extend(id.bytes());
    }
    index.extend(vec![0; 4 * entries.len()]);
    for (_, entry) in entries {
        index.extend((pack.len() as u32).to_be_bytes());
        pack.extend(entry);
    }
    (pack, index)
}

fn write_pack(objects: &Path, (pack, index): &(Vec<u8>, Vec<u8>)) {
    write(&objects.join("pack/pack-1.pack"), pack);
    write(&objects.join("pack/pack-1.idx"), index);
}

fn content(objects: &Path, id: &ObjectId) -> io::Result<Vec<u8>> {
    open(objects, id)?.content()
}

/// `abcd` as a whole, `bcdxy` as a delta by its distance, and `bcd` as a delta by an id.
fn with_deltas() -> (Vec<u8>, Vec<u8>) {
    let (first, second) = ([4, 5, 0x91, 1, 3, 2, b'x', b'y'], [5, 3, 0x90, 3]);
    let whole = entry(3, 4, &[&zlib(b"abcd")]);
    let near = entry(6, 8, &[&[whole.len() as u8], &zlib(&first)]);
    let named = entry(7, 4, &[id(3).bytes(), &zlib(&second)]);
    pack_of(&[(id(2), whole), (id(3), near), (id(4), named)])
}

#[test]
fn an_object_comes_from_its_file_or_from_a_pack_through_all_deltas() {
    let tmp = tempfile::tempdir().unwrap();
    let objects = tmp.path();
    write_loose(objects, &id(1), "blob", b"loose");
    write_pack(objects, &with_deltas());
    for (number, expected) in [(1, "loose"), (2, "abcd"), (3, "bcdxy"), (4, "bcd")] {
        let object = open_blob(&id(number).path_in(objects)).unwrap();
        assert_eq!(object.size(), expected.len() as u64);
        assert_eq!(object.content().unwrap(), expected.as_bytes());
    }
    let absent = content(objects, &id(5)).unwrap_err();
    assert_eq!(absent.kind(), ErrorKind::NotFound);
    let nowhere = content(&objects.join("none"), &id(1)).unwrap_err();
    assert_eq!(nowhere.kind(), ErrorKind::NotFound);
    write_loose(objects, &id(6), "tree", b"");
    assert!(open_blob(&id(6).path_in(objects)).is_err());
    assert!(open_blob(&objects.join("ab/other")).is_err());
}

#[test]
fn an_object_whose_own_file_is_damaged_comes_from_a_pack() {
    let tmp = tempfile::tempdir().unwrap();
    let objects = tmp.path();
    write_pack(objects, &with_deltas());
    for number in [2, 5] {
        write(&id(number).path_in(objects), b"");
    }
    assert_eq!(content(objects, &id(2)).unwrap(), b"abcd");
    // No pack has this one. It is there, and damaged.
    let damaged = content(objects, &id(5)).unwrap_err();
    assert_ne!(damaged.kind(), ErrorKind::NotFound);
}

#[test]
fn a_cut_at_any_byte_is_an_error_and_no_other_content() {
    let tmp = tempfile::tempdir().unwrap();
    let objects = tmp.path();
    let (pack, index) = with_deltas();
    let expected = [(2, "abcd"), (3, "bcdxy"), (4, "bcd")];
    let all_right = || {
        expected.map(|(number, expected)| match content(objects, &id(number)) {
            Ok(found) => {
                assert_eq!(found, expected.as_bytes());
                true
            }
            Err(_) => false,
        })
    };
    for cut in (0..index.len()).step_by(5) {
        write_pack(objects, &(pack.clone(), index[..cut].to_vec()));
        assert!(all_right().contains(&false), "index cut at {cut}");
    }
    for cut in 0..pack.len() {
        write_pack(objects, &(pack[..cut].to_vec(), index.clone()));
        all_right();
    }
    write_pack(objects, &(pack, index));
    assert_eq!(all_right(), [true; 3]);
    let loose = zlib(b"blob 5\0loose");
    for cut in 0..loose.len() {
        write(&id(1).path_in(objects), &loose[..cut]);
        if let Ok(found) = content(objects, &id(1)) {
            assert_eq!(found, b"loose", "object cut at {cut}");
        }
    }
}

#[test]
fn an_object_with_more_bytes_than_it_states_ends_one_byte_behind_them() {
    let tmp = tempfile::tempdir().unwrap();
    let objects = tmp.path();
    let large = vec![0; 1 << 20];
    let loose = [&b"blob 5\0"[..], &large].concat();
    write(&id(1).path_in(objects), zlib(&loose));
    let packed = entry(3, 5, &[&zlib(&large)]);
    write_pack(objects, &pack_of(&[(id(2), packed)]));
    for number in [1, 2] {
        let mut object = open(objects, &id(number)).unwrap();
        assert_eq!(object.size(), 5);
        let mut read = Vec::new();
        object.read_to_end(&mut read).unwrap();
        assert_eq!(read.len(), 6);
    }
}

#[test]
fn lengths_and_references_that_lie_are_errors() {
    let tmp = tempfile::tempdir().unwrap();
    let objects = tmp.path();
    let delta = zlib(&[4, 5, 0x91, 1, 3, 2, b'x', b'y']);
    let huge_result = zlib(&[4, 0xff, 0xff, 0xff, 0xff, 0x0f]);
    let base = id(9);
    let lies = [
        entry(3, 5, &[&zlib(b"abcd")]),
        entry(3, 3, &[&zlib(b"abcd")]),
        entry(3, 1 << 59, &[&zlib(b"abcd")]),
        [&[0xb0_u8; 12][..], &zlib(b"abcd")].concat(),
        entry(3, 4, &[b"no stream"]),
        entry(5, 4, &[&zlib(b"abcd")]),
        // Deltas without a base: at the delta itself, before the pack, and absurdly far.
        entry(6, 8, &[&[0], &delta]),
        entry(6, 8, &[&[0x7f], &delta]),
        entry(6, 8, &[&[0xff; 12], &delta]),
        entry(7, 8, &[id(8).bytes(), &delta]),
        // A delta to itself.
        entry(7, 8, &[id(2).bytes(), &delta]),
        entry(7, 6, &[base.bytes(), &huge_result]),
        entry(7, 1 << 40, &[base.bytes(), &delta]),
    ];
    for (at, lie) in lies.into_iter().enumerate() {
        let whole = entry(3, 4, &[&zlib(b"abcd")]);
        write_pack(objects, &pack_of(&[(id(2), lie), (id(9), whole)]));
        assert!(content(objects, &id(2)).is_err(), "lie {at}");
        assert_eq!(content(objects, &id(9)).unwrap(), b"abcd");
    }
    let (pack, index) = with_deltas();
    // The counts say that there are four billion objects, then that there are fewer than before.
    for counts in [[0xff; 4], [0; 4]] {
        let mut lying = index.clone();
        for first in 2..=u8::MAX {
            let at = 8 + 4 * usize::from(first);
            lying[at..at + 4].copy_from_slice(&counts);
        }
        write_pack(objects, &(pack.clone(), lying));
        assert!(content(objects, &id(4)).is_err(), "{counts:?}");
    }
    let mut far = index;
    let end = far.len();
    far[end - 4..].copy_from_slice(&[0xff; 4]);
    write_pack(objects, &(pack, far));
    assert!(content(objects, &id(4)).is_err());
    for head in [
        "blob 99999999999999999999\0x",
        "blob -1\0x",
        "file 1\0x",
        "x",
    ] {
        write(&id(1).path_in(objects), zlib(head.as_bytes()));
        assert!(content(objects, &id(1)).is_err(), "{head:?}");
    }
    write(&id(1).path_in(objects), zlib(&[b'b'; 1000]));
    assert!(content(objects, &id(1)).is_err());
}

#[test]
fn a_chain_of_deltas_that_makes_gigabytes_is_refused_before_it_makes_a_byte() {
    let tmp = tempfile::tempdir().unwrap();
    // Each delta states that it makes as many bytes as an object may have.
    let delta = zlib(&[4, 0x80, 0x80, 0x80, 0x10]);
    let base = (id(1), entry(3, 4, &[&zlib(b"abcd")]));
    let chain = (1..=65).map(|number| {
        let rest = [id(number).bytes(), &delta].map(<[u8]>::to_vec);
        (id(number + 1), entry(7, 5, &[&rest.concat()]))
    });
    let entries: Vec<_> = std::iter::once(base).chain(chain).collect();
    write_pack(tmp.path(), &pack_of(&entries));
    for (number, is_refused) in [(65, false), (66, true)] {
        let error = content(tmp.path(), &id(number)).unwrap_err().to_string();
        assert_eq!(error.contains("make too many bytes"), is_refused, "{error}");
    }
}

/// A repository whose `main` has `file` and `sub/file`, as the blobs 11 and 12.
fn repository(root: &Path) -> PathBuf {
    let objects = root.join(".git/objects");
    let entry = |mode: &str, name: &str, number: u8| {
        [format!("{mode} {name}\0").as_bytes(), id(number).bytes()].concat()
    };
    let top = [entry("100644", "file", 11), entry("40000", "sub", 21)].concat();
    let below = [entry("100755", "file", 12), entry("120000", "link", 13)].concat();
    write_loose(&objects, &id(20), "tree", &top);
    write_loose(&objects, &id(21), "tree", &below);
    let commit = format!("tree {}\nauthor n <e> 0 +0000\n\nFirst\n", hex(20));
    write_loose(&objects, &id(30), "commit", commit.as_bytes());
    write(&root.join(".git/HEAD"), "ref: refs/heads/main\n");
    write(&root.join(".git/refs/heads/main"), hex(30) + "\n");
    objects
}

#[test]
fn a_file_has_the_blob_of_the_commit_that_is_checked_out() {
    let tmp = tempfile::tempdir().unwrap();
    let root = tmp.path().canonicalize().unwrap();
    let objects = repository(&root);
    let blob = |path: &str| {
        let found = CommittedFiles::default().blob(&root.join(path));
        found.map(|blob| (blob.id, blob.path))
    };
    let expected = |number: u8| Some((id(number), id(number).path_in(&objects)));
    assert_eq!(blob("file"), expected(11));
    assert_eq!(blob("sub/file"), expected(12));
    for other in [
        "sub",
        "sub/link",
        "other",
        "sub/other",
        "file/x",
        ".git/HEAD",
    ] {
        assert_eq!(blob(other), None, "{other}");
    }
    // The branch in a list of references, then a commit without a branch.
    let branch = root.join(".git/refs/heads/main");
    fs::remove_file(&branch).unwrap();
    assert_eq!(blob("file"), None);
    let packed = format!("# pack-refs with: peeled\n{} refs/heads/main\n", hex(30));
    write(&root.join(".git/packed-refs"), packed);
    assert_eq!(blob("file"), expected(11));
    write(&root.join(".git/HEAD"), hex(30));
    assert_eq!(blob("file"), expected(11));
    // A further work tree.
    let further = root.join(".git/worktrees/further");
    write(&further.join("HEAD"), "ref: refs/heads/main\n");
    write(&further.join("commondir"), "../..\n");
    let text = format!("gitdir: {}\n", further.display());
    write(&root.join("further/.git"), text);
    assert_eq!(blob("further/sub/file"), expected(12));
    // A commit that leads to no tree.
    write_loose(&objects, &id(30), "commit", b"parent x\n");
    assert_eq!(blob("file"), None);
    write_loose(&objects, &id(30), "blob", b"tree x\n");
    assert_eq!(blob("file"), None);
}

#[test]
fn a_list_of_references_that_is_not_read_is_named() {
    let tmp = tempfile::tempdir().unwrap();
    let root = tmp.path().canonicalize().unwrap();
    repository(&root);
    let head = || work_tree::head(&root).unwrap();
    let commit = Some(hex(30));
    assert_eq!((head().commit, head().unread), (commit.clone(), None));
    // A branch without a commit.
    fs::remove_file(root.join(".git/refs/heads/main")).unwrap();
    assert_eq!((head().commit, head().unread), (None, None));
    let packed = root.join(".git/packed-refs");
    write(&packed, format!("{} refs/heads/main\n", hex(30)));
    assert_eq!((head().commit, head().unread), (commit, None));
    // Too large, and no text.
    let file = fs::OpenOptions::new().write(true).open(&packed).unwrap();
    file.set_len(64 << 20).unwrap();
    let unread = "packed-refs was not read: it has 64 MiB or more";
    assert_eq!(head().unread.as_deref(), Some(unread));
    assert_eq!(head().reference.as_deref(), Some("refs/heads/main"));
    write(&packed, b"\xff");
    let unread = head().unread.unwrap();
    assert!(unread.starts_with("packed-refs was not read: "), "{unread}");
    assert_eq!(head().commit, None);
}
