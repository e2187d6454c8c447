//! With `--passthrough on`, the kernel reads and writes open files itself. Other tests of this form
//! of a mount compare behaviour, which is the same without it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::mpsc::channel;

use backstory_testkit::need::skipped;
use backstory_testkit::procs::eventually;
use rustix::process::{Pid, Signal, kill_process};

use crate::mount::mounted::{FurtherMount, PATIENCE, mounted};

/// The first kernel with it.
const FIRST: (u32, u32) = (6, 9);

/// The type of overlayfs, whose files the kernel does not pass through.
const OVERLAY: u64 = 0x794c_7630;

/// The first user namespace of a machine (`PROC_USER_INIT_INO`): only its root may pass files
/// through.
const FIRST_USERS: &str = "user:[4026531837]";

/// Words of the message about a file system that is stacked on another one.
const STACKED: &str = "stacked on another one";

/// The reason that the kernel does not pass a directory's files through, and a part of the message
/// about it. `None`: it does.
fn refusal(directory: &Path) -> Option<(&'static str, &'static str)> {
    let name = rustix::system::uname();
    let release = name.release().to_string_lossy().into_owned();
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map(|number| number.parse::<u32>().unwrap_or(0));
    let (major, minor) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let users = fs::read_link("/proc/self/ns/user").unwrap_or_default();
    if (major, minor) < FIRST {
        Some(("needs Linux 6.9", "use Linux 6.9 or later"))
    } else if users != Path::new(FIRST_USERS) {
        Some((
            "needs the first user namespace of the machine",
            "permits it only to root",
        ))
    } else if rustix::fs::statfs(directory).unwrap().f_type as u64 == OVERLAY {
        Some(("overlayfs is below the temporary directory", STACKED))
    } else {
        None
    }
}

#[test]
fn an_open_file_is_read_and_written_although_the_server_is_stopped() {
    let what = "reads and writes by the kernel alone";
    let Some(mut mounted) = mounted(what, &["--passthrough", "on"]) else {
        return;
    };
    if let Some((why, _)) = refusal(&mounted.behind) {
        return skipped(what, why);
    }
    let mut new = File::options();
    let new = new.read(true).write(true).create_new(true);
    let file = new.open(mounted.at.join("file")).unwrap();
    // Before the first write, the kernel asks for the capabilities of the file.
    file.write_all_at(b"text", 0).unwrap();
    let server = mounted.server.id();
    let pid = Pid::from_raw(server as i32).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    let stat = || fs::read_to_string(format!("/proc/{server}/stat")).unwrap();
    assert!(eventually(PATIENCE, || stat().contains(") T ")));
    let (sender, answer) = channel();
    let user = std::thread::spawn(move || {
        let mut read = [0; 4];
        file.read_exact_at(&mut read, 0).unwrap();
        file.write_all_at(b"TE", 0).unwrap();
        // A test that failed does not wait for it.
        let _ = sender.send(read);
    });
    let read = answer.recv_timeout(PATIENCE);
    kill_process(pid, Signal::CONT).unwrap();
    assert_eq!(read, Ok(*b"text"), "the mount was asked");
    user.join().unwrap();
    assert!(mounted.unmount().success());
    assert_eq!(fs::read(mounted.behind.join("file")).unwrap(), b"TExt");
}

/// An overlayfs at a directory, and the file system in memory that it is stacked on.
struct Overlay {
    stacked: FurtherMount,
    memory: FurtherMount,
}

impl Overlay {
    fn at(place: &Path, layers: &Path) -> Overlay {
        let memory = FurtherMount::at(layers, &["-t", "tmpfs", "memory"].map(OsStr::new));
        let [lower, upper, work] = ["lower", "upper", "work"].map(|name| {
            let layer = layers.join(name);
            fs::create_dir(&layer).unwrap();
            layer.display().to_string()
        });
        let layers = format!("lowerdir={lower},upperdir={upper},workdir={work}");
        let arguments = ["-t", "overlay", "-o", layers.as_str(), "overlay"].map(OsStr::new);
        let stacked = FurtherMount::at(place, &arguments);
        Overlay { stacked, memory }
    }

    fn unmount(self) {
        self.stacked.unmount();
        self.memory.unmount();
    }
}

/// Makes two files below a mount with these options. Returns the lines about passthrough that the
/// server writes, and the part that this machine expects. `None`, with a notice, where this machine
/// cannot do it.
fn lines_about_two_files(what: &str, options: &[&str]) -> Option<(Vec<String>, &'static str)> {
    let mut mounted = mounted(what, options)?;
    let messages = mounted.later_messages();
    let refused = refusal(&mounted.behind);
    let mut overlay = None;
    if refused.is_none() {
        let known = fs::read_to_string("/proc/filesystems").unwrap();
        if !known.lines().any(|line| line.ends_with("\toverlay")) {
            skipped(what, "the kernel has no overlayfs");
            return None;
        }
        let place = mounted.stage.directory("behind/place").unwrap();
        let layers = mounted.stage.directory("layers").unwrap();
        overlay = Some(Overlay::at(&place, &layers));
    } else {
        fs::create_dir(mounted.behind.join("place")).unwrap();
    }
    for name in ["first", "second"] {
        let file = mounted.at.join("place").join(name);
        fs::write(&file, name).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), name);
    }
    assert!(mounted.unmount().success());
    if let Some(overlay) = overlay {
        overlay.unmount();
    }
    let at = mounted.at.to_str().unwrap();
    let mut lines = messages.rest();
    lines.retain(|line| line.contains("passthrough"));
    assert!(lines.iter().all(|line| line.contains(at)), "{lines:?}");
    Some((lines, refused.map_or(STACKED, |(_, said)| said)))
}

#[test]
fn what_the_kernel_refuses_is_said_once() {
    let what = "the message about refused passthrough";
    let Some((lines, expected)) = lines_about_two_files(what, &["--passthrough", "on"]) else {
        return;
    };
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains(expected), "{lines:?}");
    assert!(lines[0].contains("`--passthrough off`"), "{lines:?}");
}

#[test]
fn a_mount_without_the_option_says_nothing_of_it() {
    let what = "no message about passthrough";
    let Some((lines, _)) = lines_about_two_files(what, &[]) else {
        return;
    };
    assert!(lines.is_empty(), "{lines:?}");
}
