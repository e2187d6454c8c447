//! `record --bytes`, `refine` and `of --bytes`: single bytes are followed through programs.

use std::collections::BTreeSet;
use std::path::Path;

use backstory_testkit::byte_engine;
use backstory_testkit::need::skipped;
use serde_json::Value;

use super::{Answer, Place};

/// Puts the engine into the place. `None`: this machine lacks what it is built from.
pub fn engine(place: &Place) -> Option<String> {
    let engine = place.path("engine");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let copied = byte_engine::copy(target, Path::new(&engine), &["sort", "cut", "wc"]);
    copied.then(|| format!("BACKSTORY_BYTE_ENGINE={engine}"))
}

/// The sources of a part of a file: path, how, and text of each range.
fn sources(place: &Place, engine: &str, part: &str) -> Vec<(String, String, String)> {
    let answer = place.shell(&format!("env {engine} $B of {part} --json"));
    assert_eq!(answer.status, 0, "{answer:?}");
    let found: Value = serde_json::from_str(&answer.out).unwrap();
    let mut all = Vec::new();
    for source in found["sources"].as_array().unwrap() {
        let path = source["path"].as_str().unwrap();
        let content = std::fs::read(path).unwrap();
        let name = path.rsplit('/').next().unwrap().to_owned();
        for how in ["copied", "computed", "implicit"] {
            for range in source[how].as_array().unwrap() {
                let end = |at: usize| range[at].as_u64().unwrap() as usize;
                let text = String::from_utf8_lossy(&content[end(0)..end(1)]).into_owned();
                all.push((name.clone(), how.to_owned(), text));
            }
        }
    }
    all
}

/// Refines a file or run. `None`: this machine has no namespaces.
pub fn refined(place: &Place, engine: &str, what: &str) -> Option<Answer> {
    let answer = place.shell(&format!("env {engine} $B refine {what}"));
    if answer.err.contains("namespace") {
        skipped("refine", &answer.err);
        return None;
    }
    Some(answer)
}

fn owned(all: &[(&str, &str, &str)]) -> Vec<(String, String, String)> {
    let own = |&(a, b, c): &(&str, &str, &str)| (a.to_owned(), b.to_owned(), c.to_owned());
    all.iter().map(own).collect()
}

const TABLE: &str = "3,cedar,30\n1,ash,10\n2,birch,20\n";

#[test]
fn a_cell_is_followed_through_processes_pipes_and_refined_runs() {
    let place = Place::new();
    let Some(engine) = engine(&place).filter(|_| place.has_inspector()) else {
        return;
    };
    place.write_aged("in.csv", TABLE);
    let recorded =
        place.shell("$B record --name first -- sh -c 'sort in.csv | cut -d, -f2,3 > mid.csv'");
    assert_eq!(recorded.status, 0, "{recorded:?}");
    let recorded = place.shell(&format!(
        "env {engine} $B record --bytes --name second -- sort -r mid.csv -o out.csv"
    ));
    assert_eq!(recorded.status, 0, "{recorded:?}");
    assert_eq!(
        sources(&place, &engine, "out.csv --cell A2"),
        owned(&[("mid.csv", "copied", "birch")])
    );
    let refused = place.shell("$B of mid.csv --line 1");
    assert!(refused.err.contains("backstory refine"), "{refused:?}");
    let Some(refined) = refined(&place, &engine, "first") else {
        return;
    };
    assert_eq!(refined.status, 0, "{refined:?}");
    assert_eq!(
        sources(&place, &engine, "out.csv --cell A2"),
        owned(&[("in.csv", "copied", "birch")])
    );
    assert_eq!(
        sources(&place, &engine, "mid.csv --line 1"),
        // cut writes its own separator.
        owned(&[("in.csv", "copied", "ash"), ("in.csv", "copied", "10")])
    );
}

