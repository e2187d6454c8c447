//! `replay --deep` of a run in which the log of one process has a gap. Of the other processes,
//! nothing is excused.

use std::collections::BTreeMap;
use std::fs;

use backstory_abi::Chunk;
use backstory_eventlog::frame::{self, FrameKind, LogPiece};

use super::Place;
use super::deep_cut::{NUMBERS, run_of};
use super::deep_replay::compiled;
use super::deep_time::deep_log;

/// Records a script that runs `numbers.py`, and then damages a chunk in the middle of the log of
/// `numbers.py`, which has the most chunks.
fn record_with_gap(place: &Place) {
    place.deep("cat in | RECORD python3 script.py > out");
    let path = deep_log(place);
    let mut bytes = fs::read(&path).unwrap();
    let mut chunks: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for piece in frame::walk(&bytes) {
        if let LogPiece::Frame(frame) = piece
            && frame.kind == Some(FrameKind::DeepChunk)
        {
            let start = frame.payload.start;
            let head = Chunk::read(&bytes[frame.payload]).unwrap();
            chunks.entry(head.epoch).or_default().push(start);
        }
    }
    let most = chunks.values().max_by_key(|all| all.len()).unwrap();
    assert!(most.len() > 3, "{chunks:?}");
    bytes[most[most.len() / 2]] ^= 0x55;
    fs::write(&path, bytes).unwrap();
}

/// The states of the outputs by name, of a replay that ends with this status. `None`: this machine
/// has no namespaces.
fn states(place: &Place, more: &[&str], status: i32) -> Option<BTreeMap<String, String>> {
    let report = place.report(more, status)?;
    let outputs = report["outputs"].as_array().unwrap().iter();
    let states = outputs.map(|output| {
        let path = output["path"].as_str().unwrap();
        let name = path.rsplit('/').next().unwrap();
        (
            name.to_owned(),
            output["state"].as_str().unwrap().to_owned(),
        )
    });
    Some(states.collect())
}

/// Executes two programs, however the first one ends.
const BOTH: &str = r#"
import os
os.spawnvp(os.P_WAIT, "python3", ["python3", "numbers.py"])
os.spawnv(os.P_WAIT, "./mark", ["./mark"])
"#;

/// Writes an address into a file. A replay has another one.
const MARK: &str = r#"
#include <stdio.h>
int main(void)
{
    FILE *made = fopen("made", "w");
    fprintf(made, "%p\n", (void *)&made);
    return fclose(made);
}
"#;

#[test]
fn a_file_that_only_whole_programs_wrote_is_different() {
    let Some(place) = run_of(BOTH) else { return };
    if !compiled(&place, "", "mark", MARK) {
        return;
    }
    record_with_gap(&place);
    if let Some(states) = states(&place, &[], 1) {
        assert_eq!(states["made"], "different", "{states:?}");
        assert_eq!(states["result"], "unknown", "{states:?}");
    }
}

/// Writes an address into a file, and closes the file. A replay has another one.
const EARLY: &str = "with open('early', 'w') as f: f.write(str(id(object())))\n";

#[test]
fn a_file_that_was_closed_before_the_gap_is_different() {
    let Some(place) = run_of(&[EARLY, NUMBERS].concat()) else {
        return;
    };
    record_with_gap(&place);
    if let Some(states) = states(&place, &[], 1) {
        assert_eq!(states["early"], "different", "{states:?}");
        assert_eq!(states["result"], "unknown", "{states:?}");
    }
}

/// Executes the second program if the first one succeeds.
const SECOND: &str = r#"
import os
if os.spawnvp(os.P_WAIT, "python3", ["python3", "numbers.py"]) == 0:
    os.spawnvp(os.P_WAIT, "true", ["true"])
"#;

#[test]
fn a_program_that_a_whole_one_does_not_start_again_is_a_difference() {
    let Some(place) = run_of(SECOND) else { return };
    record_with_gap(&place);
    // The program with the gap is ended there, so the first one takes another path.
    if let Some(answer) = place.again(&[]) {
        let mut lines = answer.err.lines();
        let is_said = lines.any(|line| line.ends_with("/true was not started again"));
        assert!(answer.status == 1 && is_said, "{answer:?}");
    }
}

#[test]
fn a_program_that_was_started_behind_a_gap_need_not_start_again() {
    let then = "os.spawnvp(os.P_WAIT, 'sh', ['sh', '-c', 'echo one > made'])\n";
    let Some(place) = run_of(&[NUMBERS, then].concat()) else {
        return;
    };
    record_with_gap(&place);
    let Some(answer) = place.again(&[]) else {
        return;
    };
    for part in [
        "equal where it was recorded: ",
        "sh was not started again: the record of the program that started it ends before",
    ] {
        assert!(answer.err.contains(part), "{part}: {answer:?}");
    }
    let states = states(&place, &[], 0).unwrap();
    assert_eq!(states["made"], "unknown", "{states:?}");
    assert_eq!(states["result"], "unknown", "{states:?}");
}

#[test]
fn a_search_in_a_record_with_a_gap_says_that_calls_are_missing() {
    let Some(place) = run_of(NUMBERS) else { return };
    record_with_gap(&place);
    if place.again(&[]).is_none() {
        return;
    }
    let answer = place.run(&["when", "--run", "deep", "nowhere"]);
    assert_eq!(answer.status, 1, "{answer:?}");
    assert!(answer.out.contains("No call"), "{answer:?}");
    for part in ["and some are missing:", ") is not whole: "] {
        assert!(answer.err.contains(part), "{part}: {answer:?}");
    }
}

#[test]
fn what_the_user_changed_is_a_difference_behind_a_gap_too() {
    let Some(place) = run_of(NUMBERS) else { return };
    record_with_gap(&place);
    if let Some(states) = states(&place, &["--env=WORD=other"], 1) {
        assert_eq!(states["result"], "missing", "{states:?}");
    }
}
