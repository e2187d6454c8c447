//! A change that fails below a mount is no change in the record.

use std::fs;
use std::process::Command;

use backstory_testkit::need::needs;
use serde_json::Value;

use crate::mount::mounted::{MountedDirectory, mounted_by};

/// Largest size of a file that the server of the mount may write. The file systems behind a mount
/// have room for larger ones.
const LARGEST: &str = "--fsize=1099511627776";

/// Files that the program opens to read and write.
const FILES: [&str; 5] = ["source", "target", "written", "origin", "copied"];

/// The server may not write beyond its largest size, and changes nothing of the file there.
const PROGRAM: &str = "
import errno, os
def refused(change):
    try:
        change()
    except OSError as error:
        assert error.errno == errno.EFBIG, error
    else:
        raise AssertionError('not refused')
names = ('source', 'target', 'written', 'origin', 'copied')
source, target, written, origin, copied = (os.open(name, os.O_RDWR) for name in names)
refused(lambda: os.copy_file_range(source, target, 4096, 0, 1 << 40))
refused(lambda: os.pwrite(written, b'text', 1 << 40))
assert os.copy_file_range(origin, copied, 4096) == 4096";

/// The reads and writes of a file that certainly happened.
fn certain_uses(mounted: &MountedDirectory, name: &str) -> Vec<String> {
    let path = mounted.behind.join(name);
    let answer = mounted.answer(&["who", "--json", path.to_str().unwrap()]);
    let touches: Value = serde_json::from_str(&answer).unwrap();
    let mut certain = Vec::new();
    for touch in touches.as_array().unwrap() {
        let words = |field: &str| -> Vec<String> {
            let words = touch[field].as_array().unwrap().iter();
            words
                .map(|word| word.as_str().unwrap().to_owned())
                .collect()
        };
        let possible = words("possible");
        let is_use = |word: &String| ["read", "write"].contains(&word.as_str());
        let uses = words("access").into_iter().filter(is_use);
        certain.extend(uses.filter(|word| !possible.contains(word)));
    }
    certain
}

#[test]
fn a_write_or_copy_that_fails_is_neither_a_read_nor_a_write_in_the_record() {
    let what = "changes that fail below a mount";
    if !needs(what, &["prlimit", "python3"]) {
        return;
    }
    let Some(mut mounted) = mounted_by(what, &["prlimit", LARGEST], &[]) else {
        return;
    };
    for name in FILES {
        fs::write(mounted.behind.join(name), vec![b'x'; 4096]).unwrap();
    }
    let mut python = Command::new("python3");
    let python = python.args(["-c", PROGRAM]).current_dir(&mounted.at);
    let done = python.output().unwrap();
    assert!(done.status.success(), "{done:?}");
    assert!(mounted.unmount().success());
    for name in ["target", "written"] {
        let unchanged = fs::read(mounted.behind.join(name)).unwrap();
        assert_eq!(unchanged, vec![b'x'; 4096], "{name}");
    }
    let none: [&str; 0] = [];
    for name in ["source", "target", "written"] {
        assert_eq!(certain_uses(&mounted, name), none, "{name}");
    }
    assert_eq!(certain_uses(&mounted, "origin"), ["read"]);
    assert_eq!(certain_uses(&mounted, "copied"), ["write"]);
}
