//! `inspect`, and what `diff` and `of` say of the inside of files.

use std::fs;
use std::process::Command;
use std::time::Duration;

use backstory_testkit::need::needs;
use backstory_testkit::procs::eventually;

use super::Place;
use super::filters::configure;

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
    let files =
        |one: std::io::Result<fs::DirEntry>| fs::read_dir(one.unwrap().path()).unwrap().count();
    assert_eq!(kept.map(files).sum::<usize>(), 2);
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
    // An inspector has one second, which a busy machine may not give to it.
    let has_line = || change_line(&place, "out.txt").is_some();
    assert!(eventually(Duration::from_secs(120), has_line));
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

/// The line of `of` about the change inside of a file, from the inspector's stored answer. `of`
/// waits one second for an inspector, and a question in SQL as long as it takes.
pub(super) fn stored_change_line(place: &Place, file: &str) -> String {
    let changes = rows(place, "SELECT change FROM changes");
    assert!(!changes.is_empty(), "{file}");
    change_line(place, file).unwrap()
}

/// Writes the list of inspectors and keys of the place's user.
pub(super) fn list_inspectors(place: &Place, text: &str) {
    let list = place.stage.directory("home/.config/backstory").unwrap();
    fs::write(list.join("inspectors.toml"), text).unwrap();
}

/// An inspector of the user's own, chosen as `choice` says, that tells the first lines.
fn own_inspector(place: &Place, choice: &str) {
    let program = place.stage.directory("bin").unwrap().join("own-facts");
    let script = "#!/bin/sh\nread -r line\nread -r old <&3\nread -r new <&4\nprintf \
        '{\"inspector\":\"own\",\"version\":1,\"sentences\":[\"own: %s became %s\"]}\\n' \"$old\" \"$new\"\n";
    backstory_testkit::program::write(&program, script.as_bytes()).unwrap();
    let text = format!(
        "[[inspector]]\nname = \"own\"\nversion = 1\n{choice}\ncommand = [\"{}\"]\n",
        program.display()
    );
    list_inspectors(place, &text);
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
        let line = stored_change_line(&place, name);
        assert!(line.contains(said), "{choice}: {line}");
    }
}

#[test]
fn of_finds_the_answer_that_diff_has_kept_about_a_file_or_two_runs() {
    for is_of_runs in [false, true] {
        let place = Place::new();
        if !place.has_inspector() {
            return;
        }
        own_inspector(&place, "globs = [\"*.mesh\"]");
        let mut runs = Vec::new();
        for content in ["old\n", "new\n"] {
            place.write("in", content);
            runs.push(place.keep("cat in > out.mesh", &["--contents=all"]));
        }
        let said = "own: old became new";
        let diff = match is_of_runs {
            true => place.run(&["diff", &runs[0], &runs[1]]),
            false => place.run(&["diff", "out.mesh"]),
        };
        assert!(diff.out.contains(said), "{diff:?}");
        // From now on, only a kept answer has the words.
        let program = place.stage.directory("bin").unwrap().join("own-facts");
        backstory_testkit::program::write(&program, b"#!/bin/sh\nexit 1\n").unwrap();
        let line = change_line(&place, "out.mesh");
        assert!(line.is_some_and(|line| line.contains(said)), "{is_of_runs}");
        // An answer of another version is not used.
        let list = place.stage.directory("home/.config/backstory").unwrap();
        let list = list.join("inspectors.toml");
        let text = fs::read_to_string(&list).unwrap();
        fs::write(&list, text.replace("version = 1", "version = 2")).unwrap();
        assert_eq!(change_line(&place, "out.mesh"), None, "{is_of_runs}");
    }
}

/// The rows of a question.
fn rows(place: &Place, sql: &str) -> Vec<serde_json::Value> {
    match place.json(&["query", "--json", sql]) {
        serde_json::Value::Array(rows) => rows,
        other => panic!("{other}"),
    }
}

/// Two runs that make `out.toml` and `out.csv`, with other contents each.
fn two_versions(place: &Place) -> Vec<String> {
    let mut runs = Vec::new();
    for (dt, cell) in [("0.1", "4"), ("0.01", "5")] {
        place.write("in.toml", &format!("steps = 10\ndt = {dt}\n"));
        place.write("in.csv", &format!("a,b\n1,2\n3,{cell}\n"));
        let script = "cat in.toml > out.toml; cat in.csv > out.csv; echo { > bad.ipynb";
        runs.push(place.keep(script, &["--contents=all"]));
    }
    runs
}

