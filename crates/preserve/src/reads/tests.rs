//! Tests of the set of files that the run has read.

use super::unfiltered::UnfilteredStart;
use super::*;
use backstory_abi::{EXEC_ANNOUNCED, F_CHILD, LOAD_ANNOUNCED, OPAQUE_UNGUARDED, op};
use backstory_eventlog::chunk::ChunkBuilder;
use backstory_eventlog::record::RecordBuilder;
use backstory_files::Ident;
use rustix::fs::CWD;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use tempfile::TempDir;

#[test]
fn a_process_that_executes_itself_is_not_taken_for_the_supervisor() {
    let mut known = ReadSet::default();
    known.read_interpreter(b"/proc/self/exe");
    assert!(known.files.is_empty(), "the loader of the supervisor");
}

#[test]
fn a_read_by_a_link_of_a_process_may_be_of_any_file() {
    let everything_after = |path: &str| {
        let mut known = ReadSet::default();
        assert!(known.read(path.as_bytes(), false) && known.files.is_empty());
        known.everything
    };
    for path in [
        "/proc/self/cwd/data",
        "/proc/7/root/data",
        "/proc/7/task/8/cwd/data",
        "/proc/7/fd/3",
        "/proc/../data",
        "/dev/../data",
    ] {
        assert!(everything_after(path), "{path}");
    }
    for path in [
        "/proc/self/exe",
        "/proc/7/maps",
        "/proc/self/cwd",
        "/proc/sys/fs/root/x",
        "/sys/class/root/x",
        "/dev/null",
        "/dev/fd/3",
    ] {
        assert!(!everything_after(path), "{path}");
    }
}

#[test]
fn a_pipe_in_the_place_of_an_interpreter_delays_no_look_up() {
    let dir = tempfile::tempdir().unwrap();
    let [script, pipe] = ["script", "pipe"].map(|name| dir.path().join(name));
    std::fs::write(&script, "#!/etc/passwd\n").unwrap();
    rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let mut known = ReadSet::default();
    known.read_interpreter(pipe.as_os_str().as_bytes());
    assert!(known.files.is_empty());
    known.read_interpreter(script.as_os_str().as_bytes());
    assert_eq!(known.files.len(), 1);
}

const SUPERVISOR: u32 = 2;
const PROCESS: u32 = 7;
const CHILD: u32 = 9;

fn bytes(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}

fn file(path: &Path) -> (Ident, FileKey) {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    let found = rustix::fs::statx(CWD, path, AtFlags::empty(), wanted).unwrap();
    let ident = Ident::from(&found);
    (ident, crate::key(&ident))
}

/// A directory with a plain program, the library that its loader takes, and `d/file`.
fn directory() -> (TempDir, unfiltered::LoadedFiles) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("d")).unwrap();
    for name in ["program", "library", "d/file"] {
        std::fs::write(dir.path().join(name), name).unwrap();
    }
    let (library, _) = file(&dir.path().join("library"));
    let loaded = move |program: &Path| program.ends_with("program").then(|| vec![library]);
    (dir, Box::new(loaded))
}

/// The same, and a process that is in this directory.
fn process_in_directory() -> (TempDir, ReadSet) {
    let (dir, loaded) = directory();
    let mut known = ReadSet {
        loaded: Some(loaded),
        ..ReadSet::default()
    };
    known.paths.starts(PROCESS, Some(bytes(dir.path())));
    (dir, known)
}

/// Takes over a record of a process that the supervisor has started.
fn apply(known: &mut ReadSet, pid: u32, record: &mut RecordBuilder) {
    apply_in(known, (pid, pid.into()), record);
}

/// Takes over a record of a process and of one of its programs.
fn apply_in(known: &mut ReadSet, (pid, epoch): (u32, u64), record: &mut RecordBuilder) {
    let head = Chunk {
        pid,
        tid: pid,
        epoch,
        ppid: SUPERVISOR,
        ..Chunk::default()
    };
    known.apply(&Taken {
        time: 0,
        thread: ThreadKey::of(&head),
        bytes: record.finish(),
    });
}

/// The process opens a file in its directory for reading.
fn opens(known: &mut ReadSet, pid: u32, name: &str) {
    let mut record = RecordBuilder::new();
    record.start(op::OPEN, 9).fd(libc::AT_FDCWD);
    apply(known, pid, record.string(name.as_bytes()).result(3));
}

fn executes(known: &mut ReadSet, name: &[u8]) {
    let mut record = RecordBuilder::new();
    record.start(op::EXEC, 8).fd(libc::AT_FDCWD);
    apply(known, PROCESS, record.aux(EXEC_ANNOUNCED).string(name));
}

