//! Small lineages, drawn.

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
    Lineage {
        nodes,
        roots: 1,
        links,
        cut: false,
    }
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
    let lineage = Lineage {
        nodes: vec![file("/w/in", 0)],
        roots: 1,
        links: Vec::new(),
        cut: false,
    };
    assert_eq!(
        drawn(&lineage, Direction::Of, false),
        "/w/in\n└─ no recorded command made it\n"
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
    let text = drawn(
        &Lineage {
            nodes,
            roots: 1,
            links,
            cut: false,
        },
        Direction::Of,
        false,
    );
    assert!(text.ends_with("read /w/g  (shown above)\n"), "{text}");
}

#[test]
fn the_same_version_in_two_runs_is_one_node() {
    let nodes = vec![file("/w/x", 0), file("/w/x", 1), command("make", 1)];
    let links = vec![
        link(1, 0, Flow::Same),
        link(2, 1, Flow::Generated(Relation::Write)),
    ];
    let text = drawn(
        &Lineage {
            nodes,
            roots: 1,
            links,
            cut: false,
        },
        Direction::Of,
        false,
    );
    assert_eq!(text, "/w/x\n└─ written by make\n");
}

#[test]
fn possible_links_are_counted_and_shown_on_request() {
    let mut lineage = pipeline();
    lineage.links[1].certainty = Certainty::Possible;
    let text = drawn(&lineage, Direction::Of, false);
    assert!(
        text.ends_with(
            "(--possible shows 1 more link, of what could have happened but was not seen to)\n"
        ),
        "{text}"
    );
    let mut out = Vec::new();
    let drawing = Drawing {
        direction: Direction::Of,
        all: false,
        possible: true,
        here: b"/w",
        style: Style::PLAIN,
    };
    draw(&lineage, drawing, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains("├─ possibly read /w/in\n"), "{text}");
}

#[test]
fn a_pipe_is_passed_through() {
    let mut pipe = file("pipe:1", 1);
    let Node::Entity { kind, .. } = &mut pipe else {
        panic!()
    };
    *kind = EntityKind::Pipe;
    let nodes = vec![
        file("/w/out", 1),
        command("sort", 1),
        pipe,
        command("sh", 0),
        command("awk x", 1),
    ];
    let mut links = vec![
        link(1, 0, Flow::Generated(Relation::Write)),
        link(2, 1, Flow::Used(Relation::Read)),
        link(3, 2, Flow::Generated(Relation::Write)),
        link(4, 2, Flow::Generated(Relation::Write)),
    ];
    links[2].certainty = Certainty::Possible;
    let text = drawn(
        &Lineage {
            nodes,
            roots: 1,
            links,
            cut: false,
        },
        Direction::Of,
        false,
    );
    assert!(
        text.starts_with("/w/out\n└─ written by sort\n   └─ piped from awk x\n"),
        "{text}"
    );
}

#[test]
fn an_older_versions_derivation_does_not_hide_a_possible_writer() {
    let nodes = vec![
        file("/w/out", 2),
        file("/w/out", 1),
        command("one", 1),
        command("two", 1),
    ];
    let mut links = vec![
        link(1, 0, Flow::Derived),
        link(2, 0, Flow::Generated(Relation::Write)),
        link(3, 0, Flow::Generated(Relation::Write)),
    ];
    (links[1].certainty, links[2].certainty) = (Certainty::Possible, Certainty::Possible);
    let mut lineage = Lineage {
        nodes,
        roots: 1,
        links,
        cut: false,
    };
    let text = drawn(&lineage, Direction::Of, false);
    assert!(
        text.contains("possibly written by one\n") && text.contains("possibly written by two\n"),
        "{text}"
    );
    lineage.links[1].certainty = Certainty::Seen;
    let text = drawn(&lineage, Direction::Of, false);
    assert!(
        text.contains("─ written by one\n") && !text.contains("two"),
        "{text}"
    );
}

