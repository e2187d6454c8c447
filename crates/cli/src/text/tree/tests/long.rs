//! Lineages too long for a screen.

use super::*;

#[test]
fn many_files_of_one_place_are_counted() {
    let mut lineage = lineage(vec![file("/w/out", 1), command("py", 1)], Vec::new());
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
    let mut lineage = lineage(vec![file("/w/0", 1)], Vec::new());
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
    let mut lineage = lineage(
        vec![file("/w/out", 1), command("ld", 1), command("make", 1)],
        Vec::new(),
    );
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

#[test]
fn what_lies_behind_a_cut_tree_is_counted_without_naming_zero() {
    let mut lineage = lineage(vec![file("/w/in", 0)], Vec::new());
    for _ in 0..400 {
        let reader = lineage.nodes.len();
        lineage.nodes.push(command("cat in", 1));
        lineage.nodes.push(file("/w/out", 1));
        lineage
            .links
            .push(link(0, reader, Flow::Used(Relation::Read)));
        lineage
            .links
            .push(link(reader, reader + 1, Flow::Generated(Relation::Write)));
    }
    let text = drawn(&lineage, Direction::Uses, false);
    assert!(text.contains("more files lie behind these"), "{text}");
    assert!(!text.contains(" 0 more"), "{text}");
}
