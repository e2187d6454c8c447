//! Exports into standards, each read by the standard's own library: `tests/standards/check.py`, in
//! the Python that `scripts/setup test` made.

use std::ffi::OsStr;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::Place;
use super::evidence_tsa::pair;
use backstory_testkit::need::{needs, skipped};

const SCRIPT: &str =
    "sort in1 > s1\nsort in2 > s2\ncat s1 s2 | tr a-z A-Z > out.txt\nwc -l < out.txt > count\n";

/// The Python with the library `module`.
pub fn python(what: &str, module: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let python = root.join(".venv/bin/python");
    let import = format!("import {module}");
    let there = Command::new(&python).args(["-c", &import]).output();
    if there.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    skipped(
        what,
        &format!("needs Python's {module}, which `scripts/setup test` installs"),
    );
    None
}

/// The checker's report on an export.
fn check(python: &Path, args: &[impl AsRef<OsStr> + Debug]) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/standards/check.py");
    let output = Command::new(python)
        .arg(script)
        .args(args)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {said}");
    serde_json::from_slice(&output.stdout).unwrap_or(Value::Null)
}

/// The same steps. The first two are ranks of a job.
const RANKS: &str = "export SLURM_JOB_ID=71 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2\n\
    SLURM_PROCID=0 sort in1 > s1\nSLURM_PROCID=1 sort in2 > s2\n\
    cat s1 s2 | tr a-z A-Z > out.txt\nwc -l < out.txt > count\n";

/// Four steps, recorded with contents.
fn recorded() -> Place {
    recorded_as(SCRIPT)
}

fn recorded_as(script: &str) -> Place {
    let place = Place::new();
    place.write_aged("in1", "b\na\nb\n");
    place.write_aged("in2", "c\n");
    place.write_aged("run.sh", script);
    let answer = place.run(&["record", "--contents=lazy", "--", "sh", "run.sh"]);
    assert_eq!((answer.status, answer.err.as_str()), (0, ""));
    assert_eq!(place.run(&["index", "--wait"]).status, 0);
    place
}

/// Exports without a message, and returns the path.
fn exported(place: &Place, args: &[&str], name: &str) -> String {
    let answer = place.run(&[&["export"], args, &["-o", name]].concat());
    assert_eq!((answer.status, answer.err.as_str()), (0, ""), "{args:?}");
    place.path(name)
}

/// The paths in the answer of `of`.
pub(super) fn ancestry(place: &Place, args: &[&str]) -> Vec<String> {
    let answer = place.json(&[&["of", "--json"], args].concat());
    let nodes = answer["nodes"].as_array().unwrap().iter();
    let mut paths: Vec<String> = nodes
        .filter(|node| node["type"] == "entity")
        .map(|node| node["path"].as_str().unwrap().to_owned())
        .collect();
    paths.sort_unstable();
    paths.dedup();
    paths
}

#[test]
fn prov_gives_the_ancestry_that_of_gives() {
    let Some(python) = python("export prov-json, prov-n", "prov") else {
        return;
    };
    let place = recorded();
    let file = place.path("out.txt");
    for (subject, level) in [
        (None, "all"),
        (Some("out.txt"), "all"),
        (None, "process"),
        (None, "command"),
    ] {
        let args = |format| [&[format, "--level", level][..], subject.as_slice()].concat();
        let json = exported(&place, &args("prov-json"), "p.json");
        let n = exported(&place, &args("prov-n"), "p.provn");
        let found = check(&python, &["prov", &json, &n, &file]);
        let found: Vec<&str> = found
            .as_array()
            .unwrap()
            .iter()
            .map(|path| path.as_str().unwrap())
            .collect();
        let mut expected = ancestry(&place, &["out.txt", "--lookups"]);
        if level == "all" && subject.is_some() {
            assert_eq!(found, expected);
        }
        expected.retain(|path| found.contains(&path.as_str()));
        for name in ["in1", "in2", "s1", "s2", "out.txt"] {
            assert!(
                found.contains(&place.path(name).as_str()),
                "{level}: no {name} in {found:?}"
            );
        }
        assert!(!found.contains(&place.path("count").as_str()), "{level}");
    }
}

#[test]
fn openlineage_has_a_start_and_an_end_of_each_step() {
    let Some(python) = python("export openlineage", "openlineage.client") else {
        return;
    };
    let place = recorded();
    let events = exported(&place, &["openlineage"], "events");
    let args = check_of_events(&events);
    let found = check(&python, &args);
    assert_eq!(found["runs"], 4);
    let outputs = ["count", "out.txt", "s1", "s2"].map(|name| place.path(name));
    assert_eq!(found["outputs"], serde_json::json!(outputs));
}

