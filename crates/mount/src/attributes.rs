//! The attributes of a file in the terms of the FUSE protocol.

use fuser::{FileAttr, FileType, INodeNo};
use rustix::fs::{Stat, Timespec};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The attributes of a file that the kernel knows as `node`.
pub(crate) fn attributes(stat: &Stat, node: u64) -> FileAttr {
    FileAttr {
        ino: INodeNo(node),
        size: stat.st_size as u64,
        blocks: stat.st_blocks as u64,
        atime: time(stat.st_atime, stat.st_atime_nsec),
        mtime: time(stat.st_mtime, stat.st_mtime_nsec),
        ctime: time(stat.st_ctime, stat.st_ctime_nsec),
        crtime: UNIX_EPOCH,
        kind: kind(stat.st_mode),
        perm: (stat.st_mode & 0o7777) as u16,
        nlink: stat.st_nlink as u32,
        uid: stat.st_uid,
        gid: stat.st_gid,
        rdev: encoded_device(stat.st_rdev),
        blksize: stat.st_blksize as u32,
        flags: 0,
    }
}

/// The type of a file of this mode.
pub(crate) fn kind(mode: u32) -> FileType {
    match mode & libc::S_IFMT {
        libc::S_IFDIR => FileType::Directory,
        libc::S_IFLNK => FileType::Symlink,
        libc::S_IFIFO => FileType::NamedPipe,
        libc::S_IFSOCK => FileType::Socket,
        libc::S_IFCHR => FileType::CharDevice,
        libc::S_IFBLK => FileType::BlockDevice,
        _ => FileType::RegularFile,
    }
}

fn time(seconds: i64, nanoseconds: impl TryInto<u32>) -> SystemTime {
    let nanoseconds = Duration::from_nanos(nanoseconds.try_into().unwrap_or(0).into());
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let start = match seconds {
        0.. => UNIX_EPOCH.checked_add(whole),
        _ => UNIX_EPOCH.checked_sub(whole),
    };
    start
        .and_then(|start| start.checked_add(nanoseconds))
        .unwrap_or(UNIX_EPOCH)
}

/// The time of a request, as system calls take it.
///
/// Before 1970, a time has negative seconds and the nanoseconds to add: -1.5 s is -2 s and half a
/// second. `fuser` 0.18 subtracts both from 1970 (`system_time_from_time`), so they are read apart.
pub(crate) fn requested_timespec(time: SystemTime) -> Timespec {
    let (sign, distance) = match time.duration_since(UNIX_EPOCH) {
        Ok(since) => (1, since),
        Err(before) => (-1, before.duration()),
    };
    Timespec {
        tv_sec: sign * distance.as_secs() as i64,
        tv_nsec: distance.subsec_nanos().into(),
    }
}

/// A device number as the kernel sends it: `new_encode_dev`.
fn encoded_device(device: u64) -> u32 {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12)
}

/// The device number that the kernel sent.
pub(crate) fn decoded_device(device: u32) -> u64 {
    let major = (device & 0xfff00) >> 8;
    let minor = (device & 0xff) | ((device >> 12) & 0xfff00);
    rustix::fs::makedev(major, minor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_number_survives_the_protocol() {
        for device in [(0, 0), (8, 1), (4095, 1_048_575), (259, 300)] {
            let device = rustix::fs::makedev(device.0, device.1);
            assert_eq!(decoded_device(encoded_device(device)), device);
        }
    }
}
