//! Promises of every format: an export exists completely or not at all, and an impossible export
//! names the remedy.

use backstory_testkit::need::{find, needs};

use super::Place;

/// All formats by name, and whether each is a directory.
fn formats(place: &Place) -> Vec<(String, bool)> {
    let list = place.run(&["export"]).out;
    let line = |line: &str| {
        Some((
            line.split(' ').next()?.to_owned(),
            line.contains(" (a directory)"),
        ))
    };
    let all: Vec<_> = list.lines().filter_map(line).collect();
    assert!(all.len() > 20, "{list}");
    all
}

/// One step, recorded with contents.
fn recorded() -> Place {
    let place = Place::new();
    place.write_aged("in.c", "int main(void) { return 0; }\n");
    let compiler = find("gcc").unwrap_or_else(|| "cp".into());
    let compiler = compiler.to_str().unwrap();
    let answer = place.run(&[
        "record",
        "--contents=lazy",
        "--",
        compiler,
        "-c",
        "in.c",
        "-o",
        "out.o",
    ]);
    assert_eq!((answer.status, answer.err.as_str()), (0, ""));
    assert_eq!(place.run(&["index", "--wait"]).status, 0);
    place
}

/// New names in a directory.
fn left(place: &Place, directory: &str) -> Vec<String> {
    let entries = std::fs::read_dir(place.work().join(directory)).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .filter(|name| !["in.c", "out.o", "locked"].contains(&name.as_str()))
        .collect()
}

#[test]
fn a_target_that_cannot_be_written_is_named_and_nothing_is_left() {
    if !needs("exports to where nobody may write", &["gcc"]) {
        return;
    }
    use std::os::unix::fs::PermissionsExt;
    let place = recorded();
    let locked = place.work().join("locked");
    std::fs::create_dir(&locked).unwrap();
    place.stage.user().owns(&locked).unwrap();
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o555)).unwrap();
    for (format, directory) in formats(&place) {
        place
            .run(&["export", &format, "-o", "locked/out"])
            .is_error(1, &["locked/out"]);
        place
            .run(&["export", &format, "-o", "none/out"])
            .is_error(1, &["none/out"]);
        // An existing file of another type is not replaced.
        let (there, what) = if directory {
            ("in.c", "a file")
        } else {
            ("locked", "a directory")
        };
        place
            .run(&["export", &format, "-o", there])
            .is_error(2, &[there, what, "-o"]);
        if directory {
            place
                .run(&["export", &format])
                .is_error(2, &[&format, "-o"]);
        } else {
            place
                .run(&["export", &format, "-o", "/dev/full"])
                .is_error(1, &[]);
        }
        assert_eq!(left(&place, "."), Vec::<String>::new(), "{format}");
        assert_eq!(left(&place, "locked"), Vec::<String>::new(), "{format}");
    }
}

#[test]
fn a_run_without_its_files_is_exported_wholly_or_not_at_all() {
    let place = Place::new();
    place.write_aged("in", "b\na\n");
    assert_eq!(
        place
            .run(&[
                "record",
                "--name",
                "sorted",
                "--contents=off",
                "--",
                "sort",
                "in",
                "-o",
                "out"
            ])
            .status,
        0
    );
    // By then it is known whether a file existed at the end.
    assert_eq!(place.run(&["index", "--wait"]).status, 0);
    std::fs::remove_file(place.work().join("in")).unwrap();
    std::fs::remove_file(place.work().join("out")).unwrap();
    let mut refused = Vec::new();
    for (format, _) in formats(&place) {
        let answer = place.run(&["export", &format, "-o", "export"]);
        let path = place.work().join("export");
        match answer.status {
            0 => {
                assert_eq!(answer.err, "", "{format}");
                assert!(path.exists(), "{format}");
            }
            _ => {
                assert!(!path.exists(), "{format}");
                answer.is_error(1, &["backstory: "]);
                refused.push(format);
            }
        }
        drop(std::fs::remove_file(&path));
        drop(std::fs::remove_dir_all(&path));
        let names = std::fs::read_dir(place.work()).unwrap().count();
        assert_eq!(names, 0, "nothing half written");
    }
    // The formats with contents, and the one for compilers.
    let expected = [
        "compile-commands",
        "docker-archive",
        "dockerfile",
        "in-toto",
        "oci",
        "oci-archive",
        "reprozip",
    ];
    refused.sort_unstable();
    assert_eq!(refused, expected);
    // SPDX names packages. It needs the digests of files only if it lists them.
    place
        .run(&["export", "spdx", "--files", "-o", "export"])
        .is_error(1, &["backstory: "]);
}

#[test]
fn a_run_without_outputs_is_reported_where_that_matters() {
    let place = Place::new();
    assert_eq!(place.run(&["record", "--", "true"]).status, 0);
    for (format, _) in formats(&place) {
        let answer = place.run(&["export", &format, "-o", "export"]);
        if [
            "make",
            "ninja",
            "shell",
            "snakemake",
            "cwl",
            "nextflow",
            "ro-crate",
        ]
        .contains(&format.as_str())
        {
            answer.is_error(1, &["step that left a file", "backstory files"]);
            assert!(!place.work().join("export").exists(), "{format}");
        } else {
            assert!(answer.status <= 1, "{format}: {answer:?}");
            assert_eq!(
                answer.status == 0,
                place.work().join("export").exists(),
                "{format}"
            );
        }
        drop(std::fs::remove_file(place.work().join("export")));
        drop(std::fs::remove_dir_all(place.work().join("export")));
    }
}

#[test]
fn an_incomplete_run_is_exported_with_a_warning_and_its_reason() {
    if !needs("exports of an incomplete run", &["busybox"]) {
        return;
    }
    let place = Place::new();
    place.write_aged("in", "b\na\n");
    let script = "sort in > out; busybox true";
    place.run(&[
        "record",
        "--guard=off",
        "--contents=lazy",
        "--",
        "sh",
        "-c",
        script,
    ]);
    assert_eq!(place.run(&["index", "--wait"]).status, 0);
    assert_eq!(place.json(&["show", "--json"])["complete"], false);
    for format in [
        "make", "cwl", "nextflow", "prov-n", "parquet", "dot", "spdx",
    ] {
        let answer = place.run(&["export", format, "-o", "export"]);
        assert_eq!(answer.status, 0, "{format}: {answer:?}");
        assert!(
            answer.err.contains("is not complete"),
            "{format}: {answer:?}"
        );
        assert!(answer.err.contains("busybox"), "{format}: {answer:?}");
        drop(std::fs::remove_file(place.work().join("export")));
        drop(std::fs::remove_dir_all(place.work().join("export")));
    }
}

#[test]
fn an_import_through_a_pipe_is_whole_or_nothing() {
    let place = Place::new();
    place.write_aged("in", "a\n");
    // CWL cannot express the name of the last one. The output before it must not be in the pipe
    // already.
    let answer = place.run(&[
        "record",
        "--",
        "sh",
        "-c",
        "sort in > one; sort in > 'b[1]'",
    ]);
    assert_eq!(answer.status, 0);
    for format in ["cwl", "nextflow", "make"] {
        let answer = place.run(&["export", format]);
        answer.is_error(1, &["b[1]", "use "]);
        assert_eq!(answer.out, "", "{format}");
    }
}
