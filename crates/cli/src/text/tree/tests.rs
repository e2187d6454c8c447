//! Small lineages, drawn.

mod long;
mod possible;

use super::*;
use backstory_graph::model::{Informed, Interval, Relation};
use backstory_query::answer::{Flow, Link};

const ALWAYS: Interval = Interval { start: 0, end: 0 };

/// A file version.
pub fn file(path: &str, version: u32) -> Node {
    let (id, run) = (0, "r1".to_owned());
    Node::Entity {
        id,
        run,
        kind: EntityKind::File,
        path: path.as_bytes().into(),
        version,
        ident: None,
        digest: None,
        kept: false,
    }
}

/// A pipe or a socket.
fn of_kind(wanted: EntityKind, path: &str) -> Node {
    let mut node = file(path, 1);
    if let Node::Entity { kind, .. } = &mut node {
        *kind = wanted;
    }
    node
}

/// An exec epoch.
pub fn command(line: &str, epoch: u32) -> Node {
    Node::Activity {
        id: 0,
        run: "r1".to_owned(),
        pid: 1,
        epoch,
        exec_path: None,
        argv: line.split(' ').map(|word| word.as_bytes().into()).collect(),
        cwd: b"/w".as_slice().into(),
        interval: Interval {
            start: i64::MIN,
            end: 0,
        },
        env_set: Vec::new(),
        env_unset: Vec::new(),
    }
}

/// A link.
pub fn link(from: usize, to: usize, flow: Flow) -> Link {
    Link {
        from,
        to,
        flow,
        certainty: Certainty::Seen,
        interval: ALWAYS,
    }
}

/// The lineage of the first node.
fn lineage(nodes: Vec<Node>, links: Vec<Link>) -> Lineage {
    Lineage {
        nodes,
        roots: 1,
        links,
        cut: false,
        reach: Vec::new(),
    }
}

fn drawn(lineage: &Lineage, direction: Direction, all: bool) -> String {
    let mut out = Vec::new();
    let drawing = Drawing {
        direction,
        all,
        possible: false,
        here: b"/w",
        style: Style::PLAIN,
    };
    draw(lineage, drawing, &mut out).unwrap();
    String::from_utf8(out)
        .unwrap()
        .replace("  [run r1, at an unknown time]", "")
}

fn pipeline() -> Lineage {
    let nodes = vec![
        file("/w/out", 1),
        command("sort -u", 1),
        file("/w/in", 0),
        file("/usr/lib/libc.so.6", 0),
        file("/usr/lib/locale/C", 0),
        command("sh run.sh", 0),
        command("sh run.sh", 1),
        file("/w/run.sh", 0),
    ];
    let links = vec![
        link(1, 0, Flow::Generated(Relation::Write)),
        link(2, 1, Flow::Used(Relation::Read)),
        link(3, 1, Flow::Used(Relation::Read)),
        link(4, 1, Flow::Used(Relation::Read)),
        link(5, 1, Flow::Informed(Informed::Exec)),
        link(6, 5, Flow::Informed(Informed::Fork)),
        link(7, 6, Flow::Used(Relation::Read)),
    ];
    lineage(nodes, links)
}

#[test]
fn a_file_stands_over_its_command_and_that_over_its_inputs() {
    let wanted = "\
/w/out
└─ written by sort -u
   ├─ read /w/in
   ├─ started by sh run.sh
   │  └─ read /w/run.sh
   └─ … and 2 files under /usr/lib
(--all lists the files that were only counted)
";
    assert_eq!(drawn(&pipeline(), Direction::Of, false), wanted);
}

#[test]
fn all_lists_the_files_that_are_otherwise_counted() {
    let text = drawn(&pipeline(), Direction::Of, true);
    assert!(
        text.contains("read /usr/lib/libc.so.6\n") && !text.contains("--all"),
        "{text}"
    );
}

#[test]
fn effects_read_the_other_way() {
    let mut lineage = pipeline();
    lineage.nodes.swap(0, 2);
    for link in &mut lineage.links {
        for end in [&mut link.from, &mut link.to] {
            *end = match *end {
                0 => 2,
                2 => 0,
                other => other,
            };
        }
    }
    assert_eq!(
        drawn(&lineage, Direction::Uses, false),
        "/w/in\n└─ read by sort -u\n   └─ wrote /w/out\n"
    );
}

#[test]
fn a_file_without_a_recorded_maker_says_so() {
    let lineage = lineage(vec![file("/w/in", 0)], Vec::new());
    assert_eq!(
        drawn(&lineage, Direction::Of, false),
        "/w/in\n└─ no recorded command made it\n"
    );
}

