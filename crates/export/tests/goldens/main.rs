//! Every format writes a literal run exactly as its golden file in `tests/goldens/expected/` says.
//!
//! `BACKSTORY_BLESS=1 cargo test -p backstory-export --test goldens` writes the golden files anew;
//! read the difference before it is committed. Archives and databases are unpacked into text, so
//! that a difference can be read.
#![allow(clippy::unwrap_used)]

mod render;
#[path = "../../../workflow/tests/literal/scene.rs"]
mod scene;

use backstory_vocabulary::ContentsMode;
use std::fs;
use std::path::{Path, PathBuf};

use backstory_export::{ALL, Format, Level, Request, Shape, Subject, View};
use backstory_graph::model::{EntityKind, Relation};

use scene::Scene;

/// `sh build.sh`: two compilations, a link, and a pipeline that makes a report of a data file.
fn build() -> Scene {
    let mut scene = Scene::new("gold0001", &["sh", "build.sh"]);
    for directory in ["/usr", "/usr/bin", "/usr/include", "/w", "/w/src"] {
        scene.directory(directory);
    }
    let sh = scene.program(None, "/usr/bin/sh", &["sh", "build.sh"], (0, 90));
    let script = scene.before("/w/build.sh", "cc -c src/a.c\ncc -c src/b.c\n", 0o100_644);
    scene.edge(sh, script, Relation::Read, (1, 2));
    let header = scene.before("/w/src/a.h", "int f(void);\n", 0o100_644);
    let system = scene.before("/usr/include/stdio.h", "int puts(char *);\n", 0o100_644);
    scene.owned_by("dpkg", "libc6-dev:amd64", "2.36-9");
    let terminal = scene.entity(EntityKind::Device, "/dev/pts/0", 0);
    scene.standard(sh, [Some(terminal); 3]);
    let mut objects = Vec::new();
    for (name, start) in [("a", 10), ("b", 20)] {
        let (source, object) = (format!("src/{name}.c"), format!("{name}.o"));
        let argv = ["cc", "-c", &source, "-o", &object];
        let cc = scene.program(Some(sh), "/usr/bin/cc", &argv, (start, start + 8));
        let source = scene.before(
            &format!("/w/{source}"),
            &format!("/* {name} */\n"),
            0o100_644,
        );
        let object = scene.version(
            &format!("/w/{object}"),
            1,
            &format!("object {name}\n"),
            0o100_644,
        );
        scene.edge(cc, source, Relation::Read, (start + 1, start + 2));
        scene.edge(cc, header, Relation::Read, (start + 2, start + 3));
        scene.edge(cc, system, Relation::Read, (start + 3, start + 4));
        scene.edge(cc, object, Relation::Write, (start + 5, start + 6));
        objects.push(object);
    }
    let ld = scene.program(
        Some(sh),
        "/usr/bin/cc",
        &["cc", "a.o", "b.o", "-o", "prog"],
        (30, 38),
    );
    let program = scene.version("/w/prog", 1, "program\n", 0o100_755);
    for object in objects {
        scene.edge(ld, object, Relation::Read, (31, 32));
    }
    scene.edge(ld, program, Relation::Write, (33, 34));
    let pipe = scene.entity(EntityKind::Pipe, "pipe:7", 0);
    let data = scene.before("/w/data.txt", "b\na\nb\n", 0o100_644);
    let report = scene.version("/w/report.txt", 1, "a\nb\n", 0o100_600);
    let sort = scene.program(
        Some(sh),
        "/usr/bin/sort",
        &["sort", "-t", "it's", "data.txt"],
        (40, 46),
    );
    scene.edge(sort, data, Relation::Read, (41, 42));
    scene.edge(sort, pipe, Relation::Write, (43, 45));
    scene.standard(sort, [Some(terminal), Some(pipe), Some(terminal)]);
    let uniq = scene.program(Some(sh), "/usr/bin/uniq", &["uniq"], (40, 48));
    scene.edge(uniq, pipe, Relation::Read, (43, 46));
    scene.edge(uniq, report, Relation::Write, (46, 47));
    scene.standard(uniq, [Some(pipe), Some(report), Some(terminal)]);
    let missing = scene.entity(EntityKind::Missing, "/w/uniq.conf", 0);
    scene.edge(uniq, missing, Relation::Missing, (41, 41));
    scene
}

