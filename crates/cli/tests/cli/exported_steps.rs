//! An export that is executed holds the steps that `rerun` would run: one definition of what is
//! behind a file.

use std::fs;
use std::path::PathBuf;

use backstory_testkit::need::needs;
use backstory_testkit::user::User;

use super::{Answer, Place};

/// `a/mk.sh` made `a/cfg`. A file with the same content was made by hand in `b`, and `b/out` from
/// it.
fn equal_contents() -> Place {
    let place = Place::new();
    for name in ["a", "b"] {
        place.stage.directory(&format!("work/{name}")).unwrap();
    }
    place.write_aged("a/mk.sh", "seq 1 100 > cfg\n");
    place.keep("cd a; sh mk.sh", &["--contents=lazy"]);
    let cfg = fs::read_to_string(place.path("a/cfg")).unwrap();
    place.write_aged("b/cfg", &cfg);
    place.keep("cd b; sort cfg > out", &["--contents=lazy"]);
    place
}

/// The text of all files of an export.
fn exported(place: &Place, format: &str, path: &str) -> String {
    let to = place.path(&format!("../exported-{format}"));
    let answer = place.run(&["export", format, path, "-o", &to]);
    assert_eq!(answer.status, 0, "{format}: {answer:?}");
    let mut text = String::new();
    let mut waiting = vec![PathBuf::from(to)];
    while let Some(at) = waiting.pop() {
        match at.is_dir() {
            true => waiting.extend(fs::read_dir(at).unwrap().map(|entry| entry.unwrap().path())),
            false => text += &String::from_utf8_lossy(&fs::read(at).unwrap()),
        }
    }
    text
}

#[test]
fn an_export_that_is_executed_has_no_step_that_only_made_an_equal_content() {
    let place = equal_contents();
    for format in [
        "make",
        "ninja",
        "shell",
        "snakemake",
        "cwl",
        "nextflow",
        "ro-crate",
        "dockerfile",
        "docker-archive",
        "oci-archive",
        "reprozip",
    ] {
        let text = exported(&place, format, "b/out");
        for part in ["mk.sh", "seq 1 100", "work/a/"] {
            assert!(!text.contains(part), "{format}: {part}");
        }
        assert!(text.contains("sort"), "{format}");
    }
}

#[test]
fn an_export_that_describes_joins_equal_contents_and_says_so() {
    let place = equal_contents();
    for format in ["dot", "graphml", "mermaid", "svg"] {
        let text = exported(&place, format, "b/out");
        assert!(text.contains("seq 1 100"), "{format}: {text}");
        // A line of the picture has no text.
        let says = format == "svg" || text.contains("same content");
        assert!(says, "{format}: {text}");
    }
}

/// The caller of `record` redirected the output, over two runs.
#[test]
fn a_file_that_the_caller_of_a_run_redirected_is_exported_as_rerun_makes_it() {
    if !needs("a makefile", &["make", "ninja"]) {
        return;
    }
    let place = Place::new();
    place.write_aged("in", "b\na\nc\n");
    place.sh("record sort -r in > mid; record head -n 1 < mid > out");
    let plan = place.json(&["rerun", "--dry-run", "--json", "out"]);
    assert_eq!(plan[0]["script"], "sort -r in > mid");
    for (format, file, tool) in [
        ("make", "again.mk", vec!["make", "-f", "again.mk"]),
        ("ninja", "again.ninja", vec!["ninja", "-f", "again.ninja"]),
        ("shell", "again.sh", vec!["sh", "again.sh"]),
    ] {
        let answer = place.run(&["export", format, "out", "-o", file]);
        assert_eq!((answer.status, answer.err.as_str()), (0, ""), "{format}");
        fs::remove_file(place.path("mid")).unwrap();
        fs::remove_file(place.path("out")).unwrap();
        let mut command = place.stage.command(tool[0]);
        let output = command.args(&tool[1..]).current_dir(place.work()).output();
        let made = Answer::of(output.unwrap());
        assert_eq!(made.status, 0, "{format}: {made:?}");
        let texts = ["mid", "out"].map(|name| fs::read_to_string(place.path(name)).unwrap());
        assert_eq!(texts, ["c\nb\na\n", "c\n"], "{format}");
    }
}

#[test]
fn an_export_has_the_step_that_made_the_present_file_and_not_a_failed_repetition() {
    let place = Place::new();
    place.write_aged("in", "one\n");
    place.write_aged("step.sh", "grep . in > out\n");
    place.keep("sh step.sh", &["--contents=lazy"]);
    place.write_aged("step.sh", "sort -u in > out; false\n");
    assert_eq!(place.run(&["rerun", "out"]).status, 1);
    let text = exported(&place, "make", "out");
    assert!(text.contains("grep . in > out"), "{text}");
    assert!(!text.contains("sort -u"), "{text}");
}

