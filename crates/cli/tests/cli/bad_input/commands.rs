//! Odd commands and odd names.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use backstory_testkit::need;

use super::{Answer, Place};

/// Debian's own Python: an ordinary user may not be able to run the first one on root's path.
const PYTHON: &str = "/usr/bin/python3";

#[test]
fn the_reason_why_a_command_cannot_run_is_worded_as_by_a_shell() {
    let place = Place::new();
    place.write("data", "text");
    place.write("script", "#!/no/such/interpreter\n");
    let made_executable = place.shell("chmod +x script; mkdir dir");
    assert_eq!(made_executable.status, 0);
    for (command, status, why) in [
        ("no-such-command", 127, "no such command in PATH"),
        ("./no-such-command", 127, "No such file"),
        ("", 127, "empty"),
        ("./script", 127, "interpreter"),
        ("./data", 126, "may not be executed"),
        ("./dir", 126, "directory"),
        ("./data/x", 126, "Not a directory"),
    ] {
        place
            .run(&["record", "--", command])
            .is_error(status, &[why]);
        let json = place.json(&["show", "--json"]);
        assert_eq!(
            (&json["exit"], &json["command"][0]),
            (&status.into(), &command.into())
        );
    }
}

#[test]
fn a_file_without_an_interpreter_line_runs_as_in_a_shell() {
    let place = Place::new();
    place.write("plain", "echo $1 >out; exit 4\n");
    assert_eq!(place.shell("chmod +x plain").status, 0);
    let answer = place.run(&["record", "--", "./plain", "said"]);
    assert_eq!((answer.status, answer.err.as_str()), (4, ""), "{answer:?}");
    assert!(place.wrote("out"));
}

#[test]
fn a_command_that_does_no_io_is_a_complete_run() {
    let place = Place::new();
    for guard in ["on", "off", "strict"] {
        let answer = place.run(&["record", "--guard", guard, "--", "true"]);
        assert_eq!((answer.status, answer.err.as_str()), (0, ""), "{answer:?}");
        assert_eq!(place.json(&["show", "--json"])["complete"], true);
        assert_eq!(place.json(&["processes", "--json"])[0]["argv"][0], "true");
    }
}

/// A path of exactly `length` bytes below `work`, with its directories made.
fn long_path(place: &Place, length: usize) -> PathBuf {
    let mut path = place.work();
    loop {
        let left = length - path.as_os_str().len() - 1;
        let (name, last) = match left {
            0..=255 => (left, true),
            256..=456 => (200, false),
            _ => (255, false),
        };
        path.push("n".repeat(name));
        if last {
            break;
        }
    }
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    place.stage.user().owns(&place.work()).unwrap();
    assert_eq!(path.as_os_str().len(), length);
    path
}

#[test]
fn names_may_be_any_bytes_and_as_long_as_the_kernel_takes_them() {
    let place = Place::new();
    place.write("in", "text");
    let names: [PathBuf; 5] = [
        place.work().join("two\nlines"),
        place
            .work()
            .join(OsString::from_vec(b"not \xff\xfe utf-8".to_vec())),
        place.work().join("-rf '\"$(exit)\\ \t*"),
        place.work().join("\x1b[31mred\x7f"),
        long_path(&place, 4095),
    ];
    for name in &names {
        let recorded = Answer::of(
            place
                .command(&["record", "--", "cp", "in"])
                .arg(name)
                .output()
                .unwrap(),
        );
        assert_eq!(
            (recorded.status, recorded.err.as_str()),
            (0, ""),
            "{name:?}"
        );
        let of = Answer::of(place.command(&["of", "--tree"]).arg(name).output().unwrap());
        assert!(
            of.status == 0 && of.out.contains("written by cp in "),
            "{name:?}: {of:?}"
        );
        // The output contains no command to the terminal, and each record is one line.
        assert!(!of.out.contains(['\x1b', '\x7f']), "{of:?}");
        assert!(
            of.out.lines().all(|line| !line.starts_with("lines")),
            "{of:?}"
        );
        let json = Answer::of(place.command(&["of", "--json"]).arg(name).output().unwrap());
        assert!(json.out.contains("\"roots\": 1"), "{json:?}");
        assert!(
            place
                .run(&["show", "--json"])
                .out
                .contains("\"complete\": true"),
            "{name:?}"
        );
        let length = name.as_os_str().as_bytes().len();
        let files = place.run(&["files", "--json"]).out;
        assert!(
            length < 4000 || files.contains(name.to_str().unwrap()),
            "{length}"
        );
    }
}

#[test]
fn a_path_too_long_for_the_kernel_fails_as_without_recording() {
    let place = Place::new();
    if !need::needs("long paths", &[PYTHON]) {
        return;
    }
    // A directory deeper than any path, and a path longer than any file has.
    place.write(
        "deep.py",
        "import os, sys\nfor _ in range(20): os.mkdir('n' * 250); os.chdir('n' * 250)\nopen('deep', 'w').write('x')\n\
         print(open('deep').read())\ntry: open('p' * 5000)\nexcept OSError as e: sys.exit(e.errno)\n",
    );
    let line = "exec /usr/bin/python3 deep.py";
    let native = place.shell(line);
    assert_eq!(
        (native.status, native.out.as_str()),
        (36, "x\n"),
        "{native:?}"
    );
    assert_eq!(place.shell("rm -rf n*").status, 0);
    let recorded = place.run(&["record", "--", "sh", "-c", line]);
    assert_eq!(
        (recorded.status, recorded.out.as_str()),
        (36, "x\n"),
        "{recorded:?}"
    );
    let json = place.json(&["show", "--json"]);
    assert_eq!(
        (&json["exit"], &json["lost"]),
        (&36.into(), &0.into()),
        "{json}"
    );
}

#[test]
fn thousands_of_forks_and_opens_are_all_there() {
    are_all_there(2_000, 20_000);
}

#[test]
#[ignore = "half a minute, as the same test of fewer"]
fn ten_thousand_forks_and_a_hundred_thousand_opens_are_all_there() {
    are_all_there(10_000, 100_000);
}

fn are_all_there(forks: usize, opens: usize) {
    let place = Place::new();
    let Some(crowd) = place.fixture("crowd") else {
        return;
    };
    for (what, count, processes) in [("forks", forks, forks + 1), ("opens", opens, 1)] {
        let answer = place.run(&["record", "--", &crowd, what, &count.to_string()]);
        assert_eq!(
            (answer.out.as_str(), answer.err.as_str()),
            ("crowd ok\n", ""),
            "{what}"
        );
        let json = place.json(&["show", "--json"]);
        assert_eq!(
            (&json["complete"], &json["lost"]),
            (&true.into(), &0.into()),
            "{what}"
        );
        let listed = place
            .json(&["processes", "--json"])
            .as_array()
            .unwrap()
            .len();
        assert!(listed >= processes, "{what}: {listed}");
    }
    let files = place.json(&["files", "--json"]);
    let made = files.as_array().unwrap().iter();
    let made = made
        .filter(|file| file["path"].as_str().unwrap().contains("/work/o"))
        .count();
    assert_eq!(made, opens);
}

#[test]
fn a_usage_error_names_what_is_missing_and_the_help_of_the_command() {
    let place = Place::new();
    for (args, line) in [
        (
            &["of", "--key", "3"][..],
            "--table <TABLE> is missing (see `backstory of --help`)",
        ),
        (
            &["store", "migrate"],
            "--to <ENGINE> is missing (see `backstory store migrate --help`)",
        ),
    ] {
        place.run(args).is_error(2, &[line]);
    }
}
