//! Filters between recorded runs and the store, on real runs.

use std::fs;

use super::{Answer, Place};

/// A place whose user has this configuration.
fn configured(text: &str) -> Place {
    let place = Place::new();
    configure(&place, text);
    place
}

/// Writes the configuration of the place's user.
pub(super) fn configure(place: &Place, text: &str) {
    let mut directory = place.stage.path().join("home");
    for name in [".config", "backstory"] {
        directory.push(name);
        let _ = fs::create_dir(&directory);
        place.stage.user().owns(&directory).unwrap();
    }
    let path = directory.join("config.toml");
    fs::write(&path, text).unwrap();
    place.stage.user().owns(&path).unwrap();
}

/// Records a line, and indexes it. Returns the run and what the indexer printed.
fn indexed(place: &Place, line: &str) -> (String, Answer) {
    place.write_aged("data", "b\na\na\n");
    let run = place.record(line);
    place.quiet();
    let answer = place.run(&["index", "--wait"]);
    assert_eq!(answer.status, 0, "{answer:?}");
    (run, answer)
}

const LINE: &str = "sort data > middle; uniq middle > out; rm middle";

/// The line of `show` about a filter.
fn filtered(place: &Place, name: &str) -> String {
    let show = place.run(&["show"]).out;
    let mut lines = show.lines().filter(|line| line.starts_with("filtered"));
    let found = lines.find(|line| line.contains(name));
    found
        .unwrap_or_else(|| panic!("no filter {name} in {show}"))
        .to_owned()
}

/// All texts of the answers about a run.
fn everything(place: &Place) -> String {
    let questions: [&[&str]; 5] = [
        &["show", "--json", "--verbose"],
        &["files", "--all", "--json"],
        &["processes", "--json"],
        &["log", "--json"],
        &["of", "out", "--json"],
    ];
    questions
        .iter()
        .map(|question| place.run(question).out)
        .collect()
}

#[test]
fn a_dropped_intermediate_keeps_the_lineage_of_all_others() {
    let place = configured("[[filter]]\nname = 'm'\naction = 'drop'\npath = 'middle'\n");
    indexed(&place, LINE);
    let of = place.run(&["of", "out", "--tree"]).out;
    assert!(
        of.contains("/data") && of.contains("read dropped:1"),
        "{of}"
    );
    assert!(place.run(&["uses", "data"]).out.contains("out"));
    assert!(!place.run(&["files", "--all"]).out.contains("/middle"));
    assert!(
        filtered(&place, "m (drop)").ends_with("1 file"),
        "{}",
        filtered(&place, "m (drop)")
    );
    let show = place.run(&["show"]).out;
    assert!(show.contains("complete     yes"), "{show}");
    assert_eq!(place.run(&["store", "verify"]).status, 0);
}

#[test]
fn a_file_that_is_dropped_in_two_runs_still_joins_them() {
    let place = configured("[[filter]]\naction = 'drop'\npath = 'between'\n");
    indexed(&place, "sort data > between");
    indexed(&place, "uniq between > out");
    let of = place.run(&["of", "out"]).out;
    assert!(of.contains("data") && of.contains("sort data"), "{of}");
}

#[test]
fn a_dropped_process_keeps_the_lineage_of_all_others() {
    let place = configured("[[filter]]\naction = 'drop'\non = 'process'\nprogram = 'uniq'\n");
    indexed(&place, LINE);
    let of = place.run(&["of", "out", "--tree"]).out;
    assert!(of.contains("data") && of.contains("dropped:"), "{of}");
    let processes = place.run(&["processes", "--json"]).out;
    assert!(
        !processes.contains("/uniq\"") && processes.contains("/sort\""),
        "{processes}"
    );
}

#[test]
fn what_is_redacted_is_in_no_answer_and_in_the_log() {
    let place = configured("[[filter]]\naction = 'redact'\ntext = 'customer-[0-9]+'\n");
    let (run, _) = indexed(
        &place,
        "mkdir customer-77; cp data customer-77/x; cd customer-77; OF=customer-77 sh -c 'cat x > ../out'",
    );
    let all = everything(&place);
    assert!(
        !all.contains("customer-77") && all.contains("<redacted>"),
        "{all}"
    );
    let log = fs::read(place.stage.store().join(format!("runs/{run}.log"))).unwrap();
    assert!(!log.is_empty());
    // The log has it: without the filter the run is as it was recorded.
    configure(&place, "");
    assert_eq!(place.run(&["store", "rebuild"]).status, 0);
    assert!(everything(&place).contains("customer-77"));
}

#[test]
fn a_rename_changes_names_and_keeps_the_lineage() {
    let place = configured("[[filter]]\naction = 'rename'\ntext = 'job-([0-9]+)/'\nto = 'job/'\n");
    indexed(&place, "mkdir job-12; cp data job-12/x; cat job-12/x > out");
    let all = everything(&place);
    assert!(all.contains("/job/x") && !all.contains("job-12/"), "{all}");
    assert!(place.run(&["of", "out"]).out.contains("data"));
}

