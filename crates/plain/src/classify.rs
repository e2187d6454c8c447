//! Says for a program whether it is plain, and why not.

use crate::cache::LibraryCache;
use crate::elf::{Object, is_wide};
use crate::instructions::find_entry;
use crate::known::KnownFiles;
use crate::known_file::Ignored;
use crate::part::{C_LIBRARY, NotPlain, Part, WANTED};
use crate::symbols::{InnerActs, is_unseen};
use crate::verdicts::VerdictKind;
use backstory_files::{Ident, executable, now, regular};
use memchr::memmem;
use rustix::fs::{AtFlags, FileType, Statx, fgetxattr, statx};
use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The releases of glibc whose inner calls were compared with the lists in [`crate::symbols`].
pub const KNOWN_RELEASES: &[&str] = &["2.36"];

/// The loader of every plain program.
const LOADER: &[u8] = b"/lib64/ld-linux-x86-64.so.2";
/// The name by which libraries need that loader.
const LOADER_NAME: &[u8] = b"ld-linux-x86-64.so.2";
/// The loader's cache.
const LOADER_CACHE: &str = backstory_abi::LOADER_CACHE;
/// Libraries of glibc whose functions are chosen by the processor. The choice makes no call.
const CHOOSES_BY_PROCESSOR: &[&[u8]] = &[b"libm.so.6", b"libmvec.so.1"];
/// Bytes of the largest file that is read.
const LARGEST: u64 = 512 << 20;
/// Most libraries of a program.
const MOST_LIBRARIES: usize = 1000;
/// Scripts whose interpreter is a script: as deep as the kernel goes.
const DEEPEST_SCRIPT: u32 = 5;

/// The result for a program.
pub type Verdict = Result<(), NotPlain>;

/// A program with its verdict.
#[derive(Debug)]
pub struct Examined {
    /// The verdict.
    pub verdict: Verdict,
    /// The content that was examined. `None`: it cannot be read, or changed meanwhile.
    pub program: Option<Ident>,
    /// If the program is plain, the libraries that it can load, and its loader.
    pub libraries: Vec<Ident>,
    /// If the program is plain, what it and these libraries may do inside libc.
    pub acts: InnerActs,
}

/// The libraries that a program or a library needs.
#[derive(Debug, Default)]
pub(crate) struct NeededLibraries {
    /// The contents of these libraries and of the loader.
    pub(crate) states: Vec<Ident>,
    /// Their paths in the loader's cache.
    pub(crate) paths: Vec<Vec<u8>>,
    /// The loader chooses one of several paths of a library.
    pub(crate) has_choice: bool,
}

/// Classifies programs, and remembers what it found out about them and their libraries.
#[derive(Debug, Default)]
pub struct Classifier {
    pub(crate) cache: LibraryCache,
    cache_ident: Ident,
    known: KnownFiles,
    classified: usize,
}

impl Classifier {
    /// For the libraries of this cache.
    pub fn new(cache: LibraryCache) -> Classifier {
        Classifier {
            cache,
            ..Classifier::default()
        }
    }

    /// For the libraries of this machine. `None`: the loader's cache cannot be read, or the loader
    /// loads further libraries into every program (`/etc/ld.so.preload`).
    pub fn of_machine() -> Option<Classifier> {
        let preloads = Path::new("/etc/ld.so.preload").symlink_metadata();
        let (cache_ident, bytes) = read(Path::new(LOADER_CACHE)).ok()?;
        let cache = LibraryCache::parse(&bytes)?;
        (preloads.is_err() && cache_ident.changed_before(now())).then(|| Classifier {
            cache,
            cache_ident,
            ..Classifier::default()
        })
    }

    /// Takes the verdicts of earlier runs from a file, if there is one.
    ///
    /// # Errors
    /// The reason why the file is ignored. Programs are then classified anew.
    pub fn recall(&mut self, path: &Path) -> Result<(), Ignored> {
        self.known.recall(path)
    }

    /// Keeps the verdicts for later runs in this file, if there are new ones.
    ///
    /// # Errors
    /// The file cannot be written. The next run classifies its programs anew.
    pub fn keep(&mut self, path: &Path) -> io::Result<()> {
        self.known.keep(path)
    }

