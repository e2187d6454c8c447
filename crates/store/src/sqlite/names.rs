//! Paths are kept as a directory and a name: the directory is all up to and with the last slash, so that joining them is
//! appending, whatever the bytes.

use std::collections::HashMap;

use backstory_eventlog::event::Bytes;

use crate::{Error, Result};

/// Directory and name of a path.
pub fn split(path: &[u8]) -> (&[u8], &[u8]) {
    path.split_at(path.iter().rposition(|b| *b == b'/').map_or(0, |slash| slash + 1))
}

/// The path of a name in a directory.
pub fn join(dir: &[u8], name: &[u8]) -> Bytes {
    [dir, name].concat().into()
}

/// Splits a path and numbers its directory.
pub fn intern(dirs: &mut HashMap<Box<[u8]>, u32>, path: &[u8]) -> Result<(u32, Bytes)> {
    let (dir, name) = split(path);
    let number = match dirs.get(dir) {
        Some(number) => *number,
        None => {
            let next = u32::try_from(dirs.len()).map_err(|_| Error::TooMany("directories"))?;
            dirs.insert(dir.into(), next);
            next
        }
    };
    Ok((number, name.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_its_directory_and_its_name() {
        for (path, dir, name) in [
            ("/usr/lib/x", "/usr/lib/", "x"),
            ("/x", "/", "x"),
            ("/", "/", ""),
            ("pipe:3", "", "pipe:3"),
            ("//a//b", "//a//", "b"),
            ("/a/", "/a/", ""),
        ] {
            assert_eq!(split(path.as_bytes()), (dir.as_bytes(), name.as_bytes()));
            assert_eq!(&*join(dir.as_bytes(), name.as_bytes()), path.as_bytes());
        }
    }
}
