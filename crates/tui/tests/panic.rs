//! The terminal after a panic. A pseudo-terminal of the test's own is the terminal, and the program
//! in it is this test once more.
#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use backstory_store::MemoryStore;
use backstory_tui::{Destination, ViewedStore, run};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Termios, Winsize, tcgetattr, tcsetwinsize};

/// Names the pipe at whose end the child panics.
const PANICS: &str = "BACKSTORY_TUI_TEST_PANICS";

/// The part of the test that runs inside the terminal: the views, and a thread that panics as soon
/// as the test has seen them.
#[test]
#[ignore = "runs inside the terminal of the other test"]
fn inside_the_terminal() {
    let Some(pipe) = std::env::var_os(PANICS) else {
        return;
    };
    std::thread::spawn(move || {
        let _ = File::open(pipe).and_then(|mut pipe| pipe.read(&mut [0]));
        let _ = std::panic::catch_unwind(|| panic!("as the test wants it"));
        std::process::exit(101);
    });
    let viewed = ViewedStore {
        store: &MemoryStore::default(),
        bytes: "/nonexistent".into(),
    };
    run(viewed, Destination::Runs).unwrap();
}

/// A pseudo-terminal, and what is written to it.
struct Pty {
    ours: OwnedFd,
    theirs: File,
    written: Receiver<Vec<u8>>,
}

impl Pty {
    fn new() -> Pty {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let path = std::path::Path::new(name.to_str().unwrap());
        let theirs = File::options().read(true).write(true).open(path).unwrap();
        let size = Winsize {
            ws_row: 10,
            ws_col: 60,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&theirs, size).unwrap();
        let mut reader = File::from(ours.try_clone().unwrap());
        let (send, written) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                if send.send(bytes[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Pty {
            ours,
            theirs,
            written,
        }
    }

    /// Waits until this was written, and returns all that was written so far.
    fn shows(&self, wanted: &str) -> String {
        let mut all = Vec::new();
        loop {
            let more = self.written.recv_timeout(Duration::from_secs(120));
            let text = String::from_utf8_lossy(&all).into_owned();
            let more = more.unwrap_or_else(|error| panic!("{error}: no {wanted:?} in {text:?}"));
            all.extend(more);
            let text = String::from_utf8_lossy(&all).into_owned();
            if text.contains(wanted) {
                return text;
            }
        }
    }

    fn settings(&self) -> Termios {
        tcgetattr(&self.ours).unwrap()
    }
}

#[test]
fn a_panic_is_printed_on_a_restored_terminal() {
    let place = std::env::temp_dir().join(format!("backstory-tui-{}", std::process::id()));
    // A killed process of this number may have left one.
    let _ = std::fs::remove_file(&place);
    let made = rustix::fs::mknodat(
        rustix::fs::CWD,
        &place,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    );
    made.unwrap();
    let pty = Pty::new();
    let before = pty.settings();
    let terminal = || Stdio::from(pty.theirs.try_clone().unwrap());
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "inside_the_terminal", "--ignored", "--nocapture"])
        .env(PANICS, &place)
        .env("TERM", "xterm")
        .stdin(terminal())
        .stdout(terminal())
        .stderr(terminal())
        .spawn()
        .unwrap();
    let views = pty.shows("search");
    assert!(views.contains("\x1b[?1049h"), "{views:?}");
    assert!(!pty.settings().local_modes.contains(LocalModes::ICANON));
    // The child reads the end of the pipe, and panics.
    drop(File::options().write(true).open(&place).unwrap());
    let after = pty.shows("as the test wants it");
    let restored = after.find("\x1b[?1049l").unwrap();
    assert!(
        restored < after.find("as the test wants it").unwrap(),
        "{after:?}"
    );
    assert!(after.contains("\x1b[?25h"), "{after:?}");
    assert_eq!(child.wait().unwrap().code(), Some(101));
    let _ = std::fs::remove_file(&place);
    let modes = |settings: Termios| {
        (
            settings.input_modes,
            settings.output_modes,
            settings.local_modes,
        )
    };
    assert_eq!(modes(pty.settings()), modes(before));
}
