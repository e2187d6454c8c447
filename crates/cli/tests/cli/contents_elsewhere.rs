//! Contents that another content-addressed store has: they are not copied, and read from there.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::Place;

/// A text of more than 256 KiB, which is left where another store has it.
fn large(word: &str) -> String {
    format!("{word} of a line\n").repeat(40_000)
}

impl Place {
    /// A project of DVC with the file `data.csv`, and the object of this text in its cache. Returns
    /// the path of the object.
    fn dvc(&self, text: &str) -> PathBuf {
        self.write_aged("data.csv", text);
        let summed = Command::new("md5sum")
            .arg(self.path("data.csv"))
            .output()
            .unwrap();
        let md5 = String::from_utf8(summed.stdout).unwrap()[..32].to_owned();
        let cache = self.path(".dvc/cache/files/md5/") + &md5[..2];
        fs::create_dir_all(&cache).unwrap();
        fs::write(self.path(".dvc/config"), "").unwrap();
        let out = format!("outs:\n- md5: {md5}\n  hash: md5\n  path: data.csv\n");
        fs::write(self.path("data.csv.dvc"), out).unwrap();
        let object = PathBuf::from(cache).join(&md5[2..]);
        fs::write(&object, text).unwrap();
        self.stage.user().owns(self.path(".dvc").as_ref()).unwrap();
        object
    }

    /// The number of contents that are left in other stores, and the bytes of stored ones.
    fn left_elsewhere(&self) -> (u64, u64) {
        let stats = self.json(&["store", "stats", "--json"]);
        let number = |key: &str| stats["contents"][key].as_u64().unwrap();
        (number("elsewhere"), number("bytes"))
    }
}

#[test]
fn a_large_content_in_the_cache_of_dvc_is_not_copied_and_comes_from_there() {
    let place = Place::new();
    let text = large("first");
    place.dvc(&text);
    place.keep("wc -c < data.csv > out", &["--contents=lazy"]);
    let (left, stored) = place.left_elsewhere();
    assert!(left == 1 && stored < text.len() as u64, "{left} {stored}");
    let stats = place.run(&["store", "stats"]).out;
    assert!(stats.contains("1 content of"), "{stats}");
    // The file itself is another one now.
    place.write_aged("data.csv", &large("second"));
    assert_eq!(
        place.kept_ancestor("out", "data.csv").as_deref(),
        Some(text.as_str())
    );
    assert_eq!(place.run(&["store", "verify"]).status, 0);
}

#[test]
fn a_content_that_the_other_store_lost_is_an_error_that_names_its_file() {
    let place = Place::new();
    let text = large("first");
    let object = place.dvc(&text);
    let run = place.keep("wc -c < data.csv > out", &["--contents=lazy"]);
    let name = object.to_str().unwrap();
    fs::remove_file(&object).unwrap();
    assert_eq!(place.run(&["contents", "data.csv"]).out, text);
    place.write_aged("data.csv", &large("second"));
    place.run(&["contents", "data.csv"]).is_error(
        1,
        &["the cache of DVC", name, "is gone", "--self-contained"],
    );
    let verified = place.run(&["store", "verify"]);
    assert!(
        verified.status != 0 && verified.out.contains(name),
        "{verified:?}"
    );
    // Another text of the same length.
    fs::write(&object, large("other")).unwrap();
    place
        .run(&["contents", "data.csv", "-o", "came"])
        .is_error(1, &["the cache of DVC", name, "has another content"]);
    assert!(!fs::exists(place.path("came")).unwrap());
    // The archive says why it lacks the content.
    let archive = place.path("archive.bsx");
    fs::remove_file(&object).unwrap();
    let exported = place.run(&["store", "export", &run, "-o", &archive]);
    assert_eq!(exported.status, 0, "{exported:?}");
    let other = place.path("other-store");
    let imported = place.run(&["--store", &other, "store", "import", &archive]);
    assert_eq!(imported.status, 0, "{imported:?}");
    place
        .run(&["--store", &other, "contents", "data.csv"])
        .is_error(1, &["the cache of DVC", name, "is gone"]);
}

#[test]
fn a_lost_content_is_stored_by_the_next_run_that_reads_the_file() {
    let place = Place::new();
    let text = large("first");
    let object = place.dvc(&text);
    place.keep("wc -c < data.csv > out", &["--contents=lazy"]);
    fs::remove_file(&object).unwrap();
    place.keep("wc -l < data.csv > lines", &["--contents=lazy"]);
    assert_eq!(place.run(&["contents", "data.csv"]).out, text);
    assert_eq!(place.run(&["store", "verify"]).status, 0);
}

#[test]
fn a_self_contained_run_copies_what_an_earlier_run_left_elsewhere() {
    let place = Place::new();
    let text = large("first");
    let object = place.dvc(&text);
    place.keep("wc -c < data.csv > out", &["--contents=lazy"]);
    let options = ["--contents=lazy", "--self-contained"];
    place.keep("wc -l < data.csv > lines", &options);
    fs::remove_file(&object).unwrap();
    assert_eq!(place.run(&["contents", "data.csv"]).out, text);
}

