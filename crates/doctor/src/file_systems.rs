//! The file systems of the store, of the recorder's library and of the working directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use backstory_store::Home;
use rustix::fs::{Access, StatVfsMountFlags};

use crate::finding::Finding;

/// The space of a file system.
pub struct Room {
    /// Bytes that this user may use.
    pub free: u64,
    /// Bytes in all.
    pub size: u64,
    /// Files that can still be made. `None` where the file system does not count them.
    pub files: Option<u64>,
    /// Programs and libraries cannot be loaded from it.
    pub no_exec: bool,
}

impl Room {
    /// `None` if `path` does not exist.
    pub fn of(path: &Path) -> Option<Room> {
        let stat = rustix::fs::statvfs(path).ok()?;
        Some(Room {
            free: stat.f_bavail * stat.f_frsize,
            size: stat.f_blocks * stat.f_frsize,
            files: (stat.f_files > 0).then_some(stat.f_favail),
            no_exec: stat.f_flag.contains(StatVfsMountFlags::NOEXEC),
        })
    }
}

/// A size in the largest unit that leaves a whole number.
pub fn bytes(count: u64) -> String {
    match count {
        0..10_000 => format!("{count} bytes"),
        10_000..10_000_000 => format!("{} kB", count / 1_000),
        10_000_000..10_000_000_000 => format!("{} MB", count / 1_000_000),
        _ => format!("{} GB", count / 1_000_000_000),
    }
}

/// The nearest directory above `path`, or itself, that exists.
pub fn existing(path: &Path) -> PathBuf {
    let found = path.ancestors().find(|path| path.is_dir());
    found.unwrap_or(Path::new("/")).to_owned()
}

/// Where the store is, or will be.
pub fn store(directory: &Path) -> Finding {
    const NAME: &str = "store";
    let shown = directory.display();
    let remedy = "Choose another directory: --store DIR, or $BACKSTORY_STORE.";
    let base = existing(directory);
    let kind = mount_of(&base).map_or_else(|| "unknown file system".to_owned(), |mount| mount.kind);
    let usable = match Home::open_to_read(directory) {
        Ok(_) => Home::open(directory).map(drop).map_err(|e| e.to_string()),
        Err(backstory_store::Error::NoStore(_)) => writable(&base).map_err(|error| {
            format!(
                "the store {shown} cannot be made in {}: {error}",
                base.display()
            )
        }),
        Err(error) => Err(error.to_string()),
    };
    if let Err(why) = usable {
        return Finding::fails(NAME, why, "`record` cannot start a command.", remedy);
    }
    let found = match directory.join("format").exists() {
        true => format!("{shown} ({kind})"),
        false => format!("{shown} ({kind}) does not exist yet; the first `record` makes it"),
    };
    if backstory_store::on_shared_file_system(&base) {
        return Finding::limited(
            NAME,
            found,
            "Machines share this file system: the database works without a write-ahead log, and \
             questions wait while a run is added.",
            "Keep the store on a local disk: --store DIR, or $BACKSTORY_STORE.",
        );
    }
    Finding::works(NAME, found)
}

fn writable(directory: &Path) -> io::Result<()> {
    Ok(rustix::fs::access(
        directory,
        Access::WRITE_OK | Access::EXEC_OK,
    )?)
}

/// The room for the store.
pub fn store_room(directory: &Path) -> Finding {
    const NAME: &str = "room of the store";
    /// A log of a short command, and the database.
    const NEEDED: u64 = 1_000_000;
    const ENOUGH: u64 = 500_000_000;
    let Some(room) = Room::of(&existing(directory)) else {
        return Finding::works(NAME, "unknown");
    };
    let files = match room.files {
        Some(files) => format!(", {files} more files"),
        None => String::new(),
    };
    let found = format!("{} are free{files}", bytes(room.free));
    let remedy = "Make room (`backstory store gc`), or choose another directory: --store DIR.";
    let no_files = room.files.is_some_and(|files| files < 10);
    if room.free < NEEDED || no_files {
        return Finding::fails(
            NAME,
            found,
            "Logs and the database do not fit: records are lost, or `record` cannot start.",
            remedy,
        );
    }
    if room.free < ENOUGH || room.files.is_some_and(|files| files < 1_000) {
        return Finding::limited(
            NAME,
            found,
            "Contents and logs of large runs do not fit.",
            remedy,
        );
    }
    Finding::works(NAME, found)
}

