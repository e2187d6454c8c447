//! The programs of a deep run that no byte of a file came from: the engine need not follow them.
//!
//! In: a run, and a file that it wrote. Out: Valgrind's patterns of the programs that run again
//! natively. A pattern is the name of a program or one of its arguments. No program behind the file
//! has that name or argument, and neither has a program that started one of these.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use backstory_eventlog::event::Bytes;
use backstory_query::answer::{Node, ProcessLine, Scope};
use backstory_store::Store;

use crate::error::Failure;

/// The engine's options have at most this many bytes of patterns.
const MOST: usize = 4096;

/// Programs that are not followed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ProgramsAside {
    /// Their names.
    names: BTreeSet<Bytes>,
    /// Arguments of those that have the name of a program that is followed.
    arguments: BTreeSet<Bytes>,
    /// How many are followed.
    pub followed: usize,
    /// How many programs the run has.
    pub of: usize,
}

impl ProgramsAside {
    /// The options of Valgrind.
    pub fn options(&self) -> Vec<OsString> {
        let option = |name: &str, before: &[u8], patterns: &BTreeSet<Bytes>| {
            let patterns: Vec<Vec<u8>> =
                patterns.iter().map(|one| [before, one].concat()).collect();
            let words = [name.as_bytes(), &patterns.join(&b","[..])].concat();
            (!patterns.is_empty()).then(|| OsString::from_vec(words))
        };
        let names = option("--trace-children-skip=", b"*/", &self.names);
        let arguments = option("--trace-children-skip-by-arg=", b"", &self.arguments);
        names.into_iter().chain(arguments).collect()
    }
}

/// The programs of a run that are not behind a file. `None` if all are, or none can be told apart.
pub fn programs_aside(
    store: &dyn Store,
    run: &str,
    path: &Path,
) -> Result<Option<ProgramsAside>, Failure> {
    let scope = Scope {
        possible: true,
        run: Some(run.to_owned()),
        ..Scope::default()
    };
    let lineage = backstory_query::ancestry(store, path, &scope)?;
    let behind = lineage.nodes.iter().filter_map(|node| match node {
        Node::Activity { id, .. } => Some(*id),
        Node::Entity { .. } => None,
    });
    let lines = backstory_query::processes(store, run)?;
    let epochs: Vec<Epoch> = lines.iter().map(Epoch::of).collect();
    let found = aside(&epochs, behind.collect());
    Ok((found.followed < found.of).then_some(found))
}

/// The part of an activity that is needed here.
struct Epoch {
    id: u64,
    parent: Option<u64>,
    /// A program that a process executed.
    is_program: bool,
    /// The names under which it may have been executed.
    names: Vec<Bytes>,
    words: Vec<Bytes>,
}

impl Epoch {
    fn of(line: &ProcessLine) -> Epoch {
        let activity = &line.activity;
        let paths = activity.exec_path.iter().chain(activity.argv.first());
        let name = |path: &Bytes| path.rsplit(|byte| *byte == b'/').next().map(Bytes::from);
        Epoch {
            id: line.id,
            parent: line.parent_id,
            is_program: activity.epoch > 0 && !line.marked,
            names: paths.filter_map(name).collect(),
            words: activity.argv.clone(),
        }
    }
}

/// The epochs with these ids, and all that they began in.
fn with_parents(epochs: &HashMap<u64, &Epoch>, ids: HashSet<u64>) -> HashSet<u64> {
    let mut all = HashSet::new();
    for first in ids {
        let mut next = Some(first);
        while let Some(id) = next.filter(|id| all.insert(*id)) {
            next = epochs.get(&id).and_then(|epoch| epoch.parent);
        }
    }
    all
}

