//! The versions of packages in an answer are those of the run, and not those installed now.

use std::fs;

use super::Place;

const SITE: &str = "v/lib/python3.11/site-packages";

/// An environment with the package `tab` in a version. Its record lists the module, and a compiled
/// form that another version of Python made is not in it.
fn install(place: &Place, version: &str) {
    let site = place.work().join(SITE);
    let _ = fs::remove_dir_all(&site);
    let records = site.join(format!("tab-{version}.dist-info"));
    fs::create_dir_all(&records).unwrap();
    fs::create_dir_all(site.join("tab/__pycache__")).unwrap();
    fs::write(place.work().join("v/pyvenv.cfg"), "home = /usr/bin\n").unwrap();
    fs::write(
        records.join("RECORD"),
        "tab/__init__.py,,\ntab/__pycache__/a.pyc,,\n",
    )
    .unwrap();
    fs::write(site.join("tab/__init__.py"), version).unwrap();
    fs::write(site.join("tab/__pycache__/a.pyc"), version).unwrap();
    place.age(&format!("{SITE}/tab/__pycache__/a.pyc"));
}

fn packages(place: &Place, path: &str) -> Vec<String> {
    let answer = place.run(&["of", path, "--packages"]).out;
    let lines = answer.lines().filter(|line| line.starts_with("tab"));
    lines.map(str::to_owned).collect()
}

#[test]
fn the_version_is_that_of_the_run() {
    let place = Place::new();
    install(&place, "1.0");
    let line = format!("cat {SITE}/tab/__init__.py {SITE}/tab/__pycache__/a.pyc > out");
    let old = place.keep(&line, &[]);
    assert_eq!(packages(&place, "out"), ["tab 1.0 (venv): 2 files"]);
    install(&place, "2.0");
    assert_eq!(packages(&place, "out"), ["tab 1.0 (venv): 2 files"]);
    let new = place.keep(&line, &[]);
    assert_eq!(
        packages(&place, &format!("out@{new}")),
        ["tab 2.0 (venv): 2 files"]
    );
    assert_eq!(
        packages(&place, &format!("out@{old}")),
        ["tab 1.0 (venv): 2 files"]
    );
    let text = place.run(&["diff", &old, &new]).out;
    assert!(
        text.contains("  package tab  1.0 → 2.0  (2 files)"),
        "{text}"
    );
    assert!(!text.contains("a.pyc"), "{text}");
}

/// Python reads the compiled form of a module only.
#[test]
fn a_package_of_which_only_compiled_modules_were_read_is_named() {
    let place = Place::new();
    install(&place, "1.0");
    place.keep(&format!("cat {SITE}/tab/__pycache__/a.pyc > out"), &[]);
    assert_eq!(packages(&place, "out"), ["tab 1.0 (venv): 1 file"]);
    // Compiled modules of the user's own are of no package, and are not counted.
    let others = |line: &str| {
        place.keep(line, &[]);
        let answer = place.run(&["of", "own", "--packages"]).out;
        let found = answer.lines().find(|line| line.starts_with("no package"));
        found.map(str::to_owned)
    };
    fs::create_dir(place.work().join("__pycache__")).unwrap();
    place.write_aged("__pycache__/own.pyc", "x");
    place.write_aged("plain", "x");
    let none = others("cat plain > own");
    assert_eq!(others("cat __pycache__/own.pyc > own"), none);
}

/// The contents of the run were not stored, and another version is there now.
#[test]
fn a_version_that_nothing_tells_is_left_out() {
    let place = Place::new();
    install(&place, "1.0");
    let line = format!("cat {SITE}/tab/__init__.py > out");
    place.keep(&line, &["--contents=off"]);
    assert_eq!(packages(&place, "out"), ["tab 1.0 (venv): 1 file"]);
    install(&place, "2.0.1");
    assert_eq!(packages(&place, "out"), ["tab (venv): 1 file"]);
}
