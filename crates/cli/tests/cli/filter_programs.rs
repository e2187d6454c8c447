//! Filters that are expressions or programs of the user, in a process with limits.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use backstory_testkit::need::needs;
use backstory_testkit::procs::eventually;

use super::Place;
use super::filters::configure;

const PATIENCE: Duration = Duration::from_secs(120);

const LINE: &str = "sort data > middle; uniq middle > out; rm middle";

/// A place with this configuration of its store. `None` if the worker is not built.
fn configured(text: &str) -> Option<Place> {
    let place = Place::new();
    if !place.has_inspector() {
        return None;
    }
    configure(&place, text);
    Some(place)
}

/// Records and indexes a line. Returns what `show` prints about the run.
fn shown(place: &Place, line: &str) -> String {
    place.write_aged("data", "b\na\na\n");
    place.record(line);
    place.quiet();
    assert_eq!(place.run(&["index", "--wait"]).status, 0);
    place.run(&["show"]).out
}

/// A plug-in in Python that answers each node by an expression over `node`.
fn plugin(place: &Place, body: &str) -> String {
    let script = format!(
        "import json, os, signal, sys, time\nlines = sys.stdin\nhello = json.loads(next(lines))\n{body}\n"
    );
    place.write("plugin.py", &script);
    let path = place.path("plugin.py");
    format!(
        "[[filter]]\nname = 'p'\naction = 'plugin'\ncommand = ['/usr/bin/env', 'python3', '{path}']\n"
    )
}

const EACH: &str = "for line in lines:\n    node = json.loads(line)\n    ";

#[test]
fn an_expression_chooses_files_by_all_their_fields() {
    let when = "path.endsWith(\"/middle\") && kind == \"file\" && \"write\" in relations && version > 0 && !last && programs.exists(p, p.endsWith(\"uniq\")) && run.command.size() == 3";
    let Some(place) = configured(&format!(
        "[[filter]]\nname = 'e'\naction = 'drop'\nwhen = '{when}'\n"
    )) else {
        return;
    };
    let show = shown(&place, LINE);
    let line = show
        .lines()
        .find(|line| line.starts_with("filtered"))
        .unwrap();
    assert!(
        line.ends_with("e (drop): 1 file") || line.ends_with("e (drop): 2 files"),
        "{show}"
    );
    assert!(!place.run(&["files", "--all"]).out.contains("/middle"));
    assert!(place.run(&["of", "out"]).out.contains("data"));
}

#[test]
fn a_wrong_expression_is_reported_with_line_and_column() {
    let Some(place) = configured("") else { return };
    for (when, position, words) in [
        ("'size > '", "3:16", "mismatched input"),
        (
            "'path == \"x\" && sizee > 3'",
            "3:24",
            "unknown variable sizee",
        ),
        ("'programs.exists(p, q == p)'", "3:28", "unknown variable q"),
        (
            "'''\nsize > 3 &&\n  sizee < 4'''",
            "5:3",
            "unknown variable sizee",
        ),
    ] {
        configure(
            &place,
            &format!("# a comment\n[[filter]]\nwhen = {when}\naction = 'drop'\n"),
        );
        let show = shown(&place, LINE);
        let place_of_mistake = format!("config.toml:{position}: ");
        assert!(
            show.contains("warning") && show.contains(&place_of_mistake),
            "{when}: {show}"
        );
        let files = place.run(&["files", "--all"]).out;
        assert!(files.contains("middle"), "the filter fails open");
        let pipeline = place.run(&["pipeline", "show"]);
        assert_eq!(pipeline.status, 1);
        let line = format!("{place_of_mistake}{words}");
        assert!(
            pipeline.err.contains(&line) || pipeline.err.contains(words),
            "{pipeline:?}"
        );
    }
}

#[test]
fn an_expression_without_a_value_fails_open_or_closed() {
    let filter = |failure: &str| {
        format!(
            "[[filter]]\naction = 'drop'\npath = 'middle'\nwhen = 'size / 0 == 1'\nfailure = '{failure}'\n"
        )
    };
    let Some(place) = configured(&filter("open")) else {
        return;
    };
    let show = shown(&place, LINE);
    assert!(
        show.contains("warning") && show.contains("has no value"),
        "{show}"
    );
    assert!(place.run(&["files", "--all"]).out.contains("middle"));
    configure(&place, &filter("closed"));
    assert_eq!(place.run(&["store", "rebuild"]).status, 0);
    assert!(!place.run(&["files", "--all"]).out.contains("/middle"));
}

