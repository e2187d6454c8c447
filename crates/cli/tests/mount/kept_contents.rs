//! A file that a program changed below a mount with `--contents` comes back.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use backstory_testkit::need::needs;
use backstory_testkit::procs::kill;
use backstory_testkit::program::worker_beside;

use crate::mount::mounted::{MountedDirectory, mounted};

const MAPPED: &str = "import mmap; f = open('mapped', 'r+b'); m = mmap.mmap(f.fileno(), 0); m[:3] = b'new'; m.flush()";
const RANGED: &str = "import os; a = os.open('source', os.O_RDONLY); b = os.open('ranged', os.O_WRONLY); os.copy_file_range(a, b, 6)";

/// Ways to change a file: its name, and a program that changes it.
fn changes() -> Vec<(&'static str, String)> {
    let plain = [
        ("emptied", "echo new > emptied"),
        ("appended", "echo new >> appended"),
        ("replaced", "echo new > beside; mv beside replaced"),
        ("removed", "rm removed"),
        ("cut", "truncate -s 3 cut"),
        (
            "patched",
            "printf x | dd of=patched conv=notrunc status=none",
        ),
        ("punched", "fallocate -p -o 0 -l 4096 punched"),
    ];
    let python = [("mapped", MAPPED), ("ranged", RANGED)];
    let plain = plain.map(|(name, command)| (name, command.to_owned()));
    let python = python.map(|(name, script)| (name, format!("python3 -c \"{script}\"")));
    plain.into_iter().chain(python).collect()
}

fn before(name: &str) -> String {
    format!("the content of {name} before\n")
}

/// A mount over files that were there before it.
fn over_old_files(what: &str, options: &[&str]) -> Option<MountedDirectory> {
    let mut mounted = mounted(what, &[])?;
    assert!(mounted.unmount().success());
    for (name, _) in changes() {
        fs::write(mounted.behind.join(name), before(name)).unwrap();
    }
    fs::write(mounted.behind.join("source"), "source of a copy\n").unwrap();
    mounted.mount_again(options);
    Some(mounted)
}

fn moved(mounted: &MountedDirectory, step: &str, path: &Path) -> String {
    let words = [step, path.to_str().unwrap()];
    let done = mounted.stage.backstory(&words).output().unwrap();
    assert!(done.status.success(), "{words:?}: {done:?}");
    fs::read_to_string(path).unwrap()
}

/// Each file is changed, and brought back. `first` reads it before the change.
fn comes_back(what: &str, first: &str, options: &[&str]) {
    if !needs(what, &["python3", "fallocate", "dd"]) {
        return;
    }
    let Some(mut mounted) = over_old_files(what, options) else {
        return;
    };
    for (name, change) in changes() {
        let done = mounted.shell(&format!("{first} {name}; {change}"));
        assert!(done.status.success(), "{change}: {done:?}");
    }
    assert!(mounted.unmount().success());
    mounted.answer(&["index", "--wait"]);
    for (name, _) in changes() {
        let path = mounted.behind.join(name);
        let changed = fs::read_to_string(&path).ok();
        assert_ne!(changed, Some(before(name)), "{name}");
        assert_eq!(moved(&mounted, "undo", &path), before(name), "{name}");
        if let Some(changed) = changed {
            assert_eq!(moved(&mounted, "redo", &path), changed, "{name}");
        }
    }
    let show = mounted.answer(&["show", "--json"]);
    assert!(show.contains("\"complete\": true"), "{show}");
}

#[test]
fn a_file_that_a_program_changed_comes_back() {
    comes_back("all versions below a mount", ":", &["--contents=all"]);
}

#[test]
fn a_file_that_the_kernel_wrote_without_asking_comes_back() {
    let options = ["--contents=all", "--passthrough=on"];
    comes_back("all versions with passthrough", ":", &options);
}

#[test]
fn a_file_that_a_program_read_comes_back_with_lazy() {
    let (what, first) = ("read contents below a mount", "cat >/dev/null");
    comes_back(what, first, &["--contents=lazy"]);
    comes_back(what, first, &["--contents=lazy", "--passthrough=on"]);
}

