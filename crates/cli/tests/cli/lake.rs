//! `store ship` and `query --lake` become the program `backstory-lake`.

use super::Place;

/// The words with which a command starts the program, and the program that it may ask.
fn words(place: &Place, command: &[&str]) -> Vec<String> {
    let directory = place.path("bin");
    std::fs::create_dir_all(&directory).unwrap();
    let program = format!("{directory}/backstory-lake");
    let text = "#!/bin/sh\nprintf '%s\\n' \"$BACKSTORY_PROGRAM\" \"$@\"\nexit 7\n";
    backstory_testkit::program::write(program.as_ref(), text.as_bytes()).unwrap();
    let output = place.command(command).env("PATH", directory).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn ship_and_query_give_the_lake_program_their_options() {
    let place = Place::new();
    let store = place.stage.store().to_str().unwrap().to_owned();
    let shipped = [
        "store", "ship", "--to", "x y", "--forget", "--json", "7hx2k9qa",
    ];
    let found = words(&place, &shipped);
    let own = place.stage.path().join("bin/backstory");
    assert_eq!(found[0], own.to_str().unwrap());
    let expected = [
        "ship", "--store", &store, "--to", "x y", "--forget", "--json", "--",
    ];
    assert_eq!(found[1..9], expected);
    assert_eq!(found[9..], ["7hx2k9qa"]);
    let found = words(&place, &["query", "--lake", "l", "--csv", "SELECT 1"]);
    let expected = ["query", "--lake", "l", "--csv"];
    assert_eq!(found[1..5], expected);
    let limits = ["--timeout", "60", "--memory", "512", "--", "SELECT 1"];
    assert_eq!(found[5..], limits);
}

#[test]
fn without_the_lake_program_the_message_says_what_to_install() {
    let place = Place::new();
    for command in [
        &["store", "ship", "--to", "l"][..],
        &["query", "--lake", "l", "SELECT 1"],
        &["hunt", "--lake", "l"],
    ] {
        let output = place.command(command).env("PATH", "/nowhere").output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(1));
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.contains("pip install backstory-lake"), "{message}");
        assert_eq!(message.lines().count(), 1);
    }
}

/// A run of a lake, as the package writes it: a process that writes to a start-up file.
const LINES: &str = "n,7,1,2\nr,72756e31,6162,6d31,1,1\np,0,,7,2f62696e2f7368,7368,2f,1,2,0\n\
    f,4,2f682f2e626173687263,file,1,,,0\ne,0,4,write,seen,1,1\n.\n";

/// A place with a program `backstory-lake` that keeps its words and its request, and answers so.
fn with_lake_program(lines: &str) -> Place {
    let place = Place::new();
    let directory = place.path("bin");
    std::fs::create_dir_all(&directory).unwrap();
    let program = format!("{directory}/backstory-lake");
    place.write("lines", lines);
    let [request, words, lines] = ["request", "words", "lines"].map(|name| place.path(name));
    let keep = format!("printf '%s\\n' \"$@\" > {words}\ncat > {request}");
    let text = format!("#!/bin/sh\n{keep}\ncat {lines}\n");
    backstory_testkit::program::write(program.as_ref(), text.as_bytes()).unwrap();
    place
}

fn asked(place: &Place, arguments: &[&str]) -> super::Answer {
    let path = format!("{}:/usr/bin:/bin", place.path("bin"));
    let mut command = place.command(arguments);
    super::Answer::of(command.env("PATH", path).output().unwrap())
}

/// The answer of `hunt --lake` if the package answers so.
fn hunted(lines: &str, arguments: &[&str]) -> super::Answer {
    let place = with_lake_program(lines);
    asked(&place, &[&["hunt", "--lake", "l"], arguments].concat())
}

#[test]
fn each_question_to_a_lake_gives_the_lake_program_its_bounds() {
    let place = with_lake_program(&format!("{LINES}end\n"));
    for question in [
        &["query", "SELECT 1"][..],
        &["hunt"],
        &["timeline", "run1"],
        &["origin", "/f"],
        &["exfil", "/f"],
        &["touched", "/f"],
    ] {
        for (options, seconds, megabytes) in [
            (&[][..], "60", "512"),
            (&["--timeout", "7", "--memory", "900"][..], "7", "900"),
        ] {
            let answer = asked(&place, &[question, &["--lake", "l"], options].concat());
            let kept = std::fs::read_to_string(place.path("words")).unwrap();
            let expected = format!("--timeout\n{seconds}\n--memory\n{megabytes}\n");
            assert!(kept.contains(&expected), "{question:?} {kept} {answer:?}");
            std::fs::remove_file(place.path("words")).unwrap();
        }
    }
}