#[test]
fn a_version_that_nothing_used_is_left_out_if_another_one_was_used() {
    let nodes = vec![file("/w/x", 0), file("/w/x", 1), command("cat x", 1)];
    let links = vec![link(1, 2, Flow::Used(Relation::Read))];
    let mut versions = lineage(nodes, links);
    versions.roots = 2;
    assert_eq!(
        drawn(&versions, Direction::Uses, false),
        "/w/x\n└─ read by cat x\n"
    );
}

#[test]
fn a_circle_of_epochs_ends() {
    // A writes g; B reads g and writes h; A reads h.
    let nodes = vec![
        file("/w/g", 1),
        command("a", 1),
        file("/w/h", 1),
        command("b", 1),
    ];
    let links = vec![
        link(1, 0, Flow::Generated(Relation::Write)),
        link(2, 1, Flow::Used(Relation::Read)),
        link(3, 2, Flow::Generated(Relation::Write)),
        link(0, 3, Flow::Used(Relation::Read)),
    ];
    let text = drawn(&lineage(nodes, links), Direction::Of, false);
    assert!(text.ends_with("read /w/g  (shown above)\n"), "{text}");
}

#[test]
fn the_same_version_in_two_runs_is_one_node() {
    let nodes = vec![file("/w/x", 0), file("/w/x", 1), command("make", 1)];
    let links = vec![
        link(1, 0, Flow::Same),
        link(2, 1, Flow::Generated(Relation::Write)),
    ];
    let text = drawn(&lineage(nodes, links), Direction::Of, false);
    assert_eq!(text, "/w/x\n└─ written by make\n");
}

#[test]
fn a_socket_leads_to_the_recorded_process_at_its_other_end() {
    let socket = |path: &str| of_kind(EntityKind::Socket, path);
    let nodes = vec![
        file("/w/figure", 1),
        command("kernel", 1),
        socket("tcp:127.0.0.1:4711"),
        socket("tcp:127.0.0.1:4712"),
        command("notebook", 1),
        socket("tcp:10.0.0.1:80"),
        file("/w/in", 0),
    ];
    let links = vec![
        link(1, 0, Flow::Generated(Relation::Write)),
        link(2, 1, Flow::Used(Relation::Read)),
        link(3, 1, Flow::Used(Relation::Read)),
        link(4, 2, Flow::Generated(Relation::Write)),
        link(4, 3, Flow::Generated(Relation::Write)),
        link(1, 3, Flow::Generated(Relation::Write)),
        link(5, 1, Flow::Used(Relation::Read)),
        link(6, 4, Flow::Used(Relation::Read)),
    ];
    let lineage = lineage(nodes, links);
    let wanted = "\
/w/figure
└─ written by kernel
   ├─ received from notebook
   │  └─ read /w/in
   └─ read tcp:10.0.0.1:80
";
    assert_eq!(drawn(&lineage, Direction::Of, false), wanted);
}

#[test]
fn the_memory_between_a_program_and_its_transaction_is_passed_through() {
    let memory = || of_kind(EntityKind::Memory, "memory:7");
    let nodes = vec![
        file("/w/report", 1),
        command("report", 1),
        memory(),
        command("transaction select", 1),
        memory(),
        file("/w/table", 1),
    ];
    let links = vec![
        link(1, 0, Flow::Generated(Relation::Write)),
        link(2, 1, Flow::Used(Relation::Read)),
        link(3, 2, Flow::Generated(Relation::Write)),
        link(4, 3, Flow::Used(Relation::Read)),
        link(1, 4, Flow::Generated(Relation::Write)),
        link(5, 3, Flow::Used(Relation::Read)),
    ];
    let lineage = lineage(nodes, links);
    let wanted = "\
/w/report
└─ written by report
   └─ received from transaction select
      └─ read /w/table
";
    assert_eq!(drawn(&lineage, Direction::Of, false), wanted);
}

#[test]
fn a_command_with_many_branches_is_unfolded_where_it_is_nearest() {
    // out <- b <- mid <- a, and both were started by sh, which read run.sh.
    let names = ["/w/out", "/w/mid", "/w/run.sh"].map(|path| file(path, 1));
    let [out, mid, script] = names;
    let nodes = vec![
        out,
        command("b", 1),
        mid,
        command("a", 1),
        command("sh run.sh", 1),
        script,
    ];
    let links = vec![
        link(1, 0, Flow::Generated(Relation::Write)),
        link(2, 1, Flow::Used(Relation::Read)),
        link(3, 2, Flow::Generated(Relation::Write)),
        link(4, 3, Flow::Informed(Informed::Fork)),
        link(4, 1, Flow::Informed(Informed::Fork)),
        link(5, 4, Flow::Used(Relation::Read)),
    ];
    let wanted = "\
/w/out
└─ written by b
   ├─ read /w/mid
   │  └─ written by a
   │     └─ started by sh run.sh  (shown below)
   └─ started by sh run.sh
      └─ read /w/run.sh
";
    assert_eq!(drawn(&lineage(nodes, links), Direction::Of, false), wanted);
}
