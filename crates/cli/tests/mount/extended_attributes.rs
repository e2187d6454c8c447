//! Extended attributes below a mount: flags, sizes, lists, and copies of files that have some.

use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::fs::{XattrFlags, setxattr};
use rustix::fs::{getxattr, getxattr_query, listxattr, listxattr_query, removexattr};
use rustix::io::Errno;

use crate::mount::mounted::mounted;

/// The results of operations on the attributes of a new file.
fn results(directory: &Path) -> Vec<Result<usize, Errno>> {
    let file = directory.join("file");
    let file = file.as_path();
    fs::write(file, "text").unwrap();
    let set = |name: &str, value: &str, flags| {
        let done = setxattr(file, name, value.as_bytes(), flags);
        done.map(|()| value.len())
    };
    let get = |name: &str, room: usize| getxattr(file, name, &mut vec![0_u8; room][..]);
    let any = XattrFlags::empty();
    vec![
        set("user.a", "one", XattrFlags::CREATE),
        set("user.a", "two", XattrFlags::CREATE),
        set("user.b", "three", XattrFlags::REPLACE),
        set("user.b", "three", any),
        set("user.a", "", XattrFlags::REPLACE),
        set("user.c", &"x".repeat(1000), any),
        set("trusted.a", "four", any),
        set("unknown.a", "five", any),
        getxattr_query(file, "user.b"),
        getxattr_query(file, "user.d"),
        get("user.b", 4),
        get("user.b", 5),
        get("user.a", 5),
        get("user.d", 5),
        removexattr(file, "user.c").map(|()| 0),
        removexattr(file, "user.c").map(|()| 0),
        listxattr_query(file),
        listxattr(file, &mut [0_u8; 2][..]),
    ]
}

/// The attributes that a file has, with their values.
fn attributes(file: &Path) -> Vec<(String, Vec<u8>)> {
    let mut room = [0_u8; 1024];
    let length = listxattr(file, &mut room[..]).unwrap();
    let text = String::from_utf8_lossy(&room[..length]).into_owned();
    let with_value = |name: &str| {
        let mut room = [0_u8; 1024];
        let length = getxattr(file, name, &mut room[..]).unwrap();
        (name.to_owned(), room[..length].to_vec())
    };
    let mut all: Vec<_> = text.split_terminator('\0').map(with_value).collect();
    all.sort_unstable();
    all
}

#[test]
fn extended_attributes_below_a_mount_are_those_of_the_directory() {
    let Some(mut mounted) = mounted("extended attributes below a mount", &[]) else {
        return;
    };
    let plain = mounted.stage.directory("plain").unwrap();
    assert_eq!(results(&mounted.at), results(&plain));
    // `cp` asks for the size of each value, and of the list.
    for directory in [&mounted.at, &plain] {
        let mut copy = Command::new("cp");
        let copied = copy.args(["-a", "file", "copy"]).current_dir(directory);
        assert!(copied.status().unwrap().success());
    }
    for name in ["file", "copy"] {
        let expected = attributes(&plain.join(name));
        for directory in [&mounted.at, &mounted.behind] {
            let found = attributes(&directory.join(name));
            assert_eq!(found, expected, "{name} in {directory:?}");
        }
    }
    assert!(mounted.unmount().success());
}