#[test]
fn a_finding_in_a_lake_names_the_host_and_a_command_that_goes_on() {
    let found = hunted(&format!("{LINES}end\n"), &[]);
    assert_eq!(found.status, 0, "{found:?}");
    assert!(
        found.out.contains(", run run1 of ab (machine m1)\n"),
        "{found:?}"
    );
    assert!(
        found
            .out
            .contains("backstory timeline /h/.bashrc --lake l\n"),
        "{found:?}"
    );
    assert!(!found.out.contains("backstory serve"), "{found:?}");
    let older = "backstory: 2 runs were shipped by an older backstory-lake, without further names";
    assert!(found.err.starts_with(older), "{found:?}");
    let found = hunted(&format!("{LINES}end\n"), &["--most", "0"]);
    assert_eq!(
        (found.status, found.out.as_str()),
        (2, "not decided: nothing found in what was looked at\n")
    );
    assert!(found.err.contains("run run1 is left out"), "{found:?}");
}

#[test]
fn a_rule_about_contents_leaves_a_hunt_in_a_lake_undecided() {
    let place = with_lake_program(&format!("{LINES}end\n"));
    place.write(
        "rule.yml",
        "title: t\nid: two-rows\ndetection: {of: {ContentFact: rows=2}, condition: of}\n",
    );
    let question = ["hunt", "--lake", "l", "--rules", "rule.yml", "--rule"];
    let answer = asked(&place, &[&question[..], &["two-rows"]].concat());
    assert_eq!(answer.status, 2, "{answer:?}");
    let message = "rule two-rows asks inspectors about contents";
    assert!(answer.err.contains(message), "{answer:?}");
}

#[test]
fn a_timeline_of_a_lake_takes_a_run_that_is_called_like_a_file_here() {
    let place = with_lake_program(&format!("{LINES}end\n"));
    place.write("nightly", "a file\n");
    let runs = |subject: &str| {
        let answer = asked(&place, &["timeline", subject, "--lake", "l"]);
        let request = std::fs::read(place.path("request")).unwrap();
        let request: serde_json::Value = serde_json::from_slice(&request).unwrap();
        (request["runs"].clone(), answer)
    };
    let (named, answer) = runs("nightly");
    assert_eq!(named, serde_json::json!(["nightly"]));
    assert!(answer.out.contains("/h/.bashrc"), "{answer:?}");
    let (named, answer) = runs("./nightly");
    assert_eq!(named, serde_json::json!([]));
    assert_eq!(answer.out, "no events\n", "{answer:?}");
}

#[test]
fn a_timeline_says_which_runs_have_more_edges_than_it_reads() {
    let place = with_lake_program(&format!("{LINES}end\n"));
    let run = place.record("echo x > a");
    for arguments in [&[&*run][..], &["run1", "--lake", "l"]] {
        let words = [&["timeline", "--most", "0"], arguments].concat();
        let left = format!("run {} is left out: it has more than 0 edges", arguments[0]);
        let answer = asked(&place, &words);
        assert_eq!((answer.status, answer.out.as_str()), (1, "no events\n"));
        assert!(answer.err.contains(&left), "{answer:?}");
    }
}

#[test]
fn an_answer_of_the_lake_program_that_is_cut_or_damaged_is_no_finding() {
    let cut = format!("{LINES}end");
    let damaged = format!("{LINES}end\n").replace("write,seen", "eat,seen");
    for (lines, message) in [
        (LINES, "ended before its answer did"),
        (&cut, "ended before its answer did"),
        (&damaged, "a line that is none of a graph"),
    ] {
        let found = hunted(lines, &["--json"]);
        assert_eq!((found.status, found.out.as_str()), (1, ""), "{lines}");
        assert!(found.err.contains(message), "{found:?}");
    }
}

#[test]
fn forget_says_how_shipped_runs_leave_a_lake() {
    let place = Place::new();
    place.record("echo secret > diary");
    place.record("echo secret > plans");
    let forget = |name: &str| {
        let answer = place.run(&["forget", &place.path(name), "--yes"]);
        assert_eq!(answer.status, 0, "{answer:?}");
        answer.err
    };
    assert!(!forget("diary").contains("lakes"));
    std::fs::create_dir(place.stage.store().join("lakes")).unwrap();
    assert!(forget("plans").contains("store ship --forget --to LAKE"));
}
