//! Exports of a file, of a build, as pictures, data and archives, and the errors of `export`.

use std::process::Command;

use super::Place;
use super::engines::mermaid;
use super::pipeline::{pipeline, text, tool};
use backstory_testkit::need::{find, needs};
use backstory_testkit::program;

#[test]
fn an_export_of_a_file_has_only_its_origins() {
    let place = pipeline();
    let rules = place.run(&["export", "shell", "out/u2.txt"]).out;
    assert!(
        rules.contains("uniq out/2.txt out/u2.txt") && rules.contains("sort in2.txt > out/2.txt"),
        "{rules}"
    );
    assert!(
        !rules.contains("in1.txt") && !rules.contains("paste"),
        "{rules}"
    );
}

#[test]
fn compile_commands_name_every_source_of_a_build() {
    if !needs("export compile-commands", &["gcc", "make"]) {
        return;
    }
    // Every directory finds its includes differently, and has its own compiler options.
    let place = Place::new();
    for directory in ["include", "one", "two"] {
        std::fs::create_dir(place.path(directory)).unwrap();
        place
            .stage
            .user()
            .owns(place.path(directory).as_ref())
            .unwrap();
    }
    place.write("include/both.h", "int one(void);\nint two(void);\n");
    place.write(
        "one/one.c",
        "#include \"both.h\"\nint one(void) { return ONE; }\n",
    );
    place.write(
        "two/two.c",
        "#include <both.h>\n#ifdef ONE\n#error \"not here\"\n#endif\nint two(void) { return TWO; }\n",
    );
    place.write(
        "main.c",
        "#include \"include/both.h\"\nint main(void) { return one() - two(); }\n",
    );
    place.write(
        "one/Makefile",
        "one.o: one.c\n\tgcc -I../include -D ONE=1 -c one.c\n",
    );
    place.write(
        "Makefile",
        "prog: main.o two/two.o sub\n\tgcc -o $@ main.o one/one.o two/two.o\ntwo/two.o: two/two.c\n\tgcc -I include '-DTWO=(1 + 1)' -c -o $@ $<\n\
         sub:\n\t$(MAKE) -C one\n.PHONY: sub\n",
    );
    assert_eq!(place.run(&["record", "--", "make", "-s"]).status, 0);
    let entries = place.json(&["export", "compile-commands"]);
    let mut files: Vec<&str> = entries
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["file"].as_str().unwrap())
        .collect();
    files.sort_unstable();
    let sources = ["main.c", "one/one.c", "two/two.c"];
    assert_eq!(files, sources.map(|name| place.path(name)));
    if needs("compile_commands.json in clang-tidy", &["clang-tidy"]) {
        let wrote = place.run(&["export", "compile-commands", "-o", "compile_commands.json"]);
        assert_eq!(wrote.status, 0);
        // One by one: the checker searches the includes of one source where it found another's.
        for source in sources {
            let output = tool(&place, &["clang-tidy", "-p", ".", "--quiet", source])
                .output()
                .unwrap();
            assert!(output.status.success(), "{}", text(&output));
        }
    }
}

#[test]
fn pictures_and_data_are_readable_by_their_tools() {
    let place = pipeline();
    for level in ["command", "process", "all"] {
        let nodes = place.run(&["export", "mermaid", "--level", level]).out;
        assert!(
            nodes.starts_with("flowchart LR\n") && nodes.contains(" -->|wrote| "),
            "{nodes}"
        );
        if let Some(packages) = mermaid() {
            let wrote = place.run(&["export", "mermaid", "--level", level, "-o", "g.mmd"]);
            assert_eq!(wrote.status, 0);
            let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/standards/mermaid.mjs");
            let mut node = Command::new(find("node").unwrap());
            let output = node
                .arg(script)
                .arg(packages)
                .arg(place.path("g.mmd"))
                .output()
                .unwrap();
            assert!(text(&output).starts_with("flowchart"), "{}", text(&output));
        }
        if needs("export dot", &["dot"]) {
            assert_eq!(
                place
                    .run(&["export", "dot", "--level", level, "-o", "g.dot"])
                    .status,
                0
            );
            assert!(
                tool(&place, &["dot", "-Tsvg", "-o", "g.svg", "g.dot"])
                    .status()
                    .unwrap()
                    .success()
            );
        }
        if needs("export svg", &["/usr/bin/python3"]) {
            assert_eq!(
                place
                    .run(&["export", "svg", "--level", level, "-o", "g.svg"])
                    .status,
                0
            );
            let read = "import xml.etree.ElementTree as e; r = e.parse('g.svg').getroot(); n = '{http://www.w3.org/2000/svg}'\n\
                        assert [x for x in r.iter(n + 'text') if x.text == 'in3.txt'] and list(r.iter(n + 'path'))";
            assert!(
                tool(&place, &["/usr/bin/python3", "-c", read])
                    .status()
                    .unwrap()
                    .success()
            );
        }
    }
}

