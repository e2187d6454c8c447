//! Contents: the stored bytes are exactly the bytes that were read, and can be exported.

use super::Place;
use serde_json::Value;
use std::fs;

impl Place {
    /// Records a shell line with contents, and waits until they are stored. Returns whether the
    /// content of the file in the latest run is stored, its package and manager, and whether it is
    /// verified.
    fn owner_of(&self, path: &str) -> (bool, String) {
        let files = self.json(&["files", "--json"]);
        let file = files
            .as_array()
            .unwrap()
            .iter()
            .find(|file| file["path"] == path);
        let version = &file.unwrap()["versions"][0];
        let package = &version["package"];
        let words = [&package["manager"], &package["name"]].map(|word| word.as_str().unwrap());
        let verified = package["verified"].as_bool().unwrap();
        (
            version["kept"].as_bool().unwrap(),
            format!("{} {} {verified}", words[0], words[1]),
        )
    }

    pub(crate) fn keep(&self, line: &str, options: &[&str]) -> String {
        let summary = self.path("..summary.json");
        let mut args = vec!["record", "--json-summary", &summary];
        args.extend(options);
        args.extend(["--", "sh", "-c", line]);
        let answer = self.run(&args);
        assert_eq!((answer.status, answer.err.as_str()), (0, ""), "{line}");
        let read: Value = serde_json::from_slice(&fs::read(&summary).unwrap()).unwrap();
        fs::remove_file(&summary).unwrap();
        assert_eq!(self.run(&["index", "--wait"]).status, 0);
        read["run"].as_str().unwrap().to_owned()
    }

    /// The content of the version of `name` whose text was `text`, by its digest in the ancestry of
    /// `of`.
    pub(crate) fn kept_ancestor(&self, of: &str, name: &str) -> Option<String> {
        let lineage = self.json(&["of", of, "--json"]);
        let path = self.path(name);
        let nodes = lineage["nodes"].as_array().unwrap();
        let node = nodes
            .iter()
            .rev()
            .find(|node| node["path"] == path.as_str() && node["digest"].is_string())?;
        Some(
            self.run(&["contents", node["digest"].as_str().unwrap()])
                .out,
        )
    }
}

#[test]
fn a_version_that_was_read_is_stored_although_the_file_changes_later() {
    for change in [
        "echo new > in",
        "rm in",
        "mv other in",
        "echo more >> in",
        "truncate -s 0 in",
        "mv in aside; echo new > in; rm aside",
        "mv in aside; echo new > aside",
        "mv in aside; mv aside again; echo new > again",
        "mv in aside; mv aside again; rm again",
        "mv in other; echo new > other",
        "mv in aside; mv aside other; rm other",
        "true",
    ] {
        let place = Place::new();
        place.write_aged("in", "as it was read\n");
        place.write_aged("other", "another file\n");
        place.keep(&format!("cat in > out; {change}"), &["--contents=lazy"]);
        assert_eq!(
            place.kept_ancestor("out", "in").as_deref(),
            Some("as it was read\n"),
            "{change}"
        );
        assert_eq!(
            place.run(&["contents", "out"]).out,
            "as it was read\n",
            "{change}"
        );
        // A run whose contents are stored has no preserved files.
        let left: Vec<_> = fs::read_dir(place.stage.store().join("runs"))
            .unwrap()
            .flatten()
            .collect();
        assert_eq!(left.len(), 1, "nothing but the log is left: {left:?}");
        assert_eq!(place.run(&["store", "verify"]).status, 0);
    }
}

#[test]
fn a_version_that_was_read_is_stored_although_its_directory_changes() {
    for change in [
        "mv d e; echo new > e/in",
        "mv d e; mv e f; echo new > f/in",
        "mv d e; mv e f; rm -r f",
        "mv d/in d/aside; mv d e; rm e/aside",
        // The first removal sends a request. After it, `rm` links the file itself.
        "cat d/other; rm d/other; mv d e; rm -r e",
    ] {
        let place = Place::new();
        fs::create_dir(place.path("d")).unwrap();
        place.stage.user().owns(&place.work().join("d")).unwrap();
        place.write_aged("d/in", "as it was read\n");
        place.write_aged("d/other", "another file\n");
        place.keep(&format!("cat d/in > out; {change}"), &["--contents=lazy"]);
        let text = place.kept_ancestor("out", "d/in");
        assert_eq!(text.as_deref(), Some("as it was read\n"), "{change}");
    }
}