#[test]
fn a_question_in_sql_finds_all_runs_that_changed_a_setting() {
    let place = Place::new();
    if !place.has_inspector() {
        return;
    }
    let runs = two_versions(&place);
    let path = place.path("out.toml");
    let changed = rows(
        &place,
        &format!(
            "SELECT run, path, inspector, former_run FROM changes \
             WHERE change LIKE '%`dt`%' AND path = '{path}'"
        ),
    );
    let wanted = serde_json::json!({
        "run": runs[1], "path": path, "inspector": "toml", "former_run": runs[0]
    });
    assert_eq!(changed, [wanted]);
    // A fact is a number, a text, or JSON.
    let members = rows(
        &place,
        &format!(
            "SELECT files.run, member.value ->> 'value' AS dt \
             FROM facts JOIN files USING (file), json_each(facts.value) member \
             WHERE version > 0 AND facts.path = '{path}' AND fact = 'members' AND member.value ->> 'name' = 'dt'"
        ),
    );
    assert_eq!(members.len(), 2, "{members:?}");
    for (run, dt) in [(&runs[0], 0.1), (&runs[1], 0.01)] {
        assert!(members.contains(&serde_json::json!({"run": run, "dt": dt})));
    }
    // All ways to the rows have the same rows.
    for (view, key) in [
        ("facts", "run"),
        ("facts", "file"),
        ("facts", "path"),
        ("changes", "file"),
    ] {
        let all = rows(
            &place,
            &format!("SELECT * FROM {view} WHERE {key} || '' <> ''"),
        );
        let mut found = Vec::new();
        for value in rows(&place, &format!("SELECT DISTINCT {key} AS k FROM {view}")) {
            let value = match &value["k"] {
                serde_json::Value::String(text) => format!("'{text}'"),
                other => other.to_string(),
            };
            found.extend(rows(
                &place,
                &format!("SELECT * FROM {view} WHERE {key} = {value}"),
            ));
        }
        let sorted = |rows: Vec<serde_json::Value>| {
            let mut rows: Vec<String> = rows.iter().map(|row| row.to_string()).collect();
            rows.sort();
            rows
        };
        assert!(!all.is_empty());
        assert_eq!(sorted(found), sorted(all), "{view} by {key}");
    }
}

#[test]
fn a_file_that_no_inspector_can_read_is_a_row_with_the_reason() {
    let place = Place::new();
    if !place.has_inspector() {
        return;
    }
    two_versions(&place);
    let sql = "SELECT DISTINCT inspector, fact, value, error FROM facts WHERE path LIKE '%ipynb'";
    let found = rows(&place, sql);
    assert_eq!(found.len(), 1, "{found:?}");
    let error = found[0]["error"].as_str().unwrap();
    assert!(error.contains("inspector ipynb cannot read"), "{error}");
    assert!(found[0]["fact"].is_null() && found[0]["value"].is_null());
}

#[test]
fn facts_without_the_worker_are_an_error_and_other_questions_go_on() {
    let place = Place::new();
    place.write("in.txt", "one\n");
    place.keep("cat in.txt > out.txt", &["--contents=all"]);
    let answer = place.run(&["query", "SELECT * FROM facts"]);
    assert_eq!(answer.status, 1, "{answer:?}");
    assert!(
        answer.err.contains("backstory-inspect is not installed"),
        "{answer:?}"
    );
    assert_eq!(rows(&place, "SELECT run FROM runs").len(), 1);
}

#[test]
fn inspectors_look_at_each_run_if_the_user_wants_it_and_their_facts_outlive_the_contents() {
    let place = Place::new();
    if !place.has_inspector() {
        return;
    }
    configure(&place, "[inspection]\neach_run = true\n");
    let runs = two_versions(&place);
    assert_eq!(place.run(&["index", "--wait"]).status, 0);
    let mark = place.stage.store().join("inspected/through");
    assert_eq!(fs::read_to_string(&mark).unwrap(), runs[1]);
    fs::remove_dir_all(place.stage.store().join("contents")).unwrap();
    for file in ["in.toml", "in.csv", "out.toml", "out.csv"] {
        fs::remove_file(place.path(file)).unwrap();
    }
    let sql = "SELECT run, change FROM changes WHERE inspector = 'toml'";
    let change = "1 member changed: `dt` 0.1 → 0.01";
    let wanted = serde_json::json!({"run": runs[1], "change": change});
    assert_eq!(rows(&place, sql), [wanted]);
    let rows = rows(
        &place,
        "SELECT value FROM facts WHERE path LIKE '%/out.csv' AND fact = 'rows'",
    );
    assert_eq!(rows.last().unwrap(), &serde_json::json!({"value": 2}));
}

/// Two versions of a table whose first column is a number of the row.
const BEFORE: &str = "n,id,x\n1,oslo,5\n2,bergen,7\n";
const AFTER: &str = "n,id,x\n1,bergen,8\n2,tromso,3\n";

