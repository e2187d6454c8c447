//! Builds that a packaging tool starts, exported as the commands below the tool.

use std::collections::BTreeMap;
use std::process::Command;

use super::Place;
use super::pipeline::{made_again, text, tool};
use backstory_testkit::need::needs;

#[test]
fn a_file_below_a_renamed_directory_is_made_by_the_step_that_renamed_it() {
    let place = Place::new();
    place.write_aged(
        "run.sh",
        "mkdir -p out tmp
seq 3 > tmp/a
mv tmp moved
sort -r moved/a > out/a
rm -r moved
",
    );
    assert_eq!(place.run(&["record", "--", "sh", "run.sh"]).status, 0);
    made_again(&place, "make", tool(&place, &["make", "-f", "again"]));
}

#[test]
fn a_list_of_a_directory_is_made_before_the_files_that_it_lacks() {
    let place = Place::new();
    place.write_aged(
        "run.sh",
        "mkdir -p out out/d
ls out/d >> out/list
seq 3 > out/d/x
cat out/d/x >> out/list
",
    );
    assert_eq!(place.run(&["record", "--", "sh", "run.sh"]).status, 0);
    made_again(&place, "make", tool(&place, &["make", "-f", "again"]));
}

/// The rules of a package: a program of two sources, in a package that `dpkg-deb` builds.
const RULES: &str = "#!/usr/bin/make -f
clean:
\trm -rf out
build: out/prog
out/prog: out/a.o out/b.o
\tgcc -o $@ $^
out/%.o: %.c
\tmkdir -p out
\tgcc -c -o $@ $<
binary: build
\tmkdir -p out/root/DEBIAN out/root/usr/bin
\tinstall -m 755 out/prog out/root/usr/bin/prog
\tdpkg-gencontrol -Pout/root
\tdpkg-deb --root-owner-group -b out/root ..
";

fn package(place: &Place, rules: &str) {
    for directory in ["debian", "debian/source"] {
        place.stage.directory(&format!("work/{directory}")).unwrap();
    }
    for (name, text) in [
        ("a.c", "int b(void);\nint main(void) { return b(); }\n"),
        ("b.c", "int b(void) { return 0; }\n"),
        (
            "debian/control",
            "Source: prog\nSection: misc\nPriority: optional\nMaintainer: A B <a@b.invalid>\nRules-Requires-Root: no\n\n\
             Package: prog\nArchitecture: any\nDescription: a program\n Of two sources.\n",
        ),
        (
            "debian/changelog",
            "prog (1.0) unstable; urgency=low\n\n  * First.\n\n -- A B <a@b.invalid>  Mon, 02 Jan 2023 10:00:00 +0000\n",
        ),
        ("debian/source/format", "3.0 (native)\n"),
        ("debian/rules", rules),
    ] {
        place.write_aged(name, text);
    }
    use std::os::unix::fs::PermissionsExt;
    let rules = place.work().join("debian/rules");
    std::fs::set_permissions(rules, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// The packages that were built, by name.
fn packages(place: &Place) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(place.stage.path()).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let packages = paths.filter(|path| path.extension().is_some_and(|ending| ending == "deb"));
    packages
        .map(|path| (path.display().to_string(), std::fs::read(path).unwrap()))
        .collect()
}

/// Records `dpkg-buildpackage` and exports it to the makefile `again`. Returns the packages that
/// were built, and the exported rules.
fn built_and_exported(place: &Place) -> (BTreeMap<String, Vec<u8>>, String) {
    let build = ["dpkg-buildpackage", "-us", "-uc", "-b", "-d"];
    let answer = place.run(&[&["record", "--"][..], &build].concat());
    assert_eq!(answer.status, 0, "{answer:?}");
    let built = packages(place);
    assert!(!built.is_empty());
    assert_eq!(place.run(&["export", "make", "-o", "again"]).status, 0);
    let rules = std::fs::read_to_string(place.work().join("again")).unwrap();
    (built, rules)
}

/// The exported makefile builds these packages, byte by byte.
#[track_caller]
fn gives_the_same(place: &Place, built: &BTreeMap<String, Vec<u8>>) {
    let output = tool(place, &["make", "-f", "again"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    assert!(packages(place) == *built, "a package has other bytes");
}

#[test]
fn a_debian_package_is_exported_as_its_compilations_and_gives_the_same_bytes() {
    let tools = ["dpkg-buildpackage", "dpkg-deb", "make", "gcc"];
    if !needs("export of a Debian package", &tools) {
        return;
    }
    let place = Place::new();
    package(&place, RULES);
    let (before, rules) = built_and_exported(&place);
    for rule in [
        "\nout/a.o out/b.o: out/%.o: %.c\n",
        "\nout/prog: out/a.o out/b.o\n",
    ] {
        assert!(rules.contains(rule), "{rule} in {rules}");
    }
    assert!(!rules.contains("dpkg-buildpackage"), "{rules}");
    for package in before.keys() {
        std::fs::remove_file(package).unwrap();
    }
    std::fs::remove_dir_all(place.work().join("out")).unwrap();
    gives_the_same(&place, &before);
}

#[test]
fn a_package_of_debhelper_is_exported_as_its_compilations_and_gives_the_same_bytes() {
    let tools = ["dpkg-buildpackage", "dh", "make", "gcc"];
    if !needs("export of a package of debhelper", &tools) {
        return;
    }
    let place = Place::new();
    package(&place, "#!/usr/bin/make -f\n%:\n\tdh $@\n");
    place.write_aged("debian/compat", "13\n");
    place.write_aged(
        "Makefile",
        "prog: a.o b.o\n\tgcc -o $@ $^\n%.o: %.c\n\tgcc -g -c -o $@ $<\n\
         install: prog\n\tmkdir -p $(DESTDIR)/usr/bin\n\tinstall -m 755 prog $(DESTDIR)/usr/bin/prog\n\
         clean:\n\trm -f prog *.o\n",
    );
    let (before, rules) = built_and_exported(&place);
    for rule in ["\na.o b.o: %.o: %.c\n", "\nprog: a.o b.o\n"] {
        assert!(rules.contains(rule), "{rule} in {rules}");
    }
    let clean = Command::new("sh")
        .args(["-c", "rm -rf ../*.deb ../*.changes ../*.buildinfo *.o prog debian/prog debian/.debhelper debian/files debian/*.substvars"])
        .current_dir(place.work())
        .status()
        .unwrap();
    assert!(clean.success());
    gives_the_same(&place, &before);
}