#[test]
fn a_file_that_no_step_made_has_no_workflow() {
    let place = Place::new();
    place.write_aged("in", "one\n");
    place.keep("sort in > out", &["--contents=lazy"]);
    place.run(&["export", "make", "in"]).is_error(1, &["in"]);
    place.run(&["rerun", "in"]).is_error(1, &["in"]);
    place
        .run(&["export", "make", "nothing.txt"])
        .is_error(1, &["nothing.txt"]);
}

/// A wheel with a compiled library, made by the project's own build backend.
const BACKEND: &str = r#"
import subprocess, zipfile
def build_wheel(directory, config_settings=None, metadata_directory=None):
    subprocess.check_call(["cc", "-shared", "-o", "part.so", "part.c"])
    name = "pkg-1.0-py3-none-any.whl"
    info = "pkg-1.0.dist-info/"
    with zipfile.ZipFile(directory + "/" + name, "w") as wheel:
        wheel.write("part.so")
        wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: pkg\nVersion: 1.0\n")
        wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(info + "RECORD", "part.so,,\n")
    return name
"#;

/// docs/export.md says why such a builder cannot be split.
#[track_caller]
fn is_one_step(place: &Place, line: &str, result: &str) {
    let recorded = place.run(&["record", "--", "sh", "-c", line]);
    assert_eq!(recorded.status, 0, "{recorded:?}");
    let text = exported(place, "make", result);
    let commands: Vec<&str> = text.lines().filter(|line| line.starts_with('\t')).collect();
    assert_eq!(commands, [format!("\t{line}")], "{text}");
    fs::remove_file(place.path(result)).unwrap();
    let makefile = place.path("../exported-make");
    let mut make = place.stage.command("make");
    let made = make
        .args(["-f", &makefile, result])
        .current_dir(place.work());
    let made = Answer::of(made.output().unwrap());
    assert_eq!(made.status, 0, "{made:?}");
    assert!(place.work().join(result).exists());
}

#[test]
fn a_build_with_cargo_is_one_step() {
    if !needs("a build with cargo", &["make", "cc"]) {
        return;
    }
    // The toolchain may be in a directory of root.
    let place = match User::ordinary() {
        User::Myself => Place::new(),
        _ => Place::of_root().unwrap(),
    };
    place.stage.directory("work/src").unwrap();
    place.write(
        "Cargo.toml",
        "[package]\nname = \"app\"\nedition = \"2021\"\n[workspace]\n",
    );
    place.write_aged("src/main.rs", "fn main() {}\n");
    let cargo = env!("CARGO");
    let rustc = std::path::Path::new(cargo).with_file_name("rustc");
    let line = format!(
        "{cargo} build -q --offline --config 'build.rustc=\"{}\"'",
        rustc.display()
    );
    is_one_step(&place, &line, "target/debug/app");
}

#[test]
fn an_installation_with_pip_is_one_step() {
    if !needs("an installation with pip", &["python3", "cc", "make"]) {
        return;
    }
    let place = Place::new();
    let pip = place
        .stage
        .command("python3")
        .args(["-m", "pip", "--version"])
        .output();
    if !pip.unwrap().status.success() {
        backstory_testkit::need::skipped("an installation with pip", "python3 has no pip");
        return;
    }
    let project =
        "[build-system]\nrequires = []\nbuild-backend = \"backend\"\nbackend-path = [\".\"]\n";
    place.write(
        "pyproject.toml",
        &format!("{project}[project]\nname = \"pkg\"\nversion = \"1.0\"\n"),
    );
    place.write("backend.py", BACKEND);
    place.write_aged("part.c", "int x;\n");
    let line = "python3 -m pip install -q --no-index --no-build-isolation --no-deps --upgrade --target=out .";
    is_one_step(&place, line, "out/part.so");
}

const SPEC: &str = "Name: hello\nVersion: 1.0\nRelease: 1\nSummary: x\nLicense: MIT\n\
    %description\nx\n%prep\ncp %{_sourcedir}/hello.c .\n%build\ncc -c hello.c -o hello.o\ncc hello.o -o hello\n\
    %install\nmkdir -p %{buildroot}/usr/bin\ncp hello %{buildroot}/usr/bin/hello\n%files\n/usr/bin/hello\n";

#[test]
fn a_build_of_an_rpm_package_is_one_step() {
    if !needs("a build of an RPM package", &["rpmbuild", "cc", "make"]) {
        return;
    }
    let place = Place::new();
    place.write("hello.spec", SPEC);
    place.write_aged("hello.c", "int main(void) { return 0; }\n");
    let here = place.path("");
    let here = here.trim_end_matches('/');
    let define = |name: &str| format!("--define '{name} {here}'");
    let line = format!(
        "rpmbuild {} {} --define '_rpmfilename hello.rpm' --define 'debug_package %{{nil}}' -bb hello.spec",
        define("_topdir"),
        define("_sourcedir"),
    );
    is_one_step(&place, &line, "RPMS/hello.rpm");
}
