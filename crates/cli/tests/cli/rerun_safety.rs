//! `rerun` executes only what belongs to the file that it was asked for.

use std::fs;

use super::Place;

impl Place {
    /// A directory of the stage's user below `work`.
    fn directory(&self, name: &str) {
        let path = self.work().join(name);
        fs::create_dir(&path).unwrap();
        self.stage.user().owns(&path).unwrap();
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }
}

/// `a/mk.sh` made `a/cfg`. A file with the same content was made by hand in `b`.
#[test]
fn an_equal_content_in_another_directory_is_no_reason_to_execute() {
    let place = Place::new();
    place.directory("a");
    place.directory("b");
    place.write_aged("a/mk.sh", "seq 1 100 > cfg\n");
    place.keep("cd a; sh mk.sh", &["--contents=lazy"]);
    place.age("a/cfg");
    place.write("b/cfg", &place.text("a/cfg"));
    place.write_aged("b/in", "one\n");
    place.keep("cd b; cat cfg in > out", &["--contents=lazy"]);
    let of = place.json(&["of", "b/out", "--json"]);
    let links = of["links"].as_array().unwrap();
    let by_content = |link: &serde_json::Value| link["how"] == "content";
    assert!(links.iter().any(by_content), "`of` keeps the join: {of}");

    place.write_aged("a/mk.sh", "seq 1 200 > cfg\n");
    place.write_aged("b/in", "two\n");
    let before = place.text("a/cfg");
    let plan = place.run(&["rerun", "--dry-run", "b/out"]);
    assert!(
        plan.status == 1 && !plan.out.contains("mk.sh") && !plan.out.contains("/a/"),
        "{plan:?}"
    );
    let answer = place.run(&["rerun", "b/out"]);
    assert_eq!(answer.status, 0, "{answer:?}");
    assert_eq!(place.text("a/cfg"), before, "{answer:?}");
    assert_eq!(place.text("b/cfg"), before, "{answer:?}");
    assert!(place.text("b/out").ends_with("100\ntwo\n"), "{answer:?}");
}
