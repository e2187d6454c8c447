//! `replay` of whatever can be done to files: each line is recorded, everything it was done from removed, and each output is identical.

use std::fs;
use std::os::unix::fs::symlink;

use super::Place;

impl Place {
    /// Files `a` and `b`, a directory `d` with `x` and `y`, links `soft` (to `a`) and `dangling`, all older than the clock is coarse.
    fn furnished() -> Place {
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
        place.write_settled("d/y", "y\n");
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

/// Records the lines one after the other, each in a place of its own, and replays them.
fn come_back(lines: &[&str]) {
    for line in lines {
        Place::furnished().comes_back(line);
    }
}

#[test]
fn what_was_renamed_linked_or_removed_comes_back() {
    come_back(&[
        "mv a moved; mv b d/b",
        "exec mv d e",
        "ln a hard; ln hard harder; rm hard",
        "rm -r d a",
        "mv a t; mv t back; ln -sf b soft; cat back soft > both",
    ]);
}

#[test]
fn what_was_written_beside_and_renamed_over_comes_back() {
    // `sed` opens its temporary file to be read, too: its content is one version under two names.
    come_back(&["sed -i s/one/1/ a d/x", "echo n > t; ln t final; rm t"]);
}

#[test]
fn what_was_changed_without_being_read_comes_back() {
    come_back(&[
        "touch a new",
        "echo more >> a",
        "truncate -s 4 a; truncate -s 100 b",
        "printf XY | dd of=a bs=2 seek=1 conv=notrunc status=none",
        "chmod 600 a; chmod -R go-r d",
    ]);
}

#[test]
fn what_is_taken_as_a_directory_tells_it_comes_back() {
    come_back(&["tar cf t.tar a d", "ls -U d > second", "find . -name '?' > found"]);
    let place = Place::furnished();
    for name in ["m", "c", "q", "e", "z", "b", "k"] {
        place.write(format!("d/{name}"), "");
    }
    place.settle("d/k");
    place.comes_back("ls -U d > order");
}

#[test]
fn what_only_was_stood_in_or_tried_comes_back() {
    come_back(&[
        "(cd d; exec pwd) > where",
        "readlink soft dangling > links; test -d d && echo yes > is",
        "sh -c \"cd d; pwd > ../where\"; (cd d; echo z > z)",
    ]);
}

#[test]
fn what_the_caller_gave_it_to_print_to_is_the_callers_affair() {
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
