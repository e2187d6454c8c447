//! Promises to several writers, each of which remembers what it has read of the others.

use super::*;

fn put(store: &Contents, bytes: &[u8]) -> Digest {
    let (digest, size) = store.put_bytes_after(bytes, &mut || None).unwrap();
    assert_eq!(size, bytes.len() as u64);
    store.sync().unwrap();
    digest
}

#[test]
fn a_writer_finds_what_another_one_put_between_its_batches() {
    let (_tmp, store, _) = with(&[noise(1, 100)]);
    let other = Contents::open(store.dir()).unwrap();
    put(&store, &noise(2, 100));
    put(&other, &noise(3, 100));
    put(&store, &noise(3, 100));
    put(&store, &noise(4, 100));
    assert_eq!(store.stats().unwrap().objects, 4);
    assert_eq!(store.verify(&mut |_, _| {}).unwrap(), []);
}

#[test]
fn a_writer_stores_again_what_another_one_removed_between_its_batches() {
    let (_tmp, store, digests) = with(&[noise(1, 100), noise(2, 100)]);
    let other = Contents::open(store.dir()).unwrap();
    let reclaimed = other.gc(&|digest| *digest == digests[0], false).unwrap();
    assert_eq!(reclaimed.objects, 1);
    assert_eq!(put(&store, &noise(2, 100)), digests[1]);
    let anew = Contents::open(store.dir()).unwrap();
    assert_eq!(get(&anew, &digests[1]), noise(2, 100));
    assert_eq!(get(&anew, &digests[0]), noise(1, 100));
}

#[test]
fn a_writer_appends_nothing_to_a_pack_that_a_killed_one_left_longer() {
    let (_tmp, store, digests) = with(&[noise(1, 100)]);
    let pack = layout::pack(store.dir(), 1);
    let mut bytes = fs::read(&pack).unwrap();
    bytes.extend(b"bso torn");
    fs::write(&pack, &bytes).unwrap();
    let digest = put(&store, &noise(2, 100));
    assert_eq!(fs::read(&pack).unwrap(), bytes);
    put(&store, &noise(3, 100));
    assert_eq!(fs::read(&pack).unwrap(), bytes);
    let anew = Contents::open(store.dir()).unwrap();
    assert_eq!(get(&anew, &digest), noise(2, 100));
    assert_eq!(get(&anew, &digests[0]), noise(1, 100));
}

#[test]
fn a_content_that_is_smaller_than_its_header_costs_no_compression() {
    let (tiny, small) = (vec![b'x'; 127], vec![b'x'; 128]);
    let (_tmp, store, digests) = with(&[tiny.clone(), small.clone()]);
    let stored = store.stats().unwrap().stored;
    assert!((127 + 1..127 + 64).contains(&stored), "{stored}");
    assert_eq!(get(&store, &digests[0]), tiny);
    assert_eq!(get(&store, &digests[1]), small);
}

#[test]
fn the_space_on_disk_is_that_of_the_statistics() {
    let (_tmp, store, _) = with(&samples());
    let disk = store.disk().unwrap();
    assert!(disk > 0);
    assert_eq!(disk, store.stats().unwrap().disk);
}
