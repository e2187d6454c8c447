//! File systems that several machines share.

use std::path::Path;

/// File systems shared between machines: a write-ahead log keeps its index in memory shared between
/// processes, which other machines do not see. Numbers from `statfs(2)`: nfs, smb, cifs, smb2, 9p,
/// afs, ceph, lustre, gpfs, fuse (sshfs and the like).
const SHARED: &[u64] = &[
    0x6969,
    0x517b,
    0xff53_4d42,
    0xfe53_4d42,
    0x0102_1997,
    0x5346_414f,
    0x00c3_6400,
    0x0bd0_0bd0,
    0x4750_4653,
    0x6573_5546,
];

/// True if `dir` lies on a file system that other machines may use at the same time.
pub fn on_shared_file_system(dir: &Path) -> bool {
    rustix::fs::statfs(dir).is_ok_and(|s| SHARED.contains(&(s.f_type as u64 & 0xffff_ffff)))
}