#[test]
fn an_abstract_step_is_one_process_with_all_inputs_and_outputs() {
    let place = configured(
        "[[filter]]\nname = 's'\naction = 'abstract'\nprogram = ['sh', 'dash', 'bash', 'busybox']\n",
    );
    indexed(&place, LINE);
    let processes = place.json(&["processes", "--json"]);
    assert_eq!(processes.as_array().unwrap().len(), 1, "{processes}");
    let of = place.run(&["of", "out", "--possible"]).out;
    assert!(of.contains("data"), "{of}");
    assert!(filtered(&place, "s (abstract)").contains("process"));
}

#[test]
fn a_sample_keeps_the_same_share_in_every_run() {
    let line = "for n in 0 1 2 3 4 5 6 7 8 9; do echo $n > part$n; done; cat part* > out";
    let parts = |place: &Place| {
        let files = place.run(&["files", "--all", "--json"]).out;
        (0..10)
            .filter(|n| files.contains(&format!("/part{n}\"")))
            .collect::<Vec<i32>>()
    };
    let filter =
        |keep: &str| format!("[[filter]]\naction = 'sample'\npath = 'part*'\nkeep = {keep}\n");
    let place = configured(&filter("0.5"));
    indexed(&place, line);
    let first = parts(&place);
    assert!(!first.is_empty() && first.len() < 10, "{first:?}");
    let taken = filtered(&place, "sample");
    assert!(
        taken.ends_with(" files") || taken.ends_with("1 file"),
        "{taken}"
    );
    assert_eq!(place.run(&["store", "rebuild"]).status, 0);
    assert_eq!(parts(&place), first);
    for (keep, expected) in [("0", 0), ("1.0", 10)] {
        configure(&place, &filter(keep));
        assert_eq!(place.run(&["store", "rebuild"]).status, 0);
        assert_eq!(parts(&place).len(), expected, "{keep}");
    }
}

#[test]
fn of_repetitions_the_first_stays() {
    let place = configured(
        "[[filter]]\nname = 'd'\naction = 'deduplicate'\npath = 'part*'\ntext = '[0-9]+$'\nto = 'N'\n",
    );
    indexed(
        &place,
        "for n in 3 4 5; do echo $n > part$n; done; cat part* > out",
    );
    let files = place.run(&["files", "--all", "--json"]).out;
    assert!(
        files.contains("/part3\"") && !files.contains("/part4\""),
        "{files}"
    );
    assert!(filtered(&place, "d (deduplicate)").ends_with("2 files"));
}

#[test]
fn a_filter_sees_the_names_that_the_filter_before_it_gave() {
    let rename = "[[filter]]\nname = 'r'\naction = 'rename'\ntext = 'middle'\nto = 'centre'\n";
    let drop = "[[filter]]\nname = 'd'\naction = 'drop'\npath = 'centre'\n";
    let place = configured(&format!("{rename}{drop}"));
    indexed(&place, LINE);
    assert!(filtered(&place, "d (drop)").ends_with("1 file"));
    configure(&place, &format!("{drop}{rename}"));
    assert_eq!(place.run(&["store", "rebuild"]).status, 0);
    assert!(filtered(&place, "d (drop)").ends_with("nothing"));
}

#[test]
fn an_unknown_key_names_its_line_and_the_other_filters_count() {
    let place = configured(
        "[[filter]]\nname = 'a'\naction = 'drop'\npth = 'out'\n\n[[filter]]\nname = 'b'\naction = 'drop'\npath = 'middle'\n",
    );
    let (_, answer) = indexed(&place, LINE);
    let _ = answer;
    let shown = place.run(&["pipeline", "show"]);
    assert_eq!(shown.status, 1);
    assert!(
        shown.err.contains("config.toml:4:1: unknown key pth"),
        "{shown:?}"
    );
    assert!(place.run(&["files", "--all"]).out.contains("out"));
    assert!(filtered(&place, "b (drop)").ends_with("1 file"));
    let show = place.run(&["show"]).out;
    assert!(
        show.contains("warning") && show.contains("filter a"),
        "{show}"
    );
}

#[test]
fn a_filter_that_redacts_and_has_a_mistake_redacts_everything() {
    for text in [
        "[[filter]]\naction = 'redact'\ntext = 'customer-[0-9'\n",
        "[[filter]]\naction = 'redact'\ntekst = 'customer-[0-9]+'\n",
        "[[filter]]\naction = 'redact'\ntext = 'customer-[0-9]+\n",
    ] {
        let place = configured(text);
        indexed(&place, "cp data customer-77; cat customer-77 > out");
        let all = everything(&place);
        assert!(!all.contains("customer-77"), "{text}: {all}");
        let show = place.run(&["show"]).out;
        assert!(
            show.contains("warning") && show.contains("store rebuild"),
            "{show}"
        );
    }
}