/// Two names of one file are one file: a process reads by one name what another wrote by the other.
#[test]
fn a_file_written_by_one_name_is_read_by_the_other() {
    let [write, change] = ["echo two > b", "echo three > b"];
    let by_busybox = |line: &str| format!("busybox sh -c '{line}'");
    let others = [
        (by_busybox(write), by_busybox(change)),
        (by_busybox(write), "echo three > a".to_owned()),
    ];
    let own = (write.to_owned(), change.to_owned());
    let busybox = backstory_testkit::need::needs("hard links without the recorder", &["busybox"]);
    for (write, change) in others.into_iter().filter(|_| busybox).chain([own]) {
        let place = Place::new();
        place.write("a", "one\n");
        fs::hard_link(place.path("a"), place.path("b")).unwrap();
        place.age("a");
        place.keep(
            &format!("{write}; cat a > out; {change}"),
            &["--contents=lazy"],
        );
        let shown = place.json(&["show", "--json"]);
        assert_eq!(
            shown["contents"]["not_kept"],
            serde_json::json!([]),
            "{write}; {change}"
        );
        let lineage = place.run(&["of", "out", "--tree"]).out;
        let read = lineage
            .find("/a\n")
            .and_then(|at| lineage[at..].find("echo two"));
        assert!(read.is_some(), "{write}; {change}: {lineage}");
        assert_eq!(
            place.kept_ancestor("out", "b").as_deref(),
            Some("two\n"),
            "{write}; {change}: {lineage}"
        );
    }
}

/// The last process links the file itself: by then, the directory of preserved contents exists, and
/// the filter of read files is complete.
#[test]
fn a_version_is_stored_although_its_reader_only_gave_it_another_name() {
    let python = |calls: &str, name: &str| {
        let read = format!("open(\"out\", \"w\").write(open(\"{name}\").read())");
        format!("echo two > new; /usr/bin/python3 -c 'import os; {calls}; {read}'")
    };
    let again = "ln -f in again; echo two > again; rm again; cat in > out".to_owned();
    let renamed = python("os.rename(\"new\", \"in\")", "in");
    let linked = python("os.link(\"new\", \"now\"); os.remove(\"new\")", "now");
    let moved = python(
        "os.mkdir(\"d\"); os.rename(\"new\", \"d/new\"); os.rename(\"d\", \"e\")",
        "e/new",
    );
    for (read, name) in [
        (again, "in"),
        (renamed, "in"),
        (linked, "now"),
        (moved, "e/new"),
    ] {
        let place = Place::new();
        place.write_aged("in", "as it was found\n");
        place.write_aged("other", "another file\n");
        let line = format!("{read}; cat other > copy; rm other; rm {name}");
        place.keep(&line, &["--contents=lazy"]);
        let kept = place.kept_ancestor("out", name);
        assert_eq!(kept.as_deref(), Some("two\n"), "{read}");
        assert_eq!(place.run(&["store", "verify"]).status, 0);
    }
}

