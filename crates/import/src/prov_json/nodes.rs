//! The activities and entities of a document.

use super::terms;
use crate::description::{
    ActivityNumber, DescribedActivity, Description, DescriptionGaps, EntityNumber, Locations, Span,
    file_path, unescaped,
};
use crate::json::Object;
use backstory_eventlog::event::Time;
use backstory_eventlog::job_rank::JobRank;
use backstory_graph::model::EntityKind;
use backstory_graph::words;
use std::collections::HashMap;

/// The prefix of what only backstory writes.
pub(super) const OWN: &str = "backstory:";
/// Attributes of an activity that have a place of their own.
const TAKEN: [&str; 4] = ["prov:startTime", "prov:endTime", "prov:label", "prov:type"];
/// The most attributes of an activity.
pub(super) const MOST_NOTES: usize = 64;

/// Collects the statements of documents.
pub(super) struct ProvReader {
    pub(super) description: Description,
    pub(super) locations: Locations,
    pub(super) gaps: DescriptionGaps,
    prefixes: HashMap<String, String>,
    pub(super) activities: HashMap<Box<str>, ActivityNumber>,
    pub(super) entities: HashMap<Box<str>, EntityNumber>,
    /// Agents, with the names that people know.
    pub(super) agents: HashMap<Box<str>, Box<str>>,
    /// Activities and their agents.
    pub(super) associations: Vec<(ActivityNumber, Box<str>)>,
    /// Entities and their agents.
    pub(super) attributions: Vec<(EntityNumber, Box<str>)>,
    /// Activities and their starters, which may be agents.
    pub(super) starters: Vec<(ActivityNumber, Box<str>, Option<Time>)>,
    /// Entities, and what each of them is a special case of.
    pub(super) specializations: Vec<(EntityNumber, Box<str>)>,
    has_statements: bool,
}

impl ProvReader {
    pub(super) fn new(locations: Locations) -> ProvReader {
        ProvReader {
            description: Description::default(),
            locations,
            gaps: DescriptionGaps::default(),
            prefixes: HashMap::new(),
            activities: HashMap::new(),
            entities: HashMap::new(),
            agents: HashMap::new(),
            associations: Vec::new(),
            attributions: Vec::new(),
            starters: Vec::new(),
            specializations: Vec::new(),
            has_statements: false,
        }
    }

    /// Begins the next document, which shares the names of the others.
    pub(super) fn begin_file(&mut self) {
        self.has_statements = false;
    }

    pub(super) fn has_statements(&self) -> bool {
        self.has_statements
    }

    pub(super) fn is_full(&self) -> bool {
        self.description.is_full()
    }

    pub(super) fn prefixes(&mut self, prefixes: HashMap<String, String>) {
        for (prefix, meaning) in prefixes {
            match self.prefixes.get(&prefix) {
                Some(known) if *known != meaning => {
                    let what = format!("the prefix {prefix:?} has two meanings in the document");
                    if !self.gaps.gaps.contains(&what) {
                        self.gaps.gaps.push(what);
                    }
                }
                Some(_) => {}
                None => drop(self.prefixes.insert(prefix, meaning)),
            }
        }
    }

    /// Takes a statement. One of an unknown kind is counted.
    pub(super) fn statement(&mut self, kind: &str, id: &str, members: &Object) {
        let known = match kind {
            "entity" => {
                self.entity_stated(id, members);
                true
            }
            "activity" => {
                self.activity_stated(id, members);
                true
            }
            "agent" => {
                let name = terms::text(members, "prov:label")
                    .or_else(|| terms::text(members, "foaf:name"));
                self.agents.insert(id.into(), name.unwrap_or(id).into());
                true
            }
            _ => self.relation(kind, members),
        };
        self.has_statements |= known;
        if !known {
            self.gaps.unplaced(kind);
        }
    }

    /// The activity of a name, which may be stated later.
    pub(super) fn activity(&mut self, id: &str) -> ActivityNumber {
        if let Some(known) = self.activities.get(id) {
            return *known;
        }
        let number = self.description.activity(DescribedActivity {
            words: vec![local(id).as_bytes().to_vec()],
            is_part: true,
            ..DescribedActivity::default()
        });
        self.activities.insert(id.into(), number);
        number
    }

    /// The entity of a name, which may be stated later.
    pub(super) fn entity(&mut self, id: &str) -> EntityNumber {
        if let Some(known) = self.entities.get(id) {
            return *known;
        }
        // The prefix may be stated later, too.
        let number = self
            .description
            .entity(id.as_bytes().to_vec(), EntityKind::Resource);
        self.entities.insert(id.into(), number);
        number
    }

    /// The time of a member.
    pub(super) fn time(&mut self, members: &Object, name: &str) -> Option<Time> {
        let text = terms::text(members, name)?;
        let time = terms::time(text);
        self.gaps.unread_times += usize::from(time.is_none());
        time
    }

