//! Places the embedded recorder library where loaders find it.
//!
//! Invariant: a directory named after the library's content is complete or absent. It is filled
//! under another name and renamed, so that many recordings may start at once.

use crate::Error;
use backstory_abi::{CLIENT_NAME, NODE_HOOKS, PRELOAD_ANY, PRELOAD_NAME, PRELOAD_WIDE, R_HOOKS};
use flate2::read::GzDecoder;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Expansions of `$LIB` by loaders of 64-bit programs. musl's loader takes `$LIB` literally.
const WIDE: &[&str] = &["lib/x86_64-linux-gnu", "lib64", PRELOAD_ANY];
/// Expansions of `$LIB` by loaders of 32-bit programs.
const NARROW: &[&str] = &["lib/i386-linux-gnu", "lib32"];
/// The empty library of 32-bit programs.
const NARROW_FILE: &str = "narrow.so";

/// An embedded library.
enum EmbeddedLibrary {
    Plain(&'static [u8]),
    Gzip(&'static [u8]),
}

impl EmbeddedLibrary {
    /// The size of the library in bytes. A gzip file ends with it (RFC 1952).
    fn length(&self) -> usize {
        match self {
            EmbeddedLibrary::Plain(bytes) => bytes.len(),
            EmbeddedLibrary::Gzip(bytes) => bytes
                .last_chunk()
                .map_or(0, |length| u32::from_le_bytes(*length) as usize),
        }
    }

    fn bytes(&self) -> io::Result<Cow<'static, [u8]>> {
        match *self {
            EmbeddedLibrary::Plain(bytes) => Ok(bytes.into()),
            EmbeddedLibrary::Gzip(bytes) => {
                let mut library = Vec::with_capacity(self.length());
                GzDecoder::new(bytes).read_to_end(&mut library)?;
                Ok(library.into())
            }
        }
    }
}

/// One form of the recorder: the library, and the name of its content.
pub(crate) struct RecorderForm {
    library: EmbeddedLibrary,
    digest: u64,
    /// More files beside the library, by their names.
    beside: &'static [(&'static str, &'static [u8])],
}

/// The recorder of ordinary runs.
pub(crate) static PLAIN: RecorderForm = RecorderForm {
    library: EmbeddedLibrary::Plain(backstory_recorder::LIBRARY),
    digest: DIGEST,
    beside: &[],
};
/// The recorder of deep runs.
pub(crate) static DEEP: RecorderForm = RecorderForm {
    library: EmbeddedLibrary::Gzip(backstory_recorder::DEEP_LIBRARY),
    digest: DEEP_DIGEST,
    beside: &[],
};

/// The recorder of runs that record calls of functions.
pub(crate) static FUNCTIONS: RecorderForm = RecorderForm {
    library: EmbeddedLibrary::Gzip(backstory_recorder::FUNCTIONS_LIBRARY),
    digest: FUNCTIONS_DIGEST,
    beside: &[
        (NODE_HOOKS, backstory_recorder::NODE_HOOKS),
        backstory_recorder::NODE_INSERTER,
        (R_HOOKS, backstory_recorder::R_HOOKS),
    ],
};

/// The recorder of runs whose processes may run without the filter.
pub(crate) static AUTO: RecorderForm = RecorderForm {
    library: EmbeddedLibrary::Gzip(backstory_recorder::AUTO_LIBRARY),
    digest: AUTO_DIGEST,
    beside: &[],
};

/// Extracts a form of the recorder library, unless it exists already. Returns the entry for
/// `LD_PRELOAD`.
pub(crate) fn extract(directory: &Path, form: &RecorderForm) -> Result<OsString, Error> {
    let directory = usable(directory)?;
    let home = directory.join(format!("{:016x}", form.digest));
    if !form.is_whole(&home) {
        form.fill(&directory, &home)?;
    }
    let mut entry = home.into_os_string();
    entry.push(format!("/{PRELOAD_ANY}/{PRELOAD_NAME}"));
    Ok(entry)
}

/// The library itself, which all other names link to. The recorder uses this name for programs that
/// it knows to be 64-bit.
fn itself(home: &Path) -> PathBuf {
    home.join(PRELOAD_WIDE).join(PRELOAD_NAME)
}

/// The names that loaders make of the preload entry, and their targets.
fn links() -> impl Iterator<Item = (&'static str, String)> {
    let wide = || format!("{PRELOAD_WIDE}/{PRELOAD_NAME}");
    let plain = if plain_lib_is_narrow() {
        NARROW_FILE.into()
    } else {
        wide()
    };
    let all = WIDE.iter().map(move |place| (*place, wide()));
    let all = all.chain(NARROW.iter().map(|place| (*place, NARROW_FILE.into())));
    all.chain([("lib", plain)]).map(|(place, target)| {
        let up = "../".repeat(Path::new(place).components().count());
        (place, format!("{up}{target}"))
    })
}

/// The directory as an absolute path. If the directory cannot be used, a private one in `/tmp`
/// takes its place. Loaders split the variable at colons and blanks and expand `$`, so a name with
/// one of these cannot be used. Nor can a directory that another user could replace.
fn usable(directory: &Path) -> Result<PathBuf, Error> {
    let directory = std::path::absolute(directory).map_err(Error::file("find", directory))?;
    let special = |b: &u8| matches!(b, b':' | b'$' | b';') || b.is_ascii_whitespace();
    let user = rustix::process::geteuid().as_raw();
    let usable = !directory.as_os_str().as_bytes().iter().any(special);
    if usable && !others_may_rename_in(directory.parent()) {
        make_directory(&directory).map_err(Error::file("make the directory", &directory))?;
        // Another user may have put a link in its place.
        return match fs::metadata(&directory) {
            Ok(meta) if is_private(&meta, user) => Ok(directory),
            _ => Err(foreign(&directory)),
        };
    }
    let stand_in = PathBuf::from(format!("/tmp/backstory-{user}"));
    make_directory(&stand_in).map_err(|_| foreign(&stand_in))?;
    match fs::symlink_metadata(&stand_in) {
        Ok(meta) if is_private(&meta, user) => Ok(stand_in),
        _ => Err(foreign(&stand_in)),
    }
}

/// True if no other user can put a file into this directory. Such a user would decide which code
/// every recorded program runs.
fn is_private(meta: &fs::Metadata, user: u32) -> bool {
    meta.is_dir() && meta.uid() == user && meta.permissions().mode() & 0o022 == 0
}

/// True if another user can rename the entries of a directory: it is writable and not sticky
/// (`/tmp`).
fn others_may_rename_in(directory: Option<&Path>) -> bool {
    let meta = directory.and_then(|directory| fs::metadata(directory).ok());
    let mode = meta.map_or(0, |meta| meta.permissions().mode());
    mode & 0o022 != 0 && mode & 0o1000 == 0
}

fn foreign(directory: &Path) -> Error {
    let text = "others than you can write into it, or it is somebody else's: remove it, or choose another store with --store DIR";
    Error::file("put the recorder into", directory)(io::Error::new(
        io::ErrorKind::PermissionDenied,
        text,
    ))
}

fn make_directory(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
}

impl RecorderForm {
    /// True if every file has the expected type and size. The contents are not read. A loader would
    /// wait for ever at a pipe that it finds here.
    fn is_whole(&self, home: &Path) -> bool {
        let file = |path: &Path, length: usize| {
            fs::symlink_metadata(path).is_ok_and(|m| m.is_file() && m.len() == length as u64)
        };
        let leads = |(place, target): (&str, String)| {
            fs::read_link(home.join(place).join(PRELOAD_NAME))
                .is_ok_and(|led| led.as_os_str() == &*target)
        };
        file(&itself(home), self.library.length())
            && file(&home.join(NARROW_FILE), backstory_recorder::TWIN32.len())
            && file(&home.join(CLIENT_NAME), backstory_recorder::CLIENT.len())
            && self
                .beside
                .iter()
                .all(|(name, content)| file(&home.join(name), content.len()))
            && links().all(leads)
    }

