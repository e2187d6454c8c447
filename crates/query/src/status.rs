//! Decides whether a file is as the last run left it, and whether the inputs of that run are.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use backstory_eventlog::event::Bytes;
use backstory_files::Ident;
use backstory_graph::model::{Entity, EntityKind};
use backstory_store::{ActivityKey, EntityKey, Store, same_version};
use rustix::io::Errno;

use crate::answer::{FileState, FileStatus, Flow, Lineage, Link, Node, Scope};
use crate::decided::decided_since;
use crate::lineage::follow;
use crate::neighbours::Direction;
use crate::root::Asked;
use crate::{Error, Result, now, undone};

/// Compares files with their recorded versions.
pub fn status(store: &dyn Store, paths: &[PathBuf]) -> Result<Vec<FileStatus>> {
    let _one_state = store.reading()?;
    paths.iter().map(|path| of(store, path)).collect()
}

fn of(store: &dyn Store, path: &Path) -> Result<FileStatus> {
    let asked = Asked::new(path)?;
    let shown: Bytes = asked.absolute.as_os_str().as_bytes().into();
    let written = last_written(store, &asked)?.filter(|(_, entity)| !never_named(entity));
    let Some((key, entity)) = written else {
        return Ok(FileStatus {
            path: shown,
            run: None,
            state: FileState::Unknown,
            changed_inputs: Vec::new(),
        });
    };
    let record = store
        .run_by_key(key.run())?
        .ok_or_else(|| Error::NoRun(format!("number {}", key.run().0)))?;
    Ok(FileStatus {
        path: shown,
        run: Some(record.header.id),
        state: state(&asked.absolute, entity.kind, entity.ident.as_ref()),
        changed_inputs: changed_inputs(store, key)?,
    })
}

/// The version of this path that a run made last.
fn last_written(store: &dyn Store, asked: &Asked) -> Result<Option<(EntityKey, Entity)>> {
    let mut best: Option<(EntityKey, Entity)> = None;
    for name in asked.names() {
        let mut keys = store.at_path(name)?;
        undone::leave_out(store, &mut keys)?;
        for key in keys {
            let entity = store.entity(key)?;
            let rank =
                |key: EntityKey, entity: &Entity| (key.run(), entity.last, entity.version, key);
            if entity.version > 0
                && best
                    .as_ref()
                    .is_none_or(|(k, e)| rank(key, &entity) > rank(*k, e))
            {
                best = Some((key, entity));
            }
        }
    }
    Ok(best)
}

/// True for a file that was made without a name (`O_TMPFILE`, open(2)) and never got one. The graph
/// calls it `#` and a number, and no file exists there.
fn never_named(entity: &Entity) -> bool {
    let name = entity.path.rsplit(|byte| *byte == b'/').next();
    let number = name.and_then(|name| name.strip_prefix(b"#"));
    let path = Path::new(OsStr::from_bytes(&entity.path));
    number.is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
        && state(path, entity.kind, None) == FileState::Removed
}

fn state(path: &Path, kind: EntityKind, known: Option<&Ident>) -> FileState {
    match (now::look(path, kind != EntityKind::Symlink), known) {
        (Err(Errno::NOENT | Errno::NOTDIR), _) => FileState::Removed,
        (Err(_), _) | (_, None) => FileState::Uncertain,
        (Ok(now), Some(known)) if same_version(&now, known) => FileState::Current,
        _ => FileState::Modified,
    }
}

/// Inputs of the version that existed before its run and have changed since.
fn changed_inputs(store: &dyn Store, key: EntityKey) -> Result<Vec<(Bytes, FileState)>> {
    let scope = Scope {
        possible: true,
        ..Scope::default()
    };
    let lineage = follow(store, &[key], Direction::Back, &scope, Some(key.run()))?;
    let mut has_origin = vec![false; lineage.nodes.len()];
    for link in lineage
        .links
        .iter()
        .filter(|link| matches!(link.flow, Flow::Generated(_) | Flow::Derived))
    {
        has_origin[link.to] = true;
    }
    let mut changed = BTreeMap::new();
    for (at, node) in lineage.nodes.iter().enumerate() {
        if let Node::Entity {
            kind: kind @ (EntityKind::File | EntityKind::Symlink),
            path,
            ident,
            ..
        } = node
            && !has_origin[at]
        {
            let now = Path::new(OsStr::from_bytes(path));
            let state = state(now, *kind, ident.as_ref());
            if state != FileState::Current && !is_settled(store, &lineage, at, key, path)? {
                changed.insert(path.clone(), state);
            }
        }
    }
    Ok(changed.into_iter().collect())
}

/// True if only deciding programs read the input, and they have since read its present version
/// without causing a change.
fn is_settled(
    store: &dyn Store,
    lineage: &Lineage,
    input: usize,
    version: EntityKey,
    path: &[u8],
) -> Result<bool> {
    let users = lineage
        .links
        .iter()
        .filter(|link| link.from == input)
        .map(|link| link.to);
    let mut any = false;
    for user in users {
        let made = |link: &&Link| link.from == user && matches!(link.flow, Flow::Generated(_));
        let Node::Activity { id, .. } = &lineage.nodes[user] else {
            return Ok(false);
        };
        if lineage.links.iter().any(|link| made(&link)) {
            return Ok(false);
        }
        let who = store.activity(ActivityKey(*id))?;
        let now = Path::new(OsStr::from_bytes(path));
        let mut is_now = |entity: &Entity| {
            let state = state(now, entity.kind, entity.ident.as_ref());
            let gone = (entity.kind, state) == (EntityKind::Missing, FileState::Removed);
            Ok(gone || entity.kind != EntityKind::Missing && state == FileState::Current)
        };
        any = decided_since(store, version.run(), &who, path, &mut is_now)?;
        if !any {
            return Ok(false);
        }
    }
    Ok(any)
}
