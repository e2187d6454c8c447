//! Many shells record into one store at once.

use super::terminal::Terminal;
use backstory_testkit::need::needs;
use backstory_testkit::stage::Stage;
use std::fs;

fn shells_on_one_store(number: usize) {
    if !needs("many recorded shells", &["tmux", "bash"]) {
        return;
    }
    let stage = Stage::new(env!("CARGO_BIN_EXE_backstory")).unwrap();
    let directory = stage.directory("work").unwrap();
    let program = stage.path().join("bin/backstory");
    let line = format!("{} shell -- bash", program.display());
    let terminals: Vec<Terminal> = (0..number)
        .map(|at| Terminal::start(&stage, &format!("t{at}"), &directory, &line, ""))
        .collect();
    terminals.iter().for_each(Terminal::ready);
    // All at once.
    let typed: Vec<String> = (0..number)
        .map(|at| format!("seq {at} > out.{at}"))
        .collect();
    for (terminal, line) in terminals.iter().zip(&typed) {
        terminal.enter(line);
    }
    terminals.iter().for_each(Terminal::leave);
    let ask = |args: &[&str]| {
        let mut command = stage.backstory(args);
        let out = command.current_dir(&directory).output().unwrap();
        assert!(out.status.success(), "{args:?}: {out:?}");
        String::from_utf8(out.stdout).unwrap()
    };
    ask(&["index", "--wait"]);
    let runs: Vec<serde_json::Value> =
        serde_json::from_str(&ask(&["log", "-n", "1000", "--json"])).unwrap();
    let mut found: Vec<&str> = runs
        .iter()
        .filter_map(|run| run["line"]["text"].as_str())
        .filter(|text| text.starts_with("seq"))
        .collect();
    let mut wanted: Vec<&str> = typed.iter().map(String::as_str).collect();
    found.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(found, wanted);
    let lines = runs.iter().filter(|run| run["line"].is_object());
    assert!(lines.clone().all(|run| run["complete"] == true), "{runs:?}");
    let last = number - 1;
    let made = fs::read_to_string(directory.join(format!("out.{last}"))).unwrap();
    assert_eq!(made.lines().count(), last);
    assert!(ask(&["of", &format!("out.{last}")]).contains(&typed[last]));
}

#[test]
fn shells_on_one_store_lose_no_line() {
    shells_on_one_store(6);
}

#[test]
#[ignore = "fifty terminals"]
fn fifty_shells_on_one_store_lose_no_line() {
    shells_on_one_store(50);
}
