//! A step in one or two lines: its command, then what the command does not say.

use backstory_ordering::{SmallCollect, SmallSort};
use std::collections::{BTreeMap, BTreeSet};

use backstory_account::{Account, Command, Direction, Siblings, pattern_text};
use backstory_graph::marks::{CALLS_OF, SchemaState};
use backstory_query::address_of;
use backstory_workflow::paths::{absolute, base_name, parent, relative};
use backstory_workflow::steps::Word;

use super::Sheet;
use crate::text::command::shortened;
use crate::text::line::{cut, excerpt, printable};
use crate::text::paths::shown;
use crate::text::style::Role;

/// The most paths and patterns of a list.
const FEW: usize = 5;

/// The most columns of the reason why a record violates its schema.
const LONGEST_REASON: usize = 100;

/// A path for a reader: from the current directory if it lies below. Of a connection, the address.
pub fn name(path: &[u8], sheet: Sheet<'_>) -> String {
    match address_of(path) {
        Some(address) => printable(address),
        None => shown(relative(path, sheet.here)),
    }
}

/// Writes steps one after another. It names the directory of a step where it changes.
pub struct StepWriter<'a> {
    account: &'a Account,
    sheet: Sheet<'a>,
    directory: Vec<u8>,
}

impl<'a> StepWriter<'a> {
    /// A writer whose first step needs no directory if it ran in the current one.
    pub fn new(account: &'a Account, sheet: Sheet<'a>) -> StepWriter<'a> {
        StepWriter {
            account,
            sheet,
            directory: sheet.here.to_vec(),
        }
    }

    /// The lines of a step.
    pub fn step(&mut self, step: &Siblings) -> Vec<String> {
        let (style, mut lines) = (self.sheet.style, Vec::new());
        if self.enters(step) {
            let place = name(&self.directory, self.sheet);
            lines.push(style.paint(Role::Dim, &format!("in {place}:")));
        }
        let times = match step.commands.len() {
            1 => String::new(),
            many => format!("{many} × "),
        };
        let room = self.sheet.width.saturating_sub(2 + times.chars().count());
        let command = style.paint(Role::Command, &shortened(&step.words, room));
        lines.push(format!("  {times}{command}"));
        let facts = self.facts(step);
        if !facts.is_empty() {
            let facts = excerpt(&facts, self.sheet.width.saturating_sub(6));
            lines.push(format!("      {}", style.paint(Role::Dim, &facts)));
        }
        lines
    }

    /// Whether the directory of the step has to be named. The writer is in it from now on. A
    /// transaction of a database has no directory.
    pub fn enters(&mut self, step: &Siblings) -> bool {
        let is_new = *step.cwd != *self.directory && !step.cwd.is_empty();
        if is_new {
            self.directory = step.cwd.to_vec();
        }
        is_new
    }

    /// The number of lines of a step without that of its directory.
    pub fn height(&self, step: &Siblings) -> usize {
        1 + usize::from(!self.facts(step).is_empty())
    }

    /// The files of a step that its command does not name, its sources, the peers of its
    /// connections, and its attributes.
    fn facts(&self, step: &Siblings) -> String {
        let mut facts = Vec::new();
        for (word, paths) in self.unnamed(step) {
            if !paths.is_empty() {
                let paths: Vec<&[u8]> = paths.into_iter().collect();
                facts.push(format!("{word} {}", self.list(&paths, &step.cwd, FEW)));
            }
        }
        if let [at] = step.commands[..] {
            facts.extend(attributes(&self.account.commands[at]));
        }
        let commands = step.commands.iter();
        facts.extend(violations(commands.map(|&at| &self.account.commands[at])));
        facts.join("; ")
    }

    /// The files and peers that the lines of the commands do not show, each kind with its words.
    fn unnamed(&self, step: &Siblings) -> [(&'static str, BTreeSet<&'a [u8]>); 6] {
        let account = self.account;
        let back = account.direction == Direction::Back;
        let (mut made, mut from, mut sources) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let (mut received, mut sent) = (BTreeSet::new(), BTreeSet::new());
        for &at in &step.commands {
            let command = &account.commands[at];
            let named = named(command);
            for &file in &command.writes {
                let file = &account.files[file];
                if file.is_peer() && !back {
                    sent.extend(address_of(&file.path));
                } else if !named.contains(&*file.path) && file.is_content() && file.own {
                    made.insert(&*file.path);
                }
            }
            for &at in &command.reads {
                let file = &account.files[at];
                if file.is_peer() && back {
                    received.extend(address_of(&file.path));
                } else if file.is_content() && file.own {
                    if account.is_source(at) && back {
                        sources.insert(&*file.path);
                    } else if !named.contains(&*file.path) {
                        from.insert(&*file.path);
                    }
                }
            }
        }
        let changed: BTreeSet<&[u8]> = made.intersection(&from).copied().into_tree();
        made.retain(|path| !changed.contains(path));
        from.retain(|path| !changed.contains(path));
        [
            ("received from", received),
            ("sent to", sent),
            ("changed", changed),
            ("made", made),
            ("sources:", sources),
            ("from", from),
        ]
    }

    /// A path from this directory or the current one if it lies below.
    fn near<'p>(&self, path: &'p [u8], directory: &[u8]) -> &'p [u8] {
        let near = relative(path, directory);
        match near.len() < path.len() {
            true => near,
            false => relative(path, self.sheet.here),
        }
    }

    /// Paths with those of one directory and ending joined: `few` of these groups, then a count.
    pub fn list(&self, paths: &[&[u8]], directory: &[u8], few: usize) -> String {
        self.groups(paths, directory, few).join(", ")
    }

    /// The parts of [`StepWriter::list`].
    pub fn groups(&self, paths: &[&[u8]], directory: &[u8], few: usize) -> Vec<String> {
        // By directory and ending.
        let mut groups = BTreeMap::<(&[u8], &[u8]), Vec<&[u8]>>::new();
        for &path in paths {
            let name = base_name(path);
            let dot = name.iter().rposition(|&byte| byte == b'.');
            let ending = dot.map_or(&[][..], |at| &name[at..]);
            groups.entry((parent(path), ending)).or_default().push(path);
        }
        let mut groups: Vec<Vec<&[u8]>> = groups.into_values().collect();
        groups.sort_small_by_key(|group| std::cmp::Reverse(group.len() > 2));
        let (mut texts, mut named) = (Vec::new(), 0);
        for group in groups {
            let mut near: Vec<&[u8]> = group
                .iter()
                .map(|path| self.near(path, directory))
                .collect();
            if texts.len() >= few {
                break;
            }
            let pattern = pattern_text(&near);
            match near.len() {
                1 | 2 => texts.extend(near.iter().map(|path| shown(path))),
                // `*` alone tells nothing.
                _ if pattern == "*" => {
                    near.truncate(few - texts.len());
                    texts.extend(near.iter().map(|path| shown(path)));
                }
                many => {
                    named += many;
                    texts.push(format!("{pattern} ({many})"));
                    continue;
                }
            }
            named += near.len();
        }
        if named < paths.len() {
            texts.push(format!("{} more", paths.len() - named));
        }
        texts
    }
}

