//! `replay`: a run can be repeated without its original inputs.

use std::fs;

use backstory_testkit::need::{needs, skipped};

use super::{Answer, Place};

impl Place {
    /// Removes everything in `work`: inputs, scripts, outputs.
    pub(crate) fn forget_everything(&self) {
        for entry in fs::read_dir(self.work()).unwrap().flatten() {
            match entry.file_type().unwrap().is_dir() {
                true => fs::remove_dir_all(entry.path()).unwrap(),
                false => fs::remove_file(entry.path()).unwrap(),
            }
        }
    }

    pub(crate) fn replay(&self, run: &str, more: &[&str]) -> Answer {
        let again = self.path("../home/again");
        let _ = fs::remove_dir_all(&again);
        self.run(&[&["replay", run, "--output-dir", &again], more].concat())
    }

    /// Records a line in `work`, removes all files there, and replays it. Every output must be
    /// identical.
    pub(crate) fn comes_back(&self, line: &str) -> String {
        let run = self.keep(line, &["--contents=lazy"]);
        self.replays_alike(&run);
        run
    }

    /// Removes all files in `work` and replays a run. Every output must be identical. Returns false
    /// if replay is not possible here.
    pub(crate) fn replays_alike(&self, run: &str) -> bool {
        self.forget_everything();
        self.replays_with_its_files(run)
    }

    /// The same while the files in `work` are there.
    fn replays_with_its_files(&self, run: &str) -> bool {
        let answer = self.replay(run, &[]);
        if answer.err.contains("namespace") {
            skipped("a replay", &answer.err);
            return false;
        }
        assert!(
            answer.status == 0 && answer.err.contains("identical: "),
            "{run}: {answer:?}"
        );
        true
    }
}

#[test]
fn a_file_only_appended_to_cut_or_moved_comes_back() {
    let by_name = r#"perl -e 'truncate "in", 3'"#;
    for line in ["echo two >> in", "truncate -s 3 in", by_name, "mv in out"] {
        if line == by_name && !needs("a file cut by its name", &["perl"]) {
            continue;
        }
        let place = Place::new();
        place.write_aged("in", "one\n");
        place.comes_back(line);
    }
}

#[test]
fn a_large_file_that_was_open_for_writing_can_be_opened_so_again() {
    if !needs("a file that is open for reading and writing", &["python3"]) {
        return;
    }
    let place = Place::new();
    place.write_aged("table", &"a row\n".repeat(10_000));
    let script = "import os; f = os.open('table', os.O_RDWR); print(os.read(f, 5))";
    let line = format!("python3 -c \"{script}\" > out");
    let run = place.keep(&line, &["--contents=lazy"]);
    place.replays_with_its_files(&run);
}

#[test]
fn a_line_that_enters_a_directory_without_files_comes_back() {
    let place = Place::new();
    fs::create_dir_all(place.path("empty/inner")).unwrap();
    place.comes_back("(cd empty/inner && echo one) > out");
}

#[test]
fn a_directory_that_could_not_be_removed_cannot_be_removed_in_a_replay() {
    let place = Place::new();
    assert_eq!(place.command_line("mkdir -p outer/full/unused").status, 0);
    place.comes_back("(cd outer && rmdir full 2> ../said); echo $? > status");
}

#[test]
fn a_line_that_looks_for_names_that_are_too_long_comes_back() {
    let place = Place::new();
    place.write_aged("in", "one\n");
    // The first name is too long for a file, and the second one for a path.
    let long = "for n in 300 9000; do long=$(printf %0${n}d); cat < $long; cat $long/x; ls $long; \
                mkdir $long; mv in $long; rm $long; done 2> /dev/null";
    place.comes_back(&format!("{long}; cat in > out"));
}

#[test]
fn a_file_made_right_before_the_recording_comes_back() {
    for turn in 0..10 {
        let place = Place::new();
        let line = format!("echo {turn} > in; $B record --name it --contents=lazy -- cp in out");
        assert_eq!(place.shell(&line).status, 0);
        assert_eq!(place.run(&["index", "--wait"]).status, 0);
        if !place.replays_alike("it") {
            return;
        }
    }
}

impl Place {
    /// Runs a shell line in `work`, unrecorded.
    pub(crate) fn command_line(&self, line: &str) -> Answer {
        let mut command = self.stage.command("sh");
        command.args(["-c", line]).current_dir(self.work());
        Answer::of(command.output().unwrap())
    }
}

#[test]
fn a_run_without_contents_says_what_to_do() {
    let place = Place::new();
    place.write_aged("in", "text\n");
    let run = place.keep("cat in > out", &["--contents=off"]);
    place
        .replay(&run, &[])
        .is_error(1, &["--contents=lazy", "--allow-host"]);
    assert!(
        !std::path::Path::new(&place.path("../home/again")).exists(),
        "nothing half-done"
    );
}

#[test]
fn a_requested_file_that_did_not_exist_is_named() {
    let place = Place::new();
    place.write_aged("in", "text\n");
    place.write_aged("never", "nobody read this\n");
    let run = place.keep("cat in > out", &["--contents=lazy"]);
    place
        .replay(&run, &["--input", "never=in"])
        .is_error(1, &["never"]);
    place
        .replay(&run, &["--arg", "9=x"])
        .is_error(1, &["9", "2"]);
    place
        .replay(&run, &["--env", "SURELY_NOT_SET"])
        .is_error(2, &["SURELY_NOT_SET"]);
    let answer = place.replay(&run, &["--", "sh", "-c", "cat never"]);
    assert!(
        answer.status == 1
            && answer
                .err
                .contains("/never, which the recorded run did not use"),
        "{answer:?}"
    );
}

