//! Promises about contents that another store has.

use super::*;

/// A content in a file of another store, and a store of contents that refers to it.
fn referred(bytes: &[u8]) -> (tempfile::TempDir, Contents, Digest, PathBuf) {
    let (tmp, store, _) = with(&[]);
    let path = tmp.path().join("object");
    fs::write(&path, bytes).unwrap();
    let digest = Digest(*blake3::hash(bytes).as_bytes());
    let place = Place {
        store: "another store".to_owned(),
        path: path.clone(),
    };
    store.refer(&digest, bytes.len() as u64, &place).unwrap();
    store.sync().unwrap();
    (tmp, store, digest, path)
}

fn lost(store: &Contents, digest: &Digest) -> String {
    let read = store.read(digest).and_then(|mut object| {
        let mut bytes = Vec::new();
        object
            .read_to_end(&mut bytes)
            .map_err(Error::io("read", store.dir()))
    });
    read.unwrap_err().to_string()
}

#[test]
fn a_content_is_read_from_the_other_store_and_checked() {
    let bytes = noise(1, 400_000);
    let (_tmp, store, digest, path) = referred(&bytes);
    let anew = Contents::open(store.dir()).unwrap();
    assert_eq!(get(&anew, &digest), bytes);
    assert_eq!(anew.size(&digest).unwrap(), Some(400_000));
    assert_eq!(anew.digests().unwrap(), [digest]);
    let stats = anew.stats().unwrap();
    assert_eq!((stats.elsewhere, stats.elsewhere_raw), (1, 400_000));
    assert_eq!(anew.verify(&mut |_, _| {}).unwrap(), []);

    fs::write(&path, noise(2, 400_000)).unwrap();
    assert!(lost(&anew, &digest).contains("has another content"));
    fs::write(&path, noise(1, 399_999)).unwrap();
    assert!(lost(&anew, &digest).contains("has another content"));
    assert_eq!(anew.verify(&mut |_, _| {}).unwrap()[0].digest, Some(digest));
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(lost(&anew, &digest).contains("is not a regular file"));
    assert!(!anew.has(&digest).unwrap());
    fs::remove_dir(&path).unwrap();
    let gone = lost(&anew, &digest);
    assert!(
        gone.contains("is gone") && gone.contains("another store"),
        "{gone}"
    );
    assert!(!anew.has(&digest).unwrap());
}

#[test]
fn a_stored_content_is_never_read_from_elsewhere() {
    let bytes = noise(1, 400_000);
    let (_tmp, store, digest, path) = referred(&bytes);
    assert_eq!(store.place(&digest).unwrap().unwrap().path, path);
    store.put(&mut &bytes[..]).unwrap();
    store.sync().unwrap();
    fs::remove_file(&path).unwrap();
    assert_eq!(store.place(&digest).unwrap(), None);
    assert_eq!(get(&store, &digest), bytes);
    assert_eq!(store.digests().unwrap(), [digest]);
    assert_eq!(store.stats().unwrap().elsewhere, 0);
    assert_eq!(store.verify(&mut |_, _| {}).unwrap(), []);
}

#[test]
fn no_content_is_stored_as_changes_from_one_that_lies_elsewhere() {
    let old = noise(1, 400_000);
    let (_tmp, store, digest, path) = referred(&old);
    let mut new = old;
    new[7] ^= 1;
    let (put, _) = store
        .put_after(&mut &new[..], &mut || Some(digest))
        .unwrap();
    store.sync().unwrap();
    fs::remove_file(&path).unwrap();
    assert_eq!(get(&store, &put), new);
}

#[test]
fn garbage_collection_removes_the_note_and_never_the_other_stores_file() {
    let bytes = noise(1, 400_000);
    let (_tmp, store, digest, path) = referred(&bytes);
    assert_eq!(store.gc(&|_| true, false).unwrap(), Reclaimed::default());
    assert_eq!(get(&store, &digest), bytes);
    assert_eq!(store.gc(&|_| false, false).unwrap().objects, 1);
    assert!(matches!(store.read(&digest), Err(Error::NotKept(_))));
    assert!(path.exists());
}

#[test]
fn no_flipped_bit_of_a_note_leads_to_other_bytes() {
    let bytes = noise(1, 300_000);
    let (_tmp, store, digest, _) = referred(&bytes);
    let note = layout::elsewhere(store.dir(), &digest);
    let whole = fs::read(&note).unwrap();
    for bit in (0..whole.len() * 8).step_by(7) {
        let mut flipped = whole.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        fs::write(&note, flipped).unwrap();
        assert!(lost(&store, &digest).contains("damaged"), "bit {bit}");
        assert!(store.is_elsewhere(&digest).unwrap());
        assert_eq!(store.place(&digest).unwrap(), None);
        assert!(!store.has(&digest).unwrap());
        assert_eq!(store.verify(&mut |_, _| {}).unwrap().len(), 1, "bit {bit}");
    }
}