/// An exported document.
fn document(path: &str) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn prov_names_the_ranks_of_a_job_among_the_activities() {
    let Some(python) = python("export prov-json, prov-n", "prov") else {
        return;
    };
    let place = recorded_as(RANKS);
    for level in ["all", "process", "command"] {
        let args = |format| [format, "--level", level];
        let json = exported(&place, &args("prov-json"), "p.json");
        let n = exported(&place, &args("prov-n"), "p.provn");
        check(&python, &["prov", &json, &n, &place.path("out.txt")]);
        let document = document(&json);
        let activities = document["activity"].as_object().unwrap().values();
        let ranks = activities.filter(|one| one["backstory:job"] == "71.0");
        let mut ranks: Vec<String> = ranks
            .map(|one| {
                assert_eq!(one["backstory:launcher"], "Slurm");
                assert_eq!(one["backstory:ranks"]["$"], "2");
                let rank = one["backstory:rank"]["$"].as_str().unwrap();
                let label = one["prov:label"].as_str().unwrap();
                // The line of a step has the variables and the redirection, too.
                let words = label.split(' ').skip_while(|word| *word != "sort");
                let program: Vec<&str> = words.take(2).collect();
                format!("{}: {rank}", program.join(" "))
            })
            .collect();
        ranks.sort_unstable();
        assert_eq!(ranks, ["sort in1: 0", "sort in2: 1"], "{level}");
    }
}

#[test]
fn openlineage_has_a_run_above_the_ranks_of_a_job() {
    let Some(python) = python("export openlineage", "openlineage.client") else {
        return;
    };
    let place = recorded_as(RANKS);
    for level in ["command", "process"] {
        let path = exported(&place, &["openlineage", "--level", level], "events");
        check(&python, &check_of_events(&path));
        let events = std::fs::read_to_string(&path).unwrap();
        let events: Vec<Value> = events
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let of = |facet: &str| -> Vec<&Value> {
            let runs = events.iter().map(|event| &event["run"]);
            runs.filter(|run| run["facets"].get(facet).is_some())
                .collect()
        };
        let (jobs, ranks) = (of("backstory_job"), of("backstory_rank"));
        // A start and an end of each.
        assert_eq!((jobs.len(), ranks.len()), (2, 4), "{level}");
        assert_eq!(jobs[0]["facets"]["backstory_job"]["job"], "71.0");
        for rank in ranks {
            let parent = &rank["facets"]["parent"];
            assert_eq!(parent["run"]["runId"], jobs[0]["runId"], "{rank}");
            assert_eq!(parent["job"]["name"], "Slurm job 71.0");
        }
        // Its parent is the process of the launcher.
        let launcher = &jobs[0]["facets"]["parent"]["run"]["runId"];
        let known = events
            .iter()
            .any(|event| event["run"]["runId"] == *launcher);
        assert_eq!(known, level == "process", "{level}");
        let order = events
            .iter()
            .position(|event| event["run"]["runId"] == jobs[0]["runId"]);
        let first = events
            .iter()
            .position(|event| !event["run"]["facets"]["backstory_rank"].is_null());
        assert!(order < first, "{level}");
    }
}

/// The arguments of the checker for a file with events. If it is here, the checkout of the standard
/// is one of them, or the schemas that `scripts/setup test` found in a package.
fn check_of_events(events: &str) -> Vec<String> {
    let fetched = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/openlineage");
    let spec = std::env::var_os("OPENLINEAGE_SPEC").map_or(fetched, PathBuf::from);
    let mut args = vec!["openlineage".to_owned(), events.to_owned()];
    if spec.join("OpenLineage.json").exists() {
        args.push(spec.to_str().unwrap().to_owned());
    } else {
        skipped(
            "OpenLineage's JSON schemas",
            "`scripts/setup test` brings them where it reaches crates.io",
        );
    }
    args
}

