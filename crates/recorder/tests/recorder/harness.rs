//! Runs a program with the recorder preloaded and an arena of its own, and reads the log from the
//! arena.

use backstory_abi as abi;
use backstory_files::Ident;
use backstory_testkit::fixtures;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// One operation as a reader sees it.
#[derive(Debug, Clone)]
pub struct Record {
    pub head: abi::Record,
    pub name: &'static str,
    pub ident: Option<Ident>,
    pub strings: Vec<String>,
}

/// All records of one thread, over all of its chunks.
#[derive(Debug)]
pub struct Thread {
    pub pid: u32,
    pub tid: u32,
    pub epoch: u64,
    pub records: Vec<Record>,
}

/// The exit status, output and log of a recorded program.
#[derive(Debug)]
pub struct RecordedProgram {
    pub output: Output,
    pub lost: u64,
    pub threads: Vec<Thread>,
}

impl RecordedProgram {
    /// The records of all threads, thread after thread.
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.threads.iter().flat_map(|t| &t.records)
    }

    /// The records of one operation.
    pub fn of(&self, name: &str) -> Vec<&Record> {
        self.records().filter(|s| s.name == name).collect()
    }

    /// The records of one operation in the first process.
    pub fn first(&self, name: &str) -> Vec<&Record> {
        self.threads[0]
            .records
            .iter()
            .filter(|s| s.name == name)
            .collect()
    }

    /// The lines "OP string string", in order, for operations in `names`.
    pub fn lines(&self, names: &[&str]) -> Vec<String> {
        let line = |s: &Record| {
            std::iter::once(s.name)
                .chain(s.strings.iter().map(String::as_str))
                .collect::<Vec<_>>()
                .join(" ")
        };
        self.records()
            .filter(|s| names.contains(&s.name))
            .map(line)
            .collect()
    }

    /// Asserts that the program succeeded and that no operation was lost.
    pub fn fine(self) -> RecordedProgram {
        assert!(self.output.status.success(), "{:?}", self.output);
        assert_eq!(self.lost, 0);
        self
    }
}

/// Makes a folder for one test, with a file to read.
pub fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    refill(dir.path());
    dir
}

/// Restores a folder to the content that [`folder`] gave it.
pub fn refill(dir: &Path) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap()
        } else {
            fs::remove_file(path).unwrap()
        }
    }
    fs::write(dir.join("input"), "some bytes to read\n").unwrap();
}

/// Path of the library, under its required name.
pub fn library() -> &'static Path {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| {
        let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("library-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let path = dir.join(abi::PRELOAD_NAME);
        fs::write(&path, backstory_recorder::LIBRARY).unwrap();
        path
    })
}

/// Path of a second library, which only its owner can read.
pub fn copy_of_library(dir: &Path) -> PathBuf {
    fs::set_permissions(dir, fs::Permissions::from_mode(0o700)).unwrap();
    let path = dir.join(abi::PRELOAD_NAME);
    fs::write(&path, backstory_recorder::LIBRARY).unwrap();
    path
}

/// Compiles `tests/programs/NAME.c` with `compiler` and flags, once per set of them. `None` if the
/// compiler cannot.
pub fn program_with(name: &str, compiler: &str, flags: &[&str]) -> Option<PathBuf> {
    static LOCK: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _one = LOCK.lock().unwrap_or_else(|e| e.into_inner());
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/programs/{name}.c"));
    let label = format!("{name}-{compiler}{}", flags.join("")).replace(['/', '='], "_");
    let binary = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(label);
    if fixtures::up_to_date(&binary, &source).unwrap() {
        return Some(binary);
    }
    let built = Command::new(compiler)
        .args(["-D_GNU_SOURCE", "-O1", "-w", "-pthread"])
        .args(flags)
        .arg("-o")
        .arg(&binary)
        .arg(&source)
        .output();
    match built {
        Ok(output) if output.status.success() => Some(binary),
        other => {
            let mut stderr = std::io::stderr();
            let _ = writeln!(stderr, "SKIPPED: {compiler} can't build {name}: {other:?}");
            None
        }
    }
}

/// The same with the system's compiler. The test fails without it.
pub fn program(name: &str) -> PathBuf {
    program_with(name, "cc", &[]).expect("the system's compiler builds the test programs")
}

/// A command in `dir` with a fixed environment.
pub fn command(dir: &Path, argv: &[&str]) -> Command {
    let mut command = Command::new(argv[0]);
    command.args(&argv[1..]).current_dir(dir).env_clear();
    command
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", "/")
        .env("LC_ALL", "C.UTF-8");
    command
}

/// The kind of arena for a run.
pub struct Arena {
    pub chunks: u32,
    pub flags: u32,
}

impl Default for Arena {
    fn default() -> Self {
        Arena {
            chunks: 64,
            flags: 0,
        }
    }
}

