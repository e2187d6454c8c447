//! Documents that other tools made (`documents/make`) become runs with the same statements.

use super::Desk;
use super::round_trip::{ancestry, equal};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A document of the directory, which the user of the stage may read.
pub(super) fn document(desk: &Desk, name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = path.join("tests/import/documents").join(name);
    let bytes = std::fs::read(&path).unwrap();
    desk.write(path.file_name().unwrap().to_str().unwrap(), &bytes)
}

/// Imports a document.
#[track_caller]
pub(super) fn import(desk: &Desk, format: &str, name: &str, options: &[&str]) {
    let path = document(desk, name);
    let mut args = vec!["import", format, path.to_str().unwrap()];
    args.extend(options);
    let output = desk.backstory(&args);
    assert!(output.status.success(), "{output:?}");
}

/// Paths by access, of the latest run.
pub(super) fn paths(desk: &Desk, access: &str) -> Vec<String> {
    let files = desk.json(&["files", "--all", "--json"]);
    let has = |file: &&Value| {
        let all = file["access"].as_array().unwrap();
        all.iter().any(|of| of == access)
    };
    let found = files.as_array().unwrap().iter().filter(has);
    found
        .map(|file| file["path"].as_str().unwrap().to_owned())
        .collect()
}

#[track_caller]
pub(super) fn behind(desk: &Desk, path: &str, parts: &[&str]) {
    let found = ancestry(desk, path, &[]);
    for part in parts {
        assert!(
            found.iter().any(|node| node.contains(part)),
            "no {part} in {found:#?}"
        );
    }
}

#[test]
fn a_document_of_pythons_prov_has_its_activities_files_and_agents() {
    let desk = Desk::new();
    import(&desk, "prov-json", "primer.json", &["--cwd", "/"]);
    assert_eq!(
        paths(&desk, "read"),
        [
            "/home/ada/chart.png",
            "/home/ada/crimes.csv",
            "/home/ada/regions.csv",
            "/work/composition.csv"
        ]
    );
    let all = ["illustrate", "compose regions", "crimes.csv", "regions.csv"];
    behind(&desk, "/home/ada/chart.png", &all);
    // A derivation without an activity, and a communication without an entity, lead on.
    behind(
        &desk,
        "http://example.org/article",
        &[&all[..], &["\"derivation\""]].concat(),
    );
    behind(&desk, "/home/ada/summary.txt", &all);
    assert_eq!(desk.reasons(), "[]");
    let processes = desk.json(&["processes", "--json"]);
    let named = |name: &str| {
        let all = processes.as_array().unwrap();
        all.iter().find(|one| one["argv"][0] == name).unwrap()
    };
    assert_eq!(named("illustrate")["attributes"]["agent"], "derek");
    assert_eq!(named("compose regions")["exec_path"], Value::Null);
    let uses = desk
        .json(&["uses", "--json", "/home/ada/crimes.csv"])
        .to_string();
    for later in ["chart.png", "summary.txt", "article"] {
        assert!(uses.contains(later), "{uses}");
    }
}

