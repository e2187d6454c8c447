//! Documents in SPADE's DSL: vertices and edges of OPM, with the keys of SPADE's reporters.

use super::Desk;
use super::documents::{behind, import, paths};

#[test]
fn vertices_and_edges_of_spade_become_processes_and_files() {
    let desk = Desk::new();
    import(&desk, "spade", "spade.dsl", &["--cwd", "/work"]);
    // The derivation names no process: the one that made the old state read it.
    assert_eq!(paths(&desk, "read"), ["/work/tool.c", "/work/tool.o"]);
    let all = [
        "[\"make\",\"-j2\"] in \"/work\"",
        "[\"cc\",\"-c\",\"tool.c\"]",
        "/work/tool.c",
    ];
    behind(&desk, "/work/tool.o", &all);
    behind(&desk, "/work/copy of tool.o", &all);
    let shown = desk.json(&["show", "--json"]).to_string();
    assert!(
        shown.contains("network socket local address:10.0.0.1"),
        "{shown}"
    );
    let show = desk.json(&["show", "--json"]);
    let reasons = show["incomplete_because"].to_string();
    for reason in [
        "1 edges of vertices without a line",
        "1 time of the document cannot be read",
    ] {
        assert!(reasons.contains(reason), "{reasons}");
    }
}

#[test]
fn lines_that_are_not_of_spade_are_refused_or_counted() {
    let desk = Desk::new();
    let refused = |text: &[u8]| {
        desk.write("document", text);
        let output = desk.backstory(&["import", "spade", "document"]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains("no line has a \"type\" of SPADE"), "{error}");
    };
    refused(b"");
    refused(b"hello world\n");
    refused(b"type:Unicorn id:1\n\xff\xfe:\\\n");
    // An edge without an end, a vertex without an id, and a path that leads upwards do no harm.
    let text = b"type:Used from:1\ntype:Process pid:7\ntype:Artifact id:x path:/../../etc/passwd\n";
    desk.write("document", text);
    let output = desk.backstory(&["import", "spade", "document"]);
    assert!(output.status.success(), "{output:?}");
    let show = desk.json(&["show", "--json"]);
    assert!(
        show["incomplete_because"].to_string().contains("1 used"),
        "{show}"
    );
}