/// The directories of preserved contents in the store.
fn kept_directories(mounted: &MountedDirectory) -> Vec<PathBuf> {
    let entries = fs::read_dir(mounted.stage.store().join("runs")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let kept = paths.filter(|path| path.extension().is_some_and(|is| is == "kept"));
    kept.collect()
}

#[test]
fn a_mount_without_contents_preserves_nothing() {
    for (options, directories) in [(&[][..], 0), (&["--contents=all"], 1)] {
        let Some(mounted) = mounted("a mount that keeps no contents", options) else {
            return;
        };
        fs::write(mounted.behind.join("file"), "before\n").unwrap();
        assert!(mounted.shell("echo new > file").status.success());
        assert_eq!(kept_directories(&mounted).len(), directories, "{options:?}");
    }
}

#[test]
fn of_and_diff_say_what_changed_inside_of_a_file_below_a_mount() {
    let Some(mut mounted) = mounted("a table below a mount", &["--contents=all"]) else {
        return;
    };
    let program = mounted.stage.backstory(&[] as &[&str]);
    let built = Path::new(env!("CARGO_BIN_EXE_backstory"));
    if !worker_beside(built, program.get_program().as_ref(), "backstory-inspect").unwrap() {
        return;
    }
    let table = mounted.behind.join("table.csv");
    fs::write(&table, "id,x\na,1\nb,2\n").unwrap();
    let change = "sed -i 's/b,2/b,3/' table.csv";
    assert!(mounted.shell(change).status.success());
    assert!(mounted.unmount().success());
    mounted.answer(&["index", "--wait"]);
    let diff = mounted
        .stage
        .backstory(&["diff", table.to_str().unwrap()])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&diff.stdout);
    assert!(text.contains("b, x: 2 → 3"), "{diff:?}");
    // `of` gives the inspector one second, which a busy machine may not have. A question in SQL has
    // no such limit, and stores the inspector's answer.
    let changes = mounted.answer(&["query", "SELECT change FROM changes"]);
    assert!(changes.contains("1 cell changed"), "{changes}");
    let of = mounted.answer(&["of", table.to_str().unwrap()]);
    assert!(of.contains("1 cell changed"), "{of}");
}

#[test]
fn diff_names_the_command_that_changed_a_file_and_not_the_shell_that_started_it() {
    let what = "the cause of a change below a mount";
    let Some(mut mounted) = mounted(what, &["--contents=all"]) else {
        return;
    };
    let first = "printf '1,a\\n2,b\\n' > n.csv";
    assert!(mounted.shell(first).status.success());
    // The shell writes a file itself, so that the mount sees it, too.
    let change = "echo > other; sed -i s/2,b/2,c/ n.csv; true";
    assert!(mounted.shell(change).status.success());
    assert!(mounted.unmount().success());
    mounted.answer(&["index", "--wait"]);
    let table = mounted.behind.join("n.csv");
    let words = ["diff", table.to_str().unwrap()];
    let diff = mounted.stage.backstory(&words).output().unwrap();
    let text = String::from_utf8_lossy(&diff.stdout);
    let cause = "  command of b only: sed -i s/2,b/2,c/ n.csv\n";
    assert!(text.contains(cause), "{diff:?}");
    let folded = "1 command of one side that only started others (";
    assert!(text.contains(folded), "{diff:?}");
}

