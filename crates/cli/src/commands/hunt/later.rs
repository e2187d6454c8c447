//! The use of a match's files by later runs of the store.
//!
//! In: the run of a match, and the versions of its extent that were there at the end. Out: the
//! later runs into which their content came, and the files that these made with it.

use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

use backstory_eventlog::event::Bytes;
use backstory_graph::model::{EntityId, EntityKind};
use backstory_query as query;
use backstory_query::answer::{Node, Scope};
use backstory_store::{EntityKey, RunKey, Store};

use crate::error::Failure;
use crate::json::Value;

/// The most nodes of the lineage that are followed for one match.
const MOST: usize = 10_000;

/// The later uses of the files of a match.
#[derive(Debug, Clone, Default)]
pub struct LaterUse {
    /// The ids of the runs.
    pub runs: BTreeSet<String>,
    /// The files that they made with the content.
    pub files: BTreeSet<Bytes>,
    /// There are more than were looked at.
    pub is_cut: bool,
}

/// The later uses of a run's files. Matches of one cause have the same.
pub struct LaterUses<'s> {
    store: &'s dyn Store,
    run: RunKey,
    known: HashMap<Vec<EntityId>, LaterUse>,
}

impl<'s> LaterUses<'s> {
    /// Those of a run.
    pub fn new(store: &'s dyn Store, run: RunKey) -> LaterUses<'s> {
        LaterUses {
            store,
            run,
            known: HashMap::new(),
        }
    }

    /// The later uses of these versions, as far as they are found until `end`.
    pub fn of(&mut self, versions: &[EntityId], end: Option<Instant>) -> Result<LaterUse, Failure> {
        if let Some(known) = self.known.get(versions) {
            return Ok(known.clone());
        }
        let keys = versions.iter().map(|id| EntityKey::new(self.run, *id));
        let keys: Vec<EntityKey> = keys.collect();
        let scope = Scope {
            most: Some(MOST),
            since: Some(self.run),
            ..Scope::default()
        };
        let has_time = || end.is_none_or(|end| Instant::now() < end);
        let lineage = query::influence_while(self.store, &keys, &scope, &has_time)?;
        let own = self.store.run_id(self.run)?;
        let mut later = LaterUse {
            is_cut: lineage.cut,
            ..LaterUse::default()
        };
        for node in lineage.nodes {
            match node {
                Node::Activity { run, .. } if Some(&run) != own.as_ref() => {
                    later.runs.insert(run);
                }
                Node::Entity {
                    run,
                    kind: EntityKind::File,
                    path,
                    version: 1..,
                    ..
                } if Some(&run) != own.as_ref() => {
                    // A program that appends does not read the content.
                    later.runs.insert(run);
                    later.files.insert(path);
                }
                _ => {}
            }
        }
        // The next rule has time of its own, which a whole answer does not need.
        if !later.is_cut || has_time() {
            self.known.insert(versions.to_vec(), later.clone());
        }
        Ok(later)
    }
}

/// The uses as JSON.
pub fn object(later: &LaterUse) -> Value {
    let mut object = vec![
        ("runs", Value::array(&later.runs)),
        (
            "files",
            Value::array(later.files.iter().map(|file| &**file)),
        ),
    ];
    if later.is_cut {
        object.push(("cut", true.into()));
    }
    Value::Object(object)
}
