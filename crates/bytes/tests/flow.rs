//! Bytes are followed through files that are written here number by number.
#![allow(clippy::unwrap_used)]
#![allow(clippy::single_range_in_vec_init)] // ranges are what is compared

use std::fs;
use std::path::Path;

use backstory_bytes::{ByteFlow, EntityKind, Origins};
use tempfile::TempDir;

/// A file of the engine.
struct Written(Vec<u8>);

impl Written {
    fn new() -> Written {
        Written(b"BSBYTES1".to_vec())
    }

    fn record(mut self, numbers: &[u64]) -> Written {
        for &number in numbers {
            let mut rest = number;
            while rest >= 0x80 {
                self.0.push(rest as u8 | 0x80);
                rest >>= 7;
            }
            self.0.push(rest as u8);
        }
        self
    }

    /// An entity whose inode is its number.
    fn entity(self, id: u64, kind: u64, inode: u64, path: &str) -> Written {
        let mut all = self.record(&[2, id, kind, 9, inode, 0, 100, 1, 2, path.len() as u64]);
        all.0.extend(path.bytes());
        all
    }

    fn end(self, directory: &Path, name: &str) {
        fs::write(directory.join(name), self.record(&[10, 99]).0).unwrap();
    }
}

fn run(length: u64, computed: bool, kind: u64) -> u64 {
    length << 3 | u64::from(computed) << 2 | kind
}

/// `in` goes through a pipe into `out`. One process copies the bytes 10 to 19. The other one writes
/// three of them, a constant, and a sum of two ranges.
fn piped() -> (TempDir, ByteFlow) {
    let home = TempDir::new().unwrap();
    Written::new()
        .entity(1, 0, 5, "/in")
        .record(&[3, 100, 20, 0, 1, 5, 1])
        .entity(2, 1, 6, "pipe:[6]")
        .record(&[6, 2, 0, 10, 2, 1, run(10, false, 1), 105])
        .end(home.path(), "1.bytes");
    Written::new()
        .entity(1, 1, 6, "pipe:[6]")
        .record(&[3, 1, 10, 0, 1, 0, 3])
        .entity(2, 0, 7, "/out")
        .record(&[4, 1 << 30, 2, 1, 0])
        .record(&[4, (1 << 30) + 1, 8, 0, 1 << 30])
        .record(&[6, 2, 0, 5, 4, 3, run(3, false, 1), 4, run(1, false, 0)])
        .record(&[run(1, true, 2), (1 << 30) + 1])
        .end(home.path(), "2.bytes");
    let flow = ByteFlow::read(home.path()).unwrap();
    (home, flow)
}

fn ranges(origins: &Origins, computed: bool) -> Vec<std::ops::Range<u64>> {
    let [source] = &origins.sources[..] else {
        panic!("{origins:?}");
    };
    assert_eq!(
        (source.entity.kind, &source.entity.path[..]),
        (EntityKind::File, &b"/in"[..])
    );
    match computed {
        true => source.computed.iter().collect(),
        false => source.copied.iter().collect(),
    }
}

#[test]
fn bytes_are_followed_through_a_pipe_to_the_bytes_that_were_copied() {
    let (_home, flow) = piped();
    let origins = flow.origins(b"/out", 0..2).unwrap();
    assert_eq!(ranges(&origins, false), [13..15]);
    assert!(ranges(&origins, true).is_empty());
}

#[test]
fn a_computed_byte_has_all_that_it_was_computed_from() {
    let (_home, flow) = piped();
    let origins = flow.origins(b"/out", 4..5).unwrap();
    assert_eq!(ranges(&origins, true), [11..13, 17..18]);
}

#[test]
fn a_constant_has_no_source_and_is_reported_as_one() {
    let (_home, flow) = piped();
    let origins = flow.origins(b"/out", 3..4).unwrap();
    assert!(origins.sources.is_empty());
    assert_eq!(origins.constant.iter().collect::<Vec<_>>(), [3..4]);
}

