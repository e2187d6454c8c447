//! `record --remote` where the other machine cannot record, or its run does not come back.

use super::remote::TwoMachines;
use backstory_testkit::need::skipped;
use std::fs;
use std::process::Command;
use std::time::Duration;

/// The reasons of the newest run here.
fn reasons(both: &TwoMachines) -> Vec<String> {
    let shown = both.run_here();
    let because = shown["incomplete_because"].as_array().unwrap();
    let because = because.iter().map(|one| one.as_str().unwrap().to_owned());
    let because: Vec<String> = because.collect();
    assert_eq!(shown["complete"], because.is_empty(), "{shown}");
    because
}

#[test]
pub(super) fn a_machine_that_cannot_keep_the_program_runs_the_command_plainly() {
    let Some(both) = TwoMachines::with(
        "a machine without room for the program",
        "XDG_CACHE_HOME=/dev/null/cache",
    ) else {
        return;
    };
    let ssh = both.words("ssh");
    let done = both.record(&format!("echo text | {ssh} box 'tr a-z A-Z; exit 3'"));
    assert_eq!((done.status, done.out.as_str()), (3, "TEXT\n"), "{done:?}");
    let reasons = reasons(&both);
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    let begin = "what ssh started on box is not recorded: backstory cannot be copied there";
    assert!(reasons[0].starts_with(begin), "{reasons:?}");
    // `record` says so at once.
    assert!(done.err.contains(begin), "{done:?}");
    assert_eq!(done.err.lines().count(), 1, "{done:?}");
}

#[test]
pub(super) fn a_run_that_does_not_come_back_is_a_reason_until_it_comes() {
    let Some(mut both) = TwoMachines::new("a run that does not come back") else {
        return;
    };
    let ssh = both.words("ssh");
    let (done, stopped) = (both.here.path("done"), both.here.path("stopped"));
    let line = format!(
        "{ssh} box 'echo x > {}'; touch {done}; until test -e {stopped}; do sleep 0.05; done",
        both.far("made")
    );
    let words = ["record", "--remote", "--", "/bin/sh", "-c", &line];
    let mut recording = both.here.command(&words).spawn().unwrap();
    while !fs::exists(&done).unwrap() {
        assert!(recording.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(20));
    }
    both.stop();
    both.here.write("stopped", "");
    assert!(recording.wait().unwrap().success());
    let absent = reasons(&both);
    assert_eq!(absent.len(), 1, "{absent:?}");
    assert!(
        absent[0].contains(" of box is not in this store: "),
        "{absent:?}"
    );
    let log = both.here.json(&["log", "--json"]);
    assert_eq!(log[0]["complete"], false, "{log}");
    assert!(both.start());
    let came = both.here.run(&["index", "--wait"]);
    assert_eq!((came.status, came.err.as_str()), (0, ""), "{came:?}");
    assert_eq!(reasons(&both), Vec::<String>::new());
    let of = both.here.run(&["of", &both.far("made")]);
    assert!(of.out.contains("echo x"), "{of:?}");
}

#[test]
fn a_connection_that_is_cut_in_the_middle_ends_the_command_as_without_recording() {
    let Some(mut both) = TwoMachines::new("a connection that is cut") else {
        return;
    };
    let ssh = both.words("ssh");
    let begun = both.far("begun");
    let line = format!("{ssh} box 'echo x > {begun}; sleep 600'");
    let words = ["record", "--remote", "--", "/bin/sh", "-c", &line];
    let mut recording = both.here.command(&words);
    recording.stderr(std::process::Stdio::null());
    let mut recording = recording.spawn().unwrap();
    while !fs::exists(&begun).unwrap() {
        assert!(recording.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(20));
    }
    both.stop();
    // The status of ssh for a lost connection.
    assert_eq!(recording.wait().unwrap().code(), Some(255));
    let absent = reasons(&both);
    assert_eq!(absent.len(), 1, "{absent:?}");
    assert!(absent[0].contains(" is not in this store: "), "{absent:?}");
}

#[test]
fn a_copy_with_other_bytes_is_replaced_before_it_is_used() {
    let Some(both) = TwoMachines::new("a damaged copy of the program") else {
        return;
    };
    let ssh = both.words("ssh");
    both.keep(&format!("{ssh} box true"));
    let programs = both.there.path().join("cache/backstory/programs");
    let copies = || -> Vec<std::path::PathBuf> {
        let entries = fs::read_dir(&programs).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    };
    let [copy] = copies().try_into().unwrap();
    let forged = format!("#!/bin/sh\ntouch {}\n", both.far("forged"));
    let whole = fs::metadata(&copy).unwrap().len();
    backstory_testkit::program::write(&copy, forged.as_bytes()).unwrap();
    both.keep(&format!("{ssh} box true"));
    assert_eq!(fs::metadata(&copy).unwrap().len(), whole);
    assert!(!fs::exists(both.far("forged")).unwrap());
    assert_eq!(copies(), [copy]);
}

#[test]
fn an_installed_program_of_another_version_is_not_used() {
    let Some(both) = TwoMachines::new("another version on the other machine") else {
        return;
    };
    let (bin, used) = (both.there.path().join("old"), both.far("used"));
    fs::create_dir(&bin).unwrap();
    let old = format!("#!/bin/sh\ntouch {used}\necho backstory 0.0.1 remote 1\n");
    backstory_testkit::program::write(&bin.join("backstory"), old.as_bytes()).unwrap();
    let rc = format!("PATH={}:$PATH\n", bin.display());
    fs::write(both.there.path().join("home/.bashrc"), rc).unwrap();
    both.keep(&format!(
        "{} box 'echo y > {}'",
        both.words("ssh"),
        both.far("y")
    ));
    let of = both.here.run(&["of", &both.far("y")]);
    assert!(of.out.contains("echo y"), "{of:?}");
}

