//! A run that backstory exports and imports again has the same ancestry.

use super::Desk;
use backstory_testkit::need;
use serde_json::Value;
use std::collections::BTreeSet;

/// The nodes behind a file, and the flows between them, without what no document states: ids,
/// programs' paths, identities and digests.
pub(super) fn ancestry(desk: &Desk, path: &str, options: &[&str]) -> BTreeSet<String> {
    let mut args = vec!["of", "--json", "--level", "all"];
    args.extend(options);
    args.push(path);
    let answer = desk.json(&args);
    let nodes = answer["nodes"].as_array().unwrap();
    let name = |at: &Value| {
        let node = &nodes[usize::try_from(at.as_u64().unwrap()).unwrap()];
        match node["type"].as_str().unwrap() {
            "activity" => format!("{} in {}", node["argv"], node["cwd"]),
            // Numbers of channels begin anew in each run.
            _ if !node["path"].as_str().unwrap().starts_with('/') => node["kind"].to_string(),
            _ => format!("{} {} {}", node["kind"], node["path"], node["version"]),
        }
    };
    let mut all: BTreeSet<String> = (0..nodes.len()).map(|at| name(&at.into())).collect();
    for edge in answer["links"].as_array().unwrap() {
        let ends = (name(&edge["from"]), name(&edge["to"]));
        all.insert(format!(
            "{} → {} {} {}",
            ends.0, ends.1, edge["how"], edge["certainty"]
        ));
    }
    all
}

/// Recall and precision of `found`, and what they lack.
#[track_caller]
pub(super) fn equal(what: &str, wanted: &BTreeSet<String>, found: &BTreeSet<String>) {
    let common = wanted.intersection(found).count() as f64;
    let measured = (common / wanted.len() as f64, common / found.len() as f64);
    let missed: Vec<_> = wanted.difference(found).take(5).collect();
    let extra: Vec<_> = found.difference(wanted).take(5).collect();
    assert_eq!(
        measured,
        (1.0, 1.0),
        "{what}: missed {missed:#?}, extra {extra:#?}"
    );
}

/// A line that is recorded, and the files whose ancestry counts.
const LINE: &str = "cat in | tr a-z A-Z | sort > 'an out'; cp 'an out' copy; mv copy moved; \
    (echo x; cat moved) > both; (exit 3)";
const RESULTS: [&str; 3] = ["an out", "moved", "both"];

fn recorded() -> Desk {
    let desk = Desk::new();
    desk.write("in", b"b\na\n");
    desk.backstory(&["record", "--wait", "--name", "own", "--", "sh", "-c", LINE]);
    desk
}

/// Exports the run, and imports it into another store.
fn imported(own: &Desk, format: &str, options: &[&str]) -> Desk {
    let document = own.work().join("document");
    let mut args = vec!["export", format, "own", "-o", "document"];
    args.extend(options);
    let exported = own.backstory(&args);
    assert!(exported.status.success(), "{exported:?}");
    let desk = Desk::new();
    let args = ["import", format, document.to_str().unwrap()];
    let output = desk.backstory(&args);
    assert!(output.status.success(), "{output:?}");
    desk
}

/// The results have the same ancestry in both stores, and the imported run is complete.
#[track_caller]
fn same_ancestry(own: &Desk, again: &Desk) {
    for name in RESULTS {
        let path = own.work().join(name);
        let path = path.to_str().unwrap();
        for options in [&[][..], &["--lookups"]] {
            let (wanted, found) = (ancestry(own, path, options), ancestry(again, path, options));
            assert!(wanted.len() > 20, "{wanted:?}");
            equal(name, &wanted, &found);
        }
    }
    let show = again.json(&["show", "--json"]);
    assert_eq!(show["incomplete_because"], serde_json::json!([]), "{show}");
}

#[test]
fn an_exported_prov_json_document_has_the_same_ancestry_when_it_is_imported() {
    let own = recorded();
    let again = imported(&own, "prov-json", &["--level", "all"]);
    same_ancestry(&own, &again);
    let show = again.json(&["show", "--json"]);
    let before = own.json(&["show", "--json"]);
    for field in ["exit", "command", "cwd"] {
        assert_eq!(show[field], before[field], "{field}");
    }
    let used = |desk: &Desk| {
        let files = desk.json(&["files", "--all", "--json"]);
        let files = files.as_array().unwrap().clone();
        let line =
            |file: Value| format!("{} {} {}", file["path"], file["access"], file["certainty"]);
        files.into_iter().map(line).collect::<BTreeSet<_>>()
    };
    equal("files", &used(&own), &used(&again));
}

