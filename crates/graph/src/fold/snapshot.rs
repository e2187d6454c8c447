//! A copy of the state, which can take other events than the original from here on.
//!
//! In: the state after some events. Out: a fold with the same state and another sink. Both then
//! give the graph that a fold of all of their events gives.
//!
//! Invariant: processes that share a directory, or the mounts of a namespace, share them in the
//! copy, too, but not with the original.

use std::cell::RefCell;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::Fold;
use crate::model::Sink;
use crate::process::{BindMounts, FsContext, ProcessState};

impl<'a, S: Sink> Fold<'a, S> {
    /// A copy of this state, whose nodes and edges go to another sink.
    pub fn snapshot<T: Sink>(&self, sink: T) -> Fold<'a, T> {
        let mut processes = self.processes.clone();
        part(processes.values_mut());
        Fold {
            header: self.header,
            end: self.end,
            final_state: self.final_state.clone(),
            sink,
            paths: self.paths.clone(),
            objects: self.objects.clone(),
            by_key: self.by_key.clone(),
            names: self.names.clone(),
            links: self.links.clone(),
            older_links: self.older_links.clone(),
            older_link: self.older_link.clone(),
            missing: self.missing.clone(),
            processes,
            epochs: self.epochs.clone(),
            ended: self.ended.clone(),
            activities: self.activities.clone(),
            channels: self.channels.clone(),
            lists: self.lists.clone(),
            opaque: self.opaque.clone(),
            lacks_directory: self.lacks_directory,
            cut_off: self.cut_off,
            resources: self.resources.clone(),
            disclosed: self.disclosed.clone(),
            functions: self.functions.clone(),
            described: self.described.clone(),
            entities: self.entities,
            now: self.now,
        }
    }
}

/// Gives copied processes directories and mounts of their own, each shared as before.
fn part<'p>(processes: impl Iterator<Item = &'p mut ProcessState>) {
    let mut contexts: FxHashMap<*const FsContext, Rc<FsContext>> = FxHashMap::default();
    let mut mounts: FxHashMap<*const RefCell<_>, BindMounts> = FxHashMap::default();
    for process in processes {
        for fs in std::iter::once(&mut process.fs).chain(process.own_fs.values_mut()) {
            let own = || Rc::new(FsContext::clone(fs));
            *fs = Rc::clone(contexts.entry(Rc::as_ptr(fs)).or_insert_with(own));
        }
        let binds = &mut process.binds;
        let own = || Rc::new(RefCell::clone(binds));
        *binds = Rc::clone(mounts.entry(Rc::as_ptr(binds)).or_insert_with(own));
    }
}
