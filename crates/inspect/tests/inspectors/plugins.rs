//! A user's own inspector: a command that speaks JSON lines.

use std::path::Path;

use backstory_inspection::{Answer, Catalogue, Question, Trouble};

use super::worker;

/// Asks the plug-in that is this shell script, of version 4.
fn ask(directory: &Path, script: &str, second: Option<&[u8]>) -> Result<Answer, Trouble> {
    let command = directory.join("mesh-facts");
    let text = format!("#!/bin/sh\n{script}\n");
    backstory_testkit::program::write(&command, text.as_bytes()).unwrap();
    let command = command.to_str().unwrap();
    let text = format!(
        "[[inspector]]\nname = 'mesh'\nversion = 4\nglobs = ['*.mesh']\ncommand = ['{command}', 'one']\n"
    );
    let all = Catalogue::extended(&text, Path::new("inspectors.toml")).unwrap();
    let question = Question {
        name: b"dir/part.mesh",
        first: b"old\n",
        second,
        key: &[],
    };
    let entry = all.choose(question.name, question.first).unwrap();
    worker().ask(entry, &question)
}

#[test]
fn a_plugin_reads_the_question_and_the_contents_and_answers_in_json() {
    let directory = tempfile::tempdir().unwrap();
    let script = r#"read -r line
printf '{"inspector":"mesh","version":4,"facts":{"argument":"%s","content":"%s","question":%s}}\n' "$1" "$(cat <&3)" "$line""#;
    let answer = ask(directory.path(), script, None).unwrap();
    assert_eq!(answer.facts["argument"], "one");
    assert_eq!(answer.facts["content"], "old");
    let question = &answer.facts["question"];
    let here = std::env::current_dir().unwrap();
    let path = here.join("dir/part.mesh");
    assert_eq!(question["name"].as_str(), path.to_str());
    assert_eq!(question["contents"][0], "/proc/self/fd/3");
    let script = r#"read -r line
printf '{"inspector":"mesh","version":4,"sentences":["%s became %s"]}\n' "$(cat <&3)" "$(cat <&4)""#;
    let answer = ask(directory.path(), script, Some(b"new\n")).unwrap();
    assert_eq!(answer.sentences, ["old became new"]);
}

#[test]
fn a_plugin_can_write_no_file_and_its_lies_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("written");
    let script = format!(
        "echo escaped > '{}'; echo '{{\"inspector\":\"mesh\",\"version\":4}}'",
        target.display()
    );
    let _ = ask(directory.path(), &script, None);
    let length = std::fs::metadata(&target).map_or(0, |meta| meta.len());
    assert_eq!(
        length, 0,
        "the limit of file sizes holds without Landlock, too"
    );
    let has_landlock = backstory_sys::landlock_version().is_some();
    assert!(!has_landlock || !target.exists(), "it made a file");
    let lie = ask(
        directory.path(),
        "echo '{\"inspector\":\"mesh\",\"version\":3}'",
        None,
    );
    assert!(lie.unwrap_err().to_string().contains("version 3"));
    let loops = ask(directory.path(), "while :; do :; done", None).unwrap_err();
    assert!(loops.to_string().contains("took more than"), "{loops}");
    let absent = ask(directory.path(), "exec /nonexistent/program", None).unwrap_err();
    assert!(
        absent
            .to_string()
            .contains("inspector mesh crashed on dir/part.mesh"),
        "{absent}"
    );
}