#[test]
fn a_file_of_another_user_comes_back_as_its_own() {
    let what = "a changed file of another user";
    if !needs(what, &["setpriv"]) {
        return;
    }
    let Some(mut mounted) = mounted(what, &["--contents=all"]) else {
        return;
    };
    let file = mounted.behind.join("theirs");
    fs::write(&file, "before\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    chown(&file, Some(1234), Some(2345)).unwrap();
    let change = "setpriv --reuid 1234 --regid 2345 --clear-groups sh -c 'echo new > theirs'";
    let done = mounted.shell(change);
    assert!(done.status.success(), "{done:?}");
    assert!(mounted.unmount().success());
    mounted.answer(&["index", "--wait"]);
    assert_eq!(moved(&mounted, "undo", &file), "before\n");
    let of = fs::metadata(&file).unwrap();
    assert_eq!((of.uid(), of.gid(), of.mode() & 0o777), (1234, 2345, 0o600));
}

#[test]
fn an_open_file_that_lost_its_name_has_no_other() {
    let what = "an open file without a name";
    if !needs(what, &["python3"]) {
        return;
    }
    let Some(mut mounted) = mounted(what, &["--contents=all"]) else {
        return;
    };
    let file = mounted.behind.join("file");
    fs::write(&file, "before\n").unwrap();
    let script = "import os; f = os.open('file', os.O_RDWR); os.unlink('file'); os.write(f, b'later'); \
                  assert os.fstat(f).st_nlink == 0, os.fstat(f)";
    let done = mounted.shell(&format!("python3 -c \"{script}\""));
    assert!(done.status.success(), "{done:?}");
    assert!(mounted.unmount().success());
    mounted.answer(&["index", "--wait"]);
    assert_eq!(moved(&mounted, "undo", &file), "before\n");
}

/// A small file system over a directory. Dropped, it is unmounted.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn over(directory: PathBuf) -> SmallDisk {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=12m,mode=700", "tmpfs"]);
        assert!(mount.arg(&directory).status().unwrap().success());
        SmallDisk(directory)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Sets the limit of the contents of the user's store.
fn limit(mounted: &MountedDirectory, contents: &str) {
    let directory = mounted.stage.path().join("home/.config/backstory");
    fs::create_dir_all(&directory).unwrap();
    let text = format!("[limits]\ncontents = \"{contents}\"\n");
    fs::write(directory.join("config.toml"), text).unwrap();
}

/// Overwrites a file of 8 MiB below a mount whose store has no room for it, for a reason that
/// `show` and `undo` name.
fn overwritten_without_room(mounted: &mut MountedDirectory, why: &str) {
    let file = mounted.behind.join("large");
    fs::write(&file, vec![b'x'; 8 << 20]).unwrap();
    mounted.mount_again(&["--contents=all"]);
    let done = mounted.shell("cat large > /dev/null; echo new > large");
    assert!(done.status.success(), "{done:?}");
    assert!(mounted.unmount().success());
    assert_eq!(fs::read_to_string(&file).unwrap(), "new\n");
    mounted.answer(&["index", "--wait"]);
    let show = mounted.answer(&["show", "--json"]);
    assert!(show.contains(why), "{show}");
    let words = ["undo", file.to_str().unwrap()];
    let undo = mounted.stage.backstory(&words).output().unwrap();
    let said = String::from_utf8_lossy(&undo.stderr);
    assert!(!undo.status.success() && said.contains(why), "{undo:?}");
}

#[test]
fn programs_go_on_and_the_run_says_what_was_not_kept_if_the_disk_is_full() {
    let what = "a full disk below the store of a mount";
    let Some(mut mounted) = mounted(what, &[]) else {
        return;
    };
    assert!(mounted.unmount().success());
    limit(&mounted, "none");
    let _disk = SmallDisk::over(mounted.stage.store());
    let why = "could not be preserved before that: No space left";
    overwritten_without_room(&mut mounted, why);
}

#[test]
fn programs_go_on_and_the_run_says_what_was_not_kept_if_the_limit_is_reached() {
    let Some(mut mounted) = mounted("the limit of preserved contents", &[]) else {
        return;
    };
    assert!(mounted.unmount().success());
    limit(&mounted, "4M");
    let why = "what its run preserved had reached the limit of the store's contents";
    overwritten_without_room(&mut mounted, why);
}

#[test]
fn a_killed_server_loses_no_content_that_it_preserved() {
    let what = "preserved contents of a killed server";
    let Some(mut mounted) = mounted(what, &["--contents=all"]) else {
        return;
    };
    let paths: Vec<PathBuf> = (0..20)
        .map(|number| mounted.behind.join(format!("file{number}")))
        .collect();
    for path in &paths {
        fs::write(path, format!("before, {}\n", path.display())).unwrap();
    }
    let change = "for number in $(seq 0 9); do echo new > file$number; done; rm file1?";
    assert!(mounted.shell(change).status.success());
    kill(mounted.server.id()).unwrap();
    mounted.server.wait().unwrap();
    mounted.answer(&["index", "--wait"]);
    for path in &paths {
        let text = moved(&mounted, "undo", path);
        assert_eq!(text, format!("before, {}\n", path.display()));
    }
}
