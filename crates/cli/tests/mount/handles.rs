//! An NFS server finds the files of an exported mount by handles.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use backstory_sys::FileHandle;
use backstory_testkit::need::skipped;
use backstory_testkit::procs::eventually;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount_remount};

use crate::mount::mounted::{MountedDirectory, mounted};

const PATIENCE: Duration = Duration::from_secs(120);

impl MountedDirectory {
    fn handle(&self, path: &str) -> FileHandle {
        let root = File::open(&self.at).unwrap();
        let path = CString::new(path).unwrap();
        FileHandle::of(root.as_fd(), &path).unwrap()
    }

    /// The file of a handle, or the error's number.
    fn opened(&self, handle: &FileHandle) -> Result<File, Errno> {
        let root = File::open(&self.at).unwrap();
        let opened = handle.open(root.as_fd(), OFlags::RDONLY.bits() as i32);
        let opened = opened.map_err(|error| Errno::from_io_error(&error).unwrap());
        opened.map(File::from)
    }

    fn text(&self, handle: &FileHandle) -> Result<String, Errno> {
        let mut text = String::new();
        self.opened(handle)?.read_to_string(&mut text).unwrap();
        Ok(text)
    }

    /// Lets the kernel forget all files of the mount that are not in use.
    pub fn forget_all(&self) {
        mount_remount(&self.at, MountFlags::empty(), "").unwrap();
    }

    /// Lets the kernel forget all files of the mount, and waits until it has forgotten this one.
    fn let_forget(&self, path: &str) {
        self.forget_all();
        let path = self.behind.join(path);
        assert!(eventually(PATIENCE, || !self.holds(&path)));
    }

    /// Whether the process of the mount has a descriptor of a file.
    fn holds(&self, path: &Path) -> bool {
        let table = fs::read_dir(format!("/proc/{}/fd", self.server.id())).unwrap();
        let mut links = table.flatten().flat_map(|fd| fs::read_link(fd.path()));
        links.any(|link| link == path)
    }
}

#[test]
fn a_handle_finds_its_file_after_the_kernel_forgot_it() {
    let Some(mut mounted) = mounted("handles of files below a mount", &["--nfs"]) else {
        return;
    };
    fs::create_dir_all(mounted.at.join("a/b")).unwrap();
    fs::write(mounted.at.join("a/b/file"), "text").unwrap();
    let (file, directory) = (mounted.handle("a/b/file"), mounted.handle("a/b"));
    mounted.let_forget("a/b/file");
    assert_eq!(mounted.text(&file).unwrap(), "text");

    // It moves with its file, and with the directories above.
    fs::rename(mounted.at.join("a/b/file"), mounted.at.join("a/moved")).unwrap();
    fs::rename(mounted.at.join("a"), mounted.at.join("c")).unwrap();
    mounted.let_forget("c/moved");
    assert_eq!(mounted.text(&file).unwrap(), "text");
    let found = mounted.opened(&directory).unwrap().metadata().unwrap();
    let wanted = fs::metadata(mounted.at.join("c/b")).unwrap();
    assert_eq!(found.ino(), wanted.ino());

    // It holds as long as the file has a name.
    fs::hard_link(mounted.at.join("c/moved"), mounted.at.join("c/other")).unwrap();
    fs::remove_file(mounted.at.join("c/moved")).unwrap();
    mounted.let_forget("c/other");
    assert_eq!(mounted.text(&file).unwrap(), "text");
    fs::remove_file(mounted.at.join("c/other")).unwrap();
    fs::write(mounted.at.join("c/other"), "another file").unwrap();
    // A forked child of another test can have the removed file open, until it executes a program.
    let is_stale = || mounted.text(&file) == Err(Errno::STALE);
    assert!(eventually(PATIENCE, is_stale));
    assert!(mounted.unmount().success());
}

#[test]
fn a_handle_of_an_earlier_mount_is_stale_or_means_the_same_file() {
    let what = "handles of files of an earlier mount";
    let Some(mut mounted) = mounted(what, &["--nfs"]) else {
        return;
    };
    let names = ["kept", "replaced"];
    let handles = names.map(|name| {
        fs::write(mounted.at.join(name), name).unwrap();
        mounted.handle(name)
    });
    let number = fs::metadata(mounted.behind.join("replaced")).unwrap().ino();
    assert!(mounted.unmount().success());
    fs::remove_file(mounted.behind.join("replaced")).unwrap();
    // A file system may give the number to the next file.
    fs::write(mounted.behind.join("new"), "another file").unwrap();
    let reused = fs::metadata(mounted.behind.join("new")).unwrap().ino() == number;
    mounted.mount_again(&["--nfs"]);
    for handle in &handles {
        assert_eq!(mounted.text(handle).unwrap_err(), Errno::STALE);
    }
    for name in ["kept", "new"] {
        fs::metadata(mounted.at.join(name)).unwrap();
    }
    assert_eq!(mounted.text(&handles[0]).unwrap(), "kept");
    assert_eq!(
        mounted.text(&handles[1]).unwrap_err(),
        Errno::STALE,
        "{reused}"
    );
    assert!(mounted.unmount().success());
}

#[test]
fn no_handle_leads_out_of_the_mounted_directory() {
    let Some(mut mounted) = mounted("forged handles", &["--nfs"]) else {
        return;
    };
    let outside = mounted.stage.path().join("outside");
    fs::write(&outside, "secret").unwrap();
    fs::write(mounted.at.join("inside"), "text").unwrap();
    let forged = |path: &Path| {
        let file = File::open(path).unwrap();
        let number = file.metadata().unwrap().ino();
        let own = FileHandle::of_open(file.as_fd()).unwrap();
        let words = [
            12,
            0x81,
            (number >> 32) as u32,
            number as u32,
            crc32fast::hash(own.bytes()),
        ];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        FileHandle::parse(&bytes).unwrap().0
    };
    if FileHandle::of_open(File::open(&outside).unwrap().as_fd()).is_err() {
        skipped("forged handles", "needs a file system with handles in /tmp");
        return;
    }
    // The same bytes lead to a file that is inside.
    let inside = forged(&mounted.behind.join("inside"));
    assert_eq!(inside, mounted.handle("inside"));
    assert_eq!(mounted.text(&inside).unwrap(), "text");
    let outside = forged(&outside);
    assert_eq!(mounted.text(&outside).unwrap_err(), Errno::STALE);
    assert!(mounted.unmount().success());
}

#[test]
fn a_mount_that_is_not_for_nfs_gives_no_lasting_handle() {
    let Some(mut mounted) = mounted("a mount without --nfs", &[]) else {
        return;
    };
    fs::write(mounted.at.join("file"), "text").unwrap();
    let handle = mounted.handle("file");
    mounted.let_forget("file");
    assert_eq!(mounted.text(&handle).unwrap_err(), Errno::STALE);
    assert!(mounted.unmount().success());
}
