//! Nextflow's own records (`documents/nextflow/make`) become runs.

use super::Desk;
use super::documents::{behind, paths};
use super::round_trip::ancestry;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Copies the records into `work`, and returns them in an order that no shell would give.
fn records(desk: &Desk) -> Vec<PathBuf> {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import/documents/nextflow/run");
    let copied = desk.shell(&format!("cp -r {}/. . && find . -type f", from.display()));
    let text = String::from_utf8(copied.stdout).unwrap();
    let mut all: Vec<PathBuf> = text
        .lines()
        .map(|name| desk.work().join(&name[2..]))
        .collect();
    all.sort();
    all.reverse();
    all
}

#[track_caller]
fn import(desk: &Desk, files: &[PathBuf]) {
    let mut args = vec!["import", "nextflow"];
    args.extend(files.iter().map(|file| file.to_str().unwrap()));
    let output = desk.backstory(&args);
    assert!(output.status.success(), "{output:?}");
}

/// The last parts of paths.
fn names(paths: Vec<String>) -> BTreeSet<String> {
    let name = |path: String| path.rsplit('/').next().unwrap().to_owned();
    paths.into_iter().map(name).collect()
}

/// Recall and precision against backstory's record of the same commands. Nextflow does not say
/// which file a pattern is.
#[test]
fn the_records_of_nextflow_agree_with_the_record_of_the_same_commands() {
    let own = Desk::new();
    own.write("in.txt", b"b\na\n");
    let line = "tr a-z A-Z < in.txt > loud.txt; wc -l loud.txt > lines.count; cat in.txt";
    own.backstory(&["record", "--wait", "--", "sh", "-c", line]);
    let work = own.work().to_str().unwrap().to_owned();
    let own_names = |access: &str| {
        let all = paths(&own, access).into_iter();
        names(all.filter(|path| path.starts_with(&work)).collect())
    };
    let desk = Desk::new();
    import(&desk, &records(&desk));
    assert_eq!(names(paths(&desk, "read")), own_names("read"));
    let (wanted, found) = (own_names("write"), names(paths(&desk, "write")));
    let missed: Vec<_> = wanted.difference(&found).collect();
    assert_eq!(missed, ["lines.count"]);
    assert!(
        desk.reasons().contains("1 output is a pattern"),
        "{}",
        desk.reasons()
    );
    // The output of a task that failed is only possible.
    let extra: Vec<_> = found.difference(&wanted).collect();
    assert_eq!(extra, ["never.txt"]);
    let files = desk.json(&["files", "--all", "--json"]);
    let never = files.as_array().unwrap().iter();
    let mut never = never.filter(|file| file["path"].as_str().unwrap().ends_with("never.txt"));
    assert_eq!(never.next().unwrap()["certainty"], "possible");
}

#[test]
fn tasks_have_their_scripts_directories_statuses_times_and_the_workflow_as_parent() {
    let desk = Desk::new();
    import(&desk, &records(&desk));
    let processes = desk.json(&["processes", "--json"]);
    let all = processes.as_array().unwrap();
    assert_eq!(all.len(), 4, "{processes}");
    let of = |text: &str| {
        let has = |one: &&serde_json::Value| one["argv"].to_string().contains(text);
        all.iter()
            .find(has)
            .unwrap_or_else(|| panic!("no {text} in {processes}"))
    };
    let (workflow, loud) = (of("nextflow"), of("tr a-z A-Z"));
    assert_eq!(workflow["argv"][2], "main.nf");
    assert_eq!(loud["parent_id"], workflow["id"]);
    assert_eq!(loud["attributes"]["task"], "LOUD (1)");
    assert_eq!(
        (&loud["exit"], &of("exit 3")["exit"]),
        (&0.into(), &3.into())
    );
    assert!(
        loud["cwd"]
            .as_str()
            .unwrap()
            .starts_with("/tmp/words/work/")
    );
    assert!(loud["end"].as_f64() > loud["start"].as_f64(), "{loud}");
    let count = paths(&desk, "write")
        .into_iter()
        .find(|path| path.ends_with("loud.txt"));
    behind(&desk, &count.unwrap(), &["tr a-z A-Z", "/tmp/words/in.txt"]);
}

/// Without files of the tasks, the trace has names and statuses; without the trace, the files have
/// inputs and outputs.
#[test]
fn a_part_of_the_records_is_imported_and_the_rest_is_a_gap() {
    let desk = Desk::new();
    let all = records(&desk);
    let is_trace = |path: &&PathBuf| path.ends_with("trace.txt");
    let trace: Vec<PathBuf> = all.iter().filter(is_trace).cloned().collect();
    import(&desk, &trace);
    assert!(
        desk.reasons().contains("3 tasks have no .command.run"),
        "{}",
        desk.reasons()
    );
    let rest: Vec<PathBuf> = all.iter().filter(|path| !is_trace(path)).cloned().collect();
    import(&desk, &rest);
    let loud = paths(&desk, "write")
        .into_iter()
        .find(|path| path.ends_with("loud.txt"));
    assert!(
        ancestry(&desk, &loud.unwrap(), &[])
            .iter()
            .any(|node| node.contains("tr a-z"))
    );
    // A task's file that ends early.
    let run = rest
        .iter()
        .find(|path| path.ends_with(".command.run"))
        .unwrap();
    let bytes = std::fs::read(run).unwrap();
    std::fs::write(run, &bytes[..bytes.len() / 2]).unwrap();
    import(&desk, std::slice::from_ref(run));
    assert!(
        desk.reasons().contains("1 file .command.run is cut"),
        "{}",
        desk.reasons()
    );
}

#[test]
fn a_file_that_is_none_of_nextflows_is_refused() {
    let desk = Desk::new();
    let refused = |name: &str, bytes: &[u8], wanted: &str| {
        desk.write(name, bytes);
        let output = desk.backstory(&["import", "nextflow", name]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success() && error.contains(wanted),
            "{error}"
        );
        assert_eq!(desk.runs(), Vec::<String>::new());
    };
    refused("notes.txt", b"hello\n", "begins with `task_id`");
    refused("trace.txt", b"task_id\thash\tname\n", "no file has a task");
    refused("empty", b"", "begins with `task_id`");
}
