//! The vertices: processes and activities, artifacts and entities, agents.
//!
//! A vertex may be stated again: the later line completes the earlier one. An edge may come before
//! its vertices.

use super::edges::Edge;
use super::line::annotations;
use super::statement::{Statement, Vertex, moment};
use crate::description::{DescribedActivity, Description, DescriptionGaps, Locations, MOST, Span};
use crate::prov_json::command_words;
use backstory_graph::model::EntityKind;
use std::collections::HashMap;

/// The most notes of an activity.
const MOST_NOTES: usize = 64;

/// Keys that hold the path of an artifact, the most common one first.
const PATHS: [&[u8]; 4] = [b"path", b"filename", b"location", b"file"];
/// Keys that hold the command line of a process.
const COMMANDS: [&[u8]; 4] = [b"command line", b"commandline", b"cmdline", b"cmd"];
/// Keys that hold the first moment of a process.
const BEGINS: [&[u8]; 3] = [b"start time", b"starttime", b"seen time"];
/// Keys that hold its last one.
const ENDS: [&[u8]; 2] = [b"end time", b"endtime"];

/// Collects the lines of files.
pub(super) struct SpadeReader {
    pub(super) description: Description,
    pub(super) locations: Locations,
    pub(super) gaps: DescriptionGaps,
    pub(super) vertices: HashMap<Box<[u8]>, Vertex>,
    pub(super) edges: Vec<Edge>,
    pub(super) agents: Vec<Vec<u8>>,
    /// Lines with a type of SPADE.
    pub(super) statements: usize,
    /// Words without a key.
    odd: usize,
}

