//! Which commands are left out of the steps: those that leave nothing, and those that later runs
//! repeated.

use backstory_ordering::SmallCollect;
use std::collections::{BTreeSet, HashMap};

use backstory_eventlog::event::Bytes;

use super::RunCommands;
use super::line::Line;
use super::part::Part;

/// Leaves out commands whose files were all made anew by commands of later runs: repeated work is
/// done as it was done last. Only the files of `lasting` count, because temporary files have other
/// names each time. Returns whether a command was left out.
pub fn leave_out_superseded(
    parts: &mut Vec<Part>,
    lasting: &BTreeSet<Bytes>,
    notes: &mut BTreeSet<String>,
) -> bool {
    let anew = |path: &Bytes, before: &Part| {
        parts
            .iter()
            .any(|later| later.run > before.run && later.effects.makes_anew(path))
    };
    let old = |part: &Part| {
        let made = || {
            part.effects
                .made
                .keys()
                .filter(|path| lasting.contains(*path))
        };
        made().next().is_some() && made().all(|path| anew(path, part))
    };
    let keep: Vec<bool> = parts.iter().map(|part| !old(part)).collect();
    let gone = keep.iter().filter(|keep| !**keep).count();
    if gone > 0 {
        notes.insert(format!(
            "{gone} commands are left out, because later runs made the same files anew"
        ));
    }
    let mut keep = keep.into_iter();
    parts.retain(|_| keep.next().unwrap_or(true));
    gone > 0
}

/// Leaves out commands that `rerun` has repeated in a later run. The later command counts, also if
/// it changed a file that the earlier one had made, or found a file of it up to date.
pub fn leave_out_repeated(parts: &mut Vec<Part>, runs: &[&RunCommands]) {
    if runs.iter().all(|run| run.repeats.is_none()) {
        return;
    }
    let text = |part: &Part| -> Vec<String> { part.lines.iter().map(Line::headline).collect() };
    let texts: Vec<Vec<String>> = parts.iter().map(text).collect();
    let mut keep = vec![true; parts.len()];
    for at in 0..parts.len() {
        let again = |&later: &usize| {
            texts[later] == texts[at] && repeats(runs, parts[later].run, parts[at].run)
        };
        let Some(later) = (at + 1..parts.len()).rev().find(again) else {
            continue;
        };
        keep[at] = false;
        let made = std::mem::take(&mut parts[at].effects.made);
        for (path, how) in made {
            parts[later].effects.made.entry(path).or_insert(how);
        }
    }
    let mut keep = keep.into_iter();
    parts.retain(|_| keep.next().unwrap_or(true));
}

/// True if the run `later` repeats the run `earlier`, directly or over others.
fn repeats(runs: &[&RunCommands], later: usize, earlier: usize) -> bool {
    let mut at = later;
    while let Some(repeated) = &runs[at].repeats {
        // A run repeats an older one, and runs are in order of time.
        match runs[..at].iter().position(|run| run.run == *repeated) {
            Some(next) if next == earlier => return true,
            Some(next) => at = next,
            None => return false,
        }
    }
    false
}

/// Paths that exist at the end, or that another command than their maker reads.
pub fn lasting(parts: &[Part]) -> BTreeSet<Bytes> {
    let mut readers: HashMap<&Bytes, Vec<usize>> = HashMap::new();
    for (at, part) in parts.iter().enumerate() {
        part.effects
            .read
            .keys()
            .for_each(|path| readers.entry(path).or_default().push(at));
    }
    let mut lasting = BTreeSet::new();
    for (at, part) in parts.iter().enumerate() {
        for (path, made) in &part.effects.made {
            let read = || {
                readers
                    .get(path)
                    .is_some_and(|readers| readers.iter().any(|&reader| reader != at))
            };
            if made.last || read() || renamed_by_another(parts, at, path) {
                lasting.insert(path.clone());
            }
        }
    }
    lasting
}

/// True if another command than its maker renamed the file.
fn renamed_by_another(parts: &[Part], maker: usize, path: &Bytes) -> bool {
    let takes = |(at, part): (usize, &Part)| {
        at != maker && part.effects.removed.contains_key(path) && !part.effects.made.is_empty()
    };
    parts.iter().enumerate().any(takes)
}

/// Leaves out commands that made nothing that lasts and changed nothing that others made. The
/// result is the number of those that neither made a directory nor removed a file.
pub fn leave_out(parts: &mut Vec<Part>, lasting: &BTreeSet<Bytes>) -> usize {
    let before = parts.len();
    let printed =
        |part: &Part| part.effects.directories.is_empty() && part.effects.removed.is_empty();
    let made: BTreeSet<Bytes> = parts
        .iter()
        .flat_map(|part| part.effects.made.keys().cloned())
        .into_tree();
    let makes = |part: &Part| {
        part.effects.made.keys().any(|path| lasting.contains(path))
            || part
                .effects
                .touched
                .keys()
                .any(|path| made.contains(path) && lasting.contains(path))
    };
    let unreported = parts
        .iter()
        .filter(|part| !makes(part) && !printed(part))
        .count();
    parts.retain(makes);
    before - parts.len() - unreported
}
