//! The graph in Graphviz's language.

use crate::family::Family;
use crate::format::{Format, Target};
use crate::{Result, View};
use backstory_graph::model::Certainty;
use backstory_query::ByteUse;

/// `dot`
pub struct Dot;

impl Format for Dot {
    fn name(&self) -> &'static str {
        "dot"
    }
    fn about(&self) -> &'static str {
        "the graph in Graphviz's language"
    }
    fn family(&self) -> Family {
        Family::Picture
    }
    fn proven_by(&self) -> &'static str {
        "Graphviz"
    }
    fn hint(&self) -> Option<&'static str> {
        Some("dot -Tsvg OUT")
    }

    fn write(&self, view: &View, target: Target<'_>) -> Result<()> {
        let out = target.stream();
        writeln!(
            out,
            "digraph backstory {{\n  rankdir=LR;\n  node [fontname=\"sans-serif\", fontsize=10];"
        )?;
        for (at, activity) in view.activities.iter().enumerate() {
            writeln!(
                out,
                "  a{at} [shape=ellipse, label={}];",
                quoted(&super::shorten(&activity.label))
            )?;
        }
        for (at, entity) in view.entities.iter().enumerate() {
            writeln!(
                out,
                "  e{at} [shape=box, label={}];",
                quoted(&super::entity_label(view, entity))
            )?;
        }
        for link in super::drawn(view) {
            let style = match (link.certainty, link.bytes) {
                (Certainty::Possible, _) => ", style=dashed",
                (_, Some(ByteUse::Absent)) => ", style=dotted",
                _ => "",
            };
            let label = quoted(&super::arrow_label(link));
            writeln!(
                out,
                "  {} -> {} [label={label}{style}];",
                link.from.name(),
                link.to.name()
            )?;
        }
        writeln!(out, "}}")?;
        Ok(())
    }
}

/// A string of the DOT language, quoted.
pub fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
