//! The nodes of a crate that matter: actions, files, values, and the order in which a workflow
//! started its steps.

use crate::description::{DescriptionGaps, Locations, MOST, file_path, unescaped};
use backstory_eventlog::job_rank::TERMS;
use backstory_graph::model::EntityKind;
use serde_json::Value;
use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A node that is no action, as an action uses it.
#[derive(Debug, Clone)]
pub(super) enum CrateThing {
    /// A file or another thing: its path or URI.
    Entity(Box<[u8]>, EntityKind),
    /// The value of a parameter: its name and its text.
    Value(Box<str>, Box<str>),
    /// A collection: the nodes that it consists of.
    Collection(Vec<Box<str>>),
}

/// The ids of nodes.
type NodeIds = Vec<Box<str>>;

/// An action of a crate.
#[derive(Debug, Default)]
pub(super) struct CrateAction {
    pub(super) name: String,
    pub(super) command: Option<String>,
    pub(super) start: Option<String>,
    pub(super) end: Option<String>,
    pub(super) objects: Vec<Box<str>>,
    pub(super) results: Vec<Box<str>>,
    pub(super) instruments: Vec<Box<str>>,
    pub(super) agents: Vec<Box<str>>,
    pub(super) notes: Vec<(&'static str, String)>,
    pub(super) identifiers: NodeIds,
}

/// An action that organizes others: an engine or a launcher.
#[derive(Debug, Default)]
pub(super) struct OrganizingAction {
    pub(super) results: NodeIds,
    /// The actions that start a step.
    pub(super) controls: NodeIds,
    pub(super) identifiers: NodeIds,
}

/// Collects the nodes of crates.
pub(super) struct CrateReader {
    pub(super) locations: Locations,
    pub(super) gaps: DescriptionGaps,
    /// The directory of the crate.
    directory: Vec<u8>,
    pub(super) things: HashMap<Box<str>, CrateThing>,
    /// Names of nodes that may be instruments or agents.
    pub(super) names: HashMap<Box<str>, Box<str>>,
    /// Actions that made something, by their ids.
    pub(super) actions: Vec<(Box<str>, CrateAction)>,
    pub(super) organizing: Vec<OrganizingAction>,
    /// Values of backstory's own terms, by their ids: the term and the value.
    pub(super) terms: HashMap<Box<str>, (Box<str>, String)>,
    /// Actions that start a step: the step's action.
    pub(super) controls: HashMap<Box<str>, Vec<Box<str>>>,
    /// The crate is one that backstory exported.
    pub(super) is_own: bool,
    name: String,
    nodes: usize,
}

impl CrateReader {
    pub(super) fn new(locations: Locations) -> CrateReader {
        CrateReader {
            locations,
            gaps: DescriptionGaps::default(),
            directory: Vec::new(),
            things: HashMap::new(),
            names: HashMap::new(),
            actions: Vec::new(),
            organizing: Vec::new(),
            terms: HashMap::new(),
            controls: HashMap::new(),
            is_own: false,
            name: "crate".to_owned(),
            nodes: 0,
        }
    }

    /// Begins a crate, whose metadata file has this path.
    pub(super) fn begin_crate(&mut self, path: &Path) {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let directory = path.parent().unwrap_or(Path::new("/"));
        self.directory = directory.as_os_str().as_bytes().to_vec();
    }

    pub(super) fn has_actions(&self) -> bool {
        !self.actions.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.nodes > MOST
    }

    /// The name of the root data entity.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Takes a node.
    pub(super) fn node(&mut self, node: &Value) -> Result<(), String> {
        let id = node.get("@id").and_then(Value::as_str);
        let id = id.ok_or("a node of \"@graph\" is an object with \"@id\"")?;
        let id: Box<str> = id
            .strip_prefix("./")
            .filter(|id| !id.is_empty())
            .unwrap_or(id)
            .into();
        self.nodes += 1;
        let types = texts(node, "@type");
        let is = |name: &str| types.contains(&name);
        let name = texts(node, "name").first().copied();
        if let Some(name) = name {
            self.names.insert(id.clone(), name.into());
        }
        self.is_own |= &*id == "#recorder" && name == Some("backstory");
        if &*id == "./" {
            self.name = name.unwrap_or("crate").to_owned();
        } else if is("OrganizeAction") {
            self.organizing.push(OrganizingAction {
                results: references(node, "result"),
                controls: references(node, "object"),
                identifiers: references(node, "identifier"),
            });
        } else if is("ControlAction") {
            self.controls.insert(id, references(node, "object"));
        } else if is("CreateAction") || is("UpdateAction") || is("ActivateAction") {
            self.nodes += references(node, "object").len() + references(node, "result").len();
            self.actions.push((id, action(node, name)));
        } else if is("PropertyValue") {
            let value = texts(node, "value").join(", ");
            let value = if value.is_empty() {
                plain(node, "value")
            } else {
                value
            };
            let term = texts(node, "propertyID");
            let term = term.first().and_then(|term| term.strip_prefix(TERMS));
            if let Some(term) = term {
                self.terms.insert(id.clone(), (term.into(), value.clone()));
            }
            let name = name.unwrap_or(&id).into();
            self.things
                .insert(id, CrateThing::Value(name, value.into()));
        } else if is("Collection") {
            let parts = [references(node, "hasPart"), references(node, "mainEntity")].concat();
            self.nodes += parts.len();
            self.things.insert(id, CrateThing::Collection(parts));
        } else if is("File") || is("MediaObject") || is("Dataset") || id.starts_with("file:") {
            let kind = match is("Dataset") {
                true => EntityKind::Directory,
                false => EntityKind::File,
            };
            let elsewhere = texts(node, "alternateName").first().copied();
            let thing = self.thing(&id, elsewhere, kind);
            self.things.insert(id, thing);
        }
        match self.is_full() {
            true => Err("there are too many nodes".to_owned()),
            false => Ok(()),
        }
    }

