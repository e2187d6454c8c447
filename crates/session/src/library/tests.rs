//! Tests of the directory of the recorder's library.

use super::*;

#[test]
fn a_directory_that_others_can_write_into_is_refused() {
    let place = tempfile::tempdir().unwrap();
    for (mode, wanted) in [
        (0o777, false),
        (0o1777, false),
        (0o775, false),
        (0o755, true),
        (0o700, true),
    ] {
        let directory = place.path().join(format!("{mode:o}"));
        fs::create_dir(&directory).unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(extract(&directory, &PLAIN).is_ok(), wanted, "{mode:o}");
    }
}

#[test]
fn a_directory_that_others_can_rename_is_not_used() {
    let place = tempfile::tempdir().unwrap();
    for (mode, wanted) in [
        (0o777, false),
        (0o770, false),
        (0o1777, true),
        (0o755, true),
    ] {
        let store = place.path().join(format!("{mode:o}"));
        fs::create_dir(&store).unwrap();
        fs::set_permissions(&store, fs::Permissions::from_mode(mode)).unwrap();
        let entry = extract(&store.join("lib"), &PLAIN).unwrap();
        assert_eq!(Path::new(&entry).starts_with(&store), wanted, "{mode:o}");
    }
}

#[test]
fn each_form_of_the_recorder_is_extracted_whole() {
    let dir = tempfile::tempdir().unwrap();
    for form in [&PLAIN, &DEEP, &FUNCTIONS] {
        let entry = extract(dir.path(), form).unwrap();
        let library = fs::read(library_path(&entry)).unwrap();
        assert_eq!(library.len(), form.library.length());
        assert_eq!(library[..4], *b"\x7fELF");
        assert!(form.is_whole(Path::new(OsStr::from_bytes(&home(&entry)))));
    }
}

#[test]
fn every_spelling_of_lib_leads_to_a_library() {
    let dir = tempfile::tempdir().unwrap();
    let entry = extract(dir.path(), &PLAIN).unwrap();
    let entry = entry.to_str().unwrap();
    assert!(entry.ends_with("/$LIB/linux-backstory.so"));
    let read = |lib: &str| fs::read(entry.replacen(PRELOAD_ANY, lib, 1)).unwrap();
    for lib in WIDE {
        assert_eq!(read(lib), backstory_recorder::LIBRARY, "{lib}");
    }
    for lib in NARROW {
        assert_eq!(read(lib), backstory_recorder::TWIN32, "{lib}");
    }
    assert!(!read("lib").is_empty());
    assert_eq!(read(PRELOAD_WIDE), backstory_recorder::LIBRARY);
}

#[test]
fn extracting_twice_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let first = extract(dir.path(), &PLAIN).unwrap();
    let inode = fs::metadata(library_path(&first)).unwrap().ino();
    assert_eq!(extract(dir.path(), &PLAIN).unwrap(), first);
    assert_eq!(fs::metadata(library_path(&first)).unwrap().ino(), inode);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn a_cut_library_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = library_path(&extract(dir.path(), &PLAIN).unwrap());
    fs::write(fs::canonicalize(&path).unwrap(), b"cut").unwrap();
    extract(dir.path(), &PLAIN).unwrap();
    assert_eq!(fs::read(&path).unwrap(), backstory_recorder::LIBRARY);
}

#[test]
fn recordings_that_replace_a_cut_library_at_once_do_not_disturb_each_other() {
    for _ in 0..20 {
        let dir = tempfile::tempdir().unwrap();
        let path = library_path(&extract(dir.path(), &PLAIN).unwrap());
        fs::write(fs::canonicalize(&path).unwrap(), b"cut").unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    extract(dir.path(), &PLAIN).unwrap();
                    assert_eq!(fs::read(&path).unwrap(), backstory_recorder::LIBRARY);
                });
            }
        });
    }
}

#[test]
fn a_pipe_among_the_librarys_names_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let home = home(&extract(dir.path(), &PLAIN).unwrap());
    let home = Path::new(OsStr::from_bytes(&home));
    for name in links().map(|(place, _)| home.join(place).join(PRELOAD_NAME)) {
        fs::remove_file(&name).unwrap();
        let mode = rustix::fs::Mode::RWXU;
        rustix::fs::mknodat(rustix::fs::CWD, &name, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        extract(dir.path(), &PLAIN).unwrap();
        assert!(fs::metadata(&name).unwrap().is_file(), "{}", name.display());
    }
}

#[test]
fn a_directory_that_loaders_would_split_is_not_used() {
    let dir = tempfile::tempdir().unwrap();
    let entry = extract(&dir.path().join("a b:c"), &PLAIN).unwrap();
    assert!(
        entry.as_bytes().starts_with(b"/tmp/backstory-"),
        "{entry:?}"
    );
}
