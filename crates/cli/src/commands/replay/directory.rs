//! The directory of a replay: made for the outputs, and cleared if the replay fails.
//!
//! A replay that is killed leaves its directory to the next one. The plan marks such a directory,
//! so it is the last file that is removed.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use backstory_export::unfinished::is_abandoned;
use backstory_replay::root::results::FILES;

use crate::error::Failure;

/// The plan of a replay, below its directory.
pub const PLAN: &str = "plan.json";

/// The part of the recorded run that is fed, for a replay of one request.
pub const FED: &str = "fed.bin";

/// The next attempt, which begins in a copy of the started program.
pub const NEXT: &str = "next.json";

/// The files of the best attempt so far, while others are made.
const BEST: &str = "best";

/// The result file of a replay.
pub const RESULT: &str = "result.json";

/// The directory of the replay's own store.
pub const STORE: &str = "store";

/// The directory for the outputs: new, or empty. Directories of killed replays beside it go.
pub fn directory(wanted: Option<&Path>, run: &str) -> Result<PathBuf, Failure> {
    let fail = |path: &Path, error: &io::Error| {
        Failure::not_found(format!(
            "cannot create {}: {error}; give --output-dir a directory that you can write to",
            path.display()
        ))
    };
    if let Some(path) = wanted {
        sweep(path);
        fs::create_dir_all(path).map_err(|error| fail(path, &error))?;
        let mut entries = fs::read_dir(path).map_err(|error| fail(path, &error))?;
        if entries.next().is_some() {
            let path = path.display();
            return Err(Failure::misuse(format!(
                "the directory {path} is not empty: give --output-dir a new directory"
            )));
        }
        return path.canonicalize().map_err(|error| fail(path, &error));
    }
    let beside = fs::read_dir(".").into_iter().flatten().flatten();
    beside
        .filter(|entry| entry.file_name().as_bytes().starts_with(b"replay-"))
        .for_each(|entry| sweep(&entry.path()));
    for number in 1..10_000 {
        let path = PathBuf::from(format!("replay-{run}-{number}"));
        match fs::create_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(fail(&path, &error)),
            Ok(()) => return path.canonicalize().map_err(|error| fail(&path, &error)),
        }
    }
    Err(Failure::not_found(
        "this directory has too many replays already: give --output-dir",
    ))
}

/// Removes the directory of a killed replay. Such a directory has a plan, and no process holds its
/// lock.
fn sweep(own: &Path) {
    if own.join(PLAN).is_file() && is_abandoned(own) {
        clear(own);
    }
}

/// Attempts to remove a directory that processes may still write into while they are being killed.
const TRIES: u32 = 100;

/// Removes the files that a replay has put into its directory, and the directory if it is empty.
/// The user's own files in it stay.
pub fn clear(own: &Path) {
    for _ in 0..TRIES {
        if take_away(own) {
            let _ = fs::remove_dir_all(own.join(BEST));
            let _ = fs::remove_file(own.join(PLAN));
            let _ = fs::remove_dir(own);
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Removes the files that a replay has put into its directory. The directory stays.
pub fn empty(own: &Path) {
    for _ in 0..TRIES {
        if take_away(own) {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = fs::remove_file(own.join(PLAN));
}

/// Removes what an attempt has left, and what it was fed. Its root stays for the next one.
pub fn empty_results(own: &Path) {
    for name in [RESULT, FED, NEXT] {
        let _ = fs::remove_file(own.join(name));
    }
    let _ = fs::remove_dir_all(own.join(FILES));
}

/// Keeps the files of the present attempt, in the place of those that were kept before.
pub fn set_aside(own: &Path) {
    let _ = fs::remove_dir_all(own.join(BEST));
    let _ = fs::rename(own.join(FILES), own.join(BEST));
}

/// Moves the files that were kept into the directory of a replay. Those of the last attempt go.
pub fn bring_back(from: &Path, own: &Path) {
    let _ = fs::remove_dir_all(from.join(FILES));
    let _ = fs::rename(from.join(BEST), own.join(FILES));
}

/// Removes all files of the replay but the plan. Returns whether none is left.
fn take_away(own: &Path) -> bool {
    let mut left = false;
    for name in [RESULT, FED, NEXT] {
        let _ = fs::remove_file(own.join(name));
        left |= own.join(name).exists();
    }
    for name in ["root", STORE, FILES] {
        let path = own.join(name);
        let _ = fs::remove_dir_all(&path);
        left |= path.exists();
    }
    !left
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// A killed launcher's processes end a moment later than the launcher.
    #[test]
    fn a_directory_is_removed_although_a_dying_process_still_writes_into_it() {
        let place = tempfile::tempdir().unwrap();
        let own = place.path().join("replay-killed-1");
        fs::create_dir_all(own.join("root")).unwrap();
        fs::write(own.join(PLAN), "{}").unwrap();
        let root = own.join("root");
        let name = move |number: u32| root.join(number.to_string());
        (0..500).for_each(|number| fs::create_dir(name(number)).unwrap());
        let writer = std::thread::spawn(move || {
            let until = Instant::now() + Duration::from_millis(100);
            for number in (500..).take_while(|_| Instant::now() < until) {
                let _ = fs::create_dir(name(number));
            }
        });
        while !own.join("root/500").exists() && !writer.is_finished() {}
        clear(&own);
        writer.join().unwrap();
        assert!(!own.exists());
    }
}
