//! Derived views: files of which a program took only a part. They are judged by that part.
//!
//! Every program reads some files of the system, and caches that are made from other files. A
//! change of such a file decides nothing by itself. The lists are in `tools.toml`, table
//! `derived`; `docs/currency.md` says for each list what is compared instead.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::rc::Rc;

use backstory_eventlog::event::Bytes;
use backstory_files::regular;
use backstory_graph::model::{EntityKind, Relation};
use backstory_workflow::paths::{base_name, contains, is_cache, is_tool, parent, to_path};
use backstory_workflow::steps::{is_bookkeeping, is_one, script};
use backstory_workflow::tools::{DerivedViews, knowledge};

use crate::library_index::LibraryIndex;
use crate::loaded_runs::LoadedRun;

/// How a file is judged for an activity that used it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ViewRule {
    /// It decided nothing.
    Nothing,
    /// By the libraries that the activity loaded.
    Libraries,
    /// By the file that this one was compiled from.
    Source(Bytes),
    /// By its content, as any other file.
    Content,
}

/// Judges derived views. Each index of libraries is read once.
#[derive(Debug, Default)]
pub struct ViewJudge {
    indexes: RefCell<HashMap<Bytes, Option<Rc<LibraryIndex>>>>,
}

impl ViewJudge {
    /// How the file at `path` is judged for an activity of a run that used it.
    pub fn rule(&self, run: &LoadedRun, at: usize, path: &[u8]) -> ViewRule {
        let views = &knowledge().derived;
        let is_any = |list: &[String]| list.iter().any(|known| known.as_bytes() == path);
        let has_any = |list: &[String]| list.iter().any(|part| contains(path, part.as_bytes()));
        if is_any(&views.library_indexes) {
            return ViewRule::Libraries;
        }
        if let Some(source) = source(path) {
            return ViewRule::Source(source);
        }
        let decides_nothing = is_any(&views.everybody)
            || has_any(&views.indexes)
            || is_cache(path) && !path.ends_with(b".pyc") && run.keeps_cache(at, path)
            || is_any(&views.accounts) && looks_up_accounts(views, run, at)
            || starts_with_any(path, &views.package_lists) && looks_up_packages(views, run, at)
            || is_bookkeeping(&run.recording, at, path);
        match decides_nothing {
            true => ViewRule::Nothing,
            false => ViewRule::Content,
        }
    }

    /// The index of libraries at a path, as it is now.
    fn index(&self, path: &Bytes) -> Option<Rc<LibraryIndex>> {
        if let Some(known) = self.indexes.borrow().get(path) {
            return known.clone();
        }
        let bytes = regular::read(to_path(path)).ok();
        let index = bytes.and_then(|bytes| LibraryIndex::parse(&bytes));
        let index = index.map(Rc::new);
        self.indexes
            .borrow_mut()
            .insert(path.clone(), index.clone());
        index
    }

    /// A library that the activity loaded and that the loader would now find elsewhere. `path`: the
    /// index of libraries that the activity read.
    pub fn moved_library(&self, run: &LoadedRun, at: usize, path: &Bytes) -> Option<Bytes> {
        let index = self.index(path)?;
        let loads = run.recording.edges[at].iter();
        let loads = loads.filter(|edge| edge.relation == Relation::Execute);
        let files = loads.map(|edge| run.recording.entity(edge.entity));
        let files = files.filter(|file| file.kind == EntityKind::File && file.version == 0);
        let mut names = files.flat_map(|file| {
            let names = std::iter::once(&file.path).chain(&file.aliases);
            names.map(move |name| (name, &file.path))
        });
        names.find_map(|(name, path)| {
            let known = index.paths(base_name(name));
            let real = |path: &[u8]| fs::canonicalize(to_path(path)).ok();
            let here = real(path)?;
            // A library that is not below a directory of the index was found by other means.
            let listed = known.iter().any(|known| parent(known) == parent(name));
            let there = known
                .iter()
                .any(|known| real(known).as_ref() == Some(&here));
            (listed && !there).then(|| path.clone())
        })
    }