impl SpadeReader {
    pub(super) fn new(locations: Locations) -> SpadeReader {
        SpadeReader {
            description: Description::default(),
            locations,
            gaps: DescriptionGaps::default(),
            vertices: HashMap::new(),
            edges: Vec::new(),
            agents: Vec::new(),
            statements: 0,
            odd: 0,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.description.is_full() || self.edges.len() + self.agents.len() > MOST
    }

    /// Takes a line. An empty one says nothing.
    pub(super) fn line(&mut self, line: &[u8]) {
        let mut stated = Statement::of(annotations(line.trim_ascii(), &mut self.odd));
        let Some(sort) = stated.sort.take() else {
            self.odd += usize::from(!stated.rest.is_empty());
            return;
        };
        let sort = String::from_utf8_lossy(&sort).trim().to_ascii_lowercase();
        match sort.as_str() {
            "process" | "activity" => self.activity(stated),
            "artifact" | "entity" => self.entity(stated),
            "agent" => self.agent(stated),
            _ => match Edge::of(&sort, stated) {
                Some(edge) => self.edges.push(edge),
                None => {
                    self.gaps
                        .unplaced(&sort.chars().take(40).collect::<String>());
                    return;
                }
            },
        }
        self.statements += 1;
    }

    fn activity(&mut self, mut stated: Statement) {
        let pid = stated.number(b"pid");
        let program = stated.take(&[b"exe", b"executable"]);
        let program = program.filter(|path| path.starts_with(b"/"));
        let name = stated.take(&[b"name", b"label"]);
        let words = stated.take(&COMMANDS).map(|line| words(&line));
        let words = words.or_else(|| name.map(|name| vec![name]));
        let cwd = stated.take(&[b"cwd"]);
        let cwd = cwd.and_then(|cwd| self.locations.path(&cwd));
        let span = Span {
            start: moment(stated.take(&BEGINS), &mut self.gaps),
            end: moment(stated.take(&ENDS), &mut self.gaps),
        };
        let exit = stated
            .number(b"exit")
            .map(|exit| (exit & 0xff).cast_signed() << 8);
        let job_rank = stated.job_rank();
        let number = match stated.id.as_deref().and_then(|id| self.vertices.get(id)) {
            Some(Vertex::Activity(number)) => *number,
            _ => {
                let number = self.description.activity(DescribedActivity {
                    words: stated.id.iter().cloned().collect(),
                    is_part: true,
                    ..DescribedActivity::default()
                });
                self.name(&stated, Vertex::Activity(number));
                number
            }
        };
        let activity = self.description.activity_mut(number);
        if let Some(words) = words.filter(|words| !words.is_empty()) {
            activity.words = words;
        }
        // A process has a number. An activity that only has a name is a part of some work.
        activity.is_part &= pid.is_none();
        activity.pid = pid.or(activity.pid);
        activity.program = program.or(activity.program.take());
        activity.cwd = cwd.unwrap_or(std::mem::take(&mut activity.cwd));
        activity.status = exit.or(activity.status);
        activity.job_rank = job_rank.or(activity.job_rank.take());
        activity.span.join(span);
        activity.notes.extend(stated.rest);
        activity.notes.truncate(MOST_NOTES);
    }

    fn entity(&mut self, mut stated: Statement) {
        let version = stated.number(b"version");
        let subtype = stated.take(&[b"subtype"]).unwrap_or_default();
        let kind = kind(&subtype);
        let channel = kind.filter(|kind| {
            use EntityKind::{Memory, Pipe, Socket};
            matches!(kind, Memory | Pipe | Socket)
        });
        let (path, kind) = match stated.take(&PATHS) {
            // A channel has a number, and a path only if it has a name in a file system.
            Some(name) if channel.is_some() && !name.starts_with(b"/") => {
                (name, channel.unwrap_or(EntityKind::Pipe))
            }
            path => match path.and_then(|path| self.locations.path(&path)) {
                Some(path) => (path, kind.unwrap_or(EntityKind::File)),
                None => (
                    stated.description(&subtype),
                    kind.unwrap_or(EntityKind::Resource),
                ),
            },
        };
        let number = match stated.id.as_deref().and_then(|id| self.vertices.get(id)) {
            Some(Vertex::Entity(number)) => *number,
            _ => {
                let number = self.description.entity(Vec::new(), kind);
                self.name(&stated, Vertex::Entity(number));
                number
            }
        };
        let entity = self.description.entity_mut(number);
        (entity.path, entity.kind) = (path.into(), kind);
        entity.version = version.or(entity.version);
    }

    fn agent(&mut self, mut stated: Statement) {
        let id = stated.id.clone();
        let name = stated
            .take(&[b"name", b"user", b"uid"])
            .or(id)
            .unwrap_or_default();
        self.agents.push(name);
        self.name(&stated, Vertex::Agent(self.agents.len() - 1));
    }

    /// Gives a vertex its id. Without one, no edge names it.
    fn name(&mut self, stated: &Statement, vertex: Vertex) {
        if let Some(id) = &stated.id {
            self.vertices.insert(id.clone().into(), vertex);
        }
    }

    /// The description, once all lines are known.
    pub(super) fn finish(mut self) -> (Description, Locations, DescriptionGaps) {
        let edges = std::mem::take(&mut self.edges);
        for edge in edges {
            edge.place(
                &self.vertices,
                &self.agents,
                &mut self.description,
                &mut self.gaps,
            );
        }
        if self.odd > 0 {
            let what = format!("{} words of the document have no key", self.odd);
            self.gaps.gaps.push(what);
        }
        (self.description, self.locations, self.gaps)
    }
}

/// The words of a command line. Backstory quotes them for a shell. SPADE joins them by spaces, so
/// that the bounds of a word with a space are lost.
fn words(line: &[u8]) -> Vec<Vec<u8>> {
    let quoted = std::str::from_utf8(line).ok().and_then(command_words);
    if let Some(words) = quoted {
        return words;
    }
    let words = line.split(u8::is_ascii_whitespace);
    words
        .filter(|word| !word.is_empty())
        .map(<[u8]>::to_vec)
        .collect()
}

/// The kind that SPADE's reporters for Linux call an artifact.
fn kind(subtype: &[u8]) -> Option<EntityKind> {
    let found = match subtype.to_ascii_lowercase().as_slice() {
        b"file" => EntityKind::File,
        b"directory" => EntityKind::Directory,
        b"link" | b"symlink" => EntityKind::Symlink,
        b"named pipe" | b"unnamed pipe" | b"pipe" => EntityKind::Pipe,
        b"network socket" | b"unix socket" | b"unnamed network socket pair" | b"socket" => {
            EntityKind::Socket
        }
        b"character device" | b"block device" | b"device" => EntityKind::Device,
        b"memory" => EntityKind::Memory,
        b"missing" => EntityKind::Missing,
        b"resource" => EntityKind::Resource,
        _ => return None,
    };
    Some(found)
}
