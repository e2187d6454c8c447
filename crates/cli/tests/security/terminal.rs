//! What programs call their files and arguments is never a command to the reader's terminal.

use crate::common;
use backstory_testkit::need::needs;
use backstory_testkit::oracle::sh;
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
    let run = crate::only_run(&bench, &store);
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
