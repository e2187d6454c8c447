//! With `--passthrough on`, the kernel reads and writes open files itself. Other tests of this form
//! of a mount compare behaviour, which is the same without it.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::mpsc::channel;

use backstory_testkit::need::skipped;
use backstory_testkit::procs::eventually;
use rustix::process::{Pid, Signal, kill_process};

use crate::mounted::{PATIENCE, mounted};

/// The first kernel with it.
const FIRST: (u32, u32) = (6, 9);

/// The type of overlayfs, whose files the kernel does not pass through.
const OVERLAY: u64 = 0x794c_7630;

/// The first user namespace of a machine (`PROC_USER_INIT_INO`): only its root may pass files
/// through.
const FIRST_USERS: &str = "user:[4026531837]";

/// Why the kernel does not pass the files of a directory through. `None`: it does.
fn refusal(directory: &Path) -> Option<&'static str> {
    let name = rustix::system::uname();
    let release = name.release().to_string_lossy().into_owned();
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map(|number| number.parse::<u32>().unwrap_or(0));
    let (major, minor) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let users = fs::read_link("/proc/self/ns/user").unwrap_or_default();
    if (major, minor) < FIRST {
        Some("needs Linux 6.9")
    } else if users != Path::new(FIRST_USERS) {
        Some("needs the first user namespace of the machine")
    } else if rustix::fs::statfs(directory).unwrap().f_type as u64 == OVERLAY {
        Some("overlayfs is below the temporary directory")
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
    if let Some(why) = refusal(&mounted.behind) {
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
