//! Tells changes made before the command began from later ones, by the time stamps of files.
//!
//! File systems take time stamps from a clock that stands still between two ticks of the kernel. A
//! file changed just before the command begins may have the same time stamp as one changed just
//! after. Therefore the log stores the reading of that clock at the command's start
//! ([`backstory_eventlog::run::RunEnd::quiet`]): an earlier time stamp belongs to an earlier
//! change. If a file named on the command line was changed in this very tick (`echo x >f; backstory
//! record -- cat f`), the command starts with the next tick.

use crate::header::Inherited;
use backstory_files::Ident;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, StatxFlags, openat2, statx};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// Most words of a command that are examined.
const WORDS: usize = 100;
/// Interval between two readings of the clock while it stands still.
const STEP: Duration = Duration::from_micros(200);
/// Most readings. No tick is that late, and a clock that was set back may never reach its old
/// value.
const STEPS: usize = 100;

/// The latest change of the files that the command is likely to use, in ns since 1970, if it
/// happened in the present tick. These files are its program, its inherited descriptors, and the
/// files and directories that its words name. Their directories and the current directory are
/// included. The function waits for no file system: a file that is not cached was not changed just
/// now.
pub(crate) fn just_changed(
    program: &[u8],
    command: &[impl AsRef<OsStr>],
    inherited: &[Inherited],
) -> Option<i64> {
    let tick = backstory_sys::clock::files();
    let words = command
        .iter()
        .take(WORDS)
        .map(|word| value(word.as_ref().as_bytes()));
    let named = [program, b"."].into_iter().chain(words);
    // Each path once: many words may lie in one directory.
    let places: BTreeSet<&[u8]> = named.flat_map(|place| [place, parent(place)]).collect();
    let changed = places
        .into_iter()
        .filter(|place| !place.is_empty())
        .filter_map(changed);
    let open = inherited.iter().filter_map(|i| Some(i.file?.ctime));
    // A time in the future comes from another clock.
    let now = backstory_sys::clock::machine();
    changed
        .chain(open)
        .filter(|at| (tick..=now).contains(at))
        .max()
}

/// The present reading of the file systems' clock. If a file was changed in this tick, the reading
/// after the next tick.
pub(crate) fn wait_past(just_changed: Option<i64>) -> i64 {
    for _ in 0..STEPS {
        if just_changed.is_none_or(|at| backstory_sys::clock::files() > at) {
            break;
        }
        std::thread::sleep(STEP);
    }
    backstory_sys::clock::files()
}

/// The path in a word like `--input=PATH`.
fn value(word: &[u8]) -> &[u8] {
    match word.iter().position(|&byte| byte == b'=') {
        Some(at) if word.starts_with(b"-") => &word[at + 1..],
        _ => word,
    }
}

/// The directory of a path. Empty if it is the current directory or the root.
fn parent(place: &[u8]) -> &[u8] {
    let parent = Path::new(OsStr::from_bytes(place)).parent();
    parent.map_or(b"", |parent| parent.as_os_str().as_bytes())
}

/// The last change of a path.
fn changed(path: &[u8]) -> Option<i64> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let place = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::CACHED).ok()?;
    let how = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let found = statx(&place, c"", how, StatxFlags::CTIME).ok()?;
    Some(Ident::from(&found).ctime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_in_this_tick_is_found_through_any_word_and_waited_out() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        let name = file.to_str().unwrap();
        let option = format!("--input={name}");
        // The clock may move on between making the file and examining it.
        let seen = |words: &[&str]| {
            (0..50).any(|_| {
                std::fs::write(&file, "x").unwrap();
                let Some(at) = just_changed(b"/bin/sh", words, &[]) else {
                    return false;
                };
                assert!(wait_past(Some(at)) > at);
                true
            })
        };
        assert!(seen(&["cat", name]));
        assert!(seen(&["cat", &option]));
        let unseen = (0..50).filter(|_| {
            std::fs::write(&file, "x").unwrap();
            just_changed(b"/bin/sh", &["true", "elsewhere"], &[]).is_none()
        });
        assert!(unseen.count() > 25, "what nobody named makes nobody wait");
    }

    #[test]
    fn a_time_that_the_clock_does_not_reach_holds_no_command_up_for_long() {
        wait_past(Some(i64::MAX));
        assert_eq!(just_changed(b"/bin/sh", &["true"], &[]), None);
    }
}
