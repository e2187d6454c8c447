//! Descriptors that were not seen being made: the facts that the graph gets from lists of them, and
//! from the run's header.
#![allow(clippy::unwrap_used)]

use crate::common::{
    self, After, CREAT, OUT, RDONLY, RDWR, START, STEP, Scene, TRUNC, WRONLY, bytes, came_from,
    header, ident, told,
};
use backstory_eventlog::event::{Op, Outcome, Pid};
use backstory_files::Ident;
use backstory_graph::lineage::Follow;
use backstory_graph::memory::MemorySink;
use backstory_graph::{SLACK, fold};

/// A run whose command has no recorder.
fn unrecorded(command: &[&str]) -> Scene {
    let mut scene = Scene {
        header: header(command),
        events: Vec::new(),
        time: common::START,
        after: None,
        quiet: 0,
    };
    runs(&mut scene, 2, command);
    scene
}

fn born(scene: &mut Scene, pid: Pid, parent: Pid) {
    let (exe, cwd) = (bytes(""), bytes(""));
    scene.kernel(pid, Outcome::Done(0), Op::Born { parent, exe, cwd });
}

/// Adds the list of descriptors that `/proc` gives of a process now, or of those that its next exec
/// leaves.
fn list(scene: &mut Scene, pid: Pid, exec: bool, entries: &[(i32, i32, &str)]) {
    let head = Op::HeldDescriptor {
        fd: -1,
        flags: Some(i32::from(exec)),
        target: bytes(""),
    };
    scene.kernel(pid, Outcome::Done(entries.len() as i32), head);
    for &(fd, flags, target) in entries {
        let entry = Op::HeldDescriptor {
            fd,
            flags: Some(flags),
            target: bytes(target),
        };
        scene.kernel(pid, Outcome::Done(0), entry);
    }
}

fn runs(scene: &mut Scene, pid: Pid, argv: &[&str]) {
    let event = scene.exec(pid, &format!("/bin/{}", argv[0]), argv);
    (event.via, event.resolved) = (backstory_eventlog::event::Via::Kernel, true);
}

fn gone(scene: &mut Scene, pid: Pid) {
    scene.kernel(pid, Outcome::Done(0), Op::Gone { status: Some(0) });
}

const NULL: (i32, i32, &str) = (2, WRONLY, "/dev/null");

/// Adds `cat a | sort > c` of a static shell.
fn pipeline(scene: &mut Scene) {
    born(scene, 3, 2);
    list(
        scene,
        3,
        true,
        &[(0, RDONLY, "/dev/null"), (1, WRONLY, "pipe:[7]"), NULL],
    );
    runs(scene, 3, &["cat", "a"]);
    scene.kernel_open(3, "/w/a", RDONLY);
    born(scene, 4, 2);
    list(
        scene,
        4,
        false,
        &[(0, RDONLY, "pipe:[7]"), (1, WRONLY, "/dev/null"), NULL],
    );
    scene.kernel_open(4, "/w/c", OUT);
    list(
        scene,
        4,
        true,
        &[(0, RDONLY, "pipe:[7]"), (1, WRONLY, "/w/c"), NULL],
    );
    runs(scene, 4, &["sort"]);
    gone(scene, 3);
    gone(scene, 4);
}

#[test]
fn flows_through_a_static_shells_pipe_are_not_lost() {
    let mut scene = unrecorded(&["sh"]);
    pipeline(&mut scene);
    assert_eq!(
        told(&scene.graph()),
        "cat#1 Read a@0\n\
         cat#1 Write? pipe:[7]@0\n\
         sh#1 Fork cat#1\n\
         sh#1 Fork sort#1\n\
         sort#1 Read? pipe:[7]@0\n\
         sort#1 Write c@1"
    );
    let graph = scene.graph();
    assert_eq!(
        came_from(&graph, "/w/c", Follow::default()),
        ["a@0", "pipe:[7]@0"]
    );
}

