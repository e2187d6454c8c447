//! `inspect`, and what `diff` and `of` say of the inside of files.

use std::fs;
use std::process::Command;

use backstory_testkit::need::needs;

use super::Place;

/// Makes a zip archive in the place, with Python's own library.
fn zip(place: &Place, name: &str, member: &str, content: &str) {
    let script = format!(
        "import zipfile; zipfile.ZipFile({name:?}, 'w').writestr(zipfile.ZipInfo({member:?}), {content:?})"
    );
    let status = Command::new("python3")
        .args(["-c", &script])
        .current_dir(place.work())
        .status();
    assert!(status.unwrap().success());
}

#[test]
fn inspect_tells_what_is_inside_of_a_file_and_what_changed_in_it() {
    let place = Place::new();
    if !place.has_inspector() || !needs("archives", &["python3"]) {
        return;
    }
    zip(&place, "a.zip", "one.txt", "1");
    zip(&place, "b.zip", "one.txt", "2");
    let facts = place.run(&["inspect", "a.zip"]);
    assert!(
        facts.status == 0 && facts.out.contains("one.txt  crc32 83dcefb7, size 1"),
        "{facts:?}"
    );
    let changes = place.run(&["inspect", "a.zip", "b.zip"]);
    assert_eq!(
        changes.out,
        "1 member changed: `one.txt` crc32 83dcefb7 → 1ad5be0d\n"
    );
    assert_eq!(changes.status, 1);
    let json = place.run(&["inspect", "--json", "a.zip", "b.zip"]);
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["inspector"], "zip");
    assert_eq!(
        json["changes"]["members"]["changed"][0]["to"]["crc32"],
        "1ad5be0d"
    );
    let same = place.run(&["inspect", "a.zip", "a.zip"]);
    assert_eq!((same.status, &*same.out), (0, "no difference\n"));
}

#[test]
fn diff_tells_what_changed_inside_of_a_file() {
    let place = Place::new();
    if !place.has_inspector() || !needs("archives", &["python3"]) {
        return;
    }
    for content in ["1", "2"] {
        zip(&place, "in.zip", "one.txt", content);
        place.keep("cat in.zip > out.zip", &["--contents=lazy"]);
    }
    let diff = place.run(&["diff", "out.zip"]);
    let said = "out.zip: 1 member changed: `one.txt` crc32 83dcefb7 → 1ad5be0d";
    assert!(diff.out.contains(said), "{}", diff.out);
    let json = place.run(&["diff", "--json", "out.zip"]);
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["content"]["inside"]["inspector"], "zip");
    // Both answers are kept: about `in.zip`, which is the cause, and about `out.zip`.
    let kept = fs::read_dir(place.stage.store().join("inspected")).unwrap();
    assert_eq!(kept.count(), 2);
}

#[test]
fn a_file_that_no_inspector_can_read_is_an_error_that_names_it() {
    let place = Place::new();
    if !place.has_inspector() {
        return;
    }
    place.write("broken.ipynb", "{\"cells\": 3}");
    let answer = place.run(&["inspect", "broken.ipynb"]);
    assert_eq!(answer.status, 1);
    assert!(
        answer
            .err
            .contains("inspector ipynb cannot read broken.ipynb"),
        "{}",
        answer.err
    );
}

#[test]
fn a_missing_worker_is_an_error_that_says_where_it_belongs() {
    let place = Place::new();
    place.write("notes.txt", "one\n");
    let answer = place.run(&["inspect", "notes.txt"]);
    assert_eq!(answer.status, 1);
    assert!(answer.err.contains("libexec/backstory"), "{}", answer.err);
    assert!(
        answer.err.contains("backstory-inspect is not installed"),
        "{}",
        answer.err
    );
}

/// The line of `of` about the file's inside.
fn change_line(place: &Place, file: &str) -> Option<String> {
    let answer = place.run(&["of", file]);
    assert_eq!((answer.status, &*answer.err), (0, ""), "{answer:?}");
    let mut lines = answer.out.lines();
    lines
        .find(|line| line.starts_with("since run "))
        .map(str::to_owned)
}

