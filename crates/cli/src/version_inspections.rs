//! Answers of inspectors about recorded versions of files: facts of one, and changes from the
//! content before. The views `facts` and `changes` of `query` are made of it.
//!
//! In: the key of a version. Out: a kept answer, or else that of an inspector, which is kept then.
//! Invariant: a kept answer outlives the content. It is found by the content's digest.

use std::cell::OnceCell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backstory_files::Digest;
use backstory_graph::model::{Entity, EntityKind};
use backstory_inspection::{
    Answer, InspectionWorker, InspectorEntry, LARGEST_INSPECTED, Question, Trouble,
};
use backstory_query as query;
use backstory_sql::{Inspection, Inspections};
use backstory_store::{EntityKey, GraphStore};

use crate::current_store::CurrentStore;
use crate::error::Failure;
use crate::file_inspector::FileInspector;
use crate::version_contents::VersionContents;

/// Asks about the versions of a store.
pub struct VersionInspections<'c> {
    current: &'c CurrentStore,
    contents: VersionContents<'c>,
    inspector: FileInspector,
    /// The worker, or the directory where it is missing.
    worker: OnceCell<Result<InspectionWorker, std::path::PathBuf>>,
}

/// A version with a content that can be inspected, if it is stored.
struct Inspected {
    key: EntityKey,
    entity: Entity,
    digest: Digest,
}

impl<'c> VersionInspections<'c> {
    /// For the versions of this store. No inspector runs before the first question.
    pub fn new(current: &'c CurrentStore) -> VersionInspections<'c> {
        VersionInspections {
            current,
            contents: VersionContents::new(current),
            inspector: FileInspector::new(Some(current.home.dir())),
            worker: OnceCell::new(),
        }
    }

    /// `None` for anything but a regular file whose digest is known.
    fn inspected(&self, key: EntityKey) -> Result<Option<Inspected>, Failure> {
        let entity = self.current.store.entity(key)?;
        let Some(ident) = entity.ident.filter(|_| entity.kind == EntityKind::File) else {
            return Ok(None);
        };
        let is_small = u64::try_from(ident.size).is_ok_and(|size| size <= LARGEST_INSPECTED);
        let known = query::known(&self.current.store, Some(&ident))?;
        Ok(known
            .and_then(|(digest, _)| digest)
            .filter(|_| is_small)
            .map(|digest| Inspected {
                key,
                entity,
                digest,
            }))
    }

    fn worker(&self) -> Result<&InspectionWorker, &Path> {
        let found = self.worker.get_or_init(InspectionWorker::find);
        found.as_ref().map_err(|directory| directory.as_path())
    }

    /// Asks the inspector of a file. A failure that concerns this file alone is a part of the
    /// result.
    fn ask(&self, entry: &InspectorEntry, question: &Question<'_>) -> Result<Answer, Failure> {
        let worker = self.worker().map_err(|directory| {
            Failure::not_found(Trouble::no_worker(question.name, directory.to_owned()))
        })?;
        let answer = self.inspector.ask_worker(worker, entry, question);
        Ok(answer.unwrap_or_else(|trouble| Answer {
            inspector: entry.name.clone(),
            version: entry.version,
            facts: serde_json::Map::new(),
            sentences: Vec::new(),
            changes: serde_json::Map::new(),
            error: Some(trouble.to_string()),
        }))
    }

    /// The facts of a version.
    fn facts_of(&self, key: EntityKey) -> Result<Option<Inspection>, Failure> {
        let Some(one) = self.inspected(key)? else {
            return Ok(None);
        };
        let name = &one.entity.path[..];
        let answer = match self.inspector.kept(name, &[one.digest]) {
            Some(kept) => kept,
            None => {
                let Some(content) = self.contents.read(one.key)? else {
                    return Ok(None);
                };
                let Some(entry) = self.inspector.entry(name, &content) else {
                    return Ok(None);
                };
                let question = Question {
                    name,
                    first: &content,
                    second: None,
                    key: &[],
                };
                self.ask(entry, &question)?
            }
        };
        let facts = answer.facts.into_iter();
        Ok(Some(Inspection {
            inspector: answer.inspector,
            former_run: None,
            said: facts.map(|(fact, value)| (fact, Some(value))).collect(),
            error: answer.error,
        }))
    }

    /// The changes that led to a version.
    fn changes_of(&self, key: EntityKey) -> Result<Option<Inspection>, Failure> {
        let Some(new) = self.inspected(key)? else {
            return Ok(None);
        };
        let store = &self.current.store;
        let name = &new.entity.path[..];
        let path = Path::new(OsStr::from_bytes(name));
        let Some(former) = query::former_state(store, path, key)? else {
            return Ok(None);
        };
        let Some(old) = self.inspected(former.version)? else {
            return Ok(None);
        };
        let answer = match self.inspector.kept(name, &[old.digest, new.digest]) {
            Some(kept) => Some(kept),
            None => self.compared(name, &old, &new)?,
        };
        let run = former.event.run;
        Ok(answer.map(|answer| Inspection {
            inspector: answer.inspector,
            former_run: run.and_then(|run| store.run_id(run).ok().flatten()),
            said: answer
                .sentences
                .into_iter()
                .map(|said| (said, None))
                .collect(),
            error: answer.error,
        }))
    }

    fn compared(
        &self,
        name: &[u8],
        old: &Inspected,
        new: &Inspected,
    ) -> Result<Option<Answer>, Failure> {
        let (Some(first), Some(second)) =
            (self.contents.read(old.key)?, self.contents.read(new.key)?)
        else {
            return Ok(None);
        };
        let entry = self.inspector.entry(name, &second);
        let Some(entry) = entry.filter(|entry| self.inspector.takes(entry, name, &first)) else {
            return Ok(None);
        };
        let question = Question {
            name,
            first: &first,
            second: Some(&second),
            key: self.inspector.key(entry, name),
        };
        self.ask(entry, &question).map(Some)
    }
}

impl Inspections for VersionInspections<'_> {
    fn facts(&self, version: EntityKey) -> Result<Option<Inspection>, String> {
        self.facts_of(version).map_err(|failure| failure.line)
    }

    fn changes(&self, version: EntityKey) -> Result<Option<Inspection>, String> {
        self.changes_of(version).map_err(|failure| failure.line)
    }
}
