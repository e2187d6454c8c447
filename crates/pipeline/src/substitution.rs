//! Replaces texts of a run: names, arguments, directories, variables and attributes.
//!
//! In: a graph and the header of its run. Out: the same with other texts, and how many nodes
//! changed. Identities of files stay, so that runs stay joined.

use std::borrow::Cow;

use backstory_eventlog::event::Bytes;
use backstory_eventlog::run::RunHeader;
use backstory_graph::marks::{ATTRIBUTE, JUDGEMENT, is_record_type};
use backstory_graph::memory::MemorySink;
use backstory_graph::model::{Activity, ActivityId, ByName, Entity};
use backstory_redaction::MARK;
use regex::bytes::{NoExpand, Regex};

/// A replacement of texts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Substitution<'f> {
    /// Matching parts become the mark of redaction. `None`: the whole text.
    Mark(Option<&'f Regex>),
    /// Matching parts become another text.
    Text(&'f Regex, &'f [u8]),
}

impl Substitution<'_> {
    /// The new text. `None` if it is the old one.
    fn of(&self, text: &[u8]) -> Option<Vec<u8>> {
        let new = match self {
            Substitution::Mark(None) => Cow::Owned(MARK.to_vec()),
            Substitution::Mark(Some(regex)) => regex.replace_all(text, NoExpand(MARK)),
            Substitution::Text(regex, to) => regex.replace_all(text, *to),
        };
        match new {
            Cow::Borrowed(_) => None,
            Cow::Owned(new) => (new != text).then_some(new),
        }
    }

    /// Changes a text. True if it is another one then.
    pub fn apply(&self, text: &mut Bytes) -> bool {
        let new = self.of(text);
        let changed = new.is_some();
        if let Some(new) = new {
            *text = new.into();
        }
        changed
    }

    fn apply_to_all<'t>(&self, texts: impl IntoIterator<Item = &'t mut Bytes>) -> bool {
        let mut changed = false;
        for text in texts {
            changed |= self.apply(text);
        }
        changed
    }

    fn apply_to_owned<'t>(&self, texts: impl IntoIterator<Item = &'t mut Vec<u8>>) -> bool {
        let mut changed = false;
        for text in texts {
            if let Some(new) = self.of(text) {
                *text = new;
                changed = true;
            }
        }
        changed
    }

    /// Renames an entity. A whole name becomes a mark with a number, so that two files do not
    /// become versions of one.
    pub fn file(&self, entity: &mut Entity) -> bool {
        if let Substitution::Mark(None) = self {
            let number = entity.id.0;
            entity.path = [b"/", MARK, format!("/{number}").as_bytes()]
                .concat()
                .into();
            (entity.aliases, entity.by_name) = (Vec::new(), Vec::<ByName>::new());
            return true;
        }
        let path = self.apply(&mut entity.path);
        self.apply_to_all(&mut entity.aliases) || path
    }

    /// Changes the texts of a process, but not the records that its program made.
    pub fn process(&self, activity: &mut Activity) -> bool {
        if let Substitution::Mark(None) = self {
            let kept = activity.argv.len().min(1);
            let arguments = self.apply_to_all(&mut activity.argv[kept..]);
            return self.values(&mut activity.env_set) || arguments;
        }
        let program = activity
            .exec_path
            .as_mut()
            .is_some_and(|path| self.apply(path));
        let arguments = self.apply_to_all(&mut activity.argv);
        let directory = self.apply(&mut activity.cwd);
        self.values(&mut activity.env_set) || program || arguments || directory
    }

    /// Changes the values of variables, and not their names.
    fn values(&self, variables: &mut [Bytes]) -> bool {
        let mut changed = false;
        for variable in variables {
            let Some(name) = variable.iter().position(|&byte| byte == b'=') else {
                continue;
            };
            if let Some(value) = self.of(&variable[name + 1..]) {
                *variable = [&variable[..=name], &value].concat().into();
                changed = true;
            }
        }
        changed
    }

    /// Changes what a program said about itself.
    pub fn records(&self, graph: &mut MemorySink, of: &dyn Fn(ActivityId) -> bool) -> bool {
        let mut changed = false;
        for (activity, _, kind, payload) in &mut graph.extended {
            let is_text = kind == ATTRIBUTE || kind == JUDGEMENT || is_record_type(kind);
            if !is_text || !of(*activity) {
                continue;
            }
            // The name of an attribute stays, before a NUL. Of a judgement, two words do.
            let words = match &kind[..] {
                ATTRIBUTE => 1,
                JUDGEMENT => 2,
                _ => 0,
            };
            let mut ends = (0..payload.len()).filter(|&at| payload[at] == 0);
            let end = (0..words).filter_map(|_| ends.next()).last();
            let start = end.map_or(0, |end| end + 1);
            if let Some(new) = self.of(&payload[start..]) {
                payload.truncate(start);
                payload.extend(new);
                changed = true;
            }
        }
        changed
    }

    /// Changes the header of a run: command, name, directory and environment.
    pub fn header(&self, header: &mut RunHeader) -> bool {
        if let Substitution::Mark(None) = self {
            let kept = header.command.len().min(1);
            return self.apply_to_owned(&mut header.command[kept..]);
        }
        let mut changed = self.apply_to_owned(&mut header.command);
        changed |= self.apply_to_owned([&mut header.cwd]);
        changed |= self.apply_to_owned(header.descriptors.iter_mut().map(|(_, path)| path));
        let imported = header.imported.iter_mut().flat_map(|log| &mut log.files);
        changed |= self.apply_to_owned(imported.map(|file| &mut file.path));
        if let Some(line) = &mut header.line {
            changed |= self.apply_to_owned([&mut line.text]);
        }
        if let Some(name) = header.name.as_mut()
            && let Some(new) = self.of(name.as_bytes())
        {
            *name = String::from_utf8_lossy(&new).into_owned();
            changed = true;
        }
        for variable in &mut header.environment {
            let mut one: [Bytes; 1] = [variable.as_slice().into()];
            if self.values(&mut one) {
                *variable = one[0].to_vec();
                changed = true;
            }
        }
        changed
    }
}