#[test]
fn a_crate_with_the_ranks_of_a_job_is_valid_and_names_them() {
    let Some(python) = python("export ro-crate", "rocrate_validator, rocrate") else {
        return;
    };
    let place = recorded_as(RANKS);
    let into = exported(&place, &["ro-crate"], "crate");
    check(&python, &["ro-crate", &into, &place.path("out.txt")]);
    let document = document(&format!("{into}/ro-crate-metadata.json"));
    let graph = document["@graph"].as_array().unwrap();
    let node = |id: &Value| graph.iter().find(|node| node["@id"] == *id).unwrap();
    let jobs = graph.iter().filter(|node| node["name"] == "Slurm job 71.0");
    let jobs: Vec<&Value> = jobs.collect();
    assert_eq!(jobs.len(), 1);
    assert_eq!(jobs[0]["@type"], "OrganizeAction");
    let results = jobs[0]["result"].as_array().unwrap().iter();
    let mut ranks: Vec<String> = results
        .map(|result| {
            let action = node(&result["@id"]);
            let rank = node(&action["identifier"]["@id"]);
            assert_eq!(rank["propertyID"], "urn:backstory:term:rank");
            format!(
                "{}: {}",
                action["description"].as_str().unwrap(),
                rank["value"]
            )
        })
        .collect();
    ranks.sort_unstable();
    assert!(ranks[0].contains("sort in1 > s1: 0"), "{ranks:?}");
    assert!(ranks[1].contains("sort in2 > s2: 1"), "{ranks:?}");
    assert_eq!(ranks.len(), 2);
}

#[test]
fn an_attestation_names_results_and_materials_by_their_digests() {
    let Some(python) = python("export in-toto", "in_toto_attestation") else {
        return;
    };
    let place = recorded();
    let found = check(
        &python,
        &["in-toto", &exported(&place, &["in-toto", "out.txt"], "att")],
    );
    // printf 'A\nB\nB\nC\n' | sha256sum
    let sum = Command::new("sha256sum")
        .arg(place.path("out.txt"))
        .output()
        .unwrap()
        .stdout;
    let sum = String::from_utf8(sum).unwrap();
    let subjects = serde_json::json!({place.path("out.txt"): sum.split(' ').next().unwrap()});
    assert_eq!(found["subjects"], subjects);
    let needed = found["dependencies"].as_array().unwrap();
    for name in ["in1", "in2"] {
        assert!(
            needed.contains(&Value::from(format!("file://{}", place.path(name)))),
            "{needed:?}"
        );
    }
}

#[test]
fn another_library_verifies_the_signature_of_a_bundle() {
    let Some(python) = python("export in-toto --sigstore-key", "securesystemslib") else {
        return;
    };
    if !needs("bundles", &["openssl"]) {
        return;
    }
    let place = recorded();
    let [key, public] = pair(&place, "own");
    let [_, other] = pair(&place, "other");
    let words = ["in-toto", "out.txt", "--sigstore-key", &key];
    let bundle = exported(&place, &words, "bundle");
    for (public, is_valid) in [(public, true), (other, false)] {
        let found = check(&python, &["bundle", &bundle, &place.path(&public)]);
        assert_eq!(found, is_valid, "{public}");
    }
}

#[test]
fn links_of_two_runs_satisfy_a_layout_until_a_file_between_them_changes() {
    let Some(python) = python("export in-toto-link", "in_toto") else {
        return;
    };
    let place = Place::new();
    place.write_aged("in1", "b\na\n");
    let step = |name: &str, script: &str| {
        let record = [
            "record",
            "--contents=lazy",
            "--name",
            name,
            "--",
            "sh",
            "-c",
            script,
        ];
        assert_eq!(place.run(&record).status, 0);
        exported(&place, &["in-toto-link", name], &format!("{name}.unsigned"))
    };
    let (sort, count) = ("sort in1 > sorted", "wc -l < sorted > count");
    let links = [step("sort", sort), step("count", count)];
    let verify = |links: &[String; 2]| check(&python, &["in-toto-link", &links[0], &links[1]]);
    let found = verify(&links);
    assert_eq!(found["status"], 0, "{found}");
    // A change that no run of the layout made.
    std::fs::remove_file(place.path("count")).unwrap();
    place.write_aged("sorted", "c\n");
    let changed = [links[0].clone(), step("count2", count)];
    let found = verify(&changed);
    assert_eq!(found["status"], 1, "{found}");
    assert!(
        found["said"].as_str().unwrap().contains("sorted"),
        "{found}"
    );
}

#[test]
fn spdx_lists_packages_and_no_files_unless_files_are_asked_for() {
    let Some(python) = python("export spdx", "spdx_tools") else {
        return;
    };
    let place = recorded();
    for subject in [&["spdx"][..], &["spdx", "out.txt"]] {
        let path = exported(&place, subject, "bill.spdx.json");
        check(&python, &["spdx", &path]);
        let document: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert!(document.get("files").is_none(), "{document}");
        let packages = document["packages"].as_array().unwrap();
        assert_eq!(packages[0]["SPDXID"], "SPDXRef-Subject");
        if subject.len() > 1 {
            let sums = packages[0]["checksums"].as_array().unwrap();
            assert_eq!(sums.len(), 2, "{sums:?}");
        }
    }
}

