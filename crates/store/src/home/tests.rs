//! Tests of the directory of a store.

use super::*;
use std::os::unix::fs::PermissionsExt;

fn from(chosen: Option<&str>, vars: &[(&str, &str)]) -> Result<PathBuf> {
    Home::directory_from(chosen.map(Path::new), |name| {
        vars.iter()
            .find(|(n, _)| *n == name)
            .map(|(_, v)| PathBuf::from(v))
    })
}

#[test]
fn the_store_is_where_the_first_source_says() {
    let all = [
        ("BACKSTORY_STORE", "/b"),
        ("XDG_DATA_HOME", "/x"),
        ("HOME", "/h"),
    ];
    assert_eq!(from(Some("/s"), &all).unwrap(), Path::new("/s"));
    assert_eq!(from(None, &all).unwrap(), Path::new("/b"));
    assert_eq!(from(None, &all[1..]).unwrap(), Path::new("/x/backstory"));
    assert_eq!(
        from(None, &all[2..]).unwrap(),
        Path::new("/h/.local/share/backstory")
    );
    assert_eq!(
        from(None, &[("XDG_DATA_HOME", "rel"), ("HOME", "/h")]).unwrap(),
        Path::new("/h/.local/share/backstory")
    );
}

#[test]
fn without_a_home_the_error_says_what_to_give() {
    let error = from(None, &[("HOME", "")]).unwrap_err();
    assert!(matches!(error, Error::NoHome));
    assert!(error.to_string().contains("--store"));
}

#[test]
fn a_new_store_has_mode_0700_and_its_format_number() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path().join("a/b");
    let home = Home::open(&dir).unwrap();
    assert_eq!(
        fs::metadata(&dir).unwrap().permissions().mode() & 0o777,
        0o700
    );
    assert_eq!(fs::read_to_string(dir.join("format")).unwrap(), "1\n");
    assert!(home.runs_dir().is_dir());
    Home::open(&dir).unwrap();
}

#[test]
fn a_file_in_place_of_the_store_is_refused() {
    let tmp = tempfile::tempdir().unwrap();
    let file = tmp.path().join("f");
    fs::write(&file, "").unwrap();
    for dir in [file.clone(), file.join("below")] {
        assert!(
            matches!(Home::open(&dir), Err(Error::NotADirectory(_))),
            "{dir:?}"
        );
    }
    assert!(matches!(
        Home::open_to_read(&file),
        Err(Error::NotADirectory(_))
    ));
    assert!(matches!(
        Home::open_to_read(&tmp.path().join("no")),
        Err(Error::NoStore(_))
    ));
}

#[test]
fn a_newer_format_is_refused_and_left_alone() {
    let tmp = tempfile::tempdir().unwrap();
    Home::open(tmp.path()).unwrap();
    fs::write(tmp.path().join("format"), "7\n").unwrap();
    assert!(matches!(
        Home::open(tmp.path()),
        Err(Error::NewerFormat {
            found: 7,
            known: 1,
            ..
        })
    ));
    assert_eq!(
        fs::read_to_string(tmp.path().join("format")).unwrap(),
        "7\n"
    );
    fs::write(tmp.path().join("format"), "x").unwrap();
    assert!(matches!(Home::open(tmp.path()), Err(Error::BadFormat(_))));
}

#[test]
fn run_ids_are_short_and_distinct() {
    let tmp = tempfile::tempdir().unwrap();
    let home = Home::open(tmp.path()).unwrap();
    let ids: std::collections::HashSet<_> = (0..500).map(|_| home.new_run_id()).collect();
    assert_eq!(ids.len(), 500);
    assert!(
        ids.iter()
            .all(|id| id.len() == 8 && id.bytes().all(|b| ALPHABET.contains(&b)))
    );
}

#[test]
fn finalized_and_unfinished_logs_are_listed_apart() {
    let tmp = tempfile::tempdir().unwrap();
    let home = Home::open(tmp.path()).unwrap();
    fs::write(home.log_path("aaaaaaaa"), "").unwrap();
    fs::write(home.part_path("bbbbbbbb"), "").unwrap();
    fs::write(home.runs_dir().join("note"), "").unwrap();
    assert_eq!(home.finalized().unwrap(), ["aaaaaaaa"]);
    assert_eq!(home.unfinished().unwrap(), ["bbbbbbbb"]);
}
