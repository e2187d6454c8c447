//! The Open Provenance Model, in the language that SPADE's reporter `DSL` reads: a line for each
//! vertex and each edge. The keys are those of SPADE's own reporters for Linux.
//!
//! An edge leads from the effect to its cause. A backslash before a space or colon makes it a part
//! of the text. The language has no way to write a line feed or a backslash at the end of a value:
//! these characters become `?`.

use std::io::Write;

use backstory_graph::model::{Certainty, EntityKind};
use backstory_query::answer::Flow;

use crate::family::Family;
use crate::format::{Format, Target};
use crate::formats::notation::seconds;
use crate::view::{Endpoint, ViewActivity, ViewEntity, ViewLink};
use crate::{Result, View};

/// `opm`
pub struct Opm;

impl Format for Opm {
    fn name(&self) -> &'static str {
        "opm"
    }
    fn about(&self) -> &'static str {
        "the Open Provenance Model in SPADE's DSL"
    }
    fn family(&self) -> Family {
        Family::Data
    }
    fn proven_by(&self) -> &'static str {
        "the rules of SPADE's reporter"
    }

    fn write(&self, view: &View, target: Target<'_>) -> Result<()> {
        let out = target.stream();
        for (at, activity) in view.activities.iter().enumerate() {
            process(out, at, activity, &view.runs[activity.run].summary.id)?;
        }
        for (at, entity) in view.entities.iter().enumerate() {
            artifact(out, at, entity, &view.runs[entity.run].summary.id)?;
        }
        for link in &view.links {
            edge(out, link)?;
        }
        Ok(())
    }
}

/// A line of the language.
struct Line(Vec<u8>);

impl Line {
    fn new(sort: &str) -> Line {
        Line(format!("type:{sort}").into_bytes())
    }

    fn with(mut self, key: &str, value: impl AsRef<[u8]>) -> Line {
        self.0.push(b' ');
        self.text(key.as_bytes());
        self.0.push(b':');
        self.text(value.as_ref());
        // It would hide the space behind it.
        if let Some(last @ b'\\') = self.0.last_mut() {
            *last = b'?';
        }
        self
    }

    fn text(&mut self, text: &[u8]) {
        for byte in text {
            match byte {
                b' ' | b':' => self.0.extend([b'\\', *byte]),
                b'\n' | b'\r' => self.0.push(b'?'),
                other => self.0.push(*other),
            }
        }
    }

    fn end(mut self, out: &mut dyn Write) -> Result<()> {
        self.0.push(b'\n');
        Ok(out.write_all(&self.0)?)
    }
}

fn process(out: &mut dyn Write, at: usize, activity: &ViewActivity, run: &str) -> Result<()> {
    let name = activity.argv.first().map(|name| {
        let base = name.rsplit(|byte| *byte == b'/').next();
        base.unwrap_or(name).to_vec()
    });
    let mut line = Line::new("Process")
        .with("id", Endpoint::Activity(at).name())
        .with(
            "name",
            name.unwrap_or_else(|| activity.label.clone().into_bytes()),
        );
    if !activity.is_part {
        line = line.with("pid", activity.pid.to_string());
    }
    if !activity.argv.is_empty() {
        // With the quotes of a shell, so that the words can be told apart.
        line = line.with("command line", &activity.label);
    }
    if let Some(program) = &activity.program {
        line = line.with("exe", program);
    }
    if !activity.cwd.is_empty() {
        line = line.with("cwd", &activity.cwd);
    }
    line = line
        .with("start time", seconds(activity.interval.start))
        .with("end time", seconds(activity.interval.end));
    if let Some(exit) = activity.exit {
        line = line.with("exit", exit.to_string());
    }
    line.with("run", run).end(out)
}

fn artifact(out: &mut dyn Write, at: usize, entity: &ViewEntity, run: &str) -> Result<()> {
    let mut line = Line::new("Artifact")
        .with("id", Endpoint::Entity(at).name())
        .with("subtype", subtype(entity))
        .with("path", &entity.path)
        .with("version", entity.version.to_string());
    if let Some(ident) = entity.ident {
        line = line
            .with("inode", ident.ino.to_string())
            .with("size", ident.size.to_string());
    }
    line.with("run", run).end(out)
}

/// The word of SPADE's reporters for a kind of artifact.
fn subtype(entity: &ViewEntity) -> &'static str {
    match entity.kind {
        EntityKind::Symlink => "link",
        EntityKind::Pipe if entity.path.starts_with(b"/") => "named pipe",
        EntityKind::Pipe => "unnamed pipe",
        EntityKind::Socket if entity.path.starts_with(b"/") => "unix socket",
        EntityKind::Socket => "network socket",
        EntityKind::Device => "character device",
        kind => kind.word(),
    }
}

fn edge(out: &mut dyn Write, link: &ViewLink) -> Result<()> {
    let sort = match (link.flow, link.from, link.to) {
        (Flow::Used(_), ..) => "Used",
        (Flow::Generated(_), ..) => "WasGeneratedBy",
        (Flow::Informed(_), ..) => "WasTriggeredBy",
        (_, Endpoint::Entity(_), Endpoint::Entity(_)) => "WasDerivedFrom",
        _ => return Ok(()),
    };
    let operation = match link.flow {
        Flow::Used(relation) | Flow::Generated(relation) => Some(relation.words().word),
        Flow::Informed(why) => Some(why.words().word),
        Flow::Derived => None,
        Flow::Same => Some("same version"),
        Flow::Alike => Some("same content"),
    };
    let mut line = Line::new(sort)
        .with("from", link.to.name())
        .with("to", link.from.name());
    if let Some(operation) = operation {
        line = line.with("operation", operation);
    }
    line = line.with("time", seconds(link.interval.start));
    if link.interval.end != link.interval.start {
        line = line.with("end time", seconds(link.interval.end));
    }
    if link.certainty == Certainty::Possible {
        line = line.with("certainty", "possible");
    }
    line.end(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_one_word_whatever_it_contains() {
        let line = Line::new("Process")
            .with("command line", r"a b:c\ d\e")
            .with("x", "y\nz\\");
        let text = String::from_utf8(line.0).unwrap();
        assert_eq!(text, r"type:Process command\ line:a\ b\:c\\ d\e x:y?z?");
    }
}