/// A content that came to the name after it was read is stored under that name, too.
#[test]
fn a_file_moved_to_the_name_of_a_read_file_is_another_file() {
    for change in [
        "mv d/in d/aside; mv other d/in",
        "mv d x; mv e d",
        "ln d/in d/hard; rm d/in; mv other d/in",
        "busybox sh -c 'mv d/in d/aside; mv other d/in'",
        "perl -e '($d, $e) = (q(d), q(e)); syscall(316, -100, $d, -100, $e, 2) == 0 or die'",
    ] {
        let program = ["busybox", "perl"]
            .into_iter()
            .find(|tool| change.starts_with(tool));
        if program.is_some_and(|tool| {
            !backstory_testkit::need::needs("another file at the name", &[tool])
        }) {
            continue;
        }
        let place = Place::new();
        for directory in ["d", "e"] {
            fs::create_dir(place.path(directory)).unwrap();
            place
                .stage
                .user()
                .owns(&place.work().join(directory))
                .unwrap();
        }
        for name in ["other", "e/in"] {
            place.write_aged(name, "another file\n");
        }
        place.write_aged("d/in", "as it was read\n");
        place.keep(
            &format!("cat d/in > out; {change}; echo new > d/in"),
            &["--contents=lazy"],
        );
        let text = place.kept_ancestor("out", "d/in");
        assert_eq!(text.as_deref(), Some("as it was read\n"), "{change}");
    }
}

/// The file that was read is gone, and the path of the new one says nothing about it.
#[test]
fn a_file_read_by_a_removed_name_is_found_by_the_other() {
    let place = Place::new();
    fs::create_dir(place.path("a")).unwrap();
    place.write_aged("a/one", "as it was read\n");
    place.keep("cp -al a b; cat b/one > out; rm -r b", &["--contents=lazy"]);
    let text = place.kept_ancestor("out", "b/one");
    assert_eq!(text.as_deref(), Some("as it was read\n"));
}

#[test]
fn without_contents_nothing_is_stored_and_the_error_names_the_option() {
    let place = Place::new();
    place.write_aged("in", "text\n");
    place.keep("cat in > out", &["--contents=off"]);
    place
        .run(&["contents", "out"])
        .is_error(1, &["out", "--contents"]);
    assert!(!place.stage.store().join("contents").exists());
}

#[test]
fn contents_are_stored_by_default() {
    let place = Place::new();
    place.write_aged("in", "text\n");
    place.keep("cat in > out; echo more >> in", &[]);
    for (name, text) in [("in", "text\nmore\n"), ("out", "text\n")] {
        assert_eq!(place.run(&["contents", name]).out, text);
    }
    let read = place.kept_ancestor(&place.path("out"), "in");
    assert_eq!(read.as_deref(), Some("text\n"));
}

#[test]
fn a_read_file_with_times_set_by_a_static_program_is_stored_from_its_present_state() {
    if !backstory_testkit::need::needs("times set by a static program", &["busybox"]) {
        return;
    }
    let place = Place::new();
    place.write_aged("in", "text\n");
    let line = "busybox cat in > out; busybox touch -d '2001-01-01 00:00:00' in";
    place.keep(line, &["--contents=lazy"]);
    let shown = place.json(&["show", "--json"]);
    assert_eq!(shown["contents"]["not_kept"], serde_json::json!([]));
    fs::remove_file(place.path("in")).unwrap();
    let answer = place.run(&["export", "reprozip", "-o", "pack.rpz"]);
    assert_eq!((answer.status, answer.err.as_str()), (0, ""));
}

#[test]
fn a_verified_file_of_a_package_is_named_and_stored_only_on_request() {
    if !std::path::Path::new("/var/lib/dpkg/info/coreutils.md5sums").exists() {
        backstory_testkit::need::skipped("package identity", "there is no dpkg");
        return;
    }
    let place = Place::new();
    place.write_aged("in", "text\n");
    let cat = fs::canonicalize("/bin/cat")
        .unwrap()
        .into_os_string()
        .into_string()
        .unwrap();
    place.keep("cat in > out", &["--contents=lazy"]);
    place
        .run(&["contents", &cat])
        .is_error(1, &["coreutils", "dpkg", "--self-contained"]);
    assert_eq!(
        place.owner_of(&cat),
        (false, "dpkg coreutils true".to_owned())
    );
    // The same content is stored for another file.
    place.keep("cp /bin/cat own; ./own in > out", &["--contents=lazy"]);
    place.keep("cat in > out", &["--contents=lazy", "--self-contained"]);
    place.run(&["contents", &cat, "-o", "kept-cat"]);
    assert!(fs::read(place.path("kept-cat")).unwrap() == fs::read(&cat).unwrap());
    // It still belongs to the package, and a bill of materials names that.
    assert_eq!(
        place.owner_of(&cat),
        (true, "dpkg coreutils true".to_owned())
    );
    let bill = place.json(&["export", "cyclonedx", "-o", "-"]);
    let components = bill["components"].as_array().unwrap();
    let named = |name: &str| components.iter().any(|component| component["name"] == name);
    assert!(named("coreutils") && !named(&cat), "{components:?}");
}

