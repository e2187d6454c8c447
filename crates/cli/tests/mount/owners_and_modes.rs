//! Owners, permissions and set-user-ID bits below a mount are those of the directory itself.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::time::Duration;

use backstory_testkit::need::{needs, skipped};
use backstory_testkit::procs::eventually;

use crate::mount::mounted::mounted;

/// The kernel reads and writes all open files of an inode by itself, or none.
#[test]
fn a_file_is_opened_again_after_its_set_user_id_bit_has_changed() {
    let what = "opens of one file with passthrough";
    let Some(mounted) = mounted(what, &["--passthrough", "on"]) else {
        return;
    };
    let path = mounted.at.join("file");
    let set_mode = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    for modes in [[0o4755, 0o755], [0o755, 0o4755]] {
        fs::write(&path, "text").unwrap();
        set_mode(modes[0]);
        let first = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(&path)
            .unwrap();
        set_mode(modes[1]);
        let second = fs::File::open(&path).unwrap();
        first.write_all_at(b"TE", 0).unwrap();
        let mut bytes = [0; 4];
        second.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(&bytes, b"TExt", "{modes:?}");
        fs::remove_file(&path).unwrap();
    }
}

/// Root's writes keep the bit. The kernel's own writes would clear it: they lack root's privilege.
#[test]
fn root_writes_a_file_that_got_its_set_user_id_bit_while_it_was_open() {
    let what = "a set-user-ID bit during an open with passthrough";
    if !rustix::process::geteuid().is_root() {
        skipped(what, "needs root");
        return;
    }
    let Some(mounted) = mounted(what, &["--passthrough", "on"]) else {
        return;
    };
    for place in [&mounted.behind, &mounted.at] {
        let path = place.join("file");
        fs::write(&path, "text").unwrap();
        let reader = fs::File::open(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o6755)).unwrap();
        let mut options = fs::OpenOptions::new();
        let writer = options.read(true).write(true).open(&path).unwrap();
        writer.write_all_at(b"TE", 0).unwrap();
        writer.set_len(3).unwrap();
        let mode = fs::metadata(&path).unwrap().mode() & 0o7777;
        assert_eq!(mode, 0o6755, "{place:?}");
        for file in [&reader, &writer] {
            let mut bytes = [0; 5];
            let count = file.read_at(&mut bytes, 0).unwrap();
            assert_eq!(&bytes[..count], b"TEx", "{place:?}");
        }
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn chown_without_a_new_owner_acts_as_in_the_directory_itself() {
    let Some(mounted) = mounted("chown without a new owner", &[]) else {
        return;
    };
    for place in [&mounted.behind, &mounted.at] {
        let path = place.join("file");
        fs::write(&path, "text").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o4755)).unwrap();
        let before = fs::metadata(&path).unwrap();
        let changed = || {
            std::os::unix::fs::chown(&path, None, None).unwrap();
            let now = fs::metadata(&path).unwrap();
            (now.ctime(), now.ctime_nsec()) != (before.ctime(), before.ctime_nsec())
        };
        // The clock of the file system stands still for some milliseconds.
        assert!(eventually(Duration::from_secs(120), changed), "{place:?}");
        let mode = fs::metadata(&path).unwrap().mode() & 0o7777;
        assert_eq!(mode, 0o755, "{place:?}");
    }
}

#[test]
fn a_file_belongs_to_the_user_who_makes_it_and_has_the_mode_that_its_umask_leaves() {
    let Some(mounted) = mounted("owners of files in a mounted directory", &[]) else {
        return;
    };
    fs::set_permissions(&mounted.behind, fs::Permissions::from_mode(0o777)).unwrap();
    let made = mounted.shell(
        "umask 027; setpriv --reuid 1234 --regid 2345 --clear-groups sh -c '
            : > file; mkdir directory; ln -s x link; mkfifo fifo'
         chmod 2777 directory
         setpriv --reuid 1234 --regid 99 --clear-groups sh -c ': > directory/inherits'",
    );
    assert!(made.status.success(), "{made:?}");
    let seen = |name: &str| {
        let of = fs::symlink_metadata(mounted.behind.join(name)).unwrap();
        (of.uid(), of.gid(), of.permissions().mode() & 0o7777)
    };
    assert_eq!(seen("file"), (1234, 2345, 0o640));
    assert_eq!(seen("directory"), (1234, 2345, 0o2777));
    assert_eq!(seen("link"), (1234, 2345, 0o777));
    assert_eq!(seen("fifo"), (1234, 2345, 0o640));
    assert_eq!(seen("directory/inherits"), (1234, 2345, 0o640));
}

#[test]
fn a_user_may_do_below_the_mount_what_the_modes_of_the_directory_allow() {
    let Some(mounted) = mounted("permissions in a mounted directory", &[]) else {
        return;
    };
    mounted.shell("echo secret > mine; chmod 600 mine; echo all > yours; chmod 644 yours");
    fs::set_permissions(&mounted.behind, fs::Permissions::from_mode(0o755)).unwrap();
    let as_other = |script: &str| {
        let script = format!("setpriv --reuid 1234 --regid 2345 --clear-groups sh -c '{script}'");
        mounted.shell(&script).status.success()
    };
    assert!(as_other("cat yours"));
    for refused in [
        "cat mine",
        "echo x >> yours",
        "rm -f mine",
        ": > new",
        "chmod 666 yours",
    ] {
        assert!(!as_other(refused), "{refused}");
    }
}

/// Compares the modes of set-user-ID and set-group-ID files that a user has changed.
fn changed_by(user: &str, options: &[&str]) {
    let Some(mounted) = mounted("set-user-ID files in a mounted directory", options) else {
        return;
    };
    let plain = mounted.stage.directory("plain").unwrap();
    let script = format!(
        "for f in write append truncate open allocate copy keep; do
             echo text > $f; chmod 6777 $f; done
         setpriv {user} sh -ec '
             printf x 1<>write; printf x >>append; truncate -s 1 truncate; : >open
             fallocate -l 99 allocate; cp write copy; cat keep'
         stat -c '%n %a' *"
    );
    let there = std::process::Command::new("sh")
        .args(["-ec", &script])
        .current_dir(&plain)
        .output()
        .unwrap();
    assert!(there.status.success(), "{there:?}");
    assert_eq!(mounted.shell(&script), there, "{user} {options:?}");
}

#[test]
fn a_file_that_an_ordinary_user_changes_loses_its_set_user_id_bit() {
    if !needs("set-user-ID files", &["setpriv", "fallocate"]) {
        return;
    }
    for options in [&[][..], &["--passthrough", "on"]] {
        changed_by("--reuid 1234 --regid 2345 --clear-groups", options);
        changed_by("--reuid 0", options);
    }
}