fn arena_path() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!(
        "backstory-test-{}-{}.arena",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    );
    let shared = Path::new("/dev/shm");
    let folder = if shared.is_dir() {
        shared
    } else {
        Path::new(env!("CARGO_TARGET_TMPDIR"))
    };
    folder.join(name)
}

/// Runs a command and records it.
pub fn record(command: &mut Command) -> RecordedProgram {
    record_in(command, &Arena::default())
}

/// Runs a command and records it in an arena of this kind.
pub fn record_in(command: &mut Command, kind: &Arena) -> RecordedProgram {
    record_with(command, kind, library())
}

/// The same with the library at this path.
pub fn record_with(command: &mut Command, kind: &Arena, library: &Path) -> RecordedProgram {
    let path = arena_path();
    let mut bytes = vec![0; (abi::ARENA_HEADER + kind.chunks * abi::CHUNK_SIZE) as usize];
    bytes[0..8].copy_from_slice(&abi::ARENA_MAGIC.to_le_bytes());
    bytes[8..12].copy_from_slice(&abi::ABI_VERSION.to_le_bytes());
    bytes[12..16].copy_from_slice(&kind.flags.to_le_bytes());
    bytes[16..20].copy_from_slice(&kind.chunks.to_le_bytes());
    let free = std::mem::offset_of!(abi::Arena, free);
    for chunk in 0..kind.chunks as usize {
        bytes[free + chunk / 8] |= 1 << (chunk % 8);
    }
    fs::write(&path, &bytes).unwrap();
    let users = command
        .get_envs()
        .find(|(k, _)| *k == abi::ENV_PRELOAD)
        .and_then(|(_, v)| v)
        .map(|v| v.to_owned());
    let mut preload = users.clone().unwrap_or_default();
    if users.is_some() {
        preload.push(":");
    }
    preload.push(library);
    let output = command
        .env(abi::ENV_PRELOAD, preload)
        .env(abi::ENV_ARENA, &path)
        .output();
    let log = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let lost = std::mem::offset_of!(abi::Arena, lost);
    RecordedProgram {
        output: output.unwrap(),
        lost: u64::from_le_bytes(log[lost..lost + 8].try_into().unwrap()),
        threads: threads(&log),
    }
}

fn threads(log: &[u8]) -> Vec<Thread> {
    let mut chunks: Vec<_> = log[abi::ARENA_HEADER as usize..]
        .chunks(abi::CHUNK_SIZE as usize)
        .filter_map(|bytes| Some((abi::Chunk::read(bytes)?, bytes)))
        .filter(|(head, _)| head.magic == abi::CHUNK_MAGIC)
        .collect();
    chunks.sort_by_key(|(head, _)| (head.epoch, head.tid, head.seq));
    let mut threads: Vec<Thread> = Vec::new();
    for (head, bytes) in chunks {
        let records = records(bytes, head.next as usize);
        match threads.last_mut() {
            Some(last) if (last.epoch, last.tid) == (head.epoch, head.tid) => {
                last.records.extend(records)
            }
            _ => threads.push(Thread {
                pid: head.pid,
                tid: head.tid,
                epoch: head.epoch,
                records,
            }),
        }
    }
    threads
}

fn records(bytes: &[u8], next: usize) -> Vec<Record> {
    let mut records = Vec::new();
    let mut at = abi::Chunk::SIZE;
    while at + abi::Record::SIZE <= next.min(bytes.len()) {
        let head = abi::Record::read(&bytes[at..]).unwrap();
        let size = head.size as usize;
        if at + size > bytes.len() || (size == 0 && next > bytes.len()) {
            break; /* the last reservation did not fit */
        }
        assert!(
            size >= abi::Record::SIZE && size.is_multiple_of(8),
            "a hole at {at}: {head:?}"
        );
        let info = abi::op_info(head.op).unwrap_or_else(|| panic!("unknown operation {head:?}"));
        let mut body = &bytes[at + abi::Record::SIZE..at + size];
        let mut ident = None;
        if head.flags & abi::F_IDENT != 0 {
            ident = Ident::read(body);
            body = &body[Ident::SIZE..];
        }
        records.push(Record {
            name: info.name,
            strings: strings(&head, info.strings, body),
            head,
            ident,
        });
        at += size;
    }
    records
}

fn strings(head: &abi::Record, count: u8, body: &[u8]) -> Vec<String> {
    let text = |s: &[u8]| String::from_utf8_lossy(s).into_owned();
    if count == abi::LIST {
        let list = &body[..(head.aux as usize).min(body.len())];
        return list
            .strip_suffix(&[0])
            .map_or_else(Vec::new, |l| l.split(|b| *b == 0).map(text).collect());
    }
    body.split(|b| *b == 0)
        .take(count as usize)
        .map(text)
        .collect()
}
