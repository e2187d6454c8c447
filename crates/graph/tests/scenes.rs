//! Small named stories and the graph each of them is.

mod common;

use common::*;

fn check(scene: &Scene, expected: &str) {
    let graph = scene.graph();
    let expected: Vec<&str> = expected
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect();
    let told = told(&graph);
    assert_eq!(told.lines().collect::<Vec<_>>(), expected, "\n{told}\n");
}

#[test]
fn cp_reads_one_file_and_writes_the_other() {
    let mut s = Scene::new(&["cp", "a", "b"]);
    s.open(2, "a", RDONLY, 3);
    s.open(2, "b", OUT, 4);
    s.read(2, 3);
    s.write(2, 4);
    s.close(2, 3);
    s.close(2, 4);
    check(
        &s,
        "cp#1 Read a@0
         cp#1 Write b@1",
    );
    let graph = s.graph();
    assert_eq!(
        graph.activities.len(),
        1,
        "the command is one activity: {:?}",
        graph.activities
    );
    let cp = graph.activities.values().next().unwrap();
    assert_eq!(cp.exec_path.as_deref(), Some(&b"/bin/cp"[..]));
    assert_eq!((cp.epoch, cp.exit, cp.parent), (1, Some(0), None));
}

#[test]
fn a_pipe_joins_writer_and_reader() {
    let mut s = Scene::new(&["sh"]);
    s.pipe(2, 3, 4);
    s.fork(2, 3);
    s.fork(2, 4);
    s.close(2, 3);
    s.close(2, 4);
    for (pid, from, to, name) in [(3, 4, 1, "cat"), (4, 3, 0, "sort")] {
        s.start(pid, 2, true);
        s.dup2(pid, from, to);
        s.close(pid, 3);
        s.close(pid, 4);
        s.exec(pid, &format!("/bin/{name}"), &[name]);
        s.start(pid, 2, false);
    }
    s.reads(3, "a");
    s.write(3, 1);
    s.read(4, 0);
    s.writes(4, "b", OUT);
    check(
        &s,
        "cat#1 Read a@0
         cat#1 Write pipe:1@0
         sh#1 Fork cat#1
         sh#1 Fork sort#1
         sort#1 Read pipe:1@0
         sort#1 Write b@1",
    );
}
