//! Tests of remembered names: each answer is the one of a look-up.

use super::*;
use backstory_testkit::private_mounts::PrivateMounts;
use rustix::fs::{RenameFlags, renameat_with, statat};
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// No names, for directories that may have changed just now.
fn impatient() -> RememberedNames {
    RememberedNames {
        rest: 0,
        ..RememberedNames::default()
    }
}

/// A directory in memory, whose file system is one of [`STAMPING`].
fn place() -> TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap()
}

/// Waits until the clock of file systems has advanced.
fn tick() {
    let begun = clock::files();
    while clock::files() == begun {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The file that a look-up of the path finds.
fn found(path: &Path) -> Option<FileKey> {
    let st = statat(CWD, path, AtFlags::empty()).ok()?;
    let is_file = FileType::from_raw_mode(st.st_mode) == FileType::RegularFile;
    is_file.then_some((st.st_dev as u32, st.st_ino))
}

/// Tells for some paths, in one examination, whether their files are known. Each known file must be
/// the one that a look-up finds.
#[track_caller]
fn examine(names: &mut RememberedNames, paths: &[&Path]) -> Vec<bool> {
    let mut is_known = |path: &&Path| {
        let known = names.file(path.as_os_str().as_bytes());
        assert!(known.is_none() || known == found(path), "{path:?}");
        known.is_some()
    };
    let all = paths.iter().map(&mut is_known).collect();
    names.end();
    all
}

/// Makes a name known: its directory is met, and the name is looked up.
#[track_caller]
fn learn(names: &mut RememberedNames, path: &Path) {
    tick();
    assert_eq!(examine(names, &[path]), [false]);
    // If the machine's clock is set just now, all names are forgotten. If it was set back, the
    // directory is younger than the clock for a while, and does not count as one that stays.
    let is_known = |_| {
        std::thread::sleep(Duration::from_millis(10));
        examine(names, &[path]) == [true]
    };
    assert!((0..500).any(is_known));
}

#[test]
fn a_directory_that_stays_answers_for_its_files_without_a_look_up() {
    let dir = place();
    let [a, b] = ["a", "b"].map(|name| dir.path().join(name));
    let paths = [&*a, &*b];
    for path in paths {
        fs::write(path, "").unwrap();
    }
    let mut names = impatient();
    learn(&mut names, &a);
    assert_eq!(examine(&mut names, &paths), [true, true]);
    for path in paths {
        assert_eq!(names.file(path.as_os_str().as_bytes()), found(path));
    }
    assert!(names.opened.is_none(), "a name was looked up again");
}

/// A directory with `a`, `b`, `d/a`, `e/a` and the link `l` to `d`.
fn tree() -> TempDir {
    let dir = place();
    for name in ["d", "e"] {
        fs::create_dir(dir.path().join(name)).unwrap();
    }
    for name in ["a", "b", "d/a", "e/a"] {
        fs::write(dir.path().join(name), name).unwrap();
    }
    symlink("d", dir.path().join("l")).unwrap();
    dir
}

fn exchange(a: &Path, b: &Path) {
    renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).unwrap();
}

/// Puts another file or directory in the place of a name.
type Change = fn(&Path);

const CHANGES: [(&str, Change); 8] = [
    ("a", |dir| fs::rename(dir.join("b"), dir.join("a")).unwrap()),
    ("a", |dir| exchange(&dir.join("a"), &dir.join("b"))),
    ("a", |dir| {
        // The inode stays in use, so the new file has another one.
        fs::hard_link(dir.join("a"), dir.join("e/b")).unwrap();
        fs::remove_file(dir.join("a")).unwrap();
        fs::write(dir.join("a"), "new").unwrap();
    }),
    ("a", |dir| {
        fs::rename(dir.join("a"), dir.join("c")).unwrap();
        fs::hard_link(dir.join("b"), dir.join("a")).unwrap();
    }),
    ("a", |dir| {
        fs::rename(dir.join("a"), dir.join("c")).unwrap();
        symlink("b", dir.join("a")).unwrap();
    }),
    ("d/a", |dir| exchange(&dir.join("d"), &dir.join("e"))),
    ("d/a", |dir| {
        fs::rename(dir.join("d"), dir.join("c")).unwrap();
        symlink("e", dir.join("d")).unwrap();
    }),
    ("l/a", |dir| {
        fs::remove_file(dir.join("l")).unwrap();
        symlink("e", dir.join("l")).unwrap();
    }),
];

#[test]
fn a_name_that_leads_to_another_file_is_looked_up_again() {
    // Whether the change is older than the present time of file systems.
    let all = [false, true]
        .into_iter()
        .flat_map(|old| CHANGES.map(|change| (old, change)));
    for (at, (old, (name, change))) in all.enumerate() {
        let dir = tree();
        let path = dir.path().join(name);
        let mut names = impatient();
        learn(&mut names, &path);
        let before = found(&path);
        change(dir.path());
        assert_ne!(found(&path), before, "change {at}");
        if old {
            tick();
        }
        for _ in 0..3 {
            examine(&mut names, &[&path]);
            tick();
        }
    }
}

#[test]
fn a_link_is_looked_up_each_time() {
    let dir = tree();
    let link = dir.path().join("e/link");
    symlink("../a", &link).unwrap();
    let mut names = impatient();
    tick();
    for _ in 0..4 {
        assert_eq!(examine(&mut names, &[&link]), [false]);
    }
    // The directory of the link stays.
    exchange(&dir.path().join("a"), &dir.path().join("b"));
    assert_eq!(examine(&mut names, &[&link]), [false]);
}

#[test]
fn a_directory_that_has_just_changed_is_not_relied_on() {
    let dir = tree();
    let path = dir.path().join("a");
    let mut names = RememberedNames::default();
    tick();
    for _ in 0..4 {
        assert_eq!(examine(&mut names, &[&path]), [false]);
    }
}

#[test]
fn names_in_other_file_systems_are_looked_up_each_time() {
    let path = Path::new("/proc/sys/kernel/ostype");
    let mut names = impatient();
    for _ in 0..5 {
        tick();
        assert_eq!(examine(&mut names, &[path]), [false]);
    }
    assert!(names.others.len() == 1 && names.names == 0);
}

#[test]
fn a_mount_over_a_name_is_noticed() {
    let what = "mounts over names that were looked up";
    let Some(mounts) = PrivateMounts::of_this_thread(what).unwrap() else {
        return;
    };
    let dir = tree();
    let (path, other) = (dir.path().join("a"), dir.path().join("b"));
    let mut names = impatient();
    learn(&mut names, &path);
    mounts.replace(&path, &other).unwrap();
    assert_eq!(found(&path), found(&other));
    for _ in 0..3 {
        examine(&mut names, &[&path]);
    }
    unmount(&path);
    assert_ne!(found(&path), found(&other));
    examine(&mut names, &[&path]);
}

fn unmount(path: &Path) {
    let unmounted = std::process::Command::new("umount").arg(path).status();
    assert!(unmounted.unwrap().success());
}

#[test]
fn a_directory_that_is_mounted_twice_has_names_of_its_own_in_each_mount() {
    let what = "a directory that is mounted twice";
    let Some(mounts) = PrivateMounts::of_this_thread(what).unwrap() else {
        return;
    };
    let dir = tree();
    let in_dir = |name: &str| dir.path().join(name);
    mounts.replace(&in_dir("e"), &in_dir("d")).unwrap();
    mounts.replace(&in_dir("e/a"), &in_dir("b")).unwrap();
    let path = in_dir("l/a");
    let mut names = impatient();
    learn(&mut names, &path);
    // The link leads to the same directory then, and no mount is made.
    fs::remove_file(in_dir("l")).unwrap();
    symlink("e", in_dir("l")).unwrap();
    assert_eq!(found(&path), found(&in_dir("b")));
    for _ in 0..3 {
        examine(&mut names, &[&path]);
    }
    unmount(&in_dir("e/a"));
    unmount(&in_dir("e"));
}

#[test]
fn a_file_of_another_file_system_over_a_name_is_looked_up_each_time() {
    let what = "a file of another file system over a name";
    let Some(mounts) = PrivateMounts::of_this_thread(what).unwrap() else {
        return;
    };
    let dir = tree();
    let path = dir.path().join("a");
    mounts.replace(&path, Path::new("/proc/version")).unwrap();
    let mut names = impatient();
    tick();
    for _ in 0..4 {
        assert_eq!(examine(&mut names, &[&path]), [false]);
    }
    unmount(&path);
}

#[test]
fn all_names_are_forgotten_when_the_clock_was_set() {
    let dir = tree();
    let path = dir.path().join("a");
    let mut names = impatient();
    learn(&mut names, &path);
    let [_, clock] = names.view.0.as_mut().unwrap();
    let info = format!("/proc/thread-self/fdinfo/{}", clock.as_raw_fd());
    let info = fs::read_to_string(info).unwrap();
    // TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET
    assert!(info.contains("settime flags: 03"), "{info}");
    // A test cannot set the clock. A timer that is cancelled is readable, as the end of a pipe is.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(writer);
    *clock = reader.into();
    assert_eq!(examine(&mut names, &[&path]), [false]);
    assert_eq!(examine(&mut names, &[&path]), [true]);
}

#[test]
fn a_directory_with_the_latest_time_of_its_file_system_is_not_relied_on() {
    assert!(will_differ(LATEST - 1, LATEST));
    assert!(!will_differ(LATEST - 1, LATEST - 1));
    assert!(!will_differ(LATEST, LATEST + 1));
    assert!(will_differ(LATEST + 1, LATEST + 2));
}

#[test]
fn no_more_names_are_remembered_than_the_limit() {
    let dir = tree();
    let [a, b] = ["d/a", "e/a"].map(|name| dir.path().join(name));
    let mut names = impatient();
    learn(&mut names, &a);
    names.names = NAMES;
    assert_eq!(examine(&mut names, &[&a, &b]), [false, false]);
    assert_eq!((names.names, names.directories.len()), (0, 2));
    assert_eq!(examine(&mut names, &[&a, &b]), [true, true]);
}

/// Changes names at random, without a wait in most cases.
#[test]
fn random_changes_of_names_leave_no_wrong_answer() {
    let dir = tree();
    let in_dir = |name: &str| dir.path().join(name);
    let names_of = |place: &str| ["a", "b", "c"].map(|name| in_dir(place).join(name));
    let paths: Vec<PathBuf> = [".", "d", "e", "l"]
        .into_iter()
        .flat_map(names_of)
        .collect();
    let asked: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let mut state = 88172645463325252_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let (mut names, mut known) = (impatient(), 0);
    for _ in 0..600 {
        let [one, other] = [(); 2].map(|()| &paths[random(paths.len())]);
        // Any of these may fail.
        let _ = match random(12) {
            0 => fs::rename(one, other),
            1 => fs::remove_file(one),
            2 => fs::write(one, "new"),
            3 => fs::hard_link(one, other),
            4 => symlink(other, one),
            5 => renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).map_err(Into::into),
            6 => renameat_with(CWD, in_dir("d"), CWD, in_dir("e"), RenameFlags::EXCHANGE)
                .map_err(Into::into),
            7 => fs::remove_file(in_dir("l"))
                .and_then(|()| symlink(["d", "e"][random(2)], in_dir("l"))),
            _ => {
                tick();
                Ok(())
            }
        };
        if random(4) == 0 {
            tick();
        }
        let answers = examine(&mut names, &asked);
        known += answers.into_iter().filter(|is_known| *is_known).count();
    }
    assert!(known > 300, "{known}");
}
