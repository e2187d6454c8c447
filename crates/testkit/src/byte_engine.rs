//! The byte engine, built once per build directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use crate::need::{needs, skipped};

/// The directory of the engine. It is built below `target` unless it is there, and newer than its
/// sources. `None` if this machine lacks what it is built from.
///
/// # Panics
///
/// The build fails for another reason.
pub fn built(target: &Path) -> Option<PathBuf> {
    if !needs("the byte engine", &["valgrind", "gcc"]) {
        return None;
    }
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bytes");
    let directory = target.join("byte-engine");
    match build(&sources, &directory) {
        Ok(None) => Some(directory),
        Ok(Some(lack)) => {
            skipped("the byte engine", &lack);
            None
        }
        Err(error) => panic!("bytes/build: {error}"),
    }
}

/// Puts a copy of the engine into the new directory `to`, for the programs of another user. False
/// if this machine lacks what it is built from, or one of the further tools that the test needs.
///
/// # Panics
///
/// The engine can be neither built nor copied.
pub fn copy(target: &Path, to: &Path, tools: &[&str]) -> bool {
    if !needs("the byte engine", tools) {
        return false;
    }
    let Some(engine) = built(target) else {
        return false;
    };
    // A child process writes: see `program`. The copy has no status that other tests change.
    let copied = Command::new("/bin/cp")
        .args(["-Rp", "--"])
        .args([&engine, to])
        .status();
    let done = matches!(&copied, Ok(status) if status.success());
    assert!(done, "a copy of {}: {copied:?}", engine.display());
    true
}

/// Builds the engine if it is older than its sources. Returns the message of a build that lacks
/// what Valgrind's package has.
fn build(sources: &Path, directory: &Path) -> io::Result<Option<String>> {
    fs::create_dir_all(directory)?;
    let lock = fs::File::create(directory.with_extension("lock"))?;
    lock.lock()?;
    let stamp = directory.with_extension("built");
    let built = fs::metadata(&stamp).and_then(|status| status.modified());
    if built.is_ok_and(|built| newest(sources).is_ok_and(|changed| changed < built)) {
        return Ok(None);
    }
    let made = Command::new(sources.join("build"))
        .arg(directory)
        .output()?;
    let said = String::from_utf8_lossy(&made.stderr).into_owned();
    if said.contains("has no headers for tools") {
        return Ok(Some(said));
    }
    if !made.status.success() {
        return Err(io::Error::other(said));
    }
    fs::write(stamp, "")?;
    Ok(None)
}

/// The time of the last change below a directory.
fn newest(directory: &Path) -> io::Result<SystemTime> {
    let mut last = SystemTime::UNIX_EPOCH;
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let status = fs::metadata(&path)?;
        last = last.max(status.modified()?);
        if status.is_dir() {
            last = last.max(newest(&path)?);
        }
    }
    Ok(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_engine_is_built_again_when_a_source_has_changed_and_only_then() {
        let place = tempfile::tempdir().unwrap();
        let (sources, directory) = (place.path().join("sources"), place.path().join("engine"));
        fs::create_dir_all(sources.join("c")).unwrap();
        let script = b"#!/bin/sh\necho built >>\"$1/log\"\n";
        crate::program::write(&sources.join("build"), script).unwrap();
        fs::write(sources.join("c/one.c"), "").unwrap();
        let change = |part: &str, time: SystemTime| {
            let file = fs::File::open(sources.join(part)).unwrap();
            file.set_modified(time).unwrap();
        };
        let (now, moment) = (SystemTime::now(), Duration::from_secs(9));
        for part in ["build", "c/one.c", "c", ""] {
            change(part, now - moment);
        }
        let builds = || {
            assert_eq!(build(&sources, &directory).unwrap(), None);
            let log = fs::read_to_string(directory.join("log")).unwrap();
            log.lines().count()
        };
        assert_eq!([builds(), builds()], [1, 1]);
        change("c/one.c", now + moment);
        assert_eq!(builds(), 2);
    }
}
