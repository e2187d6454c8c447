//! What is generated from the definition of the command line: help, man pages, completions.

use super::Place;

#[test]
fn every_command_explains_itself_with_examples() {
    let place = Place::new();
    for command in [
        "record",
        "files",
        "processes",
        "show",
        "log",
        "of",
        "uses",
        "status",
        "rm",
        "note",
        "name",
        "index",
    ] {
        let help = place.run(&[command, "--help"]);
        assert_eq!((help.status, help.err.as_str()), (0, ""), "{command}");
        assert!(
            help.out.contains("Examples:") && help.out.contains(&format!("backstory {command}")),
            "{}",
            help.out
        );
    }
    assert!(place.run(&["--version"]).out.starts_with("backstory "));
}

#[test]
fn misuse_is_2_and_points_to_the_help() {
    let place = Place::new();
    place.run(&["of"]).is_error(2, &["PATH", "backstory of --help"]);
    place.run(&["of", "x", "--json", "--dot"]).is_error(2, &["--dot"]);
    place
        .run(&["no-such-command"])
        .is_error(2, &["no-such-command", "--help"]);
    let bare = place.run(&[""; 0]);
    assert!(
        bare.status == 2 && bare.out.is_empty() && bare.err.contains("Examples:"),
        "{bare:?}"
    );
    place.run(&["files", "--exclude", "a{b"]).is_error(2, &["a{b"]);
}

#[test]
fn there_is_a_man_page_for_each_command() {
    let place = Place::new();
    assert_eq!(place.run(&["man", "pages"]).status, 0);
    for name in ["backstory", "backstory-record", "backstory-of", "backstory-uses"] {
        let page = std::fs::read_to_string(place.work().join(format!("pages/{name}.1"))).unwrap();
        assert!(page.contains(".TH") && page.contains("Examples:"), "{page}");
    }
    assert!(
        !place.work().join("pages/backstory-index.1").exists(),
        "a hidden command"
    );
}

#[test]
fn help_is_a_command_and_a_misspelt_one_is_recognised() {
    let place = Place::new();
    for (asked, option) in [
        (vec!["help"], vec!["--help"]),
        (vec!["help", "of"], vec!["of", "--help"]),
    ] {
        let (asked, option) = (place.run(&asked), place.run(&option));
        assert_eq!((asked.status, asked.out.as_str()), (0, option.out.as_str()));
    }
    place
        .run(&["recrod", "--", "true"])
        .is_error(2, &["recrod", "did you mean record?", "`backstory --help`"]);
    place
        .run(&["record", "--gaurd=off", "--", "true"])
        .is_error(125, &["--gaurd", "did you mean --guard?"]);
}

#[test]
fn the_bash_completions_are_bash() {
    let place = Place::new();
    let script = place.run(&["completions", "bash"]);
    assert_eq!(script.status, 0);
    if !backstory_testkit::need::needs("completions", &["bash"]) {
        return;
    }
    place.write("c.sh", &script.out);
    assert!(
        place
            .stage
            .command("bash")
            .arg("-n")
            .arg(place.path("c.sh"))
            .status()
            .unwrap()
            .success()
    );
}
