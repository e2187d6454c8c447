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

/// Facts about mounts that the receivers of all filters of a run share. No receiver waits for
/// another.
#[derive(Debug, Default)]
pub struct MountFacts {
    /// When a mount was last about to change; 0 before the first change.
    changed: AtomicU64,
    /// When the supervisor's mounts were last read, without the lowest bit. That bit is set if all
    /// of them are local. 0: they were not read yet.
    all_local: AtomicU64,
}

impl MountFacts {
    /// A mount is about to change.
    pub(crate) fn change(&self, now: u64) {
        self.changed.store(now, Ordering::Release);
    }

    fn changed(&self) -> u64 {
        self.changed.load(Ordering::Acquire)
    }

    /// True if no look-up in the supervisor's view can wait for a recorded process. `read` says
    /// whether all mounts are local.
    fn all_local(&self, now: u64, read: impl FnOnce() -> bool) -> bool {
        let changed = self.changed();
        if changed != 0 && now <= changed + MOMENT {
            return false;
        }
        let last = self.all_local.load(Ordering::Acquire);
        let at = last & !1;
        if at > changed && now < at + SOON {
            return last & 1 == 1;
        }
        let local = read();
        let found = (now & !1) | u64::from(local);
        self.all_local.store(found, Ordering::Release);
        local
    }
}

/// True if all mounts of the supervisor are local.
fn has_local_mounts() -> bool {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let is_local = |line: &str| parse(line).is_some_and(|(_, mount)| mount.local);
    !table.is_empty() && table.lines().all(is_local)
}

/// The mounts that files were found in, by mount id. Each receiver has its own table, so none waits
/// for another.
pub struct MountTable {
    known: HashMap<u64, Mount>,
    read: u64,
    facts: Arc<MountFacts>,
}

impl MountTable {
    /// Knows no mount yet, apart from the facts.
    pub fn new(facts: Arc<MountFacts>) -> MountTable {
        MountTable {
            known: HashMap::new(),
            read: 0,
            facts,
        }
    }

    /// True if no look-up in the supervisor's view can wait for a recorded process: then no look-up
    /// needs care. A file server of the run has to mount first, and a mount is notified.
    pub fn all_local(&self, now: u64) -> bool {
        self.facts.all_local(now, has_local_mounts)
    }

    /// The mount with this id, in the namespace of `tid`.
    pub fn find(&mut self, tid: u32, id: u64, now: u64) -> Option<Mount> {
        let changed = self.facts.changed();
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
    fn mounts_that_one_receiver_has_read_are_known_to_all_until_one_may_change() {
        let facts = MountFacts::default();
        let mut reads = 0;
        let mut is_local = |now| {
            facts.all_local(now, || {
                reads += 1;
                true
            })
        };
        let begin = 10 * SOON;
        assert!(is_local(begin) && is_local(begin + 1) && is_local(begin + SOON - 2));
        assert!(is_local(begin + SOON), "too long ago");
        facts.change(begin + SOON + 1);
        assert!(!is_local(begin + SOON + 2), "it may be changing");
        assert!(is_local(begin + SOON + 2 * MOMENT));
        assert_eq!(reads, 3);
    }

    #[test]
    fn the_mount_of_proc_is_found_by_its_id() {
        let st = backstory_sys::statx(libc::AT_FDCWD, c"/proc", 0).unwrap();
        let mut mounts = MountTable::new(Arc::default());
        let proc = mounts.find(std::process::id(), st.stx_mnt_id, 1).unwrap();
        assert!(proc.local && proc.names == NameAuthority::KernelAlone);
    }
}