#[test]
fn an_impossible_export_is_reported() {
    let place = pipeline();
    place
        .run(&["export", "bpmn"])
        .is_error(2, &["bpmn", "make", "snakemake"]);
    let misspelt = place.run(&["export", "ocfs"]);
    misspelt.is_error(2, &["'ocfs', did you mean ocsf?; `backstory export`"]);
    place
        .run(&["export", "make", "-o", "no/such/dir"])
        .is_error(
            1,
            &["no/such/dir", "there is no directory no/such", "make it"],
        );
    // The message must not name the temporary file.
    let answer = place.run(&["export", "oci", "-o", "/proc/image"]);
    answer.is_error(1, &["/proc/image", "No such file"]);
    assert!(!answer.err.contains(".backstory-"), "{}", answer.err);
    place
        .run(&["export", "compile-commands"])
        .is_error(1, &["compiler", "record"]);
    place
        .run(&["export", "make", "-o", "out"])
        .is_error(2, &["out", "a directory"]);
    place.write("kept", "as it was");
    place
        .run(&["export", "compile-commands", "-o", "kept"])
        .is_error(1, &[]);
    assert_eq!(
        std::fs::read_to_string(place.work().join("kept")).unwrap(),
        "as it was"
    );
    let left = std::fs::read_dir(place.work()).unwrap().filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_str().unwrap().starts_with(".backstory-")
    });
    assert_eq!(left.count(), 0, "nothing half written is left");
    let list = place.run(&["export"]);
    assert!(
        list.status == 0 && list.out.contains("a makefile"),
        "{list:?}"
    );
}

#[test]
fn a_crate_has_the_content_of_a_program_that_was_found_through_links() {
    let place = Place::new();
    place.write_aged("in.txt", "a\n");
    // A program of the user's own: the content of a package's program is left to the package.
    program::copy(&find("cat").unwrap(), place.path("program").as_ref()).unwrap();
    std::os::unix::fs::symlink("program", place.path("reader3")).unwrap();
    std::os::unix::fs::symlink("reader3", place.path("reader")).unwrap();
    let line = "test -L reader && readlink -f reader > link && ./reader in.txt > out.txt";
    let answer = place.run(&["record", "--wait", "--", "sh", "-c", line]);
    assert_eq!(answer.status, 0, "{answer:?}");
    let answer = place.run(&["export", "ro-crate", "-o", "crate"]);
    assert_eq!((answer.status, answer.err.as_str()), (0, ""));
    let stored = place.path(&format!("crate/files{}", place.path("reader")));
    assert_eq!(
        std::fs::read(stored).unwrap(),
        std::fs::read(find("cat").unwrap()).unwrap()
    );
}

#[test]
fn an_export_right_after_a_run_holds_contents_that_are_not_stored_yet() {
    let place = Place::new();
    place.write_aged("in.txt", "a\n");
    // The process that stores contents in the background finds the lock taken, and leaves the work.
    place.record("true");
    assert_eq!(place.run(&["index", "--wait"]).status, 0);
    let lock = std::fs::File::open(place.stage.store().join("keep.lock")).unwrap();
    lock.lock().unwrap();
    place.record("cat in.txt > out.txt");
    place.run(&["index"]);
    drop(lock);
    let answer = place.run(&["export", "ro-crate", "-o", "crate"]);
    assert_eq!((answer.status, answer.err.as_str()), (0, ""));
    let stored = place.path(&format!("crate/files{}", place.path("in.txt")));
    assert_eq!(std::fs::read_to_string(stored).unwrap(), "a\n");
}

#[test]
fn two_exports_of_one_run_are_the_same_bytes() {
    let place = pipeline();
    assert_eq!(place.run(&["index", "--wait"]).status, 0);
    let exports = || {
        ["oci-archive", "docker-archive", "reprozip"].map(|format| {
            let answer = place.run(&["export", format, "-o", format]);
            assert_eq!(answer.status, 0, "{format}: {answer:?}");
            (format, std::fs::read(place.path(format)).unwrap())
        })
    };
    let first = exports();
    // An archive's times have seconds: the second export is in another one.
    let began = std::time::Instant::now();
    while began.elapsed() < std::time::Duration::from_millis(1100) {
        std::thread::yield_now();
    }
    for ((format, first), (_, second)) in first.iter().zip(exports()) {
        assert!(*first == second, "{format}");
    }
}