    /// The paths of the files that earlier runs had found to be plain, and that this run believed
    /// to be so. None are left after [`Classifier::confirm`].
    pub fn believed(&self) -> Vec<PathBuf> {
        self.known.believed_paths()
    }

    /// Classifies the files again that earlier runs had found to be plain, and that this run
    /// believed to be so. Returns the paths of those that are not plain, or are not there any more:
    /// calls of these programs may be missing in the record.
    pub fn confirm(&mut self) -> Vec<PathBuf> {
        let has_news = self.known.has_news;
        let mut wrong = Vec::new();
        for believed in self.known.take_believed() {
            let path = &believed.path;
            let again = open(path).and_then(|mut file| self.file(believed.role.0, &mut file, path));
            let is_right =
                again.is_ok_and(|(found, part)| part.is_ok_and(|part| believed.is(found, &part)));
            if !is_right {
                wrong.push(believed.path);
            }
        }
        if wrong.is_empty() {
            // Later runs know the confirmed ones already.
            self.known.has_news = has_news;
        }
        wrong.sort_unstable();
        wrong
    }

    /// The files whose content was read and classified.
    pub fn classified(&self) -> usize {
        self.classified
    }

    /// The state of the loader's cache for which the verdicts about programs hold.
    pub fn cache_ident(&self) -> Ident {
        self.cache_ident
    }

    /// Classifies the program that executing `path` would run: of a script, its interpreter.
    ///
    /// # Errors
    /// The first reason why it is not plain.
    pub fn program(&mut self, path: &Path) -> Verdict {
        self.command(path)?.verdict
    }

    /// The same, with what is known about the program.
    ///
    /// # Errors
    /// There is no program.
    pub fn command(&mut self, path: &Path) -> Result<Examined, NotPlain> {
        let mut path = path.to_owned();
        for _ in 0..DEEPEST_SCRIPT {
            let mut file = open(&path)?;
            match interpreter_of_script(&file, &path)? {
                None => return Ok(self.examine(&mut file, &path)),
                Some(interpreter) => path = interpreter,
            }
            if !path.is_absolute() {
                return Err(NotPlain::Foreign(path));
            }
        }
        Err(NotPlain::Foreign(path))
    }

    /// Classifies an open program. A script is not plain here. `path` is its name in the verdict.
    pub fn examine(&mut self, file: &mut File, path: &Path) -> Examined {
        let (mut program, mut needed) = (None, NeededLibraries::default());
        let acts = self
            .file(VerdictKind::Program, file, path)
            .and_then(|(state, part)| {
                program = Some(state);
                self.with_libraries(part?, &mut needed)
            });
        Examined {
            acts: acts.as_ref().copied().unwrap_or_default(),
            verdict: acts.map(drop),
            program,
            libraries: needed.states,
        }
    }

    /// Classifies an open library alone, without the libraries that it needs. Returns its content's
    /// state if the library is plain.
    pub fn examine_library(&mut self, file: &mut File, path: &Path) -> Option<Ident> {
        let (state, part) = self.file(VerdictKind::Library, file, path).ok()?;
        part.is_ok().then_some(state)
    }

    /// Returns what a plain program or library may do inside libc, with all libraries that it
    /// needs. These are appended to `found`.
    pub(crate) fn with_libraries(
        &mut self,
        of: Part,
        found: &mut NeededLibraries,
    ) -> Result<InnerActs, NotPlain> {
        let (loader, _) = self.plain_library(Path::new(OsStr::from_bytes(LOADER)))?;
        found.states.push(loader);
        let Part { needed, mut acts } = of;
        let mut queue = VecDeque::from(needed);
        let mut met: BTreeSet<Vec<u8>> = queue.iter().cloned().collect();
        while let Some(name) = queue.pop_front() {
            if name == LOADER_NAME {
                continue;
            }
            let paths = self.cache.paths(&name).to_vec();
            if paths.is_empty() || name.contains(&b'/') || met.len() > MOST_LIBRARIES {
                let name = PathBuf::from(OsStr::from_bytes(&name));
                return Err(NotPlain::Search(name));
            }
            found.has_choice |= paths.len() > 1;
            for path in paths {
                let (state, part) = self.plain_library(Path::new(OsStr::from_bytes(&path)))?;
                found.states.push(state);
                found.paths.push(path);
                acts = acts.and(part.acts);
                for name in part.needed {
                    if met.insert(name.clone()) {
                        queue.push_back(name);
                    }
                }
            }
        }
        Ok(acts)
    }