#[test]
fn start_up_files_that_print_text_make_the_command_run_plainly() {
    let Some(both) = TwoMachines::new("start-up files that print text") else {
        return;
    };
    let rc = both.there.path().join("home/.bashrc");
    fs::write(&rc, "echo welcome\n").unwrap();
    let ssh = both.words("ssh");
    let done = both.record(&format!("{ssh} box 'echo text'"));
    if !done.out.starts_with("welcome\n") {
        return skipped(
            "start-up files that print text",
            "the login shell of this user reads no .bashrc",
        );
    }
    assert_eq!((done.status, done.out.as_str()), (0, "welcome\ntext\n"));
    let reasons = reasons(&both);
    assert!(reasons[0].ends_with("print text"), "{reasons:?}");
}

/// A file system of 1 MB, mounted while this value lives.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    fn mount(at: std::path::PathBuf) -> Option<SmallDisk> {
        SmallDisk::with(at, "size=1m,mode=700")
    }

    fn with(at: std::path::PathBuf, options: &str) -> Option<SmallDisk> {
        fs::create_dir_all(&at).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "none"]);
        let mounted = mount.arg(&at).status().is_ok_and(|status| status.success());
        if !mounted {
            skipped("a full disk on the other machine", "no permission to mount");
        }
        mounted.then_some(SmallDisk(at))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_disk_without_room_for_the_program_keeps_no_part_of_it() {
    let at = tempfile::tempdir().unwrap();
    let cache = format!("XDG_CACHE_HOME={}", at.path().join("small").display());
    let Some(both) = TwoMachines::with("a full disk on the other machine", &cache) else {
        return;
    };
    let Some(disk) = SmallDisk::mount(at.path().join("small")) else {
        return;
    };
    let done = both.record(&format!("{} box 'echo said; exit 4'", both.words("ssh")));
    assert_eq!((done.status, done.out.as_str()), (4, "said\n"), "{done:?}");
    assert!(done.err.contains("No space left on device"), "{done:?}");
    let programs = fs::read_dir(disk.0.join("backstory/programs")).unwrap();
    assert_eq!(programs.count(), 0);
}

#[test]
fn a_disk_without_room_for_the_run_does_not_disturb_the_command() {
    let at = tempfile::tempdir().unwrap();
    let data = format!("XDG_DATA_HOME={}", at.path().join("small").display());
    let Some(both) = TwoMachines::with("a full disk on the other machine", &data) else {
        return;
    };
    let Some(disk) = SmallDisk::mount(at.path().join("small")) else {
        return;
    };
    let _ = fs::write(disk.0.join("full"), vec![0; 2 << 20]);
    let done = both.record(&format!("{} box 'echo said; exit 4'", both.words("ssh")));
    assert_eq!((done.status, done.out.as_str()), (4, "said\n"), "{done:?}");
    let absent = reasons(&both);
    assert_eq!(absent.len(), 1, "{absent:?}");
    assert!(
        absent[0].contains(" of box is not in this store: "),
        "{absent:?}"
    );
}

#[test]
fn a_cache_that_executes_nothing_makes_the_command_run_plainly() {
    let at = tempfile::tempdir().unwrap();
    let cache = format!("XDG_CACHE_HOME={}", at.path().join("small").display());
    let Some(both) = TwoMachines::with("a cache directory mounted noexec", &cache) else {
        return;
    };
    let Some(_disk) = SmallDisk::with(at.path().join("small"), "noexec,mode=700") else {
        return;
    };
    let done = both.record(&format!("{} box 'echo said; exit 4'", both.words("ssh")));
    assert_eq!((done.status, done.out.as_str()), (4, "said\n"), "{done:?}");
    let reasons = reasons(&both);
    assert!(reasons[0].contains("does not run there"), "{reasons:?}");
    assert!(reasons[0].ends_with("Permission denied"), "{reasons:?}");
}

#[test]
fn a_machine_of_another_architecture_runs_the_command_plainly() {
    let Some(both) = TwoMachines::new("a machine of another architecture") else {
        return;
    };
    let bin = both.there.path().join("odd");
    fs::create_dir(&bin).unwrap();
    let uname = "#!/bin/sh\ncase $1 in -m) echo sparc64 ;; *) echo Linux ;; esac\n";
    backstory_testkit::program::write(&bin.join("uname"), uname.as_bytes()).unwrap();
    let rc = format!("PATH={}:$PATH\n", bin.display());
    fs::write(both.there.path().join("home/.bashrc"), rc).unwrap();
    let done = both.record(&format!("{} box 'uname -m; exit 4'", both.words("ssh")));
    if done.out != "sparc64\n" {
        let why = "the login shell of this user reads no .bashrc";
        return skipped("a machine of another architecture", why);
    }
    assert_eq!(done.status, 4, "{done:?}");
    let reasons = reasons(&both);
    assert!(
        reasons[0].contains("a machine of Linux sparc64, not Linux "),
        "{reasons:?}"
    );
}