    /// True if names that appeared in a directory are of no concern. The activity looked for
    /// modules in a tool's directory or in that of its script, and it looked for none of these
    /// names.
    pub fn is_module_search(
        &self,
        run: &LoadedRun,
        at: usize,
        directory: &[u8],
        appeared: &BTreeSet<&Vec<u8>>,
    ) -> bool {
        let program = run.recording.activities[at].exec_path.as_deref();
        let finders = &knowledge().derived.module_finders;
        let inside = [directory, b"/"].concat();
        if !program.is_some_and(|program| is_one(program, finders)) {
            return false;
        }
        let beside_script =
            script(&run.recording, at).is_some_and(|script| parent(&script) == directory);
        if !(is_tool(&inside) || beside_script && run.texts.lists_nothing(&run.recording, at)) {
            return false;
        }
        let used = run.recording.edges[at].iter();
        let used = used.filter(|edge| edge.relation.is_use());
        let wanted: HashSet<&[u8]> = used
            .flat_map(|edge| {
                let path = &run.recording.entity(edge.entity).path;
                [stem(base_name(path)), stem(base_name(parent(path)))]
            })
            .collect();
        appeared.iter().all(|name| !wanted.contains(stem(name)))
    }
}

/// The source of a compiled Python module: `DIR/__pycache__/NAME.TAG.pyc` is of `DIR/NAME.py`.
fn source(path: &[u8]) -> Option<Bytes> {
    let directory = parent(path).strip_suffix(b"/__pycache__")?;
    let name = base_name(path).strip_suffix(b".pyc")?;
    Some([directory, b"/", stem(name), b".py"].concat().into())
}

/// A name up to its first point.
fn stem(name: &[u8]) -> &[u8] {
    let end = name.iter().skip(1).position(|&byte| byte == b'.');
    &name[..end.map_or(name.len(), |end| end + 1)]
}

/// True if the compiled module at `path` belongs to the present version of its source. A pyc file
/// has the source's time and size in its header (PEP 552).
pub fn is_compiled_from(path: &[u8], mtime: i64, size: i64) -> bool {
    let Ok(bytes) = regular::read(to_path(path)) else {
        return false;
    };
    let number = |at: usize| {
        let four = bytes.get(at..at + 4)?;
        Some(u32::from_le_bytes(four.try_into().ok()?))
    };
    let seconds = mtime.div_euclid(1_000_000_000);
    (number(4), number(8), number(12)) == (Some(0), Some(seconds as u32), Some(size as u32))
}

/// True if the activity looked up single names: it read the switch, too, and is no program that
/// prints all.
fn looks_up_accounts(views: &DerivedViews, run: &LoadedRun, at: usize) -> bool {
    let mut used = run.recording.edges[at].iter();
    let switch = used.any(|edge| {
        let path = &run.recording.entity(edge.entity).path;
        let mut switches = views.account_switches.iter();
        edge.relation == Relation::Read && switches.any(|known| known.as_bytes() == &**path)
    });
    switch && !is_program(&views.account_listers, run, at)
}

/// True if the activity, or one that started it, is a program that looks up single packages.
fn looks_up_packages(views: &DerivedViews, run: &LoadedRun, at: usize) -> bool {
    let mut line = std::iter::once(at).chain(run.recording.ancestors(at));
    line.any(|at| is_program(&views.package_readers, run, at))
}

/// True if the activity's program, or the script that it interprets, has one of the names.
fn is_program(names: &[String], run: &LoadedRun, at: usize) -> bool {
    let activity = &run.recording.activities[at];
    let words = activity.argv.iter().take(3).map(|word| &**word);
    let mut words = words.chain(activity.exec_path.as_deref());
    words.any(|word| {
        let name = base_name(word);
        names.iter().any(|known| known.as_bytes() == name)
    })
}

fn starts_with_any(path: &[u8], prefixes: &[String]) -> bool {
    let mut prefixes = prefixes.iter();
    prefixes.any(|prefix| path.starts_with(prefix.as_bytes()))
}