#[test]
fn an_unverifiable_file_of_a_package_is_stored_and_named() {
    let place = Place::new();
    fs::create_dir_all(place.path("node_modules/@s/x")).unwrap();
    place
        .stage
        .user()
        .owns(place.path("node_modules").as_ref())
        .unwrap();
    let package = "{\"name\":\"@s/x\",\"version\":\"1.2.3\"}";
    place.write_aged("node_modules/@s/x/package.json", package);
    place.write_aged("node_modules/@s/x/index.js", "text\n");
    place.keep("cat node_modules/@s/x/index.js > out", &["--contents=lazy"]);
    let file = place.path("node_modules/@s/x/index.js");
    assert_eq!(place.owner_of(&file), (true, "npm @s/x false".to_owned()));
    assert_eq!(place.run(&["contents", &file]).out, "text\n");
    let bill = place.json(&["export", "cyclonedx", "-o", "-"]);
    let components = bill["components"].as_array().unwrap();
    let purls: Vec<&str> = components
        .iter()
        .filter_map(|one| one["purl"].as_str())
        .collect();
    assert!(purls.contains(&"pkg:npm/%40s/x@1.2.3"), "{purls:?}");
    // A file that the run itself made is its result, whichever package owns the directory.
    place.keep(
        "echo more > node_modules/@s/x/built.js",
        &["--contents=lazy"],
    );
    let bill = place.json(&["export", "cyclonedx", "-o", "-"]);
    let made = place.path("node_modules/@s/x/built.js");
    let components = bill["components"].as_array().unwrap();
    assert!(
        components.iter().any(|one| one["name"] == made.as_str()),
        "{components:?}"
    );
}

#[test]
fn an_export_brings_runs_and_contents_to_another_store_once() {
    let (here, there) = (Place::new(), Place::new());
    here.write_aged("in", "text to hand on\n");
    let run = here.keep("cat in > out; rm in", &["--contents=lazy"]);
    let file = there.path("x.backstory");
    let local = here.path("x.backstory");
    assert_eq!(here.run(&["name", &run, "given"]).status, 0);
    assert_eq!(here.run(&["store", "export", &run, "-o", &local]).err, "");
    fs::copy(&local, &file).unwrap();
    there.stage.user().owns(file.as_ref()).unwrap();
    for known in [false, true] {
        let answer = there.json(&["store", "import", &file, "--json"]);
        assert_eq!(
            answer[if known { "known" } else { "runs" }][0],
            run.as_str()
        );
        let out = here.path("out");
        assert_eq!(there.run(&["contents", &out]).out, "text to hand on\n");
    }
    assert_eq!(there.json(&["log", "--json"]).as_array().unwrap().len(), 1);
    assert_eq!(
        there.json(&["show", "given", "--json"])["run"],
        run.as_str()
    );
    assert_eq!(there.run(&["store", "verify"]).status, 0);
    let (a, b) = (
        here.json(&["files", &run, "--json"]),
        there.json(&["files", &run, "--json"]),
    );
    assert_eq!(a, b);
}