#[test]
fn bills_of_materials_are_valid_and_name_files_and_packages() {
    let place = recorded();
    if let Some(python) = python("export spdx", "spdx_tools") {
        let found = check(
            &python,
            &[
                "spdx",
                &exported(&place, &["spdx", "--files"], "bill.spdx.json"),
            ],
        );
        let relations = found["relations"].as_array().unwrap();
        let from = |to: &str, how: &str, from: &str| {
            let name = |file: &str| format!(".{}", place.path(file));
            relations.contains(&serde_json::json!([name(to), how, name(from)]))
        };
        assert!(from("out.txt", "GENERATED_FROM", "s1"), "{relations:?}");
        assert!(from("s1", "GENERATED_FROM", "in1") && !from("s1", "GENERATED_FROM", "in2"));
        if Path::new("/var/lib/dpkg/info/coreutils.list").exists() {
            let packages = found["packages"].as_array().unwrap();
            assert!(packages.contains(&Value::from("coreutils")), "{packages:?}");
        } else {
            skipped("packages in spdx", "needs dpkg");
        }
    }
    if let Some(python) = python("export cyclonedx", "cyclonedx") {
        check(
            &python,
            &[
                "cyclonedx",
                &exported(&place, &["cyclonedx"], "bill.cdx.json"),
            ],
        );
    }
}

#[test]
fn a_crate_is_valid_holds_the_files_and_answers_sparql_as_of_does() {
    let Some(python) = python("export ro-crate", "rocrate_validator, rocrate") else {
        return;
    };
    let place = recorded();
    let own = place.path("");
    let mut expected = ancestry(&place, &["out.txt"]);
    expected.retain(|path| {
        path.starts_with(&own) && !path.ends_with("/out.txt") && !path.ends_with("run.sh")
    });
    // Its inputs are gone: the files in the crate come from the store.
    let before = std::fs::read(place.path("in1")).unwrap();
    std::fs::remove_file(place.path("in1")).unwrap();
    let into = exported(&place, &["ro-crate"], "crate");
    let found = check(&python, &["ro-crate", &into, &place.path("out.txt")]);
    let found = found
        .as_array()
        .unwrap()
        .iter()
        .map(|path| path.as_str().unwrap().to_owned());
    let found: Vec<String> = found.filter(|path| path.starts_with(&own)).collect();
    assert_eq!(found, expected);
    let kept = std::fs::read(format!("{into}/files{}", place.path("in1"))).unwrap();
    assert_eq!(kept, before);
}

#[test]
fn a_timeline_is_read_by_perfettos_classes_and_leads_from_writers_to_readers() {
    let Some(python) = python(
        "export perfetto",
        "perfetto.protos.perfetto.trace.perfetto_trace_pb2",
    ) else {
        return;
    };
    let place = recorded();
    for level in ["command", "process", "all"] {
        let trace = exported(&place, &["perfetto", "--level", level], "trace");
        let found = check(&python, &["perfetto", &trace]);
        let arrows = found["arrows"].as_array().unwrap();
        let joined = |from: &str, file: &str, to: &str| {
            arrows.iter().any(|arrow| {
                let word = |at: usize| arrow[at].as_str().unwrap();
                word(0).contains(from)
                    && word(1).ends_with(&format!(" {file}"))
                    && word(2) == format!("read {file}")
                    && word(3).contains(to)
            })
        };
        assert!(joined("sort in1", "s1", "cat s1 s2"), "{level}: {found:#}");
        assert!(
            joined("tr a-z A-Z", "out.txt", "wc -l"),
            "{level}: {found:#}"
        );
        assert!(!joined("sort in2", "s1", "cat s1 s2"), "{level}: {found:#}");
        let slices = found["slices"].as_array().unwrap();
        let processes = place.json(&["processes", "--json"]);
        let processes = processes.as_array().unwrap();
        let expected = match level {
            "command" => 4,
            "process" => processes
                .iter()
                .filter(|process| process["epoch"] != 0)
                .count(),
            _ => processes.len(),
        };
        assert_eq!(slices.len(), expected, "{level}: {found:#}");
        let run = place.json(&["show", "--json"])["run"].clone();
        let name = format!("run {}", run.as_str().unwrap());
        assert_eq!(found["tracks"][0], name.as_str(), "{level}");
    }
}

