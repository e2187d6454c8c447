//! A machine whose clock is set back between runs, and during one.
//!
//! Setting the real clock would affect everything on the machine. A time namespace moves the time
//! since boot instead, for one run. There an hour has passed by the clock that cannot be set, and
//! none by the calendar. That is what a process sees after a clock was set back by an hour.

use super::Place;
use backstory_eventlog::frame::{self, FrameKind, LogPiece};
use backstory_testkit::need::skipped;

/// The prefix that runs a command this many seconds later by the time since boot.
fn later(seconds: u32) -> String {
    format!("unshare --user --map-current-user --time --boottime {seconds}")
}

fn permitted(place: &Place) -> bool {
    let may = place.shell(&format!("{} true", later(1))).status == 0;
    if !may {
        skipped(
            "a clock that is set back",
            "no time namespace may be made here",
        );
    }
    may
}

/// Records a line after the clock was set back by this many hours in all.
fn record(place: &Place, hours: u32, name: &str, line: &str) {
    let record = format!(
        "{} $B record --name {name} -- sh -c '{line}'",
        later(hours * 3600)
    );
    let answer = place.shell(&record);
    assert_eq!((answer.status, answer.err.as_str()), (0, ""), "{line}");
}

fn names(place: &Place) -> Vec<String> {
    let runs = place.json(&["log", "--json"]);
    let names = runs.as_array().unwrap().iter();
    names
        .map(|run| run["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn the_later_run_is_newer_though_the_clock_was_set_back() {
    let place = Place::new();
    if !permitted(&place) {
        return;
    }
    // Two hours later by the clock that cannot be set, and earlier by the calendar.
    record(&place, 2, "later", "true");
    record(&place, 0, "earlier", "true");
    assert_eq!(names(&place), ["later", "earlier"]);
    let latest = place.json(&["show", "--json"]);
    assert_eq!(latest["name"], "later");
}

#[test]
fn files_lead_to_their_makers_over_a_clock_that_was_set_back() {
    let place = Place::new();
    if !permitted(&place) {
        return;
    }
    place.write("in", "one\n");
    record(&place, 0, "first", "cat in > middle");
    record(&place, 1, "second", "cat middle > out");
    let told = place.json(&["of", "out", "--json"]).to_string();
    assert!(told.contains(r#"["cat","in"]"#), "{told}");
    let told = place.json(&["uses", "in", "--json"]).to_string();
    assert!(told.contains(r#"["cat","middle"]"#), "{told}");
    assert_eq!(place.run(&["status", "out"]).status, 0);
    let asked = place.run(&["rerun", "-n", "out"]);
    assert_eq!(asked.status, 0, "nothing is to be done: {asked:?}");
    // The newer maker counts, whatever the calendar says about the older one.
    record(&place, 3, "third", "echo again > out");
    let told = place.json(&["of", "out", "--json"]).to_string();
    assert!(
        told.contains("echo again > out") && !told.contains(r#"["cat","middle"]"#),
        "{told}"
    );
    // A changed input makes its results stale.
    std::fs::remove_file(place.work().join("out")).unwrap();
    record(&place, 4, "fourth", "cat middle > out");
    place.write("in", "two, longer\n");
    assert_eq!(place.run(&["rerun", "-n", "out"]).status, 1);
    let done = place.shell(&format!("{} $B rerun out", later(5 * 3600)));
    assert_eq!(done.status, 0, "{done:?}");
    let now = std::fs::read_to_string(place.work().join("out")).unwrap();
    assert_eq!(now, "two, longer\n");
    assert_eq!(place.run(&["rerun", "-n", "out"]).status, 0);
}

/// The log as if its clock had been set back by a day after the first reading.
fn set_back(log: &[u8]) -> Vec<u8> {
    const DAY: i64 = 86_400_000_000_000;
    let (mut out, mut readings) = (Vec::new(), 0);
    for piece in frame::walk(log) {
        let LogPiece::Frame(frame) = piece else {
            panic!("a damaged log")
        };
        let start = frame.payload.start - frame::HEADER;
        let mut payload = log[frame.payload.clone()].to_vec();
        if frame.kind != Some(FrameKind::Clock) {
            out.extend(&log[start..frame.payload.end]);
            continue;
        }
        if readings > 0 {
            let real = i64::from_le_bytes(payload[8..16].try_into().unwrap());
            payload[8..16].copy_from_slice(&(real - DAY).to_le_bytes());
        }
        readings += 1;
        out.extend(frame::header(
            FrameKind::Clock,
            frame.version,
            payload.len() as u32,
            &[&payload],
        ));
        out.extend(&payload);
    }
    assert!(readings > 1, "{readings}");
    out
}

#[test]
fn a_log_whose_clock_was_set_back_keeps_its_order() {
    let place = Place::new();
    place.write("in", "one\n");
    let run = place.record("cat in > middle; sleep 0.2; cat middle > out");
    let path = place.stage.store().join(format!("runs/{run}.log"));
    let log = std::fs::read(&path).unwrap();
    for entry in std::fs::read_dir(place.stage.store()).unwrap().flatten() {
        if entry.file_name().to_string_lossy().starts_with("graph.db") {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
    std::fs::write(&path, set_back(&log)).unwrap();
    let runs = place.json(&["log", "--json"]);
    assert_eq!(runs.as_array().unwrap().len(), 1, "{runs}");
    let shown = place.json(&["show", "--json"]);
    assert_eq!(shown["complete"], true, "{shown}");
    let told = place.json(&["of", "out", "--json"]).to_string();
    assert!(told.contains("/in\""), "{told}");
    let told = place.json(&["uses", "in", "--json"]).to_string();
    assert!(told.contains("/out\""), "{told}");
    assert_eq!(place.run(&["rerun", "-n", "out"]).status, 0);
}