#[test]
fn a_file_that_differs_from_the_other_stores_object_is_stored() {
    let place = Place::new();
    let text = large("first");
    place.dvc(&large("other"));
    place.write_aged("data.csv", &text);
    place.keep("wc -c < data.csv > out", &["--contents=lazy"]);
    assert_eq!(place.left_elsewhere().0, 0);
    assert_eq!(place.run(&["contents", "data.csv"]).out, text);
}

#[test]
fn an_object_that_is_not_what_its_name_says_is_not_referred_to() {
    let place = Place::new();
    let text = large("first");
    let object = place.dvc(&text);
    fs::write(&object, large("other")).unwrap();
    place.keep("wc -c < data.csv > out", &["--contents=lazy"]);
    assert_eq!(place.left_elsewhere().0, 0);
}

#[test]
fn a_damaged_note_or_an_unreadable_object_keeps_no_other_content_from_being_stored() {
    let place = Place::new();
    let text = large("first");
    let object = place.dvc(&text);
    place.keep("wc -c < data.csv > out", &["--contents=lazy"]);
    // A file where the directory of the object was.
    let above = object.parent().unwrap();
    fs::remove_dir_all(above).unwrap();
    fs::write(above, "").unwrap();
    place.keep("wc -l < data.csv > lines", &["--contents=lazy"]);
    assert_eq!(place.run(&["contents", "lines"]).out, "40000\n");
    assert_eq!(place.run(&["contents", "data.csv"]).out, text);

    let place = Place::new();
    place.dvc(&text);
    place.keep("wc -c < data.csv > out", &["--contents=lazy"]);
    let notes = place.stage.store().join("contents/elsewhere");
    let fan = fs::read_dir(notes).unwrap().next().unwrap().unwrap().path();
    let note = fs::read_dir(fan).unwrap().next().unwrap().unwrap().path();
    fs::write(note, "not a note").unwrap();
    place.keep("wc -l < data.csv > lines", &["--contents=lazy"]);
    assert_eq!(place.run(&["contents", "data.csv"]).out, text);
}

/// A repository of git in which `data.csv` has this text and is committed. `None` without git.
fn committed(text: &str) -> Option<Place> {
    if !backstory_testkit::need::needs("contents in a git repository", &["git"]) {
        return None;
    }
    let place = Place::new();
    place.git(&["init", "-q"]);
    place.write_aged("data.csv", text);
    place.git(&["add", "data.csv"]);
    place.git(&["commit", "-qm", "First"]);
    Some(place)
}

#[test]
fn a_large_committed_file_is_not_copied_and_comes_from_the_repository_and_its_packs() {
    let text = large("first");
    let Some(place) = committed(&text) else {
        return;
    };
    place.keep("wc -c < data.csv > out", &["--contents=lazy"]);
    let (left, stored) = place.left_elsewhere();
    assert!(left == 1 && stored < text.len() as u64, "{left} {stored}");
    place.write_aged("data.csv", &(text.clone() + "one more line\n"));
    let from_git = || {
        assert_eq!(
            place.kept_ancestor("out", "data.csv").as_deref(),
            Some(text.as_str())
        );
        assert_eq!(place.run(&["store", "verify"]).status, 0);
    };
    from_git();
    // The first version becomes a delta to the second.
    place.git(&["commit", "-qam", "Second"]);
    place.git(&["gc", "-q"]);
    assert!(place.git(&["count-objects"]).starts_with("0 objects"));
    from_git();
}

#[test]
fn a_content_that_is_lost_with_its_repository_is_named_by_show() {
    let text = large("first");
    let Some(place) = committed(&text) else {
        return;
    };
    let run = place.keep("wc -c < data.csv > out", &["--contents=lazy"]);
    let lost = || {
        let shown = place.json(&["show", &run, "--json"]);
        shown["contents"]["not_kept"].as_array().unwrap().clone()
    };
    assert!(lost().is_empty());
    fs::remove_dir_all(place.path(".git")).unwrap();
    place.write_aged("data.csv", &large("second"));
    place
        .run(&["contents", "data.csv"])
        .is_error(1, &["a git repository", "is gone", "--self-contained"]);
    let lost = lost();
    assert_eq!(lost.len(), 1, "{lost:?}");
    assert!(lost[0]["path"].as_str().unwrap().ends_with("/data.csv"));
    let why = lost[0]["because"].as_str().unwrap();
    assert!(why.contains("a git repository"), "{why}");
}

#[test]
fn a_file_that_differs_from_its_commit_and_one_that_is_only_staged_are_stored() {
    let Some(place) = committed(&large("first")) else {
        return;
    };
    // A change that leaves the size.
    let texts = [large("fresh"), large("other")];
    place.write_aged("data.csv", &texts[0]);
    place.write_aged("staged.csv", &texts[1]);
    place.git(&["add", "staged.csv"]);
    place.keep("cat data.csv staged.csv > /dev/null", &["--contents=lazy"]);
    assert_eq!(place.left_elsewhere().0, 0);
    fs::remove_dir_all(place.path(".git")).unwrap();
    for (name, text) in ["data.csv", "staged.csv"].into_iter().zip(&texts) {
        place.write_aged(name, "");
        assert_eq!(&place.run(&["contents", name]).out, text);
    }
}
