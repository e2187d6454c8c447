//! `replay` of every change to files. Each line is recorded, all its inputs are removed, and each
//! output is identical after the replay.

use std::fs;
use std::os::unix::fs::symlink;

use backstory_testkit::need::needs;

use super::Place;

impl Place {
    /// Files `a` and `b`, a directory `d` with `x` and `y`, links `soft` (to `a`) and `dangling`.
    /// All are older than the granularity of the file system's clock.
    pub(crate) fn furnished() -> Place {
        let place = Place::new();
        place.write("a", "one 1\ntwo 2\nthree 3\n");
        place.write("b", "bee\ncow\n");
        let own = |name: &str| {
            let path = place.work().join(name);
            rustix::fs::chownat(
                rustix::fs::CWD,
                &path,
                place.owner().0,
                place.owner().1,
                rustix::fs::AtFlags::SYMLINK_NOFOLLOW,
            )
            .unwrap();
        };
        fs::create_dir(place.work().join("d")).unwrap();
        for (link, target) in [("soft", "a"), ("dangling", "nothing")] {
            symlink(target, place.work().join(link)).unwrap();
        }
        ["d", "soft", "dangling"].into_iter().for_each(own);
        place.write("d/x", "x\n");
        place.write_aged("d/y", "y\n");
        place
    }

    fn owner(&self) -> (Option<rustix::fs::Uid>, Option<rustix::fs::Gid>) {
        use std::os::unix::fs::MetadataExt;
        let meta = fs::metadata(self.work()).unwrap();
        let (uid, gid) = (
            rustix::fs::Uid::from_raw(meta.uid()),
            rustix::fs::Gid::from_raw(meta.gid()),
        );
        (Some(uid), Some(gid))
    }
}

/// Records each line in a stage of its own, and replays it.
fn come_back(lines: &[&str]) {
    for line in lines {
        let program = ["busybox", "perl"]
            .into_iter()
            .find(|tool| line.starts_with(tool));
        if program.is_none_or(|tool| needs("a replay", &[tool])) {
            Place::furnished().comes_back(line);
        }
    }
}

#[test]
fn a_file_renamed_linked_or_removed_comes_back() {
    come_back(&[
        "mv a moved; mv b d/b",
        "exec mv d e",
        "ln a hard; ln hard harder; rm hard",
        "rm -r d a",
        "mv a t; mv t back; ln -sf b soft; cat back soft > both",
        "cat a d/x > both; mv a t; mv t u; mv d e; mv e h; echo x > u; rm h/x",
        "cat a b > both; mv a b; mv b d/b; echo x > d/b",
    ]);
}

#[test]
fn a_file_written_beside_and_renamed_over_comes_back() {
    // `sed` opens its temporary file for reading, too. Its content is one version under two names.
    come_back(&["sed -i s/one/1/ a d/x", "echo n > t; ln t final; rm t"]);
}

/// While a file is open for writing, all its names lead to one version. The record must know which
/// names it kept.
#[test]
fn a_file_that_keeps_another_name_than_its_first_comes_back() {
    come_back(&[
        "exec 3>t; echo x >&3; ln t final; rm t",
        "exec 3>t; echo x >&3; mv t u; ln u v; rm v",
        "exec 3>t; echo x >&3; ln t u; ln u v; rm t",
        "exec 3>>a; echo x >&3; ln a final; rm a; exec 3>&-; cat final > copy",
        "busybox sh -c 'cat a > t; ln t u; ln u final; mv t v; rm u v'",
    ]);
    let python = "import ctypes, os\n\
        open('n', 'w').write('new'); libc = ctypes.CDLL(None)\n\
        assert libc.renameat2(-100, b'n', -100, b'a', 2) == 0\n\
        f = os.open('.', os.O_TMPFILE | os.O_WRONLY, 0o644); os.write(f, b'late')\n\
        assert libc.linkat(-100, b'/proc/self/fd/%d' % f, -100, b'late', 0x400) == 0\n";
    if needs("the replay of an exchange of two names", &["python3"]) {
        let place = Place::furnished();
        place.write_aged("work.py", python);
        place.comes_back("python3 -S work.py");
    }
}

#[test]
fn a_file_emptied_without_being_made_comes_back() {
    come_back(&[
        "dd if=/dev/null of=a conv=nocreat status=none",
        "printf x | dd of=d/x conv=nocreat status=none",
        "busybox truncate -c -s 5 a; truncate -c -s 0 b d/y nothing",
    ]);
}

#[test]
fn a_file_changed_through_dev_fd_comes_back() {
    come_back(&[
        "exec 3<b; echo more >> /dev/fd/3",
        "exec 3<b 4<a; echo new > /proc/self/fd/3; cat <&4 > copy",
        "sh -c 'echo one > /dev/stdout' >> a",
        "exec 3<b; cat <&3; rm b; echo more >> /dev/fd/3",
        "exec 3>t; echo one > /dev/fd/3; cat /proc/self/fd/3 > copy",
        "busybox sh -c 'exec 3<b; echo more >> /dev/fd/3; (echo two > /dev/stdout) >> a'",
    ]);
}