/// Only backstory's own roles (`backstory:executed`) say more than the relation.
#[test]
fn a_use_is_a_read_a_generation_a_write_and_an_invalidation_a_deletion_unless_a_role_says_more() {
    let desk = Desk::new();
    let relation = |entity: &str, role: Option<&str>| {
        let mut members =
            json!({"prov:activity": "ex:work", "prov:entity": format!("ex:{entity}")});
        if let Some(role) = role {
            members["prov:role"] = role.into();
        }
        members
    };
    let document = json!({
        "prefix": {"ex": "file:///w/", "backstory": "urn:backstory:term:"},
        "activity": {"ex:work": {}},
        "entity": {"ex:in": {}, "ex:table": {}, "ex:tool": {}, "ex:out": {}, "ex:old": {}},
        "used": {
            "_:1": relation("in", None),
            "_:2": relation("table", Some("training data")),
            "_:3": relation("tool", Some("backstory:executed")),
        },
        "wasGeneratedBy": {"_:4": relation("out", None)},
        "wasInvalidatedBy": {"_:5": relation("old", None)},
    });
    let path = desk.write("relations.json", document.to_string().as_bytes());
    let output = desk.backstory(&["import", "prov-json", path.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    for (access, wanted) in [
        ("read", &["/w/in", "/w/table"][..]),
        ("exec", &["/w/tool"]),
        ("write", &["/w/out"]),
        ("delete", &["/w/old"]),
        ("stat", &[]),
    ] {
        assert_eq!(paths(&desk, access), wanted, "{access}");
    }
}

#[test]
fn the_prov_of_cwltool_has_the_steps_and_the_files_by_their_names() {
    let desk = Desk::new();
    import(&desk, "prov-json", "cwlprov.json", &["--cwd", "/"]);
    assert_eq!(paths(&desk, "write"), ["/count.txt", "/upper.txt"]);
    assert_eq!(paths(&desk, "read"), ["/in.txt", "/upper.txt"]);
    behind(
        &desk,
        "/count.txt",
        &["main/second", "/upper.txt", "main/first", "/in.txt"],
    );
    // The workflow's own input is the one of its first step.
    let found = ancestry(&desk, "/count.txt", &[]);
    let inputs = found
        .iter()
        .filter(|node| !node.contains('→') && node.contains("/in.txt"));
    assert_eq!(inputs.count(), 1, "{found:#?}");
    assert_eq!(desk.reasons(), "[]");
    let processes = desk.json(&["processes", "--json"]);
    assert_eq!(processes.as_array().unwrap().len(), 4, "{processes}");
}

/// The name of the document says nothing about the run.
#[test]
fn a_described_run_is_shown_by_its_activities_and_without_quotes() {
    let desk = Desk::new();
    import(&desk, "openlineage", "events.jsonl", &[]);
    let text = |args: &[&str]| String::from_utf8(desk.backstory(args).stdout).unwrap();
    let shown = text(&["show"]);
    assert!(
        shown.starts_with("command      all and 1 more\n"),
        "{shown}"
    );
    let log = text(&["log"]);
    assert!(log.trim_end().ends_with("  all and 1 more"), "{log}");
    import(&desk, "prov-json", "cwlprov.json", &["--cwd", "/"]);
    let tree = text(&["of", "/count.txt", "--tree"]);
    assert!(
        tree.contains("written by Run of workflow/packed.cwl#main"),
        "{tree}"
    );
}

#[test]
fn relative_paths_of_a_document_without_a_directory_are_a_gap() {
    let desk = Desk::new();
    import(&desk, "prov-json", "cwlprov.json", &[]);
    assert!(
        desk.reasons().contains("relative paths"),
        "{}",
        desk.reasons()
    );
    let count = desk.work().join("count.txt");
    assert!(paths(&desk, "write").contains(&count.to_str().unwrap().to_owned()));
}

#[test]
fn files_and_processes_of_an_imported_run_say_that_another_tool_saw_them() {
    let desk = Desk::new();
    import(&desk, "prov-json", "primer.json", &[]);
    for command in ["files", "processes"] {
        let lines = desk.json(&[command, "--json"]);
        let all = lines.as_array().unwrap();
        assert!(
            !all.is_empty() && all.iter().all(|one| one["via"] == "import"),
            "{lines}"
        );
    }
}

#[test]
fn events_of_openlineages_client_have_the_jobs_and_the_states_of_a_table_over_time() {
    let desk = Desk::new();
    import(&desk, "openlineage", "events.jsonl", &[]);
    assert_eq!(desk.reasons(), "[]");
    // The report was made between the two loads of the table.
    behind(
        &desk,
        "/home/ada/report.csv",
        &["\"report\"", "\"load\"", "/home/ada/new.csv"],
    );
    let found = ancestry(&desk, "/home/ada/report.csv", &[]);
    assert!(
        !found.iter().any(|node| node.contains("late.csv")),
        "{found:#?}"
    );
    let table = "postgres://bank:5432/bank.public.accounts";
    // The last load failed: it may have changed the table.
    behind(
        &desk,
        table,
        &["/home/ada/late.csv", "\"write\" \"possible\""],
    );
    let uses = desk
        .json(&["uses", "--json", "/home/ada/new.csv"])
        .to_string();
    assert!(
        uses.contains("report.csv") && uses.contains(table),
        "{uses}"
    );
    let processes = desk.json(&["processes", "--json"]);
    let all = processes.as_array().unwrap();
    assert_eq!(all.len(), 4, "{processes}");
    let parent = all.iter().find(|one| one["argv"][0] == "all").unwrap();
    let report = all.iter().find(|one| one["argv"][0] == "report").unwrap();
    assert_eq!(report["parent_id"], parent["id"]);
    assert_eq!(report["attributes"]["sql"], "INSERT INTO report");
    assert!(
        all.iter().any(|one| one["attributes"]["state"] == "FAIL"),
        "{processes}"
    );
}

#[test]
fn a_crate_of_runcrate_has_the_steps_of_the_workflow_and_their_files() {
    let desk = Desk::new();
    import(&desk, "ro-crate", "crate.json", &["--cwd", "/"]);
    assert_eq!(paths(&desk, "write"), ["/count.txt", "/upper.txt"]);
    assert_eq!(paths(&desk, "read"), ["/in.txt", "/upper.txt"]);
    behind(
        &desk,
        "/count.txt",
        &["main/second", "/upper.txt", "main/first", "/in.txt"],
    );
    assert_eq!(desk.reasons(), "[]");
    let processes = desk.json(&["processes", "--json"]);
    let all = processes.as_array().unwrap();
    assert_eq!(all.len(), 3, "{processes}");
    let first = all
        .iter()
        .find(|one| one["argv"][0].as_str().unwrap().ends_with("first"));
    let first = first.unwrap();
    assert_eq!(first["attributes"]["instrument"], "up.cwl");
    assert!(!first["parent_id"].is_null(), "{processes}");
}

/// Recall and precision of ReproZip's trace against backstory's record of the same line. Only the
/// programs that ran, and the files of the user, are compared.
#[test]
fn a_trace_of_reprozip_agrees_with_the_record_of_the_same_line() {
    agrees("trace.sqlite3");
}

#[test]
fn a_pack_of_reprozip_has_the_trace_that_it_was_made_of() {
    agrees("trace.rpz");
    let desk = Desk::new();
    let bytes = std::fs::read(document(&desk, "trace.rpz")).unwrap();
    let refused = |bytes: &[u8], wanted: &str| {
        desk.write("pack", bytes);
        let output = desk.backstory(&["import", "reprozip", "pack"]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success() && error.contains(wanted),
            "{error}"
        );
        assert_eq!(desk.runs(), Vec::<String>::new());
    };
    // The trace is a part of the archive that a cut may end before, or within.
    let at = memchr::memmem::find(&bytes, b"SQLite format 3").unwrap();
    refused(&bytes[..at - 512], "ends before METADATA/trace.sqlite3");
    refused(&bytes[..at + 5000], "METADATA/trace.sqlite3 is cut");
    refused(
        &[&[0x1f, 0x8b][..], &[0; 600]].concat(),
        "it is no archive; gzip compressed the file",
    );
}

fn agrees(trace: &str) {
    let own = Desk::new();
    own.write("in", b"b\na\n");
    let line = include_str!("documents/line.sh").trim();
    own.backstory(&["record", "--wait", "--", "sh", "-c", line]);
    let desk = Desk::new();
    import(&desk, "reprozip", trace, &[]);
    let used = |desk: &Desk, access: &str, work: &str| -> BTreeSet<String> {
        let all = paths(desk, access).into_iter();
        let below = all.filter_map(|path| Some(path.strip_prefix(work)?.to_owned()));
        below.collect()
    };
    let work = format!("{}/", own.work().display());
    for access in ["read", "write"] {
        let (wanted, found) = (
            used(&own, access, &work),
            used(&desk, access, "/tmp/words/"),
        );
        assert_eq!(wanted.len(), 4, "{wanted:?}");
        equal(access, &wanted, &found);
    }
    let programs = |desk: &Desk| -> BTreeSet<String> {
        let all = desk.json(&["processes", "--json"]);
        let all = all.as_array().unwrap().clone();
        let program = |one: Value| format!("{} {} {}", one["exec_path"], one["argv"], one["exit"]);
        all.into_iter()
            .map(program)
            .filter(|text| !text.contains("[]"))
            .collect()
    };
    equal("programs", &programs(&own), &programs(&desk));
    assert_eq!(desk.json(&["show", "--json"])["exit"], 3);
    // The opens of redirections are those of the programs that follow.
    behind(
        &desk,
        "/tmp/words/both",
        &["\"cat\"", "\"cp\"", "\"sort\"", "\"tr\"", "/tmp/words/in"],
    );
    // ReproZip logs opens alone.
    let files = desk.json(&["files", "--all", "--json"]);
    let written = files
        .as_array()
        .unwrap()
        .iter()
        .filter(|file| file["access"][0] == "write");
    for file in written {
        assert_eq!(file["certainty"], "possible", "{file}");
    }
    assert!(
        desk.reasons().contains("no reads, writes, pipes"),
        "{}",
        desk.reasons()
    );
}

/// Recall and precision of Snakemake's own records against backstory's record of the same commands.
#[test]
fn the_records_of_snakemake_agree_with_the_record_of_the_same_commands() {
    let own = Desk::new();
    own.write("in.txt", b"b\na\n");
    let line = "tr a-z A-Z < in.txt > loud.txt; wc -l loud.txt > count.txt";
    own.backstory(&["record", "--wait", "--", "sh", "-c", line]);
    let desk = Desk::new();
    desk.stage.directory("work/.snakemake").unwrap();
    desk.stage.directory("work/.snakemake/metadata").unwrap();
    let mut files = Vec::new();
    for name in ["Y291bnQudHh0", "bG91ZC50eHQ="] {
        let from = document(&desk, &format!("snakemake/{name}"));
        files.push(desk.work().join(".snakemake/metadata").join(name));
        std::fs::rename(from, files.last().unwrap()).unwrap();
    }
    let mut args = vec!["import", "snakemake"];
    args.extend(files.iter().map(|file| file.to_str().unwrap()));
    let output = desk.backstory(&args);
    assert!(output.status.success(), "{output:?}");
    for access in ["read", "write"] {
        let used = |desk: &Desk| -> BTreeSet<String> {
            let work = format!("{}/", desk.work().display());
            let all = paths(desk, access).into_iter();
            let below = all.filter_map(|path| Some(path.strip_prefix(&work)?.to_owned()));
            below.collect()
        };
        assert_eq!(used(&own).len(), 2);
        equal(access, &used(&own), &used(&desk));
    }
    let count = desk.work().join("count.txt");
    let count = count.to_str().unwrap();
    let parts = ["wc -l loud.txt > count.txt", "tr a-z A-Z", "/work/in.txt"];
    behind(&desk, count, &parts);
    assert!(
        desk.reasons().contains("the inputs that its rule declares"),
        "{}",
        desk.reasons()
    );
    // The directory of the workflow is that above `.snakemake`.
    assert!(
        !desk.reasons().contains("relative paths"),
        "{}",
        desk.reasons()
    );
}
