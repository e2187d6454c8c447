//! Writes a lineage in Graphviz's language: files as boxes, commands as ellipses, arrows in the
//! direction of information.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use backstory_export::dot_string as quoted;
use backstory_graph::model::Certainty;
use backstory_query::answer::{Flow, Lineage, Node};

use super::outline::Outline;
use super::paths::{shown, system_group};
use super::shell;
use super::words::Direction;

/// Writes the graph. Without `all`, system files without further links are drawn as one box for
/// each directory.
pub fn draw(
    lineage: &Lineage,
    direction: Direction,
    all: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    let outline = Outline::new(lineage, direction, true);
    let name = |index: usize| match &lineage.nodes[index] {
        Node::Entity { path, .. }
            if !all && index >= lineage.roots && outline.is_system_leaf(index) =>
        {
            format!("system {}", shown(system_group(path)))
        }
        _ => format!("n{index}"),
    };
    writeln!(
        out,
        "digraph backstory {{\n  rankdir=LR;\n  node [fontname=\"sans-serif\", fontsize=10];"
    )?;
    let mut systems: BTreeMap<String, u64> = BTreeMap::new();
    for (index, node) in lineage.nodes.iter().enumerate() {
        let id = name(index);
        if id.starts_with("system ") {
            *systems.entry(id).or_default() += 1;
            continue;
        }
        let weight = if index < lineage.roots {
            ", penwidth=2"
        } else {
            ""
        };
        match node {
            Node::Entity { path, version, .. } => {
                let label = if *version > 1 {
                    format!("{} (version {version})", shown(path))
                } else {
                    shown(path)
                };
                writeln!(
                    out,
                    "  {} [shape=box, label={}{weight}];",
                    quoted(&id),
                    quoted(&label)
                )?;
            }
            Node::Activity { argv, .. } => {
                let label = shorten(&shell::words(argv.iter().map(|word| &word[..])));
                writeln!(
                    out,
                    "  {} [shape=ellipse, label={}];",
                    quoted(&id),
                    quoted(&label)
                )?;
            }
        }
    }
    for (id, count) in &systems {
        let label = format!("{} ({count})", id.trim_start_matches("system "));
        writeln!(
            out,
            "  {} [shape=box, style=dashed, label={}];",
            quoted(id),
            quoted(&label)
        )?;
    }
    let mut drawn = BTreeSet::new();
    for link in &lineage.links {
        let label = match &link.flow {
            Flow::Used(relation) | Flow::Generated(relation) => relation.words().active,
            Flow::Derived => "derived",
            Flow::Same => "same",
            Flow::Alike => "same content",
            Flow::Informed(_) => "started",
        };
        let dashed = if link.certainty == Certainty::Possible {
            ", style=dashed"
        } else {
            ""
        };
        let line = format!(
            "{} -> {} [label={}{dashed}];",
            quoted(&name(link.from)),
            quoted(&name(link.to)),
            quoted(label)
        );
        if drawn.insert(line.clone()) {
            writeln!(out, "  {line}")?;
        }
    }
    writeln!(out, "}}")
}

/// The label of a command. It is shortened, because a label in a picture is not pasted into a
/// shell.
fn shorten(line: &str) -> String {
    match line.char_indices().nth(80) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::tests::{command, file, link};
    use super::*;
    use backstory_graph::model::Relation;

    #[test]
    fn quotes_in_names_cannot_leave_their_label() {
        let nodes = vec![file("/w/a\"];evil\\", 1), command("x", 1)];
        let links = vec![link(1, 0, Flow::Generated(Relation::Write))];
        let mut out = Vec::new();
        draw(
            &Lineage {
                nodes,
                roots: 1,
                links,
                cut: false,
                reach: Vec::new(),
            },
            Direction::Of,
            false,
            &mut out,
        )
        .unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.contains(r#"label="'/w/a\"];evil\\'", penwidth=2];"#),
            "{text}"
        );
        assert!(
            text.contains("\"n1\" -> \"n0\" [label=\"wrote\"];"),
            "{text}"
        );
    }

    #[test]
    fn system_files_are_one_box_a_directory() {
        let nodes = vec![
            file("/w/a", 1),
            command("x", 1),
            file("/usr/lib/a", 0),
            file("/usr/lib/b", 0),
        ];
        let mut links = vec![link(1, 0, Flow::Generated(Relation::Write))];
        links.extend([2, 3].map(|from| link(from, 1, Flow::Used(Relation::Read))));
        let mut out = Vec::new();
        draw(
            &Lineage {
                nodes,
                roots: 1,
                links,
                cut: false,
                reach: Vec::new(),
            },
            Direction::Of,
            false,
            &mut out,
        )
        .unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.contains("label=\"/usr/lib (2)\"") && text.matches("->").count() == 2,
            "{text}"
        );
    }
}
