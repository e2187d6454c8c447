//! Changes of the directory behind a mount.

use std::fs;
use std::io::Write;
use std::path::Path;

use crate::mount::mounted::mounted;

#[test]
fn a_change_behind_the_mount_is_visible_at_once() {
    let Some(mounted) = mounted("changes behind a mount", &[]) else {
        return;
    };
    for text in ["one", "another one", "a"] {
        fs::write(mounted.behind.join("file"), text).unwrap();
        assert_eq!(fs::read_to_string(mounted.at.join("file")).unwrap(), text);
        assert_eq!(
            fs::metadata(mounted.at.join("file")).unwrap().len(),
            text.len() as u64
        );
    }
    fs::remove_file(mounted.behind.join("file")).unwrap();
    assert!(!mounted.at.join("file").exists());
}

#[test]
fn a_program_that_appends_keeps_the_text_that_was_appended_behind_the_mount() {
    for options in [&[][..], &["--passthrough", "on"]] {
        let Some(mut mounted) = mounted("appends behind a mount", options) else {
            return;
        };
        let append = |directory: &Path| {
            let mut options = fs::OpenOptions::new();
            let options = options.create(true).append(true);
            options.open(directory.join("log")).unwrap()
        };
        let mut through = append(&mounted.at);
        through.write_all(b"one ").unwrap();
        append(&mounted.behind).write_all(b"two ").unwrap();
        through.write_all(b"three").unwrap();
        for directory in [&mounted.at, &mounted.behind] {
            let text = fs::read_to_string(directory.join("log")).unwrap();
            assert_eq!(text, "one two three", "{options:?}");
        }
        drop(through);
        assert!(mounted.unmount().success());
    }
}
