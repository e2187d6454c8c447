//! Tests of the arena with hostile first pages, chunks and files.

use super::*;
use crate::mapping::TestMemory;

fn arena(name: &str) -> Arena {
    let arena = Arena::create(&format!("unit-{name}-{}", std::process::id()), 0).unwrap();
    arena.remove();
    arena
}

#[test]
fn no_value_in_the_first_page_makes_a_reader_leave_the_arena() {
    let arena = arena("scribbled");
    let before = arena.chunks();
    for byte in [0xff, 0] {
        arena.scribble(&[byte; HEADER]);
        assert_eq!(arena.chunks(), before);
        assert!(arena.owned().iter().all(|index| *index < before));
        while let Some(index) = arena.take() {
            assert!(index < before);
            arena.write(index, 0, &[1]);
        }
        arena.announce(usize::MAX, 1);
    }
    arena.keep_stocked();
    assert!(arena.grow(1) <= 1);
}

#[test]
fn no_value_in_a_chunk_makes_a_reader_leave_the_chunk() {
    const CHUNKS: usize = 2;
    let memory = TestMemory::new(CHUNKS);
    let arena = std::mem::ManuallyDrop::new(Arena {
        mapping: memory.mapping(CHUNKS),
        growing: Mutex::new(()),
        low: 0,
        at_its_end: AtomicBool::new(false),
        cut_short: AtomicBool::new(false),
    });
    for index in 0..CHUNKS {
        arena.set(&arena.header().free, index);
    }
    arena.set(&arena.header().free, CHUNKS);
    assert_eq!(
        [arena.take(), arena.take(), arena.take()],
        [Some(0), Some(1), None]
    );
    let mut bytes = Vec::new();
    for next in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, usize::MAX] {
        arena.set_next(1, next);
        arena.announce(1, u32::MAX);
        arena.contents(1, &mut bytes);
        assert!((abi::Chunk::SIZE..=CHUNK).contains(&bytes.len()));
        for at in [0, abi::Chunk::SIZE, CHUNK, CHUNK + 1, usize::MAX] {
            arena.records_from(1, at, &mut bytes);
            assert!(bytes.len() <= CHUNK);
        }
    }
    arena.write(1, CHUNK - 8, &[0xff; 8]);
    arena.announce(CHUNKS, 1);
    for device in [0, 1, u32::MAX] {
        let changed = || arena.note_changed(device, u64::MAX - u64::from(device));
        assert_eq!([changed(), changed()], [true, false]);
    }
    arena.give_back(1, usize::MAX);
    assert_eq!(arena.take(), Some(1));
    assert_eq!(arena.chunk_header(1), abi::Chunk::default());
}

#[test]
fn an_arena_that_is_cut_short_is_read_as_zeros() {
    let arena = arena("short");
    arena.survive_truncation();
    let index = arena.take().unwrap();
    arena.write(index, 0, &[1; 64]);
    rustix::fs::ftruncate(&arena.file, 0).unwrap();
    assert_eq!(arena.chunk_header(index), abi::Chunk::default());
    arena.write(index, 0, &[1; 64]);
    arena.keep_stocked();
    assert!(arena.any_free() || arena.take().is_none());
    assert!(arena.replaced_pages() > 0);
}

#[test]
fn an_arena_cut_to_nothing_just_before_it_is_enlarged_is_known_to_be_cut() {
    let arena = arena("regrown");
    let index = arena.take().unwrap();
    arena.write(index, 0, &[1; 64]);
    let old = arena.chunks();
    assert!(!arena.is_cut_short());
    // The test cuts the file between two steps of `grow`. No page is touched while it is too
    // short.
    rustix::fs::ftruncate(&arena.file, 0).unwrap();
    assert_eq!(arena.allocate(old, 1), 1);
    assert_eq!(arena.chunk_header(index), abi::Chunk::default());
    assert!(arena.is_cut_short());
}

#[test]
fn an_arena_whose_chunks_were_cut_off_is_known_to_be_cut_after_it_is_enlarged() {
    let arena = arena("chunkless");
    let index = arena.take().unwrap();
    rustix::fs::ftruncate(&arena.file, HEADER as u64).unwrap();
    assert_eq!(arena.grow(1), 1);
    assert_eq!(arena.chunk_header(index), abi::Chunk::default());
    assert!(arena.is_cut_short());
}

#[test]
fn the_arena_is_its_owners_only_whatever_the_umask() {
    let id = format!("unit-mode-{}", std::process::id());
    let before = rustix::process::umask(Mode::empty());
    let arena = Arena::create(&id, 0).unwrap();
    rustix::process::umask(before);
    let mode = rustix::fs::fstat(&arena.file).unwrap().st_mode;
    arena.remove();
    assert_eq!(mode & 0o7777, 0o600);
}

#[test]
fn a_file_at_the_arenas_path_is_neither_used_nor_changed() {
    let dir = tempfile::tempdir().unwrap();
    let victim = dir.path().join("victim");
    std::fs::write(&victim, "precious").unwrap();
    let id = format!("unit-planted-{}", std::process::id());
    let place = Arena::name(&id).unwrap();
    std::os::unix::fs::symlink(&victim, &place).unwrap();
    let arena = Arena::create(&id, 0).unwrap();
    assert_eq!(arena.path(), None, "a memory file stands in");
    assert!(Arena::open(&place).is_err(), "links are not followed");
    assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
    assert!(place.is_symlink());
    std::fs::remove_file(&place).unwrap();
}

#[test]
fn only_a_regular_file_of_the_user_is_opened_as_a_leftover_arena() {
    let id = format!("unit-left-{}", std::process::id());
    let arena = Arena::create(&id, 0).unwrap();
    let place = arena.path().unwrap().to_owned();
    assert!(Arena::open(&place).is_ok());
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&place, Some(65_533), None).unwrap();
        assert!(Arena::open(&place).is_err(), "somebody else's");
    }
    arena.remove();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &place,
        rustix::fs::FileType::Fifo,
        Mode::RUSR | Mode::WUSR,
        0,
    )
    .unwrap();
    assert!(Arena::open(&place).is_err(), "a pipe");
    std::fs::remove_file(&place).unwrap();
    std::fs::create_dir(&place).unwrap();
    assert!(Arena::open(&place).is_err(), "a directory");
    std::fs::remove_dir(&place).unwrap();
}

#[test]
fn only_a_run_id_names_an_arena() {
    assert!(Arena::name("7g3kq0zt").is_some());
    for id in ["", "../../etc/x", "a/b", "a b"] {
        assert_eq!(Arena::name(id), None, "{id}");
    }
}
