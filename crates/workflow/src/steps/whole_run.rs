//! A run's own command as one step, with the files that it printed into.
//!
//! The user redirected the output of the command: `backstory record sort in > out`. The file is no
//! output of any step within the run, since each of its programs may have printed a part.

use backstory_ordering::SmallCollect;
use std::collections::{BTreeSet, HashSet};

use backstory_eventlog::event::Bytes;
use backstory_graph::model::{Entity, EntityId, EntityKind};
use backstory_query::Globs;
use backstory_redaction as redaction;

use super::RunCommands;
use super::effects::Effects;
use super::line::{Line, Word};
use super::part::Part;
use super::refusals::removal;
use super::units::outside;
use crate::paths::relative;
use crate::recording::Recording;

/// The run's command, with its standard input if that was a file. `printed`: the descriptors that
/// the user redirected to results, with the paths.
pub fn whole_line(recording: &Recording, printed: &[(u32, Bytes)]) -> Line {
    let summary = &recording.details.summary;
    let words = summary.command.iter().enumerate();
    let words = words.map(|(at, word)| match at {
        0 => Word::Program(word.clone()),
        _ => Word::Text(word.clone()),
    });
    let mut words: Vec<Word> = words.collect();
    let file = |path: &[u8]| Word::Text(relative(path, recording.cwd()).into());
    if let Some(input) = outer_file(recording) {
        words.extend([Word::Operator("<"), file(&input.path)]);
    }
    let output = printed.iter().find(|(number, _)| *number == 1);
    for (number, path) in printed {
        match (number, output) {
            (2, Some((_, output))) if output == path => words.push(Word::Operator("2>&1")),
            (2, _) => words.extend([Word::Operator("2>"), file(path)]),
            _ => words.extend([Word::Operator(">"), file(path)]),
        }
    }
    Line {
        cwd: recording.cwd().into(),
        words,
        exit: summary.exit.unwrap_or(0),
    }
}

/// The standard input with which the run's command began, if it is known.
pub fn outer_input(recording: &Recording) -> Option<&Entity> {
    let root = recording.roots().next()?;
    Some(recording.entity(recording.standard[root].input?.entity))
}

/// The file that the user redirected to the command's standard input.
fn outer_file(recording: &Recording) -> Option<&Entity> {
    let is_file = |input: &&Entity| input.kind == EntityKind::File && input.path.starts_with(b"/");
    outer_input(recording).filter(is_file)
}

/// The files that were not there before the run. The command begins without them again: it may add
/// to them, or look whether they are there.
fn made_anew(recording: &Recording, effects: &Effects) -> BTreeSet<Bytes> {
    let found = recording.entities.iter();
    let found = found.filter(|entity| entity.version == 0 && entity.kind != EntityKind::Missing);
    let found: HashSet<&Bytes> = found.map(|entity| &entity.path).collect();
    let made = effects.made.iter().filter(|(_, made)| made.last);
    let anew = made.filter(|(path, _)| !found.contains(path));
    anew.map(|(path, _)| path.clone()).into_tree()
}

impl RunCommands {
    /// The run's command as the only one, which makes the files that it printed into. Files that
    /// match `exclude` are its inputs and outputs neither.
    pub fn whole(recording: &Recording, printed: &[(u32, Bytes)], exclude: &Globs) -> RunCommands {
        let is_printed = |id: &EntityId| {
            let path = &recording.entity(*id).path;
            printed.iter().any(|(_, file)| file == path)
        };
        let mut outside: HashSet<EntityId> = outside(recording);
        let input = outer_file(recording).map(|input| input.id);
        outside.retain(|id| !is_printed(id) && input != Some(*id));
        let members: Vec<usize> = (0..recording.activities.len()).collect();
        let summary = &recording.details.summary;
        let effects = Effects::of(recording, &members, &outside, exclude);
        let anew = made_anew(recording, &effects);
        let anew: Vec<&Bytes> = anew
            .iter()
            .filter(|path| !printed.iter().any(|(_, file)| file == *path))
            .collect();
        let cwd = Bytes::from(recording.cwd());
        let removal = (!anew.is_empty()).then(|| removal(&cwd, &anew));
        let line = whole_line(recording, printed);
        let part = Part {
            run: 0,
            lines: removal.into_iter().chain([line]).collect(),
            effects,
            start: summary.started,
            end: summary.ended.unwrap_or(summary.started),
            members,
        };
        let is_redacted = summary.command.iter().any(|word| redaction::has_mark(word));
        let note = is_redacted.then(|| {
            "an argument of the recorded command was redacted: put yours in its place".to_owned()
        });
        RunCommands {
            run: summary.id.clone(),
            repeats: summary.repeats.clone(),
            parts: vec![part],
            notes: note.into_iter().into_tree::<BTreeSet<_>>(),
        }
    }
}