fn view(subject: Subject, level: Level) -> (View, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let contents = directory.path().join("contents");
    let store = build().store(&contents);
    let request = Request {
        level,
        contents: Some(contents),
        ..Request::new(subject)
    };
    (View::load(&store, &request).unwrap(), directory)
}

/// The output of a format, as text.
fn written(view: &View, format: &dyn Format) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out");
    backstory_export::export(view, format, &path).unwrap();
    match format.shape() {
        Shape::Stream => render::file(&fs::read(&path).unwrap()),
        Shape::Directory => render::directory(&path),
    }
}

fn expected(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/goldens/expected")
        .join(format!("{name}.txt"))
}

/// Compares with the golden files, all of them before it fails.
fn compare(found: Vec<(String, String)>) {
    let bless = std::env::var_os("BACKSTORY_BLESS").is_some();
    let mut wrong = Vec::new();
    for (name, text) in found {
        let path = expected(&name);
        if bless {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, &text).unwrap();
        } else if fs::read_to_string(&path).ok().as_deref() != Some(&text) {
            let now = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.txt"));
            fs::write(&now, &text).unwrap();
            wrong.push(format!("diff {} {}", path.display(), now.display()));
        }
    }
    assert!(wrong.is_empty(), "not as expected:\n{}", wrong.join("\n"));
}

#[test]
fn every_format_reads_as_many_bytes_of_contents_as_its_meter_expects() {
    let mut metered = Vec::new();
    for format in ALL {
        let (view, _directory) = view(Subject::Run("gold0001".to_owned()), Level::Command);
        written(&view, *format);
        let meter = &view.contents.meter;
        assert_eq!(meter.done(), meter.expected(), "{}", format.name());
        if meter.expected() > 0 {
            metered.push(format.name());
        }
    }
    for name in ["cyclonedx", "oci", "ro-crate"] {
        assert!(metered.contains(&name), "{name} is not among {metered:?}");
    }
}

/// The mode `all` behaves like `lazy`. The mode was once compared by the length of its name.
#[test]
fn a_container_of_a_run_whose_contents_are_not_stored_yet_advises_to_wait() {
    for mode in [ContentsMode::Lazy, ContentsMode::All] {
        let directory = tempfile::tempdir().unwrap();
        let mut scene = build();
        scene.header.modes.contents = Some(mode);
        scene.stored = false;
        let store = scene.store(directory.path());
        let view = View::load(&store, &Request::new(run())).unwrap();
        let format = backstory_export::find("oci-archive").unwrap();
        let error = backstory_export::export_to(&view, format, &mut Vec::new()).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("`backstory index --wait`"), "{mode}: {text}");
        assert!(text.contains("of run gold0001"), "{mode}: {text}");
    }
}

fn run() -> Subject {
    Subject::Run("gold0001".to_owned())
}

#[test]
fn every_format_writes_the_steps_of_a_literal_run_as_expected() {
    let (view, _directory) = view(run(), Level::Command);
    let all = ALL
        .iter()
        .map(|format| (format.name().to_owned(), written(&view, *format)));
    compare(all.collect());
}

#[test]
fn the_formats_of_the_graph_write_the_processes_of_a_literal_run_as_expected() {
    for (level, name) in [(Level::Process, "process"), (Level::All, "all")] {
        let (view, _directory) = view(run(), level);
        let graph = [
            "cdm",
            "dot",
            "ecs",
            "graphml",
            "mermaid",
            "ocsf",
            "parquet",
            "perfetto",
            "prov-json",
            "svg",
        ];
        let formats = ALL.iter().filter(|format| graph.contains(&format.name()));
        let all = formats.map(|format| {
            let text = written(&view, *format);
            (format!("{}-{name}", format.name()), text)
        });
        compare(all.collect());
    }
}

#[test]
fn an_export_of_a_file_holds_only_what_the_file_came_from() {
    let subject = Subject::Path(PathBuf::from("/w/report.txt"));
    let (view, _directory) = view(subject, Level::Command);
    let formats = ALL
        .iter()
        .filter(|format| ["dot", "shell", "cyclonedx"].contains(&format.name()));
    let all = formats.map(|format| (format!("{}-file", format.name()), written(&view, *format)));
    compare(all.collect());
}