#[test]
fn a_program_without_the_filter_has_read_its_libraries_and_keeps_its_directory() {
    let (dir, mut known) = process_in_directory();
    executes(&mut known, b"program");
    for name in ["program", "library"] {
        let (_, key) = file(&dir.path().join(name));
        assert!(
            known.files.contains(&key) && known.fresh.contains(&key),
            "{name}"
        );
    }
    opens(&mut known, PROCESS, "d/file");
    assert!(known.files.contains(&file(&dir.path().join("d/file")).1));
    assert!(!known.everything);
}

#[test]
fn a_child_on_its_parents_memory_starts_in_its_own_directory() {
    let (dir, mut known) = process_in_directory();
    let program = bytes(&dir.path().join("program"));
    let mut record = RecordBuilder::new();
    record.start(op::CHDIR, 1).flags(F_CHILD).string(b"d");
    let moved = record.string(&bytes(&dir.path().join("d"))).result(0);
    apply(&mut known, PROCESS, moved);
    record.start(op::EXEC, 2).flags(F_CHILD).aux(EXEC_ANNOUNCED);
    apply(
        &mut known,
        PROCESS,
        record.string(&program).says(CHILD as i32),
    );
    opens(&mut known, CHILD, "file");
    assert!(known.files.contains(&file(&dir.path().join("d/file")).1));
    assert!(!known.everything);
    // The child has not stored its process id yet.
    record.start(op::EXEC, 3).flags(F_CHILD).aux(EXEC_ANNOUNCED);
    apply(&mut known, PROCESS, record.string(&program));
    assert!(known.everything);
}

#[test]
fn what_an_announced_library_needs_counts_as_read_before_it_is_loaded() {
    let (dir, mut known) = process_in_directory();
    let (needed, key) = file(&dir.path().join("d/file"));
    let loaded = move |library: &Path| library.ends_with("library").then(|| vec![needed]);
    known.loaded_later = Some(Box::new(loaded));
    let library = bytes(&dir.path().join("library"));
    let mut record = RecordBuilder::new();
    record
        .start(op::LOAD, 1)
        .fd(libc::AT_FDCWD)
        .string(&library);
    apply(&mut known, PROCESS, record.result(0));
    assert!(known.files.contains(&file(&dir.path().join("library")).1));
    assert!(!known.files.contains(&key), "it was loaded with the filter");
    record.start(op::LOAD, 2).fd(libc::AT_FDCWD);
    record.aux(LOAD_ANNOUNCED).string(&library);
    apply(&mut known, PROCESS, record.result(0));
    assert!(known.files.contains(&key) && !known.everything);
    let missing = bytes(&dir.path().join("missing"));
    record.start(op::LOAD, 3).fd(libc::AT_FDCWD);
    record.aux(LOAD_ANNOUNCED).string(&missing);
    apply(&mut known, PROCESS, record.result(0));
    assert!(known.everything, "it may be another library by now");
}

/// The names in directories that rest are not looked up at each examination.
#[test]
fn a_file_that_is_read_at_each_examination_counts_as_read_each_time() {
    let (dir, mut known) = process_in_directory();
    known.remembered.rest = 0;
    let path = dir.path().join("d/file");
    let mut read = |expected: FileKey| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        opens(&mut known, PROCESS, "d/file");
        known.forget_places();
        // It changes, so that its next content is unread.
        assert!(known.files.remove(&expected), "not read");
        assert!(known.files.is_empty() && !known.everything);
    };
    let (_, old) = file(&path);
    (0..4).for_each(|_| read(old));
    std::fs::rename(dir.path().join("program"), &path).unwrap();
    let (_, new) = file(&path);
    assert_ne!(new, old);
    (0..4).for_each(|_| read(new));
}

#[test]
fn everything_counts_as_read_once_a_program_may_read_anything() {
    let (_dir, mut known) = process_in_directory();
    executes(&mut known, b"library");
    assert!(known.everything, "it is no plain program");
    let (_dir, mut known) = process_in_directory();
    let mut record = RecordBuilder::new();
    record.start(op::OPAQUE, 1);
    let unguarded = record.string(OPAQUE_UNGUARDED.as_bytes()).result(0);
    apply(&mut known, PROCESS, unguarded);
    assert!(known.everything);
}

/// A forked process takes the time of its first call, and then writes that it has begun.
#[test]
fn a_process_begins_before_its_first_call() {
    let mut record = RecordBuilder::new();
    let begun = record
        .start(op::START, 5)
        .aux(1)
        .result(0)
        .finish()
        .to_vec();
    let opened = record.start(op::OPEN, 3).string(b"a").result(3).finish();
    let bytes = [&begun[..], opened].concat();
    let (mut known, mut records) = (ReadSet::default(), Vec::new());
    let head = (&Chunk::default(), Chunk::SIZE);
    assert!(known.collect(head, &bytes, u64::MAX, &mut records));
    records.sort_by_key(|record| record.time);
    let ops: Vec<_> = records
        .iter()
        .map(|record| Record::read(record.bytes).unwrap().op)
        .collect();
    assert_eq!(ops, [op::START, op::OPEN]);
}

