//! The size of an engine that has a directory.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Bytes that the files below a directory take on the disk.
pub fn size(directory: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        // An engine removes files meanwhile.
        let Ok(meta) = entry.metadata() else { continue };
        bytes += match meta.is_dir() {
            true => size(&entry.path())?,
            false => meta.blocks() * 512,
        };
    }
    Ok(bytes)
}