    fn fill(&self, directory: &Path, home: &Path) -> Result<(), Error> {
        let new = directory.join(format!(
            ".new-{}-{}",
            std::process::id(),
            backstory_sys::clock::counter()
        ));
        let made = self.write_all(&new);
        let renamed = made.and_then(|()| {
            fs::rename(&new, home).or_else(|error| match error.raw_os_error() {
                // Another recording was faster, or an incomplete directory is left from a crash of
                // the machine.
                Some(libc::EEXIST | libc::ENOTEMPTY) => self.replace(&new, home),
                _ => Err(error),
            })
        });
        renamed.map_err(Error::file("extract the recorder to", home))
    }

    fn replace(&self, new: &Path, home: &Path) -> io::Result<()> {
        if self.is_whole(home) {
            return fs::remove_dir_all(new);
        }
        // Other recordings may do the same at this moment. The name always leads to a directory.
        match renameat_with(CWD, new, CWD, home, RenameFlags::EXCHANGE) {
            Ok(()) => fs::remove_dir_all(new),
            Err(Errno::INVAL | Errno::NOSYS) => {
                fs::remove_dir_all(home)?;
                fs::rename(new, home)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn write_all(&self, new: &Path) -> io::Result<()> {
        make_directory(new)?;
        fs::set_permissions(new, fs::Permissions::from_mode(0o755))?;
        let wide = itself(new);
        fs::DirBuilder::new()
            .mode(0o755)
            .create(new.join(PRELOAD_WIDE))?;
        write(&wide, &self.library.bytes()?)?;
        write(&new.join(NARROW_FILE), backstory_recorder::TWIN32)?;
        write(&new.join(CLIENT_NAME), backstory_recorder::CLIENT)?;
        for (name, content) in self.beside {
            write(&new.join(name), content)?;
        }
        links().try_for_each(|(place, target)| link(new, place, &target))
    }
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    fs::write(path, bytes)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

fn link(new: &Path, place: &str, target: &str) -> io::Result<()> {
    let directory = new.join(place);
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(&directory)?;
    symlink(target, directory.join(PRELOAD_NAME))
}

/// True where plain `lib` holds 32-bit libraries, because 64-bit ones have their own `lib64`.
fn plain_lib_is_narrow() -> bool {
    let lib64 = Path::new("/usr/lib64");
    fs::symlink_metadata(lib64).is_ok_and(|m| m.is_dir()) && lib64.join("libc.so.6").exists()
}

/// Names the content. Computed at compile time: at run time it would add 25 µs to every recording.
const DIGEST: u64 = digest(BESIDE, backstory_recorder::LIBRARY);
const DEEP_DIGEST: u64 = digest(BESIDE, backstory_recorder::DEEP_LIBRARY);
const FUNCTIONS_DIGEST: u64 = digest(HOOKS, backstory_recorder::FUNCTIONS_LIBRARY);
const AUTO_DIGEST: u64 = digest(BESIDE, backstory_recorder::AUTO_LIBRARY);

/// Names the files beside the library that records functions.
const HOOKS: u64 = digest(
    digest(
        digest(BESIDE, backstory_recorder::NODE_HOOKS),
        backstory_recorder::NODE_INSERTER.1,
    ),
    backstory_recorder::R_HOOKS,
);

/// Names the files beside the library.
const BESIDE: u64 = digest(
    digest(0xcbf2_9ce4_8422_2325, backstory_recorder::TWIN32),
    backstory_recorder::CLIENT,
);

/// Not cryptographic, because the directory is private.
const fn digest(mut hash: u64, content: &[u8]) -> u64 {
    let (mut at, mut word) = (0, 0);
    while at < content.len() {
        word |= (content[at] as u64) << (at % 8 * 8);
        at += 1;
        if at % 8 == 0 || at == content.len() {
            hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            hash ^= hash >> 29;
            word = 0;
        }
    }
    hash
}

/// The common beginning of all paths that loaders make of the preload entry.
pub(crate) fn home(preload: &OsStr) -> Vec<u8> {
    let entry = preload.as_bytes();
    let end = entry
        .windows(5)
        .rposition(|w| w == b"$LIB/")
        .unwrap_or(entry.len());
    entry[..end].to_vec()
}

/// The path of the extracted library as a 64-bit program's loader sees it, for messages and tests.
pub fn library_path(preload: &OsStr) -> PathBuf {
    PathBuf::from(preload.to_string_lossy().replacen("$LIB", WIDE[0], 1))
}

#[cfg(test)]
mod tests;