#[test]
fn written_bytes_have_the_functions_that_were_active_at_their_last_write() {
    let home = TempDir::new().unwrap();
    let mut written = Written::new().entity(1, 0, 7, "/out");
    for (id, name) in [(1, "main"), (2, "put"), (3, "mend")] {
        written = written.record(&[12, id, 10 * id, name.len() as u64]);
        written.0.extend(name.bytes());
        written = written.record(&[3]);
        written.0.extend(b"a.c");
    }
    written
        .record(&[13, 2, 2, 1, 6, 1, 0, 10, 1, 1, run(10, false, 0)])
        .record(&[13, 2, 3, 1, 6, 1, 4, 2, 2, 1, run(2, false, 0)])
        .record(&[13, 0, 6, 1, 8, 2, 3, 1, run(2, false, 0)])
        .end(home.path(), "1.bytes");
    let flow = ByteFlow::read(home.path()).unwrap();
    let writers = |range| {
        let found = flow.origins(b"/out", range).unwrap().writers.into_iter();
        let found = found.map(|(functions, bytes)| {
            let names = functions
                .iter()
                .map(|one| format!("{}:{}", one.name.escape_ascii(), one.line));
            (
                names.collect::<Vec<_>>().join(" "),
                bytes.iter().collect::<Vec<_>>(),
            )
        });
        found.collect::<Vec<_>>()
    };
    let put = |ranges: &[std::ops::Range<u64>]| ("put:20 main:10".to_owned(), ranges.to_vec());
    assert_eq!(writers(0..2), [put(&[0..2])]);
    let mend = ("mend:30 main:10".to_owned(), vec![4..6]);
    assert_eq!(writers(0..10), [mend, put(&[0..4, 6..8])]);
    assert!(writers(8..9).is_empty());
}

#[test]
fn bytes_that_only_decided_are_a_kind_of_their_own_on_the_whole_path() {
    let home = TempDir::new().unwrap();
    Written::new()
        .entity(1, 0, 5, "/in")
        .record(&[3, 1, 50, 0, 1, 0, 1])
        .entity(2, 1, 6, "pipe:[6]")
        .record(&[6, 2, 0, 4, 2, 2, run(3, false, 0), run(1, false, 1), 8])
        .record(&[4, 1 << 30, 3, 4, 0])
        .record(&[11, 2, 2, 1 << 30, 2, 0])
        .end(home.path(), "1.bytes");
    Written::new()
        .entity(1, 1, 6, "pipe:[6]")
        .record(&[3, 1, 4, 0, 1, 0, 3])
        .entity(2, 0, 7, "/out")
        .record(&[6, 2, 0, 4, 4, 1, run(4, false, 1), 1])
        .end(home.path(), "2.bytes");
    let flow = ByteFlow::read(home.path()).unwrap();
    let first = flow.origins(b"/out", 0..2).unwrap();
    let [source] = &first.sources[..] else {
        panic!("{first:?}");
    };
    assert_eq!(source.implicit.iter().collect::<Vec<_>>(), [2..7]);
    assert!(source.copied.is_empty() && source.computed.is_empty());
    assert!(flow.origins(b"/out", 2..3).unwrap().sources.is_empty());
    assert_eq!(ranges(&flow.origins(b"/out", 3..4).unwrap(), false), [7..8]);
}

#[test]
fn parts_of_a_run_that_were_followed_by_themselves_are_apart_and_the_newest_is_first() {
    let home = TempDir::new().unwrap();
    let part = |number: &str, from: u64| {
        Written::new()
            .entity(1, 0, 5, "/in")
            .record(&[3, 1, 50, 0, 1, 0, 1])
            .entity(2, 0, 6, "/out")
            .record(&[6, 2, 0, 4, 2, 1, run(4, false, 1), from])
            .end(home.path(), &format!("{number}.bytes"));
    };
    part("1", 1);
    part("1-1", 11);
    part("2-1", 21);
    let all = ByteFlow::read_all(home.path()).unwrap();
    let first = |flow: &ByteFlow| ranges(&flow.origins(b"/out", 0..1).unwrap(), false);
    let found: Vec<_> = all.iter().map(first).collect();
    assert_eq!(found, [[20..21], [10..11], [0..1]]);
    let whole = ByteFlow::read(home.path()).unwrap();
    assert_eq!(first(&whole), [0..1]);
}

#[test]
fn a_file_that_the_run_did_not_write_has_no_answer() {
    let (_home, flow) = piped();
    assert!(flow.origins(b"/in", 0..1).is_none());
    assert_eq!(flow.written_length(b"/out"), Some(5));
}