    fn activity_stated(&mut self, id: &str, members: &Object) {
        let number = self.activity(id);
        let span = Span {
            start: self.time(members, "prov:startTime"),
            end: self.time(members, "prov:endTime"),
        };
        let types = terms::texts(members, "prov:type");
        let is_command = types.contains(&"backstory:command");
        let is_own = is_command || types.contains(&"backstory:part");
        let label = terms::text(members, "prov:label");
        let pid = terms::number(members, "backstory:pid");
        let words = label.map(|label| match is_command {
            // Backstory's label of a process without a program of its own.
            true if pid.is_some_and(|pid| label == format!("process {pid}")) => Vec::new(),
            true => terms::command_words(label).unwrap_or_else(|| alone(label)),
            false => alone(label),
        });
        let notes = notes(members, is_own);
        let cwd = terms::text(members, "backstory:cwd").and_then(|uri| file_path(uri.as_bytes()));
        let cwd = cwd.and_then(|cwd| self.locations.path(&cwd));
        let term = |name: &str| Some(terms::text(members, &format!("{OWN}{name}"))?.to_owned());
        let job_rank = JobRank::of_terms(term).filter(|_| is_own);
        let narrow = |name| terms::number(members, name).and_then(|one| i32::try_from(one).ok());
        let exit = narrow("backstory:exit").map(|exit| (exit & 0xff) << 8);
        let signal = narrow("backstory:signal").map(|signal| signal & 0x7f);
        let activity = self.description.activity_mut(number);
        activity.span.join(span);
        activity.is_part &= !is_command;
        activity.status = signal.or(exit).or(activity.status);
        activity.pid = pid.and_then(|pid| u32::try_from(pid).ok()).or(activity.pid);
        activity.cwd = cwd.unwrap_or_default();
        activity.job_rank = job_rank;
        if let Some(words) = words {
            activity.words = words;
        }
        activity.notes.extend(notes);
        activity.notes.truncate(MOST_NOTES);
    }

    fn entity_stated(&mut self, id: &str, members: &Object) {
        let number = self.entity(id);
        let types = terms::texts(members, "prov:type");
        let own = types.iter().find_map(|one| one.strip_prefix(OWN));
        let kind = own.and_then(kind_of);
        let version = terms::number(members, "backstory:version");
        let version = version.and_then(|version| u32::try_from(version).ok());
        let found = self.located(id, members, kind);
        let entity = self.description.entity_mut(number);
        entity.version = version.or(entity.version);
        if let Some((path, kind)) = found {
            (entity.path, entity.kind) = (path.into(), kind);
        }
    }

    /// The path and the kind of an entity. `None` if its name says no more than it did.
    fn located(
        &mut self,
        id: &str,
        members: &Object,
        kind: Option<EntityKind>,
    ) -> Option<(Vec<u8>, EntityKind)> {
        let channel = kind.filter(|kind| {
            use EntityKind::{Memory, Pipe, Socket};
            matches!(kind, Memory | Pipe | Socket)
        });
        let mut places = terms::texts(members, "prov:location");
        places.extend(terms::texts(members, "prov:atLocation"));
        let uri = self.expanded(id);
        if channel.is_none() {
            for place in places.iter().copied().chain(Some(uri.as_str())) {
                let path = match file_path(place.as_bytes()) {
                    Some(path) => Some(path),
                    // A location may be a plain path, and a name is a URI.
                    None => Some(place.as_bytes().to_vec())
                        .filter(|_| place != uri && is_plain_path(place)),
                };
                if let Some(path) = path.and_then(|path| self.locations.path(&path)) {
                    return Some((path, kind.unwrap_or(EntityKind::File)));
                }
            }
        }
        // CWLProv gives the last part of the path only.
        if let Some(name) = terms::text(members, "cwlprov:basename")
            && let Some(path) = self.locations.path(name.as_bytes())
        {
            return Some((path, EntityKind::File));
        }
        let label = terms::text(members, "prov:label").filter(|_| channel.is_some());
        let name = label.or(places.first().copied()).unwrap_or(&uri);
        Some((
            name.as_bytes()[..name.len().min(4096)].to_vec(),
            channel.unwrap_or(EntityKind::Resource),
        ))
    }

    /// A qualified name as a URI, if its prefix is known.
    pub(super) fn expanded(&self, id: &str) -> String {
        let (prefix, local) = id.split_once(':').unwrap_or(("default", id));
        match self.prefixes.get(prefix) {
            Some(meaning) => format!("{meaning}{local}"),
            None => id.to_owned(),
        }
    }
}

/// The attributes of an activity, as notes.
fn notes(members: &Object, is_own: bool) -> Vec<(Vec<u8>, Vec<u8>)> {
    let all = members
        .iter()
        .filter(|(name, _)| !(TAKEN.contains(&name.as_str()) || is_own && name.starts_with(OWN)));
    let all = all.filter_map(|(name, value)| {
        let key = match name.strip_prefix("note:").or(name.strip_prefix("record:")) {
            Some(own) => unescaped(own.as_bytes()),
            None => name.as_bytes().to_vec(),
        };
        Some((key, terms::shown(value)?.into_bytes()))
    });
    let types = terms::texts(members, "prov:type").into_iter();
    let types = types.filter(|_| !is_own);
    let types = types.map(|one| (b"type".to_vec(), one.as_bytes().to_vec()));
    all.chain(types).take(MOST_NOTES).collect()
}

/// A text as the only word.
pub(super) fn alone(text: &str) -> Vec<Vec<u8>> {
    vec![text.as_bytes().to_vec()]
}

/// The last part of a name.
fn local(id: &str) -> &str {
    id.split_once(':').map_or(id, |(_, local)| local)
}

/// True for a text that can only be a path: `a/b`, not `urn:x` and not a place's name.
fn is_plain_path(text: &str) -> bool {
    let has_scheme = text
        .split_once(':')
        .is_some_and(|(scheme, _)| !scheme.contains('/'));
    text.contains('/') && !has_scheme
}

/// The kind with this word.
fn kind_of(word: &str) -> Option<EntityKind> {
    words::kind(word)
}
