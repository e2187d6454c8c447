//! Calls that wait until the log is durable (`--durability`).

use crate::recorder::libc_gate;
use crate::stage::{Told, call, spec, watch_with};
use backstory_guard::{FilterSpec, GuardSettings};
use backstory_vocabulary::DurabilityMode;
use std::ffi::CString;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::path::Path;
use std::sync::Arc;

/// The number of commits that calls of a guarded thread wait for.
fn commits(mode: DurabilityMode, act: impl FnOnce(&Path) -> i64 + Send + 'static) -> u32 {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().to_owned();
    for name in ["a", "b"] {
        std::fs::write(at.join(name), "text").unwrap();
    }
    let told = Arc::new(Told::default());
    // As the recorder's calls, those of this thread come from the gate.
    let gate = Some(libc_gate());
    let filter = FilterSpec {
        gate,
        durability: mode,
        ..spec()
    };
    let settings = GuardSettings {
        gate,
        durability: mode,
        ..GuardSettings::default()
    };
    let outcome = watch_with(filter, settings, told.clone(), move || act(&at));
    assert_eq!(outcome.result, 0, "the call itself succeeds");
    *told.commits.lock().unwrap()
}

fn rename(from: &Path, to: &Path) -> i64 {
    let [from, to] = [from, to].map(|path| CString::new(path.to_str().unwrap()).unwrap());
    let (from, to) = (from.as_ptr() as usize, to.as_ptr() as usize);
    call(libc::SYS_rename, [from, to, 0, 0, 0])
}

fn on_file(at: &Path, act: impl FnOnce(usize) -> i64) -> i64 {
    let file = std::fs::File::options()
        .write(true)
        .open(at.join("a"))
        .unwrap();
    let result = act(file.as_raw_fd() as usize);
    let number = file.into_raw_fd();
    call(libc::SYS_close, [number as usize, 0, 0, 0, 0]);
    result
}

fn write(at: &Path) -> i64 {
    on_file(at, |fd| {
        call(libc::SYS_write, [fd, b"x".as_ptr() as usize, 1, 0, 0]) - 1
    })
}

#[test]
fn a_flush_waits_also_from_the_gate() {
    use DurabilityMode::{After, Ordered, Sync};
    for (mode, expected) in [(After, 0), (Ordered, 1), (Sync, 1)] {
        for flush in [libc::SYS_fsync, libc::SYS_fdatasync, libc::SYS_syncfs] {
            let act = move |at: &Path| on_file(at, |fd| call(flush, [fd, 0, 0, 0, 0]));
            assert_eq!(commits(mode, act), expected, "{mode} {flush}");
        }
    }
}

#[test]
fn a_rename_waits_only_if_it_replaces_a_file_or_with_sync() {
    use DurabilityMode::{After, Ordered, Sync};
    for (mode, target, expected) in [
        (After, "b", 0),
        (Ordered, "b", 1),
        (Ordered, "new", 0),
        (Sync, "new", 1),
    ] {
        let act = move |at: &Path| rename(&at.join("a"), &at.join(target));
        assert_eq!(commits(mode, act), expected, "{mode} {target}");
    }
}

#[test]
fn a_write_waits_with_sync_alone() {
    assert_eq!(commits(DurabilityMode::Ordered, write), 0);
    assert_eq!(commits(DurabilityMode::Sync, write), 1);
}

#[test]
fn a_write_that_asks_for_durability_itself_waits() {
    for (flags, expected) in [(0, 0), (libc::RWF_DSYNC, 1)] {
        let act = move |at: &Path| {
            on_file(at, |fd| {
                let part = libc::iovec {
                    iov_base: b"x".as_ptr().cast_mut().cast(),
                    iov_len: 1,
                };
                // SAFETY: the piece is a live byte, and the descriptor is a file's.
                #[allow(unsafe_code)]
                let written = unsafe { libc::pwritev2(fd as i32, &raw const part, 1, 0, flags) };
                written as i64 - 1
            })
        };
        assert_eq!(commits(DurabilityMode::Ordered, act), expected, "{flags}");
    }
}