#[test]
fn a_read_gets_the_last_write_before_it() {
    let home = TempDir::new().unwrap();
    Written::new()
        .entity(1, 0, 5, "/in")
        .record(&[3, 1, 50, 0, 1, 0, 1])
        .entity(2, 0, 6, "/between")
        .record(&[6, 2, 0, 4, 2, 1, run(4, false, 1), 1])
        .record(&[3, 60, 4, 0, 2, 0, 3])
        .record(&[6, 2, 0, 4, 4, 1, run(4, false, 1), 21])
        .entity(3, 0, 7, "/out")
        .record(&[6, 3, 0, 4, 5, 1, run(4, false, 1), 60])
        .end(home.path(), "1.bytes");
    let flow = ByteFlow::read(home.path()).unwrap();
    assert_eq!(ranges(&flow.origins(b"/out", 0..4).unwrap(), false), [0..4]);
    assert_eq!(
        ranges(&flow.origins(b"/between", 0..4).unwrap(), false),
        [20..24]
    );
}

/// In a replay from a deep log, a reader of a pipe or connection may run before its writer.
#[test]
fn a_byte_of_a_stream_comes_from_its_write_although_that_ran_later() {
    for kind in [1, 2] {
        let home = TempDir::new().unwrap();
        Written::new()
            .entity(1, kind, 6, "a stream")
            .record(&[3, 1, 4, 0, 1, 0, 1])
            .entity(2, 0, 7, "/out")
            .record(&[6, 2, 0, 4, 2, 1, run(4, false, 1), 1])
            .entity(3, 0, 5, "/in")
            .record(&[3, 50, 4, 0, 3, 8, 3])
            .record(&[6, 1, 0, 4, 4, 1, run(4, false, 1), 50])
            .end(home.path(), "1.bytes");
        let flow = ByteFlow::read(home.path()).unwrap();
        let origins = flow.origins(b"/out", 0..4).unwrap();
        assert_eq!(ranges(&origins, false), [8..12]);
    }
}

/// A connection is asked about by the address of its other end.
#[test]
fn what_left_through_a_connection_has_sources_by_its_address() {
    let home = TempDir::new().unwrap();
    Written::new()
        .entity(1, 2, 1 << 32 | 9, "127.0.0.1:40000")
        .record(&[3, 1, 4, 0, 1, 0, 1])
        .entity(2, 2, 9, "127.0.0.1:40000")
        .record(&[6, 2, 0, 4, 2, 1, run(4, false, 1), 1])
        .end(home.path(), "1.bytes");
    let flow = ByteFlow::read(home.path()).unwrap();
    let origins = flow.origins(b"127.0.0.1:40000", 1..3).unwrap();
    let [source] = &origins.sources[..] else {
        panic!("{origins:?}");
    };
    assert_eq!(source.entity.kind, EntityKind::Socket);
    assert_eq!(source.copied.iter().collect::<Vec<_>>(), [1..3]);
}

#[test]
fn moved_bytes_are_those_of_the_other_file() {
    let home = TempDir::new().unwrap();
    Written::new()
        .entity(1, 0, 5, "/in")
        .entity(2, 0, 6, "/out")
        .record(&[7, 1, 30, 2, 0, 10, 1])
        .end(home.path(), "1.bytes");
    let flow = ByteFlow::read(home.path()).unwrap();
    assert_eq!(
        ranges(&flow.origins(b"/out", 2..4).unwrap(), false),
        [32..34]
    );
}

#[test]
fn sets_that_contain_themselves_end() {
    let home = TempDir::new().unwrap();
    Written::new()
        .entity(1, 0, 5, "/in")
        .record(&[3, 1, 9, 0, 1, 0, 1])
        .record(&[5, 1 << 30, 1 << 30, 4])
        .entity(2, 0, 6, "/out")
        .record(&[6, 2, 0, 1, 2, 1, run(1, true, 2), 1 << 30])
        .end(home.path(), "1.bytes");
    let flow = ByteFlow::read(home.path()).unwrap();
    assert_eq!(ranges(&flow.origins(b"/out", 0..1).unwrap(), true), [3..4]);
}

#[test]
fn a_file_cut_at_any_byte_has_what_is_before_the_cut() {
    let (home, _) = piped();
    let whole = fs::read(home.path().join("2.bytes")).unwrap();
    for length in 0..whole.len() {
        fs::write(home.path().join("2.bytes"), &whole[..length]).unwrap();
        let flow = ByteFlow::read(home.path()).unwrap();
        assert!(flow.is_cut(), "{length}");
    }
}

#[test]
fn damage_never_panics() {
    let (home, _) = piped();
    let whole = fs::read(home.path().join("2.bytes")).unwrap();
    for at in 8..whole.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = value;
            fs::write(home.path().join("2.bytes"), &bytes).unwrap();
            if let Ok(flow) = ByteFlow::read(home.path()) {
                let _ = flow.origins(b"/out", 0..10);
            }
        }
    }
}