#[test]
fn a_write_open_of_an_unchanged_file_is_only_counted() {
    let nodes = vec![
        file("/w/out", 1),
        command("cc", 1),
        file("/w/control", 0),
        command("locker", 1),
        file("/w/other", 0),
    ];
    let mut links = vec![
        link(1, 0, Flow::Generated(Relation::Write)),
        link(2, 1, Flow::Used(Relation::Read)),
        link(3, 2, Flow::Generated(Relation::Write)),
        link(4, 3, Flow::Used(Relation::Read)),
    ];
    links[2].certainty = Certainty::Possible;
    let lineage = Lineage {
        nodes,
        roots: 1,
        links,
        cut: false,
    };
    let text = drawn(&lineage, Direction::Of, false);
    assert!(
        text.contains("read /w/control\n") && !text.contains("locker"),
        "{text}"
    );
    assert!(text.contains("(--possible shows 1 more link,"), "{text}");
}

#[test]
fn a_socket_leads_to_the_recorded_process_at_its_other_end() {
    let socket = |path: &str| {
        let mut node = file(path, 1);
        if let Node::Entity { kind, .. } = &mut node {
            *kind = EntityKind::Socket;
        }
        node
    };
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
    let lineage = Lineage {
        nodes,
        roots: 1,
        links,
        cut: false,
    };
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
fn a_seen_word_does_not_make_the_other_words_certain() {
    let mut pipe = file("pipe:1", 1);
    let Node::Entity { kind, .. } = &mut pipe else {
        panic!()
    };
    *kind = EntityKind::Pipe;
    let nodes = vec![file("/w/out", 1), command("cat", 1), pipe, command("sh", 0)];
    let mut links = vec![
        link(1, 0, Flow::Generated(Relation::Write)),
        link(2, 1, Flow::Used(Relation::Read)),
        link(3, 2, Flow::Generated(Relation::Write)),
        link(3, 1, Flow::Informed(Informed::Fork)),
    ];
    links[2].certainty = Certainty::Possible;
    let lineage = Lineage {
        nodes,
        roots: 1,
        links,
        cut: false,
    };
    let text = drawn(&lineage, Direction::Of, false);
    assert!(
        text.contains("started by and possibly piped from"),
        "{text}"
    );
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
    assert_eq!(
        drawn(
            &Lineage {
                nodes,
                roots: 1,
                links,
                cut: false
            },
            Direction::Of,
            false
        ),
        wanted
    );
}

#[test]
fn many_files_of_one_place_are_counted() {
    let mut lineage = Lineage {
        nodes: vec![file("/w/out", 1), command("py", 1)],
        roots: 1,
        ..Lineage::default()
    };
    lineage
        .links
        .push(link(1, 0, Flow::Generated(Relation::Write)));
    for n in 0..20 {
        lineage
            .links
            .push(link(lineage.nodes.len(), 1, Flow::Used(Relation::Read)));
        lineage.nodes.push(file(&format!("/opt/py/lib/{n}.py"), 0));
    }
    let text = drawn(&lineage, Direction::Of, false);
    assert!(
        text.contains("\n   └─ … and 20 files under /opt/py/lib\n"),
        "{text}"
    );
}

#[test]
fn a_chain_of_ten_thousand_commands_is_drawn_without_overflow() {
    let mut lineage = Lineage {
        nodes: vec![file("/w/0", 1)],
        roots: 1,
        links: Vec::new(),
        cut: false,
    };
    for step in 0..10_000 {
        lineage.nodes.push(command("next", 1));
        lineage.nodes.push(file("/w/f", 1));
        lineage.links.push(link(
            2 * step + 1,
            2 * step,
            Flow::Generated(Relation::Write),
        ));
        lineage
            .links
            .push(link(2 * step + 2, 2 * step + 1, Flow::Used(Relation::Read)));
    }
    let text = drawn(&lineage, Direction::Of, true);
    assert!(
        text.contains("… goes on: use --depth or --json\n"),
        "{}",
        text.len()
    );
}

/// `make` wrote /w/out from 100 objects, each of them made by a compiler from its own source.
fn build() -> Lineage {
    let mut lineage = Lineage {
        nodes: vec![file("/w/out", 1), command("ld", 1), command("make", 1)],
        roots: 1,
        ..Lineage::default()
    };
    let mut add = |from, to, flow| lineage.links.push(link(from, to, flow));
    add(1, 0, Flow::Generated(Relation::Write));
    add(2, 1, Flow::Informed(Informed::Fork));
    for n in 0..100 {
        let (object, compiler, source) = (3 * n + 3, 3 * n + 4, 3 * n + 5);
        add(object, 1, Flow::Used(Relation::Read));
        add(compiler, object, Flow::Generated(Relation::Write));
        add(source, compiler, Flow::Used(Relation::Read));
        add(2, compiler, Flow::Informed(Informed::Fork));
    }
    for n in 0..100 {
        lineage.nodes.push(file(&format!("/w/{n}.o"), 1));
        lineage.nodes.push(command(&format!("cc {n}.c"), 1));
        lineage.nodes.push(file(&format!("/w/{n}.c"), 1));
    }
    lineage
}

#[test]
fn a_tree_too_long_to_read_is_cut_to_the_nearest_nodes_and_counted() {
    let text = drawn(&build(), Direction::Of, false);
    assert!(text.lines().count() <= PAGE, "{text}");
    assert!(
        text.starts_with("/w/out\n└─ written by ld\n   ├─ read /w/0.o\n"),
        "{text}"
    );
    assert!(text.contains("started by make"), "{text}");
    assert!(text.contains("… and 91 files under /w\n"), "{text}");
    let last = text.lines().last().unwrap();
    assert_eq!(
        last,
        "… 91 more commands and 91 more files lie behind these: ask for one of them, or give --all or --json"
    );
}

#[test]
fn all_is_all_however_long() {
    let text = drawn(&build(), Direction::Of, true);
    assert!(text.lines().count() > 400 && !text.contains('…'), "{text}");
}

#[test]
fn the_crowd_behind_a_shared_pipe_is_counted() {
    let mut pipe = file("pipe:1", 1);
    let Node::Entity { kind, .. } = &mut pipe else {
        panic!()
    };
    *kind = EntityKind::Pipe;
    let mut lineage = Lineage {
        nodes: vec![file("/w/out", 1), command("make", 1), pipe],
        roots: 1,
        ..Lineage::default()
    };
    lineage.links = vec![
        link(1, 0, Flow::Generated(Relation::Write)),
        link(2, 1, Flow::Used(Relation::Read)),
    ];
    for node in 3..23 {
        lineage.nodes.push(command("cc", 1));
        let mut written = link(node, 2, Flow::Generated(Relation::Write));
        written.certainty = Certainty::Possible;
        lineage.links.push(written);
    }
    let text = drawn(&lineage, Direction::Of, false);
    assert!(
        text.starts_with("/w/out\n└─ written by make\n(--possible shows 2"),
        "{text}"
    );
    // A number of links that a reader can take in is printed in full.
    lineage.links.truncate(4);
    let text = drawn(&lineage, Direction::Of, false);
    assert_eq!(
        text.matches("possibly piped from cc\n").count(),
        2,
        "{text}"
    );
}

#[test]
fn a_command_line_as_long_as_a_page_is_shortened_with_a_note() {
    let mut lineage = pipeline();
    lineage.nodes[1] = command(&format!("cat {}", "é".repeat(1000)), 1);
    let text = drawn(&lineage, Direction::Of, false);
    assert!(
        text.contains("…  [6") && text.lines().all(|line| line.chars().count() < 500),
        "{text}"
    );
    assert!(drawn(&lineage, Direction::Of, true).contains(&"é".repeat(1000)));
}