/// A program that copies, packs or lists a tree sees that two names are one file, even in two
/// directories. It reads the file once.
#[test]
fn a_file_with_names_in_two_directories_comes_back() {
    let tar = "tar --sort=none -cf t.tar t";
    for line in [
        "cp -a t u; ls -R u > l",
        tar,
        "find t -links 2 > found",
        "rsync -aH t/ u",
    ] {
        let tool = line.split(' ').next().unwrap_or_default();
        if !needs("a replay of a copy", &[tool]) {
            continue;
        }
        let place = Place::furnished();
        for dir in ["t", "t/x", "t/y"] {
            fs::create_dir(place.work().join(dir)).unwrap();
            place.stage.user().owns(&place.work().join(dir)).unwrap();
        }
        place.write("t/x/a", "one\n");
        place.write_aged("t/x/c", "two\n");
        fs::hard_link(place.path("t/x/a"), place.path("t/y/b")).unwrap();
        fs::hard_link(place.path("t/x/c"), place.path("t/y/c")).unwrap();
        place.age("t/y/c");
        place.comes_back(line);
    }
}

/// With `RESOLVE_IN_ROOT`, an absolute path and one that leads above start at the given directory.
#[test]
fn a_file_opened_with_resolve_in_root_comes_back() {
    let place = Place::furnished();
    let Some(program) = place.fixture("open_how") else {
        return;
    };
    place.age("../bin/open_how");
    place.comes_back(&program);
    let files = place.json(&["files", "--json"]);
    let paths: Vec<&str> = files
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|file| file["path"].as_str())
        .collect();
    assert!(
        paths.contains(&&*place.path("d/y")) && !paths.contains(&"/y") && !paths.contains(&"/../y"),
        "{paths:?}"
    );
}

/// Opened with O_PATH only. The name that stands for the descriptor shows that it was read.
#[test]
fn a_file_read_through_dev_fd_comes_back() {
    if !needs("the replay of a file opened again", &["python3"]) {
        return;
    }
    let place = Place::furnished();
    place.write_aged(
        "work.py",
        "import os\nplace = os.open('a', os.O_PATH)\nagain = open('/proc/self/fd/%d' % place)\n\
         open('copy', 'w').write(again.read())\nos.unlink('a')\n",
    );
    place.comes_back("python3 -S work.py");
}

/// The listing of a directory by a program without the recorder is not seen, but the open is.
#[test]
fn a_static_programs_directory_order_comes_back() {
    if !needs("the replay of a static program's listing", &["busybox"]) {
        return;
    }
    let place = Place::furnished();
    for name in ["m", "c", "q", "e", "z", "b", "k"] {
        place.write(format!("d/{name}"), "");
    }
    place.age("d/k");
    place.comes_back("busybox tar cf t.tar d");
}

/// A second name that no process used is no file of its own. Archives store the time of a link.
#[test]
fn hard_links_and_old_symbolic_links_are_packed_and_copied_alike() {
    for line in [
        "tar cf t.tar d soft",
        "mkdir c; cp -a d soft c; stat -c '%n %h %Y' c/soft c/d c/d/* > told",
    ] {
        let place = Place::furnished();
        fs::hard_link(place.work().join("d/x"), place.work().join("d/z")).unwrap();
        let mut touch = place.stage.command("touch");
        touch
            .args(["-h", "-d", "@1000000000", "soft", "d/x", "d"])
            .current_dir(place.work());
        assert!(touch.status().unwrap().success());
        place.age("d");
        place.comes_back(line);
    }
}

#[test]
fn a_file_read_and_changed_in_place_comes_back() {
    come_back(&[
        "exec 3<>a; read line <&3; echo \"$line again\" >&3",
        "cat a > copy; printf XY | dd of=a bs=2 seek=1 conv=notrunc status=none",
        "dd if=a of=b bs=1 count=2 seek=3 conv=notrunc status=none; cat b > copy",
        "perl -pi -e 's/one/1/' a d/x",
        "busybox sh -c 'exec 3<>a; read line <&3; echo again >&3'",
        "sort -o a -r a; truncate -s 3 a; cat a > copy",
    ]);
}

#[test]
fn a_file_changed_without_being_read_comes_back() {
    come_back(&[
        "touch a new",
        "echo more >> a",
        "truncate -s 4 a; truncate -s 100 b",
        "printf XY | dd of=a bs=2 seek=1 conv=notrunc status=none",
        "chmod 600 a; chmod -R go-r d",
    ]);
}

#[test]
fn a_directorys_order_comes_back() {
    come_back(&[
        "tar cf t.tar a d",
        "ls -U d > second",
        "find . -name '?' > found",
    ]);
    let place = Place::furnished();
    for name in ["m", "c", "q", "e", "z", "b", "k"] {
        place.write(format!("d/{name}"), "");
    }
    place.age("d/k");
    place.comes_back("ls -U d > order");
}

#[test]
fn directories_that_were_only_entered_or_tried_come_back() {
    come_back(&[
        "(cd d; exec pwd) > where",
        "readlink soft dangling > links; test -d d && echo yes > is",
        "sh -c \"cd d; pwd > ../where\"; (cd d; echo z > z)",
    ]);
}

#[test]
fn a_redirected_output_belongs_to_the_caller() {
    let place = Place::furnished();
    let printed = place.path("printed");
    let run = {
        let mut command = place.command(&[
            "record",
            "--contents=lazy",
            "--",
            "sh",
            "-c",
            "echo said; cat a > out",
        ]);
        fs::write(&printed, "before\n").unwrap();
        let file = fs::OpenOptions::new().append(true).open(&printed).unwrap();
        assert!(command.stdout(file).status().unwrap().success());
        place.run(&["index", "--wait"]);
        place.json(&["log", "--json"])[0]["run"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    place.replays_alike(&run);
}
