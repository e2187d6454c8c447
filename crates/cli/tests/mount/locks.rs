//! Locks, access control lists and direct input and output below a mount.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use backstory_testkit::need::{needs, skipped};
use rustix::fs::{FlockOperation, OFlags, XattrFlags, fcntl_lock, flock};
use rustix::io::Errno;

use crate::mount::mounted::mounted;

/// The forms of a mount. The kernel serves an open file differently in each.
const FORMS: [&[&str]; 2] = [&[], &["--passthrough", "on"]];

/// A user who may do what an access control list grants, and one that no list names.
const GRANTED: u32 = 12_345;
const OTHER: u32 = 12_346;

fn opened(path: &Path) -> File {
    let mut options = File::options();
    let options = options.read(true).write(true).create(true).truncate(false);
    options.open(path).unwrap()
}

/// True if another process can lock the file. `how`: a function of Python's `fcntl`.
fn another_can_lock(path: &Path, how: &str) -> bool {
    let script = format!(
        "import fcntl, sys\nfile = open(sys.argv[1], 'r+b')\n\
         try: fcntl.{how}(file, fcntl.LOCK_EX | fcntl.LOCK_NB)\n\
         except BlockingIOError: sys.exit(7)"
    );
    let status = Command::new("python3")
        .args(["-c", &script])
        .arg(path)
        .status();
    match status.unwrap().code() {
        Some(0) => true,
        Some(7) => false,
        other => panic!("python3 ended with {other:?}"),
    }
}

#[test]
fn locks_below_a_mount_exclude_other_processes_until_they_are_released() {
    if !needs("locks below a mount", &["python3"]) {
        return;
    }
    for options in FORMS {
        let Some(mut mounted) = mounted("locks below a mount", options) else {
            return;
        };
        let path = mounted.at.join("locked");
        let (file, second) = (opened(&path), opened(&path));
        flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
        let again = flock(&second, FlockOperation::NonBlockingLockShared);
        assert_eq!(again, Err(Errno::WOULDBLOCK), "{options:?}");
        assert!(!another_can_lock(&path, "flock"), "{options:?}");
        flock(&file, FlockOperation::Unlock).unwrap();
        assert!(another_can_lock(&path, "flock"), "{options:?}");
        fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
        assert!(!another_can_lock(&path, "lockf"), "{options:?}");
        // A process loses its record locks when it closes any descriptor of the file.
        drop(second);
        assert!(another_can_lock(&path, "lockf"), "{options:?}");
        drop(file);
        assert!(mounted.unmount().success());
    }
}