/// A child on its parent's memory can be killed while it writes a record into its parent's chunk.
/// A signal handler can write records before the interrupted one is finished.
#[test]
fn records_behind_one_that_is_not_finished_are_not_forgotten() {
    let finished = RecordBuilder::new()
        .start(op::CLOSE, 1)
        .result(0)
        .finish()
        .to_vec();
    // Nothing of it was written, then all but its state.
    let unwritten = vec![0; finished.len()];
    let mut begun = finished.clone();
    begun[..2].fill(0);
    let head = Chunk::default();
    let collected = |parts: &[&[u8]]| {
        let bytes = parts.concat();
        let (mut known, mut records) = (ReadSet::default(), Vec::new());
        assert!(known.collect((&head, Chunk::SIZE), &bytes, u64::MAX, &mut records));
        (records.len(), known.hidden)
    };
    let finished = &finished[..];
    assert_eq!(collected(&[finished, finished]), (2, false));
    for unfinished in [&unwritten[..], &begun[..]] {
        assert_eq!(collected(&[finished, unfinished]), (1, false));
        assert_eq!(collected(&[finished, unfinished, finished]), (1, true));
    }
}

#[test]
fn a_missing_program_counts_as_executed_until_its_process_goes_on() {
    let (dir, mut known) = process_in_directory();
    for name in [b"missing", b"another"] {
        executes(&mut known, name);
        assert_eq!(known.missing.len(), 1);
    }
    opens(&mut known, PROCESS, "d/file");
    assert!(known.missing.is_empty() && !known.everything);
    assert!(known.files.contains(&file(&dir.path().join("d/file")).1));
    // Another program begins in the process, so the call has not failed.
    executes(&mut known, b"missing");
    let mut record = RecordBuilder::new();
    let started = record.start(op::START, 9).result(0);
    apply_in(&mut known, (PROCESS, 100), started);
    assert!(known.everything);
}

#[test]
fn a_missing_program_of_a_child_on_its_parents_memory_counts_until_its_parent_goes_on() {
    for (result, executed) in [(-libc::ENOENT, false), (CHILD as i32, true)] {
        let (_dir, mut known) = process_in_directory();
        let mut record = RecordBuilder::new();
        record.start(op::EXEC, 1).flags(F_CHILD).aux(EXEC_ANNOUNCED);
        apply(&mut known, PROCESS, record.string(b"/missing/program"));
        assert!(!known.missing.is_empty() && !known.everything);
        let goes_on = record.start(op::VFORKED, 2).result(result);
        apply(&mut known, PROCESS, goes_on);
        assert_eq!(known.everything, executed);
        assert_eq!(known.missing.is_empty(), !executed);
    }
}

#[test]
fn a_command_without_the_filter_has_read_its_libraries_and_starts_where_the_supervisor_is() {
    let (dir, loaded) = directory();
    let reads = Reads::new(std::iter::empty());
    reads.starts_without_filter(UnfilteredStart {
        supervisor: SUPERVISOR,
        directory: Some(dir.path().as_os_str().to_owned()),
        program: b"program".to_vec(),
        loaded,
        loaded_later: Box::new(|_| None),
    });
    let mut known = lock(&reads.known);
    assert!(known.files.contains(&file(&dir.path().join("library")).1));
    apply(
        &mut known,
        PROCESS,
        RecordBuilder::new().start(op::START, 1).result(0),
    );
    opens(&mut known, PROCESS, "d/file");
    assert!(known.files.contains(&file(&dir.path().join("d/file")).1));
    assert!(!known.everything);
}

#[test]
fn records_that_are_later_than_a_look_are_left_for_the_next() {
    let mut chunk = ChunkBuilder::new(Chunk::default());
    let mut record = RecordBuilder::new();
    for time in [1, 5, 9] {
        assert!(chunk.push(record.start(op::CLOSE, time).result(0).finish()));
    }
    let head = Chunk::read(chunk.bytes()).unwrap();
    let mut known = ReadSet::default();
    let mut look = |until| {
        let start = known.news(&head).unwrap();
        let mut found = Vec::new();
        let bytes = &chunk.bytes()[start..];
        let whole = known.collect((&head, start), bytes, until, &mut found);
        let times: Vec<u64> = found.iter().map(|record| record.time).collect();
        (times, whole)
    };
    assert_eq!(look(5), (vec![1, 5], false));
    assert_eq!(look(u64::MAX), (vec![9], true));
}
