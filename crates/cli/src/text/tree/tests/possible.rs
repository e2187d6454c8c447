//! Links of which it is not certain that they happened.

use super::*;

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
    let pipe = of_kind(EntityKind::Pipe, "pipe:1");
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
    let text = drawn(&lineage(nodes, links), Direction::Of, false);
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
    let mut lineage = lineage(nodes, links);
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
    let lineage = lineage(nodes, links);
    let text = drawn(&lineage, Direction::Of, false);
    assert!(
        text.contains("read /w/control\n") && !text.contains("locker"),
        "{text}"
    );
    assert!(text.contains("(--possible shows 1 more link,"), "{text}");
}

#[test]
fn a_seen_word_does_not_make_the_other_words_certain() {
    let pipe = of_kind(EntityKind::Pipe, "pipe:1");
    let nodes = vec![file("/w/out", 1), command("cat", 1), pipe, command("sh", 0)];
    let mut links = vec![
        link(1, 0, Flow::Generated(Relation::Write)),
        link(2, 1, Flow::Used(Relation::Read)),
        link(3, 2, Flow::Generated(Relation::Write)),
        link(3, 1, Flow::Informed(Informed::Fork)),
    ];
    links[2].certainty = Certainty::Possible;
    let lineage = lineage(nodes, links);
    let text = drawn(&lineage, Direction::Of, false);
    assert!(
        text.contains("started by and possibly piped from"),
        "{text}"
    );
}

#[test]
fn the_crowd_behind_a_shared_pipe_is_counted() {
    let pipe = of_kind(EntityKind::Pipe, "pipe:1");
    let mut lineage = lineage(
        vec![file("/w/out", 1), command("make", 1), pipe],
        Vec::new(),
    );
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

/// A report of a client that received a result from the transaction of a watched database.
fn of_client() -> Lineage {
    let mut nodes = vec![
        file("/w/report", 1),
        command("psql", 1),
        of_kind(EntityKind::Socket, "tcp:127.0.0.1:5432 (reply)"),
        command("transaction", 0),
        of_kind(EntityKind::Resource, "postgres://h:5432/bank/public.a"),
    ];
    for node in &mut nodes[2..] {
        let (Node::Activity { run, .. } | Node::Entity { run, .. }) = node;
        "watch".clone_into(run);
        if let Node::Activity { pid, .. } = node {
            *pid = backstory_eventlog::event::UNNUMBERED + 1;
        }
    }
    let links = vec![
        link(1, 0, Flow::Generated(Relation::Write)),
        link(2, 1, Flow::Used(Relation::Read)),
        link(3, 2, Flow::Generated(Relation::Write)),
        link(4, 3, Flow::Used(Relation::Read)),
    ];
    lineage(nodes, links)
}

#[test]
fn a_possible_client_of_a_watched_database_is_counted() {
    let mut lineage = of_client();
    let text = drawn(&lineage, Direction::Of, false);
    assert!(text.contains("received from transaction"), "{text}");
    lineage.links[1].certainty = Certainty::Possible;
    let text = drawn(&lineage, Direction::Of, false);
    assert!(!text.contains("transaction"), "{text}");
    assert!(text.contains("(--possible shows 1 more link,"), "{text}");
}

#[test]
fn a_clients_connection_that_the_server_used_later_gets_no_line() {
    let mut lineage = of_client();
    let later = lineage.nodes[2].clone();
    lineage.nodes.push(later);
    lineage.links.push(link(5, 1, Flow::Used(Relation::Read)));
    let text = drawn(&lineage, Direction::Of, false);
    assert!(text.contains("received from transaction"), "{text}");
    assert!(!text.contains("tcp:"), "{text}");
    // Of a transaction, it is all that is known of the client.
    let mut request = of_kind(EntityKind::Socket, "tcp:127.0.0.1:5432");
    if let Node::Entity { run, .. } = &mut request {
        "watch".clone_into(run);
    }
    lineage.nodes.push(request);
    lineage.links.push(link(6, 3, Flow::Used(Relation::Read)));
    let text = drawn(&lineage, Direction::Of, false);
    assert!(text.contains("read tcp:127.0.0.1:5432"), "{text}");
}
