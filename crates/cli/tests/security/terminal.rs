//! Names of files and arguments are never commands to the reader's terminal.

use crate::oracle::common;
use backstory_testkit::need::needs;
use backstory_testkit::oracle::{sh, watch};
use backstory_testkit::user::User;

#[test]
fn escape_sequences_in_names_and_arguments_are_shown_and_never_obeyed() {
    if !needs("escape", &["gcc"]) {
        return;
    }
    let bench = common::bench(User::ordinary());
    let case = sh(
        "escape",
        "$FIX/hostile escape; printf 'x\\033[31m' >out; for f in *owned*; do cp \"$f\" copied; done; \
         env \"EVIL=$(printf '\\033[2J')\" cat copied \"$(printf 'a\\302\\2332J')\" out; true",
    );
    let (outcome, store) = bench.recorded(&case, &[]).unwrap();
    assert_eq!(outcome.code(), 0);
    let copied = bench.stage().path().join("work/escape/copied");
    let copied = copied.to_str().unwrap();
    let questions: &[&[&str]] = &[
        &["of", copied],
        &["of", "--json", copied],
        &["of", "--dot", copied],
        &["of", "--all", copied],
        &["uses", copied],
        &["files"],
        &["files", "--all"],
        &["files", "--json"],
        &["processes"],
        &["processes", "--json"],
        &["show"],
        &["show", "--json"],
        &["log"],
        &["log", "--json"],
        &["status"],
    ];
    let run = super::only_run(&bench, &store);
    let raw: &[&[&str]] = &[&["log", "--raw", &run]];
    for question in questions.iter().chain(raw) {
        let text = bench.ask(&store, question).unwrap();
        let text = String::from_utf8(text).expect("what is printed is UTF-8");
        let obeyed = text
            .matches(|c: char| c.is_control() && c != '\n' && c != '\t')
            .next();
        assert_eq!(obeyed, None, "{question:?}: {text:?}");
    }
    let named = String::from_utf8(bench.ask(&store, &["files", "--all"]).unwrap()).unwrap();
    assert!(named.contains("owned"), "{named}");
}

/// Messages on stderr name files and programs, too: missing ones, unknown ones, failures.
#[test]
fn errors_and_warnings_show_them_and_never_send_them() {
    if !needs("warnings", &["gcc"]) {
        return;
    }
    let bench = common::bench(User::ordinary());
    let directory = bench.stage().directory("work").unwrap();
    let store = bench.stage().store().join("warned");
    let name = "$(printf 'x\\033[2J\\302\\2332J\\232\\r')";
    let line = |question: &str| question.replace("NAME", &format!("\"{name}\""));
    let prepared = line("cp $FIX/hostile ./NAME && echo text >out-NAME");
    let mut said = 0;
    for question in [
        "record --guard=off -- ./NAME escape",
        "record -- ./none-NAME",
        "record --name NAME -- true",
        "record -- cp out-NAME copy-NAME",
        "of none-NAME",
        "uses none-NAME",
        "show none-NAME",
        "rm none-NAME",
        "contents none-NAME",
        "diff none-NAME none-NAME",
        "export none-NAME",
        "export make copy-NAME -o none-NAME/x",
        "store import none-NAME",
        "replay none-NAME",
        "rerun none-NAME",
        "status none-NAME copy-NAME",
        "log --store none-NAME",
        "none-NAME",
    ] {
        let line = format!("{prepared}; $FIX/backstory {}", line(question));
        let mut command = bench.stage().command("sh");
        command.args(["-c", &line]).env("BACKSTORY_STORE", &store);
        let outcome = watch(&mut command, &directory).unwrap();
        let lines = String::from_utf8(outcome.stderr).expect("what is said is UTF-8");
        let obeyed = lines
            .chars()
            .find(|c| c.is_control() && *c != '\n' && *c != '\t');
        assert_eq!(obeyed, None, "{question}: {lines:?}");
        said += usize::from(lines.starts_with("backstory: "));
    }
    assert!(said >= 14, "only {said} errors and warnings were said");
}