#[test]
fn of_a_refined_file_names_the_inputs_that_gave_it_no_byte() {
    let place = Place::new();
    let Some(engine) = engine(&place) else {
        return;
    };
    place.write_aged("ia", "one\n");
    place.write_aged("ib", "two\n");
    let copy = "awk 'FNR == NR { next } { print }' ib ia > oa";
    place.keep(copy, &[]);
    let before = place.run(&["of", "oa"]).out;
    assert!(
        before.contains("sources: ia, ib") && !before.contains("bytes:"),
        "{before}"
    );
    let Some(done) = refined(&place, &engine, "oa") else {
        return;
    };
    assert_eq!(done.status, 0, "{done:?}");
    let after = place.run(&["of", "oa"]).out;
    assert!(
        after.contains("bytes: from ia; none from ib, apart from decisions"),
        "{after}"
    );
    let json = place.json(&["of", "oa", "--json", "--level", "step"])["bytes"].clone();
    let (from, none) = (&json["from"][0], &json["none_from"][0]);
    assert!(from.as_str().unwrap().ends_with("/ia"), "{json}");
    assert!(none.as_str().unwrap().ends_with("/ib"), "{json}");
    // `uses` of each input says the same, and no edge is gone.
    for (input, line, field) in [
        ("ia", "bytes: into oa\n", "into"),
        (
            "ib",
            "bytes: none into oa, apart from decisions\n",
            "none_into",
        ),
    ] {
        let uses = place.run(&["uses", input]).out;
        assert!(uses.contains("> oa") && uses.contains(line), "{uses}");
        let json = place.json(&["uses", input, "--json", "--level", "step"]);
        let result = json["bytes"][field][0].as_str().unwrap_or_default();
        assert!(result.ends_with("/oa"), "{json}");
    }
}

#[test]
fn bytes_come_only_from_files_that_the_graph_names_as_sources() {
    let place = Place::new();
    let Some(engine) = engine(&place) else {
        return;
    };
    place.write_aged("in.csv", TABLE);
    place.write_aged("other.csv", "x\ny\nz\n");
    place.write_aged("unused.csv", TABLE);
    let run = place.keep(
        "sort in.csv | cut -d, -f2 > mid.csv; paste -d, mid.csv other.csv > out.csv; \
         sort unused.csv > apart.csv",
        &[],
    );
    let Some(done) = refined(&place, &engine, &run) else {
        return;
    };
    assert_eq!(done.status, 0, "{done:?}");
    for (name, expected) in [
        ("mid.csv", &["in.csv"][..]),
        ("out.csv", &["in.csv", "other.csv"]),
        ("apart.csv", &["unused.csv"]),
    ] {
        let size = std::fs::metadata(place.path(name)).unwrap().len();
        let of_bytes = sources(&place, &engine, &format!("{name} --bytes 0-{}", size - 1));
        let names: BTreeSet<&str> = of_bytes.iter().map(|one| one.0.as_str()).collect();
        assert_eq!(names, expected.iter().copied().collect(), "{name}");
        let graph = place.json(&["of", name, "--json"]);
        let nodes = graph["nodes"].as_array().unwrap().iter();
        let paths: Vec<&str> = nodes.filter_map(|node| node["path"].as_str()).collect();
        for source in names {
            assert!(
                paths.contains(&place.path(source).as_str()),
                "{name}: {source}"
            );
        }
    }
}

#[test]
fn without_the_engine_the_commands_say_what_to_install() {
    let place = Place::new();
    place.write_aged("in.csv", TABLE);
    let elsewhere = "env BACKSTORY_BYTE_ENGINE=/nonexistent PATH=/usr/bin:/bin";
    if Path::new("/usr/local/lib/backstory/bytes").exists() {
        skipped("a missing byte engine", "it is installed here");
        return;
    }
    let answer = place.shell(&format!("{elsewhere} $B record --bytes -- cat in.csv"));
    assert_eq!(answer.status, 125, "{answer:?}");
    assert!(
        answer.err.contains("install the packages valgrind"),
        "{answer:?}"
    );
    assert_eq!(answer.out, "");
}

