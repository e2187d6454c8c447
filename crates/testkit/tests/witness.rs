//! The witness reports what a command did: checked on commands whose every operation is known.

use std::path::Path;

use backstory_testkit::need::needs;
use backstory_testkit::oracle::{Bench, Case, sh};
use backstory_testkit::stage::Stage;
use backstory_testkit::strace::{End, Trace};

fn traced(case: Case) -> Option<(Bench, Trace)> {
    if !needs(case.name, &["strace"]) {
        return None;
    }
    let bench = Bench::new(Stage::new("/bin/true").expect("a place"));
    let (_, trace) = bench.traced(&case).expect("a traced run");
    Some((bench, trace))
}

/// Required facts about names in the case's own directory, as `word name`, sorted.
fn about(bench: &Bench, trace: &Trace, name: &str) -> Vec<String> {
    let directory = bench.stage().path().join("work").join(name);
    let mut lines = Vec::new();
    for fact in trace.facts.iter().filter(|f| f.required) {
        let path = String::from_utf8_lossy(&fact.names[0]).into_owned();
        if let Ok(relative) = Path::new(&path).strip_prefix(&directory) {
            lines.push(format!("{:?} {}", fact.words, relative.display()));
        }
    }
    lines.sort();
    lines.dedup();
    lines
}

#[test]
fn the_operations_of_a_shell_line_are_reported() {
    let case = sh(
        "line",
        "cat <a >new; mv new d/moved; rm b; [ -e none ]; ln d/x hard; chmod 600 a; cd d; cat ../absent 2>/dev/null; true",
    );
    let Some((bench, trace)) = traced(case) else {
        return;
    };
    let expected = [
        "[Delete] b",
        "[Link, Stat, Meta] d/x",
        "[Link, Write] hard",
        "[Meta] a",
        "[Missing] absent",
        "[Missing] none",
        "[Read] a",
        "[Rename, Delete] new",
        "[Rename] d/moved",
        "[Write] new",
    ];
    let told = about(&bench, &trace, "line");
    assert_eq!(told, expected);
}

#[test]
fn the_process_tree_is_reported() {
    let case = sh(
        "tree",
        "(cat a; exit 3); sh -c 'kill -9 $$'; cat b & wait; exit 7",
    );
    let Some((_, trace)) = traced(case) else {
        return;
    };
    let mut shapes: Vec<_> = trace
        .processes
        .iter()
        .map(|p| {
            let programs: Vec<_> = p
                .images
                .iter()
                .map(|i| String::from_utf8_lossy(&i.path).into_owned())
                .collect();
            (p.parent, programs.join(" "), p.end.clone())
        })
        .collect();
    shapes.sort();
    let killed = End::Killed("SIGKILL".into());
    let expected = [
        (None, "/usr/bin/sh", End::Exited(7)),
        (Some(0), "", End::Exited(3)),
        (Some(0), "/usr/bin/cat", End::Exited(0)),
        (Some(0), "/usr/bin/sh", killed),
        (Some(1), "/usr/bin/cat", End::Exited(0)),
    ];
    assert_eq!(
        shapes,
        expected.map(|(parent, program, end)| (parent, program.to_owned(), end))
    );
}
