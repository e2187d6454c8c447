//! Files with holes, and renames that leave a whiteout, below a mount.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::Path;

use backstory_testkit::need::skipped;
use rustix::fs::{CWD, RenameFlags, SeekFrom, renameat_with, seek};
use rustix::io::Errno;

use crate::mount::mounted::mounted;

/// The forms of a mount. The kernel serves an open file differently in each.
const FORMS: [&[&str]; 2] = [&[], &["--passthrough", "on"]];

const BLOCK: usize = 4096;
/// Where the only data of the file begin.
const DATA: u64 = 1 << 20;
const LENGTH: u64 = 4 << 20;

/// Where the data and the holes behind some offsets begin.
fn layout(file: &File) -> Vec<Result<u64, Errno>> {
    let kinds: [fn(u64) -> SeekFrom; 2] = [SeekFrom::Data, SeekFrom::Hole];
    let offsets = [0, DATA, DATA + BLOCK as u64, LENGTH];
    let all = offsets
        .into_iter()
        .flat_map(|at| kinds.map(|kind| kind(at)));
    all.map(|to| seek(file, to)).collect()
}

#[test]
fn a_file_below_a_mount_has_the_holes_of_the_file_behind_it() {
    let what = "holes in files below a mount";
    for options in FORMS {
        let Some(mut mounted) = mounted(what, options) else {
            return;
        };
        let path = mounted.at.join("sparse");
        let mut new = File::options();
        let new = new.read(true).write(true).create_new(true);
        let file = new.open(&path).unwrap();
        file.write_all_at(&[1; BLOCK], DATA).unwrap();
        file.set_len(LENGTH).unwrap();
        file.sync_all().unwrap();
        let behind = File::open(mounted.behind.join("sparse")).unwrap();
        let expected = layout(&behind);
        if expected[0] != Ok(DATA) {
            skipped(what, "the file system of the temporary directory has none");
            return;
        }
        assert_eq!(layout(&file), expected, "{options:?}");
        let blocks = |of: &File| of.metadata().unwrap().blocks();
        assert_eq!(blocks(&file), blocks(&behind), "{options:?}");
        drop((file, behind));
        assert!(mounted.unmount().success());
    }
}

/// The result of a rename with a whiteout. Then of the file at the old name: is it a device, and
/// which? At last the content at the new name.
fn whiteout(directory: &Path) -> (Result<(), Errno>, bool, u64, Vec<u8>) {
    let (from, to) = (directory.join("a"), directory.join("b"));
    fs::write(&from, "text").unwrap();
    let renamed = renameat_with(CWD, &from, CWD, &to, RenameFlags::WHITEOUT);
    let left = fs::symlink_metadata(&from).unwrap();
    let content = fs::read(&to).unwrap_or_default();
    let is_device = left.file_type().is_char_device();
    (renamed, is_device, left.rdev(), content)
}

#[test]
fn a_rename_that_leaves_a_whiteout_does_the_same_below_a_mount() {
    for options in FORMS {
        let Some(mut mounted) = mounted("whiteouts below a mount", options) else {
            return;
        };
        let plain = mounted.stage.directory("plain").unwrap();
        assert_eq!(whiteout(&mounted.at), whiteout(&plain), "{options:?}");
        assert!(mounted.unmount().success());
    }
}
