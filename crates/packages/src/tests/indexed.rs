//! The index of dpkg's lists gives the answers of the lists.

use super::*;

const PATHS: [&str; 7] = [
    "/bin/tool",
    "/usr/bin/tool",
    "/etc/a.conf",
    "/usr/share/both",
    "/usr/share/both.moved",
    "/usr/share/none",
    "/usr/share/new",
];

fn records(root: &Path) {
    let info = |file: &str, text: &str| write(root, &format!("var/lib/dpkg/info/{file}"), text);
    info(
        "a:amd64.list",
        "/.\n/bin\n/bin/tool\n/etc/a.conf\n/usr/share/both\n",
    );
    info("b.list", "/usr/share/both\n");
    info("unlisted.list", "/usr/share/new\n");
    status(root, "");
    let diversions = "/usr/share/both\n/usr/share/both.moved\nb\n";
    write(root, "var/lib/dpkg/diversions", diversions);
}

fn status(root: &Path, more: &str) {
    let hello = "b1946ac92492d2347c6235b4d2611184";
    let text = format!(
        "Package: a\nArchitecture: amd64\nVersion: 1.0-1\nConffiles:\n /etc/a.conf {hello}\n\n\
         Package: b\nArchitecture: all\nVersion: 2\n\n{more}"
    );
    // As dpkg does: a new file takes the place of the old one.
    write(root, "var/lib/dpkg/status-new", &text);
    let dpkg = root.join("var/lib/dpkg");
    fs::rename(dpkg.join("status-new"), dpkg.join("status")).unwrap();
}

fn answers(mut packages: Packages) -> Vec<Option<String>> {
    let name = |package: PackageId| package.to_string();
    let all = PATHS.iter();
    all.map(|path| packages.package(path.as_bytes()).map(name))
        .collect()
}

/// Asks until the index is there. It is not made while dpkg may be at work.
fn make_index(root: &Path, index: &Path) -> Vec<Option<String>> {
    loop {
        let found = answers(Packages::indexed(root, index));
        if index.exists() {
            return found;
        }
    }
}

#[test]
fn an_index_answers_as_the_lists_until_a_package_changes() {
    let tmp = tempfile::tempdir().unwrap();
    let (root, index) = (tmp.path(), tmp.path().join("packages.index"));
    records(root);
    let of_lists = answers(Packages::new(root));
    assert!(of_lists[0].as_ref().is_some_and(|name| name.contains("a ")));
    assert_eq!(of_lists[6], None, "its version is not known");
    assert_eq!(make_index(root, &index), of_lists);
    // Only the index can tell it now: its stamp does not know the content of a list.
    write(root, "var/lib/dpkg/info/a:amd64.list", "");
    assert_ne!(answers(Packages::new(root)), of_lists);
    assert_eq!(answers(Packages::indexed(root, &index)), of_lists);
    // A question for a checksum reads the status.
    let mut packages = Packages::indexed(root, &index);
    let owner = told(&mut packages, "/etc/a.conf".as_ref(), "hello\n");
    assert_eq!(owner, Some(("dpkg a:amd64 1.0-1".to_owned(), true)));

    status(root, "Package: unlisted\nArchitecture: all\nVersion: 7\n");
    let changed = answers(Packages::indexed(root, &index));
    assert_eq!(changed, answers(Packages::new(root)));
    assert!(changed[6].is_some());
}

#[test]
fn a_damaged_index_is_not_used() {
    let tmp = tempfile::tempdir().unwrap();
    let (root, index) = (tmp.path(), tmp.path().join("packages.index"));
    records(root);
    let wanted = make_index(root, &index);
    let whole = fs::read(&index).unwrap();
    let bounds = 48..48 + 4 * 4097;
    for cut in [
        0,
        7,
        20,
        47,
        50,
        bounds.end,
        bounds.end + 5,
        whole.len() - 1,
    ] {
        fs::write(&index, &whole[..cut]).unwrap();
        assert_eq!(answers(Packages::indexed(root, &index)), wanted, "{cut}");
    }
    for changed in [0, 9, 40, 44, bounds.start, bounds.end - 1] {
        let mut bytes = whole.clone();
        bytes[changed] ^= 0xff;
        fs::write(&index, bytes).unwrap();
        assert_eq!(
            answers(Packages::indexed(root, &index)),
            wanted,
            "{changed}"
        );
    }
    fs::remove_file(&index).unwrap();
    fs::create_dir(&index).unwrap();
    assert_eq!(answers(Packages::indexed(root, &index)), wanted);
}

#[test]
fn an_index_of_another_format_is_made_anew() {
    let tmp = tempfile::tempdir().unwrap();
    let (root, index) = (tmp.path(), tmp.path().join("packages.index"));
    records(root);
    let wanted = make_index(root, &index);
    let whole = fs::read(&index).unwrap();
    for format in [1, whole[7] + 1] {
        let mut other = whole.clone();
        other[7] = format;
        fs::write(&index, &other).unwrap();
        let found = answers(Packages::indexed(root, &index));
        assert_eq!(found, wanted, "format {format}");
        assert_eq!(fs::read(&index).unwrap(), whole, "format {format}");
    }
}
