//! Two disks with ext4, whose block writes are listed, and what ext4 makes of them after a crash.
//!
//! Each disk is a file of the [`JournalDisk`](super::journal_disk), which a loop device serves. So
//! every block write and every flush that ext4 makes is an operation of that list. This is what
//! `dm-log-writes` lists, without the device mapper. A crash point is a prefix of the list. Of the
//! blocks that no flush covers, any subset survives, also torn ones. ext4 then recovers its journal
//! from the disk that survived.

use super::MountedDisk;
use crate::crash::crash_state::{Dice, DiskImage, SECTOR, SurvivingFile};
use crate::crash::journal_disk::{DATA, DiskOp, LOG, ListedOp, put};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::UNIX_EPOCH;

/// Bytes of a disk.
const SIZE: u64 = 16 << 20;

/// The place of ext4's superblock, which has two sectors. ext4 does not mount a disk with one of
/// them: its checksum is then wrong. So the two are torn from other sectors only.
const SUPERBLOCK: usize = 1024;

/// The directory of each disk, below the mounted [`JournalDisk`](crate::crash::journal_disk).
const DISKS: [(u64, &str); 2] = [(LOG, "log"), (DATA, "data")];

/// A file with ext4, mounted by a loop device.
struct LoopMount {
    at: tempfile::TempDir,
}

impl LoopMount {
    /// The error is that of mount(8).
    fn new(image: &Path) -> Result<LoopMount, String> {
        let at = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "ext4", "-o", "loop"])
            .arg(image)
            .arg(at.path());
        done(&mut mount).map(|()| LoopMount { at })
    }
}

impl Drop for LoopMount {
    fn drop(&mut self) {
        let _ = done(Command::new("umount").arg(self.at.path()))
            .or_else(|_| done(Command::new("umount").arg("-l").arg(self.at.path())));
    }
}

fn done(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// The mounted disks of a machine.
pub struct BlockDisks {
    /// Dropped first: what is mounted from the other file system.
    mounts: [LoopMount; 2],
    files: MountedDisk,
}

impl BlockDisks {
    /// `None`, with a notice, where this machine cannot.
    pub fn new() -> Option<BlockDisks> {
        let files = MountedDisk::new()?;
        let mut mounts = Vec::new();
        for (_, name) in DISKS {
            let image = files.directory(name).join("disk");
            let made = std::fs::File::create(&image).and_then(|file| file.set_len(SIZE));
            made.unwrap();
            let mut format = Command::new("mkfs.ext4");
            format
                .args([
                    "-q",
                    "-F",
                    "-E",
                    "nodiscard,lazy_itable_init=0,lazy_journal_init=0",
                ])
                .arg(&image);
            match done(&mut format).and_then(|()| LoopMount::new(&image)) {
                Ok(mount) => mounts.push(mount),
                Err(error) => {
                    return super::skipped(&format!("no ext4 on a loop device here: {error}"));
                }
            }
        }
        let mounts = mounts.try_into().ok()?;
        Some(BlockDisks { mounts, files })
    }

    /// The directories of the log and of the data.
    pub fn directories(&self) -> [PathBuf; 2] {
        [0, 1].map(|at| self.mounts[at].at.path().to_owned())
    }

    /// The operations of both disks so far.
    pub fn ops(&self) -> Vec<ListedOp> {
        self.files.disk.ops()
    }
}

/// The bytes of one disk after a crash.
fn surviving_bytes(ops: &[ListedOp], disk: u64, dice: &mut Dice) -> Vec<u8> {
    let mut durable = 0;
    for listed in ops.iter().filter(|listed| listed.disk == disk) {
        if let DiskOp::BarrierEnds { begun } = listed.op {
            durable = durable.max(begun);
        }
    }
    let mut bytes = vec![0; SIZE as usize];
    for (at, listed) in ops
        .iter()
        .enumerate()
        .filter(|(_, listed)| listed.disk == disk)
    {
        let DiskOp::Write {
            offset, bytes: new, ..
        } = &listed.op
        else {
            continue;
        };
        let how = if at < durable { 1 } else { dice.below(3) };
        let mut survives = how == 1;
        for (number, sector) in new.chunks(SECTOR).enumerate() {
            let place = *offset as usize + number * SECTOR;
            if how == 2 && place != SUPERBLOCK + SECTOR {
                survives = dice.below(2) == 0;
            }
            if survives {
                put(&mut bytes, place, sector);
            }
        }
    }
    bytes
}

/// The files that ext4 finds on both disks after a crash at the end of `ops`.
pub fn surviving_files(ops: &[ListedOp], dice: &mut Dice) -> DiskImage {
    let place = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut found = DiskImage::new();
    for (disk, name) in DISKS {
        let image = place.path().join(name);
        std::fs::write(&image, surviving_bytes(ops, disk, dice)).unwrap();
        let mount = LoopMount::new(&image).unwrap();
        for entry in std::fs::read_dir(mount.at.path()).unwrap().flatten() {
            let meta = entry.metadata().unwrap();
            if !meta.is_file() {
                continue;
            }
            let born = meta.created().unwrap().duration_since(UNIX_EPOCH).unwrap();
            let file = SurvivingFile {
                inode: meta.ino(),
                bytes: std::fs::read(entry.path()).unwrap(),
                changed: meta.mtime() * 1_000_000_000 + meta.mtime_nsec(),
                birth: born.as_nanos() as i64,
            };
            found.insert((disk, entry.file_name()), file);
        }
    }
    found
}
