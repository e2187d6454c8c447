//! Graphs in the forms that SPADE's `export` writes, and that its reporters Graphviz and JSON read.

use std::io;

use backstory_export::{OpmElement, dot_string};

use super::graph::{self, BaseGraph, Part};
use super::hash;
use crate::json::{self, Value};

/// The graph in DOT, in the shapes and colours of the Open Provenance Model. SPADE reads a line for
/// each vertex and edge, with keys in quotes, and a `shape` or `color` behind the `label`.
pub(super) fn dot(base: &BaseGraph, part: &Part) -> Vec<u8> {
    let sort = |element: &OpmElement| graph::value(element, "type").unwrap_or_default().to_vec();
    let mut text =
        String::from("digraph spade {\ngraph [rankdir=\"RL\"];\nnode [style=\"filled\"];\n");
    let mut shown = part.vertices.clone();
    let ends = part.edges.iter().map(|&edge| base.ends[edge]);
    shown.extend(ends.flat_map(|ends| [ends.effect, ends.cause]));
    for at in shown {
        let vertex = &base.vertices[at];
        let (shape, colour) = match (sort(vertex).as_slice(), graph::value(vertex, "subtype")) {
            (b"Process", _) => ("box", "lightsteelblue1"),
            (b"Agent", _) => ("octagon", "rosybrown1"),
            (_, Some(b"network socket")) => ("diamond", "palegreen1"),
            _ => ("ellipse", "khaki1"),
        };
        text += &format!(
            "{} [label={} shape=\"{shape}\" fillcolor=\"{colour}\"];\n",
            key(base, at),
            label(vertex)
        );
    }
    for &edge in &part.edges {
        let ends = base.ends[edge];
        let colour = match sort(&base.edges[edge]).as_slice() {
            b"Used" => "green",
            b"WasGeneratedBy" => "red",
            b"WasTriggeredBy" => "blue",
            b"WasControlledBy" => "purple",
            _ => "orange",
        };
        text += &format!(
            "{} -> {} [label={} color=\"{colour}\"];\n",
            key(base, ends.effect),
            key(base, ends.cause),
            label(&base.edges[edge])
        );
    }
    text += "}\n";
    text.into_bytes()
}

fn key(base: &BaseGraph, vertex: usize) -> String {
    let id = graph::value(&base.vertices[vertex], "id").unwrap_or_default();
    format!("\"{}\"", in_quotes(&String::from_utf8_lossy(id)))
}

/// The annotations, one a line of the drawing. The ends of an edge are no annotations.
fn label(element: &OpmElement) -> String {
    let own = element
        .annotations
        .iter()
        .filter(|(key, _)| !matches!(key.as_ref(), "from" | "to"));
    let lines = own.map(|(key, value)| {
        let line = format!("{key}:{}", String::from_utf8_lossy(value));
        in_quotes(&line)
    });
    format!("\"{}\"", lines.collect::<Vec<_>>().join("\\n"))
}

/// The text between the quotes of a string in DOT. A line feed would end the line for SPADE.
fn in_quotes(text: &str) -> String {
    let quoted = dot_string(&text.replace(['\n', '\r'], "?"));
    quoted[1..quoted.len() - 1].to_owned()
}

/// An array with an object for each vertex and edge. It has the `type`, and the `id` of a vertex or
/// the ends of an edge. The `hash` is the one that SPADE has for it. All else is in `annotations`.
pub(super) fn objects(base: &BaseGraph, part: &Part) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let vertices = part.vertices.iter().map(|&at| {
        let vertex = &base.vertices[at];
        (vertex, hash::of_vertex(vertex))
    });
    let edges = part
        .edges
        .iter()
        .map(|&edge| (&base.edges[edge], hash::of_edge(base, edge)));
    let objects = vertices.chain(edges).map(|(element, hash)| {
        let (mut all, mut rest) = (Vec::new(), Vec::new());
        for (key, value) in &element.annotations {
            let value = Value::Bytes(value.clone());
            match ["type", "id", "from", "to"].iter().find(|own| *own == key) {
                Some(own) => all.push((*own, value)),
                None => rest.push((key.to_string(), value)),
            }
        }
        all.push(("hash", hash.as_str().into()));
        all.push(("annotations", Value::Map(rest)));
        Value::Object(all)
    });
    json::lines(&mut text, objects)?;
    Ok(text)
}
