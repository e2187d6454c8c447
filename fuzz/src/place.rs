//! A directory in memory for the files that a target needs.

use std::path::PathBuf;
use tempfile::TempDir;

/// A directory for this thread, which is kept: making it takes longer than most inputs.
pub fn file(name: &str) -> PathBuf {
    thread_local! {
        static HERE: TempDir = new();
    }
    HERE.with(|here| here.path().join(name))
}

/// A new one, removed when dropped.
pub fn new() -> TempDir {
    let memory = std::path::Path::new("/dev/shm");
    let parent = if memory.is_dir() {
        memory.to_owned()
    } else {
        std::env::temp_dir()
    };
    tempfile::Builder::new()
        .prefix("backstory-fuzz-")
        .tempdir_in(parent)
        .expect("a directory")
}