#[test]
fn a_damaged_export_is_refused_and_imports_no_run() {
    let (here, there) = (Place::new(), Place::new());
    here.write_aged("in", "text\n");
    let run = here.keep("cat in > out", &["--contents=lazy"]);
    let local = here.path("x.backstory");
    here.run(&["store", "export", &run, "-o", &local]);
    let whole = fs::read(&local).unwrap();
    for cut in [0, 10, 20, whole.len() / 2, whole.len() - 1] {
        let file = there.path("cut");
        fs::write(&file, &whole[..cut]).unwrap();
        there.stage.user().owns(file.as_ref()).unwrap();
        there
            .run(&["store", "import", &file])
            .is_error(1, &["cannot import", &file]);
    }
    assert_eq!(there.json(&["log", "--json"]), Value::Array(Vec::new()));
    let left: Vec<_> = fs::read_dir(there.stage.store().join("runs"))
        .unwrap()
        .flatten()
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn garbage_collection_removes_only_contents_without_a_run() {
    let place = Place::new();
    place.write_aged("both", "read by both runs\n");
    place.write_aged("one", "read by the first run alone\n");
    let first = place.keep("cat both one > out1", &["--contents=lazy"]);
    place.keep("cat both > out2", &["--contents=lazy"]);
    let objects = |place: &Place| {
        place.json(&["store", "stats", "--json"])["contents"]["objects"]
            .as_u64()
            .unwrap()
    };
    let before = objects(&place);
    assert_eq!(
        place.json(&["store", "gc", "--json"])["contents"],
        0,
        "all is referred to"
    );
    assert_eq!(place.run(&["rm", &first]).status, 0);
    let dry = place.json(&["store", "gc", "--dry-run", "--json"]);
    assert_eq!(objects(&place), before);
    let given = place.json(&["store", "gc", "--json"]);
    assert_eq!(dry["contents"], given["contents"]);
    assert_eq!(
        objects(&place),
        before - given["contents"].as_u64().unwrap()
    );
    assert!(given["contents"].as_u64().unwrap() >= 2, "{given}");
    assert_eq!(place.run(&["contents", "both"]).out, "read by both runs\n");
    let forgotten = place.json(&["store", "gc", "--max-size", "1", "--json"]);
    assert_eq!(forgotten["runs"].as_array().unwrap().len(), 1);
    assert_eq!(objects(&place), 0);
}

#[test]
fn a_copy_made_outside_is_joined_by_its_content_and_a_trivial_one_is_not() {
    let place = Place::new();
    let long = "a line that is long enough to mean something when it is found elsewhere, too\n";
    place.write_aged("in", long);
    place.keep("cat in > made; echo ok > trivial", &["--contents=lazy"]);
    place.age("made");
    for name in ["made", "trivial"] {
        fs::copy(place.path(name), place.path(&format!("{name}-copy"))).unwrap();
        place
            .stage
            .user()
            .owns(place.path(&format!("{name}-copy")).as_ref())
            .unwrap();
        place.age(&format!("{name}-copy"));
    }
    place.keep(
        "cat made-copy > result; cat trivial-copy > other",
        &["--contents=lazy"],
    );
    let reached = |of: &str, what: &str| {
        let lineage = place.json(&["of", of, "--json"]);
        let path = place.path(what);
        lineage["nodes"]
            .as_array()
            .unwrap()
            .iter()
            .any(|node| node["path"] == path.as_str())
    };
    assert!(reached("result", "in"));
    assert!(!reached("other", "trivial"));
}

#[test]
fn what_a_process_linked_itself_is_stored_only_if_the_run_read_it() {
    // The second content of each file has the inode of the first, which the run read.
    const PROGRAM: &str = "
names = [f'name{number}' for number in range(30)]
for name in names:
    open(name).read()
for name in names:
    open(name, 'w').write('unread')
for name in names:
    os.unlink(name, dir_fd=at)
";
    for at in ["None", "os.open('.', os.O_RDONLY)"] {
        let place = Place::new();
        for number in 0..30 {
            place.write(format!("name{number}"), &format!("read {number}"));
        }
        place.write("program.py", &format!("import os\nat = {at}\n{PROGRAM}"));
        place.keep("/usr/bin/python3 program.py", &[]);
        let stored = |text: &str| {
            let digest = blake3::hash(text.as_bytes()).to_hex();
            place.run(&["contents", &digest]).out == text
        };
        for number in 0..30 {
            assert!(stored(&format!("read {number}")), "{number}, {at}");
        }
        assert!(!stored("unread"), "{at}");
    }
}