#[test]
fn a_shell_that_starts_two_pipelines_does_not_join_them() {
    let mut scene = unrecorded(&["sh"]);
    pipeline(&mut scene);
    born(&mut scene, 5, 2);
    list(
        &mut scene,
        5,
        true,
        &[(0, RDONLY, "/dev/null"), (1, WRONLY, "pipe:[8]"), NULL],
    );
    runs(&mut scene, 5, &["cat", "b"]);
    scene.kernel_open(5, "/w/b", RDONLY);
    born(&mut scene, 6, 2);
    list(
        &mut scene,
        6,
        false,
        &[(0, RDONLY, "pipe:[8]"), (1, WRONLY, "/dev/null"), NULL],
    );
    scene.kernel_open(6, "/w/d", OUT);
    gone(&mut scene, 6);
    let graph = scene.graph();
    assert_eq!(
        came_from(&graph, "/w/d", Follow::default()),
        ["b@0", "pipe:[8]@0"]
    );
}

#[test]
fn the_maker_of_a_pipe_does_not_read_from_it_if_others_have_its_ends() {
    let mut scene = unrecorded(&["sh"]);
    list(&mut scene, 2, false, &[(3, RDONLY, "pipe:[7]"), NULL]);
    pipeline(&mut scene);
    assert!(!told(&scene.graph()).contains("sh#1 Read"));
}

#[test]
fn a_command_substitutions_input_flows_to_the_shell() {
    let mut scene = unrecorded(&["sh"]);
    born(&mut scene, 3, 2);
    list(&mut scene, 3, true, &[(1, WRONLY, "pipe:[7]"), NULL]);
    runs(&mut scene, 3, &["cat", "a"]);
    scene.kernel_open(3, "/w/a", RDONLY);
    gone(&mut scene, 3);
    scene.kernel_open(2, "/w/c", OUT);
    gone(&mut scene, 2);
    let graph = scene.graph();
    assert_eq!(
        told(&graph),
        "cat#1 Read a@0\n\
         cat#1 Write? pipe:[7]@0\n\
         sh#1 Fork cat#1\n\
         sh#1 Read? pipe:[7]@0\n\
         sh#1 Write c@1"
    );
}

#[test]
fn an_unobserved_child_between_two_pipes_counts_as_its_parent() {
    let mut scene = unrecorded(&["sh"]);
    born(&mut scene, 3, 2);
    list(&mut scene, 3, true, &[(1, WRONLY, "pipe:[7]"), NULL]);
    runs(&mut scene, 3, &["cat", "a"]);
    scene.kernel_open(3, "/w/a", RDONLY);
    born(&mut scene, 5, 2);
    list(&mut scene, 5, true, &[(0, RDONLY, "pipe:[8]"), NULL]);
    runs(&mut scene, 5, &["sort", "-o", "c"]);
    scene.kernel_open(5, "/w/c", OUT);
    let graph = scene.graph();
    assert_eq!(
        came_from(&graph, "/w/c", Follow::default()),
        ["a@0", "pipe:[7]@0", "pipe:[8]@0"]
    );
}

#[test]
fn a_recorded_program_uses_the_descriptors_that_a_static_shell_gave_it() {
    let mut scene = unrecorded(&["sh"]);
    born(&mut scene, 3, 2);
    scene.kernel_open(3, "/w/a", RDONLY);
    list(
        &mut scene,
        3,
        true,
        &[(0, RDONLY, "/w/a"), (1, WRONLY, "pipe:[7]"), NULL],
    );
    runs(&mut scene, 3, &["tr"]);
    scene.start(3, 2, false);
    scene.read(3, 0);
    scene.write(3, 1);
    gone(&mut scene, 3);
    assert_eq!(
        told(&scene.graph()),
        "sh#1 Fork tr#1\n\
         sh#1 Read? pipe:[7]@0\n\
         tr#1 Read a@0\n\
         tr#1 Write pipe:[7]@0"
    );
}