fn aside(epochs: &[Epoch], behind: HashSet<u64>) -> ProgramsAside {
    let by_id: HashMap<u64, &Epoch> = epochs.iter().map(|epoch| (epoch.id, epoch)).collect();
    let needed = with_parents(&by_id, behind);
    let kept = || epochs.iter().filter(|epoch| needed.contains(&epoch.id));
    let kept_names: HashSet<&Bytes> = kept().flat_map(|epoch| &epoch.names).collect();
    let kept_words: HashSet<&Bytes> = kept().flat_map(|epoch| &epoch.words).collect();
    let mut found = ProgramsAside::default();
    let (mut left, mut native) = (MOST, HashSet::new());
    let rest = epochs.iter().filter(|epoch| !needed.contains(&epoch.id));
    for epoch in rest.filter(|epoch| epoch.is_program) {
        let is_free = |known: &HashSet<&Bytes>, text| is_plain(text) && !known.contains(text);
        let (patterns, names): (_, Vec<&Bytes>) =
            match epoch.names.iter().all(|name| is_free(&kept_names, name)) {
                true => (&mut found.names, epoch.names.iter().collect()),
                false => {
                    let mut words = epoch.words.iter();
                    let word = words.find(|word| is_free(&kept_words, word));
                    (&mut found.arguments, word.into_iter().collect())
                }
            };
        let size: usize = names.iter().map(|name| name.len() + 3).sum();
        if size > 0 && size <= left {
            left -= size;
            patterns.extend(names.into_iter().cloned());
            native.insert(epoch.id);
        }
    }
    let programs = || epochs.iter().filter(|epoch| epoch.is_program);
    let is_native = |epoch: &&Epoch| {
        let above = with_parents(&by_id, HashSet::from([epoch.id]));
        !native.is_disjoint(&above)
    };
    found.of = programs().count();
    found.followed = found.of - programs().filter(is_native).count();
    found
}

/// True if a pattern that is this text fits nothing else.
fn is_plain(text: &Bytes) -> bool {
    !text.is_empty()
        && !text
            .iter()
            .any(|byte| matches!(byte, b',' | b'*' | b'?' | b'\\' | b'\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program with a number and that of its parent.
    fn program(id: u64, parent: u64, line: &str) -> Epoch {
        let words: Vec<Bytes> = line
            .split(' ')
            .map(|word| Bytes::from(word.as_bytes()))
            .collect();
        Epoch {
            id,
            parent: (parent > 0).then_some(parent),
            is_program: true,
            names: words[..1].to_vec(),
            words,
        }
    }

    fn options(epochs: &[Epoch], behind: &[u64]) -> (Vec<String>, usize) {
        let found = aside(epochs, behind.iter().copied().collect());
        let texts = found
            .options()
            .into_iter()
            .map(|option| option.into_string().unwrap());
        (texts.collect(), found.followed)
    }

    #[test]
    fn a_program_is_left_aside_by_its_name_or_by_an_argument_of_its_own() {
        let all = [
            program(1, 0, "make all"),
            program(2, 1, "sort in"),
            program(3, 1, "wc -l"),
            program(4, 1, "sort other"),
        ];
        let expected = [
            "--trace-children-skip=*/wc",
            "--trace-children-skip-by-arg=other",
        ];
        assert_eq!(
            options(&all, &[2]),
            (expected.map(str::to_owned).to_vec(), 2)
        );
        assert_eq!(options(&all, &[2, 3, 4]), (Vec::new(), 4));
    }

    #[test]
    fn a_program_that_no_pattern_tells_apart_is_followed() {
        let all = [
            program(1, 0, "make all"),
            program(2, 1, "sort in -r"),
            program(3, 1, "sort -r in"),
            program(4, 1, "sort a,b *"),
        ];
        assert_eq!(options(&all, &[2]), (Vec::new(), 4));
    }

    #[test]
    fn programs_that_started_a_needed_one_are_followed_and_children_of_others_are_not() {
        let all = [
            program(1, 0, "make all"),
            program(2, 1, "sh step"),
            program(3, 2, "sort in"),
            program(4, 1, "perl other"),
            program(5, 4, "sort in"),
        ];
        let expected = vec!["--trace-children-skip=*/perl".to_owned()];
        assert_eq!(options(&all, &[3]), (expected, 3));
    }

    #[test]
    fn patterns_have_a_bounded_length() {
        let mut all = vec![program(1, 0, "make all")];
        all.extend((2..1000).map(|id| program(id, 1, &format!("program-{id}"))));
        let (found, followed) = options(&all, &[1]);
        assert!(found[0].len() <= MOST + 64 && followed > 1, "{followed}");
    }
}
