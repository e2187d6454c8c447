//! The file systems that are mounted at a place.
//!
//! In: `/proc/self/mountinfo`. Out: the numbers of file systems. No file system is asked: one of
//! them may be that of this process, which does not serve it yet.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The number of a file system, as `mountinfo` writes it: `MAJOR:MINOR`. Another file system may
/// get it after the end of this one.
pub(crate) type FileSystemNumber = Vec<u8>;

/// The file systems that are mounted at a place. The last one hides the others. `None` without
/// `/proc`.
pub(crate) fn mounted_at(place: &Path) -> Option<Vec<FileSystemNumber>> {
    let table = std::fs::read("/proc/self/mountinfo").ok()?;
    Some(numbers_at(&table, place))
}

/// A line has an id, that of the parent, the number, the mounted directory, the place, and more.
fn numbers_at(table: &[u8], place: &Path) -> Vec<FileSystemNumber> {
    let place = escaped(place);
    let number = |line: &[u8]| {
        let mut fields = line.split(|byte| *byte == b' ').skip(2);
        let (number, at) = (fields.next()?, fields.nth(1)?);
        (at == place).then(|| number.to_vec())
    };
    table
        .split(|byte| *byte == b'\n')
        .filter_map(number)
        .collect()
}

/// A path as `mountinfo` writes it: blanks and backslashes are three octal digits.
fn escaped(path: &Path) -> Vec<u8> {
    let mut written = Vec::new();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b' ' | b'\t' | b'\n' | b'\\' => written.extend(format!("\\{byte:03o}").bytes()),
            byte => written.push(*byte),
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[u8] = b"\
22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw
57 22 0:51 / /srv/a\\040b rw - fuse.backstory /srv/data rw
58 57 0:52 / /srv/a\\040b rw - tmpfs none rw
59 22 0:51 /sub /srv/other rw - fuse.backstory /srv/data rw
";

    #[test]
    fn the_file_systems_at_a_place_are_found_with_the_hiding_one_last() {
        let at = |place: &str| numbers_at(TABLE, Path::new(place));
        assert_eq!(at("/srv/a b"), [b"0:51", b"0:52"]);
        assert_eq!(at("/srv/other"), [b"0:51"]);
        assert!(at("/srv").is_empty());
    }
}