#[test]
fn a_plug_in_drops_renames_and_redacts() {
    let Some(place) = configured("") else { return };
    if !needs("a plug-in", &["python3"]) {
        return;
    }
    let body = format!(
        "{EACH}name = os.path.basename(node['path'])\n    to = {{'middle': {{'action': 'drop'}}, 'out': {{'action': 'rename', 'to': '/re$1named'}}, 'data': {{'action': 'redact'}}}}.get(name)\n    if to: print(json.dumps({{'id': node['id'], **to}}))"
    );
    configure(&place, &plugin(&place, &body));
    let show = shown(&place, LINE);
    assert!(
        show.contains("p (plugin)") && !show.contains("warning"),
        "{show}"
    );
    let files = place.run(&["files", "--all", "--json"]).out;
    assert!(
        files.contains("\"/re$1named\"") && files.contains("/<redacted>/"),
        "{files}"
    );
    assert!(
        !files.contains("/data\"") && !files.contains("/middle"),
        "{files}"
    );
}

#[test]
fn a_plug_in_that_dies_floods_or_talks_nonsense_changes_nothing() {
    let Some(place) = configured("") else { return };
    if !needs("a plug-in", &["python3"]) {
        return;
    }
    for (body, why) in [
        (
            "print('{\"id\": 0, \"action\": \"drop\"}', flush=True); os.kill(os.getpid(), 9)",
            "signal 9",
        ),
        ("sys.exit('I give up')", "I give up"),
        ("while True: print('x' * 4096)", "more than"),
        ("print('hello')", "refused"),
        (
            "print('{\"id\": 99999999, \"action\": \"drop\"}')",
            "not asked",
        ),
        ("x = bytearray(1 << 30)", "failed"),
        ("open('/tmp/written-by-a-filter', 'w')", "failed"),
    ] {
        configure(&place, &plugin(&place, body));
        let show = shown(&place, LINE);
        assert!(
            show.contains("warning") && show.contains("filter p"),
            "{body}: {show}"
        );
        assert!(show.contains(why), "{body}: {show}");
        assert!(show.contains("complete     yes"), "{show}");
        assert!(
            place.run(&["files", "--all"]).out.contains("middle"),
            "{body}"
        );
    }
    assert!(!Path::new("/tmp/written-by-a-filter").exists());
}

/// A place with a plug-in that becomes a process that sleeps, as does its child. The result is the
/// place, and the name of the processes.
fn hanging() -> Option<(Place, String)> {
    let place = configured("")?;
    if !needs("a plug-in", &["python3"]) {
        return None;
    }
    let mark = place.path("sleeper");
    let body = format!("child = os.fork()\nos.execvp('sleep', ['{mark}', '1000'])");
    configure(&place, &plugin(&place, &body));
    Some((place, mark))
}

/// The processes with this name.
fn named(mark: &str) -> Vec<PathBuf> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let processes = processes.map(|entry| entry.path());
    processes
        .filter(|process| {
            let line = fs::read(process.join("cmdline")).unwrap_or_default();
            line.starts_with(mark.as_bytes())
        })
        .collect()
}

#[test]
fn a_plug_in_that_hangs_is_ended_with_its_children() {
    let Some((place, mark)) = hanging() else {
        return;
    };
    let show = shown(&place, LINE);
    assert!(
        show.contains("took more than") && show.contains("filter p"),
        "{show}"
    );
    // The signal was sent, and the process may need a moment to end.
    let ended = eventually(PATIENCE, || named(&mark).is_empty());
    assert!(ended, "a child of the plug-in is still there");
}

/// The background indexer of a run waits for its plug-in, when a question takes over its work.
#[test]
fn a_plug_in_of_a_background_process_that_hands_its_work_over_is_ended_with_its_children() {
    let Some((place, mark)) = hanging() else {
        return;
    };
    place.write_aged("data", "b\na\na\n");
    place.record(LINE);
    let begun = eventually(PATIENCE, || named(&mark).len() == 2);
    assert!(begun, "the background process started no plug-in");
    let of_background = named(&mark);
    let log = place.run(&["log"]);
    assert_eq!(log.status, 0, "{log:?}");
    assert!(log.out.contains("sort data"), "{log:?}");
    let lives = |process: &PathBuf| named(&mark).contains(process);
    let ended = eventually(PATIENCE, || !of_background.iter().any(lives));
    assert!(
        ended,
        "the plug-in of the background process is still there"
    );
}

