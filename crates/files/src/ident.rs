//! The identity of a file: device and inode, with the state of its content.

use rustix::fs::{Statx, StatxFlags, StatxTimestamp, makedev};

/// Nanoseconds that the clock of local file systems may stand still.
///
/// The kernel stamps changes with the time of its last timer tick (`ktime_get_coarse_real_ts64`).
/// The slowest tick that it can be configured with on the supported machines is 100 Hz
/// (`CONFIG_HZ_100`). Two changes that are further apart have different time stamps. Code in a live
/// process compares with the clock itself (`CLOCK_REALTIME_COARSE`) instead.
pub const CLOCK_GRANULARITY: i64 = 10_000_000;

/// One file and one state of its content. Times are nanoseconds since 1970-01-01 UTC.
///
/// Runs are joined by comparing these values. The recorder, the guard, the log and the store all
/// use this type; its layout is that of `bs_ident` in `backstory_abi.h`.
#[repr(C)]
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Default,
    serde::Serialize,
    serde::Deserialize,
)]
pub struct Ident {
    /// Device number, as `stat` reports it.
    pub dev: u64,
    /// Inode number.
    pub ino: u64,
    /// Size in bytes.
    pub size: i64,
    /// Time of the last modification.
    pub mtime: i64,
    /// Time of the last status change.
    pub ctime: i64,
    /// Time of creation; 0 where the file system does not report it.
    pub birth: i64,
    /// Type and permission bits (`st_mode`).
    pub mode: u32,
    /// Number of hard links.
    pub nlink: u32,
}

/// The only conversion from the kernel's answer to an identity.
impl From<&Statx> for Ident {
    fn from(found: &Statx) -> Self {
        let born = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME);
        Self {
            dev: makedev(found.stx_dev_major, found.stx_dev_minor),
            ino: found.stx_ino,
            size: found.stx_size as i64,
            mtime: nanoseconds(&found.stx_mtime),
            ctime: nanoseconds(&found.stx_ctime),
            birth: if born {
                nanoseconds(&found.stx_btime)
            } else {
                0
            },
            mode: u32::from(found.stx_mode),
            nlink: found.stx_nlink,
        }
    }
}

/// Wraps beyond the year 2262: a file's time stamps can have any value.
fn nanoseconds(t: &StatxTimestamp) -> i64 {
    t.tv_sec
        .wrapping_mul(1_000_000_000)
        .wrapping_add(i64::from(t.tv_nsec))
}

/// Device, inode, size and time of modification. Versions that differ in one of these are
/// different.
pub type VersionId = (u64, u64, i64, i64);

impl Ident {
    /// The numbers that distinguish this version of a file from others.
    pub fn version_id(&self) -> VersionId {
        (self.dev, self.ino, self.size, self.mtime)
    }

    /// True if the last change was surely before a time, in ns since 1970. A change at that time or
    /// later has another time stamp.
    pub fn changed_before(&self, time: i64) -> bool {
        self.ctime.saturating_add(CLOCK_GRANULARITY) < time
    }

    /// Bytes of an identity in a record.
    pub const SIZE: usize = size_of::<Ident>();

    /// Reads an identity from the first bytes of a record's field; `None` if there are too few.
    pub fn read(bytes: &[u8]) -> Option<Ident> {
        let mut words = bytes.get(..Self::SIZE)?.chunks_exact(8).map(|word| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(word);
            bytes
        });
        let mut next = || words.next().unwrap_or_default();
        let (dev, ino) = (u64::from_le_bytes(next()), u64::from_le_bytes(next()));
        let mut signed = || i64::from_le_bytes(next());
        let (size, mtime, ctime, birth) = (signed(), signed(), signed(), signed());
        let [a, b, c, d, e, f, g, h] = next();
        Some(Ident {
            dev,
            ino,
            size,
            mtime,
            ctime,
            birth,
            mode: u32::from_le_bytes([a, b, c, d]),
            nlink: u32::from_le_bytes([e, f, g, h]),
        })
    }

    /// The bytes of an identity in a record, little-endian.
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        let [mode, nlink] = [self.mode, self.nlink].map(u64::from);
        let words = [
            self.dev,
            self.ino,
            self.size.cast_unsigned(),
            self.mtime.cast_unsigned(),
            self.ctime.cast_unsigned(),
            self.birth.cast_unsigned(),
            mode | nlink << 32,
        ];
        for (at, word) in bytes.chunks_exact_mut(8).zip(words) {
            at.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}
