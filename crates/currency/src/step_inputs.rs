//! Judges one use of a file: would the step find the same now?
//!
//! Files that a run made for itself are judged by the run's end state. A temporary file that the
//! run removed is not missing. A file that the run made anew is compared with its content at the
//! end.

use backstory_ordering::SmallCollect;
use std::collections::BTreeSet;

use backstory_eventlog::event::{Bytes, Time};
use backstory_files::Ident;
use backstory_graph::model::{Certainty, Edge, Entity, EntityKind, Relation};
use backstory_workflow::paths::{is_below_kernel, is_system, is_tool, parent};
use backstory_workflow::steps::script;

use crate::Result;
use crate::derived_views::{ViewJudge, ViewRule, is_compiled_from};
use crate::file_state::{FileComparison, FileState};
use crate::loaded_runs::LoadedRun;
use crate::looks::{self, leads_elsewhere};
use crate::reason::Reason;

/// Judges the uses of files.
pub struct InputJudge<'j> {
    /// Compares files with versions.
    pub files: &'j FileComparison<'j>,
    /// The rules of derived views.
    pub views: &'j ViewJudge,
}

impl InputJudge<'_> {
    /// The reason that one use gives. `worked`: the last time at which a recorded step worked in a
    /// directory; changes of the directory until then are those of the steps.
    pub fn reason(
        &self,
        run: &LoadedRun,
        at: usize,
        edge: &Edge,
        worked: &dyn Fn(&[u8]) -> Time,
    ) -> Result<Option<Reason>> {
        let entity = run.recording.entity(edge.entity);
        let path = &entity.path;
        if !path.starts_with(b"/") || is_below_kernel(path) {
            return Ok(None);
        }
        let reason = match edge.relation {
            Relation::Read | Relation::Execute if entity.kind == EntityKind::File => {
                self.read(run, at, edge, worked)?
            }
            Relation::Missing => self.missing(run, at, path),
            Relation::List => self.listing(run, at, edge, worked),
            Relation::Stat | Relation::Link => looks::reason(self.files, run, at, edge)?,
            _ => None,
        };
        Ok(match (edge.certainty, reason) {
            (Certainty::Possible, Some(reason)) if !reason.is_uncertain() => {
                Some(Reason::MayHaveRead(reason.subject().clone()))
            }
            (_, reason) => reason,
        })
    }

    fn read(
        &self,
        run: &LoadedRun,
        at: usize,
        edge: &Edge,
        worked: &dyn Fn(&[u8]) -> Time,
    ) -> Result<Option<Reason>> {
        let entity = run.recording.entity(edge.entity);
        let path = &entity.path;
        let Some(expected) = run.expected(entity) else {
            return Ok(None);
        };
        let mut state = self
            .files
            .state(path, expected, known_until(run, expected, edge))?;
        if state == FileState::Current
            && (leads_elsewhere(self.files, run, entity)? || self.lost_permission(expected, edge))
        {
            state = FileState::Modified;
        }
        let tool = || edge.relation == Relation::Execute || is_tool(path);
        // A compiled file stands for its source, even if it has not changed itself.
        let compiled = path.ends_with(b".pyc") && self.files.present.ident(path).is_ok();
        if state == FileState::Current && !compiled {
            // Look-ups that were not recorded may now find another file.
            let unseen = !run.recording.activities[at].lookups_known && !is_system(path);
            let directory = unseen.then(|| self.directory(parent(path), worked));
            return Ok(directory.flatten().map(Reason::MayHaveLooked));
        }
        let changed = match state {
            FileState::Removed => Reason::InputGone(path.clone()),
            FileState::Uncertain if !self.changed_after(run, path) => {
                Reason::MayHaveChanged(path.clone())
            }
            _ if is_script(run, at, entity) => Reason::ScriptChanged(path.clone()),
            _ if tool() => Reason::ToolChanged(path.clone()),
            _ => Reason::InputChanged(path.clone()),
        };
        match self.views.rule(run, at, path) {
            ViewRule::Nothing => Ok(None),
            ViewRule::Content => Ok((state != FileState::Current).then_some(changed)),
            ViewRule::Libraries => Ok(self
                .views
                .moved_library(run, at, path)
                .map(Reason::ToolChanged)),
            ViewRule::Source(source) => self.source(run, expected, source, changed),
        }
    }

    /// The reason that a file gives which a run put under another name: the name now stands for
    /// another file.
    pub fn origin(&self, run: &LoadedRun, found: &Entity) -> Result<Option<Reason>> {
        let Some(expected) = run.expected(found) else {
            return Ok(None);
        };
        Ok(match self.files.state(&found.path, expected, run.ended)? {
            FileState::Current => None,
            FileState::Removed => Some(Reason::InputGone(found.path.clone())),
            FileState::Uncertain => Some(Reason::MayHaveChanged(found.path.clone())),
            _ => Some(Reason::InputChanged(found.path.clone())),
        })
    }

    /// True if the file may no longer be executed.
    fn lost_permission(&self, executed: &Entity, edge: &Edge) -> bool {
        let allows = |ident: &Ident| ident.mode & 0o111 != 0;
        edge.relation == Relation::Execute
            && executed.ident.is_some_and(|then| allows(&then))
            && self
                .files
                .present
                .ident(&executed.path)
                .is_ok_and(|now| !allows(&now))
    }

    /// True if the file at the path certainly changed after the end of the run.
    pub fn changed_after(&self, run: &LoadedRun, path: &Bytes) -> bool {
        let now = self.files.present.ident(path);
        now.is_ok_and(|now| now.mtime.max(now.ctime) > run.ended)
    }

    /// Judges a compiled file by its source.
    fn source(
        &self,
        run: &LoadedRun,
        compiled: &Entity,
        source: Bytes,
        changed: Reason,
    ) -> Result<Option<Reason>> {
        let Ok(now) = self.files.present.ident(&source) else {
            // The file is compiled without a source.
            let state = self.files.state(&compiled.path, compiled, run.ended)?;
            return Ok((state != FileState::Current).then_some(changed));
        };
        let known = run.left(&source).or_else(|| run.before(&source));
        if let Some(known) = known.filter(|known| known.ident.is_some()) {
            let state = self.files.state(&source, known, run.ended)?;
            let other = Reason::InputChanged(source);
            return Ok((state != FileState::Current).then_some(other));
        }
        let same = self.files.state(&compiled.path, compiled, run.ended)? == FileState::Current
            && is_compiled_from(&compiled.path, now.mtime, now.size);
        let before = now.mtime.max(now.ctime) <= run.ended;
        Ok((!same && !before).then_some(Reason::InputChanged(source)))
    }

    fn missing(&self, run: &LoadedRun, at: usize, path: &Bytes) -> Option<Reason> {
        // A file that the run made after the look-up existed at its end.
        if run.left(path).is_some() || self.files.present.link(path).is_err() {
            return None;
        }
        let nothing = self.views.rule(run, at, path) != ViewRule::Content;
        (!nothing).then(|| Reason::Appeared(path.clone()))
    }

    /// The name that appeared in a directory, or the directory, if names disappeared since the end
    /// of the run. The comparison uses the recorded listing, or else the directory's time.
    fn listing(
        &self,
        run: &LoadedRun,
        at: usize,
        edge: &Edge,
        worked: &dyn Fn(&[u8]) -> Time,
    ) -> Option<Reason> {
        let path = &run.recording.entity(edge.entity).path;
        let now = self.files.present.listing(path)?;
        let Some(then) = run.listings.get(&*now.real) else {
            let other = self.directory(path, worked)?;
            let nothing = self.views.is_module_search(run, at, path, &BTreeSet::new());
            return (!nothing).then_some(Reason::DirectoryChanged(other));
        };
        let then = &then.names;
        if *then == now.names {
            return None;
        }
        let patterns = run.name_patterns(at, edge);
        let mut others = now.names.symmetric_difference(then);
        if !others.any(|name| patterns.may_match(name)) {
            return None;
        }
        let appeared: BTreeSet<&Vec<u8>> = now.names.difference(then).into_tree();
        if self.views.is_module_search(run, at, path, &appeared) {
            return None;
        }
        Some(match appeared.first() {
            Some(name) => Reason::Appeared([path, b"/".as_slice(), name].concat().into()),
            None => Reason::DirectoryChanged(path.clone()),
        })
    }

    /// The directory, if it has changed since the recorded steps worked there.
    fn directory(&self, path: &[u8], worked: &dyn Fn(&[u8]) -> Time) -> Option<Bytes> {
        let path = Bytes::from(path);
        let now = self.files.present.ident(&path).ok()?;
        (now.mtime > worked(&path)).then_some(path)
    }
}

/// The moment until which a version's unknown identity may be older than the use. It is the use
/// itself for a file that the run found, and the end of the run for a file that it left.
pub fn known_until(run: &LoadedRun, expected: &Entity, edge: &Edge) -> Time {
    match expected.version {
        0 => edge.interval.start.min(run.ended),
        _ => run.ended,
    }
}

/// True if the file is the script that the activity runs.
fn is_script(run: &LoadedRun, at: usize, file: &Entity) -> bool {
    let script = script(&run.recording, at);
    let mut names = std::iter::once(&file.path).chain(&file.aliases);
    script.is_some_and(|script| names.any(|name| **name == *script))
}
