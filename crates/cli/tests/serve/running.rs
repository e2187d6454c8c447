//! Runs in progress, and files that are brought up to date.

use std::cell::Cell;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use backstory_testkit::http::lines_until;
use serde_json::Value;

use super::server::{ServedPlace, encoded};

#[test]
fn a_run_in_progress_appears_with_what_it_waits_for_and_then_in_the_store() {
    let place = ServedPlace::new();
    place.write("a", "x");
    place.record(&["cp", "a", "b"]);
    // The run waits at this pipe until it was seen.
    let gate = place.path("gate");
    assert!(
        Command::new("mkfifo")
            .arg(&gate)
            .status()
            .unwrap()
            .success()
    );
    let server = place.serve(&[]);
    let mut recorded = place
        .backstory(&[
            "record",
            "--name",
            "slow",
            "--",
            "sh",
            "-c",
            "cat gate; cp a c",
        ])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let until = Instant::now() + Duration::from_secs(120);
    let live = loop {
        let live = server.get("/live");
        let running = live["runs"][0]["running"].as_array();
        if running.is_some_and(|all| all.iter().any(|one| one["line"] == "cat gate")) {
            break live;
        }
        assert!(Instant::now() < until, "{live}");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(live["runs"][0]["name"], "slow");
    // The processes that record the run are no processes of the run.
    let running = live["runs"][0]["running"].as_array().unwrap();
    let lines = running.iter().filter_map(|one| one["line"].as_str());
    let recorders = lines.filter(|line| line.contains("record"));
    assert_eq!(recorders.count(), 0, "{live}");
    let id = live["runs"][0]["run"].as_str().unwrap().to_owned();
    let listed = server.get("/runs?status=running");
    assert_eq!(listed["runs"][0]["run"], id.as_str());
    let store = server.get("/store");
    assert_eq!((&store["runs"], &store["running"]), (&1.into(), &1.into()));
    let bearer = server.bearer();
    let headers = [("Authorization", bearer.as_str())];
    // The first line follows the server's list of the runs before.
    let is_open = Cell::new(false);
    let is_stored = |line: &str| {
        if !is_open.replace(true) {
            std::fs::write(&gate, "").unwrap();
        }
        line == format!("data: {{\"run\":\"{id}\"}}")
    };
    let lines = lines_until(server.port, "/api/v1/live/events", &headers, is_stored).unwrap();
    assert!(lines.iter().any(|line| line == "event: runs"), "{lines:?}");
    recorded.wait().unwrap();
    assert_eq!(server.get(&format!("/runs/{id}"))["summary"]["state"], "ok");
    let store = server.get("/store");
    assert_eq!((&store["runs"], &store["running"]), (&2.into(), &0.into()));
}

#[test]
fn an_outdated_file_is_listed_with_the_command_that_mends_it_and_mended_if_that_is_allowed() {
    let place = ServedPlace::new();
    place.write("a", "one\n");
    place.record(&["cp", "a", "b"]);
    let root = place.path("").to_str().unwrap().to_owned();
    let server = place.serve(&["--allow-rerun", "--root", &root]);
    let status = || server.get(&format!("/status?path={}", encoded(place.path("b"))));
    assert_eq!(status()["files"][0]["state"], "current");
    assert_eq!(status()["files"][0]["mend"], Value::Null);
    place.write("a", "two, longer\n");
    let outdated = status();
    assert_eq!(outdated["files"][0]["state"], "outdated", "{outdated}");
    let mend = outdated["files"][0]["mend"].as_str().unwrap();
    assert!(
        mend.starts_with("backstory rerun ") && mend.ends_with("/b"),
        "{mend}"
    );
    let route = format!("/rerun?path={}&yes=true", encoded(place.path("b")));
    let answer = server.ask("POST", &route, &[("X-Backstory", "1")]);
    let text = answer.text();
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!((answer.status, &last["exit"]), (200, &0.into()), "{text}");
    assert_eq!(std::fs::read(place.path("b")).unwrap(), b"two, longer\n");
}