#[test]
fn a_component_that_pipeline_add_named_judges_the_files_of_a_run() {
    let Some(place) = configured("") else { return };
    let component = wat::parse_str(include_str!("drops_all.wat")).unwrap();
    let path = place.path("filter.wasm");
    fs::write(&path, component).unwrap();
    place.stage.user().owns(path.as_ref()).unwrap();
    let add = |component: &str| {
        let add = ["pipeline", "add", "plugin", "--name", "w", "--path"];
        place.run(&[&add[..], &["middle", "--component", component]].concat())
    };
    let added = add(&path);
    assert_eq!((added.status, added.err.as_str()), (0, ""), "{added:?}");
    let show = shown(&place, LINE);
    assert!(
        show.contains("w (plugin): ") && !show.contains("warning"),
        "{show}"
    );
    let files = place.run(&["files", "--all"]).out;
    assert!(
        !files.contains("/middle") && files.contains("/out"),
        "{files}"
    );
    assert!(place.run(&["of", "out"]).out.contains("data"));
    // Without the component the run is indexed, and says so.
    fs::write(&path, b"no component").unwrap();
    assert_eq!(place.run(&["store", "rebuild"]).status, 0);
    let show = place.run(&["show"]).out;
    assert!(
        show.contains("filter w") && show.contains("not a WebAssembly component"),
        "{show}"
    );
    assert!(place.run(&["files", "--all"]).out.contains("middle"));
}

#[test]
fn a_missing_plug_in_is_named_and_the_run_is_indexed() {
    let Some(place) =
        configured("[[filter]]\nname = 'p'\naction = 'plugin'\ncommand = ['/nowhere/plug-in']\n")
    else {
        return;
    };
    let show = shown(&place, LINE);
    assert!(show.contains("cannot execute /nowhere/plug-in"), "{show}");
}

/// The text of the first block of a page that begins with these lines.
fn block<'p>(page: &'p str, begin: &str) -> &'p str {
    let at = page
        .find(begin)
        .unwrap_or_else(|| panic!("no block {begin:?}"));
    let text = &page[at + begin.find('\n').unwrap() + 1..];
    &text[..text.find("\n```").unwrap() + 1]
}

#[test]
fn the_filters_of_the_guide_have_no_mistake_and_do_what_it_says() {
    let page = include_str!("../../../../docs/howto/pipeline.md");
    let Some(place) = configured(block(page, "```toml\n[[filter]]")) else {
        return;
    };
    let line = "mkdir customer-9; cp data customer-9/x; sort customer-9/x > out";
    let show = shown(&place, line);
    assert!(
        show.contains("<redacted>") && !show.contains("warning"),
        "{show}"
    );
    assert!(
        show.contains("libraries (drop): ")
            && !show.contains("(drop): nothing\nfiltered     filter 2"),
        "{show}"
    );
    let pipeline = place.run(&["pipeline", "show"]);
    assert_eq!(
        (pipeline.status, pipeline.err.as_str()),
        (0, ""),
        "{pipeline:?}"
    );
    assert_eq!(
        place.json(&["pipeline", "show", "--json"])["filters"]
            .as_array()
            .unwrap()
            .len(),
        5
    );
    configure(&place, "");
    for line in block(page, "```console\n$ backstory pipeline add").lines() {
        let line = line.strip_prefix("$ backstory ").unwrap().replace('\'', "");
        let words: Vec<&str> = line.split(' ').collect();
        let answer = place.run(&words);
        assert_eq!(
            (answer.status, answer.err.as_str()),
            (0, ""),
            "{line}: {answer:?}"
        );
    }
}

#[test]
fn the_plug_in_of_the_protocol_page_works() {
    let Some(place) = configured("") else { return };
    if !needs("a plug-in", &["python3"]) {
        return;
    }
    let page = include_str!("../../../../docs/formats/filters.md");
    place.write("plugin.py", block(page, "```python\nimport json"));
    let path = place.path("plugin.py");
    configure(
        &place,
        &format!(
            "[[filter]]\nname = 'p'\naction = 'plugin'\ncommand = ['/usr/bin/env', 'python3', '{path}']\n"
        ),
    );
    let show = shown(
        &place,
        "sort data > x.tmp; uniq x.tmp > out; rm x.tmp; cp out y.tmp",
    );
    assert!(
        show.contains("p (plugin): 1 file\n") || show.contains("p (plugin): 2 files\n"),
        "{show}"
    );
    let files = place.run(&["files", "--all"]).out;
    assert!(
        !files.contains("x.tmp  ") && files.contains("y.tmp"),
        "{files}"
    );
}
