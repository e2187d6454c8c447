//! Kinds of evidence beside logs, files and the graph: notes of programs, records of the byte
//! engine, and the indexes of packs.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::{BLOCK, Place, flip, flip_blocks};

/// Seals all runs, without a key.
fn seal(place: &Place) {
    let sealed = place.run(&["store", "seal", "--all"]);
    assert_eq!(sealed.status, 0, "{sealed:?}");
    assert_eq!(
        place.faults_after(&[], &mut |_| ()),
        Vec::<String>::new(),
        "nothing has changed"
    );
}

#[test]
fn a_changed_hidden_or_removed_note_of_a_program_is_found() {
    let place = Place::new();
    let emit = format!("{} emit", place.program());
    let line = format!(
        "{emit} begin train; {emit} note loss 0.12; {emit} record org.example.rate 7; {emit} end"
    );
    let run = place.keep(&line, &[]);
    seal(&place);
    for change in [
        BLOCK,
        // The rows of a run that does not exist.
        "UPDATE extended SET id = id + (1 << 40)",
        "DELETE FROM extended",
    ] {
        let found = place.faults_after(&[], &mut |store| {
            let database = Connection::open(store.join("graph.db")).unwrap();
            match change {
                BLOCK => flip_blocks(&database, "extended", "id", "block"),
                sql => database.execute_batch(sql).unwrap(),
            }
        });
        assert!(
            found.contains(&format!("{run} notes")),
            "{change}: {found:?}"
        );
    }
}

#[test]
fn a_changed_record_of_the_byte_engine_is_found() {
    let place = Place::new();
    place.write_aged("in", "text\n");
    let run = place.keep("cat in > one", &[]);
    // A seal has the digests of all files of the directory, so it needs no engine.
    let records = place.stage.store().join("bytes");
    fs::create_dir_all(records.join(&run)).unwrap();
    for name in ["1", "2"] {
        let text = format!("record {name}\n").repeat(20);
        fs::write(records.join(&run).join(name), text).unwrap();
    }
    place.stage.user().owns(&records).unwrap();
    seal(&place);
    let of = |store: &Path, name: &str| store.join("bytes").join(&run).join(name);
    let expect = |change: &mut dyn FnMut(&Path)| {
        let found = place.faults_after(&[], change);
        assert!(found.contains(&format!("{run} bytes")), "{found:?}");
    };
    expect(&mut |store| flip(&of(store, "1")));
    expect(&mut |store| flip(&of(store, "2")));
    expect(&mut |store| fs::remove_file(of(store, "2")).unwrap());
    expect(&mut |store| fs::rename(of(store, "2"), of(store, "3")).unwrap());
    expect(&mut |store| fs::write(of(store, "3"), "more").unwrap());
    expect(&mut |store| fs::remove_dir_all(store.join("bytes")).unwrap());
}

/// Bytes before the first entry of an index (`docs/formats/contents.md`).
const HEAD: usize = 8;
/// Bytes of an entry. The last four are a checksum.
const ENTRY: usize = 60;

/// The index of the store's only pack.
fn index(store: &Path) -> PathBuf {
    let packs = fs::read_dir(store.join("contents/packs")).unwrap();
    let mut paths = packs.map(|entry| entry.unwrap().path());
    let is_index = |path: &PathBuf| path.extension().is_some_and(|end| end == "idx");
    paths.find(is_index).unwrap()
}

/// Changes the entries of an index, and makes their checksums anew.
fn forge(store: &Path, change: impl FnOnce(&mut Vec<Vec<u8>>)) {
    let path = index(store);
    let bytes = fs::read(&path).unwrap();
    let entries = bytes[HEAD..].chunks(ENTRY);
    let mut entries: Vec<Vec<u8>> = entries.map(<[u8]>::to_vec).collect();
    assert!(entries.len() > 2, "{} entries", entries.len());
    change(&mut entries);
    let mut forged = bytes[..HEAD].to_vec();
    for entry in entries {
        let fields = &entry[..ENTRY - 4];
        forged.extend(fields);
        forged.extend(crc32fast::hash(fields).to_le_bytes());
    }
    fs::write(&path, forged).unwrap();
}

#[test]
fn a_forged_index_that_leads_to_no_content_or_another_one_is_found() {
    let place = Place::new();
    place.write_aged("in", &"some text of some length\n".repeat(20));
    let line = "sort in > one; sed s/text/words/ in > two; tr s t < in > three";
    let run = place.keep(line, &["--contents=all"]);
    seal(&place);
    let expect = |what: &str, change: &dyn Fn(&mut Vec<Vec<u8>>)| {
        let found = place.faults_after(&[], &mut |store| forge(store, change));
        assert!(
            found.contains(&format!("{run} contents")),
            "{what}: {found:?}"
        );
    };
    expect("the position of another content", &|entries| {
        let positions: Vec<Vec<u8>> = entries.iter().map(|entry| entry[32..56].to_vec()).collect();
        let others = positions.iter().cycle().skip(1);
        for (entry, position) in entries.iter_mut().zip(others) {
            entry[32..56].copy_from_slice(position);
        }
    });
    expect("a position behind the pack", &|entries| {
        for entry in entries {
            entry[32..40].copy_from_slice(&(1_u64 << 40).to_le_bytes());
        }
    });
    expect("another digest", &|entries| {
        for entry in entries {
            entry[0] ^= 1;
        }
    });
    // The pack behind the last entry is read without an index.
    expect("no entry", &|entries| {
        entries.drain(..entries.len() - 1);
    });
    // An entry with a wrong checksum counts for nothing: the pack itself is read.
    let damaged = place.faults_after(&[], &mut |store| flip(&index(store)));
    assert_eq!(damaged, Vec::<String>::new());
}