#[test]
fn a_difference_is_named_with_its_inputs() {
    let place = Place::new();
    place.write_aged("in", "text\n");
    let run = place.keep(
        "head -c 8 /dev/urandom > random; cat in > same",
        &["--contents=lazy"],
    );
    let answer = place.replay(&run, &[]);
    assert_eq!(answer.status, 1, "{answer:?}");
    for word in ["1 of 2", "different", "random", "/dev/urandom"] {
        assert!(answer.err.contains(word), "no {word:?} in {answer:?}");
    }
}

#[test]
fn a_replay_has_no_network_and_writes_to_no_file_of_the_user() {
    let place = Place::new();
    place.write_aged("in", "text\n");
    let run = place.keep(
        "cat in > out; ls /sys/class/net > devices; echo changed >> in",
        &["--contents=lazy"],
    );
    place.write_aged("out", "mine\n");
    let answer = place.replay(&run, &[]);
    let devices =
        fs::read_to_string(place.path("../home/again/files") + &place.path("devices")).unwrap();
    assert_eq!(devices, "lo\n", "{answer:?}");
    assert_eq!(fs::read_to_string(place.path("out")).unwrap(), "mine\n");
    assert_eq!(
        fs::read_to_string(place.path("in")).unwrap(),
        "text\nchanged\n"
    );
}

/// Java does so. If an open may either find or make a file that is removed later, the open alone
/// does not show which happened.
#[test]
fn a_file_opened_or_made_and_then_removed_did_not_exist_before() {
    for line in [
        "sleep 0.05; exec 3<>made; read x <&3; echo x >&3; exec 3>&-; rm made; cat in > out",
        // An existing file is not taken for one that the run made.
        "sleep 0.05; exec 3<>in; read x <&3; echo \"$x\" >&3; exec 3>&-; cat in > out; rm in",
    ] {
        let place = Place::new();
        place.write_aged("in", "text\n");
        place.comes_back(line);
    }
}

/// Python considers a compiled module current by the size and the time of its source.
#[test]
fn a_file_that_was_only_looked_up_is_unchanged() {
    let place = Place::new();
    place.write_aged("looked", "some text\n");
    std::os::unix::fs::symlink("looked", place.path("link")).unwrap();
    place.comes_back("stat -L -c '%s %Y %a' looked link > out");
}

/// `ps` and other programs that look for processes: the process ids differ at another moment.
#[test]
fn a_program_that_lists_kernel_directories_comes_back() {
    let place = Place::new();
    place.write_aged("in", "text\n");
    let run = place.keep(
        "ls /proc /sys /dev | wc -c > /dev/null; cat in > out",
        &["--contents=lazy"],
    );
    place.replays_alike(&run);
}

#[test]
fn a_damaged_content_is_named_and_leaves_nothing() {
    let place = Place::new();
    place.write_aged("in", &"some text\n".repeat(100));
    let run = place.keep("cat in > out", &["--contents=lazy"]);
    place.forget_everything();
    let mut files = vec![place.stage.store().join("contents")];
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .flatten()
                    .map(|entry| entry.path()),
            );
        } else if path.parent().is_some_and(|dir| dir.ends_with("packs"))
            && path.extension() == Some("pack".as_ref())
        {
            // After the header of 64 bytes at most: the objects themselves.
            let mut bytes = fs::read(&path).unwrap();
            bytes.iter_mut().skip(64).for_each(|byte| *byte ^= 0x55);
            fs::write(&path, bytes).unwrap();
        }
    }
    place
        .replay(&run, &[])
        .is_error(1, &["damaged", "store verify"]);
    assert!(
        !std::path::Path::new(&place.path("../home/again")).exists(),
        "nothing half-done"
    );
}

/// A large content has a file of its own, and is checked only while it is read.
#[test]
fn a_damaged_large_content_is_named_wherever_it_is_needed() {
    let place = Place::new();
    let noise = place.command_line("head -c 600000 /dev/urandom > in");
    assert_eq!(noise.status, 0);
    place.age("in");
    let read = place.keep("cat in > out", &["--contents=lazy"]);
    let mut piped = place.command(&["record", "--contents=lazy", "--", "sh", "-c", "cat > out"]);
    let status = piped
        .stdin(fs::File::open(place.path("in")).unwrap())
        .status();
    assert!(status.unwrap().success());
    assert_eq!(place.run(&["index", "--wait"]).status, 0);
    let given = place.json(&["log", "--json"])[0]["run"]
        .as_str()
        .unwrap()
        .to_owned();
    place.forget_everything();
    for directory in fs::read_dir(place.stage.store().join("contents/objects"))
        .unwrap()
        .flatten()
    {
        for object in fs::read_dir(directory.path()).unwrap().flatten() {
            let mut bytes = fs::read(object.path()).unwrap();
            *bytes.last_mut().unwrap() ^= 1;
            fs::write(object.path(), bytes).unwrap();
        }
    }
    for run in [read, given] {
        let answer = place.replay(&run, &[]);
        answer.is_error(1, &["damaged", "store verify"]);
        assert!(
            !answer.err.contains("cannot write the answer"),
            "{answer:?}"
        );
        assert!(
            !std::path::Path::new(&place.path("../home/again")).exists(),
            "nothing half-done"
        );
    }
    let path = place.path("in");
    let answer = place.run(&["contents", &path, "-o", "again"]);
    answer.is_error(1, &["damaged", "store verify"]);
    assert!(
        fs::read_dir(place.work()).unwrap().next().is_none(),
        "nothing half-done"
    );
}