/// The files that the words of a command name. A word may be the name of a thing, too.
fn named(command: &Command) -> BTreeSet<Vec<u8>> {
    let texts = command.line.words.iter().filter_map(|word| match word {
        Word::Text(text) => Some(text),
        _ => None,
    });
    texts
        .flat_map(|text| [absolute(text, &command.line.cwd), text.to_vec()])
        .collect()
}

/// The attributes that the program gave to a step: `loss 0.12, rate 3`. `processes` has the counts
/// of calls.
fn attributes(command: &Command) -> Option<String> {
    let all = command.attributes.iter();
    let all = all.filter(|(name, _)| !name.starts_with(CALLS_OF));
    let pairs = all.map(|(name, value)| format!("{} {}", printable(name), printable(value)));
    let pairs: Vec<String> = pairs.take(FEW).collect();
    (!pairs.is_empty()).then(|| format!("noted {}", pairs.join(", ")))
}

/// The schemas that extended records of a step violate, each with the first reason.
fn violations<'a>(commands: impl Iterator<Item = &'a Command>) -> Option<String> {
    let records = commands.flat_map(|command| &command.records);
    let judged = records.filter_map(|one| one.judgement.as_ref());
    let mut reasons: BTreeMap<String, String> = BTreeMap::new();
    for one in judged.filter(|one| one.state == SchemaState::Violates) {
        let reason = reasons.entry(printable(&one.schema));
        reason.or_insert_with(|| cut(&printable(&one.why), LONGEST_REASON));
    }
    let named = reasons.iter().take(FEW);
    let named = named.map(|(schema, why)| format!("record violates {schema}: {why}"));
    let named: Vec<String> = named.collect();
    (!named.is_empty()).then(|| named.join("; "))
}