#[test]
fn of_tells_what_changed_inside_of_the_file_since_the_version_before() {
    let place = Place::new();
    if !place.has_inspector() {
        return;
    }
    let kept = place.stage.store().join("inspected");
    let mut runs = Vec::new();
    for dt in ["0.1", "0.01"] {
        place.write("in.txt", &format!("steps = 10\ndt = {dt}\n"));
        runs.push(place.keep("cat in.txt > out.txt", &["--contents=all"]));
        if runs.len() == 1 {
            // Without a former version, no inspector is asked.
            assert_eq!(change_line(&place, "out.txt"), None);
            let json = place.run(&["of", "--json", "out.txt"]);
            assert!(!json.out.contains("\"inside\""), "{}", json.out);
            assert!(!kept.exists());
        }
    }
    let line = change_line(&place, "out.txt").unwrap();
    assert!(line.contains(&runs[0]), "{line}");
    assert!(line.contains("`dt` 0.1 → 0.01"), "{line}");
    let answers = || fs::read_dir(&kept).unwrap().count();
    assert_eq!(answers(), 1);
    for level in ["step", "process"] {
        let json = place.run(&["of", "--json", "--level", level, "out.txt"]);
        let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
        assert_eq!(json["inside"]["inspector"], "text", "{json}");
        assert_eq!(json["inside"]["former_run"], runs[0]);
        let sentences = json["inside"]["sentences"].to_string();
        assert!(sentences.contains("`dt` 0.1 → 0.01"), "{sentences}");
    }
    // The answer is kept, and needs the file no more.
    fs::remove_file(place.work().join("out.txt")).unwrap();
    assert_eq!(change_line(&place, "out.txt"), Some(line));
    assert_eq!(answers(), 1);
    for form in ["--commands", "--dot", "--tree"] {
        let other = place.run(&["of", form, "out.txt"]);
        assert!(!other.out.contains("0.1 → 0.01"), "{other:?}");
    }
}

#[test]
fn of_answers_without_the_line_if_the_inspector_fails_or_is_not_installed() {
    let place = Place::new();
    for content in ["{\"cells\": 3}", "{\"cells\": 4}"] {
        place.write("in", content);
        place.keep("cat in > out.ipynb", &["--contents=all"]);
    }
    assert_eq!(change_line(&place, "out.ipynb"), None);
    if place.has_inspector() {
        assert_eq!(change_line(&place, "out.ipynb"), None);
    }
}

/// An inspector of the user's own, chosen as `choice` says, that tells the first lines.
fn own_inspector(place: &Place, choice: &str) {
    let program = place.stage.directory("bin").unwrap().join("own-facts");
    let script = "#!/bin/sh\nread -r line\nread -r old <&3\nread -r new <&4\nprintf \
        '{\"inspector\":\"own\",\"version\":1,\"sentences\":[\"own: %s became %s\"]}\\n' \"$old\" \"$new\"\n";
    backstory_testkit::program::write(&program, script.as_bytes()).unwrap();
    let config = place.stage.directory("home/.config").unwrap();
    place.stage.directory("home/.config/backstory").unwrap();
    let text = format!(
        "[[inspector]]\nname = \"own\"\nversion = 1\n{choice}\ncommand = [\"{}\"]\n",
        program.display()
    );
    fs::write(config.join("backstory/inspectors.toml"), text).unwrap();
}

#[test]
fn a_users_inspector_is_asked_first_whether_mime_type_or_glob_chose_it() {
    for (name, choice) in [
        ("out.csv", "types = [\"text/csv\"]"),
        ("out.csv", "globs = [\"*.csv\"]"),
        ("out.mesh", "types = [\"model/mesh\"]"),
        ("out.txt", "types = [\"text/*\"]"),
    ] {
        let place = Place::new();
        if !place.has_inspector() {
            return;
        }
        own_inspector(&place, choice);
        // The system's list of types is in the data directory of the user.
        place.stage.directory("home/.local/share/mime").unwrap();
        let types = place.stage.directory("home/.local/share/mime").unwrap();
        fs::write(types.join("globs2"), "50:model/mesh:*.mesh\n").unwrap();
        for content in ["a,b", "a,c"] {
            place.write("in", &format!("{content}\n1,2\n"));
            place.keep(&format!("cat in > {name}"), &["--contents=all"]);
        }
        let said = "own: a,b became a,c";
        let diff = place.run(&["diff", name]);
        assert!(diff.out.contains(said), "{choice}: {diff:?}");
        let line = change_line(&place, name).unwrap_or_default();
        assert!(line.contains(said), "{choice}: {line}");
    }
}
