//! The files that the bytes of a whole file came from.

use std::collections::BTreeSet;
use std::slice;

use backstory_bytes::EntityKind;
use backstory_store::EntityKey;

use super::refined_runs::RefinedRuns;
use crate::Result;

/// The sources of all bytes of a version of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByteSources {
    /// The run that wrote them.
    pub run: String,
    /// The path of the file.
    pub path: Vec<u8>,
    /// Its length.
    pub length: u64,
    /// The files from before all refined runs, in order.
    pub from: BTreeSet<Vec<u8>>,
    /// These, and the files between them and this one.
    pub passed: BTreeSet<Vec<u8>>,
    /// Bytes came from something else than a file: a pipe, a connection, arguments.
    pub from_others: bool,
    /// More is possible than was found.
    pub is_possible: bool,
    /// Another run, which was not refined, may have made a file on the way.
    pub is_open: bool,
}

impl ByteSources {
    /// The sources of a version. `None` if the byte engine did not follow its run, or has no write
    /// to the file.
    pub fn of_version(
        runs: &mut RefinedRuns<'_>,
        version: EntityKey,
    ) -> Result<Option<ByteSources>> {
        let store = runs.store();
        let run = store.run_id(version.run())?.filter(|run| runs.has(run));
        let Some(run) = run else {
            return Ok(None);
        };
        let entity = store.entity(version)?;
        let size = entity.ident.map(|ident| u64::try_from(ident.size));
        let Some(Ok(length)) = size else {
            return Ok(None);
        };
        let all = 0..length;
        let Some(found) = runs.origins(&run, &entity.path, slice::from_ref(&all))? else {
            return Ok(None);
        };
        let is_file = |kind: EntityKind| kind == EntityKind::File;
        let sources = || found.sources.iter().map(|one| &one.entity);
        let files = sources().filter(|one| is_file(one.kind));
        let is_open = runs.is_open(version.run(), &found.passed)?;
        Ok(Some(ByteSources {
            is_open,
            run,
            path: entity.path.to_vec(),
            length,
            from: files.map(|one| one.path.clone()).collect(),
            from_others: sources().any(|one| !is_file(one.kind)),
            is_possible: !found.possible.is_empty() || found.coarse,
            passed: found.passed,
        }))
    }

    /// True if bytes of one of these files came into it. `None`: that is only possible.
    pub fn has_bytes_of(&self, paths: &BTreeSet<Vec<u8>>) -> Option<bool> {
        self.has_bytes_read_of(paths)
            .filter(|has| *has || !self.is_open)
    }

    /// True if it is certain that no byte of this file came into it.
    pub fn has_none_of(&self, path: &[u8]) -> bool {
        self.has_bytes_of(&BTreeSet::from([path.to_vec()])) == Some(false)
    }

    /// As [`ByteSources::has_bytes_of`], for bytes that the run itself read from these files, and
    /// not from copies that runs before it made.
    pub fn has_bytes_read_of(&self, paths: &BTreeSet<Vec<u8>>) -> Option<bool> {
        match self.passed.is_disjoint(paths) {
            false => Some(true),
            true => (!self.is_possible).then_some(false),
        }
    }
}
