//! A mount that has fewer descriptors than the programs below it would need.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::Duration;

use backstory_testkit::need::needs;
use backstory_testkit::procs::eventually;
use rustix::io::Errno;

use crate::mount::mounted::{MountedDirectory, mounted_by};

const PATIENCE: Duration = Duration::from_secs(120);

/// A mount that may have 256 descriptors, and may not raise this limit.
fn limited(what: &str) -> Option<MountedDirectory> {
    let limit = [
        "setpriv",
        "--bounding-set=-sys_resource",
        "--inh-caps=-sys_resource",
    ];
    let limit = [&limit[..], &["prlimit", "--nofile=256:256"]].concat();
    needs(what, &["setpriv", "prlimit"]).then(|| mounted_by(what, &limit, &[]))?
}

/// True if the call failed because the mount has no descriptor for it.
fn is_refused<T>(result: &io::Result<T>) -> bool {
    let error = result.as_ref().err().and_then(io::Error::raw_os_error);
    error == Some(Errno::MFILE.raw_os_error())
}

/// Makes files and keeps them open until the mount refuses one.
fn files_until_refused(at: &Path) -> Vec<File> {
    let mut open = Vec::new();
    loop {
        match File::create(at.join(format!("held{}", open.len()))) {
            Ok(file) => open.push(file),
            refused => {
                assert!(is_refused(&refused), "{refused:?}");
                return open;
            }
        }
        assert!(open.len() < 256);
    }
}

#[test]
fn a_mount_without_descriptors_refuses_an_operation_before_it_changes_anything() {
    let Some(mut mounted) = limited("a mount without descriptors") else {
        return;
    };
    fs::write(mounted.behind.join("old"), "text").unwrap();
    let open = files_until_refused(&mounted.at);
    let refused = [
        File::create(mounted.at.join("new")).map(drop),
        fs::create_dir(mounted.at.join("directory")),
        std::os::unix::fs::symlink("held0", mounted.at.join("link")),
        fs::hard_link(mounted.at.join("held0"), mounted.at.join("name")),
        fs::read(mounted.at.join("old")).map(drop),
    ];
    for (at, result) in refused.iter().enumerate() {
        assert!(is_refused(result), "{at}: {result:?}");
    }
    for name in ["new", "directory", "link", "name"] {
        assert!(
            fs::symlink_metadata(mounted.behind.join(name)).is_err(),
            "{name}"
        );
    }
    // Operations that need no descriptor of their own go on.
    fs::rename(mounted.at.join("held0"), mounted.at.join("renamed")).unwrap();
    rustix::io::write(&open[1], b"text").unwrap();
    fs::remove_file(mounted.at.join("held2")).unwrap();
    drop(open);
    let is_read = || fs::read(mounted.at.join("old")).is_ok_and(|text| text == b"text");
    assert!(eventually(PATIENCE, is_read));
    fs::write(mounted.at.join("new"), "text").unwrap();
    assert!(mounted.unmount().success());
    let show = mounted.answer(&["show", "--json"]);
    assert!(show.contains("\"complete\": true"), "{show}");
    // The caller was known all the time.
    let new = mounted.behind.join("new");
    let of = mounted.answer(&["of", "--json", new.to_str().unwrap()]);
    let own = std::env::current_exe().unwrap();
    assert!(of.contains(own.to_str().unwrap()), "{of}");
    let renamed = mounted.behind.join("renamed");
    let of = mounted.answer(&["of", "--json", renamed.to_str().unwrap()]);
    assert!(of.contains(own.to_str().unwrap()), "{of}");
}

#[test]
fn a_mount_with_few_descriptors_serves_any_number_of_files() {
    let Some(mut mounted) = limited("a mount with few descriptors") else {
        return;
    };
    for number in 0..1000 {
        fs::write(
            mounted.behind.join(format!("file{number}")),
            number.to_string(),
        )
        .unwrap();
    }
    for number in 0..1000 {
        let path = mounted.at.join(format!("file{number}"));
        let is_read = || match fs::read_to_string(&path) {
            Ok(text) => text == number.to_string(),
            // The kernel has not forgotten enough of the files before.
            refused => {
                assert!(is_refused(&refused), "{refused:?}");
                false
            }
        };
        assert!(eventually(PATIENCE, is_read), "{number}");
    }
    assert!(mounted.unmount().success());
}
