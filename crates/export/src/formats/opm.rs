//! The Open Provenance Model, in the language that SPADE's reporter `DSL` reads: a line for each
//! vertex and each edge. The keys are those of SPADE's own reporters for Linux.
//!
//! An edge leads from the effect to its cause.

use std::collections::BTreeSet;

use backstory_eventlog::job_rank::JobRank;
use backstory_graph::model::{Certainty, EntityKind};
use backstory_query::answer::Flow;
use backstory_vocabulary::Word;

use crate::family::Family;
use crate::format::{Format, Target};
use crate::formats::notation::seconds;
use crate::formats::opm_calls::write_calls;
use crate::formats::opm_element::{OpmElement, opm_value};
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

    fn writes_calls(&self) -> bool {
        true
    }

    fn write(&self, view: &View, target: Target<'_>) -> Result<()> {
        let out = target.stream();
        if let Some(log) = &view.calls {
            return write_calls(log, out);
        }
        opm_elements(view)
            .iter()
            .try_for_each(|element| Ok(out.write_all(&element.line())?))
    }
}

/// The vertices of a view, and then its edges.
pub fn opm_elements(view: &View) -> Vec<OpmElement> {
    let run = |run: usize| &view.runs[run].summary.id;
    let activities = view.activities.iter().enumerate();
    let mut all: Vec<_> = activities
        .map(|(at, one)| process(at, one, run(one.run)))
        .collect();
    let entities = view.entities.iter().enumerate();
    all.extend(entities.map(|(at, one)| artifact(at, one, run(one.run))));
    let agents: BTreeSet<&[u8]> = view.activities.iter().filter_map(agent_of).collect();
    let agents: Vec<&[u8]> = agents.into_iter().collect();
    all.extend(agents.iter().enumerate().map(|(at, name)| agent(at, name)));
    all.extend(view.links.iter().filter_map(edge));
    for (at, activity) in view.activities.iter().enumerate() {
        let known = agent_of(activity).and_then(|name| agents.binary_search(&name).ok());
        all.extend(known.map(|agent| control(at, agent)));
    }
    all
}

/// The attribute of a process that names its agent, as the importers write it.
const AGENT: &[u8] = b"agent";

fn agent_of(activity: &ViewActivity) -> Option<&[u8]> {
    activity.notes.attributes.get(AGENT).map(|name| &name[..])
}

fn agent(at: usize, name: &[u8]) -> OpmElement {
    OpmElement::new("Agent")
        .with("id", format!("g{at}"))
        .with("name", name)
}

fn control(process: usize, agent: usize) -> OpmElement {
    OpmElement::new("WasControlledBy")
        .with("from", Endpoint::Activity(process).name())
        .with("to", format!("g{agent}"))
}

fn process(at: usize, activity: &ViewActivity, run: &str) -> OpmElement {
    let name = activity.argv.first().map(|name| {
        let base = name.rsplit(|byte| *byte == b'/').next();
        base.unwrap_or(name).to_vec()
    });
    let mut line = OpmElement::new("Process")
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
    for (name, value) in activity.job_rank.iter().flat_map(JobRank::terms) {
        let text = value.as_str().map(str::to_owned);
        line = line.with(name, text.unwrap_or_else(|| value.to_string()));
    }
    line = line.with("run", run);
    for (key, value) in &activity.notes.attributes {
        let name = String::from_utf8_lossy(&opm_value(key)).into_owned();
        if &key[..] != AGENT && !name.is_empty() && !line.knows(&name) {
            line = line.with(name, value);
        }
    }
    line
}

fn artifact(at: usize, entity: &ViewEntity, run: &str) -> OpmElement {
    let mut line = OpmElement::new("Artifact")
        .with("id", Endpoint::Entity(at).name())
        .with("subtype", subtype(entity))
        .with("path", &entity.path)
        .with("version", entity.version.to_string());
    if let Some(ident) = entity.ident {
        line = line
            .with("inode", ident.ino.to_string())
            .with("size", ident.size.to_string());
    }
    line.with("run", run)
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

fn edge(link: &ViewLink) -> Option<OpmElement> {
    let sort = match (link.flow, link.from, link.to) {
        (Flow::Used(_), ..) => "Used",
        (Flow::Generated(_), ..) => "WasGeneratedBy",
        (Flow::Informed(_), ..) => "WasTriggeredBy",
        (_, Endpoint::Entity(_), Endpoint::Entity(_)) => "WasDerivedFrom",
        _ => return None,
    };
    let operation = match link.flow {
        Flow::Used(relation) | Flow::Generated(relation) => Some(relation.words().word),
        Flow::Informed(why) => Some(why.words().word),
        Flow::Derived => None,
        Flow::Same => Some("same version"),
        Flow::Alike => Some("same content"),
    };
    let mut line = OpmElement::new(sort)
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
    if let Some(bytes) = link.bytes {
        line = line.with("bytes", bytes.word());
    }
    line.interval = Some(link.interval);
    Some(line)
}