/// Loaders map the recorder's library into recorded programs.
pub fn library(store: &Path) -> Finding {
    const NAME: &str = "library directory";
    let root = rustix::process::geteuid().is_root();
    let directory = match root {
        true => PathBuf::from("/run/backstory"),
        false => store.join("lib"),
    };
    let shown = directory.display().to_string();
    match Room::of(&existing(&directory)) {
        Some(room) if room.no_exec => Finding::limited(
            NAME,
            format!("{shown} is on a file system that is mounted noexec"),
            "No program can load the recorder. The guard records alone, more slowly, and the \
             loader prints an error into the stderr of each program.",
            match root {
                true => "Mount it without noexec: mount -o remount,exec /run.",
                false => "Choose a store on another file system: --store DIR, or $BACKSTORY_STORE.",
            },
        ),
        _ => Finding::works(NAME, shown),
    }
}

/// A line of `/proc/self/mountinfo`.
struct Mount {
    kind: String,
}

/// The mount that a directory lies on.
fn mount_of(directory: &Path) -> Option<Mount> {
    use std::os::unix::fs::MetadataExt;
    let device = fs::metadata(directory).ok()?.dev();
    let number = format!(
        "{}:{}",
        rustix::fs::major(device),
        rustix::fs::minor(device)
    );
    mounts()
        .find(|(own, _)| *own == number)
        .map(|(_, mount)| mount)
}

/// All mounts with their device numbers, the newest first.
fn mounts() -> impl Iterator<Item = (String, Mount)> {
    let all = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut mounts: Vec<_> = all
        .lines()
        .filter_map(|line| {
            let number = line.split(' ').nth(2)?.to_owned();
            let kind = line.split_once(" - ")?.1.split(' ').next()?.to_owned();
            Some((number, Mount { kind }))
        })
        .collect();
    mounts.reverse();
    mounts.into_iter()
}

/// The file system of the files that will be recorded from here.
pub fn working_directory() -> Finding {
    const NAME: &str = "working directory";
    let Ok(directory) = std::env::current_dir() else {
        return Finding::limited(
            NAME,
            "it was removed",
            "Commands cannot open files by relative paths.",
            "Change to a directory that exists.",
        );
    };
    let kind = mount_of(&directory).map_or_else(|| "unknown".to_owned(), |mount| mount.kind);
    let found = format!("{} ({kind})", directory.display());
    if backstory_store::on_shared_file_system(&directory) {
        return Finding::limited(
            NAME,
            found,
            "Other machines may change these files unseen, and a server that hangs leaves \
             outcomes unknown.",
            "Record on every machine that writes there, or work on a local disk.",
        );
    }
    Finding::works(NAME, found)
}

/// The FUSE file systems that recorded files may lie on.
pub fn fuse() -> Finding {
    const NAME: &str = "FUSE";
    let count = mounts()
        .filter(|(_, mount)| mount.kind == "fuse" || mount.kind.starts_with("fuse."))
        .count();
    if count == 0 {
        return Finding::works(NAME, "no such file system is mounted; backstory needs none");
    }
    let found = match count {
        1 => "1 file system is mounted".to_owned(),
        n => format!("{n} file systems are mounted"),
    };
    Finding::limited(
        NAME,
        found,
        "If its server hangs for 2 s after the command has ended, outcomes on it are only \
         `possible`.",
        "Copy what a command uses to a local disk, if the server is slow.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_written_in_the_unit_that_fits() {
        assert_eq!(bytes(4_096), "4096 bytes");
        assert_eq!(bytes(65_536), "65 kB");
        assert_eq!(bytes(67_108_864), "67 MB");
        assert_eq!(bytes(64_000_000_000), "64 GB");
    }

    #[test]
    fn the_nearest_directory_that_exists_is_found() {
        let place = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
        let deep = place.path().join("a/b/c");
        assert_eq!(existing(&deep), place.path());
    }
}
