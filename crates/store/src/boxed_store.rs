//! A boxed store is a store: callers need not know its engine.
//!
//! Invariant: every method is passed on, also those with a default. A default would read whole runs
//! where the engine has an index.

use std::collections::HashSet;

use backstory_eventlog::event::{Bytes, Time};
use backstory_eventlog::run::{RunEnd, RunHeader};
use backstory_files::{Digest, Ident};
use backstory_graph::model::{Activity, ActivityId, Entity};

use crate::annotations::AnnotationRecord;
use crate::engine_control::StopQuestion;
use crate::facts::{DirectorySnapshot, Fact, JournalPosition, JournalRecord};
use crate::{
    ActivityKey, Annotation, AnnotationKind, Body, ContentFacts, EngineControl, EntityKey,
    GraphStore, Label, Maintenance, ReadGuard, Result, RunAnnotations, RunKey, RunRecord, Store,
    StoreStats, Stream, VersionMatch,
};

/// Passes methods of a trait on to the boxed store.
macro_rules! passed_on {
    ($trait:ident: $(
        fn $name:ident(& $($own:ident)+ $(, $arg:ident: $type:ty)*) $(-> $result:ty)?;
    )*) => {
        impl $trait for Box<dyn Store> {
            $(passed_on! { @ $name ($($own)+) ($($arg: $type),*) $($result)? })*
        }
    };
    (@ $name:ident (mut self) ($($arg:ident: $type:ty),*) $($result:ty)?) => {
        fn $name(&mut self $(, $arg: $type)*) $(-> $result)? {
            (**self).$name($($arg),*)
        }
    };
    (@ $name:ident (self) ($($arg:ident: $type:ty),*) $($result:ty)?) => {
        fn $name(&self $(, $arg: $type)*) $(-> $result)? {
            (**self).$name($($arg),*)
        }
    };
}

passed_on! { GraphStore:
    fn append(
        &mut self, header: &RunHeader, end: &RunEnd, log_bytes: u64, body: &mut Body<'_>
    ) -> Result<RunKey>;
    fn remove(&mut self, id: &str) -> Result<bool>;
    fn set_label(&mut self, id: &str, label: Label, text: Option<&str>) -> Result<()>;
    fn runs(&self) -> Result<Vec<RunRecord>>;
    fn activities(&self, run: RunKey) -> Result<Vec<Activity>>;
    fn entities(&self, run: RunKey) -> Result<Vec<Entity>>;
    fn stream(&self, key: ActivityKey) -> Result<Stream>;
    fn extended(&self, run: RunKey) -> Result<Vec<(ActivityId, Time, Bytes, Bytes)>>;
    fn reading(&self) -> Result<ReadGuard<'_>>;
    fn runs_in_order(&self) -> Result<Vec<RunKey>>;
    fn newest_run(&self) -> Result<Option<RunRecord>>;
    fn run_ids(&self) -> Result<HashSet<String>>;
    fn run(&self, id: &str) -> Result<Option<RunRecord>>;
    fn run_by_key(&self, key: RunKey) -> Result<Option<RunRecord>>;
    fn run_id(&self, key: RunKey) -> Result<Option<String>>;
    fn run_started(&self, key: RunKey) -> Result<Option<Time>>;
    fn runs_named(&self, name: &str) -> Result<Vec<RunRecord>>;
    fn activity(&self, key: ActivityKey) -> Result<Activity>;
    fn entity(&self, key: EntityKey) -> Result<Entity>;
    fn generators(&self, key: EntityKey) -> Result<Vec<ActivityId>>;
    fn touching(&self, key: EntityKey) -> Result<Vec<(ActivityId, bool)>>;
    fn at_path(&self, path: &[u8]) -> Result<Vec<EntityKey>>;
    fn rename_candidates(&self, path: &[u8]) -> Result<Vec<EntityKey>>;
    fn below(&self, prefix: &[u8], wanted: &dyn Fn(&[u8]) -> bool) -> Result<Vec<EntityKey>>;
    fn made_in(&self, directory: &[u8]) -> Result<Vec<(Bytes, EntityKey)>>;
    fn directories_below(&self, top: &[u8]) -> Result<Vec<Bytes>>;
    fn directories_of(&self, run: RunKey) -> Result<Vec<Bytes>>;
    fn same(&self, ident: &Ident, which: VersionMatch) -> Result<Vec<EntityKey>>;
    fn made_versions(&self, idents: &[Ident]) -> Result<Vec<Vec<EntityKey>>>;
}

passed_on! { ContentFacts:
    fn learn(&mut self, records: &[JournalRecord], read: JournalPosition, anew: bool) -> Result<()>;
    fn learned(&self) -> Result<JournalPosition>;
    fn fact(&self, ident: &Ident) -> Result<Option<Fact>>;
    fn facts_of(&self, idents: &[Ident]) -> Result<Vec<Option<Fact>>>;
    fn facts(&self) -> Result<Vec<Fact>>;
    fn directory_snapshot(&self, run: &str) -> Result<Option<DirectorySnapshot>>;
    fn with_content(&self, digest: &Digest) -> Result<Vec<Ident>>;
    fn with_contents(&self, digests: &[Digest]) -> Result<Vec<Vec<Ident>>>;
    fn digests_beginning(&self, digits: &str) -> Result<Vec<Digest>>;
    fn runs_without_contents(&self) -> Result<Vec<RunRecord>>;
}

passed_on! { RunAnnotations:
    fn annotate(&mut self, records: &[AnnotationRecord], read: u64, anew: bool) -> Result<()>;
    fn annotations_read(&self) -> Result<u64>;
    fn annotations(&self, run: &str) -> Result<Vec<Annotation>>;
    fn annotations_of(&self, kind: AnnotationKind, key: Option<&str>) -> Result<Vec<Annotation>>;
}

passed_on! { Maintenance:
    fn stats(&self) -> Result<StoreStats>;
    fn forget_unreferred(&mut self) -> Result<()>;
    fn compact(&mut self) -> Result<()>;
}

passed_on! { EngineControl:
    fn leave_log(&self) -> Result<()>;
    fn has_long_log(&self) -> bool;
    fn bring_in_log(&self) -> Result<()>;
    fn interrupt_when(&self, stop: Option<StopQuestion>);
    fn is_reading(&self) -> bool;
    fn is_exclusive(&self) -> bool;
    fn is_shared(&self) -> bool;
    fn own_runs(&self) -> Result<Option<HashSet<RunKey>>>;
}

#[cfg(test)]
mod tests {
    /// The names of the methods that a text declares.
    fn methods(text: &str) -> Vec<&str> {
        let lines = text.lines().filter_map(|line| line.strip_prefix("    fn "));
        lines
            .filter_map(|line| line.split(['(', '<']).next())
            .collect()
    }

    #[test]
    fn every_method_of_a_store_is_passed_on() {
        let own = include_str!("boxed_store.rs");
        let own = methods(own.split("mod tests").next().unwrap_or_default());
        let traits = [
            include_str!("graph_store.rs"),
            include_str!("content_facts.rs"),
            include_str!("annotations.rs"),
            include_str!("maintenance.rs"),
            include_str!("engine_control.rs"),
        ];
        let mut found = 0;
        for text in traits {
            let text = text.split("\npub trait ").nth(1).unwrap_or_default();
            let text = text.split("\n}\n").next().unwrap_or_default();
            for method in methods(text) {
                assert!(own.contains(&method), "{method} is not passed on");
                found += 1;
            }
        }
        assert!(found > 40, "{found}");
    }
}