#[test]
fn the_pipes_of_a_recorded_parent_are_the_same_by_the_kernels_name() {
    let mut scene = Scene::new(&["sh"]);
    scene.pipe(2, 3, 4);
    scene.runs(2, 5, &["cat", "a"]);
    scene.close(5, 3);
    scene.open(5, "/w/a", RDONLY, 5);
    scene.read(5, 5);
    scene.write(5, 4);
    scene.close(2, 4);
    scene.fork(2, 6);
    scene.start(6, 2, true);
    scene.dup2(6, 3, 0);
    scene.close(6, 3);
    scene.exec(6, "/bin/static", &["static"]);
    // The process is met with its first child, which has the same pipe at another number.
    list(&mut scene, 6, false, &[(0, RDONLY, "pipe:[7]"), NULL]);
    born(&mut scene, 7, 6);
    list(
        &mut scene,
        7,
        true,
        &[(3, RDONLY, "pipe:[7]"), (1, WRONLY, "/w/c"), NULL],
    );
    runs(&mut scene, 7, &["sort"]);
    let graph = scene.graph();
    assert_eq!(
        came_from(&graph, "/w/c", Follow::default()),
        ["a@0", "c@0", "pipe:1@0"]
    );
}

#[test]
fn a_child_can_write_what_its_static_parent_opened_for_it() {
    let mut scene = unrecorded(&["go"]);
    scene.kernel_open(2, "/w/c", OUT);
    born(&mut scene, 3, 2);
    list(
        &mut scene,
        3,
        true,
        &[(0, RDONLY, "/dev/null"), (1, WRONLY, "/w/c"), NULL],
    );
    runs(&mut scene, 3, &["date"]);
    gone(&mut scene, 3);
    born(&mut scene, 4, 2);
    list(
        &mut scene,
        4,
        true,
        &[(0, RDONLY, "/dev/null"), (1, WRONLY, "/dev/null"), NULL],
    );
    runs(&mut scene, 4, &["true"]);
    assert_eq!(
        told(&scene.graph()),
        "date#1 Write? c@1\n\
         go#1 Fork date#1\n\
         go#1 Fork true#1\n\
         go#1 Write c@1"
    );
}

#[test]
fn a_descriptor_missing_from_a_list_was_closed() {
    let mut scene = unrecorded(&["go"]);
    scene.kernel_open(2, "/w/a", RDONLY);
    list(&mut scene, 2, false, &[NULL]);
    scene.writes(3, "/w/a", RDWR | CREAT | TRUNC);
    let graph = scene.graph();
    let read = graph
        .edges
        .iter()
        .find(|e| e.relation == backstory_graph::model::Relation::Read)
        .unwrap();
    assert_eq!(
        (read.interval.start, read.interval.end),
        (scene.at(2), scene.at(4))
    );
}

#[test]
fn a_list_that_was_cut_short_ends_with_the_next_event() {
    let mut scene = unrecorded(&["go"]);
    scene.kernel_open(2, "/w/a", RDONLY);
    list(&mut scene, 2, false, &[NULL, (3, RDWR, "/w/b")]);
    scene.events.pop();
    scene.kernel_open(2, "/w/c", OUT);
    assert_eq!(told(&scene.graph()), "go#1 Read a@0\ngo#1 Write c@1");
}

#[test]
fn inherited_descriptors_are_used_only_in_their_open_modes() {
    let mut scene = unrecorded(&["filter"]);
    scene.header.descriptors = [
        (0, "pipe:[1]"),
        (1, "pipe:[2]"),
        (2, "/w/log"),
        (3, "pipe:[3]"),
    ]
    .map(|(fd, text)| (fd, text.as_bytes().to_vec()))
    .to_vec();
    scene.header.descriptor_flags = vec![RDONLY, WRONLY, RDWR, -1];
    assert_eq!(
        told(&scene.graph()),
        "filter#1 Read? log@0\n\
         filter#1 Read? log@1\n\
         filter#1 Read? pipe:[1]@0\n\
         filter#1 Read? pipe:[3]@0\n\
         filter#1 Write? log@1\n\
         filter#1 Write? pipe:[2]@0\n\
         filter#1 Write? pipe:[3]@0\n\
         log@1 from log@0"
    );
}