    /// Classifies a library alone.
    ///
    /// # Errors
    /// The first reason why it is not plain.
    pub fn library(&mut self, path: &Path) -> Verdict {
        self.plain_library(path).map(drop)
    }

    /// The same, with the state of the content.
    fn plain_library(&mut self, path: &Path) -> Result<(Ident, Part), NotPlain> {
        let (state, part) = self.file(VerdictKind::Library, &mut open(path)?, path)?;
        Ok((state, part?))
    }

    /// Classifies one open file by itself, unless that was done before. Returns the state of its
    /// content, too.
    ///
    /// # Errors
    /// Its content cannot be read, or it gives privileges.
    pub(crate) fn file(
        &mut self,
        kind: VerdictKind,
        file: &mut File,
        path: &Path,
    ) -> Result<(Ident, Result<Part, NotPlain>), NotPlain> {
        let found = attributes(file).map_err(|_| NotPlain::Unreadable(path.to_owned()))?;
        if let Some(part) = self.known.get(kind, (&*file, path), &found) {
            return Ok((Ident::from(&found), part));
        }
        let (state, bytes) = read_open(file, path)?;
        self.classified += 1;
        let part = match kind {
            VerdictKind::Program => program_part(path, &bytes),
            VerdictKind::Library => library_part(path, &bytes),
        };
        if state == Ident::from(&found) && state.changed_before(now()) {
            self.known.put(kind, &*file, &found, part.clone());
        }
        Ok((state, part))
    }
}

/// Checks a program without its libraries, and returns what it needs and may do.
fn program_part(path: &Path, file: &[u8]) -> Result<Part, NotPlain> {
    let object = parse(path, file)?;
    if object.interpreter != Some(LOADER) {
        return Err(NotPlain::OtherLoader(path.to_owned()));
    }
    if !begins_as_usual(&object) {
        return Err(NotPlain::EarlyCode(path.to_owned()));
    }
    part(path, &object)
}

/// Checks a library, and returns what it needs and may do.
fn library_part(path: &Path, file: &[u8]) -> Result<Part, NotPlain> {
    let object = parse(path, file)?;
    match object.soname {
        Some(C_LIBRARY | LOADER_NAME) => known_release(path, file).map(|()| Part::default()),
        _ if !object.can_be_loaded => Err(NotPlain::NotLoaded(path.to_owned())),
        _ => part(path, &object),
    }
}

pub(crate) fn open(path: &Path) -> Result<File, NotPlain> {
    regular::open(path).map_err(|_| NotPlain::Unreadable(path.to_owned()))
}

/// The interpreter that a script names; `None` if the file is no script.
fn interpreter_of_script(file: &File, path: &Path) -> Result<Option<PathBuf>, NotPlain> {
    let mut head = [0; executable::HEAD];
    let length = file
        .read_at(&mut head, 0)
        .map_err(|_| NotPlain::Unreadable(path.to_owned()))?;
    let head = &head[..length];
    if !head.starts_with(b"#!") {
        return Ok(None);
    }
    let name = executable::interpreter(head).ok_or_else(|| NotPlain::Foreign(path.to_owned()))?;
    Ok(Some(PathBuf::from(OsStr::from_bytes(name))))
}

/// Reads a file that gives no privilege, with the state of its content.
fn read(path: &Path) -> Result<(Ident, Vec<u8>), NotPlain> {
    read_open(&mut open(path)?, path)
}

