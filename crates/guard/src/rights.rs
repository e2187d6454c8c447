//! The rights of a thread, and whether they permit an access.

use backstory_sys::PidfdInfo;
use std::cell::OnceCell;

/// The credentials that a thread accesses files with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccessRights {
    /// The file system user id.
    pub uid: u32,
    /// The file system group id.
    pub gid: u32,
    /// The thread.
    pub tid: u32,
    /// The supplementary groups, once they were read. Reading them takes longer than all the rest,
    /// and they rarely matter.
    pub groups: OnceCell<Vec<u32>>,
}

impl AccessRights {
    pub(crate) fn of(tid: u32, info: &PidfdInfo) -> AccessRights {
        AccessRights {
            uid: info.fsuid,
            gid: info.fsgid,
            tid,
            groups: OnceCell::new(),
        }
    }

    /// True if the group is a supplementary group of the thread.
    fn further(&self, group: u32) -> bool {
        self.groups
            .get_or_init(|| groups(self.tid))
            .contains(&group)
    }

    /// True if a file of this owner and mode gives `wanted` (4 read, 2 write, 1 execute). Root has
    /// all rights, except that it cannot execute a file without any execute bit.
    pub fn permit(&self, st: &libc::statx, wanted: u16) -> bool {
        let directory = st.stx_mode & libc::S_IFMT as u16 == libc::S_IFDIR as u16;
        if self.uid == 0 {
            return wanted & 1 == 0 || directory || st.stx_mode & 0o111 != 0;
        }
        let grants = |shift: u16| st.stx_mode >> shift & wanted == wanted;
        if st.stx_uid == self.uid {
            grants(6)
        } else if st.stx_gid == self.gid || grants(3) != grants(0) && self.further(st.stx_gid) {
            grants(3)
        } else {
            grants(0)
        }
    }
}

fn groups(tid: u32) -> Vec<u32> {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Groups:"))
        .unwrap_or_default();
    line.split_whitespace()
        .filter_map(|group| group.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstory_sys as sys;

    #[test]
    fn rights_follow_owner_group_and_others() {
        let st = sys::statx(libc::AT_FDCWD, c"/", 0).unwrap();
        let with = |uid, gid, mode| {
            let mut st = st;
            (st.stx_uid, st.stx_gid, st.stx_mode) = (uid, gid, mode);
            st
        };
        let me = AccessRights {
            uid: 7,
            gid: 8,
            tid: 0,
            groups: OnceCell::from(vec![9]),
        };
        assert!(me.permit(&with(7, 0, 0o100400), 4));
        assert!(
            !me.permit(&with(7, 8, 0o100044), 4),
            "the owner's bits decide for the owner"
        );
        assert!(me.permit(&with(1, 9, 0o100020), 2));
        assert!(!me.permit(&with(1, 9, 0o100002), 2));
        assert!(me.permit(&with(1, 1, 0o100001), 1));
        let root = AccessRights::default();
        assert!(root.permit(&with(7, 7, 0o100000), 6));
        assert!(!root.permit(&with(7, 7, 0o100666), 1));
    }
}
