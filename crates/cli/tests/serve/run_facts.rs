//! The page of a run: the facts about its processes, and the verdicts of its replays.

use std::path::Path;

use super::server::ServedPlace;

#[test]
fn a_process_has_the_processor_time_that_it_used_until_its_exit() {
    let place = ServedPlace::new();
    place.write("a", "x\n");
    // The shell computes for a while, and the other process does almost nothing.
    let work = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; cat a";
    place.record(&["dash", "-c", work]);
    let server = place.serve(&[]);
    let page = server.get("/runs/latest/processes");
    let processes = page["processes"].as_array().unwrap();
    let used = |name: &str| {
        let mut found = processes.iter().filter(|process| {
            let line = process["line"].as_str().unwrap();
            line.starts_with(name)
        });
        found.find_map(|process| process["processor_seconds"].as_f64())
    };
    let (shell, other) = (used("dash").unwrap(), used("cat a").unwrap());
    assert!(other > 0.0 && shell > other, "{page}");
    // The kernel counts the same for the whole run, to its clock's tick.
    let usage = &server.get("/runs/latest")["usage"];
    let all = usage["user"].as_f64().unwrap() + usage["system"].as_f64().unwrap();
    assert!(shell <= all + 0.05, "{shell} of {all}");
}

#[test]
fn a_part_that_a_program_marked_is_named_in_the_rows_of_processes() {
    let place = ServedPlace::new();
    let marks = ": 2>/dev/null </dev/null/backstory/begin/cell/one; cat a >/dev/null; \
                 : 2>/dev/null </dev/null/backstory/end";
    place.write("a", "x\n");
    place.record(&["bash", "-c", &format!("{marks}; true")]);
    let server = place.serve(&[]);
    let page = server.get("/runs/latest/processes");
    let processes = page["processes"].as_array().unwrap();
    let marked = processes.iter().filter(|process| process["marked"] == true);
    let lines: Vec<&str> = marked
        .filter_map(|process| process["line"].as_str())
        .collect();
    assert!(lines.contains(&"cell one"), "{page}");
    assert!(processes.iter().any(|process| process["marked"] == false));
}

#[test]
fn a_record_has_the_verdict_of_its_schema_in_the_row_of_its_process() {
    let place = ServedPlace::new();
    let program = Path::new(env!("CARGO_BIN_EXE_backstory"));
    if !place.has_worker() {
        return;
    }
    place.write("schema.json", r#"{"type": "number"}"#);
    let add = ["schema", "add", "org.example.loss", "schema.json"];
    assert!(place.backstory(&add).output().unwrap().status.success());
    let record = format!("{} emit record", program.display());
    place.record(&[
        "sh",
        "-c",
        &format!("{record} org.example.loss 1; {record} org.example.loss '{{}}'; {record} a.b x"),
    ]);
    let server = place.serve(&[]);
    let page = server.get("/runs/latest/processes");
    let processes = page["processes"].as_array().unwrap().iter();
    let records: Vec<_> = processes
        .flat_map(|process| process["records"].as_array().unwrap())
        .collect();
    assert_eq!(records.len(), 3, "{page}");
    let verdict = |state: &str, why: &str| serde_json::json!({"name": "org.example.loss@1", "state": state, "why": why});
    assert_eq!(records[0]["schema"], verdict("conforms", ""));
    let why = "{} is not of type \"number\"";
    assert_eq!(records[1]["schema"], verdict("violates", why));
    assert!(records[2]["schema"].is_null(), "{page}");
}

#[test]
fn the_verdict_of_a_replay_is_told_with_its_run() {
    let place = ServedPlace::new();
    place.write("a", "x\n");
    place.record(&["sh", "-c", "cat a > b; echo $$ > c"]);
    let mut replay = place.backstory(&["replay", "--json"]);
    let replayed = replay.output().unwrap();
    let printed = String::from_utf8_lossy(&replayed.stdout);
    let Ok(report) = serde_json::from_str::<serde_json::Value>(&printed) else {
        let why = String::from_utf8_lossy(&replayed.stderr);
        assert!(why.contains("namespace"), "{why}");
        backstory_testkit::need::skipped("replays on the page", &why);
        return;
    };
    let server = place.serve(&[]);
    let run = server.get("/runs/latest");
    let replays = run["replays"].as_array().unwrap();
    assert_eq!(replays.len(), 1, "{run}");
    assert_eq!(replays[0]["identical"], report["identical"]);
    let outputs = report["outputs"].as_array().unwrap();
    assert_eq!(replays[0]["outputs"], outputs.len());
    let differing = outputs
        .iter()
        .filter(|output| output["state"] == "different");
    assert_eq!(
        replays[0]["different"].as_array().unwrap().len(),
        differing.count()
    );
    let annotations = run["annotations"].as_array().unwrap();
    assert!(annotations.is_empty(), "{annotations:?}");
}

#[test]
fn the_ranks_of_a_job_are_one_group_with_their_ends_and_hosts() {
    let place = ServedPlace::new();
    place.record(&["true"]);
    for rank in [2, 0, 1] {
        place.record_rank(rank, &format!("exit {rank}"));
    }
    let server = place.serve(&[]);
    let job = server.get("/job?launcher=Slurm&id=71.0");
    let ranks = job["ranks"].as_array().unwrap();
    let shown: Vec<_> = ranks
        .iter()
        .map(|run| (&run["job"]["rank"], &run["exit"]))
        .collect();
    assert_eq!(
        serde_json::json!(shown),
        serde_json::json!([[0, 0], [1, 1], [2, 2]])
    );
    assert_eq!((&job["size"], &job["total"]), (&4.into(), &3.into()));
    let states = serde_json::json!({"ok": 1, "failed": 2, "running": 0, "unknown": 0});
    assert_eq!(job["states"], states);
    assert_eq!(
        (&job["missing"], &job["missing_count"]),
        (&serde_json::json!([3]), &1.into())
    );
    assert_eq!(job["hosts"], serde_json::json!([ranks[0]["host"]]));
    assert_eq!(server.get("/runs?job=71.*")["total"], 3);
    assert_eq!(server.get("/runs?job=72.*")["total"], 0);
    let absent = server.ask("GET", "/job?launcher=Slurm&id=7", &[]);
    assert_eq!(absent.status, 404, "{}", absent.text());
}

#[test]
fn the_ranks_among_the_processes_of_a_run_are_named() {
    let place = ServedPlace::new();
    let line = "for rank in 0 1; do SLURM_JOB_ID=71 SLURM_STEP_ID=0 SLURM_PROCID=$rank \
                sh -c 'cat /dev/null; true'; done";
    place.record(&["sh", "-c", line]);
    let server = place.serve(&[]);
    let run = server.get("/runs/latest");
    let jobs =
        serde_json::json!([{"launcher": "Slurm", "id": "71.0", "size": null, "ranks": [0, 1]}]);
    assert_eq!(run["jobs"], jobs);
    assert!(run["summary"]["job"].is_null(), "{run}");
    let page = server.get("/runs/latest/processes");
    let processes = page["processes"].as_array().unwrap().iter();
    let ranks = processes.filter_map(|process| process["job"]["rank"].as_u64());
    assert_eq!(ranks.collect::<Vec<_>>(), [0, 1]);
}
