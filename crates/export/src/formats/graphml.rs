//! GraphML: the graph with all its facts, for Gephi, yEd, NetworkX and igraph.

use std::io::Write;

use crate::family::Family;
use crate::format::{Format, Target};
use crate::{Result, View};
use backstory_query::answer::Flow;
use backstory_vocabulary::Word;

/// `graphml`
pub struct GraphMl;

/// Attributes: name, element, type.
const KEYS: [(&str, &str, &str); 15] = [
    ("sort", "node", "string"),
    ("label", "node", "string"),
    ("run", "node", "string"),
    ("cwd", "node", "string"),
    ("pid", "node", "long"),
    ("exit", "node", "long"),
    ("started", "node", "long"),
    ("ended", "node", "long"),
    ("version", "node", "long"),
    ("size", "node", "long"),
    ("flow", "edge", "string"),
    ("certainty", "edge", "string"),
    ("from", "edge", "long"),
    ("until", "edge", "long"),
    ("bytes", "edge", "string"),
];

impl Format for GraphMl {
    fn name(&self) -> &'static str {
        "graphml"
    }
    fn about(&self) -> &'static str {
        "the graph as GraphML"
    }
    fn family(&self) -> Family {
        Family::Data
    }
    fn proven_by(&self) -> &'static str {
        "NetworkX"
    }

    fn write(&self, view: &View, target: Target<'_>) -> Result<()> {
        let out = target.stream();
        writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
        writeln!(
            out,
            "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">"
        )?;
        for (name, of, sort) in KEYS {
            writeln!(
                out,
                "  <key id=\"{name}\" for=\"{of}\" attr.name=\"{name}\" attr.type=\"{sort}\"/>"
            )?;
        }
        writeln!(out, "  <graph id=\"backstory\" edgedefault=\"directed\">")?;
        for (at, activity) in view.activities.iter().enumerate() {
            let run = &view.runs[activity.run].summary.id;
            let mut facts = vec![
                ("sort", "activity".to_owned()),
                ("label", activity.label.clone()),
                ("run", run.clone()),
                ("cwd", String::from_utf8_lossy(&activity.cwd).into_owned()),
                ("pid", activity.pid.to_string()),
                ("started", activity.interval.start.to_string()),
                ("ended", activity.interval.end.to_string()),
            ];
            facts.extend(activity.exit.map(|exit| ("exit", exit.to_string())));
            element(out, &format!("node id=\"a{at}\""), "node", &facts)?;
        }
        for (at, entity) in view.entities.iter().enumerate() {
            let mut facts = vec![
                ("sort", entity.kind.word().to_owned()),
                ("label", String::from_utf8_lossy(&entity.path).into_owned()),
                ("run", view.runs[entity.run].summary.id.clone()),
                ("version", entity.version.to_string()),
            ];
            facts.extend(entity.ident.map(|ident| ("size", ident.size.to_string())));
            element(out, &format!("node id=\"e{at}\""), "node", &facts)?;
        }
        for link in &view.links {
            edge(out, link)?;
        }
        writeln!(out, "  </graph>\n</graphml>")?;
        Ok(())
    }
}

fn edge(out: &mut dyn Write, link: &crate::view::ViewLink) -> Result<()> {
    let flow = match link.flow {
        Flow::Informed(_) => format!("informed: {}", super::word(link.flow)),
        flow => super::word(flow).to_owned(),
    };
    let mut facts = vec![
        ("flow", flow),
        ("certainty", link.certainty.word().to_owned()),
        ("from", link.interval.start.to_string()),
        ("until", link.interval.end.to_string()),
    ];
    facts.extend(link.bytes.map(|bytes| ("bytes", bytes.word().to_owned())));
    let head = format!(
        "edge source=\"{}\" target=\"{}\"",
        link.from.name(),
        link.to.name()
    );
    element(out, &head, "edge", &facts)
}

fn element(out: &mut dyn Write, head: &str, name: &str, facts: &[(&str, String)]) -> Result<()> {
    write!(out, "    <{head}>")?;
    for (key, value) in facts {
        write!(out, "<data key=\"{key}\">{}</data>", super::xml(value))?;
    }
    writeln!(out, "</{name}>")?;
    Ok(())
}
