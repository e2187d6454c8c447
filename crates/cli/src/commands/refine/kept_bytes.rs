//! The engine's files of a run in the store.
//!
//! A run that was replayed as a whole has `1.bytes`, `2.bytes` and so on. A part of it that was
//! replayed by itself has `P-1.bytes` and so on, with its own number P.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Moves the files of a whole run into the store, instead of all earlier ones.
pub fn replace(made: &Path, to: &Path) -> io::Result<()> {
    prepare(made, to)?;
    let _ = fs::remove_dir_all(to);
    fs::rename(made, to)
}

/// Adds the files of a part.
pub fn add(made: &Path, to: &Path) -> io::Result<()> {
    prepare(made, to)?;
    DirBuilder::new().recursive(true).mode(0o700).create(to)?;
    let mut number = 0u64;
    for entry in fs::read_dir(to)? {
        let name = entry?.file_name();
        let part = name.to_str().and_then(|name| name.split_once('-'));
        number = number.max(part.and_then(|(part, _)| part.parse().ok()).unwrap_or(0));
    }
    for entry in fs::read_dir(made)? {
        let entry = entry?;
        let name = format!("{}-{}", number + 1, entry.file_name().display());
        fs::rename(entry.path(), to.join(name))?;
    }
    Ok(())
}

fn prepare(made: &Path, to: &Path) -> io::Result<()> {
    let _ = fs::remove_file(made.join("shared"));
    let parent = to.parent().unwrap_or(to);
    DirBuilder::new().recursive(true).mode(0o700).create(parent)
}