/// An access control list as the kernel stores it: one more user may read.
fn list_that_grants_reading(uid: u32) -> Vec<u8> {
    const NO_ID: u32 = u32::MAX;
    // Tag, permissions, id: the owner, the user, the group, the mask, all others.
    let entries = [
        (1_u16, 6_u16, NO_ID),
        (2, 4, uid),
        (4, 0, NO_ID),
        (16, 4, NO_ID),
        (32, 0, NO_ID),
    ];
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(permissions.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}

fn attribute(path: &Path, name: &str) -> Result<Vec<u8>, Errno> {
    let mut room = [0_u8; 256];
    let length = rustix::fs::getxattr(path, name, &mut room[..])?;
    Ok(room[..length].to_vec())
}

fn can_read(path: &Path, uid: u32) -> bool {
    let mut command = Command::new("cat");
    let output = command.arg(path).uid(uid).gid(uid).output().unwrap();
    output.status.success()
}

#[test]
fn an_access_control_list_below_a_mount_is_stored_inherited_and_obeyed() {
    let what = "access control lists below a mount";
    for options in FORMS {
        let Some(mut mounted) = mounted(what, options) else {
            return;
        };
        let list = list_that_grants_reading(GRANTED);
        let set =
            |path: &Path, name: &str| rustix::fs::setxattr(path, name, &list, XattrFlags::empty());
        let probe = mounted.behind.join("probe");
        fs::write(&probe, "").unwrap();
        if set(&probe, "system.posix_acl_access") == Err(Errno::OPNOTSUPP) {
            skipped(what, "the file system of the temporary directory has none");
            return;
        }
        for directory in [mounted.stage.path(), &mounted.behind] {
            fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let file = mounted.at.join("file");
        fs::write(&file, "text\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(!can_read(&file, GRANTED), "{options:?}");
        set(&file, "system.posix_acl_access").unwrap();
        assert!(can_read(&file, GRANTED), "{options:?}");
        assert!(!can_read(&file, OTHER), "{options:?}");
        let directory = mounted.at.join("d");
        fs::create_dir(&directory).unwrap();
        set(&directory, "system.posix_acl_default").unwrap();
        fs::write(directory.join("inherits"), "text\n").unwrap();
        let plain = mounted.behind.join("plain");
        fs::create_dir(&plain).unwrap();
        set(&plain, "system.posix_acl_default").unwrap();
        fs::write(plain.join("inherits"), "text\n").unwrap();
        let [own, expected] = [directory, plain]
            .map(|at| attribute(&at.join("inherits"), "system.posix_acl_access").unwrap());
        assert_eq!(own, expected, "{options:?}");
        assert!(mounted.unmount().success());
        let stored = attribute(&mounted.behind.join("file"), "system.posix_acl_access");
        assert_eq!(stored, Ok(list), "{options:?}");
    }
}

/// Bytes at an address that is a multiple of 4096.
struct Page(Vec<u8>, usize);

impl Page {
    const SIZE: usize = 4096;

    fn of(byte: u8) -> Page {
        let room = vec![byte; 2 * Page::SIZE];
        let past = room.as_ptr() as usize % Page::SIZE;
        let start = (Page::SIZE - past) % Page::SIZE;
        Page(room, start)
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.0[self.1..self.1 + Page::SIZE]
    }
}

#[test]
fn direct_input_and_output_below_a_mount_agree_with_the_cache_and_the_directory() {
    for options in FORMS {
        let Some(mut mounted) = mounted("O_DIRECT below a mount", options) else {
            return;
        };
        let path = mounted.at.join("direct");
        let mut all = File::options();
        all.read(true).write(true).create(true).truncate(true);
        let mut direct = all
            .custom_flags(OFlags::DIRECT.bits() as i32)
            .open(&path)
            .unwrap();
        direct.write_all(Page::of(b'a').bytes()).unwrap();
        direct.write_all(Page::of(b'b').bytes()).unwrap();
        // The cache of the kernel sees what went past it, and the other way round.
        let mut cached = opened(&path);
        let mut read = Vec::new();
        cached.read_to_end(&mut read).unwrap();
        let expected = [[b'a'; Page::SIZE], [b'b'; Page::SIZE]].concat();
        assert_eq!(read, expected, "{options:?}");
        cached.seek(SeekFrom::Start(0)).unwrap();
        cached.write_all(&[b'c'; Page::SIZE]).unwrap();
        direct.seek(SeekFrom::Start(0)).unwrap();
        let mut page = Page::of(0);
        direct.read_exact(page.bytes()).unwrap();
        assert_eq!(page.bytes(), [b'c'; Page::SIZE], "{options:?}");
        drop((direct, cached));
        let out =
            mounted.shell("dd if=direct of=copied bs=4096 iflag=direct oflag=direct status=none");
        assert!(out.status.success(), "{out:?}");
        assert!(mounted.unmount().success());
        let expected = [[b'c'; Page::SIZE], [b'b'; Page::SIZE]].concat();
        for name in ["direct", "copied"] {
            assert_eq!(fs::read(mounted.behind.join(name)).unwrap(), expected);
        }
        let copied = mounted.behind.join("copied");
        let of = mounted.answer(&["of", copied.to_str().unwrap()]);
        assert!(of.contains("dd if=direct"), "{options:?}: {of}");
    }
}
