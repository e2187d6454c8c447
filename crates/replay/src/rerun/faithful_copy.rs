//! Copies a regular file with everything that a user can see: bytes, holes, extended attributes,
//! owner, mode and times.
//!
//! In: the file, and a file that receives the copy. Out: a copy that `cmp`, `getfattr`, `stat` and
//! `du` do not tell from the original. Absent: hard links, which belong to the directory entries.
//!
//! An attribute or owner that the user may not set is left out, as `cp --preserve` does.

use std::fs::{File, FileTimes, Permissions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};

use rustix::fs::{
    SeekFrom as Whence, XattrFlags, fgetxattr, flistxattr, fremovexattr, fsetxattr, seek,
};
use rustix::io::Errno;

/// Makes `to` a copy of `from`. What `to` held before is gone.
pub fn copy(from: &mut File, to: &mut File) -> io::Result<()> {
    to.set_len(0)?;
    // A copy that shares its blocks with the original has its holes, too.
    if rustix::fs::ioctl_ficlone(&*to, &*from).is_err() {
        copy_bytes(from, to)?;
    }
    copy_attributes(from, to)
}

/// Gives `to` the extended attributes, owner, mode and times of `from`.
pub fn copy_attributes(from: &File, to: &File) -> io::Result<()> {
    let found = from.metadata()?;
    // Only root may give a file to another user. A new owner clears the set-user-ID bit.
    let _ = fchown(to, Some(found.uid()), Some(found.gid()));
    let wanted = extended_attributes(from);
    for (name, _) in extended_attributes(to) {
        if !wanted.iter().any(|(other, _)| *other == name) {
            let _ = fremovexattr(to, &*name);
        }
    }
    for (name, value) in &wanted {
        let _ = fsetxattr(to, &**name, value, XattrFlags::empty());
    }
    to.set_permissions(Permissions::from_mode(found.mode() & 0o7777))?;
    let times = FileTimes::new()
        .set_accessed(found.accessed()?)
        .set_modified(found.modified()?);
    to.set_times(times)
}

/// True if a file has attributes or holes that a plain copy of its bytes would lose.
pub fn has_more_than_bytes(file: &File) -> io::Result<bool> {
    let found = file.metadata()?;
    let blocks = found.blocks().saturating_mul(512);
    let is_sparse = found.size() > 4096 && blocks.saturating_add(4096) < found.size();
    let is_users = |name: &[u8]| name.starts_with(b"user.") || name.starts_with(b"system.");
    let mut attributes = extended_attributes(file).into_iter();
    Ok(is_sparse || attributes.any(|(name, _)| is_users(&name)))
}

/// The extended attributes of a file. Those that cannot be read are left out.
fn extended_attributes(file: &File) -> Vec<(Vec<u8>, Vec<u8>)> {
    let names = whole(|buffer| flistxattr(file, buffer)).unwrap_or_default();
    let names = names
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty());
    let with_value = names.filter_map(|name| {
        let value = whole(|buffer| fgetxattr(file, name, buffer)).ok()?;
        Some((name.to_vec(), value))
    });
    with_value.collect()
}

/// A list or value of unknown length.
fn whole(get: impl Fn(&mut [u8]) -> Result<usize, Errno>) -> Result<Vec<u8>, Errno> {
    // The kernel's limit for both (XATTR_SIZE_MAX and XATTR_LIST_MAX).
    let mut buffer = vec![0; 1 << 16];
    let length = get(&mut buffer)?;
    buffer.truncate(length);
    Ok(buffer)
}

/// Copies the parts with bytes, and leaves the holes.
fn copy_bytes(from: &mut File, to: &mut File) -> io::Result<()> {
    let size = from.metadata()?.size();
    let mut at = 0;
    while at < size {
        let begin = match seek(&*from, Whence::Data(at)) {
            Ok(begin) => begin,
            // A hole up to the end.
            Err(Errno::NXIO) => break,
            // The file system does not tell holes.
            Err(_) => at,
        };
        let end = seek(&*from, Whence::Hole(begin)).unwrap_or(size).max(begin);
        from.seek(SeekFrom::Start(begin))?;
        to.seek(SeekFrom::Start(begin))?;
        let copied = io::copy(&mut io::Read::take(&mut *from, end - begin), to)?;
        if copied == 0 {
            break;
        }
        at = begin + copied;
    }
    to.flush()?;
    to.set_len(size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn a_copy_has_bytes_holes_attributes_mode_and_times() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        let mut one = File::create_new(path("one")).unwrap();
        one.write_all(b"begin").unwrap();
        one.set_len(8 << 20).unwrap();
        one.set_permissions(Permissions::from_mode(0o640)).unwrap();
        let has_attributes = fsetxattr(&one, "user.note", b"mine", XattrFlags::empty()).is_ok();
        let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1000);
        one.set_times(FileTimes::new().set_modified(old)).unwrap();
        std::fs::write(path("two"), "something else").unwrap();
        let open = |name| {
            File::options()
                .read(true)
                .write(true)
                .open(path(name))
                .unwrap()
        };
        let (mut one, mut two) = (open("one"), open("two"));
        copy(&mut one, &mut two).unwrap();
        let mut bytes = Vec::new();
        open("two").read_to_end(&mut bytes).unwrap();
        let found = two.metadata().unwrap();
        assert!(bytes.starts_with(b"begin\0") && bytes.len() == 8 << 20);
        assert!(found.blocks() * 512 < 1 << 20, "{}", found.blocks());
        assert_eq!(
            (found.mode() & 0o777, found.modified().unwrap()),
            (0o640, old)
        );
        assert!(has_more_than_bytes(&two).unwrap());
        if has_attributes {
            let all = extended_attributes(&two);
            assert!(
                all.contains(&(b"user.note".to_vec(), b"mine".to_vec())),
                "{all:?}"
            );
        }
    }
}
