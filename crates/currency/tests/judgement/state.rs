//! Present files, compared with their recorded versions.

use std::fs;
use std::path::Path;

use backstory_currency::{FileState, status};
use backstory_eventlog::run::RunEnd;
use backstory_files::Ident;
use backstory_graph::model::*;
use backstory_store::Store;

use crate::graph::*;

fn real(path: &Path) -> Option<Ident> {
    use std::os::unix::fs::MetadataExt;
    let m = fs::metadata(path).unwrap();
    let (mtime, ctime) = (
        m.mtime() * 1_000_000_000 + m.mtime_nsec(),
        m.ctime() * 1_000_000_000 + m.ctime_nsec(),
    );
    let (size, nlink) = (m.size() as i64, m.nlink() as u32);
    Some(Ident {
        dev: m.dev(),
        ino: m.ino(),
        size,
        mtime,
        ctime,
        birth: 0,
        mode: m.mode(),
        nlink,
    })
}

/// In `dir`: in → cc → tmp → cc → out, where tmp is gone.
fn build(store: &mut dyn Store, dir: &Path) {
    for name in ["in", "out", "other"] {
        fs::write(dir.join(name), name).unwrap();
    }
    let path = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    let mut graph = Graph::default();
    let cc = graph.activity(None, 1, "/bin/cc", 0);
    let (a, b) = (
        graph.file(&path("in"), 0, real(&dir.join("in"))),
        graph.file(&path("out"), 1, real(&dir.join("out"))),
    );
    let tmp = graph.file(&path("tmp"), 1, Some(ident(1, 1)));
    graph.edge(cc, a, Relation::Read, 1, 2);
    graph.edge(cc, tmp, Relation::Write, 3, 4);
    graph.edge(cc, tmp, Relation::Read, 5, 6);
    graph.edge(cc, b, Relation::Write, 7, 8);
    let unsure = graph.file(&path("unsure"), 1, None);
    graph.edge(cc, unsure, Relation::Write, 7, 8);
    fs::write(dir.join("unsure"), "").unwrap();
    graph.append(store, "run00001", 0);
}

#[test]
fn a_file_and_its_inputs_are_compared_with_what_the_run_left() {
    every_store(|store| {
        let tmp = tempfile::tempdir().unwrap();
        let dir = tmp.path().canonicalize().unwrap();
        build(store, &dir);
        let ask = |name: &str| status(store, &[dir.join(name)]).unwrap().remove(0);
        let out = ask("out");
        assert_eq!(
            (out.state, out.run.as_deref(), out.changed_inputs),
            (FileState::Current, Some("run00001"), vec![])
        );
        assert_eq!(ask("other").state, FileState::Unknown);
        assert_eq!(ask("in").state, FileState::Unknown);
        assert_eq!(ask("unsure").state, FileState::Uncertain);

        fs::write(dir.join("in"), "longer than before").unwrap();
        let input = bytes(dir.join("in").to_str().unwrap());
        assert_eq!(
            ask("out").changed_inputs,
            [(input.clone(), FileState::Modified)]
        );
        fs::remove_file(dir.join("in")).unwrap();
        assert_eq!(ask("out").changed_inputs, [(input, FileState::Removed)]);
        fs::write(dir.join("out"), "something else").unwrap();
        assert_eq!(ask("out").state, FileState::Modified);
        fs::remove_file(dir.join("out")).unwrap();
        assert_eq!(ask("out").state, FileState::Removed);
    });
}

#[test]
fn an_input_without_identity_that_changed_when_it_was_used_is_uncertain() {
    for (after, expected) in [(5, FileState::Uncertain), (40, FileState::Current)] {
        every_store(|store| {
            let tmp = tempfile::tempdir().unwrap();
            let dir = tmp.path().canonicalize().unwrap();
            for name in ["in", "out"] {
                fs::write(dir.join(name), name).unwrap();
            }
            let path = |name: &str| dir.join(name).to_str().unwrap().to_owned();
            let changed = real(&dir.join("in")).unwrap().ctime;
            let mut graph = Graph::default();
            let cc = graph.activity(None, 1, "/bin/cc", 0);
            let input = graph.file(&path("in"), 0, None);
            let output = graph.file(&path("out"), 1, real(&dir.join("out")));
            let used = changed + after * 1_000_000;
            graph.edge(cc, input, Relation::Read, used, used + 1);
            graph.edge(cc, output, Relation::Write, used + 2, used + 3);
            let end = RunEnd {
                command_ended: used + 100_000_000,
                ..end()
            };
            graph.append_until(store, &header("run00001", changed), &end);
            let out = status(store, &[dir.join("out")]).unwrap().remove(0);
            let changed = (bytes(&path("in")), FileState::Uncertain);
            match expected {
                FileState::Current => assert_eq!(out.state, FileState::Current),
                _ => assert_eq!(
                    (out.state, out.changed_inputs),
                    (FileState::Uncertain, vec![changed])
                ),
            }
        });
    }
}