fn read_open(file: &mut File, path: &Path) -> Result<(Ident, Vec<u8>), NotPlain> {
    let unreadable = || NotPlain::Unreadable(path.to_owned());
    let state = ident_of(file).map_err(|_| unreadable())?;
    let is_file = FileType::from_raw_mode(state.mode) == FileType::RegularFile;
    if !is_file || state.size.cast_unsigned() > LARGEST {
        return Err(unreadable());
    }
    if state.mode & 0o6000 != 0 || has_capabilities(file) {
        return Err(NotPlain::Privileged(path.to_owned()));
    }
    // One byte more, so that the end of the file is seen without a larger buffer.
    let mut bytes = Vec::with_capacity(usize::try_from(state.size).unwrap_or(0).saturating_add(1));
    file.rewind().map_err(|_| unreadable())?;
    file.take(LARGEST)
        .read_to_end(&mut bytes)
        .map_err(|_| unreadable())?;
    match ident_of(file) {
        Ok(after) if after == state => Ok((state, bytes)),
        _ => Err(unreadable()),
    }
}

fn attributes(file: &File) -> io::Result<Statx> {
    Ok(statx(file, c"", AtFlags::EMPTY_PATH, WANTED)?)
}

fn ident_of(file: &File) -> io::Result<Ident> {
    Ok(Ident::from(&attributes(file)?))
}

fn has_capabilities(file: &File) -> bool {
    fgetxattr(file, "security.capability", &mut [0u8; 64][..]).is_ok_and(|length| length > 0)
}

fn parse<'a>(path: &Path, file: &'a [u8]) -> Result<Object<'a>, NotPlain> {
    if !is_wide(file) {
        return Err(NotPlain::Foreign(path.to_owned()));
    }
    Object::parse(file).map_err(|damage| NotPlain::Damaged {
        path: path.to_owned(),
        damage,
    })
}

/// Checks one file, and returns what it needs and may do.
fn part(path: &Path, object: &Object<'_>) -> Result<Part, NotPlain> {
    let chooses = object
        .soname
        .is_some_and(|name| CHOOSES_BY_PROCESSOR.contains(&name));
    if object.has_early_code && !chooses {
        return Err(NotPlain::EarlyCode(path.to_owned()));
    }
    if object.has_writable_code {
        return Err(NotPlain::WritableCode(path.to_owned()));
    }
    if object.has_run_path || object.has_filter {
        return Err(NotPlain::Search(path.to_owned()));
    }
    if let Some(name) = object.imports.iter().find(|name| is_unseen(name)) {
        return Err(NotPlain::Unseen {
            path: path.to_owned(),
            function: String::from_utf8_lossy(name).into_owned(),
        });
    }
    match find_entry(object) {
        Some(entry) => Err(NotPlain::EntersKernel {
            path: path.to_owned(),
            entry,
        }),
        None => Ok(Part {
            needed: object.needed.iter().map(|name| name.to_vec()).collect(),
            acts: InnerActs::of(&object.imports),
        }),
    }
}

/// True if the program begins with the start code of glibc, which calls `__libc_start_main`.
fn begins_as_usual(object: &Object<'_>) -> bool {
    /// Longest start code.
    const START: u64 = 0x26;
    let Some(code) = object.at(object.entry, START) else {
        return false;
    };
    let code = code.strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfa]).unwrap_or(code);
    // xor %ebp,%ebp; mov %rdx,%r9; pop %rsi; mov %rsp,%rdx; and $-16,%rsp; push %rax; push %rsp
    let begins = [
        0x31, 0xed, 0x49, 0x89, 0xd1, 0x5e, 0x48, 0x89, 0xe2, 0x48, 0x83, 0xe4, 0xf0, 0x50, 0x54,
    ];
    let imports = |name: &[u8]| object.imports.contains(&name);
    code.starts_with(&begins) && imports(b"__libc_start_main")
}

/// Checks that glibc's own file is of a known release, by the text that it prints when executed.
fn known_release(path: &Path, file: &[u8]) -> Verdict {
    const TEXT: &[u8] = b" stable release version ";
    let release = memmem::find(file, TEXT).and_then(|at| {
        let rest = &file[at + TEXT.len()..];
        let end = rest
            .iter()
            .position(|b| !b.is_ascii_digit() && *b != b'.')?;
        std::str::from_utf8(&rest[..end]).ok()
    });
    match release.map(|text| text.trim_end_matches('.')) {
        Some(release) if KNOWN_RELEASES.contains(&release) => Ok(()),
        _ => Err(NotPlain::UnknownLibrary(path.to_owned())),
    }
}