#[test]
fn a_count_has_the_lines_that_decided_it_as_sources_if_decisions_are_followed() {
    let place = Place::new();
    let Some(engine) = engine(&place).filter(|_| place.has_inspector()) else {
        return;
    };
    place.write_aged("in.csv", TABLE);
    let copy = "sh -c 'wc -l < in.csv > count.txt; sort in.csv > out.csv'";
    let kinds = |place: &Place| {
        let mut all: Vec<_> = sources(place, &engine, "count.txt --bytes 0");
        all.retain(|(_, _, text)| !text.is_empty());
        (all, sources(place, &engine, "out.csv --cell B1"))
    };
    let moved = owned(&[("in.csv", "copied", "ash")]);
    let recorded = place.shell(&format!("env {engine} $B record --bytes -- {copy}"));
    assert_eq!(recorded.status, 0, "{recorded:?}");
    assert_eq!(kinds(&place), (Vec::new(), moved.clone()));
    let recorded = place.shell(&format!(
        "env {engine} $B record --bytes --implicit -- {copy}"
    ));
    assert_eq!(recorded.status, 0, "{recorded:?}");
    let (decided, same) = kinds(&place);
    assert_eq!(decided, owned(&[("in.csv", "implicit", TABLE)]));
    let mut only_moved = same;
    only_moved.retain(|(_, how, _)| how != "implicit");
    assert_eq!(only_moved, moved);
    let text = place.shell(&format!("env {engine} $B of count.txt --bytes 0"));
    assert!(text.out.contains("decided by in.csv"), "{text:?}");
}

/// A run with three steps, of which two are behind `out.csv`.
const THREE_STEPS: &str = "sort in.csv > mid.csv\n\
    wc -l < in.csv > count.txt\n\
    date +%N > other.txt\n\
    cut -d, -f2 mid.csv > out.csv\n";

#[test]
fn only_the_commands_behind_a_file_are_replayed_for_a_question_about_it() {
    let place = Place::new();
    let Some(engine) = engine(&place) else {
        return;
    };
    place.write_aged("in.csv", TABLE);
    place.write_aged("steps.sh", THREE_STEPS);
    let recorded = place.shell("$B record --name steps -- sh steps.sh");
    assert_eq!(recorded.status, 0, "{recorded:?}");
    let Some(refined) = refined(&place, &engine, "out.csv") else {
        return;
    };
    // The time makes a replay of the whole run fail.
    assert_eq!(refined.status, 0, "{refined:?}");
    assert!(refined.err.contains("2 of 4 commands"), "{refined:?}");
    assert_eq!(
        sources(&place, &engine, "out.csv --line 1"),
        owned(&[("in.csv", "copied", "ash")])
    );
    let other = place.shell(&format!("env {engine} $B of count.txt --line 1"));
    assert!(other.err.contains("backstory refine"), "{other:?}");
    let whole = place.shell(&format!("env {engine} $B refine steps"));
    assert_eq!(whole.status, 1, "{whole:?}");
    assert!(whole.err.contains("other.txt"), "{whole:?}");
    let more = place.shell(&format!(
        "env {engine} $B refine --implicit count.txt@steps"
    ));
    assert_eq!(more.status, 0, "{more:?}");
    assert_eq!(
        sources(&place, &engine, "count.txt --bytes 0"),
        owned(&[("in.csv", "implicit", TABLE)])
    );
    // The other part is still known.
    assert_eq!(
        sources(&place, &engine, "out.csv --line 1"),
        owned(&[("in.csv", "copied", "ash")])
    );
}

#[test]
fn all_of_a_run_is_replayed_if_the_commands_behind_a_file_do_not_make_it_again() {
    let place = Place::new();
    let Some(engine) = engine(&place) else {
        return;
    };
    place.write_aged("in.csv", TABLE);
    // The last command changes the file in a way that its own steps do not show.
    let script = "cut -d, -f2 in.csv > out.csv; sort in.csv > other.csv; : > made.txt; \
                  [ ! -e made.txt ] || sed -i s/ash/oak/ out.csv";
    let recorded = place.shell(&format!("$B record --name steps -- sh -c '{script}'"));
    assert_eq!(recorded.status, 0, "{recorded:?}");
    let Some(refined) = refined(&place, &engine, "out.csv") else {
        return;
    };
    assert_eq!(refined.status, 0, "{refined:?}");
    assert_eq!(
        sources(&place, &engine, "out.csv --line 3"),
        owned(&[("in.csv", "copied", "birch")])
    );
}