/// The graph of a static program whose output is `log`. The file had the identity `before` when the
/// program started, and `after` when it had ended. Its last time stamp is one tick before the
/// program's end.
fn output(before: Ident, after: Ident) -> String {
    let mut scene = unrecorded(&["filter"]);
    scene.header.descriptors = vec![(1, b"/w/log".to_vec())];
    scene.header.descriptor_flags = vec![WRONLY];
    scene.header.descriptor_files = vec![Some(before)];
    scene.kernel_open(2, "/w/a", RDONLY);
    let mut end = scene.end();
    end.descriptor_files = vec![Some(after)];
    let mut known = After::default();
    let late = end.ended - SLACK / 2;
    known
        .files
        .insert(b"/w/log".to_vec(), ident(7, START - STEP, late));
    let mut sink = MemorySink::default();
    fold(&scene.header, Some(&end), scene.events, &known, &mut sink).unwrap();
    told(&sink)
}

#[test]
fn writes_to_inherited_output_after_the_end_are_not_the_commands() {
    let before = ident(7, START - STEP, START - SLACK / 2);
    assert!(
        output(before, before).contains("filter#1 Write? log@0"),
        "{}",
        output(before, before)
    );
}

#[test]
fn inherited_output_that_changed_while_the_command_ran_is_the_commands() {
    let before = ident(7, START - STEP, START - SLACK / 2);
    let after = ident(7, START - STEP, START + STEP);
    assert!(
        output(before, after).contains("filter#1 Write log@1"),
        "{}",
        output(before, after)
    );
}

fn unix(path: &str) -> Box<[u8]> {
    [&[1, 0], path.as_bytes(), &[0]].concat().into()
}

#[test]
fn a_socket_that_is_not_there_is_missing_and_no_peer() {
    let mut scene = unrecorded(&["id"]);
    let address = unix("/var/run/nscd/socket");
    let event = scene.kernel(
        2,
        Outcome::Predicted(-2),
        Op::Connect {
            fd: 3,
            kind: 1,
            address,
        },
    );
    event.resolved = false;
    assert_eq!(told(&scene.graph()), "id#1 Missing /var/run/nscd/socket@0");
}

#[test]
fn a_static_server_and_its_client_by_another_spelling_are_joined() {
    let mut scene = unrecorded(&["server"]);
    scene.kernel_open(2, "/w/a", RDONLY);
    let bind = Op::Bind {
        fd: 3,
        address: unix("/w/socket"),
    };
    scene.kernel(2, Outcome::Unknown, bind);
    born(&mut scene, 3, 2);
    runs(&mut scene, 3, &["client"]);
    let connect = Op::Connect {
        kind: 1,
        fd: 3,
        address: unix("socket"),
    };
    scene.kernel(3, Outcome::Unknown, connect).resolved = false;
    scene.kernel_open(3, "/w/c", OUT);
    let graph = scene.graph();
    assert!(
        came_from(&graph, "/w/c", Follow::default()).contains(&"a@0".to_owned()),
        "{}",
        told(&graph)
    );
}

#[test]
fn a_program_that_runs_itself_again_is_called_by_its_name() {
    let mut scene = unrecorded(&["busybox"]);
    scene.exec(2, "/proc/self/exe", &["cat"]);
    let graph = scene.graph();
    assert!(
        graph
            .activities
            .values()
            .all(|a| a.exec_path.as_deref() == Some(b"/bin/busybox"))
    );
}