    /// The file behind an id.
    pub(super) fn thing(
        &mut self,
        id: &str,
        elsewhere: Option<&str>,
        kind: EntityKind,
    ) -> CrateThing {
        let uri = id.split('#').next().unwrap_or(id);
        let path = match (elsewhere, file_path(uri.as_bytes())) {
            (_, Some(path)) => self.locations.path(&path),
            (Some(path), _) => self.locations.path(path.as_bytes()),
            (None, None) if is_relative(id) => self.in_crate(uri),
            (None, None) => None,
        };
        match path {
            Some(path) => CrateThing::Entity(path.into(), kind),
            None => {
                let name = id.as_bytes()[..id.len().min(4096)].into();
                CrateThing::Entity(name, EntityKind::Resource)
            }
        }
    }

    /// A path of a file in the crate, which never leads out of it.
    fn in_crate(&self, id: &str) -> Option<Vec<u8>> {
        let name = unescaped(id.as_bytes());
        let parts: Vec<&[u8]> = name
            .split(|byte| *byte == b'/')
            .filter(|part| !matches!(*part, b"" | b"."))
            .collect();
        let leaves = parts.contains(&&b".."[..]) || name.contains(&0) || parts.is_empty();
        (!leaves && name.len() <= 4096)
            .then(|| [&self.directory[..], &parts.join(&b'/')].join(&b'/'))
    }
}

fn action(node: &Value, name: Option<&str>) -> CrateAction {
    let text = |member: &str| texts(node, member).first().map(|text| (*text).to_owned());
    let mut notes = Vec::new();
    let states = references(node, "actionStatus");
    let failed = states
        .iter()
        .any(|state| state.ends_with("FailedActionStatus"));
    if failed {
        notes.push(("state", "failed".to_owned()));
    }
    notes.extend(text("error").map(|error| ("error", error)));
    CrateAction {
        name: name.unwrap_or("action").to_owned(),
        command: text("description"),
        start: text("startTime"),
        end: text("endTime"),
        objects: references(node, "object"),
        results: references(node, "result"),
        instruments: references(node, "instrument"),
        agents: references(node, "agent"),
        notes,
        identifiers: references(node, "identifier"),
    }
}

/// The texts of a member: one, or several of an array.
fn texts<'v>(node: &'v Value, member: &str) -> Vec<&'v str> {
    match node.get(member) {
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(text)) => vec![text],
        _ => Vec::new(),
    }
}

/// A number or a truth value, as text.
fn plain(node: &Value, member: &str) -> String {
    node.get(member).map(Value::to_string).unwrap_or_default()
}

/// The ids that a member refers to.
fn references(node: &Value, member: &str) -> Vec<Box<str>> {
    let one = |value: &Value| {
        let id = value
            .get("@id")
            .and_then(Value::as_str)
            .or(value.as_str())?;
        Some(Box::from(
            id.strip_prefix("./")
                .filter(|id| !id.is_empty())
                .unwrap_or(id),
        ))
    };
    match node.get(member) {
        Some(Value::Array(all)) => all.iter().filter_map(one).collect(),
        Some(value) => one(value).into_iter().collect(),
        None => Vec::new(),
    }
}

/// True for the id of a file in the crate.
fn is_relative(id: &str) -> bool {
    let scheme = id.split_once(':').map(|(scheme, _)| scheme);
    let has_scheme = scheme.is_some_and(|one| !one.is_empty() && !one.contains('/'));
    !id.starts_with('#') && !has_scheme
}
