//! Files are restored as they were.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};

use super::*;
use crate::rerun::overwritten_files;

/// A place with the files `written`, `replaced`, `removed` and the link `link`, all of which a step
/// changes. The step makes `new`.
struct Place(tempfile::TempDir);

const NAMES: [&str; 5] = ["written", "replaced", "removed", "link", "new"];

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        for name in &NAMES[..3] {
            fs::write(place.path(name), name).unwrap();
        }
        symlink("written", place.path("link")).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn take(&self) -> SetAside {
        let paths = NAMES.map(|name| self.path(name));
        let paths = paths.iter().map(|path| path.as_os_str().as_bytes());
        SetAside::take(&self.path("aside"), paths).unwrap()
    }

    fn step(&self) {
        fs::write(self.path("written"), "something longer").unwrap();
        fs::write(self.path("other"), "other").unwrap();
        fs::rename(self.path("other"), self.path("replaced")).unwrap();
        fs::remove_file(self.path("removed")).unwrap();
        fs::remove_file(self.path("link")).unwrap();
        symlink("replaced", self.path("link")).unwrap();
        fs::write(self.path("new"), "new").unwrap();
    }

    /// Size, modification time and content of each file.
    fn state(&self) -> Vec<(u64, i64, i64, Vec<u8>)> {
        let of = |name: &&str| {
            let path = self.path(name);
            let found = path.metadata().unwrap();
            (
                found.size(),
                found.mtime(),
                found.mtime_nsec(),
                fs::read(&path).unwrap(),
            )
        };
        NAMES[..3].iter().map(of).collect()
    }

    fn is_restored(&self, before: &[(u64, i64, i64, Vec<u8>)]) -> bool {
        self.state() == before
            && fs::read_link(self.path("link")).unwrap() == Path::new("written")
            && !self.path("new").exists()
    }

    fn aside(&self) -> usize {
        let entries = fs::read_dir(self.path("aside")).unwrap().flatten();
        entries.filter(|entry| entry.path().is_dir()).count()
    }
}

#[test]
fn a_restored_file_has_its_content_and_times_and_one_that_was_written_its_inode() {
    let place = Place::new();
    let before = place.state();
    let inode = || place.path("written").metadata().unwrap().ino();
    let first = inode();
    let aside = place.take();
    place.step();
    aside.restore().unwrap();
    assert!(place.is_restored(&before), "{:?}", place.state());
    assert_eq!((inode(), place.aside()), (first, 0));
}

#[test]
fn a_file_that_the_step_left_alone_is_not_touched() {
    let place = Place::new();
    let changed = || {
        let found = place.path("written").metadata().unwrap();
        (found.ino(), found.ctime(), found.ctime_nsec())
    };
    let before = changed();
    place.take().restore().unwrap();
    assert_eq!(changed(), before);
}

#[test]
fn nothing_is_aside_after_a_success() {
    let place = Place::new();
    let aside = place.take();
    place.step();
    aside.discard();
    assert!(place.path("new").exists() && place.aside() == 0);
    assert!(
        restore_left(&place.path("aside"), &|_| false)
            .restored
            .is_empty()
    );
}

#[test]
fn a_running_process_keeps_what_it_put_aside_and_a_killed_one_does_not() {
    let place = Place::new();
    let before = place.state();
    let aside = place.take();
    place.step();
    assert!(
        restore_left(&place.path("aside"), &|_| false)
            .restored
            .is_empty()
    );
    // A killed process loses its lock.
    own().retain(|(directory, _)| *directory != aside.directory);
    drop(aside);
    let left = restore_left(&place.path("aside"), &|_| false);
    assert!(
        left.failed.is_empty() && left.restored.len() == 5,
        "{left:?}"
    );
    assert!(place.is_restored(&before), "{:?}", place.state());
}

#[test]
fn what_is_aside_without_a_manifest_is_removed_and_changes_nothing() {
    let place = Place::new();
    place.take().discard();
    let directory = place.path("aside").join(OsStr::new("1-0"));
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("0.copy"), "x").unwrap();
    assert!(
        restore_left(&place.path("aside"), &|_| false)
            .restored
            .is_empty()
    );
    assert_eq!(place.aside(), 0);
}

#[test]
fn hard_links_attributes_and_holes_come_back() {
    let place = Place::new();
    for (name, other) in [("written", "written2"), ("replaced", "replaced2")] {
        fs::hard_link(place.path(name), place.path(other)).unwrap();
    }
    let sparse = File::create(place.path("removed")).unwrap();
    sparse.set_len(4 << 20).unwrap();
    let inode = |name: &str| place.path(name).metadata().unwrap().ino();
    let before = ["written", "replaced"].map(inode);
    let aside = place.take();
    place.step();
    aside.restore().unwrap();
    assert_eq!(["written", "replaced"].map(inode), before);
    assert_eq!(["written2", "replaced2"].map(inode), before);
    let texts = ["written", "replaced2"].map(|name| fs::read_to_string(place.path(name)).unwrap());
    assert_eq!(texts, ["written", "replaced"]);
    let removed = place.path("removed").metadata().unwrap();
    assert!(removed.len() == 4 << 20 && removed.blocks() * 512 < 1 << 20);
}

#[test]
fn two_names_of_one_file_are_linked_again_after_a_kill() {
    let place = Place::new();
    fs::remove_file(place.path("removed")).unwrap();
    fs::hard_link(place.path("replaced"), place.path("removed")).unwrap();
    let aside = place.take();
    place.step();
    own().retain(|(directory, _)| *directory != aside.directory);
    drop(aside);
    restore_left(&place.path("aside"), &|_| false);
    let inode = |name: &str| place.path(name).metadata().unwrap().ino();
    assert_eq!(inode("replaced"), inode("removed"));
}

#[test]
fn what_a_step_overwrote_is_kept_unless_its_bytes_are_stored() {
    let place = Place::new();
    let (kept, path) = (place.path("kept"), place.path("replaced"));
    let path = path.as_os_str().as_bytes();
    let aside = place.take();
    place.step();
    aside
        .archive(&kept, &|copy| fs::read(copy).unwrap() == b"removed")
        .unwrap();
    let found = overwritten_files::of(&kept, path);
    assert_eq!(found.len(), 1);
    assert_eq!(fs::read_to_string(&found[0].copy).unwrap(), "replaced");
    let removed = place.path("removed");
    assert!(overwritten_files::of(&kept, removed.as_os_str().as_bytes()).is_empty());
    assert_eq!(place.aside(), 0);
}
