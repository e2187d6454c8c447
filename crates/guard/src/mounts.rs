//! Facts about mounts: whether a look-up in one may wait for a recorded process, and whether
//! it is read-only.

use crate::caller::MOMENT;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// One mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mount {
    /// Its file system is in the kernel and waits for no process and no network.
    pub local: bool,
    /// The mount is read-only.
    pub readonly: bool,
    /// Which names its file system has.
    pub names: NameAuthority,
}

/// The authority that decides which names a file system has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameAuthority {
    /// Any process that has the rights makes and removes names.
    Anyone,
    /// The kernel makes the names. Rights do not tell which names a process may make or remove.
    Kernel,
    /// The kernel makes the names, and fails the making of any other with `ENOENT`.
    KernelAlone,
}

/// File systems that wait for no process and no other machine.
const LOCAL: &str = " ext2 ext3 ext4 xfs btrfs f2fs bcachefs zfs tmpfs ramfs rootfs devtmpfs proc sysfs overlay squashfs \
    erofs iso9660 udf vfat exfat ntfs3 cgroup cgroup2 devpts hugetlbfs debugfs tracefs securityfs mqueue nilfs2 jfs \
    reiserfs fusectl binfmt_misc pstore bpf configfs efivarfs nsfs selinuxfs ";

/// File systems in which the kernel makes the names.
const KERNELS: &str = " sysfs cgroup cgroup2 devpts debugfs tracefs securityfs mqueue fusectl binfmt_misc pstore bpf configfs \
    efivarfs nsfs selinuxfs ";

/// Ticks after which the supervisor's own mounts are read again: about a second.
const SOON: u64 = 10 * MOMENT;

/// The mounts that files were found in, by mount id. Each receiver has its own table, so none waits
/// for another.
pub struct MountTable {
    known: HashMap<u64, Mount>,
    read: u64,
    /// Whether all mounts of the supervisor are local, and when that was found.
    all_local: (bool, u64),
    changed: Arc<AtomicU64>,
}

impl MountTable {
    /// Knows no mount yet. `changed` holds the time when a mount was last about to change.
    pub fn new(changed: Arc<AtomicU64>) -> MountTable {
        MountTable {
            known: HashMap::new(),
            read: 0,
            all_local: (false, 0),
            changed,
        }
    }

    /// True if no look-up in the supervisor's view can wait for a recorded process: then no look-up
    /// needs care. A file server of the run has to mount first, and a mount is notified.
    pub fn all_local(&mut self, now: u64) -> bool {
        let changed = self.changed.load(Ordering::Acquire);
        if changed != 0 && now <= changed + MOMENT {
            return false;
        }
        let (local, read) = self.all_local;
        if read != 0 && read > changed && now < read + SOON {
            return local;
        }
        let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let local = !table.is_empty()
            && table
                .lines()
                .all(|line| parse(line).is_some_and(|(_, mount)| mount.local));
        self.all_local = (local, now);
        local
    }

    /// The mount with this id, in the namespace of `tid`.
    pub fn find(&mut self, tid: u32, id: u64, now: u64) -> Option<Mount> {
        let changed = self.changed.load(Ordering::Acquire);
        let stale = changed != 0 && self.read <= changed + MOMENT && now > self.read + MOMENT / 16;
        if !stale && let Some(mount) = self.known.get(&id) {
            return Some(*mount);
        }
        let table = std::fs::read_to_string(format!("/proc/{tid}/mountinfo"))
            .or_else(|_| std::fs::read_to_string("/proc/self/mountinfo"));
        if stale || self.known.len() > 10_000 {
            self.known.clear();
        }
        self.read = now;
        self.known
            .extend(table.unwrap_or_default().lines().filter_map(parse));
        self.known.get(&id).copied()
    }
}

/// One line of `mountinfo`: id first, options sixth, type after the hyphen, then the file system's
/// own options.
fn parse(line: &str) -> Option<(u64, Mount)> {
    let (head, tail) = line.split_once(" - ")?;
    let mut head = head.split(' ');
    let id = head.next()?.parse().ok()?;
    let target = head.nth(3)?;
    let options = head.next()?;
    let mut tail = tail.split(' ');
    let kind = tail.next()?;
    let own = tail.nth(1).unwrap_or_default();
    let readonly = [options, own]
        .iter()
        .any(|list| list.split(',').any(|option| option == "ro"));
    let local = LOCAL.split_whitespace().any(|name| name == kind);
    // The automatic mount of binfmt_misc waits for no process.
    let local = local || kind == "autofs" && target == "/proc/sys/fs/binfmt_misc";
    let names = match kind {
        "proc" => NameAuthority::KernelAlone,
        _ if KERNELS.split_whitespace().any(|name| name == kind) => NameAuthority::Kernel,
        _ => NameAuthority::Anyone,
    };
    let mount = Mount {
        local,
        readonly,
        names,
    };
    Some((id, mount))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_mountinfo_shows_type_and_protection() {
        let line = "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue";
        assert_eq!(
            parse(line),
            Some((
                36,
                Mount {
                    local: true,
                    readonly: false,
                    names: NameAuthority::Anyone
                }
            ))
        );
        let line = "40 35 0:50 / /home/me/x ro,nosuid - fuse.sshfs host: rw,user_id=0";
        assert_eq!(
            parse(line),
            Some((
                40,
                Mount {
                    local: false,
                    readonly: true,
                    names: NameAuthority::Anyone
                }
            ))
        );
        let line = "41 35 0:51 / /sys rw - sysfs sysfs ro";
        assert_eq!(
            parse(line),
            Some((
                41,
                Mount {
                    local: true,
                    readonly: true,
                    names: NameAuthority::Kernel
                }
            ))
        );
    }

    #[test]
    fn the_mount_of_proc_is_found_by_its_id() {
        let st = backstory_sys::statx(libc::AT_FDCWD, c"/proc", 0).unwrap();
        let mut mounts = MountTable::new(Arc::default());
        let proc = mounts.find(std::process::id(), st.stx_mnt_id, 1).unwrap();
        assert!(proc.local && proc.names == NameAuthority::KernelAlone);
    }
}
