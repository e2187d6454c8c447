//! `of` and `uses` at the level of steps.

mod network;

use crate::Place;

/// Copies 40 files, joins the copies and counts their lines, with a look-up that is of no use.
fn recorded() -> Place {
    let place = Place::new();
    for n in 1..=40 {
        place.write(format!("in{n}.txt"), &format!("line {n}\n"));
    }
    place.write(
        "run.sh",
        "mkdir out
         cat /etc/hostname > unused
         for f in in*.txt; do sort $f -o out/$f; done
         cat out/*.txt | sort -n > all
         wc -l < all > count\n",
    );
    place.record("sh run.sh");
    place
}

#[test]
fn of_leads_to_the_sources_on_one_screen() {
    let place = recorded();
    let answer = place.run(&["of", "count"]).out;
    assert!(answer.lines().count() < 20, "{answer}");
    for part in [
        "count: made ",
        " by run ",
        ", complete",
        "wc -l < all > count",
        "| sort -n > all",
        "40 × sort in*.txt -o out/in*.txt",
        "sources: in*.txt (40)",
        "started by sh (run.sh)",
        "packages: ",
    ] {
        assert!(answer.contains(part), "{part}: {answer}");
    }
    let at = |part: &str| answer.find(part).unwrap();
    assert!(
        at("wc -l") < at("sort -n") && at("sort -n") < at("40 ×"),
        "{answer}"
    );
    assert!(
        !answer.contains("/usr/lib") && !answer.contains("hostname"),
        "{answer}"
    );
}

#[test]
fn the_inputs_of_a_file_are_those_that_no_recorded_step_made() {
    let place = recorded();
    let answer = place.run(&["of", "count", "--inputs"]).out;
    let own: Vec<&str> = answer
        .lines()
        .filter(|line| !line.starts_with(['(', ' ']))
        .collect();
    // The script matches a pattern in its directory.
    assert_eq!(own.len(), 42, "{answer}");
    assert!(own.contains(&".  (decided, sh run.sh)"), "{answer}");
    assert!(
        own.contains(&"in7.txt") && own.contains(&"run.sh"),
        "{answer}"
    );
    let files = place.run(&["of", "count", "--inputs", "--files"]).out;
    assert!(files.contains("/libc.so.6"), "{files}");
    assert!(
        !place
            .run(&["of", "count", "--packages"])
            .out
            .contains("in7")
    );
}

#[test]
fn why_shows_the_shortest_way_from_an_input() {
    let place = recorded();
    let answer = place.run(&["of", "count", "--why", "in7.txt"]).out;
    let lines: Vec<&str> = answer.lines().map(str::trim).collect();
    assert_eq!(lines[0], "count");
    assert_eq!(lines[1..3], ["made by wc -l < all > count", "from all"]);
    assert_eq!(lines.last(), Some(&"from in7.txt"), "{answer}");
    let rules = place.run(&["of", "count", "--why", "run.sh"]).out;
    assert!(rules.contains("started by sh run.sh"), "{rules}");
    place
        .run(&["of", "count", "--why", "unused"])
        .is_error(1, &["unused is no input of count"]);
}

#[test]
fn the_commands_are_a_script_in_order_of_time() {
    let place = recorded();
    let answer = place.run(&["of", "count", "--commands"]).out;
    let lines: Vec<&str> = answer.lines().collect();
    assert!(lines[0].starts_with("# run "), "{answer}");
    assert_eq!(lines.len(), 1 + 40 + 2, "{answer}");
    assert!(lines[1].starts_with("sort in"), "{answer}");
    assert_eq!(lines[42], "wc -l < all > count");
}

#[test]
fn an_answer_can_be_narrowed() {
    let place = recorded();
    let near = place.run(&["of", "count", "--depth", "1"]).out;
    assert!(
        near.contains("wc -l") && !near.contains("sort -n"),
        "{near}"
    );
    let through = place.run(&["of", "count", "--through", "in7.txt"]).out;
    assert!(
        through.contains("  sort in7.txt -o out/in7.txt") && through.contains("wc -l"),
        "{through}"
    );
    let only = place.run(&["of", "count", "--only", "out/*"]).out;
    assert!(only.contains("40 ×") && !only.contains("wc -l"), "{only}");
}

#[test]
fn the_steps_are_available_as_json() {
    let place = recorded();
    let json = place.json(&["of", "count", "--level", "step", "--json"]);
    let steps = json["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 42, "{json}");
    assert_eq!(steps[0]["command"], "wc -l < all > count");
    let path = |index: &serde_json::Value| {
        json["files"][index.as_u64().unwrap() as usize]["path"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(path(&steps[0]["outputs"][0]), place.path("count"));
    assert_eq!(path(&json["roots"][0]), place.path("count"));
    assert!(!json["packages"].as_array().unwrap().is_empty(), "{json}");
    let graph = place.json(&["of", "count", "--json"]);
    assert!(graph["nodes"].is_array() && graph["links"].is_array());
}

#[test]
fn uses_shows_the_steps_to_the_results() {
    let place = recorded();
    let answer = place.run(&["uses", "in7.txt"]).out;
    let at = |part: &str| {
        answer
            .find(part)
            .unwrap_or_else(|| panic!("{part}: {answer}"))
    };
    assert!(at("sort in7.txt") < at("sort -n > all") && at("sort -n > all") < at("wc -l"));
    assert!(
        !answer.contains("in8.txt -o") && !answer.contains("sh run.sh"),
        "{answer}"
    );
    let rules = place.run(&["uses", "run.sh"]).out;
    assert!(rules.contains("40 × sort"), "{rules}");
}

#[test]
fn the_former_answers_are_at_the_level_of_processes() {
    let place = recorded();
    let tree = place.run(&["of", "count", "--tree"]).out;
    assert!(tree.contains("└─ written by wc"), "{tree}");
    assert_eq!(place.run(&["of", "count", "--level", "process"]).out, tree);
    let all = place.run(&["of", "count", "--all"]).out;
    assert_eq!(place.run(&["of", "count", "--level", "all"]).out, all);
}

/// Scripts of one interpreter are different programs, and a step that uses what another made is not
/// its sibling.
#[test]
fn steps_of_a_chain_are_not_joined() {
    let place = Place::new();
    place.write("first.pl", "print sort <>;\n");
    place.write("second.pl", "print reverse <>;\n");
    place.write("in1", "b\na\n");
    place.write(
        "run.sh",
        "perl first.pl in1 > in2\nperl second.pl in2 > in3\nsort in3 -o in4\nsort in4 -o in5\n",
    );
    place.record("sh run.sh");
    let answer = place.run(&["of", "in5"]).out;
    for part in [
        "perl first.pl in1 > in2",
        "perl second.pl in2 > in3",
        "sort in3 -o in4",
        "sort in4 -o in5",
    ] {
        assert!(answer.contains(part), "{part}: {answer}");
    }
}

/// No reader of `/dev/null` gets what another program wrote there.
#[test]
fn no_data_flows_through_a_device_without_a_memory() {
    let place = Place::new();
    place.write("secret", "s\n");
    place.record("cat secret > /dev/null; cp /dev/null out");
    for form in [&["--level", "process"][..], &["--json"], &["--all"]] {
        let of = place.run(&[&["of", "out"][..], form].concat()).out;
        assert!(
            of.contains("/dev/null") || form == ["--level", "process"],
            "{of}"
        );
        assert!(!of.contains("secret\""), "{of}");
        assert!(
            !of.contains("/work/secret") && !of.contains("read by"),
            "{of}"
        );
    }
    let uses = place.run(&["uses", "secret", "--json"]).out;
    assert!(!uses.contains("/work/out\""), "{uses}");
    let exported = place.run(&["export", "dot", "out"]).out;
    assert!(!exported.contains("secret"), "{exported}");
}

#[test]
fn of_names_the_commit_of_its_sources_and_the_changed_files() {
    if !backstory_testkit::need::needs("git", &["git"]) {
        return;
    }
    let place = Place::new();
    place.git(&["init", "-q", "-b", "main"]);
    place.write("a", "text");
    place.write("b", "text");
    place.git(&["add", "a", "b"]);
    place.git(&["commit", "-qm", "first"]);
    let commit = place.git(&["rev-parse", "HEAD"]);
    place.write("b", "changed");
    place.record("cat a b > out");
    place.run(&["index", "--wait"]);
    let text = place.run(&["of", "out"]).out;
    let line = format!("git: main @ {}, changed: b", &commit[..10]);
    assert!(text.lines().any(|one| one == line), "{line}: {text}");
    let json = place.json(&["of", "out", "--level", "step", "--json"]);
    assert_eq!(json["git"][0]["commit"], commit.as_str(), "{json}");
    assert_eq!(json["git"][0]["changed"], serde_json::json!(["b"]));
}

/// The step that made a file also made it under the name that it got with its directory. A file in
/// a directory of temporary files that is gone was not the user's own.
#[test]
fn what_a_run_made_and_moved_or_removed_is_no_source() {
    let place = Place::new();
    place.write("in", "b\na\n");
    place.write(
        "run.sh",
        "mkdir t && sort in -o t/x && mv t u && cat u/x > out && rm -r u\n\
         d=$(mktemp -d /tmp/arXXXXXXXX)\n\
         bash -c \"exec 3<> $d/requests; cat <&3 >> out; echo end >&3\"\n\
         rm -r $d\n",
    );
    place.record("sh run.sh");
    let inputs = place.run(&["of", "out", "--inputs"]).out;
    let own: Vec<&str> = inputs
        .lines()
        .take_while(|line| !line.starts_with('('))
        .collect();
    assert_eq!(own, ["in", "run.sh"], "{inputs}");
    let of = place.run(&["of", "out"]).out;
    assert!(of.contains("sort in -o t/x"), "{of}");
}

/// A program opened the file for another one, which was not seen to write to it. The run made the
/// file all the same.
#[test]
fn a_file_that_a_run_made_without_a_seen_writer_is_no_source() {
    if !backstory_testkit::need::needs("a compiler cache", &["ccache", "gcc"]) {
        return;
    }
    let place = Place::new();
    place.write("m.c", "int main(void) { return 0; }\n");
    let compile = |object: &str| format!("CCACHE_DIR=$PWD/cc ccache gcc -c m.c -o {object}");
    place.record(&compile("a.o"));
    place.record(&compile("b.o"));
    for object in ["a.o", "b.o"] {
        let of = place.run(&["of", object]).out;
        assert!(of.contains("gcc -c m.c -o a.o"), "{of}");
        let inputs = place.run(&["of", object, "--inputs"]).out;
        let own: Vec<&str> = inputs
            .lines()
            .take_while(|line| !line.starts_with('('))
            .collect();
        assert_eq!(own, ["m.c"], "{object}: {inputs}");
    }
}

/// The second program had the pipe, too, and was not seen to write to it.
#[test]
fn of_counts_the_links_that_are_only_possible_and_names_the_option() {
    let place = Place::new();
    place.write("in", "a\n");
    place.record("(cat in; true) | sort > out");
    let possible = |options: &[&str]| {
        let of = place.json(&[&["of", "out", "--json"], options].concat());
        let links = of["links"].as_array().unwrap().iter();
        links.filter(|link| link["certainty"] == "possible").count()
    };
    let of = place.json(&["of", "out", "--json", "--level", "step"]);
    let text = place.run(&["of", "out"]).out;
    let said = "1 link is only possible and not followed (--possible follows it)";
    assert!(text.contains(said), "{text}");
    assert_eq!(of["uncounted"], 1, "{of}");
    assert!(of["uncounted"].as_u64().unwrap() as usize <= possible(&[]));
    assert_eq!(possible(&["--no-possible"]), 0);
    let followed = place.run(&["of", "out", "--possible"]).out;
    assert!(!followed.contains("not followed"), "{followed}");
}

/// The answer does not follow a possible link, and yet depends on the commands behind it. The only
/// reader of the logs made a file, and the second run's shell may have read that file.
#[test]
fn steps_are_joined_by_files_whose_reader_lies_behind_a_possible_link() {
    let place = Place::new();
    place.write("in", "a\n");
    place.record("tee x1 log1 < in; tee x2 log2 < in; cat log1 log2 > count; true");
    // The times of an older file tell that the shell did not write to it.
    place.age("count");
    place.record("exec 3<> count; cat x1 x2 > out; true");
    let of = place.run(&["of", "out"]).out;
    assert!(of.contains("only possible and not followed"), "{of}");
    assert!(of.contains("2 × tee"), "{of}");
    let observed = place.run(&["of", "out", "--no-possible"]).out;
    assert!(observed.contains("tee x1 log1"), "{observed}");
    assert!(!observed.contains("2 × tee"), "{observed}");
}

#[test]
fn a_command_that_makes_a_file_of_nothing_is_a_step() {
    let place = Place::new();
    place.record("seq 9 > numbers; sort -r numbers > out");
    let answer = place.run(&["of", "out"]).out;
    for part in ["  sort -r numbers > out\n", "  seq 9 > numbers\n"] {
        assert!(answer.contains(part), "{part}: {answer}");
    }
    assert!(!answer.contains("none of your own files"), "{answer}");
}

#[test]
fn a_command_that_makes_a_file_of_a_builder_of_nothing_is_counted() {
    let place = Place::new();
    place.record("mkdir -p CMakeFiles; seq 9 > CMakeFiles/trial; sort CMakeFiles/trial > out");
    let answer = place.run(&["of", "out"]).out;
    assert!(
        answer.contains("  sort CMakeFiles/trial > out\n"),
        "{answer}"
    );
    assert!(
        answer.contains("1 command that used none of your own files: seq"),
        "{answer}"
    );
}