#[test]
fn rows_of_a_table_are_matched_by_the_column_that_the_user_chose() {
    let place = Place::new();
    if !place.has_inspector() {
        return;
    }
    for content in [BEFORE, AFTER] {
        place.write("in.csv", content);
        place.keep("cat in.csv > out.csv", &["--contents=all"]);
    }
    place.write("a.csv", BEFORE);
    place.write("b.csv", AFTER);
    let said = "1 row removed, 1 row added, 2 cells changed in 1 of 2 rows";
    let inspect = place.run(&["inspect", "a.csv", "b.csv", "--key", "id"]);
    let lines: Vec<&str> = inspect.out.lines().collect();
    let wanted = [
        said,
        "`n` of bergen 2 → 1",
        "`x` of bergen 7 → 8",
        "removed: oslo",
        "added: tromso",
    ];
    assert_eq!((inspect.status, &lines[..]), (1, &wanted[..]));
    let diff = place.run(&["diff", "out.csv", "--key", "id"]);
    for line in [said, "      bergen, x: 7 → 8", "      oslo: row removed"] {
        assert!(diff.out.contains(line), "{line}: {}", diff.out);
    }
    let json = place.run(&["diff", "out.csv", "--key", "id", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["content"]["keys_added"], serde_json::json!(["tromso"]));
    // The other answers, without a key: the first column.
    let plain = place.run(&["diff", "out.csv"]);
    assert!(
        plain.out.contains("4 cells changed in 2 of 2 rows"),
        "{}",
        plain.out
    );
}

#[test]
fn a_key_that_a_table_has_not_is_named_and_a_key_of_no_table_is_a_mistake() {
    let place = Place::new();
    if !place.has_inspector() {
        return;
    }
    for (name, content) in [
        ("a.csv", BEFORE),
        ("b.csv", AFTER),
        ("a.txt", "1"),
        ("b.txt", "2"),
    ] {
        place.write(name, content);
    }
    let other = place.run(&["inspect", "a.csv", "b.csv", "--key", "ID"]);
    let why = "the key was not used, because the first table has no column `ID`";
    assert!(other.status == 1 && other.out.contains(why), "{other:?}");
    let text = place.run(&["inspect", "a.txt", "b.txt", "--key", "id"]);
    assert!(
        text.status == 2 && text.err.contains("b.txt is none"),
        "{text:?}"
    );
    for content in ["1", "2"] {
        place.write("in", content);
        place.keep("cat in > out.txt", &["--contents=all"]);
    }
    let text = place.run(&["diff", "out.txt", "--key", "id"]);
    assert!(
        text.status == 2 && text.err.contains("out.txt is none"),
        "{text:?}"
    );
    assert_eq!(place.run(&["inspect", "a.csv", "--key", "id"]).status, 2);
}

#[test]
fn a_listed_key_holds_for_every_answer_about_its_tables() {
    let place = Place::new();
    if !place.has_inspector() {
        return;
    }
    list_inspectors(
        &place,
        "[[table]]\nglobs = [\"*/out.csv\"]\nkey = [\"id\"]\n",
    );
    for content in [BEFORE, AFTER] {
        place.write("in.csv", content);
        place.keep("cat in.csv > out.csv", &["--contents=all"]);
    }
    let line = stored_change_line(&place, "out.csv");
    assert!(line.contains("1 row removed, 1 row added"), "{line}");
    let diff = place.run(&["diff", "out.csv"]);
    assert!(diff.out.contains("bergen, x: 7 → 8"), "{}", diff.out);
    let path = place.path("out.csv");
    let found = rows(
        &place,
        &format!("SELECT change FROM changes WHERE path = '{path}' AND change LIKE 'added:%'"),
    );
    assert_eq!(found, [serde_json::json!({"change": "added: tromso"})]);
    // An option comes before the list.
    let by_number = place.run(&["diff", "out.csv", "--key", "n"]);
    assert!(
        by_number.out.contains("1, id: oslo → bergen"),
        "{}",
        by_number.out
    );
}

#[test]
fn inspect_refuses_a_directory_and_two_contents_of_different_formats() {
    let place = Place::new();
    if !place.has_inspector() || !needs("archives", &["python3"]) {
        return;
    }
    place.write("a.txt", "text\n");
    zip(&place, "b.zip", "one.txt", "1");
    place.run(&["inspect", "a.txt", "b.zip"]).is_error(
        1,
        &["a.txt is read as text, and b.zip as zip: give two contents of one format"],
    );
    fs::create_dir(place.work().join("dir")).unwrap();
    place
        .run(&["inspect", "dir"])
        .is_error(1, &["dir is a directory, and `inspect` reads files"]);
}

#[test]
fn inspect_says_why_a_content_is_not_stored_and_what_helps() {
    let place = Place::new();
    let run = place.keep("echo one > out", &["--contents=off"]);
    fs::write(place.work().join("out"), "another text\n").unwrap();
    place.run(&["inspect", &format!("out@{run}")]).is_error(
        1,
        &["the run was recorded with --contents=off; the next run can have --contents=lazy"],
    );
}