#[test]
fn a_document_about_missing_contents_is_an_error() {
    let place = Place::new();
    place.write_aged("in", "a\n");
    place.write_aged("run.sh", "sort in > out\n");
    assert_eq!(place.run(&["record", "--", "sh", "run.sh"]).status, 0);
    // Neither stored nor in the file system.
    std::fs::remove_file(place.path("out")).unwrap();
    place
        .run(&["export", "in-toto", "./out", "-o", "att"])
        .is_error(1, &["out", "content", "--contents"]);
    assert!(!Path::new(&place.path("att")).exists());
    // Documents with optional digests are written without them.
    assert_eq!(
        place
            .run(&["export", "cyclonedx", "./out", "-o", "bill"])
            .status,
        0
    );
}

#[test]
fn graphs_and_tables_give_the_ancestry_that_of_gives() {
    let place = recorded();
    let file = place.path("out.txt");
    let expected = Value::from(ancestry(&place, &["out.txt", "--lookups"]));
    let of_file = |format| [format, "--level", "all", "out.txt"];
    if let Some(python) = python("export graphml", "networkx") {
        let graph = exported(&place, &of_file("graphml"), "g.graphml");
        assert_eq!(check(&python, &["graphml", &graph, &file]), expected);
    }
    if let Some(python) = python("export opm and neo4j", "json") {
        let graph = exported(&place, &of_file("opm"), "g.opm");
        assert_eq!(check(&python, &["opm", &graph, &file]), expected);
        let tables = exported(&place, &of_file("neo4j"), "csv");
        assert_eq!(check(&python, &["neo4j", &tables, &file]), expected);
    }
    if let Some(python) = python("export parquet", "duckdb") {
        let tables = exported(&place, &of_file("parquet"), "tables");
        assert_eq!(check(&python, &["parquet", &tables, &file]), expected);
    }
}

#[test]
fn the_common_data_model_gives_the_ancestry_that_of_gives() {
    let Some(python) = python("export cdm", "fastavro") else {
        return;
    };
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/cdm/TCCDMDatum.avsc");
    let schema = schema.to_str().unwrap();
    let place = recorded();
    let file = place.path("out.txt");
    let records = exported(&place, &["cdm", "out.txt"], "cdm.json");
    let found = check(&python, &["cdm", &records, schema, &file]);
    assert_eq!(
        found,
        Value::from(ancestry(&place, &["out.txt", "--lookups"]))
    );
    for level in ["command", "process"] {
        let records = exported(&place, &["cdm", "--level", level], "cdm.json");
        check(&python, &["cdm", &records, schema, &file]);
    }
}

/// The words of `found[list]` that are names of programs of the script.
fn programs(found: &Value, list: &str) -> Vec<String> {
    let names = found[list].as_array().unwrap().iter();
    let mut names: Vec<String> = names
        .map(|name| name.as_str().unwrap().to_owned())
        .collect();
    names.retain(|name| ["cat", "sort", "tr", "wc"].contains(&name.as_str()));
    names
}

/// Asserts that each step's input is in one list, and its output in the other.
fn lists_files_of_steps(place: &Place, found: &Value, read: &str, written: &str) {
    let has = |list: &str, name: &str| {
        let paths = found[list].as_array().unwrap();
        let path = place.path(name).into();
        assert!(paths.contains(&path), "{list} {name}: {paths:?}");
    };
    for (input, output) in [
        ("in1", "s1"),
        ("in2", "s2"),
        ("s1", "out.txt"),
        ("out.txt", "count"),
    ] {
        has(read, input);
        has(written, output);
    }
}

#[test]
fn ocsf_has_an_event_for_each_program_and_each_use_of_a_file() {
    let Some(python) = python("export ocsf", "ocsf") else {
        return;
    };
    let place = recorded();
    let found = check(&python, &["ocsf", &exported(&place, &["ocsf"], "events")]);
    let run = ["cat", "sort", "sort", "tr", "wc"];
    assert_eq!(programs(&found, "launched"), run);
    let mut exits = found["exits"].as_array().unwrap().iter();
    assert!(exits.all(|exit| exit == "0"));
    lists_files_of_steps(&place, &found, "2", "3");
}

#[test]
fn ecs_has_an_event_for_each_program_and_each_use_of_a_file() {
    let Some(python) = python("export ecs", "json") else {
        return;
    };
    let place = recorded();
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/ecs/fields.json");
    let events = exported(&place, &["ecs"], "events");
    let found = check(&python, &["ecs", &events, schema.to_str().unwrap()]);
    let run = ["cat", "sort", "sort", "tr", "wc"];
    assert_eq!(programs(&found, "started"), run);
    lists_files_of_steps(&place, &found, "access", "change");
}