#[test]
fn an_exported_opm_document_has_the_same_ancestry_when_it_is_imported() {
    let own = recorded();
    let document = own.work().join("document");
    let exported = own.backstory(&["export", "opm", "own", "-o", "document", "--level", "all"]);
    assert!(exported.status.success(), "{exported:?}");
    let again = Desk::new();
    let output = again.backstory(&["import", "spade", document.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    same_ancestry(&own, &again);
}

#[test]
fn an_exported_build_has_the_same_ancestry_when_it_is_imported() {
    if !need::needs("a build", &["make", "gcc"]) {
        return;
    }
    let own = Desk::new();
    own.write("a.c", b"int f(void){return 1;}\n");
    own.write("b.c", b"int f(void);int main(void){return f()-1;}\n");
    own.write(
        "Makefile",
        b"app: a.o b.o\n\tgcc -o app a.o b.o\n%.o: %.c\n\tgcc -c $<\n",
    );
    own.backstory(&["record", "--wait", "--name", "own", "--", "make", "-j2"]);
    let again = imported(&own, "prov-json", &["--level", "all"]);
    for name in ["app", "a.o"] {
        let path = own.work().join(name);
        let path = path.to_str().unwrap();
        let (wanted, found) = (ancestry(&own, path, &[]), ancestry(&again, path, &[]));
        assert!(wanted.len() > 50, "{wanted:?}");
        equal(name, &wanted, &found);
    }
}

/// The history of a file over several runs becomes one run.
#[test]
fn the_exported_lineage_of_a_file_over_runs_is_imported_whole() {
    let own = Desk::new();
    own.write("in", b"b\na\n");
    own.backstory(&["record", "--wait", "--", "sort", "in", "-o", "sorted"]);
    own.backstory(&["record", "--wait", "--", "cp", "sorted", "result"]);
    let exported = own.backstory(&[
        "export",
        "prov-json",
        "result",
        "-o",
        "document",
        "--level",
        "all",
    ]);
    assert!(exported.status.success(), "{exported:?}");
    let again = Desk::new();
    let (document, result) = (own.work().join("document"), own.work().join("result"));
    again.backstory(&["import", "prov-json", document.to_str().unwrap()]);
    let found = ancestry(&again, result.to_str().unwrap(), &[]);
    for part in ["\"sort\"", "\"cp\"", "work/in\""] {
        assert!(
            found.iter().any(|node| node.contains(part)),
            "no {part} in {found:?}"
        );
    }
    // The version that one run left is the one that the other found.
    let sorted = found
        .iter()
        .filter(|node| !node.contains('→') && node.contains("work/sorted\""));
    assert_eq!(sorted.count(), 1, "{found:?}");
}

/// The user's files behind a file, and its commands in the words of a person.
fn sources(desk: &Desk, path: &str) -> BTreeSet<String> {
    let answer = desk.json(&["of", "--json", "--level", "all", path]);
    let nodes = answer["nodes"].as_array().unwrap();
    let paths = nodes.iter().filter_map(|node| node["path"].as_str());
    let own = paths.filter(|path| path.contains("/work/"));
    own.map(str::to_owned).collect()
}

#[test]
fn exported_openlineage_events_lead_to_the_same_files_when_they_are_imported() {
    let own = recorded();
    let again = imported(&own, "openlineage", &[]);
    for name in RESULTS {
        let path = own.work().join(name);
        let path = path.to_str().unwrap();
        let mut wanted = sources(&own, path);
        // Steps join a copy and its rename.
        wanted.retain(|path| !path.ends_with("/copy"));
        assert!(wanted.len() > 1, "{wanted:?}");
        equal(name, &wanted, &sources(&again, path));
    }
    let processes = again.json(&["processes", "--json"]).to_string();
    assert!(
        processes.contains("cat in | tr a-z A-Z | sort > 'an out'"),
        "{processes}"
    );
}

#[test]
fn an_exported_crate_leads_to_the_same_files_when_it_is_imported() {
    let own = Desk::new();
    own.write("in", b"b\na\n");
    let record = [
        "record",
        "--wait",
        "--contents=all",
        "--name",
        "own",
        "--",
        "sh",
        "-c",
        LINE,
    ];
    own.backstory(&record);
    let exported = own.backstory(&["export", "ro-crate", "own", "-o", "crate"]);
    assert!(exported.status.success(), "{exported:?}");
    let metadata = own.work().join("crate/ro-crate-metadata.json");
    let again = Desk::new();
    let output = again.backstory(&["import", "ro-crate", metadata.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    for name in RESULTS {
        let path = own.work().join(name);
        let path = path.to_str().unwrap();
        let mut wanted = sources(&own, path);
        // Steps join a copy and its rename.
        wanted.retain(|path| !path.ends_with("/copy"));
        equal(name, &wanted, &sources(&again, path));
    }
    assert_eq!(again.reasons(), "[]");
}

/// A format that is exported and imported.
struct RoundTrip {
    export: &'static str,
    options: &'static [&'static str],
    /// The name of the format that reads it.
    import: &'static str,
    /// The file of the export that is imported.
    file: &'static str,
    /// Its activities are steps, which join a copy and its rename.
    has_steps: bool,
}

const ROUND_TRIPS: [RoundTrip; 5] = [
    round_trip("prov-json", "prov-json", &["--level", "all"], "", false),
    round_trip("opm", "spade", &["--level", "all"], "", false),
    round_trip("reprozip", "reprozip", &["--level", "all"], "", false),
    round_trip("openlineage", "openlineage", &[], "", true),
    round_trip("ro-crate", "ro-crate", &[], "/ro-crate-metadata.json", true),
];

const fn round_trip(
    export: &'static str,
    import: &'static str,
    options: &'static [&'static str],
    file: &'static str,
    has_steps: bool,
) -> RoundTrip {
    RoundTrip {
        export,
        options,
        import,
        file,
        has_steps,
    }
}

/// Exports the run `own`, and imports it into another store.
fn reimported(own: &Desk, format: &RoundTrip) -> Desk {
    let out = format!("out-{}", format.export);
    let export = ["export", format.export, "own", "-o", &out];
    let exported = own.backstory(&[&export[..], format.options].concat());
    assert!(exported.status.success(), "{exported:?}");
    let document = format!("{}/{out}{}", own.work().display(), format.file);
    let again = Desk::new();
    let output = again.backstory(&["import", format.import, &document]);
    assert!(output.status.success(), "{output:?}");
    again
}

/// The programs behind a file. A step has a text with all of its commands.
fn programs(desk: &Desk, path: &str, has_steps: bool) -> BTreeSet<String> {
    let answer = desk.json(&["of", "--json", "--level", "all", path]);
    let nodes = answer["nodes"].as_array().unwrap();
    let words = nodes.iter().flat_map(|node| {
        let text = match has_steps {
            true => node["argv"].to_string(),
            false => node["argv"][0].to_string(),
        };
        let words = text.split(|c: char| !c.is_ascii_alphanumeric());
        words.map(str::to_owned).collect::<Vec<_>>()
    });
    let is_program = |word: &String| ["cat", "tr", "sort", "cp", "mv"].contains(&&**word);
    words.filter(is_program).collect()
}

#[test]
fn every_format_that_is_exported_and_imported_leads_to_the_same_files_and_programs() {
    let own = Desk::new();
    own.write("in", b"b\na\n");
    let record = ["record", "--wait", "--contents=all", "--name", "own"];
    own.backstory(&[&record[..], &["--", "sh", "-c", LINE]].concat());
    for format in &ROUND_TRIPS {
        let again = reimported(&own, format);
        for name in RESULTS {
            let what = format!("{}, {name}", format.export);
            let path = own.work().join(name);
            let path = path.to_str().unwrap();
            let mut wanted = sources(&own, path);
            if format.has_steps {
                wanted.retain(|path| !path.ends_with("/copy"));
            }
            equal(&what, &wanted, &sources(&again, path));
            let wanted = programs(&own, path, false);
            assert!(wanted.len() > 2, "{wanted:?}");
            equal(&what, &wanted, &programs(&again, path, format.has_steps));
        }
    }
}

/// A new format of this kind must be added to the test above. The exports `nextflow` and
/// `snakemake` are workflows, while their imports read records of a run.
#[test]
fn the_formats_that_are_exported_and_imported_are_known() {
    let desk = Desk::new();
    let names = |command: &str| -> BTreeSet<String> {
        let text = String::from_utf8(desk.backstory(&[command]).stdout).unwrap();
        let first = |line: &str| line.split_whitespace().next().map(str::to_owned);
        text.lines().filter_map(first).collect()
    };
    let (exported, imported) = (names("export"), names("import"));
    let both: BTreeSet<&str> = exported
        .intersection(&imported)
        .map(String::as_str)
        .filter(|name| !["nextflow", "snakemake"].contains(name))
        .collect();
    let tested = ROUND_TRIPS.iter().filter(|one| one.export == one.import);
    assert_eq!(both, tested.map(|one| one.export).collect());
}

/// Two ranks of a job, which a launcher in the run started.
const RANKS: &str = "launch() { for rank in 0 1; do SLURM_JOB_ID=71 SLURM_STEP_ID=0 \
    SLURM_STEP_NUM_TASKS=3 SLURM_PROCID=$rank sort in -o out.$rank; done; }; launch; \
    cat out.0 out.1 > both";

/// What `show` says about jobs: the place of the run, and the ranks among its processes.
fn jobs(desk: &Desk) -> (Value, Value) {
    let show = desk.json(&["show", "--json"]);
    (show["job"].clone(), show["jobs"].clone())
}

/// The programs of ranks, with their ranks.
fn rank_programs(desk: &Desk) -> BTreeSet<String> {
    let processes = desk.json(&["processes", "--all", "--json"]);
    let processes = processes.as_array().unwrap().iter();
    let ranks = processes.filter(|one| !one["job"].is_null());
    ranks
        .map(|one| {
            let words = one["argv"].as_array().unwrap();
            let line: Vec<&str> = words.iter().map(|word| word.as_str().unwrap()).collect();
            // The line of a step has the variables, too.
            let line = line.join(" ");
            let words = line.split(' ').filter(|word| !word.contains('='));
            format!("{} {}", words.collect::<Vec<_>>().join(" "), one["job"])
        })
        .collect()
}

#[test]
fn the_ranks_of_a_job_in_a_run_are_exported_and_imported() {
    let own = Desk::new();
    own.write("in", b"b\na\n");
    let record = ["record", "--wait", "--contents=all", "--name", "own"];
    own.backstory(&[&record[..], &["--", "sh", "-c", RANKS]].concat());
    let wanted = jobs(&own);
    let ranks =
        serde_json::json!([{"launcher": "Slurm", "id": "71.0", "size": 3, "ranks": [0, 1]}]);
    assert_eq!(wanted, (Value::Null, ranks));
    let programs = rank_programs(&own);
    assert_eq!(programs.len(), 2, "{programs:?}");
    for format in with_ranks() {
        let again = reimported(&own, format);
        assert_eq!(jobs(&again), wanted, "{}", format.export);
        assert_eq!(rank_programs(&again), programs, "{}", format.export);
    }
}

#[test]
fn a_run_that_is_a_rank_is_exported_and_imported_as_a_rank() {
    let own = Desk::new();
    own.write("in", b"b\na\n");
    let record = ["record", "--wait", "--contents=all", "--name", "own", "--"];
    let line = ["sh", "-c", "sort in > sorted; cat sorted sorted > both"];
    let mut command = own.stage.backstory(&[&record[..], &line].concat());
    for variable in ["JOB_ID", "STEP_ID", "PROCID"] {
        command.env(format!("SLURM_{variable}"), "5");
    }
    let recorded = command.current_dir(own.work()).output().unwrap();
    assert!(recorded.status.success(), "{recorded:?}");
    let place = serde_json::json!({"launcher": "Slurm", "id": "5.5", "rank": 5, "size": null});
    let wanted = (place, serde_json::json!([]));
    assert_eq!(jobs(&own), wanted);
    for format in with_ranks() {
        let again = reimported(&own, format);
        assert_eq!(jobs(&again), wanted, "{}", format.export);
        let group = again.json(&["log", "--job", "5.*", "--json"]);
        assert_eq!(group.as_array().unwrap().len(), 1, "{group}");
    }
}

/// The formats that have a place for ranks. A trace of ReproZip has none.
fn with_ranks() -> impl Iterator<Item = &'static RoundTrip> {
    let all = ROUND_TRIPS.iter();
    all.filter(|format| format.export != "reprozip")
}