#[test]
fn a_test_of_the_filters_prints_counts_first_and_changes_nothing() {
    let place = configured("");
    indexed(&place, LINE);
    let before = everything(&place);
    configure(
        &place,
        "[[filter]]\nname = 'm'\naction = 'drop'\npath = 'middle'\n",
    );
    let test = place.run(&["pipeline", "test"]);
    assert_eq!(test.status, 0, "{test:?}");
    assert!(
        test.out.contains("  1 m ") && test.out.contains("1 file"),
        "{test:?}"
    );
    assert!(
        test.out.ends_with("/middle\n") || test.out.ends_with("middle\n"),
        "{test:?}"
    );
    assert_eq!(everything(&place), before);
    let json = place.json(&["pipeline", "test", "--last", "3", "--json"]);
    assert_eq!(json[0]["report"]["filters"][0]["files"], 1, "{json}");
}

#[test]
fn add_and_remove_leave_the_rest_of_the_file_as_it_was() {
    let text = "# mine\n[shell]\nnoise = [\"ls\"]  # often\n";
    let place = configured(text);
    let file = || {
        fs::read_to_string(
            place
                .stage
                .path()
                .join("home/.config/backstory/config.toml"),
        )
        .unwrap()
    };
    let add = |args: &[&str]| place.run(&[&["pipeline", "add"], args].concat());
    assert_eq!(add(&["drop", "--path", "*.tmp", "--name", "tmp"]).status, 0);
    assert_eq!(
        add(&["redact", "--text", "it's", "--name", "quote"]).status,
        0
    );
    assert!(
        file().starts_with(text) && file().contains("\"it's\""),
        "{}",
        file()
    );
    let with_both = file();
    add(&["drop", "--path", "x", "--name", "tmp"]).is_error(2, &["tmp already"]);
    add(&["sample", "--path", "x"]).is_error(2, &["nothing is added", "keep"]);
    add(&["drop"]).is_error(2, &["needs a condition"]);
    assert_eq!(file(), with_both);
    assert_eq!(place.run(&["pipeline", "remove", "tmp"]).status, 0);
    assert!(
        !file().contains("tmp") && file().contains("quote"),
        "{}",
        file()
    );
    assert_eq!(place.run(&["pipeline", "remove", "quote"]).status, 0);
    assert_eq!(file().trim_end(), text.trim_end());
    place
        .run(&["pipeline", "remove", "quote"])
        .is_error(1, &["pipeline show"]);
}

#[test]
fn a_store_that_is_away_gets_its_runs_when_it_is_back() {
    let place = Place::new();
    let other = place.path("group");
    configure(
        &place,
        &format!("[[store]]\nname = 'group'\ndirectory = '{other}'\n"),
    );
    let (first, answer) = indexed(&place, "sort data > out");
    assert!(
        answer.err.contains("group") && answer.err.contains("does not exist"),
        "{answer:?}"
    );
    let shown = place.run(&["pipeline", "show"]).out;
    assert!(shown.contains("1 run to deliver"), "{shown}");
    place.write("x", "");
    fs::create_dir(&other).unwrap();
    place.stage.user().owns(other.as_ref()).unwrap();
    let (second, answer) = indexed(&place, "uniq out > out2");
    assert_eq!(answer.err, "");
    let there = place.json(&["--store", &other, "log", "--json"]);
    let there: Vec<&str> = there
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["run"].as_str().unwrap())
        .collect();
    assert_eq!(there, [second.as_str(), &first]);
    assert!(
        place
            .run(&["--store", &other, "of", "out2"])
            .out
            .contains("data")
    );
    let shown = place.run(&["pipeline", "show"]).out;
    assert!(shown.contains("all runs delivered"), "{shown}");
    // A run that the other store removed stays away.
    assert_eq!(place.run(&["--store", &other, "rm", &first]).status, 0);
    indexed(&place, "true");
    let there = place.json(&["--store", &other, "log", "--json"]);
    assert_eq!(there.as_array().unwrap().len(), 2, "{there}");
}

#[test]
fn the_configuration_in_a_store_starts_no_program_and_delivers_nowhere() {
    let place = configured("");
    assert_eq!(place.run(&["index"]).status, 0);
    let (mark, group) = (place.path("mark"), place.path("group"));
    fs::create_dir(&group).unwrap();
    place.stage.user().owns(group.as_ref()).unwrap();
    let text = format!(
        "[[filter]]\naction = 'plugin'\ncommand = ['/usr/bin/touch', '{mark}']\n\n[[store]]\ndirectory = '{group}'\n\n[[filter]]\nname = 'm'\naction = 'drop'\npath = 'middle'\n"
    );
    let path = place.stage.store().join("config.toml");
    fs::write(&path, text).unwrap();
    place.stage.user().owns(&path).unwrap();
    indexed(&place, LINE);
    assert!(fs::metadata(&mark).is_err());
    assert_eq!(fs::read_dir(&group).unwrap().count(), 0);
    assert!(filtered(&place, "m (drop)").ends_with("1 file"));
    let shown = place.run(&["pipeline", "show"]);
    assert!(
        shown.err.contains("config.toml:2:10: a plug-in stands in"),
        "{shown:?}"
    );
    assert!(shown.err.contains("further stores stand in"), "{shown:?}");
    let add = ["pipeline", "add", "plugin", "--in-store", "--", "/bin/cat"];
    place.run(&add).is_error(2, &["nothing is added"]);
}
